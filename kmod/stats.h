/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_STATS_H
#define STACKTAP_KMOD_STATS_H

#include "cpu.h"

/* A reading of one counter; while it runs the parts may be a few overflows apart. */
struct stacktap_counts {
	u64 calls;
	u64 recorded;
	u64 filtered;
	u64 throttled;
	u64 moved;
	u64 stale;
	u64 lost[STACKTAP_LOST_REASONS];
	u64 kernel_end[STACKTAP_END_REASONS];
	u64 user_end[STACKTAP_END_REASONS];
};

void st_stats_read(const struct stacktap_counter *counter, struct stacktap_counts *ret_counts);

#endif /* STACKTAP_KMOD_STATS_H */
