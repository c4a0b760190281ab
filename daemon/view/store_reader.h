/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of a file of OTLP profiles, as export/store.h keeps and `record -o` writes them. */
#ifndef STACKTAP_VIEW_STORE_READER_H
#define STACKTAP_VIEW_STORE_READER_H

#include "base/macro.h"

/*
 * Read messages of a file: 1 and a message, 0 at the end, -EBADMSG for a damaged or foreign file,
 * -ENODATA for a message cut off at the end, or, once at the end, for messages before whose checksum was wrong.
 * *ret_data is valid until the next call. A file that is one bare message,
 * without the length, is read as well.
 */
struct store_reader;
int store_reader_open(int fd, struct store_reader **ret_reader);	/* @fd stays its owner's */
/* Where all that is read is written as well; at the first error, or beyond its limit, it is closed. */
struct store_copy {
	FILE *file;		/* NULL: closed, or none */
	uint64_t size, limit;
	int err;		/* -errno */
};
void store_reader_keep(struct store_reader *reader, struct store_copy *copy);	/* NULL: nowhere */
int store_reader_next(struct store_reader *reader, const uint8_t **ret_data, size_t *ret_size);
void store_reader_close(struct store_reader *reader);

#endif /* STACKTAP_VIEW_STORE_READER_H */
