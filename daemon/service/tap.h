/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of the payloads that leave the pipeline, while somebody wants them. Their way to the receiver or the
 * store stays what it is: thread C copies them before, and never waits for who reads them. A copy that finds no
 * room is left out, and its tap knows.
 */
#ifndef STACKTAP_SERVICE_TAP_H
#define STACKTAP_SERVICE_TAP_H

#include <pthread.h>

#include "base/buffer.h"

enum { TAPS_MAX = 4 };

struct tap {
	bool is_taken;		/* by somebody, until tap_close() */
	bool is_open;		/* what comes is copied */
	bool is_full;		/* something did not fit */
	struct buffer bytes;	/* a size_t before each payload; charged to POOL_REPORT */
};

struct taps {
	pthread_mutex_t lock;
	struct tap taps[TAPS_MAX];
};

/* Thread C's. */
void taps_put(struct taps *taps, const uint8_t *data, size_t size);

/* From any thread. NULL: there are TAPS_MAX. */
struct tap *tap_open(struct taps *taps);
/* Nothing comes any more, so that its bytes can be read. */
void tap_stop(struct taps *taps, struct tap *tap);
/* The payload at *@offset, which is brought to the next one; false: there is none. */
bool tap_next(const struct tap *tap, size_t *offset, const uint8_t **ret_data, size_t *ret_size);
/* Stopped or not. */
void tap_close(struct taps *taps, struct tap *tap);

#endif /* STACKTAP_SERVICE_TAP_H */
