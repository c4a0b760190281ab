// SPDX-License-Identifier: Apache-2.0
#include "profile/window.h"

#include <string.h>

/* Threads A and C: A gives up a window before C sees it, so nothing here needs a lock. */
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
		      window->profile_capacity *
		      (sizeof(*window->profiles) + sizeof(*window->counts)));
	free(window->samples);
	free(window->locations);
	free(window->profiles);
	free(window->counts);
	arena_free(&window->arena);
	free(window);
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
