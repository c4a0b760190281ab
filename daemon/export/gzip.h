/* SPDX-License-Identifier: Apache-2.0 */
/* Compression of request bodies, and of what answers them. */
#ifndef STACKTAP_EXPORT_GZIP_H
#define STACKTAP_EXPORT_GZIP_H

#include "base/buffer.h"

/* Append @data as a gzip stream to @buffer. -ENOBUFS: the buffer's pool is used up. */
int gzip_compress(struct buffer *buffer, const uint8_t *data, size_t size);
/* Append what a gzip stream holds. -EBADMSG: it is none, or more than @max_bytes. -ENOBUFS, -ENOMEM */
int gzip_decompress(struct buffer *buffer, const uint8_t *data, size_t size, size_t max_bytes);

#endif /* STACKTAP_EXPORT_GZIP_H */
