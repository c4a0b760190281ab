/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts of one file of the journal, in turn, to windows as they were: for the encoder. What is read was
 * written by a daemon that was killed: nothing of it is trusted, and its memory is the pools'.
 */
#ifndef STACKTAP_EXPORT_CUT_READER_H
#define STACKTAP_EXPORT_CUT_READER_H

#include "export/encode_options.h"
#include "profile/window.h"

struct cut_reader;

int cut_reader_new(struct cut_reader **ret_reader);
void cut_reader_free(struct cut_reader *reader);	/* NULL is fine */
/* The number of a cut's window. -EBADMSG */
int cut_number(const uint8_t *data, size_t size, uint64_t *ret_window);
/*
 * Add a cut: to the window that it is of, in place of the one before, when that has another number. -EBADMSG: it is
 * malformed, and nothing after it can be read. -ENOBUFS, -ENOMEM, -E2BIG
 */
int cut_reader_add(struct cut_reader *reader, const uint8_t *data, size_t size);
/* The window so far; valid until the next cut. NULL: it has no samples. */
const struct window *cut_reader_window(const struct cut_reader *reader);
/* What to encode it by. */
const struct encode_options *cut_reader_options(const struct cut_reader *reader);

#endif /* STACKTAP_EXPORT_CUT_READER_H */
