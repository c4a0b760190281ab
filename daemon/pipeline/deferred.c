// SPDX-License-Identifier: Apache-2.0
#include "pipeline/deferred.h"

#include <pthread.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/pool.h"

#define WAIT_NS (DEFERRED_WAIT_MS * NSEC_PER_MSEC)

enum deferred_state {
	DEFERRED_WAITING,
	DEFERRED_WITH_B,
	DEFERRED_READY,
	DEFERRED_EXPIRED,
};

struct deferred_sample {
	TAILQ_ENTRY(deferred_sample) all;		/* thread A's: what it has not taken yet */
	TAILQ_ENTRY(deferred_sample) line;		/* under the lock: todo or ready */
	enum deferred_state state;			/* under the lock */
	unsigned int holders;			/* under the lock: A, and B at work */
	size_t bytes;				/* charged */
	uint64_t put;

	/* never changes while B has it */
	struct image *image;			/* owned */
	struct mapping_snapshot *mappings;	/* owned */
	struct profile_config profile;
	struct sample_input input;
	struct sample_sections sections;

	/* B's, good once it is ready */
	bool is_unwound;
	struct unwinder_stack stack;
	uint64_t *ips;				/* owned; NULL: the module's */

	/* as it was in the ring; A alone changes it, when B is done */
	struct stacktap_sample record;		/* and its sections behind it */
};

TAILQ_HEAD(deferred_list, deferred_sample);

struct deferred {
	struct deferred_list all;
	size_t count;
	struct deferred_stats stats;		/* thread A's */

	pthread_mutex_t lock;			/* what follows */
	pthread_cond_t done;
	struct deferred_list todo, ready;
};

int deferred_new(struct deferred **ret_aside)
{
	struct deferred *deferred = calloc(1, sizeof(*deferred));
	pthread_condattr_t attr;

	if (!deferred)
		return -ENOMEM;
	TAILQ_INIT(&deferred->all);
	TAILQ_INIT(&deferred->todo);
	TAILQ_INIT(&deferred->ready);
	pthread_mutex_init(&deferred->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&deferred->done, &attr);
	pthread_condattr_destroy(&attr);
	*ret_aside = deferred;
	return 0;
}

static void sample_free(struct deferred_sample *sample)
{
	pool_uncharge(POOL_DEFERRED, sample->bytes);
	mapping_snapshot_unref(sample->mappings);
	image_unref(sample->image);
	free(sample->ips);
	free(sample);
}

void deferred_free(struct deferred *deferred)
{
	struct deferred_sample *sample;

	if (!deferred)
		return;
	while ((sample = TAILQ_FIRST(&deferred->all))) {
		TAILQ_REMOVE(&deferred->all, sample, all);
		sample_free(sample);
	}
	pthread_cond_destroy(&deferred->done);
	pthread_mutex_destroy(&deferred->lock);
	free(deferred);
}

/* Where in the copy what @pointer was in the ring is. */
static const void *moved(const struct deferred_sample *sample, const struct stacktap_sample *from,
			 const void *pointer)
{
	if (!pointer)
		return NULL;
	return (const char *)&sample->record + ((const char *)pointer - (const char *)from);
}

static void copy_record(struct deferred_sample *sample, const struct sample_input *input,
			const struct sample_sections *sections)
{
	const struct stacktap_sample *from = input->sample;

	memcpy(&sample->record, from, from->header.size);
	sample->input = *input;
	sample->input.sample = &sample->record;
	sample->input.kernel_ips = moved(sample, from, input->kernel_ips);
	sample->input.user_ips = moved(sample, from, input->user_ips);
	sample->input.exact = moved(sample, from, input->exact);
	sample->input.mappings = sample->mappings;
	sample->input.profile = &sample->profile;
	sample->sections = *sections;
	sample->sections.regs = moved(sample, from, sections->regs);
	sample->sections.slice = moved(sample, from, sections->slice);
}

static struct deferred_sample *sample_new(const struct sample_input *input)
{
	const size_t head = offsetof(struct deferred_sample, record), bytes = head + input->sample->header.size;
	struct deferred_sample *sample;

	if (!pool_charge(POOL_DEFERRED, bytes))
		return NULL;
	sample = malloc(bytes);
	if (!sample) {
		pool_uncharge(POOL_DEFERRED, bytes);
		return NULL;
	}
	/* the record, with thousands of bytes of a stack in it, is copied over the rest */
	memset(sample, 0, head);
	sample->bytes = bytes;
	sample->holders = 1;
	sample->image = image_ref(input->image);
	sample->mappings = image_snapshot(input->image);
	if (!sample->mappings) {
		sample_free(sample);
		return NULL;
	}
	return sample;
}

int deferred_put(struct deferred *deferred, const struct sample_input *input,
	      const struct sample_sections *sections, const struct profile_config *profile,
	      uint64_t now)
{
	struct deferred_sample *sample = sample_new(input);

	if (!sample) {
		deferred->stats.refused++;
		return -ENOBUFS;
	}
	copy_record(sample, input, sections);
	sample->profile = *profile;
	sample->put = now;
	TAILQ_INSERT_TAIL(&deferred->all, sample, all);
	deferred->count++;
	deferred->stats.taken++;
	pthread_mutex_lock(&deferred->lock);
	TAILQ_INSERT_TAIL(&deferred->todo, sample, line);
	pthread_mutex_unlock(&deferred->lock);
	return 0;
}

void deferred_release(struct deferred *deferred, struct deferred_sample *sample)
{
	struct image *image = image_ref(sample->image);
	bool is_last;

	pthread_mutex_lock(&deferred->lock);
	is_last = !--sample->holders;
	pthread_mutex_unlock(&deferred->lock);
	if (is_last) {
		sample_free(sample);
		image_trim_snapshot(image);
	}
	image_unref(image);
}

static void remove_from_all(struct deferred *deferred, struct deferred_sample *sample)
{
	TAILQ_REMOVE(&deferred->all, sample, all);
	deferred->count--;
}

bool deferred_take_back(struct deferred *deferred)
{
	struct deferred_sample *sample = TAILQ_LAST(&deferred->all, deferred_list);
	bool is_waiting;

	pthread_mutex_lock(&deferred->lock);
	/* B may have come to it with what it was told before */
	is_waiting = sample && sample->state == DEFERRED_WAITING;
	if (is_waiting)
		TAILQ_REMOVE(&deferred->todo, sample, line);
	pthread_mutex_unlock(&deferred->lock);
	if (!is_waiting)
		return false;
	remove_from_all(deferred, sample);
	deferred->stats.taken--;
	deferred->stats.refused++;
	deferred_release(deferred, sample);
	return true;
}

static struct deferred_sample *take_ready(struct deferred *deferred)
{
	struct deferred_sample *sample;

	pthread_mutex_lock(&deferred->lock);
	sample = TAILQ_FIRST(&deferred->ready);
	if (sample)
		TAILQ_REMOVE(&deferred->ready, sample, line);
	pthread_mutex_unlock(&deferred->lock);
	return sample;
}

static struct deferred_sample *take_expired(struct deferred *deferred, uint64_t now)
{
	struct deferred_sample *sample = TAILQ_FIRST(&deferred->all);

	if (!sample || now < sample->put + WAIT_NS)
		return NULL;
	pthread_mutex_lock(&deferred->lock);
	if (sample->state == DEFERRED_WAITING)
		TAILQ_REMOVE(&deferred->todo, sample, line);
	/* since it was looked for */
	if (sample->state == DEFERRED_READY)
		TAILQ_REMOVE(&deferred->ready, sample, line);
	else
		sample->state = DEFERRED_EXPIRED;
	pthread_mutex_unlock(&deferred->lock);
	return sample;
}

static void use_stack(struct deferred *deferred, struct deferred_sample *sample)
{
	deferred->stats.unwound++;
	deferred->stats.complete += sample->stack.end == STACKTAP_END_COMPLETE;
	sample->record.user_end = sample->stack.end;
	/* walked with what was mapped at its time: what the module's list lacked is in doubt no more */
	sample->record.generation = 0;
	sample->input.user_ips = sample->ips;
	sample->input.user_count = sample->stack.count;
	sample->input.exact = sample->stack.exact;
	sample->input.exact_count = sample->stack.exact_count;
}

struct deferred_sample *deferred_take(struct deferred *deferred, uint64_t now,
				       struct sample_input *ret_input)
{
	struct deferred_sample *sample = take_ready(deferred);
	uint16_t mark;

	if (!sample)
		sample = take_expired(deferred, now);
	if (!sample)
		return NULL;
	remove_from_all(deferred, sample);
	/* READY and EXPIRED are final, so they can be read without the lock */
	if (sample->state == DEFERRED_EXPIRED) {
		deferred->stats.expired++;
		mark = SAMPLE_DEFERRED_EXPIRED;
	} else if (sample->is_unwound) {
		use_stack(deferred, sample);
		mark = SAMPLE_DEFERRED;
	} else {
		deferred->stats.failed++;
		mark = SAMPLE_DEFERRED_FAILED;
	}
	*ret_input = sample->input;
	ret_input->marks |= mark;
	return sample;
}

bool deferred_waits(const struct deferred *deferred, uint64_t time)
{
	const struct deferred_sample *sample;

	TAILQ_FOREACH(sample, &deferred->all, all)
		if (sample->record.header.time <= time)
			return true;
	return false;
}

void deferred_wait(struct deferred *deferred, int timeout_ms)
{
	uint64_t deadline = clock_monotonic() + (uint64_t)timeout_ms * NSEC_PER_MSEC;
	const struct timespec until = {
		.tv_sec = (time_t)(deadline / NSEC_PER_SEC),
		.tv_nsec = (long)(deadline % NSEC_PER_SEC),
	};

	pthread_mutex_lock(&deferred->lock);
	while (TAILQ_EMPTY(&deferred->ready) &&
	       !pthread_cond_timedwait(&deferred->done, &deferred->lock, &until))
		;
	pthread_mutex_unlock(&deferred->lock);
}

void deferred_stats(const struct deferred *deferred, struct deferred_stats *ret_stats)
{
	*ret_stats = deferred->stats;
	ret_stats->waiting = deferred->count;
}

struct deferred_sample *deferred_next(struct deferred *deferred)
{
	struct deferred_sample *sample;

	pthread_mutex_lock(&deferred->lock);
	sample = TAILQ_FIRST(&deferred->todo);
	if (sample) {
		TAILQ_REMOVE(&deferred->todo, sample, line);
		sample->state = DEFERRED_WITH_B;
		sample->holders++;
	}
	pthread_mutex_unlock(&deferred->lock);
	return sample;
}

struct image *deferred_image(const struct deferred_sample *sample)
{
	return sample->image;
}

const struct mapping_snapshot *deferred_mappings(const struct deferred_sample *sample)
{
	return sample->mappings;
}

static bool keep_stack(struct deferred_sample *sample)
{
	size_t bytes = sample->stack.count * sizeof(*sample->ips);

	if (!pool_charge(POOL_DEFERRED, bytes))
		return false;
	sample->ips = malloc(bytes);
	if (!sample->ips) {
		pool_uncharge(POOL_DEFERRED, bytes);
		return false;
	}
	sample->bytes += bytes;
	memcpy(sample->ips, sample->stack.ips, bytes);
	return true;
}

void deferred_unwind(struct deferred *deferred, struct deferred_sample *sample,
		     struct unwinder *unwinder)
{
	bool is_last;

	sample->is_unwound =
		unwinder && unwinder_walk(unwinder, &sample->sections, sample->mappings,
				  sample->record.header.time, sample->record.tgid,
				  &sample->stack) == 0 &&
		keep_stack(sample);
	pthread_mutex_lock(&deferred->lock);
	if (sample->state == DEFERRED_WITH_B) {
		sample->state = DEFERRED_READY;
		TAILQ_INSERT_TAIL(&deferred->ready, sample, line);
		pthread_cond_signal(&deferred->done);
	}
	is_last = !--sample->holders;
	pthread_mutex_unlock(&deferred->lock);
	if (is_last)
		sample_free(sample);
}
