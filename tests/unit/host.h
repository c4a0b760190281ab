/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon's threads beside a load (load.h) in place of a module: windows are named, encoded and compressed, and
 * its journal is written to a directory. The clock is the load's: an hour takes as long as the work in it.
 */
#ifndef STACKTAP_TESTS_HOST_H
#define STACKTAP_TESTS_HOST_H

#include "export/journal.h"
#include "load.h"
#include "pipeline/pipeline.h"

struct host_options {
	struct load_options load;
	uint32_t seconds;		/* of the load's clock */
	bool is_paced;			/* while the drain is busy more comes, as long as that takes here */
	const char *directory;		/* for the journal; NULL: without one */
};

struct host_result {
	struct load_stats load;
	struct pipeline_stats pipeline;
	struct journal_stats journal;
	uint64_t samples, raw_bytes, gzip_bytes;	/* of the payloads */
	uint64_t drain_ns, names_ns, export_ns, journal_thread_ns; /* CPU time of threads A, B, C, D; A's without the load */
	size_t pool_bytes;		/* the most that the pools held, each at its own time, */
	size_t pool_limits;		/* and may hold */
	size_t resident;		/* the most, with the load's own */
};

int host_run(const struct host_options *options, struct host_result *ret_result);

#endif /* STACKTAP_TESTS_HOST_H */
