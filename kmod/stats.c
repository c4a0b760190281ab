// SPDX-License-Identifier: GPL-2.0-only
#include "stats.h"

void st_stats_read(const struct stacktap_counter *counter, struct stacktap_counts *ret_counts)
{
	unsigned int i;

	ret_counts->calls = local64_read(&counter->calls);
	ret_counts->recorded = local64_read(&counter->recorded);
	ret_counts->filtered = local64_read(&counter->filtered);
	ret_counts->throttled = local64_read(&counter->throttled);
	ret_counts->moved = local64_read(&counter->moved);
	ret_counts->stale = local64_read(&counter->stale);
	for (i = 0; i < STACKTAP_LOST_REASONS; i++)
		ret_counts->lost[i] = local64_read(&counter->lost[i]);
	for (i = 0; i < STACKTAP_END_REASONS; i++) {
		ret_counts->kernel_end[i] = local64_read(&counter->kernel_end[i]);
		ret_counts->user_end[i] = local64_read(&counter->user_end[i]);
	}
}
