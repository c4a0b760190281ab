/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both sides of a ring in one process: the module's side is what it compiles, too, from
 * include/stacktap/ring.h, the reader is the daemon's own. The data is mapped twice in a row like
 * the kernel's, between pages that nobody can touch.
 */
#ifndef STACKTAP_TESTS_RING_PAIR_H
#define STACKTAP_TESTS_RING_PAIR_H

#include "capture/ring.h"

struct ring_pair {
	struct ring ring;		/* the reader's */
	struct stacktap_consumer_page consumer;
	struct stacktap_producer_page producer;
	uint8_t *area, *data;
	size_t area_bytes;
	uint64_t head;			/* the writer's */
	/* the writer's, with relaxed atomics, as the reader may look while it writes */
	uint64_t written, refused, bad_tails;
};

/* Both begin at @position, a multiple of 8. */
void ring_pair_init(struct ring_pair *pair, uint64_t data_bytes, uint64_t position);
void ring_pair_done(struct ring_pair *pair);

/*
 * A record with @body_bytes that are made from @number, and after them zeros up to a multiple of 8;
 * false when the ring has no room, or what stands for its tail is impossible.
 */
bool ring_pair_write(struct ring_pair *pair, uint64_t number, uint32_t body_bytes);
/* Is @record the one of @number, every byte of it? */
bool ring_pair_is(const struct stacktap_record *record, uint64_t number, uint32_t body_bytes);

/* A sequence that is the same in every run. */
static inline uint64_t ring_pair_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15;
	uint64_t mixed = (*state ^ *state >> 30) * 0xbf58476d1ce4e5b9;

	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
	return mixed ^ mixed >> 31;
}

#endif /* STACKTAP_TESTS_RING_PAIR_H */
