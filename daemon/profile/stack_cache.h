/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From addresses to stacks of Locations: a stack seen before in the open window costs one hash and
 * one look-up, whatever its depth.
 */
#ifndef STACKTAP_PROFILE_STACK_CACHE_H
#define STACKTAP_PROFILE_STACK_CACHE_H

#include "base/fingerprint.h"
#include "base/index.h"
#include "profile/location_cache.h"
#include "profile/window.h"

/* A stack as the kernel sent it, known by 128 bits of keyed hash; never compared in full. */
struct raw_stack {
	struct fingerprint print;
	struct stack *stack;
	uint64_t newest;	/* since of the newest mapping it was resolved with */
	uint16_t marks;
};

struct stack_cache {
	struct location_cache locations;
	struct mapped_file *kernel;	/* owned; file of all kernel Locations */
	struct raw_stack *raws;
	uint32_t raw_count, raw_capacity;
	struct stack **stacks;		/* the window's, each once */
	uint32_t stack_count, stack_capacity;
	struct index raw_index, stack_index;
	struct location *frames[STACKTAP_MAX_KERNEL_FRAMES + STACKTAP_MAX_USER_FRAMES];
};

void stack_cache_init(struct stack_cache *cache);
void stack_cache_free(struct stack_cache *cache);

/* Valid until the next call. -ENOBUFS: out of pool memory. */
int stack_cache_find(struct stack_cache *cache, struct window *window,
		     const struct sample_input *input, const struct raw_stack **ret_raw);
/* The next window begins: keep Locations, forget stacks. */
void stack_cache_advance(struct stack_cache *cache);
/* What the open window's stacks cost here, beside the window itself. */
size_t stack_cache_bytes(const struct stack_cache *cache);

#endif /* STACKTAP_PROFILE_STACK_CACHE_H */
