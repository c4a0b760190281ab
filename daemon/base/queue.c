// SPDX-License-Identifier: Apache-2.0
#include "base/queue.h"

#include <pthread.h>

#include "base/clock.h"

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t pushed, popped;
	struct queue_item *head[QUEUE_LANES], **tail[QUEUE_LANES];
	size_t bytes, count, max_bytes;
	unsigned int pushers, poppers;		/* that wait */
	enum pool_id pool;
	bool closed;
};

int queue_new(enum pool_id pool, size_t max_bytes, struct queue **ret_queue)
{
	pthread_condattr_t attr;
	struct queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return -ENOMEM;
	pthread_mutex_init(&queue->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&queue->pushed, &attr);
	pthread_cond_init(&queue->popped, &attr);
	pthread_condattr_destroy(&attr);
	for (int i = 0; i < QUEUE_LANES; i++)
		queue->tail[i] = &queue->head[i];
	queue->pool = pool;
	queue->max_bytes = max_bytes;
	*ret_queue = queue;
	return 0;
}

/* @is_held may be NULL. */
static struct queue_item *queue_take(struct queue *queue, queue_held_fn is_held)
{
	for (int i = 0; i < QUEUE_LANES; i++) {
		struct queue_item *item = queue->head[i];

		if (!item || (is_held && is_held(item)))
			continue;
		queue->head[i] = item->next;
		if (!item->next)
			queue->tail[i] = &queue->head[i];
		item->next = NULL;
		queue->count--;
		queue->bytes -= item->bytes;
		pool_uncharge(queue->pool, item->bytes);
		return item;
	}
	return NULL;
}

void queue_free(struct queue *queue, void (*drop)(struct queue_item *item))
{
	struct queue_item *item;

	if (!queue)
		return;
	while ((item = queue_take(queue, NULL)))
		drop(item);
	pthread_cond_destroy(&queue->popped);
	pthread_cond_destroy(&queue->pushed);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

static bool queue_admit(struct queue *queue, size_t bytes)
{
	if (!queue->count) {
		/* so that what is small gets through at last, whatever others have waiting */
		if (bytes <= QUEUE_SMALL_BYTES) {
			pool_charge_always(queue->pool, bytes);
			return true;
		}
		return pool_charge(queue->pool, bytes);
	}
	return bytes <= queue->max_bytes && queue->bytes <= queue->max_bytes - bytes &&
	       pool_charge(queue->pool, bytes);
}

/* False when the deadline has passed. */
static bool queue_wait(struct queue *queue, pthread_cond_t *condition, unsigned int *waiting, int timeout_ms,
		       uint64_t deadline)
{
	struct timespec until = {
		.tv_sec = (time_t)(deadline / NSEC_PER_SEC),
		.tv_nsec = (long)(deadline % NSEC_PER_SEC),
	};
	int err = ETIMEDOUT;

	++*waiting;
	if (timeout_ms < 0)
		err = pthread_cond_wait(condition, &queue->lock);
	else if (timeout_ms > 0)
		err = pthread_cond_timedwait(condition, &queue->lock, &until);
	--*waiting;
	return !err;
}

static uint64_t queue_deadline(int timeout_ms)
{
	return timeout_ms > 0 ? clock_monotonic() + (uint64_t)timeout_ms * NSEC_PER_MSEC : 0;
}

/* True: a thread waits, which finds the lock free if it is woken up without it; who comes to wait later has seen the item. */
static bool queue_append(struct queue *queue, struct queue_item *item, size_t bytes, enum queue_lane lane)
{
	item->next = NULL;
	item->bytes = bytes;
	*queue->tail[lane] = item;
	queue->tail[lane] = &item->next;
	queue->count++;
	queue->bytes += bytes;
	return queue->poppers;
}

int queue_put(struct queue *queue, struct queue_item *item, size_t bytes, enum queue_lane lane)
{
	bool wakes = false;
	int r = -EPIPE;

	pthread_mutex_lock(&queue->lock);
	if (!queue->closed) {
		pool_charge_always(queue->pool, bytes);
		wakes = queue_append(queue, item, bytes, lane);
		r = 0;
	}
	pthread_mutex_unlock(&queue->lock);
	if (wakes)
		pthread_cond_signal(&queue->pushed);
	return r;
}

int queue_push(struct queue *queue, struct queue_item *item, size_t bytes, enum queue_lane lane,
	       int timeout_ms)
{
	uint64_t deadline = queue_deadline(timeout_ms);
	bool in_time = true, wakes = false;
	int r;

	pthread_mutex_lock(&queue->lock);
	for (;;) {
		if (queue->closed) {
			r = -EPIPE;
			break;
		}
		if (queue_admit(queue, bytes)) {
			wakes = queue_append(queue, item, bytes, lane);
			r = 0;
			break;
		}
		if (!in_time) {
			r = -EAGAIN;
			break;
		}
		in_time = queue_wait(queue, &queue->popped, &queue->pushers, timeout_ms, deadline);
	}
	pthread_mutex_unlock(&queue->lock);
	if (wakes)
		pthread_cond_signal(&queue->pushed);
	return r;
}

int queue_add(struct queue *queue, struct queue_item *item, size_t bytes, enum queue_lane lane)
{
	bool wakes = false;
	int r = -EAGAIN;

	pthread_mutex_lock(&queue->lock);
	if (queue->closed) {
		r = -EPIPE;
	} else if (queue_admit(queue, bytes)) {
		wakes = queue_append(queue, item, bytes, lane) && queue->bytes >= QUEUE_SMALL_BYTES;
		r = 0;
	}
	pthread_mutex_unlock(&queue->lock);
	if (wakes)
		pthread_cond_signal(&queue->pushed);
	return r;
}

void queue_rouse(struct queue *queue)
{
	bool wakes;

	pthread_mutex_lock(&queue->lock);
	wakes = queue->count && queue->poppers;
	pthread_mutex_unlock(&queue->lock);
	if (wakes)
		pthread_cond_signal(&queue->pushed);
}

int queue_pop(struct queue *queue, int timeout_ms, struct queue_item **ret_item)
{
	uint64_t deadline = queue_deadline(timeout_ms);
	bool in_time = true, wakes = false;
	int r;

	pthread_mutex_lock(&queue->lock);
	for (;;) {
		*ret_item = queue_take(queue, NULL);
		if (*ret_item) {
			wakes = queue->pushers;
			r = 1;
			break;
		}
		if (queue->closed) {
			r = -EPIPE;
			break;
		}
		if (!in_time) {
			r = 0;
			break;
		}
		in_time = queue_wait(queue, &queue->pushed, &queue->poppers, timeout_ms, deadline);
	}
	pthread_mutex_unlock(&queue->lock);
	if (wakes)
		pthread_cond_broadcast(&queue->popped);
	return r;
}

struct queue_item *queue_pop_unheld(struct queue *queue, queue_held_fn is_held)
{
	struct queue_item *item;
	bool wakes;

	pthread_mutex_lock(&queue->lock);
	item = queue_take(queue, is_held);
	wakes = item && queue->pushers;
	pthread_mutex_unlock(&queue->lock);
	if (wakes)
		pthread_cond_broadcast(&queue->popped);
	return item;
}

void queue_close(struct queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->closed = true;
	pthread_cond_broadcast(&queue->pushed);
	pthread_cond_broadcast(&queue->popped);
	pthread_mutex_unlock(&queue->lock);
}

size_t queue_bytes(struct queue *queue)
{
	size_t bytes;

	pthread_mutex_lock(&queue->lock);
	bytes = queue->bytes;
	pthread_mutex_unlock(&queue->lock);
	return bytes;
}
