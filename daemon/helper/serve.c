// SPDX-License-Identifier: Apache-2.0
#include "helper/serve.h"

#include <string.h>
#include <sys/prctl.h>

#include "base/sha256.h"
#include "helper/descriptor.h"
#include "helper/fetch.h"
#include "helper/open.h"
#include "helper/owner.h"
#include "helper/parse.h"
#include "helper/request.h"
#include "helper/sandbox.h"

static const struct {
	const char *name;
	void (*answer)(struct serve_request *request, struct serve_answer *answer);
} kinds[HELPER_KINDS] = {
	[HELPER_PARSER] = { "stacktap-parser", parse_answer },
	[HELPER_OPENER] = { "stacktap-opener", open_answer },
	[HELPER_FETCHER] = { "stacktap-fetcher", fetch_answer },
};

const char *serve_name(enum helper_kind kind)
{
	return kinds[kind].name;
}

static bool send_answer(uint32_t op, const struct serve_answer *answer)
{
	struct helper_header header = {
		.op = op, .result = answer->result, .bytes = (uint32_t)answer->bytes,
	};
	struct iovec parts[] = {
		{ .iov_base = &header, .iov_len = sizeof(header) },
		{ .iov_base = answer->payload, .iov_len = answer->bytes },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts) };
	union descriptor_room room;

	descriptor_put(&message, &room, answer->fd);
	return sendmsg(HELPER_FD, &message, MSG_NOSIGNAL) >= 0;
}

/* False: the owner is gone, or what came is none of its questions. */
static bool receive_request(uint8_t *payload, struct serve_request *ret_request)
{
	union descriptor_room room;
	struct helper_header header;
	struct iovec parts[] = {
		{ .iov_base = &header, .iov_len = sizeof(header) },
		{ .iov_base = payload, .iov_len = HELPER_BYTES_MAX },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts) };
	ssize_t n;
	int fd;

	descriptor_expect(&message, &room);
	n = recvmsg(HELPER_FD, &message, MSG_CMSG_CLOEXEC);
	if (n <= 0 || descriptor_take(&message, &fd) < 0)
		return false;
	if (n < (ssize_t)sizeof(header)) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	*ret_request = (struct serve_request){
		.op = header.op, .bytes = (uint32_t)((size_t)n - sizeof(header)),
		.fd = fd, .payload = payload,
	};
	return true;
}

/* From what the asking end says of a helper that is not there, hangs or dies. */
static int told_apart(int error)
{
	if (error == -EAGAIN)
		return -EBUSY;
	return error == -EPIPE || error == -ETIMEDOUT ? -EIO : error;
}

static void refuse(struct serve_answer *answer, int error)
{
	if (answer->fd >= 0)
		close(answer->fd);
	answer->fd = -1;
	answer->bytes = 0;
	answer->result = error;
}

/* False: there is nobody left to answer. */
static bool serve_one(enum helper_kind kind, uint8_t *request_payload, uint8_t *answer_payload)
{
	struct serve_answer answer = { .fd = -1, .payload = answer_payload };
	struct serve_request request;
	bool is_sent;

	if (!receive_request(request_payload, &request))
		return false;
	kinds[kind].answer(&request, &answer);
	if (answer.result < 0)
		refuse(&answer, told_apart(answer.result));
	/* this may hang, and then it is this question's fault */
	if (request.fd >= 0)
		close(request.fd);
	is_sent = send_answer(request.op, &answer);
	/* others of our user may have too many descriptors on their way */
	if (!is_sent) {
		refuse(&answer, -EMFILE);
		is_sent = send_answer(request.op, &answer);
	}
	if (answer.fd >= 0)
		close(answer.fd);
	return is_sent;
}

static _noreturn_ void serve(enum helper_kind kind)
{
	static uint8_t request_payload[HELPER_BYTES_MAX], answer_payload[HELPER_BYTES_MAX];
	struct serve_answer answer = { .fd = -1, .payload = answer_payload };
	struct helper_hello hello = { 0 };

	prctl(PR_SET_NAME, kinds[kind].name);
	if (kind == HELPER_FETCHER)
		fetch_prepare();
	if (kind == HELPER_PARSER)
		sha256_prepare();
	if (kind == HELPER_OPENER)
		owner_note();
	hello.is_confined = sandbox_enter(kind);
	memcpy(answer.payload, &hello, sizeof(hello));
	answer.bytes = sizeof(hello);
	if (!send_answer(HELPER_HELLO, &answer))
		_exit(EXIT_FAILURE);
	while (serve_one(kind, request_payload, answer_payload))
		;
	/* nothing is left to be done, and exit handlers of libraries are not among what is allowed here */
	_exit(EXIT_SUCCESS);
}

/* glibc calls constructors with main()'s arguments. */
static void __attribute__((constructor)) serve_if_helper(int argc, char **argv)
{
	for (int kind = 0; argc == 1 && kind < HELPER_KINDS; kind++)
		if (!strcmp(argv[0], kinds[kind].name))
			serve((enum helper_kind)kind);
}
