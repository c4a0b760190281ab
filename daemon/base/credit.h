/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A share of the time for work that others cause: what it takes is paid from a credit that grows with the
 * clock, so that whatever they come up with, the rest of the time is left. One thread's.
 */
#ifndef STACKTAP_BASE_CREDIT_H
#define STACKTAP_BASE_CREDIT_H

#include "base/macro.h"

struct credit {
	uint64_t limit;		/* ns that are saved up at most, and there are at first */
	unsigned int part;	/* one in so many ns of the time is added */
	int64_t left;		/* ns; below 0: more was spent than there was, which is paid off first */
	uint64_t at;		/* when that was */
};

static inline void credit_init(struct credit *credit, uint64_t limit, unsigned int part, uint64_t now)
{
	*credit = (struct credit){ .limit = limit, .part = part, .left = (int64_t)limit, .at = now };
}

/* What is left at @now. */
static inline uint64_t credit_left(struct credit *credit, uint64_t now)
{
	credit->left = min_of(credit->left + (int64_t)((now - credit->at) / credit->part),
			      (int64_t)credit->limit);
	credit->at = now;
	return credit->left > 0 ? (uint64_t)credit->left : 0;
}

/* From @began to @now was spent, during which nothing is added. */
static inline void credit_spend(struct credit *credit, uint64_t began, uint64_t now)
{
	credit->left -= (int64_t)(now - began);
	credit->at = now;
}

/* Something cost @ns, whatever the clock says. */
static inline void credit_charge(struct credit *credit, uint64_t ns)
{
	credit->left -= (int64_t)ns;
}

#endif /* STACKTAP_BASE_CREDIT_H */
