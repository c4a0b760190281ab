// SPDX-License-Identifier: Apache-2.0
#include "aside.h"

#include <pthread.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/pool.h"

#define WAIT_NS (ASIDE_WAIT_MS * NSEC_PER_MSEC)

enum aside_state {
	ASIDE_WAITING,
	ASIDE_WITH_B,
	ASIDE_READY,
	ASIDE_EXPIRED,
};

struct aside_sample {
	TAILQ_ENTRY(aside_sample) all;		/* thread A's: what it has not taken yet */
	TAILQ_ENTRY(aside_sample) line;		/* under the lock: todo or ready */
	enum aside_state state;			/* under the lock */
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
	struct late_stack stack;
	uint64_t *ips;				/* owned; NULL: the module's */

	/* as it was in the ring; A alone changes it, when B is done */
	struct stacktap_sample record;		/* and its sections behind it */
};

TAILQ_HEAD(aside_list, aside_sample);

struct aside {
	struct aside_list all;
	size_t count;
	struct aside_stats stats;		/* thread A's */

	pthread_mutex_t lock;			/* what follows */
	pthread_cond_t done;
	struct aside_list todo, ready;
};

int aside_new(struct aside **ret_aside)
{
	struct aside *aside = calloc(1, sizeof(*aside));
	pthread_condattr_t attr;

	if (!aside)
		return -ENOMEM;
	TAILQ_INIT(&aside->all);
	TAILQ_INIT(&aside->todo);
	TAILQ_INIT(&aside->ready);
	pthread_mutex_init(&aside->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&aside->done, &attr);
	pthread_condattr_destroy(&attr);
	*ret_aside = aside;
	return 0;
}

static void sample_free(struct aside_sample *sample)
{
	pool_uncharge(POOL_LATE, sample->bytes);
	mapping_snapshot_unref(sample->mappings);
	image_unref(sample->image);
	free(sample->ips);
	free(sample);
}

void aside_free(struct aside *aside)
{
	struct aside_sample *sample;

	if (!aside)
		return;
	while ((sample = TAILQ_FIRST(&aside->all))) {
		TAILQ_REMOVE(&aside->all, sample, all);
		sample_free(sample);
	}
	pthread_cond_destroy(&aside->done);
	pthread_mutex_destroy(&aside->lock);
	free(aside);
}

/* Where in the copy what @pointer was in the ring is. */
static const void *moved(const struct aside_sample *sample, const struct stacktap_sample *from,
			 const void *pointer)
{
	if (!pointer)
		return NULL;
	return (const char *)&sample->record + ((const char *)pointer - (const char *)from);
}

static void copy_record(struct aside_sample *sample, const struct sample_input *input,
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

static struct aside_sample *sample_new(const struct sample_input *input)
{
	size_t bytes = offsetof(struct aside_sample, record) + input->sample->header.size;
	struct aside_sample *sample;

	if (!pool_charge(POOL_LATE, bytes))
		return NULL;
	sample = calloc(1, bytes);
	if (!sample) {
		pool_uncharge(POOL_LATE, bytes);
		return NULL;
	}
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

int aside_put(struct aside *aside, const struct sample_input *input,
	      const struct sample_sections *sections, const struct profile_config *profile,
	      uint64_t now)
{
	struct aside_sample *sample = sample_new(input);

	if (!sample) {
		aside->stats.refused++;
		return -ENOBUFS;
	}
	copy_record(sample, input, sections);
	sample->profile = *profile;
	sample->put = now;
	TAILQ_INSERT_TAIL(&aside->all, sample, all);
	aside->count++;
	aside->stats.taken++;
	pthread_mutex_lock(&aside->lock);
	TAILQ_INSERT_TAIL(&aside->todo, sample, line);
	pthread_mutex_unlock(&aside->lock);
	return 0;
}

void aside_release(struct aside *aside, struct aside_sample *sample)
{
	struct image *image = image_ref(sample->image);
	bool is_last;

	pthread_mutex_lock(&aside->lock);
	is_last = !--sample->holders;
	pthread_mutex_unlock(&aside->lock);
	if (is_last) {
		sample_free(sample);
		image_trim_snapshot(image);
	}
	image_unref(image);
}

static void remove_from_all(struct aside *aside, struct aside_sample *sample)
{
	TAILQ_REMOVE(&aside->all, sample, all);
	aside->count--;
}

bool aside_take_back(struct aside *aside)
{
	struct aside_sample *sample = TAILQ_LAST(&aside->all, aside_list);
	bool is_waiting;

	pthread_mutex_lock(&aside->lock);
	/* B may have come to it with what it was told before */
	is_waiting = sample && sample->state == ASIDE_WAITING;
	if (is_waiting)
		TAILQ_REMOVE(&aside->todo, sample, line);
	pthread_mutex_unlock(&aside->lock);
	if (!is_waiting)
		return false;
	remove_from_all(aside, sample);
	aside->stats.taken--;
	aside->stats.refused++;
	aside_release(aside, sample);
	return true;
}

static struct aside_sample *take_ready(struct aside *aside)
{
	struct aside_sample *sample;

	pthread_mutex_lock(&aside->lock);
	sample = TAILQ_FIRST(&aside->ready);
	if (sample)
		TAILQ_REMOVE(&aside->ready, sample, line);
	pthread_mutex_unlock(&aside->lock);
	return sample;
}

static struct aside_sample *take_expired(struct aside *aside, uint64_t now)
{
	struct aside_sample *sample = TAILQ_FIRST(&aside->all);

	if (!sample || now < sample->put + WAIT_NS)
		return NULL;
	pthread_mutex_lock(&aside->lock);
	if (sample->state == ASIDE_WAITING)
		TAILQ_REMOVE(&aside->todo, sample, line);
	/* since it was looked for */
	if (sample->state == ASIDE_READY)
		TAILQ_REMOVE(&aside->ready, sample, line);
	else
		sample->state = ASIDE_EXPIRED;
	pthread_mutex_unlock(&aside->lock);
	return sample;
}

static void use_stack(struct aside *aside, struct aside_sample *sample)
{
	aside->stats.unwound++;
	aside->stats.complete += sample->stack.end == STACKTAP_END_COMPLETE;
	sample->record.user_end = sample->stack.end;
	/* walked with what was mapped at its time: what the module's list lacked is in doubt no more */
	sample->record.generation = 0;
	sample->input.user_ips = sample->ips;
	sample->input.user_count = sample->stack.count;
	sample->input.exact = sample->stack.exact;
	sample->input.exact_count = sample->stack.exact_count;
}

struct aside_sample *aside_take(struct aside *aside, uint64_t now, struct sample_input *ret_input)
{
	struct aside_sample *sample = take_ready(aside);
	uint16_t mark;

	if (!sample)
		sample = take_expired(aside, now);
	if (!sample)
		return NULL;
	remove_from_all(aside, sample);
	/* READY and EXPIRED are final, so they can be read without the lock */
	if (sample->state == ASIDE_EXPIRED) {
		aside->stats.expired++;
		mark = SAMPLE_LATE_EXPIRED;
	} else if (sample->is_unwound) {
		use_stack(aside, sample);
		mark = SAMPLE_LATE;
	} else {
		aside->stats.failed++;
		mark = SAMPLE_LATE_FAILED;
	}
	*ret_input = sample->input;
	ret_input->marks |= mark;
	return sample;
}

bool aside_waits(const struct aside *aside, uint64_t time)
{
	const struct aside_sample *sample;

	TAILQ_FOREACH(sample, &aside->all, all)
		if (sample->record.header.time <= time)
			return true;
	return false;
}

void aside_wait(struct aside *aside, int timeout_ms)
{
	uint64_t deadline = clock_monotonic() + (uint64_t)timeout_ms * NSEC_PER_MSEC;
	const struct timespec until = {
		.tv_sec = (time_t)(deadline / NSEC_PER_SEC),
		.tv_nsec = (long)(deadline % NSEC_PER_SEC),
	};

	pthread_mutex_lock(&aside->lock);
	while (TAILQ_EMPTY(&aside->ready) &&
	       !pthread_cond_timedwait(&aside->done, &aside->lock, &until))
		;
	pthread_mutex_unlock(&aside->lock);
}

void aside_stats(const struct aside *aside, struct aside_stats *ret_stats)
{
	*ret_stats = aside->stats;
	ret_stats->waiting = aside->count;
}

struct aside_sample *aside_next(struct aside *aside)
{
	struct aside_sample *sample;

	pthread_mutex_lock(&aside->lock);
	sample = TAILQ_FIRST(&aside->todo);
	if (sample) {
		TAILQ_REMOVE(&aside->todo, sample, line);
		sample->state = ASIDE_WITH_B;
		sample->holders++;
	}
	pthread_mutex_unlock(&aside->lock);
	return sample;
}

struct image *aside_image(const struct aside_sample *sample)
{
	return sample->image;
}

const struct mapping_snapshot *aside_mappings(const struct aside_sample *sample)
{
	return sample->mappings;
}

static bool keep_stack(struct aside_sample *sample)
{
	size_t bytes = sample->stack.count * sizeof(*sample->ips);

	if (!pool_charge(POOL_LATE, bytes))
		return false;
	sample->ips = malloc(bytes);
	if (!sample->ips) {
		pool_uncharge(POOL_LATE, bytes);
		return false;
	}
	sample->bytes += bytes;
	memcpy(sample->ips, sample->stack.ips, bytes);
	return true;
}

void aside_unwind(struct aside *aside, struct aside_sample *sample, struct late *late)
{
	bool is_last;

	sample->is_unwound =
		late && late_walk(late, &sample->sections, sample->mappings,
				  sample->record.header.time, sample->record.tgid,
				  &sample->stack) == 0 &&
		keep_stack(sample);
	pthread_mutex_lock(&aside->lock);
	if (sample->state == ASIDE_WITH_B) {
		sample->state = ASIDE_READY;
		TAILQ_INSERT_TAIL(&aside->ready, sample, line);
		pthread_cond_signal(&aside->done);
	}
	is_last = !--sample->holders;
	pthread_mutex_unlock(&aside->lock);
	if (is_last)
		sample_free(sample);
}
