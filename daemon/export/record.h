/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages in files: a u32 big-endian length and that many bytes of ProfilesData, the framing of the
 * Collector's file exporter. In a store's files a message ends with a field that OTLP does not know
 * and whose reader skips: bytes, the highest field number there is, of 16 bytes: version (1), state
 * (1: waits or is kept, 2: taken), two zeros, u64 samples, u32 CRC-32 (ISO-HDLC) of the length, the message
 * and this field with state and checksum 0; all big-endian.
 *
 * The state is one byte outside of the checksum, so that it changes by one write that cannot be torn.
 */
#ifndef STACKTAP_EXPORT_RECORD_H
#define STACKTAP_EXPORT_RECORD_H

#include "base/macro.h"

enum {
	RECORD_MESSAGE_MAX = 64 << 20,	/* bytes of a message, that field included: OTLP's limit */
	RECORD_LENGTH = 4,
	RECORD_SEAL = 22,		/* bytes of that field */
	RECORD_STATE = 7,		/* offset of the state in them */
	RECORD_WAITS = 1,
	RECORD_TAKEN = 2,		/* not 0, as what was torn may be full of zeros */
};

/* A message as the seal describes it; one without a seal waits and has 0 samples. */
struct record {
	size_t size;		/* without the seal */
	uint64_t samples;
	bool is_sealed, is_taken;
};

/*
 * Append a message at *size, which grows by what was written; @seal: RECORD_SEAL bytes of
 * record_seal(), or NULL. What does not go out whole is taken back.
 */
int record_write(int fd, uint64_t *size, const uint8_t *data, size_t data_size,
		 const uint8_t *seal);
void record_seal(const uint8_t *data, size_t size, uint64_t samples, uint8_t ret_seal[RECORD_SEAL]);
/*
 * The message at @offset of a file of @end bytes, unchecked: its size with the seal. -ENODATA: it is cut off or no
 * message.
 */
int record_read_head(int fd, uint64_t offset, uint64_t end, size_t *ret_size,
		     struct record *ret_record);
/* What the last RECORD_SEAL bytes of a message of @size say, unchecked. */
struct record record_peek(const uint8_t last[RECORD_SEAL], size_t size);
/* -EBADMSG: the checksum of a sealed message is wrong. */
int record_check(const uint8_t *data, size_t size, struct record *ret_record);
/*
 * Is this a whole message that never had a seal: fields 1 and 2 alone, up to its end? What is left of a
 * seal that was torn is neither.
 */
bool record_is_bare(const uint8_t *data, size_t size);

#endif /* STACKTAP_EXPORT_RECORD_H */
