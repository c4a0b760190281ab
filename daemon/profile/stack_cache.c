// SPDX-License-Identifier: Apache-2.0
#include "profile/stack_cache.h"

#include <string.h>

void stack_cache_init(struct stack_cache *cache)
{
	location_cache_init(&cache->locations);
	index_init(&cache->raw_index, POOL_AGGREGATE);
	index_init(&cache->stack_index, POOL_AGGREGATE);
}

static size_t arrays_bytes(const struct stack_cache *cache)
{
	return cache->raw_capacity * sizeof(*cache->raws) +
	       cache->stack_capacity * sizeof(struct stack *);
}

size_t stack_cache_bytes(const struct stack_cache *cache)
{
	return arrays_bytes(cache) +
	       ((size_t)cache->raw_index.mask + cache->stack_index.mask) * sizeof(struct index_slot);
}

static void stacks_clear(struct stack_cache *cache)
{
	index_clear(&cache->raw_index);
	index_clear(&cache->stack_index);
	pool_uncharge(POOL_AGGREGATE, arrays_bytes(cache));
	free(cache->raws);
	free(cache->stacks);
	cache->raws = NULL;
	cache->stacks = NULL;
	cache->raw_count = cache->raw_capacity = 0;
	cache->stack_count = cache->stack_capacity = 0;
}

void stack_cache_advance(struct stack_cache *cache)
{
	stacks_clear(cache);
	location_cache_advance(&cache->locations);
}

void stack_cache_free(struct stack_cache *cache)
{
	stacks_clear(cache);
	index_free(&cache->raw_index);
	index_free(&cache->stack_index);
	location_cache_free(&cache->locations);
	if (cache->kernel)
		mapped_file_unref(cache->kernel);
}

static int reserve32(void *array_pointer, uint32_t count, uint32_t *capacity, size_t size)
{
	size_t wide = *capacity;
	int err = window_reserve(array_pointer, count, &wide, size);

	*capacity = (uint32_t)wide;
	return err;
}

/* A frame's Location, listed in the window on its first use there. */
static int frame_location(struct stack_cache *cache, struct window *window,
			  struct mapped_file *file, uint64_t offset, enum frame_type type,
			  bool is_return, struct location **ret_location)
{
	bool is_first;
	int err;

	/* before the Location is marked as used in this window */
	err = window_reserve(&window->locations, window->location_count, &window->location_capacity,
			     sizeof(*window->locations));
	if (err)
		return err;
	err = location_cache_get(&cache->locations, file, offset, type, is_return,
				 ret_location, &is_first);
	if (err == -ENOBUFS && location_cache_evict(&cache->locations))
		err = location_cache_get(&cache->locations, file, offset, type, is_return,
					 ret_location, &is_first);
	if (err)
		return err;
	if (is_first)
		window->locations[window->location_count++] = location_ref(*ret_location);
	return 0;
}

/* What the sample's image had mapped at @address. */
static const struct mapping *find_mapping(const struct sample_input *input, uint64_t address)
{
	if (input->mappings)
		return mapping_find(input->mappings->mappings, input->mappings->count, address);
	return input->image ? image_find_mapping(input->image, address) : NULL;
}

static int user_location(struct stack_cache *cache, struct window *window, struct raw_stack *raw,
			 const struct sample_input *input, uint64_t ip, bool is_return,
			 struct location **ret_location)
{
	const struct mapping *mapping;
	uint64_t offset = ip;

	/* a call may be the last instruction of its mapping */
	mapping = find_mapping(input, is_return && ip ? ip - 1 : ip);
	if (!mapping) {
		raw->marks |= SAMPLE_UNKNOWN_MAPPING;
		return frame_location(cache, window, NULL, ip, FRAME_NATIVE, is_return,
				      ret_location);
	}
	raw->newest = max_of(raw->newest, mapping->since);
	if (mapping->file->kind != OBJECT_ANONYMOUS)
		offset = ip - mapping->start + mapping->file_offset;
	return frame_location(cache, window, mapping->file, offset, FRAME_NATIVE, is_return,
			      ret_location);
}

static uint64_t stack_hash_of(const void *ctx, uint32_t position)
{
	return ((struct stack *const *)ctx)[position]->hash;
}

/* The window's stack of these Locations; processes that run the same code share it. */
static int window_stack(struct stack_cache *cache, struct window *window, uint32_t count,
			struct stack **ret_stack)
{
	size_t bytes = count * sizeof(struct location *);
	struct fingerprint print = fingerprint_start(count);
	struct index_probe probe;
	struct stack *stack;
	uint32_t i;
	int err;

	for (i = 0; i < count; i++)
		fingerprint_mix(&print, (uintptr_t)cache->frames[i], i);
	print = fingerprint_end(print);
	for (probe = index_first(&cache->stack_index, print.lo);
	     (i = index_next(&cache->stack_index, &probe)) != INDEX_NONE;) {
		stack = cache->stacks[i];
		if (stack->hash != print.lo || stack->count != count ||
		    memcmp(stack->locations, cache->frames, bytes))
			continue;
		*ret_stack = stack;
		return 0;
	}

	err = reserve32(&cache->stacks, cache->stack_count, &cache->stack_capacity,
			sizeof(struct stack *));
	if (err)
		return err;
	err = index_reserve(&cache->stack_index, stack_hash_of, cache->stacks);
	if (err)
		return err;
	stack = arena_alloc(&window->arena, sizeof(*stack) + bytes);
	if (!stack)
		return -ENOBUFS;
	stack->hash = print.lo;
	stack->count = count;
	memcpy(stack->locations, cache->frames, bytes);
	index_insert(&cache->stack_index, print.lo, cache->stack_count);
	cache->stacks[cache->stack_count++] = stack;
	*ret_stack = stack;
	return 0;
}

static uint64_t raw_hash_of(const void *ctx, uint32_t position)
{
	return ((const struct raw_stack *)ctx)[position].print.lo;
}

static int raw_resolve(struct stack_cache *cache, struct window *window,
		       const struct sample_input *input, struct fingerprint print,
		       uint32_t *ret_position)
{
	uint32_t kernel_count = min_of(input->kernel_count, (uint32_t)STACKTAP_MAX_KERNEL_FRAMES);
	uint32_t user_count = min_of(input->user_count, (uint32_t)STACKTAP_MAX_USER_FRAMES);
	struct raw_stack raw = { .print = print };
	uint32_t i, exact = 0;
	int err;

	for (i = 0; i < kernel_count; i++) {
		err = frame_location(cache, window, cache->kernel, input->kernel_ips[i],
				     FRAME_KERNEL, i > 0, &cache->frames[i]);
		if (err)
			return err;
	}
	for (i = 0; i < user_count; i++) {
		bool is_exact = exact < input->exact_count && input->exact[exact] == i;

		exact += is_exact;
		err = user_location(cache, window, &raw, input, input->user_ips[i],
				    i > 0 && !is_exact, &cache->frames[kernel_count + i]);
		if (err)
			return err;
	}
	err = window_stack(cache, window, kernel_count + user_count, &raw.stack);
	if (err)
		return err;
	err = reserve32(&cache->raws, cache->raw_count, &cache->raw_capacity, sizeof(raw));
	if (err)
		return err;
	err = index_reserve(&cache->raw_index, raw_hash_of, cache->raws);
	if (err)
		return err;
	index_insert(&cache->raw_index, print.lo, cache->raw_count);
	cache->raws[cache->raw_count] = raw;
	*ret_position = cache->raw_count++;
	return 0;
}

int stack_cache_find(struct stack_cache *cache, struct window *window,
		     const struct sample_input *input, const struct raw_stack **ret_raw)
{
	/* generations tell one state of an image's mapping list from the next */
	struct fingerprint print = fingerprint_start((uintptr_t)input->image);
	struct index_probe probe;
	uint64_t generation = 0;
	uint32_t i;
	int err;

	if (input->mappings)
		generation = input->mappings->generation;
	else if (input->image)
		generation = input->image->generation;
	fingerprint_mix(&print, generation,
			(uint64_t)input->kernel_count << 32 | input->user_count);
	fingerprint_words(&print, input->kernel_ips, input->kernel_count);
	fingerprint_words(&print, input->user_ips, input->user_count);
	for (i = 0; i < input->exact_count; i++)
		fingerprint_mix(&print, input->exact[i], input->exact_count);
	print = fingerprint_end(print);
	for (probe = index_first(&cache->raw_index, print.lo);
	     (i = index_next(&cache->raw_index, &probe)) != INDEX_NONE;)
		if (cache->raws[i].print.lo == print.lo && cache->raws[i].print.hi == print.hi)
			goto found;
	err = raw_resolve(cache, window, input, print, &i);
	if (err)
		return err;
found:
	*ret_raw = &cache->raws[i];
	return 0;
}
