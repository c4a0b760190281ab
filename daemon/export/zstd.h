/* SPDX-License-Identifier: Apache-2.0 */
/* Compression of request bodies for receivers that take zstd: smaller than gzip, and in less time. */
#ifndef STACKTAP_EXPORT_ZSTD_H
#define STACKTAP_EXPORT_ZSTD_H

#include "base/buffer.h"

/* Append @data as a zstd frame to @buffer. -ENOBUFS: the buffer's pool is used up. */
int zstd_compress(struct buffer *buffer, const uint8_t *data, size_t size);
/* Append what a frame holds. -EBADMSG: it is none, or more than @max_bytes. -ENOBUFS, -ENOMEM */
int zstd_decompress(struct buffer *buffer, const uint8_t *data, size_t size, size_t max_bytes);

#endif /* STACKTAP_EXPORT_ZSTD_H */
