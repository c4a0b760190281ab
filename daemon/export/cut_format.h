/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cut is made of: entries, each of them a byte that says what it is, and numbers as protobuf's
 * varints, signed ones in zigzag; where a size is told they have that, little-endian: what each sample has is not to be
 * looked at byte by byte. Texts and bytes have their length before them. Indices count from 0 in
 * what the file has had of the same kind; stacks and samples by that count from 0 in the cut's window
 * and file. "+ 1": 0 says that there is none.
 *
 * A cut begins with the window's number, an id of 16 bytes, and what is to be added to a time to get
 * Unix time (signed). What an entry names comes before it.
 */
#ifndef STACKTAP_EXPORT_CUT_FORMAT_H
#define STACKTAP_EXPORT_CUT_FORMAT_H

#include <endian.h>
#include <string.h>

#include "base/macro.h"

enum { CUT_FORMAT = 3 };	/* changes with anything here; a file of another one is not read */

enum cut_entry {
	CUT_OPTIONS = 1,	/* flags, max_bytes, kernel_suffix; once, first */
	CUT_PROFILE,		/* source, event, source_id, mode, rate_hz, fallback_errno, degraded, period, flags */
	CUT_OBJECT,		/* kind, path, build_id, go_build_id, htlhash, start, limit, offset, segments of 3 */
	CUT_FILE,		/* index, kind, path, object + 1; again when the object is known */
	CUT_FUNCTION,		/* flags, name, system_name or nothing, filename or nothing, start_line */
	CUT_IMAGE,		/* index (0: the kernel's), tgid, N of the one in N samples that are sent, */
				/* its Resource in bytes; again when more is known */
	CUT_LOCATION,		/* index, flags, file + 1, offset, and if it is resolved: runtime, object + 1, */
				/* address, function_start, count of Lines, of each: function, line, column (signed) */
	CUT_STACK,		/* how many last Locations are those of the stack before, count of others, these */
	CUT_SAMPLE,		/* u8 shape, u16 count, u32 each: tid, cpu, image, stack; that many times */
	CUT_TIMES,		/* of a sample that is there: u16 count, u32 index; times */
	CUT_SHAPE,		/* u8 its number, which another one may have had in this window; profile, user_end, kernel_end, */
				/* marks, comm */
	CUT_TIME,		/* what to add to the time before (signed), where that is too far away */
	/*
	 * Times: of each 32 bits of the difference to the time before it in the cut (signed), and behind all of them, where the
	 * Profile is in frequency mode, the values.
	 */
};

enum { CUT_WITH_CPU = 1, CUT_NAMES_RANGES = 2, CUT_HAS_SUFFIX = 4, CUT_HAD_RULES = 8, CUT_ROUNDS_TIMES = 16, CUT_REPEATS = 32 }; /* of options */
enum { CUT_MULTIPLEXED = 1, CUT_CLOCK = 2, CUT_CPU_TIME = 4 };			/* of a Profile */
enum { CUT_SYSTEM_NAME = 1, CUT_FILENAME = 2 };					/* of a Function */
enum { CUT_KERNEL = 1, CUT_RETURN = 2, CUT_RESOLVED = 4, CUT_REFUSED = 8, CUT_RANGE = 16 }; /* of a Location */

enum {
	CUT_ID = 16,
	CUT_VARINT_MAX = 10,
	CUT_TEXT_MAX = 16384,	/* what is longer is cut off */
	CUT_BYTES_MAX = 1 << 20, /* a cut that has so many ends */
	CUT_SHAPES = 64,
	CUT_SAMPLE_BYTES = 20,	/* with what says that it is one, without times */
	CUT_TIMES_BYTES = 7,
};

static inline uint64_t cut_zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int64_t cut_unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}

static inline uint8_t *cut_put(uint8_t *at, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*at++ = (uint8_t)value | 0x80;
	*at++ = (uint8_t)value;
	return at;
}

static inline uint8_t *cut_put_signed(uint8_t *at, int64_t value)
{
	return cut_put(at, cut_zigzag(value));
}

static inline uint8_t *cut_put16(uint8_t *at, uint16_t value)
{
	value = htole16(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static inline uint8_t *cut_put32(uint8_t *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

#endif /* STACKTAP_EXPORT_CUT_FORMAT_H */
