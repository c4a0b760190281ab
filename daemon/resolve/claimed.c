// SPDX-License-Identifier: Apache-2.0
#include "resolve/claimed.h"

#include <stdlib.h>

static bool is_claimable(const struct location *location)
{
	return !location->is_resolved && !location->is_claimed && location->type == FRAME_NATIVE &&
	       location->file && location->file->kind == OBJECT_ANONYMOUS;
}

/* Such memory is one image's, so one sample tells whose. Runtimes are known by what their code is called by. */
static size_t claim(struct jits *jits, const struct window *window, struct claimed *claimed)
{
	size_t count = 0;

	for (size_t i = 0; i < window->sample_count; i++) {
		const struct window_sample *sample = &window->samples[i];
		struct jit *jit = NULL;

		for (uint32_t j = 0; sample->image && j < sample->stack->count; j++) {
			struct location *location = sample->stack->locations[j];

			if (jit && location->file && location->file->kind == OBJECT_FILE)
				jit_sees_library(jit, location->file->path);
			if (!is_claimable(location))
				continue;
			jit = jits_want(jits, sample->image);
			location->is_claimed = true;
			location->is_refused = !jit;
			if (jit)
				claimed[count++] = (struct claimed){ location, jit };
		}
	}
	return count;
}

/* Addresses in one function come after each other: it is asked for once. */
static int compare_claimed(const void *a, const void *b)
{
	const struct claimed *x = a, *y = b;

	if (x->jit != y->jit)
		return jit_compare(x->jit, y->jit);
	return (x->location->offset > y->location->offset) - (x->location->offset < y->location->offset);
}

size_t claimed_find(struct jits *jits, const struct window *window, const struct deadline *deadline,
		    struct claimed **ret_claimed)
{
	struct claimed *claimed;
	size_t count = 0;

	*ret_claimed = NULL;
	for (size_t i = 0; i < window->location_count; i++)
		count += is_claimable(window->locations[i]);
	if (!count)
		return 0;
	claimed = malloc(count * sizeof(*claimed));
	if (!claimed)
		return 0;
	jits_begin(jits, deadline);
	count = claim(jits, window, claimed);
	jits_refresh(jits);
	qsort(claimed, count, sizeof(*claimed), compare_claimed);
	*ret_claimed = claimed;
	return count;
}
