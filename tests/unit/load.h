/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The load of a large host, made of what a recording has: processes come and go, each of them a copy of one of
 * the recording's, with its files and its stacks by their weights. Side-band events and ring records, as the
 * kernel would write them, into a drain, round by round, by a clock of its own. The same options make the same
 * load, unless the recording's files on this host change.
 *
 * A CPU runs a process for some samples and then another one, the hotter ones more often; one sample in five is the
 * kernel's own. What a ring would have no room for until the drain is back comes as LOST, as the module says it.
 */
#ifndef STACKTAP_TESTS_LOAD_H
#define STACKTAP_TESTS_LOAD_H

#include "pipeline/drain.h"

struct load_options {
	const char *recording;	/* OTLP; one stack of user space at least */
	uint32_t cpus, rate_hz;
	uint32_t processes;	/* at any time */
	uint32_t lifetime_s;	/* of each, on average */
	uint32_t ring_bytes;	/* of each CPU */
};

struct load_stats {
	uint64_t samples;	/* in ring records */
	uint64_t lost;		/* as LOST records say */
	uint64_t started;	/* processes */
	uint64_t drain_ns;	/* CPU time of what was called in the drain */
	uint64_t templates, stacks, files;
};

struct load;

/* -ENODATA: there is nothing in it. */
int load_new(const struct load_options *options, struct load **ret_load);
void load_free(struct load *load);
/*
 * What comes in the next @ms, by side band, then by the rings. *ret_time, its end, is what drain_round() is to be
 * called with.
 */
int load_round(struct load *load, struct drain *drain, uint32_t ms, uint64_t *ret_time);
const struct load_stats *load_stats(const struct load *load);

#endif /* STACKTAP_TESTS_LOAD_H */
