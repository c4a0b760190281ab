/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files by build-id from a debuginfod server, in a directory of their own that is bounded: what is used
 * last is kept longest. The fetcher, a helper that has the network and nothing else, asks the server and writes
 * to a descriptor.
 *
 * That a server has none is kept for an hour; one that cannot be reached is not asked for half a minute. What a
 * file is must be proven by whoever reads it. For one thread.
 */
#ifndef STACKTAP_HELPER_DEBUGINFOD_H
#define STACKTAP_HELPER_DEBUGINFOD_H

#include <limits.h>

#include "helper/helper.h"

enum {
	DEBUGINFOD_SECONDS = 120,	/* for one file */
	DEBUGINFOD_SECONDS_MAX = 3600,
	DEBUGINFOD_NOTE_MAX = 1536,
};

#define DEBUGINFOD_FILE_BYTES ((uint64_t)512 << 20)
#define DEBUGINFOD_CACHE_BYTES ((uint64_t)2 << 30)

struct debuginfod;

struct debuginfod_options {
	const char *url;
	const char *directory;	/* made, with those above it */
	uint64_t file_bytes, cache_bytes;	/* 0: as above */
	uint32_t seconds;	/* 0: as above */
};

struct debuginfod_stats {
	uint64_t fetched, bytes;
	uint64_t from_cache;
	uint64_t absent;	/* also where that was known */
	uint64_t too_large, unreachable, timed_out, failed;
};

/* Is it one? -EINVAL; -ENAMETOOLONG. */
int debuginfod_check_url(const char *url);

int debuginfod_new(const struct debuginfod_options *options, struct debuginfod **ret_debuginfod);
/* What is asked for ends when this can be read: -ECANCELED. Before any question. */
void debuginfod_set_cancel(struct debuginfod *debuginfod, int fd);
void debuginfod_free(struct debuginfod *debuginfod);	/* NULL is fine */

/*
 * *ret_path is where it is. Otherwise it says in *ret_note why not, and: -ENOENT, the server has none; -EFBIG,
 * it is too large; -EHOSTDOWN, no server is there; -ETIME, it takes too long; -EIO, anything else.
 */
int debuginfod_get(struct debuginfod *debuginfod, const char *build_id, char ret_path[static PATH_MAX],
		   char ret_note[static DEBUGINFOD_NOTE_MAX]);
/* Where that is, or would be; any thread may ask. */
void debuginfod_path(const struct debuginfod *debuginfod, const char *build_id,
		     char ret_path[static PATH_MAX]);
/* What it gave turned out to be something else. Any thread may say so. */
void debuginfod_forget(struct debuginfod *debuginfod, const char *build_id);

const struct debuginfod_stats *debuginfod_stats(const struct debuginfod *debuginfod);
void debuginfod_helper_stats(struct debuginfod *debuginfod, struct helper_stats *ret_stats);

#endif /* STACKTAP_HELPER_DEBUGINFOD_H */
