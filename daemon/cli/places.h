/* SPDX-License-Identifier: Apache-2.0 */
/* The options that say where debug files and programs are: --debug-dir, --sysroot, --binary, --debuginfod. */
#ifndef STACKTAP_CLI_PLACES_H
#define STACKTAP_CLI_PLACES_H

#include <limits.h>

#include "cli/debugfile.h"

enum {
	PLACES_DEBUG_DIR = 2048,
	PLACES_SYSROOT,
	PLACES_BINARY,
	PLACES_DEBUGINFOD,
	PLACES_DEBUGINFOD_MAX,
	PLACES_DEBUGINFOD_TIMEOUT,
	PLACES_END,
};

#define PLACES_SERVER_OPTIONS                                                                      \
	{ "debuginfod", required_argument, NULL, PLACES_DEBUGINFOD },                              \
	{ "debuginfod-max", required_argument, NULL, PLACES_DEBUGINFOD_MAX },                      \
	{ "debuginfod-timeout", required_argument, NULL, PLACES_DEBUGINFOD_TIMEOUT }

#define PLACES_OPTIONS                                                                             \
	{ "debug-dir", required_argument, NULL, PLACES_DEBUG_DIR },                                \
	{ "sysroot", required_argument, NULL, PLACES_SYSROOT },                                    \
	{ "binary", required_argument, NULL, PLACES_BINARY },                                      \
	PLACES_SERVER_OPTIONS

static inline bool places_has(int option)
{
	return option >= PLACES_DEBUG_DIR && option < PLACES_END;
}

/* One of these options. Says what is wrong. */
int places_parse(int option, const char *argument, struct debugfile_places *places);
/* One more path, in a list that is the caller's to free. Says what is wrong. */
int places_add(const char ***list, size_t *count, const char *path);
/*
 * What was named has to be there: says what is not. Without a directory it is usr/lib/debug in the sysroot,
 * whose name *ret_default is, to be freed.
 */
int places_check(struct debugfile_places *places, char **ret_default);

/*
 * Who asks the server of @places, with what was had of it in the user's cache directory; NULL if there is no server.
 * Says what is wrong.
 */
int places_debuginfod(const struct debugfile_places *places, struct debuginfod **ret_debuginfod);
/* @what in the user's cache directory for stacktap. -ENOENT: there is no such directory. */
int places_cache(const char *what, char ret_path[static PATH_MAX]);

#endif /* STACKTAP_CLI_PLACES_H */
