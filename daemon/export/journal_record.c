// SPDX-License-Identifier: Apache-2.0
#include "export/journal_record.h"

#include <endian.h>
#include <libdeflate.h>
#include <string.h>
#include <sys/random.h>

#include "export/cut_format.h"
#include "stacktap/version.h"

static const char magic[] = { 's', 't', 'a', 'c', 'k', 't', 'a', 'p' };

enum {
	AT_FORMAT = sizeof(magic),
	AT_VERSION = AT_FORMAT + 4,
	AT_NONCE = AT_VERSION + JOURNAL_VERSION,
	AT_SUM = AT_NONCE + 16,
};

_Static_assert(AT_SUM + 4 == JOURNAL_HEAD, "head");
_Static_assert(sizeof(STACKTAP_VERSION) <= JOURNAL_VERSION, "version");

static void put_word(uint8_t *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
}

static uint32_t word_at(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

void journal_head(uint8_t ret_head[JOURNAL_HEAD], uint32_t *ret_sum)
{
	memset(ret_head, 0, JOURNAL_HEAD);
	memcpy(ret_head, magic, sizeof(magic));
	put_word(ret_head + AT_FORMAT, CUT_FORMAT);
	memcpy(ret_head + AT_VERSION, STACKTAP_VERSION, sizeof(STACKTAP_VERSION));
	/* without it, only the bytes of another file of this moment could be taken for its own */
	if (getrandom(ret_head + AT_NONCE, AT_SUM - AT_NONCE, 0) < 0)
		memset(ret_head + AT_NONCE, 0, AT_SUM - AT_NONCE);
	*ret_sum = libdeflate_crc32(0, ret_head, AT_SUM);
	put_word(ret_head + AT_SUM, *ret_sum);
}

int journal_head_check(const uint8_t head[JOURNAL_HEAD], uint32_t *ret_sum, char ret_version[JOURNAL_VERSION])
{
	*ret_sum = libdeflate_crc32(0, head, AT_SUM);
	if (memcmp(head, magic, sizeof(magic)) || word_at(head + AT_SUM) != *ret_sum)
		return -EBADMSG;
	memcpy(ret_version, head + AT_VERSION, JOURNAL_VERSION);
	ret_version[JOURNAL_VERSION - 1] = '\0';
	return word_at(head + AT_FORMAT) == CUT_FORMAT && !strcmp(ret_version, STACKTAP_VERSION) ? 0 : -EPROTO;
}

static uint32_t sum_of(uint32_t before, const uint8_t frame[JOURNAL_FRAME], const uint8_t *data, size_t size)
{
	uint32_t sum = libdeflate_crc32(before, frame, 4);

	sum = libdeflate_crc32(sum, frame + 8, 1);
	return libdeflate_crc32(sum, data, size);
}

void journal_frame(enum journal_kind kind, const uint8_t *data, size_t size, uint32_t *sum,
		   uint8_t ret_frame[JOURNAL_FRAME])
{
	put_word(ret_frame, (uint32_t)size);
	ret_frame[8] = (uint8_t)kind;
	*sum = sum_of(*sum, ret_frame, data, size);
	put_word(ret_frame + 4, *sum);
}

int journal_frame_size(const uint8_t frame[JOURNAL_FRAME], size_t *ret_size)
{
	*ret_size = word_at(frame);
	return *ret_size > JOURNAL_RECORD_MAX ? -EBADMSG : 0;
}

int journal_frame_check(const uint8_t frame[JOURNAL_FRAME], const uint8_t *data, size_t size, uint32_t *sum,
			enum journal_kind *ret_kind)
{
	*sum = sum_of(*sum, frame, data, size);
	*ret_kind = frame[8];
	return word_at(frame + 4) == *sum ? 0 : -EBADMSG;
}
