/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The errors of a report's shares. When its sums are known, so is which shares have samples enough for slices; what
 * ran in each of these is added up by a second pass over the same messages. Slices of a process are of the time that
 * it has samples of. Memory is charged to POOL_REPORT.
 */
#ifndef STACKTAP_VIEW_REPORT_SLICES_H
#define STACKTAP_VIEW_REPORT_SLICES_H

#include "view/report_tables.h"
#include "view/significance.h"

enum report_share {
	REPORT_SELF,
	REPORT_TOTAL,
	REPORT_SHARES,
};

/* Of a process: UINT32_MAX is none. */
struct process_slices {
	double weight;		/* of the second pass */
	uint64_t used;		/* a bit for each slice that has samples */
	uint32_t own;		/* all of the process */
	uint32_t part;		/* the same, in slices of its event */
};

struct report_slices {
	const struct report_tables *tables;
	uint32_t (*functions)[REPORT_SHARES];	/* of each row the number of its slices */
	struct process_slices *processes;
	double (*events)[SLICES], (*tested)[SLICES];
	uint32_t count;			/* of the last */
	size_t bytes;

	/* of the Sample at hand */
	uint64_t at;			/* a bit for each slice that it is in */
	double weights[SLICES];		/* of these alone */
};

/* Of a share as share_error() has it. */
struct report_error report_error_of(const struct sliced *sliced, double part, double phi);
/* What a Sample adds to the whole that it is of. */
void report_whole_add(struct report_whole *whole, const struct view_profile *profile,
		      const struct view_sample *sample);

/* -E2BIG. @tables stay as they are until it is done. */
int report_slices_init(struct report_slices *slices, const struct report_tables *tables);
void report_slices_done(struct report_slices *slices);
/* Is there anything to add up? */
bool report_slices_needed(const struct report_slices *slices);
/* A Sample of a process, then its frames' functions; false: these are not needed. */
bool report_slices_sample(struct report_slices *slices, uint32_t process,
			  const struct view_sample *sample);
void report_slices_function(struct report_slices *slices, uint32_t function, enum report_share share);
/*
 * Into the rows; false: of some the second pass had less than 90 % of their weight, so that their errors are not known.
 * Without memory for slices no errors are known but of what has no times.
 */
bool report_slices_measure(const struct report_slices *slices);

#endif /* STACKTAP_VIEW_REPORT_SLICES_H */
