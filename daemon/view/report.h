/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file of OTLP profiles says: the hottest functions per process. A file that was cut off is read up to
 * its last whole message, and says so in `is_cut`. Weights, not samples, are what shares are made of.
 */
#ifndef STACKTAP_VIEW_REPORT_H
#define STACKTAP_VIEW_REPORT_H

#include "view/reader.h"

/* How sure a share is, see view/significance.h. */
struct report_error {
	float error95;		/* half of its 95 % interval, 1 is all; below 0: not known */
	float phi;		/* its variance factor; 0: not known */
};

struct report_function {
	const char *name;	/* without a name: see reader_new() */
	const char *file;	/* file name of the mapping, "" when unknown */
	const char *source;	/* with lines: the function's source, "" when unknown; else NULL */
	uint64_t line;		/* of it; 0: unknown */
	bool is_kernel;
	bool is_named;
	uint64_t self, total;	/* weight as leaf, weight anywhere in the stack */
	uint64_t self_samples;
	struct report_error self_error, total_error;	/* of the shares of its process */
};

struct report_process {
	uint32_t pid;		/* 0: the kernel's own threads and idle */
	const char *name;
	const char *container_id, *service_name, *cgroup; /* "" when unknown */
	uint64_t samples, weight;
	struct report_error error;	/* of the share of its event */
	struct report_function *functions; /* by self, descending */
	size_t function_count;
};

/* One kind of event; files hold one unless several were recorded. */
struct report_event {
	const char *source;	/* as the user named it, or the sample type */
	const char *event;	/* what really counted, see fallback_errno; may equal source */
	const char *unit;	/* of weights: "nanoseconds", "count" */
	uint32_t fallback_errno;
	bool is_default;	/* see struct model_event */
	uint64_t samples, weight;
	uint64_t drawn;		/* of whole Profiles, see struct view_profile */
	struct view_quality quality;	/* samples; of whole Profiles, as they tell */
	bool has_quality;	/* written by stacktap: the line above is known */
	struct report_process *processes; /* by weight, descending */
	size_t process_count;
};

/* Why errors of shares are not known. */
enum report_without {
	REPORT_ALL_ERRORS,
	REPORT_NO_PASS,		/* no copy, or no memory, for the second pass */
	REPORT_CHANGED,		/* that of some processes found less than the first pass */
};

struct report {
	struct report_event *events; /* one that is_default first, then by samples, descending */
	size_t event_count;
	uint64_t messages, bytes;
	uint64_t start, end;	/* Unix ns, of all profiles */
	bool is_cut;		/* the last message is cut off and left out */
	enum report_without without_errors;
	int copy_errno;		/* why there was no second pass; 0: see above */
};

enum report_detail {
	REPORT_FUNCTIONS,
	REPORT_ADDRESSES,	/* of what has no name one row per address, not per mapping or function */
	REPORT_LINES,		/* a row for each line of a function */
};

/* Shares whose errors take slices, those with the most samples: there may be millions. */
enum { REPORT_TESTED_MAX = 65536 };

void report_free(struct report *report);
/* All of it, of each process @limit functions (0: all). */
void report_json(const struct report *report, const char *path, uint64_t limit, FILE *file);

#endif /* STACKTAP_VIEW_REPORT_H */
