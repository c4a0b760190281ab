/* SPDX-License-Identifier: Apache-2.0 */
/* The options that select a part of a recording, the same for all commands that read one. */
#ifndef STACKTAP_CLI_SELECT_H
#define STACKTAP_CLI_SELECT_H

#include <getopt.h>

#include "view/selection.h"

enum {
	SELECT_PROCESS = 768,	/* behind cli/filter.h's, for a command that has both */
	SELECT_CONTAINER,
	SELECT_SERVICE,
	SELECT_CGROUP,
	SELECT_THREAD,
	SELECT_EVENT,
	SELECT_FROM,
	SELECT_TO,
	SELECT_SINCE,
	SELECT_INLINE,
	SELECT_NO_INLINE,
	SELECT_END,
};

#define SELECT_OPTIONS                                                                             \
	{ "process", required_argument, NULL, SELECT_PROCESS },                                    \
	{ "container", required_argument, NULL, SELECT_CONTAINER },                                \
	{ "service", required_argument, NULL, SELECT_SERVICE },                                    \
	{ "cgroup", required_argument, NULL, SELECT_CGROUP },                                      \
	{ "thread", required_argument, NULL, SELECT_THREAD },                                      \
	{ "event", required_argument, NULL, SELECT_EVENT },                                        \
	{ "from", required_argument, NULL, SELECT_FROM },                                          \
	{ "to", required_argument, NULL, SELECT_TO },                                              \
	{ "since", required_argument, NULL, SELECT_SINCE },                                        \
	{ "inline", no_argument, NULL, SELECT_INLINE },                                            \
	{ "no-inline", no_argument, NULL, SELECT_NO_INLINE }

#define SELECT_HELP                                                                                \
	"Selection:\n"                                                                             \
	"      --process NAME|PID  samples of this process\n"                                      \
	"      --thread NAME|TID   of this thread\n"                                               \
	"      --container ID      of this container; its id may be cut short\n"                   \
	"      --service NAME      of this service\n"                                              \
	"      --cgroup PATH       of this cgroup and those below it\n"                            \
	"      --event NAME        of this event, if several were recorded\n"                      \
	"      --from T, --to T    from T on, and before T: 2.5, 500ms, 1m after the\n"            \
	"                          recording began, a date (2026-11-23T14:00:05Z), or\n"           \
	"                          @SECONDS since 1970\n"                                          \
	"      --since TIME        of the last 10s, 500ms, 1m\n"                                   \
	"      --no-inline         count inlined functions as the function that they are\n"        \
	"                          inlined into\n"                                                 \
	"      --inline            show inlined functions as frames, where they are\n"             \
	"                          known (default)\n"

/* One of these options, as getopt_long() returned it: CLI_OK, or says what is wrong. */
int select_parse(int option, const char *argument, struct selection *selection);
/* Says that nothing in @path was selected: CLI_FAILED. */
int select_found_nothing(const struct selection *selection, const char *path);

#endif /* STACKTAP_CLI_SELECT_H */
