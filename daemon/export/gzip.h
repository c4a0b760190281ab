/* SPDX-License-Identifier: Apache-2.0 */
/* Compression of request bodies. */
#ifndef STACKTAP_EXPORT_GZIP_H
#define STACKTAP_EXPORT_GZIP_H

#include "base/buffer.h"

/* Append @data as a gzip stream to @buffer. -ENOBUFS: the buffer's pool is used up. */
int gzip_compress(struct buffer *buffer, const uint8_t *data, size_t size);

#endif /* STACKTAP_EXPORT_GZIP_H */
