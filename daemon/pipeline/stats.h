/* SPDX-License-Identifier: Apache-2.0 */
/* What a pipeline has done and lost so far. */
#ifndef STACKTAP_PIPELINE_STATS_H
#define STACKTAP_PIPELINE_STATS_H

#include "capture/stats.h"
#include "pipeline/drain.h"
#include "profile/window.h"
#include "resolve/absent.h"
#include "resolve/loader.h"
#include "resolve/symbolizer.h"

enum pipeline_thread {
	THREAD_DRAIN,
	THREAD_NAMES,
	THREAD_EXPORT,
	THREAD_JOURNAL,
	PIPELINE_THREADS,
};

extern const char *const pipeline_thread_names[PIPELINE_THREADS];

struct pipeline_stats {
	uint64_t thread_ns[PIPELINE_THREADS];	/* CPU time; of one that is not there 0 */
	struct capture_stats capture;
	struct symbolizer_stats symbolizer;
	struct loader_stats loader;
	struct drain_stats drain;	/* its losses are those of @counts and of windows that are not done */
	struct absent_stats absent;
	bool has_tables;		/* the loader is at work */
	bool has_deferred;			/* and the module sends slices */
	struct window_counts counts;	/* all windows so far */
	uint64_t samples_dropped; /* of the counts: neither encoded nor taken by the sink */
	uint64_t windows;
	uint64_t windows_dropped; /* out of memory only; a full queue stops the drain instead */
	uint64_t payloads, scans;
	uint64_t hurries;	/* times that names were not waited for, for want of memory for windows */
	uint64_t unannounced;	/* programs and files that thread B was too busy to be told of */
	uint64_t parts;		/* of windows, for the journal */
	uint64_t parts_refused;	/* not made or not written */
	uint64_t parts_samples_refused;	/* in these */
	uint64_t parts_cpu_ns;	/* of making and writing them, threads A and D */
	/*
	 * For how long each thread has been at one piece of work, thread A at one round, thread B at one file, list or
	 * window; 0: it waits for one.
	 */
	uint64_t busy_ns[PIPELINE_THREADS];
};

#endif /* STACKTAP_PIPELINE_STATS_H */
