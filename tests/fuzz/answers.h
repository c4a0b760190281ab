/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper.c whose answers are the fuzzer's bytes, as a helper would give that a hostile file or process has taken over.
 * It keeps what helper.h promises: answers of the size that was asked for, and a descriptor if one was. For one program.
 */
#ifndef STACKTAP_FUZZ_ANSWERS_H
#define STACKTAP_FUZZ_ANSWERS_H

#include <stdlib.h>
#include <string.h>

#include "helper/helper.h"
#include "base/file.h"
#include "helper/memfd.h"

static const uint8_t *input;
static size_t left;

static size_t take(void *bytes, size_t size)
{
	size_t n = min_of(size, left);

	memset(bytes, 0, size);
	memcpy(bytes, input, n);
	input += n;
	left -= n;
	return n;
}

static uint8_t take_byte(void)
{
	uint8_t byte;

	take(&byte, 1);
	return byte;
}

struct helper {
	enum helper_kind kind;
};

int helper_new(enum helper_kind kind, struct helper **ret_helper)
{
	*ret_helper = calloc(1, sizeof(**ret_helper));
	if (!*ret_helper)
		return -ENOMEM;
	(*ret_helper)->kind = kind;
	return 0;
}

void helper_free(struct helper *helper)
{
	free(helper);
}

int helper_call(struct helper *helper, struct helper_call *call)
{
	static const int errors[] = { -ENOENT, -ETIMEDOUT, -EBADMSG, -ETIME, -EAGAIN, -EPIPE };
	uint8_t how = take_byte(), size = take_byte();
	uint8_t large[256 * 24];

	(void)helper;
	call->ret_fd = -1;
	if (how >= 250)
		return errors[how - 250];
	call->ret_bytes = call->answer_bytes;
	if (call->is_text)
		call->ret_bytes = min_of(call->may_lack_fd ? size * (size_t)24 : size, call->answer_bytes);
	if (call->ret_bytes)
		take(call->answer, call->ret_bytes);
	if (!call->wants_fd || (call->may_lack_fd && how % 2))
		return 0;
	call->ret_fd = memfd_new();
	take(large, size * (size_t)24);
	if (call->ret_fd < 0 || file_write(call->ret_fd, large, size * (size_t)24 + how % 8) < 0)
		abort();
	if (how < 200)
		call->ret_fd = memfd_seal(&call->ret_fd);
	return 0;
}

pid_t helper_left_behind(const struct helper *helper)
{
	(void)helper;
	return 0;
}

bool helper_is_abandoned(struct helper *helper, pid_t pid)
{
	(void)helper;
	(void)pid;
	return false;
}

void helper_stats(struct helper *helper, struct helper_stats *ret_stats)
{
	(void)helper;
	*ret_stats = (struct helper_stats){ 0 };
}

#endif /* STACKTAP_FUZZ_ANSWERS_H */
