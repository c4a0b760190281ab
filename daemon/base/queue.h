/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded queue between threads. Items are intrusive, so that pushing allocates nothing; each
 * is charged with the bytes its owner says. Items of a lane leave before all of the lanes behind it,
 * and within a lane in order.
 *
 * The bound: a push waits while the queue holds something and the item would pass max_bytes or the
 * pool's limit. An empty queue takes what the pool has room for, even if it is too large for the
 * bound, and always what is QUEUE_SMALL_BYTES at most.
 */
#ifndef STACKTAP_BASE_QUEUE_H
#define STACKTAP_BASE_QUEUE_H

#include "base/macro.h"
#include "base/pool.h"

struct queue;

struct queue_item {
	struct queue_item *next;
	size_t bytes;
};

enum queue_lane {
	QUEUE_URGENT,	/* soon too late, and cheap */
	QUEUE_SOON,	/* soon too late, but may take a while */
	QUEUE_NORMAL,
	QUEUE_LANES
};

enum { QUEUE_SMALL_BYTES = 4096 };

int queue_new(enum pool_id pool, size_t max_bytes, struct queue **ret_queue);
/* Hands what is left to @drop. No thread may use the queue any more. */
void queue_free(struct queue *queue, void (*drop)(struct queue_item *item));

/*
 * 0, -EAGAIN when it stayed full for @timeout_ms (-1: wait for ever, for
 * small items only), -EPIPE when closed.
 */
int queue_push(struct queue *queue, struct queue_item *item, size_t bytes, enum queue_lane lane,
	       int timeout_ms) _must_check_;
/* The same whatever is in it, and never waits: for items whose number something else bounds. 0, -EPIPE when closed. */
int queue_put(struct queue *queue, struct queue_item *item, size_t bytes, enum queue_lane lane) _must_check_;
/*
 * As queue_push() without waiting, for one of several at once: who waits for items is woken up by queue_rouse(), or once
 * QUEUE_SMALL_BYTES are in it, so that many small ones cost one wakeup. For a queue that one thread takes from.
 */
int queue_add(struct queue *queue, struct queue_item *item, size_t bytes, enum queue_lane lane) _must_check_;
void queue_rouse(struct queue *queue);
/* 1 and an item, 0 when none came in @timeout_ms, -EPIPE when closed and empty. */
int queue_pop(struct queue *queue, int timeout_ms, struct queue_item **ret_item);

/*
 * The same without waiting, and an item for which @is_held is true holds its lane back: what is behind it stays, what is
 * in lanes behind that leaves. NULL: there is none.
 */
typedef bool (*queue_held_fn)(struct queue_item *item);
struct queue_item *queue_pop_unheld(struct queue *queue, queue_held_fn is_held);

/* No more pushes; pop gives what is left. */
void queue_close(struct queue *queue);
size_t queue_bytes(struct queue *queue);

#endif /* STACKTAP_BASE_QUEUE_H */
