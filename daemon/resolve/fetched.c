// SPDX-License-Identifier: Apache-2.0
#include "resolve/fetched.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/utf8.h"
#include "base/work.h"

#define RETRY_NS (60 * NSEC_PER_SEC)

enum { TRIES_MAX = 5 };		/* of what failed for a reason that may pass */

enum state { FREE, WANTED, ASKED, HERE, NONE };

struct item {
	char build_id[41];
	enum state state;
	unsigned int tries;
	uint64_t at;		/* CLOCK_MONOTONIC ns: not before */
};

struct fetched {
	pthread_mutex_t lock;	/* of all that both threads use */
	pthread_cond_t wanted;
	pthread_t thread;
	bool has_thread, is_ending;
	int cancel_fd;
	struct debuginfod *debuginfod;	/* the thread's */
	struct item items[FETCHED_MAX];
	struct fetched_stats stats;
	bool is_down;		/* the server, as was said; the thread's */
};

static struct item *find(struct fetched *fetched, const char *build_id)
{
	for (size_t i = 0; i < FETCHED_MAX; i++)
		if (fetched->items[i].state != FREE && !strcmp(fetched->items[i].build_id, build_id))
			return &fetched->items[i];
	return NULL;
}

/* A free one, else one of which nothing is to be done; NULL: all are waited for. */
static struct item *new_item(struct fetched *fetched, const char *build_id)
{
	struct item *found = NULL;

	for (size_t i = 0; i < FETCHED_MAX; i++) {
		struct item *item = &fetched->items[i];

		if (item->state == WANTED || item->state == ASKED)
			continue;
		if (item->state == FREE || !found || item->at < found->at)
			found = item;
		if (item->state == FREE)
			break;
	}
	if (!found)
		return NULL;
	*found = (struct item){ .state = NONE };
	snprintf(found->build_id, sizeof(found->build_id), "%s", build_id);
	return found;
}

/* The one that has been due for longest; NULL: none is, until *ret_at. */
static struct item *next_item(struct fetched *fetched, uint64_t now, uint64_t *ret_at)
{
	struct item *next = NULL;

	*ret_at = UINT64_MAX;
	for (size_t i = 0; i < FETCHED_MAX; i++) {
		struct item *item = &fetched->items[i];

		if (item->state == WANTED && (!next || item->at < next->at))
			next = item;
	}
	if (!next || next->at <= now)
		return next;
	*ret_at = next->at;
	return NULL;
}

static void wait_for_more(struct fetched *fetched, uint64_t at)
{
	const struct timespec until = {
		.tv_sec = (time_t)(at / NSEC_PER_SEC), .tv_nsec = (long)(at % NSEC_PER_SEC),
	};

	if (at == UINT64_MAX)
		pthread_cond_wait(&fetched->wanted, &fetched->lock);
	else
		pthread_cond_timedwait(&fetched->wanted, &fetched->lock, &until);
}

static void say_change(struct fetched *fetched, int error, const char *note)
{
	const bool is_down = error == -EHOSTDOWN;

	if (is_down && !fetched->is_down)
		log_warning("debuginfod: %s; it is tried again", note);
	if (!is_down && fetched->is_down)
		log_info("debuginfod: the server is reached again");
	fetched->is_down = is_down;
}

static void take_result(struct fetched *fetched, struct item *item, int error, const char *note)
{
	const bool may_pass = error == -EHOSTDOWN || error == -ETIME || error == -EIO;
	const uint64_t now = clock_monotonic();

	if (error && error != -ENOENT)
		utf8_copy(fetched->stats.last_failed, sizeof(fetched->stats.last_failed), note);
	if (!error) {
		item->state = HERE;
		item->at = now;
	} else if (may_pass && ++item->tries < TRIES_MAX) {
		item->state = WANTED;
		item->at = now + RETRY_NS;
	} else {
		item->state = NONE;
		item->at = now + FETCHED_AGAIN_NS;
	}
	fetched->stats.server = *debuginfod_stats(fetched->debuginfod);
	debuginfod_helper_stats(fetched->debuginfod, &fetched->stats.helper);
}

static void *run(void *ctx)
{
	char build_id[41], path[PATH_MAX], note[DEBUGINFOD_NOTE_MAX];
	struct fetched *fetched = ctx;
	struct work work;
	struct item *item;
	uint64_t at;
	int r;

	work_enter(&work, "fetch");
	pthread_mutex_lock(&fetched->lock);
	while (!fetched->is_ending) {
		item = next_item(fetched, clock_monotonic(), &at);
		if (!item) {
			wait_for_more(fetched, at);
			continue;
		}
		item->state = ASKED;
		strcpy(build_id, item->build_id);
		pthread_mutex_unlock(&fetched->lock);
		work_begin();
		r = debuginfod_get(fetched->debuginfod, build_id, path, note);
		if (r != -ECANCELED)
			say_change(fetched, r, note);
		pthread_mutex_lock(&fetched->lock);
		take_result(fetched, item, r, note);
		work_end();
	}
	pthread_mutex_unlock(&fetched->lock);
	work_leave();
	return NULL;
}

static int start(struct fetched *fetched)
{
	sigset_t all, old;
	int r;

	/* signals are the main thread's */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&fetched->thread, NULL, run, fetched);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		return -r;
	fetched->has_thread = true;
	pthread_setname_np(fetched->thread, "stacktap-fetch");
	return 0;
}

int fetched_new(const struct debuginfod_options *options, struct fetched **ret_fetched)
{
	struct fetched *fetched = calloc(1, sizeof(*fetched));
	pthread_condattr_t attributes;
	int r;

	if (!fetched)
		return -ENOMEM;
	pool_charge_always(POOL_SYMBOLS, sizeof(*fetched));
	pthread_mutex_init(&fetched->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&fetched->wanted, &attributes);
	pthread_condattr_destroy(&attributes);
	fetched->stats.is_on = true;
	fetched->cancel_fd = eventfd(0, EFD_CLOEXEC);
	r = fetched->cancel_fd < 0 ? -errno : debuginfod_new(options, &fetched->debuginfod);
	if (!r) {
		debuginfod_set_cancel(fetched->debuginfod, fetched->cancel_fd);
		r = start(fetched);
	}
	if (r < 0) {
		fetched_free(fetched);
		return r;
	}
	*ret_fetched = fetched;
	return 0;
}

void fetched_free(struct fetched *fetched)
{
	const uint64_t one = 1;

	if (!fetched)
		return;
	if (fetched->has_thread) {
		pthread_mutex_lock(&fetched->lock);
		fetched->is_ending = true;
		pthread_cond_signal(&fetched->wanted);
		pthread_mutex_unlock(&fetched->lock);
		/* what it asks right now may take minutes */
		if (write(fetched->cancel_fd, &one, sizeof(one)) < 0)
			errno = 0;
		pthread_join(fetched->thread, NULL);
	}
	debuginfod_free(fetched->debuginfod);
	if (fetched->cancel_fd >= 0)
		close(fetched->cancel_fd);
	pthread_cond_destroy(&fetched->wanted);
	pthread_mutex_destroy(&fetched->lock);
	pool_uncharge(POOL_SYMBOLS, sizeof(*fetched));
	free(fetched);
}

/* HERE once; whoever comes again asks again, as the file may have made room for others. */
static enum state look(struct fetched *fetched, const char *build_id)
{
	const uint64_t now = clock_monotonic();
	enum state state = WANTED;
	struct item *item;

	pthread_mutex_lock(&fetched->lock);
	item = find(fetched, build_id) ?: new_item(fetched, build_id);
	if (item) {
		state = item->state;
		if (state == HERE)
			item->state = FREE;
		if (state == NONE && item->at <= now) {
			item->state = state = WANTED;
			item->tries = 0;
			item->at = now;
			pthread_cond_signal(&fetched->wanted);
		}
	}
	pthread_mutex_unlock(&fetched->lock);
	return state;
}

int fetched_open(struct fetched *fetched, const char *build_id, int *ret_fd, struct stat *ret_stat,
		 char ret_path[static PATH_MAX])
{
	_cleanup_close_ int fd = -1;
	const enum state state = look(fetched, build_id);

	if (state != HERE)
		return state == NONE ? -ENOENT : -EAGAIN;
	debuginfod_path(fetched->debuginfod, build_id, ret_path);
	fd = open(ret_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, ret_stat) < 0 || !S_ISREG(ret_stat->st_mode))
		return -EAGAIN;
	*ret_fd = steal_fd(&fd);
	return 0;
}

void fetched_forget(struct fetched *fetched, const char *build_id)
{
	struct item *item;

	debuginfod_forget(fetched->debuginfod, build_id);
	pthread_mutex_lock(&fetched->lock);
	item = find(fetched, build_id) ?: new_item(fetched, build_id);
	if (item && item->state != ASKED) {
		item->state = NONE;
		item->at = clock_monotonic() + FETCHED_AGAIN_NS;
	}
	snprintf(fetched->stats.last_failed, sizeof(fetched->stats.last_failed),
		 "what the server gave for %s is not its debug file", build_id);
	pthread_mutex_unlock(&fetched->lock);
}

void fetched_stats(struct fetched *fetched, struct fetched_stats *ret_stats)
{
	if (!fetched)
		return;
	pthread_mutex_lock(&fetched->lock);
	*ret_stats = fetched->stats;
	ret_stats->waiting = 0;
	for (size_t i = 0; i < FETCHED_MAX; i++)
		ret_stats->waiting += fetched->items[i].state == WANTED ||
				      fetched->items[i].state == ASKED;
	pthread_mutex_unlock(&fetched->lock);
}
