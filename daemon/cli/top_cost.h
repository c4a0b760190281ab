/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stacktap itself takes of the host: the module's handlers and second phases of all sessions, and the programs
 * that own sessions with their helpers.
 */
#ifndef STACKTAP_CLI_TOP_COST_H
#define STACKTAP_CLI_TOP_COST_H

#include "client/netlink.h"

struct top_cost {
	struct control *control;
	uint64_t time, module_sum, programs_sum;	/* of the last look */
	bool is_measured;				/* there were two looks */
	unsigned int cpus;
	uint64_t span_ns, module_ns, programs_ns;	/* between the last two */
	double module, programs;			/* percent of all CPUs meanwhile */
};

/* A look, of which two make a measurement; what cannot be read counts as nothing. */
void top_cost_measure(struct top_cost *cost);
void top_cost_done(struct top_cost *cost);

#endif /* STACKTAP_CLI_TOP_COST_H */
