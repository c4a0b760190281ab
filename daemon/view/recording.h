/* SPDX-License-Identifier: Apache-2.0 */
/* A file of OTLP profiles, or standard input, from its first message to its last. */
#ifndef STACKTAP_VIEW_RECORDING_H
#define STACKTAP_VIEW_RECORDING_H

#include "view/reader.h"

/*
 * Every message into @reader, whose selection is @selection (NULL: all). "-" is standard input. -errno of open,
 * read and reader_add(), -ENODATA: no profiles; *ret_error gets a sentence and may be NULL.
 * *ret_is_cut: the last message is cut off and left out.
 */
int recording_read(const char *path, const struct selection *selection, struct reader *reader,
		   bool *ret_is_cut, char *ret_error, size_t error_size);
/* How a path is called in a sentence. */
const char *recording_name(const char *path);

#endif /* STACKTAP_VIEW_RECORDING_H */
