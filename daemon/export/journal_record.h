/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file of the journal is made of. A head of 64 bytes: "stacktap", its format as u32, the version
 * of the daemon that wrote it in 32 bytes, 16 random ones, and a CRC-32 (ISO-HDLC) of all that. Then
 * records: a u32 length, a u32 CRC-32, a byte that says what it is, and that many bytes. All numbers are
 * little-endian.
 *
 * The CRC of a record goes on from that of what is before it: bytes that another file left on the disk,
 * or that are of another place in this one, are none of it.
 */
#ifndef STACKTAP_EXPORT_JOURNAL_RECORD_H
#define STACKTAP_EXPORT_JOURNAL_RECORD_H

#include "base/macro.h"

enum {
	JOURNAL_HEAD = 64,
	JOURNAL_VERSION = 32,		/* bytes of the daemon's version, with a NUL */
	JOURNAL_FRAME = 9,		/* before a record's bytes */
	JOURNAL_RECORD_MAX = 4 << 20,
};

enum journal_kind {
	JOURNAL_CUT = 1,		/* of export/cut_format.h */
	JOURNAL_DONE,			/* u64: no window up to this one is needed any more */
};

void journal_head(uint8_t ret_head[JOURNAL_HEAD], uint32_t *ret_sum);
/* -EBADMSG: damaged, or no journal; -EPROTO: of another version, whose name is in @ret_version. */
int journal_head_check(const uint8_t head[JOURNAL_HEAD], uint32_t *ret_sum, char ret_version[JOURNAL_VERSION]);
/* @sum: of what is before it, and then with it. */
void journal_frame(enum journal_kind kind, const uint8_t *data, size_t size, uint32_t *sum,
		   uint8_t ret_frame[JOURNAL_FRAME]);
/* The bytes behind a frame; -EBADMSG: it has more than a record may. */
int journal_frame_size(const uint8_t frame[JOURNAL_FRAME], size_t *ret_size);
/* -EBADMSG: it is damaged. */
int journal_frame_check(const uint8_t frame[JOURNAL_FRAME], const uint8_t *data, size_t size, uint32_t *sum,
			enum journal_kind *ret_kind);

#endif /* STACKTAP_EXPORT_JOURNAL_RECORD_H */
