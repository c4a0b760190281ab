// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/clock.h"
#include "profile/profile_map.h"
#include "profile/stack_cache.h"

#define MAX_PROFILES 256u
#define TIES_NS 10000		/* a mapping event this little after a sample still holds for it */
#define TIMES_MAX 8192u		/* in one entry: a larger list would be half empty at a cost */
#define SIZE_CLASSES 16		/* of lists of times: 1, 2, 4, ... TIMES_MAX, with values twice that */

_Static_assert(TIMES_MAX << 1 < 1u << SIZE_CLASSES, "size classes");

struct aggregator {
	struct stack_cache stacks;
	struct profile_map profiles;

	/* the open window and what indexes it */
	struct window *window;
	uint64_t previous_end;
	uint64_t oldest, newest;	/* times in the window */
	uint64_t sample_total;
	struct index sample_index;
	uint64_t *free_times[SIZE_CLASSES];	/* lists given back; the first word links */

	/* no window yet */
	struct window_losses losses[STACKTAP_MAX_SOURCES];
	struct window_losses all_losses;	/* whichever window took them */
};

/* Of all windows of this process, whichever pipeline they are of. */
static _Atomic uint64_t windows;

static struct window *next_window(void)
{
	return window_new(atomic_fetch_add_explicit(&windows, 1, memory_order_relaxed) + 1);
}

int aggregator_new(struct aggregator **ret_aggregator)
{
	struct aggregator *aggregator = calloc(1, sizeof(*aggregator));

	if (!aggregator)
		return -ENOMEM;
	aggregator->window = next_window();
	if (!aggregator->window) {
		free(aggregator);
		return -ENOMEM;
	}
	stack_cache_init(&aggregator->stacks);
	index_init(&aggregator->sample_index, POOL_AGGREGATE);
	aggregator->oldest = UINT64_MAX;
	*ret_aggregator = aggregator;
	return 0;
}

void aggregator_free(struct aggregator *aggregator)
{
	if (!aggregator)
		return;
	index_free(&aggregator->sample_index);
	window_free(aggregator->window);
	stack_cache_free(&aggregator->stacks);
	profile_map_free(&aggregator->profiles);
	free(aggregator);
}

void aggregator_set_kernel(struct aggregator *aggregator, struct mapped_file *kernel)
{
	struct mapped_file *old = aggregator->stacks.kernel;

	aggregator->stacks.kernel = kernel ? mapped_file_ref(kernel) : NULL;
	if (old)
		mapped_file_unref(old);
}

int aggregator_set_profile(struct aggregator *aggregator, const struct profile_config *config)
{
	return profile_map_set(&aggregator->profiles, config);
}

int aggregator_set_cpu_profile(struct aggregator *aggregator, uint32_t cpu,
			       const struct profile_config *config)
{
	return profile_map_set_cpu(&aggregator->profiles, cpu, config);
}

static int window_profile(struct aggregator *aggregator, struct profile_slot *slot)
{
	struct window *window = aggregator->window;
	struct profile_config *profiles;
	struct window_counts *counts;
	size_t bytes = sizeof(*profiles) + sizeof(*counts);
	size_t i;

	if (slot->epoch == aggregator->stacks.locations.epoch)
		return 0;
	for (i = 0; i < window->profile_count; i++)
		if (profile_config_equal(&window->profiles[i], &slot->config))
			break;
	if (i == window->profile_count) {
		if (i >= MAX_PROFILES || !pool_charge(POOL_AGGREGATE, bytes))
			return -ENOBUFS;
		window->profile_capacity++;
		profiles = reallocarray(window->profiles, i + 1, sizeof(*profiles));
		if (!profiles)
			return -ENOMEM;
		window->profiles = profiles;
		counts = reallocarray(window->counts, i + 1, sizeof(*counts));
		if (!counts)
			return -ENOMEM;
		window->counts = counts;
		profiles[i] = slot->config;
		counts[i] = (struct window_counts){ 0 };
		window->profile_count++;
	}
	slot->position = (uint16_t)i;
	slot->epoch = aggregator->stacks.locations.epoch;
	return 0;
}

static uint64_t sample_hash(const struct window_sample *sample)
{
	struct fingerprint print = fingerprint_start((uintptr_t)sample->stack);
	uint64_t comm[2];

	memcpy(comm, sample->comm, sizeof(comm));
	fingerprint_mix(&print, (uint64_t)sample->profile << 48 | (uint64_t)sample->user_end << 32 |
		 (uint64_t)sample->kernel_end << 16 | sample->marks,
		 (uint64_t)sample->cpu << 32 | sample->tid);
	fingerprint_mix(&print, (uintptr_t)sample->image ^ comm[0], comm[1]);
	return fingerprint_end(print).lo;
}

static uint64_t sample_hash_of(const void *ctx, uint32_t position)
{
	return sample_hash((const struct window_sample *)ctx + position);
}

static bool sample_equal(const struct window_sample *a, const struct window_sample *b)
{
	return a->stack == b->stack && a->image == b->image && a->tid == b->tid &&
	       a->cpu == b->cpu && a->profile == b->profile && a->marks == b->marks &&
	       a->user_end == b->user_end && a->kernel_end == b->kernel_end &&
	       !memcmp(a->comm, b->comm, sizeof(a->comm));
}

static int sample_find(struct aggregator *aggregator, const struct window_sample *key,
		       struct window_sample **ret_sample)
{
	struct window *window = aggregator->window;
	uint64_t hash = sample_hash(key);
	struct index_probe probe = index_first(&aggregator->sample_index, hash);
	uint32_t i;
	int err;

	while ((i = index_next(&aggregator->sample_index, &probe)) != INDEX_NONE) {
		if (!sample_equal(&window->samples[i], key) ||
		    window->samples[i].count == TIMES_MAX)
			continue;
		*ret_sample = &window->samples[i];
		return 0;
	}
	if (window->sample_count >= INDEX_NONE - 1)
		return -ENOBUFS;
	err = window_reserve(&window->samples, window->sample_count, &window->sample_capacity,
			    sizeof(*key));
	if (err)
		return err;
	err = index_reserve(&aggregator->sample_index, sample_hash_of, window->samples);
	if (err)
		return err;
	index_insert(&aggregator->sample_index, hash, (uint32_t)window->sample_count);
	*ret_sample = &window->samples[window->sample_count++];
	**ret_sample = *key;
	if (key->image)
		image_ref(key->image);
	return 0;
}

/* Double the list of times, and of values behind them; outgrown lists serve smaller samples. */
static int sample_grow(struct aggregator *aggregator, struct window_sample *sample,
		       bool has_values)
{
	uint32_t capacity = sample->capacity ? sample->capacity * 2 : 1;
	unsigned int class = (unsigned int)__builtin_ctz(capacity) + has_values;
	uint64_t *times;

	times = aggregator->free_times[class];
	if (times) {
		aggregator->free_times[class] = (uint64_t *)(uintptr_t)times[0];
	} else {
		times = arena_alloc(&aggregator->window->arena, sizeof(*times) << class);
		if (!times)
			return -ENOBUFS;
	}
	if (sample->count) {
		memcpy(times, sample->times, sample->count * sizeof(*times));
		if (has_values)
			memcpy(times + capacity, sample->values, sample->count * sizeof(*times));
		sample->times[0] = (uintptr_t)aggregator->free_times[class - 1];
		aggregator->free_times[class - 1] = sample->times;
	}
	sample->times = times;
	sample->values = has_values ? times + capacity : NULL;
	sample->capacity = capacity;
	return 0;
}

static bool window_is_full(const struct aggregator *aggregator)
{
	const struct window *window = aggregator->window;

	return window->arena.bytes + window->sample_capacity * sizeof(*window->samples) +
	       window->news_capacity * sizeof(*window->news) +
	       stack_cache_bytes(&aggregator->stacks) > pool_get(POOL_AGGREGATE)->limit / 2;
}

const struct profile_config *aggregator_profile(struct aggregator *aggregator, uint16_t source_id,
						uint32_t cpu)
{
	const struct profile_slot *slot = profile_map_find(&aggregator->profiles, source_id, cpu);

	return slot ? &slot->config : NULL;
}

int aggregator_add(struct aggregator *aggregator, const struct sample_input *input)
{
	const struct stacktap_sample *record = input->sample;
	uint64_t time = record->header.time;
	struct window_sample key = {
		.tid = record->tid,
		.cpu = record->cpu,
		.image = input->image,
		.marks = input->marks,
		.user_end = min_of(record->user_end, (uint8_t)(STACKTAP_END_REASONS - 1)),
		.kernel_end = min_of(record->kernel_end, (uint8_t)(STACKTAP_END_REASONS - 1)),
	};
	struct window *window = aggregator->window;
	struct profile_slot *slot, own;
	struct window_sample *sample;
	const struct raw_stack *raw;
	bool has_values;
	int err;

	slot = profile_map_find(&aggregator->profiles, record->source, record->cpu);
	if (!slot)
		return -EINVAL;
	/* another rate holds by now than when it was taken */
	if (input->profile && !profile_config_equal(input->profile, &slot->config)) {
		own = (struct profile_slot){ .config = *input->profile };
		slot = &own;
	}
	if (window_is_full(aggregator))
		return -ENOBUFS;
	err = window_profile(aggregator, slot);
	if (err)
		return err;
	err = stack_cache_find(&aggregator->stacks, window, input, &raw);
	if (err)
		return err;

	key.profile = slot->position;
	key.stack = raw->stack;
	key.marks |= raw->marks;
	if (record->header.flags & STACKTAP_SAMPLE_STALE)
		key.marks |= SAMPLE_STALE;
	if (record->header.flags & STACKTAP_SAMPLE_MOVED)
		key.marks |= SAMPLE_MOVED;
	if (raw->newest > time && raw->newest - time > TIES_NS)
		key.marks |= SAMPLE_DOUBTFUL;
	/* the module walked through code that was not in its list yet: by the frame pointer */
	if (record->generation && input->user_count > 1 && raw->newest > record->generation)
		key.marks |= SAMPLE_DOUBTFUL;
	memcpy(key.comm, record->comm, strnlen(record->comm, sizeof(key.comm) - 1));
	err = sample_find(aggregator, &key, &sample);
	if (err)
		return err;

	has_values = slot->config.mode == STACKTAP_MODE_FREQ;
	if (sample->count == sample->capacity) {
		err = sample_grow(aggregator, sample, has_values);
		if (err)
			return err;
	}
	/* what the journal has of it so far is all that there is: it is not listed */
	if (sample->count == sample->in_cuts) {
		err = window_reserve(&window->news, window->news_count, &window->news_capacity, sizeof(*window->news));
		if (err)
			return err;
		window->news[window->news_count++] = (uint32_t)(sample - window->samples);
	}
	sample->times[sample->count] = time;
	if (has_values)
		sample->values[sample->count] = record->period;
	sample->count++;
	window_counts_add(&window->counts[slot->position], &key, 1);
	aggregator->oldest = min_of(aggregator->oldest, time);
	aggregator->newest = max_of(aggregator->newest, time);
	aggregator->sample_total++;
	return 0;
}

static void sum_losses(struct window_losses *sum, const struct window_losses *more)
{
	sum->lost += more->lost;
	sum->throttled += more->throttled;
	sum->stalled += more->stalled;
	sum->missed += more->missed;
}

void aggregator_add_losses(struct aggregator *aggregator, uint16_t source_id,
			   const struct window_losses *more)
{
	if (source_id >= ARRAY_SIZE(aggregator->losses))
		return;
	sum_losses(&aggregator->losses[source_id], more);
	sum_losses(&aggregator->all_losses, more);
}

uint64_t aggregator_sample_count(const struct aggregator *aggregator)
{
	return aggregator->sample_total;
}

struct window_losses aggregator_losses(const struct aggregator *aggregator)
{
	return aggregator->all_losses;
}

static void take_losses(struct aggregator *aggregator, struct window *window)
{
	for (size_t i = 0; i < window->profile_count; i++) {
		struct window_counts *counts = &window->counts[i];
		uint16_t id = window->profiles[i].source_id;
		struct window_losses *losses;

		if (!counts->samples || id >= ARRAY_SIZE(aggregator->losses))
			continue;
		losses = &aggregator->losses[id];
		counts->lost = losses->lost;
		counts->throttled = losses->throttled;
		counts->stalled = losses->stalled;
		counts->missed = losses->missed;
		*losses = (struct window_losses){ 0 };
	}
}

int aggregator_close(struct aggregator *aggregator, uint64_t end, struct window **ret_window)
{
	struct window *window = aggregator->window, *next;

	*ret_window = NULL;
	if (!aggregator->sample_total) {
		aggregator->previous_end = max_of(aggregator->previous_end, end);
		return 0;
	}
	next = next_window();
	if (!next)
		return -ENOMEM;

	window->start = aggregator->oldest;
	if (aggregator->previous_end)
		window->start = min_of(window->start, aggregator->previous_end);
	window->end = max_of(end, aggregator->newest + 1);
	window->realtime_offset = clock_realtime_offset();
	window_make_id(window->id);
	take_losses(aggregator, window);
	window->bytes = window->arena.bytes + window->sample_capacity * sizeof(*window->samples) +
			window->location_capacity * sizeof(struct location *) +
			window->news_capacity * sizeof(*window->news) +
			window->profile_capacity *
			(sizeof(*window->profiles) + sizeof(*window->counts));

	index_clear(&aggregator->sample_index);
	memset(aggregator->free_times, 0, sizeof(aggregator->free_times));
	stack_cache_advance(&aggregator->stacks);
	aggregator->window = next;
	aggregator->previous_end = window->end;
	aggregator->oldest = UINT64_MAX;
	aggregator->newest = 0;
	aggregator->sample_total = 0;
	*ret_window = window;
	return 0;
}

struct window *aggregator_window(struct aggregator *aggregator)
{
	return aggregator->window;
}
