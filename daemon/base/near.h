/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody who mistyped a name may have meant. */
#ifndef STACKTAP_BASE_NEAR_H
#define STACKTAP_BASE_NEAR_H

#include <stdbool.h>

enum { NEAR_LENGTH_MAX = 128 };

/*
 * How many letters must be changed, added or removed (Levenshtein), of whatever case. Of names longer than
 * NEAR_LENGTH_MAX the beginning counts.
 */
unsigned int near_distance(const char *a, const char *b);

/* The nearest of the names that it is shown; the first of equals. */
struct near {
	const char *wanted, *nearest;
	unsigned int distance;
};

struct near near_to(const char *wanted);
void near_see(struct near *near, const char *name);
const char *near_best(const struct near *near);	/* NULL: none that helps */

/* A suggestion that shares hardly a letter helps nobody. */
bool near_helps(const char *wanted, unsigned int distance);

#endif /* STACKTAP_BASE_NEAR_H */
