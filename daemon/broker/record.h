/* SPDX-License-Identifier: Apache-2.0 */
/* A session of its own that somebody asks the daemon for: what of `stacktap record' is theirs to say. */
#ifndef STACKTAP_BROKER_RECORD_H
#define STACKTAP_BROKER_RECORD_H

#include <stdint.h>

enum { RECORD_NUMBER_MAX = 16, RECORD_EVENT_MAX = 512 };

/* Strings; empty: not asked for. */
struct record_request {
	uint32_t seconds;
	char pid[RECORD_NUMBER_MAX], rate[RECORD_NUMBER_MAX], period[RECORD_NUMBER_MAX];
	char event[RECORD_EVENT_MAX];
};

#endif /* STACKTAP_BROKER_RECORD_H */
