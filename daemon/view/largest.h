/* SPDX-License-Identifier: Apache-2.0 */
/*
 * So many of the largest of many values, without sorting them: they are counted by eighths of octaves, of which the last
 * is taken in part, the first of it.
 */
#ifndef STACKTAP_VIEW_LARGEST_H
#define STACKTAP_VIEW_LARGEST_H

#include "base/macro.h"

enum {
	LARGEST_STEPS = 8,	/* of an octave */
	LARGEST_OCTAVES = 64,
};

struct largest {
	double base;		/* what is less is none of them */
	size_t counts[LARGEST_STEPS * LARGEST_OCTAVES];

	/* once they are chosen: all of @full, and the first @room of those that have @least */
	double full, least;
	size_t room;
};

void largest_init(struct largest *largest, double base);
/* Each value; then how many there may be; then each value in the same order as it is asked for. */
void largest_count(struct largest *largest, double value);
void largest_choose(struct largest *largest, size_t most);
bool largest_take(struct largest *largest, double value);

#endif /* STACKTAP_VIEW_LARGEST_H */
