/* SPDX-License-Identifier: Apache-2.0 */
/* How request bodies are compressed. */
#ifndef STACKTAP_EXPORT_COMPRESSION_H
#define STACKTAP_EXPORT_COMPRESSION_H

enum compression {
	COMPRESSION_NONE,
	COMPRESSION_GZIP,
	COMPRESSION_ZSTD,
	COMPRESSION_COUNT
};

#endif /* STACKTAP_EXPORT_COMPRESSION_H */
