/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the subcommands share: their names, how errors are said, exit codes.
 *
 * A subcommand gets argv with its own name first and returns the exit code.
 */
#ifndef STACKTAP_CLI_CLI_H
#define STACKTAP_CLI_CLI_H

#include "base/macro.h"

enum {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_GREW = 3,		/* `diff --fail-over` found what it looks for */
	CLI_GO_ON = -1,		/* no exit code: the command has its work still to do */
};

int status_run(int argc, char **argv);
int record_run(int argc, char **argv);
int top_run(int argc, char **argv);
int report_run(int argc, char **argv);
int diff_run(int argc, char **argv);
int flamegraph_run(int argc, char **argv);
int serve_run(int argc, char **argv);
int convert_run(int argc, char **argv);
int start_run(int argc, char **argv);
int stop_run(int argc, char **argv);
int set_run(int argc, char **argv);
int events_run(int argc, char **argv);
int unwind_info_run(int argc, char **argv);
int doctor_run(int argc, char **argv);
int objects_run(int argc, char **argv);
int symbolize_run(int argc, char **argv);
int annotate_run(int argc, char **argv);
int store_run(int argc, char **argv);

/* From now on errors are JSON objects on stdout, {"error": "..."}. */
void cli_use_json(void);
/* Say what went wrong in one line; CLI_FAILED, to be returned. */
int cli_error(const char *format, ...) _printf_(1, 2);
/* The same for a wrong command line, with a pointer to --help; CLI_USAGE. */
int cli_usage_error(const char *format, ...) _printf_(1, 2);
/* getopt_long(); @letters begin with ':', so that it is silent. */
struct option;
int cli_option(int argc, char **argv, const char *letters, const struct option *options);
/* It returned '?' or ':'. */
int cli_bad_option(int argc, char **argv, int result);
int cli_help(const char *text);
/*
 * The options of a command that has --help and --json alone. CLI_GO_ON, with optind at the first
 * argument, or the exit code.
 */
int cli_parse_json(int argc, char **argv, const char *help, bool *ret_json);
/* Did all output reach its end? CLI_OK, else CLI_FAILED after saying so: the last call. */
int cli_finish(void);

/* A whole decimal number from @minimum to @maximum. */
bool cli_parse_number(const char *text, uint64_t minimum, uint64_t maximum, uint64_t *ret_number);
/* "100", "100K", "100M", "2G". */
bool cli_parse_bytes(const char *text, uint64_t *ret_bytes);
/* "2", "0.5%": from 0 to 100. */
bool cli_parse_percent(const char *text, double *ret_percent);
/* "10", "0.5", "10s", "2m", "1h" to milliseconds, at least 1. */
bool cli_parse_duration(const char *text, uint64_t *ret_ms);
/* "1,2,3": ids of processes or threads (@what) that exist. Says what is wrong. */
int cli_parse_pids(const char *text, const char *what, uint32_t **pids, size_t *count);
/* "0-3,7" of CPUs that this machine has. Says what is wrong. */
int cli_parse_cpus(const char *text, uint64_t **ret_words, size_t *ret_count);

#endif /* STACKTAP_CLI_CLI_H */
