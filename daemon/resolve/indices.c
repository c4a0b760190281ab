// SPDX-License-Identifier: Apache-2.0
#include "resolve/indices.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fair.h"
#include "base/file.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/sha256.h"
#include "base/work.h"
#include "helper/cache.h"
#include "helper/index_store.h"

enum {
	NAME_DIGITS = 48,	/* of the hash, so that the name fits */
	BOOT_MAX = 64,
	OWN_MAX = 4,		/* directories whose devices are the system's own */
};

static_assert(NAME_DIGITS + sizeof(INDEX_STORE_SUFFIX) <= CACHE_NAME_BYTES, "the name fits");

enum state { IDLE, ASKED, ANSWERED };

/* What is to be written, or with @fd -1 removed. */
struct job {
	char name[CACHE_NAME_BYTES];
	int fd;
	uint64_t size;
};

struct indices {
	pthread_mutex_t lock;	/* of all that both threads use */
	pthread_cond_t wanted, answered;
	pthread_t thread;
	bool has_thread, is_ending;
	bool has_ended, is_left;	/* the thread; and to be freed by it */
	int directory;
	uint64_t limit_bytes;
	char boot[BOOT_MAX];	/* which it is */
	uint64_t own[OWN_MAX];	/* devices that the next boot has as well, by what it mounts there; 0: none */
	/* the one file that thread B asks for */
	enum state state;
	char name[CACHE_NAME_BYTES];
	int fd;			/* the answer, or -errno */
	uint64_t size;
	struct job jobs[INDICES_QUEUE_MAX];
	size_t job_count;
	uint64_t queued_bytes;
	struct indices_stats stats;
	struct fair credit;	/* of bytes to be written; thread B's */
};

static void name_of(const struct indices *indices, const struct object *object, char ret_name[static CACHE_NAME_BYTES])
{
	uint64_t identity[] = { object->dev, 0, object->inode, (uint64_t)object->ctime_ns, object->size };
	uint64_t lengths[] = { sizeof(identity), strlen(object->build_id), 0 };
	const char *boot = indices->boot;
	uint8_t digest[SHA256_BYTES];

	for (size_t i = 0; i < OWN_MAX; i++) {
		/* an image may bring numbers and times of its own, which the build-id tells apart */
		if (!object->dev || !object->build_id[0] || indices->own[i] != object->dev)
			continue;
		identity[0] = 0;
		identity[1] = i + 1;
		boot = "";
		break;
	}
	lengths[2] = strlen(boot);
	sha256_of((const struct sha256_part[]){
		{ &lengths[0], sizeof(lengths[0]) }, { identity, lengths[0] },
		{ &lengths[1], sizeof(lengths[1]) }, { object->build_id, lengths[1] },
		{ &lengths[2], sizeof(lengths[2]) }, { boot, lengths[2] },
	}, 6, digest);
	for (size_t i = 0; i < NAME_DIGITS / 2; i++)
		snprintf(ret_name + 2 * i, 3, "%02x", digest[i]);
	strcpy(ret_name + NAME_DIGITS, INDEX_STORE_SUFFIX);
}

/* Opens the file that is asked for. With the lock, which is not held meanwhile. */
static void answer(struct indices *indices)
{
	char name[CACHE_NAME_BYTES];
	uint64_t size = 0;
	int fd;

	strcpy(name, indices->name);
	pthread_mutex_unlock(&indices->lock);
	fd = index_store_read(indices->directory, name, &size);
	pthread_mutex_lock(&indices->lock);
	/* who has asked may have gone on, and asks for another */
	if (indices->state != ASKED || strcmp(indices->name, name) != 0) {
		if (fd >= 0)
			close(fd);
		return;
	}
	indices->fd = fd;
	indices->size = size;
	indices->state = ANSWERED;
	pthread_cond_signal(&indices->answered);
}

/* The job that has waited longest. In the same way. */
static void do_job(struct indices *indices)
{
	const struct job job = indices->jobs[0];
	int r = 0;

	pthread_mutex_unlock(&indices->lock);
	if (job.fd < 0) {
		index_store_remove(indices->directory, job.name);
	} else {
		r = index_store_write(indices->directory, job.name, job.fd, job.size, indices->limit_bytes);
		close(job.fd);
	}
	pthread_mutex_lock(&indices->lock);
	indices->stats.written += job.fd >= 0 && !r;
	indices->stats.dropped += r < 0;
	indices->queued_bytes -= job.size;
	memmove(indices->jobs, indices->jobs + 1, --indices->job_count * sizeof(*indices->jobs));
}

/* With the lock: who ends does not wait for a disk. */
static void drop_jobs(struct indices *indices)
{
	while (indices->job_count) {
		const struct job *job = &indices->jobs[--indices->job_count];

		if (job->fd >= 0)
			close(job->fd);
		indices->stats.dropped++;
	}
}

static void destroy(struct indices *indices)
{
	if (indices->directory >= 0)
		close(indices->directory);
	pthread_cond_destroy(&indices->wanted);
	pthread_cond_destroy(&indices->answered);
	pthread_mutex_destroy(&indices->lock);
	pool_uncharge(POOL_SYMBOLS, sizeof(*indices));
	free(indices);
}

static void *run(void *ctx)
{
	struct indices *indices = ctx;
	struct work work;
	bool is_left;

	work_enter(&work, "indices");
	pthread_mutex_lock(&indices->lock);
	while (!indices->is_ending) {
		if (indices->state == ASKED || indices->job_count) {
			work_begin();
			if (indices->state == ASKED)
				answer(indices);
			else
				do_job(indices);
			work_end();
		} else {
			pthread_cond_wait(&indices->wanted, &indices->lock);
		}
	}
	drop_jobs(indices);
	indices->has_ended = true;
	is_left = indices->is_left;
	pthread_cond_signal(&indices->answered);
	pthread_mutex_unlock(&indices->lock);
	work_leave();
	if (is_left)
		destroy(indices);
	return NULL;
}

static int start(struct indices *indices)
{
	sigset_t all, old;
	int r;

	/* signals are the main thread's */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&indices->thread, NULL, run, indices);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		return -r;
	indices->has_thread = true;
	pthread_setname_np(indices->thread, "stacktap-index");
	return 0;
}

static void find_own(struct indices *indices)
{
	static const char *const paths[] = { "/", "/usr", "/usr/lib/debug" };
	struct stat st;

	static_assert(ARRAY_SIZE(paths) < OWN_MAX, "and the directory itself, with debuginfod's beside it");
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (!stat(paths[i], &st))
			indices->own[i] = st.st_dev;
	if (!fstat(indices->directory, &st))
		indices->own[ARRAY_SIZE(paths)] = st.st_dev;
}

int indices_new(const struct indices_options *options, struct indices **ret_indices)
{
	struct indices *indices = calloc(1, sizeof(*indices));
	pthread_condattr_t attributes;
	int r;

	if (!indices)
		return -ENOMEM;
	pool_charge_always(POOL_SYMBOLS, sizeof(*indices));
	pthread_mutex_init(&indices->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&indices->wanted, &attributes);
	pthread_cond_init(&indices->answered, &attributes);
	pthread_condattr_destroy(&attributes);
	indices->limit_bytes = options->limit_bytes;
	fair_init(&indices->credit, INDICES_CREDIT_BYTES, INDICES_CREDIT_PART, clock_monotonic());
	indices->directory = index_store_open(options->directory, true);
	r = indices->directory;
	if (r >= 0)
		find_own(indices);
	if (r >= 0)
		r = (int)file_read_text(AT_FDCWD, "/proc/sys/kernel/random/boot_id", indices->boot, sizeof(indices->boot));
	if (r >= 0)
		r = start(indices);
	if (r < 0) {
		indices_free(indices);
		return r;
	}
	*ret_indices = indices;
	return 0;
}

/* When who waits for the thread has waited long enough. */
static struct timespec when_to_give_up(void)
{
	const uint64_t at = clock_monotonic() + INDICES_WAIT_MS * NSEC_PER_MSEC;

	return (struct timespec){ .tv_sec = (time_t)(at / NSEC_PER_SEC), .tv_nsec = (long)(at % NSEC_PER_SEC) };
}

void indices_free(struct indices *indices)
{
	const struct timespec until = when_to_give_up();
	bool is_left;

	if (!indices)
		return;
	if (indices->has_thread) {
		pthread_mutex_lock(&indices->lock);
		indices->is_ending = true;
		pthread_cond_signal(&indices->wanted);
		while (!indices->has_ended && !pthread_cond_timedwait(&indices->answered, &indices->lock, &until))
			;
		is_left = indices->is_left = !indices->has_ended;
		/* while it is sure to be there */
		if (is_left)
			pthread_detach(indices->thread);
		pthread_mutex_unlock(&indices->lock);
		if (is_left)
			return;
		pthread_join(indices->thread, NULL);
	}
	destroy(indices);
}

/* Until the thread has answered, or there is no more time for that. */
static void wait_for_answer(struct indices *indices)
{
	const struct timespec until = when_to_give_up();

	pthread_cond_signal(&indices->wanted);
	while (indices->state == ASKED && !pthread_cond_timedwait(&indices->answered, &indices->lock, &until))
		;
}

int indices_get(struct indices *indices, const struct object *object, int *ret_fd, uint64_t *ret_size)
{
	char name[CACHE_NAME_BYTES];
	int r = -ENOENT;

	name_of(indices, object, name);
	pthread_mutex_lock(&indices->lock);
	strcpy(indices->name, name);
	indices->state = ASKED;
	wait_for_answer(indices);
	if (indices->state == ANSWERED) {
		*ret_fd = r = indices->fd;
		*ret_size = indices->size;
		indices->stats.refused += r == -EPERM;
	} else {
		indices->stats.late++;
	}
	indices->state = IDLE;
	pthread_mutex_unlock(&indices->lock);
	return r < 0 ? -ENOENT : 0;
}

/* With the lock. */
static void add_job(struct indices *indices, const char *name, int *fd, uint64_t size)
{
	struct job *job = &indices->jobs[indices->job_count];

	*job = (struct job){ .fd = steal_fd(fd), .size = size };
	strcpy(job->name, name);
	indices->job_count++;
	indices->queued_bytes += size;
	pthread_cond_signal(&indices->wanted);
}

void indices_judge(struct indices *indices, const struct object *object, int error)
{
	char name[CACHE_NAME_BYTES];
	int none = -1;

	name_of(indices, object, name);
	pthread_mutex_lock(&indices->lock);
	indices->stats.loaded += !error;
	if (error == -EBADMSG || error == -EPIPE || error == -ETIMEDOUT) {
		indices->stats.refused++;
		if (indices->job_count < INDICES_QUEUE_MAX)
			add_job(indices, name, &none, 0);
	}
	pthread_mutex_unlock(&indices->lock);
}

bool indices_may_put(struct indices *indices, uint32_t payer)
{
	return fair_may(&indices->credit, payer, clock_monotonic());
}

void indices_put(struct indices *indices, const struct object *object, uint32_t payer, int *fd, uint64_t size)
{
	const uint64_t now = clock_monotonic();
	_cleanup_close_ int own = steal_fd(fd);
	char name[CACHE_NAME_BYTES];
	bool has_room;

	name_of(indices, object, name);
	pthread_mutex_lock(&indices->lock);
	indices->stats.made++;
	has_room = indices->job_count < INDICES_QUEUE_MAX &&
		   (!indices->queued_bytes || indices->queued_bytes + size <= INDICES_QUEUE_BYTES);
	if (has_room)
		add_job(indices, name, &own, size);
	else
		indices->stats.dropped++;
	pthread_mutex_unlock(&indices->lock);
	if (has_room)
		fair_spend(&indices->credit, payer, now - size, now, 0);
}

void indices_stats(struct indices *indices, struct indices_stats *ret_stats)
{
	if (!indices)
		return;
	pthread_mutex_lock(&indices->lock);
	*ret_stats = indices->stats;
	pthread_mutex_unlock(&indices->lock);
}
