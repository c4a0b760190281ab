// SPDX-License-Identifier: Apache-2.0
#include "resolve/absent.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/work.h"
#include "helper/opener.h"

#define AGAIN_NS (100 * NSEC_PER_MSEC)	/* until the same page may be asked for again */

enum {
	WAITING_MAX = 64,
	RECENT = 64,
	PER_SECOND = 200,
	PAGES_ABOVE = 64,		/* callers' frames are above, and likely as absent; OPEN_PAGES_MAX at most */
};

struct page {
	uint32_t tgid;
	uint64_t address;
	uint64_t time;			/* when it was asked for last */
};

struct absent {
	pthread_mutex_t lock;
	pthread_cond_t wakeup;
	pthread_t thread;
	struct opener *opener;		/* the thread's; NULL: not needed so far */
	int cancel_fd;			/* who is asked, or about to start, is not waited for any more */
	struct page waiting[WAITING_MAX], recent[RECENT];
	unsigned int first, count;
	uint64_t second;		/* that @taken is counted in */
	unsigned int taken;
	bool is_stopping;		/* @lock holds for all of it */
	struct absent_stats stats;
};

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/*
 * How many pages came: the first of them, and what lies above up to the first that does not. Such a page may be another's
 * file on a server that does not answer, and who waits for it cannot be killed: so that is the opener.
 */
static unsigned int read_pages(struct absent *absent, const struct page *page)
{
	int r = 0;

	if (!absent->opener) {
		r = opener_new(&absent->opener);
		if (!r)
			opener_set_cancel(absent->opener, absent->cancel_fd);
	}
	if (!r)
		r = opener_touch(absent->opener, page->tgid, page->address, PAGES_ABOVE);
	return r < 0 ? 0 : (unsigned int)r;
}

static void destroy(struct absent *absent)
{
	opener_free(absent->opener);
	if (absent->cancel_fd >= 0)
		close(absent->cancel_fd);
	pthread_cond_destroy(&absent->wakeup);
	pthread_mutex_destroy(&absent->lock);
	free(absent);
}

static void *read_thread(void *ctx)
{
	struct absent *absent = ctx;
	struct page page;
	struct work work;
	unsigned int count;

	work_enter(&work, "pages");
	pthread_mutex_lock(&absent->lock);
	for (;;) {
		while (!absent->count && !absent->is_stopping)
			pthread_cond_wait(&absent->wakeup, &absent->lock);
		if (absent->is_stopping)
			break;
		page = absent->waiting[absent->first];
		absent->first = (absent->first + 1) % WAITING_MAX;
		absent->count--;
		pthread_mutex_unlock(&absent->lock);
		work_begin();
		count = read_pages(absent, &page);
		pthread_mutex_lock(&absent->lock);
		absent->stats.pages += count;
		absent->stats.failed += !count;
		work_end();
	}
	pthread_mutex_unlock(&absent->lock);
	work_leave();
	return NULL;
}

int absent_new(struct absent **ret_absent)
{
	struct absent *absent = calloc(1, sizeof(*absent));
	int r;

	if (!absent)
		return -ENOMEM;
	pthread_mutex_init(&absent->lock, NULL);
	pthread_cond_init(&absent->wakeup, NULL);
	absent->cancel_fd = eventfd(0, EFD_CLOEXEC);
	r = absent->cancel_fd < 0 ? -errno : -pthread_create(&absent->thread, NULL, read_thread, absent);
	if (r) {
		destroy(absent);
		return r;
	}
	pthread_setname_np(absent->thread, "stacktap-pages");
	*ret_absent = absent;
	return 0;
}

void absent_free(struct absent *absent)
{
	const uint64_t one = 1;

	if (!absent)
		return;
	pthread_mutex_lock(&absent->lock);
	absent->is_stopping = true;
	pthread_cond_signal(&absent->wakeup);
	pthread_mutex_unlock(&absent->lock);
	/* a question to the opener has a deadline, one that is only starting a long one */
	if (write(absent->cancel_fd, &one, sizeof(one)) < 0)
		errno = 0;
	pthread_join(absent->thread, NULL);
	destroy(absent);
}

/* Was it asked for just before? Notes that it is now. */
static bool is_recent(struct absent *absent, const struct page *page)
{
	struct page *known = &absent->recent[(page->address / page_bytes() + page->tgid) % RECENT];
	bool is_recent = known->tgid == page->tgid && known->address == page->address &&
			 page->time - known->time < AGAIN_NS;

	if (!is_recent)
		*known = *page;
	return is_recent;
}

static bool is_over_rate(struct absent *absent, uint64_t now)
{
	if (absent->second != now / NSEC_PER_SEC) {
		absent->second = now / NSEC_PER_SEC;
		absent->taken = 0;
	}
	return absent->taken++ >= PER_SECOND;
}

void absent_want(struct absent *absent, uint32_t tgid, uint64_t address)
{
	uint64_t now = clock_monotonic();
	struct page page = {
		.tgid = tgid, .address = address & ~(page_bytes() - 1), .time = now,
	};

	pthread_mutex_lock(&absent->lock);
	absent->stats.wanted++;
	if (absent->count == WAITING_MAX || address > INT64_MAX || is_recent(absent, &page) ||
	    is_over_rate(absent, now)) {
		absent->stats.refused++;
	} else {
		absent->waiting[(absent->first + absent->count++) % WAITING_MAX] = page;
		pthread_cond_signal(&absent->wakeup);
	}
	pthread_mutex_unlock(&absent->lock);
}

void absent_stats(struct absent *absent, struct absent_stats *ret_stats)
{
	pthread_mutex_lock(&absent->lock);
	*ret_stats = absent->stats;
	pthread_mutex_unlock(&absent->lock);
}
