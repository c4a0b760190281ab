// SPDX-License-Identifier: Apache-2.0
#include "base/near.h"

#include <ctype.h>
#include <string.h>

#include "base/macro.h"

unsigned int near_distance(const char *a, const char *b)
{
	size_t rows = strnlen(a, NEAR_LENGTH_MAX), columns = strnlen(b, NEAR_LENGTH_MAX);
	unsigned int row[NEAR_LENGTH_MAX + 1];

	for (size_t j = 0; j <= columns; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; i <= rows; i++) {
		unsigned int diagonal = row[0];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= columns; j++) {
			unsigned int same = tolower((unsigned char)a[i - 1]) !=
					    tolower((unsigned char)b[j - 1]);
			unsigned int best = min_of(row[j], row[j - 1]) + 1;

			best = min_of(best, diagonal + same);
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[columns];
}

bool near_helps(const char *wanted, unsigned int distance)
{
	return distance * 2 <= strnlen(wanted, NEAR_LENGTH_MAX);
}

struct near near_to(const char *wanted)
{
	return (struct near){ .wanted = wanted, .distance = NEAR_LENGTH_MAX };
}

void near_see(struct near *near, const char *name)
{
	const unsigned int distance = near_distance(name, near->wanted);

	if (distance >= near->distance)
		return;
	near->distance = distance;
	near->nearest = name;
}

const char *near_best(const struct near *near)
{
	return near->nearest && near_helps(near->wanted, near->distance) ? near->nearest : NULL;
}
