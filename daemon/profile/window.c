// SPDX-License-Identifier: Apache-2.0
#include "profile/window.h"

#include <string.h>
#include <sys/random.h>

struct window *window_new(uint64_t number)
{
	struct window *window = calloc(1, sizeof(*window));

	if (!window)
		return NULL;
	arena_init(&window->arena, POOL_AGGREGATE);
	window->number = number;
	return window;
}

void window_make_id(uint8_t ret_id[16])
{
	do {
		if (getrandom(ret_id, 16, 0) < 0)
			memset(ret_id, 0x5a, 16);
	} while (!ret_id[0]);
}

void window_free(struct window *window)
{
	if (!window)
		return;
	for (size_t i = 0; i < window->sample_count; i++)
		image_unref(window->samples[i].image);
	for (size_t i = 0; i < window->location_count; i++)
		location_unref(window->locations[i]);
	pool_uncharge(POOL_AGGREGATE,
		      window->sample_capacity * sizeof(*window->samples) +
		      window->location_capacity * sizeof(struct location *) +
		      window->news_capacity * sizeof(*window->news) +
		      window->profile_capacity *
		      (sizeof(*window->profiles) + sizeof(*window->counts)));
	free(window->samples);
	free(window->locations);
	free(window->news);
	free(window->profiles);
	free(window->counts);
	arena_free(&window->arena);
	free(window);
}

void window_counts_add(struct window_counts *counts, const struct window_sample *sample,
		       uint64_t count)
{
	counts->samples += count;
	if (sample->kernel_end <= STACKTAP_END_COMPLETE &&
	    sample->user_end <= STACKTAP_END_COMPLETE)
		counts->complete += count;
	if (sample->marks & (SAMPLE_STALE | SAMPLE_DOUBTFUL) ||
	    sample->user_end == STACKTAP_END_STALE || sample->kernel_end == STACKTAP_END_STALE)
		counts->stale += count;
	if (sample->marks & SAMPLE_MOVED)
		counts->moved += count;
	if (sample->marks & SAMPLE_DEFERRED)
		counts->deferred += count;
	if (sample->marks & SAMPLE_DEFERRED_REFUSED)
		counts->deferred_refused += count;
	if (sample->marks & SAMPLE_DEFERRED_EXPIRED)
		counts->deferred_expired += count;
	if (sample->marks & SAMPLE_DEFERRED_FAILED)
		counts->deferred_failed += count;
	counts->user_end[sample->user_end] += count;
}

enum naming stack_naming(const struct stack *stack)
{
	enum naming worst = NAMING_NAME;

	for (uint32_t i = 0; i < stack->count && worst != NAMING_NONE; i++)
		worst = min_of(worst, location_naming(stack->locations[i]));
	return worst;
}

bool stack_is_late(const struct stack *stack)
{
	for (uint32_t i = 0; i < stack->count; i++)
		if (location_lacks_time(stack->locations[i]))
			return true;
	return false;
}

void window_counts_add_named(struct window_counts *counts, enum naming naming, uint64_t count)
{
	if (naming == NAMING_NAME)
		counts->named += count;
	else if (naming == NAMING_RANGE)
		counts->by_range += count;
}

void window_counts_sum(struct window_counts *sum, const struct window_counts *more)
{
	uint64_t *to = (uint64_t *)(void *)sum;
	const uint64_t *from = (const uint64_t *)(const void *)more;

	/* nothing but counts is in it */
	for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
}

int window_reserve(void *array_pointer, size_t count, size_t *capacity, size_t size)
{
	size_t more = *capacity ? *capacity + *capacity / 2 : 64;
	size_t bytes = (more - *capacity) * size;
	void *array, *grown;

	if (count < *capacity)
		return 0;
	if (!pool_charge(POOL_AGGREGATE, bytes))
		return -ENOBUFS;
	/* a pointer to any type: copied, because it cannot be dereferenced as one to void */
	memcpy(&array, array_pointer, sizeof(array));
	grown = reallocarray(array, more, size);
	if (!grown) {
		pool_uncharge(POOL_AGGREGATE, bytes);
		return -ENOMEM;
	}
	memcpy(array_pointer, &grown, sizeof(grown));
	*capacity = more;
	return 0;
}
