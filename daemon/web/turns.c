// SPDX-License-Identifier: Apache-2.0
#include "web/turns.h"

#include <pthread.h>
#include <sys/socket.h>

#include "base/clock.h"

struct turn {
	int fd;			/* -1: free */
	uint64_t end;		/* CLOCK_MONOTONIC ns; UINT64_MAX: it has none */
};

struct turns {
	pthread_t thread;
	pthread_mutex_t lock;	/* what follows; a socket that is closed has left before */
	pthread_cond_t changed;
	bool stop;
	uint64_t turn_ns;
	_Atomic uint64_t *expired;
	unsigned int count;
	struct turn turns[];
};

/* Shut down what has had its time, which wakes who waits for it; when the next one has. */
static uint64_t expire(struct turns *turns, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned int i = 0; i < turns->count; i++) {
		struct turn *turn = &turns->turns[i];

		if (turn->fd >= 0 && turn->end <= now) {
			/* counted before the client can see it */
			atomic_fetch_add(turns->expired, 1);
			shutdown(turn->fd, SHUT_RDWR);
			turn->end = UINT64_MAX;
		}
		if (turn->fd >= 0)
			next = min_of(next, turn->end);
	}
	return next;
}

static void *watch(void *ctx)
{
	struct turns *turns = ctx;
	struct timespec until;
	uint64_t next;

	pthread_mutex_lock(&turns->lock);
	while (!turns->stop) {
		next = expire(turns, clock_monotonic());
		if (next == UINT64_MAX) {
			pthread_cond_wait(&turns->changed, &turns->lock);
			continue;
		}
		until = (struct timespec){ .tv_sec = (time_t)(next / NSEC_PER_SEC),
					   .tv_nsec = (long)(next % NSEC_PER_SEC) };
		pthread_cond_timedwait(&turns->changed, &turns->lock, &until);
	}
	pthread_mutex_unlock(&turns->lock);
	return NULL;
}

struct turns *turns_new(unsigned int connections, unsigned int turn_ms, _Atomic uint64_t *expired)
{
	struct turns *turns = calloc(1, sizeof(*turns) + connections * sizeof(turns->turns[0]));
	pthread_condattr_t attributes;

	if (!turns)
		return NULL;
	turns->count = connections;
	turns->turn_ns = turn_ms * NSEC_PER_MSEC;
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

static void set(struct turns *turns, int fd, int new_fd, uint64_t end)
{
	struct turn *turn;

	pthread_mutex_lock(&turns->lock);
	turn = find(turns, fd);
	if (turn) {
		turn->fd = new_fd;
		turn->end = end;
		pthread_cond_signal(&turns->changed);
	}
	pthread_mutex_unlock(&turns->lock);
}

void turns_begin(struct turns *turns, int fd)
{
	set(turns, fd, fd, clock_monotonic() + turns->turn_ns);
}

void turns_pause(struct turns *turns, int fd)
{
	set(turns, fd, fd, UINT64_MAX);
}

void turns_end(struct turns *turns, int fd)
{
	set(turns, fd, -1, UINT64_MAX);
}
