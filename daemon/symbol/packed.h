/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are compressed as a whole: distributions install kernel modules as .ko.gz, .ko.xz or .ko.zst. What it is says
 * how the file begins, not its name.
 *
 * The file is hostile: it unpacks to a few bytes as well as to terabytes. What is written ends at PACKED_BYTES_MAX, what
 * the decoder may take for itself at PACKED_DECODER_LOG, and the deadline is looked at every few bytes.
 */
#ifndef STACKTAP_SYMBOL_PACKED_H
#define STACKTAP_SYMBOL_PACKED_H

#include <stddef.h>
#include <stdint.h>

enum {
	PACKED_BYTES_MAX = 128 << 20,
	PACKED_DECODER_LOG = 26,	/* 64 MiB, which xz -9 needs for its dictionary */
};

/*
 * Writes to @to what @fd of @size bytes unpacks to. -ENODATA: it is not compressed, in a way that is known. -EFBIG: it, or
 * its decoder, is larger than that; -EBADMSG: it is damaged, or ends too early; -ENOMEM, -ETIME, -errno of reading and writing
 */
int packed_unpack(int fd, uint64_t size, uint64_t deadline, int to, uint64_t *ret_size);

#endif /* STACKTAP_SYMBOL_PACKED_H */
