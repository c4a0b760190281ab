/* SPDX-License-Identifier: Apache-2.0 */
/* The options that say what is sampled, which `record` and `set` share. */
#ifndef STACKTAP_CLI_FILTER_H
#define STACKTAP_CLI_FILTER_H

#include "client/filter.h"

enum {
	FILTER_USER_ONLY = 512,
	FILTER_KERNEL_ONLY,
	FILTER_EXCLUDE_IDLE,
	FILTER_COMM,
	FILTER_END,
};

/* for getopt_long(): letters, and what a table of long options begins with */
#define FILTER_LETTERS "C:G:p:t:u:"
#define FILTER_OPTIONS                                                                             \
	{ "cpu", required_argument, NULL, 'C' },                                                   \
	{ "cpus", required_argument, NULL, 'C' },                                                  \
	{ "cgroup", required_argument, NULL, 'G' },                                                \
	{ "pid", required_argument, NULL, 'p' },                                                   \
	{ "tid", required_argument, NULL, 't' },                                                   \
	{ "uid", required_argument, NULL, 'u' },                                                   \
	{ "comm", required_argument, NULL, FILTER_COMM },                                          \
	{ "user-only", no_argument, NULL, FILTER_USER_ONLY },                                      \
	{ "all-user", no_argument, NULL, FILTER_USER_ONLY },                                       \
	{ "kernel-only", no_argument, NULL, FILTER_KERNEL_ONLY },                                  \
	{ "all-kernel", no_argument, NULL, FILTER_KERNEL_ONLY },                                   \
	{ "exclude-idle", no_argument, NULL, FILTER_EXCLUDE_IDLE }

/* One of them. CLI_OK, an exit code after saying what is wrong, CLI_GO_ON if it is none of them. */
int filter_option(struct control_filter *filter, int option, const char *argument);
/* When all are parsed: CLI_OK or the exit code. */
int filter_check(const struct control_filter *filter);

#endif /* STACKTAP_CLI_FILTER_H */
