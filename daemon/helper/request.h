/* SPDX-License-Identifier: Apache-2.0 */
/* What a helper was asked, and the answer that it makes of it. */
#ifndef STACKTAP_HELPER_REQUEST_H
#define STACKTAP_HELPER_REQUEST_H

#include "helper/protocol.h"

struct serve_request {
	uint32_t op, bytes;
	int fd;			/* closed by the caller unless taken (-1); -1: none came */
	const void *payload;
};

struct serve_answer {
	int result;
	size_t bytes;
	int fd;			/* closed by the caller; -1: none */
	uint8_t *payload;	/* HELPER_BYTES_MAX */
};

#endif /* STACKTAP_HELPER_REQUEST_H */
