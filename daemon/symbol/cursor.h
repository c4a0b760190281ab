/* SPDX-License-Identifier: Apache-2.0 */
/* Reading bytes of others one after the other. Beyond the end everything is 0, and the cursor is bad from then on. */
#ifndef STACKTAP_SYMBOL_CURSOR_H
#define STACKTAP_SYMBOL_CURSOR_H

#include <string.h>

#include "base/macro.h"

struct cursor {
	const uint8_t *at, *end;
	bool is_bad;
};

/* @size bytes, or NULL */
static inline const uint8_t *cursor_take(struct cursor *cursor, uint64_t size)
{
	const uint8_t *at = cursor->at;

	if (size > (uint64_t)(cursor->end - at)) {
		cursor->at = cursor->end;
		cursor->is_bad = true;
		return NULL;
	}
	cursor->at += size;
	return at;
}

static inline uint8_t cursor_u8(struct cursor *cursor)
{
	const uint8_t *at = cursor_take(cursor, 1);

	return at ? *at : 0;
}

static inline uint16_t cursor_u16(struct cursor *cursor)
{
	const uint8_t *at = cursor_take(cursor, 2);
	uint16_t value = 0;

	if (at)
		memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint32_t cursor_u32(struct cursor *cursor)
{
	const uint8_t *at = cursor_take(cursor, 4);
	uint32_t value = 0;

	if (at)
		memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint64_t cursor_u64(struct cursor *cursor)
{
	const uint8_t *at = cursor_take(cursor, 8);
	uint64_t value = 0;

	if (at)
		memcpy(&value, at, sizeof(value));
	return value;
}

/* Of 1, 2, 4 or 8 bytes, as addresses and offsets are; of any other size it is bad. */
static inline uint64_t cursor_number(struct cursor *cursor, unsigned int size)
{
	switch (size) {
	case 1:
		return cursor_u8(cursor);
	case 2:
		return cursor_u16(cursor);
	case 4:
		return cursor_u32(cursor);
	case 8:
		return cursor_u64(cursor);
	default:
		cursor->is_bad = true;
		return 0;
	}
}

static inline uint64_t cursor_uleb(struct cursor *cursor)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = cursor_u8(cursor);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
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
		shift += 7;
	} while (byte & 0x80);
	if (byte & 0x40 && shift < 64)
		value |= ~0ULL << shift;
	return (int64_t)value;
}

/* Up to its NUL, which is inside; empty beyond the end. */
static inline const char *cursor_text(struct cursor *cursor)
{
	const uint8_t *at = cursor->at, *nul = memchr(at, '\0', (size_t)(cursor->end - at));

	if (!nul) {
		cursor->at = cursor->end;
		cursor->is_bad = true;
		return "";
	}
	cursor->at = nul + 1;
	return (const char *)at;
}

#endif /* STACKTAP_SYMBOL_CURSOR_H */
