/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading numbers from bytes that somebody else wrote: never beyond the end. What does not fit
 * yields 0 and sets `bad`, which the caller looks at when it has read what belongs together.
 */
#ifndef STACKTAP_BASE_CURSOR_H
#define STACKTAP_BASE_CURSOR_H

#include <string.h>

#include "base/macro.h"

struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static inline size_t cursor_left(const struct cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

/* The next @size bytes, or NULL. */
static inline const uint8_t *cursor_take(struct cursor *cursor, uint64_t size)
{
	const uint8_t *bytes = cursor->at;

	if (size > cursor_left(cursor)) {
		cursor->bad = true;
		cursor->at = cursor->end;
		return NULL;
	}
	cursor->at += size;
	return bytes;
}

/* A number of @size bytes, at most 8, in host byte order (files of another order are refused). */
static inline uint64_t cursor_number(struct cursor *cursor, unsigned int size)
{
	const uint8_t *bytes;
	uint64_t value = 0;

	/* it may be a file that says how many */
	if (size > sizeof(value)) {
		cursor->bad = true;
		return 0;
	}
	bytes = cursor_take(cursor, size);
	if (!bytes)
		return 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	memcpy(&value, bytes, size);
#else
	memcpy((uint8_t *)&value + sizeof(value) - size, bytes, size);
#endif
	return value;
}

static inline uint8_t cursor_u8(struct cursor *cursor)
{
	if (cursor->at == cursor->end) {
		cursor->bad = true;
		return 0;
	}
	return *cursor->at++;
}

static inline uint16_t cursor_u16(struct cursor *cursor)
{
	return (uint16_t)cursor_number(cursor, sizeof(uint16_t));
}

static inline uint32_t cursor_u32(struct cursor *cursor)
{
	return (uint32_t)cursor_number(cursor, sizeof(uint32_t));
}

static inline uint64_t cursor_u64(struct cursor *cursor)
{
	return cursor_number(cursor, sizeof(uint64_t));
}

/* Up to its NUL, which is inside; empty beyond the end. */
static inline const char *cursor_text(struct cursor *cursor)
{
	const uint8_t *at = cursor->at, *nul = memchr(at, '\0', cursor_left(cursor));

	if (!nul) {
		cursor->at = cursor->end;
		cursor->bad = true;
		return "";
	}
	cursor->at = nul + 1;
	return (const char *)at;
}

/* LEB128; bits beyond the 64th are dropped, the encoding is not limited in length. */
static inline uint64_t cursor_uleb(struct cursor *cursor)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = cursor_u8(cursor);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += shift < 64 ? 7 : 0;
	} while (byte & 0x80);
	return value;
}

static inline int64_t cursor_sleb(struct cursor *cursor)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = cursor_u8(cursor);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += shift < 64 ? 7 : 0;
	} while (byte & 0x80);
	if (shift < 64 && byte & 0x40)
		value |= ~0ULL << shift;
	return (int64_t)value;
}

#endif /* STACKTAP_BASE_CURSOR_H */
