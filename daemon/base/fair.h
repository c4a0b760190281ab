/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A credit that several draw on. Within 15 seconds nobody takes more than what is then left for all others, so that
 * who wants everything gets half of it at first, and what grows back later. Each has two slots, in other places every
 * time: what is in both is at least what it took, and more only where others came to both. One thread's.
 */
#ifndef STACKTAP_BASE_FAIR_H
#define STACKTAP_BASE_FAIR_H

#include "base/credit.h"

enum { FAIR_SLOTS = 512 };

struct fair {
	struct credit credit;
	uint64_t window;		/* counted from the clock's beginning */
	uint64_t spent[2][FAIR_SLOTS];	/* ns in this window */
};

void fair_init(struct fair *fair, uint64_t limit, unsigned int part, uint64_t now);

/* May @who cause more work? */
bool fair_may(struct fair *fair, uint32_t who, uint64_t now);
/* What it took in this window. */
uint64_t fair_spent(struct fair *fair, uint32_t who, uint64_t now);
/*
 * From @began to @now it caused some, and @starved ns of that nobody had a CPU for it: that is not its doing. Half of the
 * time it pays for in any case, for others wait for all of it, and who wants to can keep CPUs busy.
 */
void fair_spend(struct fair *fair, uint32_t who, uint64_t began, uint64_t now, uint64_t starved);

#endif /* STACKTAP_BASE_FAIR_H */
