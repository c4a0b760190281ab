/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256: names of what is kept by its content, the semantic conventions' htlhash, policies of pages. */
#ifndef STACKTAP_BASE_SHA256_H
#define STACKTAP_BASE_SHA256_H

#include "base/macro.h"

enum { SHA256_BYTES = 32, SHA256_PARTS_MAX = 8 };

struct sha256_part {
	const void *bytes;
	size_t size;
};

struct sha256 {
	struct gcry_md_handle *state;
};

/*
 * The library looks at the processor and for files of settings when it is used first. A process that is going to be
 * confined does that before.
 */
void sha256_prepare(void);

/* Of all @parts as if they were one. */
void sha256_of(const struct sha256_part *parts, size_t count, uint8_t ret_digest[static SHA256_BYTES]);

/* Piece by piece. */
int sha256_init(struct sha256 *sha);		/* -ENOMEM */
void sha256_add(struct sha256 *sha, const void *bytes, size_t size);
void sha256_get(struct sha256 *sha, uint8_t ret_digest[static SHA256_BYTES]);
void sha256_done(struct sha256 *sha);

#endif /* STACKTAP_BASE_SHA256_H */
