// SPDX-License-Identifier: Apache-2.0
#include "web/turns.h"

#include <pthread.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/work.h"

struct turn {
	int fd;			/* -1: free */
	uint64_t end;		/* CLOCK_MONOTONIC ns; UINT64_MAX: it has none */
	uint64_t waits;		/* since when a request is waited for; UINT64_MAX: it has come */
	bool is_over;		/* its connection is about to be closed */
};

struct turns {
	pthread_t thread;
	pthread_mutex_t lock;	/* what follows; a socket that is closed has left before */
	pthread_cond_t changed;
	bool stop;
	uint64_t turn_ns, patience_ns;
	_Atomic uint64_t *expired;
	unsigned int count, spare;
	struct turn turns[];
};

/* Wakes who waits for the client. */
static void shut_down(struct turns *turns, struct turn *turn)
{
	/* counted before the client can see it */
	atomic_fetch_add(turns->expired, 1);
	shutdown(turn->fd, SHUT_RDWR);
	turn->end = turn->waits = UINT64_MAX;
	turn->is_over = true;
}

/* NULL: enough are left for others, or will be in a moment, or all have asked. */
static struct turn *longest_idle(struct turns *turns)
{
	struct turn *longest = NULL;
	unsigned int left = 0;

	for (unsigned int i = 0; i < turns->count; i++) {
		struct turn *turn = &turns->turns[i];

		if (turn->fd < 0 || turn->is_over)
			left++;
		else if (turn->waits != UINT64_MAX && (!longest || turn->waits < longest->waits))
			longest = turn;
	}
	return left < turns->spare ? longest : NULL;
}

/* Shut down what has had its time; when the next one has. */
static uint64_t expire(struct turns *turns, uint64_t now)
{
	uint64_t next = UINT64_MAX;
	struct turn *idle;

	for (unsigned int i = 0; i < turns->count; i++) {
		struct turn *turn = &turns->turns[i];

		if (turn->fd >= 0 && turn->end <= now)
			shut_down(turns, turn);
		if (turn->fd >= 0)
			next = min_of(next, turn->end);
	}
	while ((idle = longest_idle(turns)) && now - idle->waits >= turns->patience_ns)
		shut_down(turns, idle);
	if (idle)
		next = min_of(next, idle->waits + turns->patience_ns);
	return next;
}

static void *watch(void *ctx)
{
	struct turns *turns = ctx;
	struct timespec until;
	struct work work;
	uint64_t next;

	work_enter(&work, "turns");
	pthread_mutex_lock(&turns->lock);
	while (!turns->stop) {
		work_begin();
		next = expire(turns, clock_monotonic());
		work_end();
		if (next == UINT64_MAX) {
			pthread_cond_wait(&turns->changed, &turns->lock);
			continue;
		}
		until = (struct timespec){ .tv_sec = (time_t)(next / NSEC_PER_SEC),
					   .tv_nsec = (long)(next % NSEC_PER_SEC) };
		pthread_cond_timedwait(&turns->changed, &turns->lock, &until);
	}
	pthread_mutex_unlock(&turns->lock);
	work_leave();
	return NULL;
}

struct turns *turns_new(unsigned int connections, unsigned int spare, unsigned int turn_ms, unsigned int patience_ms,
			_Atomic uint64_t *expired)
{
	struct turns *turns = calloc(1, sizeof(*turns) + connections * sizeof(turns->turns[0]));
	pthread_condattr_t attributes;

	if (!turns)
		return NULL;
	turns->count = connections;
	turns->spare = spare;
	turns->turn_ns = turn_ms * NSEC_PER_MSEC;
	turns->patience_ns = patience_ms * NSEC_PER_MSEC;
	turns->expired = expired;
	for (unsigned int i = 0; i < connections; i++)
		turns->turns[i].fd = -1;
	pthread_mutex_init(&turns->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&turns->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	if (!pthread_create(&turns->thread, NULL, watch, turns)) {
		pthread_setname_np(turns->thread, "stacktap-turns");
		return turns;
	}
	pthread_cond_destroy(&turns->changed);
	pthread_mutex_destroy(&turns->lock);
	free(turns);
	return NULL;
}

void turns_free(struct turns *turns)
{
	if (!turns)
		return;
	pthread_mutex_lock(&turns->lock);
	turns->stop = true;
	pthread_cond_signal(&turns->changed);
	pthread_mutex_unlock(&turns->lock);
	pthread_join(turns->thread, NULL);
	pthread_cond_destroy(&turns->changed);
	pthread_mutex_destroy(&turns->lock);
	free(turns);
}

/* Its turn, or a free one; NULL: there are more connections than the listener lets in. */
static struct turn *find(struct turns *turns, int fd)
{
	struct turn *unused = NULL;

	for (unsigned int i = 0; i < turns->count; i++) {
		if (turns->turns[i].fd == fd)
			return &turns->turns[i];
		if (turns->turns[i].fd < 0)
			unused = &turns->turns[i];
	}
	return unused;
}

static void set(struct turns *turns, int fd, struct turn new)
{
	struct turn *turn;

	pthread_mutex_lock(&turns->lock);
	turn = find(turns, fd);
	if (turn) {
		*turn = new;
		pthread_cond_signal(&turns->changed);
	}
	pthread_mutex_unlock(&turns->lock);
}

void turns_ask(struct turns *turns, int fd)
{
	const uint64_t now = clock_monotonic();

	set(turns, fd, (struct turn){ .fd = fd, .end = now + turns->turn_ns, .waits = now });
}

void turns_read(struct turns *turns, int fd)
{
	set(turns, fd, (struct turn){ .fd = fd, .end = clock_monotonic() + turns->turn_ns, .waits = UINT64_MAX });
}

void turns_pause(struct turns *turns, int fd)
{
	set(turns, fd, (struct turn){ .fd = fd, .end = UINT64_MAX, .waits = UINT64_MAX });
}

void turns_end(struct turns *turns, int fd)
{
	set(turns, fd, (struct turn){ .fd = -1, .end = UINT64_MAX, .waits = UINT64_MAX });
}
