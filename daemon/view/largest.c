// SPDX-License-Identifier: Apache-2.0
#include "view/largest.h"

#include <math.h>

void largest_init(struct largest *largest, double base)
{
	*largest = (struct largest){ .base = base };
}

void largest_count(struct largest *largest, double value)
{
	if (value >= largest->base)
		largest->counts[min_of((size_t)(LARGEST_STEPS * log2(value / largest->base)),
				       ARRAY_SIZE(largest->counts) - 1)]++;
}

void largest_choose(struct largest *largest, size_t most)
{
	size_t sum = 0, step = ARRAY_SIZE(largest->counts);

	while (step && sum + largest->counts[step - 1] <= most)
		sum += largest->counts[--step];
	largest->full = largest->base * exp2((double)step / LARGEST_STEPS);
	largest->least = largest->base * exp2((double)(step ? step - 1 : 0) / LARGEST_STEPS);
	largest->room = most - sum;
}

bool largest_take(struct largest *largest, double value)
{
	if (value >= largest->full)
		return true;
	if (value < largest->least || !largest->room)
		return false;
	largest->room--;
	return true;
}
