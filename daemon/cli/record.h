/* SPDX-License-Identifier: Apache-2.0 */
/* What `stacktap record` was asked for. */
#ifndef STACKTAP_CLI_RECORD_H
#define STACKTAP_CLI_RECORD_H

#include <getopt.h>

#include "cli/filter.h"
#include "client/netlink.h"

struct environment;
struct host_resource;
struct pipeline_options;
struct relabel;

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
	bool with_lines;
	bool has_budget;		/* else the module's */
	bool has_ceiling;		/* else the module's alone */
	uint32_t ceiling_permille;
	bool has_all;			/* -a: also others than the command */
	bool quiet, verbose;
	bool without_kernel_addresses;	/* privacy */
	bool with_command_line;		/* the same */
	const char *service_name;	/* of all programs; NULL: each has its own */
	const char *attributes;		/* k=v,k=v of all resources, or NULL */
	struct relabel *relabel;	/* NULL: no rules */
};

/* The options that say what is sampled and how, which `record` and `top` share. */
enum {
	RECORD_FREQ_MODE = 256,
	RECORD_NO_JITTER,
	RECORD_MAX_STACK,
	RECORD_SIDEBAND_BYTES,
	RECORD_SLICE_BYTES,
	RECORD_SLICE_MAX_BYTES,
	RECORD_CALL_GRAPH,
	RECORD_BUDGET_NS,
	RECORD_CEILING,
	RECORD_LINES,
	RECORD_OWN,		/* from here on a command's own */
};

#define RECORD_LETTERS "hae:F:c:g" FILTER_LETTERS
#define RECORD_OPTIONS										\
	{ "help", no_argument, NULL, 'h' },							\
	FILTER_OPTIONS,										\
	{ "all-cpus", no_argument, NULL, 'a' },							\
	{ "event", required_argument, NULL, 'e' },						\
	{ "freq", required_argument, NULL, 'F' },						\
	{ "count", required_argument, NULL, 'c' },						\
	{ "freq-mode", no_argument, NULL, RECORD_FREQ_MODE },					\
	{ "no-jitter", no_argument, NULL, RECORD_NO_JITTER },					\
	{ "max-stack", required_argument, NULL, RECORD_MAX_STACK },				\
	{ "sideband-bytes", required_argument, NULL, RECORD_SIDEBAND_BYTES },			\
	{ "slice-bytes", required_argument, NULL, RECORD_SLICE_BYTES },				\
	{ "slice-max-bytes", required_argument, NULL, RECORD_SLICE_MAX_BYTES },			\
	{ "call-graph", required_argument, NULL, RECORD_CALL_GRAPH },				\
	{ "budget-ns", required_argument, NULL, RECORD_BUDGET_NS },				\
	{ "ceiling", required_argument, NULL, RECORD_CEILING },				\
	{ "lines", no_argument, NULL, RECORD_LINES }

/* A command with these options and some of its own. */
struct record_command {
	const char *help, *letters;
	const struct option *options;
	/* CLI_OK, an exit code after saying what is wrong, CLI_GO_ON: none of its own; may be NULL */
	int (*option)(void *ctx, int option, const char *argument);
	void *ctx;
};

/* CLI_OK, or the exit code plus one when there is nothing to run: --help or a wrong command line. */
int record_parse_as(const struct record_command *command, int argc, char **argv,
		    struct record_options *ret_options);
int record_parse(int argc, char **argv, struct record_options *ret_options);
/* What a pipeline is started with; the windows' length and both ends are the caller's. */
void record_pipeline(const struct record_options *options, const struct environment *environment,
		     const struct host_resource *resource, struct pipeline_options *ret_pipeline);
void record_options_done(struct record_options *options);

#endif /* STACKTAP_CLI_RECORD_H */
