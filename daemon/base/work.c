// SPDX-License-Identifier: Apache-2.0
#include "base/work.h"

#include <pthread.h>

#include "base/clock.h"

#define WORK_NS (WORK_SECONDS * NSEC_PER_SEC)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* of the list; nobody works while holding it */
static struct work *first;
static _Thread_local struct work *own;

void work_enter(struct work *work, const char *name)
{
	work->name = name;
	atomic_store_explicit(&work->since, 0, memory_order_relaxed);
	pthread_mutex_lock(&lock);
	work->next = first;
	first = work;
	pthread_mutex_unlock(&lock);
	own = work;
}

void work_leave(void)
{
	struct work **at = &first;

	work_end();
	pthread_mutex_lock(&lock);
	while (*at && *at != own)
		at = &(*at)->next;
	if (*at)
		*at = own->next;
	pthread_mutex_unlock(&lock);
	own = NULL;
}

void work_begin(void)
{
	const uint64_t now = clock_monotonic();

	if (!own)
		return;
	/* who sees the new time sees when that is due */
	atomic_store_explicit(&own->due, now + WORK_NS, memory_order_relaxed);
	atomic_store_explicit(&own->since, now, memory_order_release);
}

void work_end(void)
{
	if (own)
		atomic_store_explicit(&own->since, 0, memory_order_relaxed);
}

void work_wait(uint64_t ns)
{
	if (own)
		atomic_store_explicit(&own->due, clock_monotonic() + ns + WORK_NS, memory_order_relaxed);
}

uint64_t work_taken(const struct work *work, uint64_t now)
{
	const uint64_t since = atomic_load_explicit(&work->since, memory_order_relaxed);

	/* it may have begun after @now */
	return since && since < now ? now - since : 0;
}

const char *work_hung(uint64_t now, uint64_t *ret_ns)
{
	const char *name = NULL;

	pthread_mutex_lock(&lock);
	for (struct work *work = first; work && !name; work = work->next)
		if (atomic_load_explicit(&work->since, memory_order_acquire) &&
		    now >= atomic_load_explicit(&work->due, memory_order_relaxed)) {
			name = work->name;
			if (ret_ns)
				*ret_ns = work_taken(work, now);
		}
	pthread_mutex_unlock(&lock);
	return name;
}
