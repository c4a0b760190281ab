/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stacktapd and the process that shows a recording say to each other, over a stream: the recording's name, the
 * path, and name and value of each part of the query, each with its NUL, to the end; then a viewer_head and the body.
 */
#ifndef STACKTAP_SERVICE_VIEWER_WIRE_H
#define STACKTAP_SERVICE_VIEWER_WIRE_H

#include "base/macro.h"

/* The process' argv[0]; where it is defined the program can be one. */
extern const char viewer_name[];

enum {
	VIEWER_SOCKET = 3,
	VIEWER_INPUT = 4,
	VIEWER_QUESTION_MAX = 32 << 10,
	VIEWER_WORD_MAX = 128,
};

struct viewer_head {
	uint64_t size;		/* of the body */
	uint32_t status;
	char type[VIEWER_WORD_MAX], policy[VIEWER_WORD_MAX], name[VIEWER_WORD_MAX];	/* "": none */
};

#endif /* STACKTAP_SERVICE_VIEWER_WIRE_H */
