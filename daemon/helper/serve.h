/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper's end: what a process does that was started under a helper's name. Its constructor never
 * returns then, so main() is not run; each program that has helpers can be one.
 */
#ifndef STACKTAP_HELPER_SERVE_H
#define STACKTAP_HELPER_SERVE_H

#include "helper/protocol.h"

/* Sanitizers need more system calls and address space than a helper is left with. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SERVE_CAN_CONFINE 0
#else
#define SERVE_CAN_CONFINE 1
#endif

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

/* "stacktap-parser": the process' argv[0] and name. */
const char *serve_name(enum helper_kind kind);

#endif /* STACKTAP_HELPER_SERVE_H */
