// SPDX-License-Identifier: Apache-2.0
#include "profile/part.h"

#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

void window_make_id(struct window *window)
{
	do {
		if (getrandom(window->id, sizeof(window->id), 0) < 0)
			memset(window->id, 0x5a, sizeof(window->id));
	} while (!window->id[0]);
}

static uint64_t *copy_words(struct arena *arena, const uint64_t *words, size_t count)
{
	uint64_t *copy = arena_alloc(arena, count * sizeof(*copy));

	if (copy)
		memcpy(copy, words, count * sizeof(*copy));
	return copy;
}

/* The open window's lists of times move as they grow. */
static int copy_sample(struct window *part, const struct window_sample *sample)
{
	struct window_sample *copy = &part->samples[part->sample_count];
	const uint32_t first = sample->in_parts;

	*copy = *sample;
	copy->in_parts = 0;
	copy->count = copy->capacity = sample->count - first;
	copy->times = copy_words(&part->arena, sample->times + first, copy->count);
	if (sample->values)
		copy->values = copy_words(&part->arena, sample->values + first, copy->count);
	if (!copy->times || (sample->values && !copy->values))
		return -ENOBUFS;
	if (copy->image)
		image_ref(copy->image);
	part->sample_count++;
	window_counts_add(&part->counts[copy->profile], copy, copy->count);
	for (uint32_t i = 0; i < copy->count; i++) {
		part->start = min_of(part->start, copy->times[i]);
		part->end = max_of(part->end, copy->times[i] + 1);
	}
	return 0;
}

static int copy_profiles(struct window *part, const struct window *window)
{
	const size_t count = window->profile_count;
	const size_t bytes = sizeof(*part->profiles) + sizeof(*part->counts);

	if (!pool_charge(POOL_AGGREGATE, count * bytes))
		return -ENOBUFS;
	part->profile_capacity = part->profile_count = count;
	part->profiles = calloc(count, sizeof(*part->profiles));
	part->counts = calloc(count, sizeof(*part->counts));
	if (!part->profiles || !part->counts)
		return -ENOMEM;
	memcpy(part->profiles, window->profiles, count * sizeof(*part->profiles));
	return 0;
}

static int copy_samples(struct window *part, const struct window *window, size_t count)
{
	int err = 0;

	if (!pool_charge(POOL_AGGREGATE, count * sizeof(*part->samples)))
		return -ENOBUFS;
	part->sample_capacity = count;
	part->samples = calloc(count, sizeof(*part->samples));
	if (!part->samples)
		return -ENOMEM;
	for (size_t i = 0; !err && i < window->sample_count; i++)
		if (window->samples[i].count > window->samples[i].in_parts)
			err = copy_sample(part, &window->samples[i]);
	return err;
}

int window_part(struct window *window, struct window **ret_part)
{
	struct window *part;
	size_t count = 0;
	int err;

	*ret_part = NULL;
	for (size_t i = 0; i < window->sample_count; i++)
		count += window->samples[i].count > window->samples[i].in_parts;
	if (!count)
		return 0;
	part = window_new(window->number);
	if (!part)
		return -ENOMEM;
	part->start = UINT64_MAX;
	part->realtime_offset = clock_realtime_offset();
	window_make_id(part);
	err = copy_profiles(part, window) ?: copy_samples(part, window, count);
	if (err) {
		window_free(part);
		return err;
	}
	/* its stacks and Locations are kept by the window */
	atomic_fetch_add_explicit(&window->refs, 1, memory_order_relaxed);
	part->whole = window;
	for (size_t i = 0; i < window->sample_count; i++)
		window->samples[i].in_parts = window->samples[i].count;
	*ret_part = part;
	return 0;
}
