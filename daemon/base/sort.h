/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorting many items by a number that each has: digit by digit (LSD radix sort), which takes a tenth of qsort()'s
 * instructions for ten thousand. In a header, so that the size of an item and where its number is are known to the
 * compiler.
 */
#ifndef STACKTAP_BASE_SORT_H
#define STACKTAP_BASE_SORT_H

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

enum {
	SORT_DIGIT_BITS = 11,
	SORT_DIGITS = 1 << SORT_DIGIT_BITS,
	SORT_FEW = 64,		/* not worth the counting */
};

typedef uint64_t (*sort_number_fn)(const void *item);

struct sort_range {
	uint64_t min, max;
	bool is_sorted;
};

static inline __attribute__((always_inline)) struct sort_range sort_look(const void *items, size_t count, size_t size,
									 sort_number_fn number)
{
	struct sort_range range = { .min = UINT64_MAX, .is_sorted = true };
	uint64_t last = 0;

	for (size_t i = 0; i < count; i++) {
		const uint64_t now = number((const char *)items + i * size);

		range.is_sorted &= now >= last;
		range.min = min_of(range.min, now);
		range.max = max_of(range.max, now);
		last = now;
	}
	return range;
}

/* One digit, which keeps the order of items where it is the same. */
static inline __attribute__((always_inline)) void sort_digit(const char *from, char *to, size_t count, size_t size,
							     sort_number_fn number, uint64_t min, unsigned int shift)
{
	size_t places[SORT_DIGITS] = { 0 }, place = 0;

	for (size_t i = 0; i < count; i++)
		places[(number(from + i * size) - min) >> shift & (SORT_DIGITS - 1)]++;
	for (size_t i = 0; i < SORT_DIGITS; i++) {
		const size_t next = place + places[i];

		places[i] = place;
		place = next;
	}
	for (size_t i = 0; i < count; i++) {
		const char *item = from + i * size;

		memcpy(to + places[(number(item) - min) >> shift & (SORT_DIGITS - 1)]++ * size, item, size);
	}
}

/* As qsort() by @compare, whose order is that of @number where that differs. */
static inline __attribute__((always_inline)) void sort_items(void *items, size_t count, size_t size,
							     sort_number_fn number,
							     int (*compare)(const void *a, const void *b))
{
	const struct sort_range range = sort_look(items, count, size, number);
	const uint64_t span = range.max - range.min;
	char *spare = range.is_sorted || count < SORT_FEW ? NULL : malloc(count * size);
	char *from = items, *to = spare, *other;

	if (!range.is_sorted && !spare) {
		qsort(items, count, size, compare);
		return;
	}
	for (unsigned int shift = 0; spare && shift < 64 && span >> shift; shift += SORT_DIGIT_BITS) {
		sort_digit(from, to, count, size, number, range.min, shift);
		other = from;
		from = to;
		to = other;
	}
	if (spare && from == spare)
		memcpy(items, spare, count * size);
	free(spare);
	for (size_t i = 0, end; i < count; i = end) {
		char *first = (char *)items + i * size;

		for (end = i + 1; end < count && number((char *)items + end * size) == number(first);)
			end++;
		if (end - i > 1)
			qsort(first, end - i, size, compare);
	}
}

#endif /* STACKTAP_BASE_SORT_H */
