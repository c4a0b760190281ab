/* SPDX-License-Identifier: Apache-2.0 */
/* What `stacktap record` was asked for. */
#ifndef STACKTAP_CLI_RECORD_H
#define STACKTAP_CLI_RECORD_H

#include "client/netlink.h"

struct record_options {
	struct control_source sources[STACKTAP_MAX_SOURCES];
	size_t source_count;
	struct control_filter filter;
	uint64_t duration_ms;		/* 0: until a signal or the command's end */
	uint64_t user_frames;
	uint64_t sideband_bytes;	/* 0: the default */
	uint64_t slice_bytes;		/* 0: none */
	uint64_t slice_max_bytes;
	uint64_t budget_ns;
	const char *output;		/* "-": standard output */
	char **command;			/* argv of the command to run, NULL: none */
	bool with_tables;		/* --call-graph table */
	bool has_budget;		/* else the module's */
	bool has_ceiling;		/* else the module's alone */
	uint32_t ceiling_permille;
	bool has_all;			/* -a: also others than the command */
	bool quiet, verbose;
};

/* CLI_OK, or the exit code plus one when there is nothing to run: --help or a wrong command line. */
int record_parse(int argc, char **argv, struct record_options *ret_options);
void record_options_done(struct record_options *options);

#endif /* STACKTAP_CLI_RECORD_H */
