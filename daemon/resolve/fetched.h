/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files of a debuginfod server while sampling goes on: a thread of its own asks for one after the other, and
 * thread B looks whether they are there. FETCHED_MAX are kept in mind.
 */
#ifndef STACKTAP_RESOLVE_FETCHED_H
#define STACKTAP_RESOLVE_FETCHED_H

#include <sys/stat.h>

#include "helper/debuginfod.h"

enum { FETCHED_MAX = 512 };

#define FETCHED_AGAIN_NS (3600 * NSEC_PER_SEC)	/* what there is none of is asked for again */

struct fetched;

struct fetched_stats {
	bool is_on;
	uint64_t waiting;	/* right now */
	struct debuginfod_stats server;
	struct helper_stats helper;
	char last_failed[256];	/* why; of what is not there nothing */
};

int fetched_new(const struct debuginfod_options *options, struct fetched **ret_fetched);
void fetched_free(struct fetched *fetched);	/* NULL is fine */

/*
 * Its debug file, *ret_path says where, or -EAGAIN: it has been asked for; -ENOENT: there is none. What it is must
 * be proven.
 */
int fetched_open(struct fetched *fetched, const char *build_id, int *ret_fd, struct stat *ret_stat,
		 char ret_path[static PATH_MAX]);
/* It was not what it should be. */
void fetched_forget(struct fetched *fetched, const char *build_id);

void fetched_stats(struct fetched *fetched, struct fetched_stats *ret_stats);	/* NULL is fine */

#endif /* STACKTAP_RESOLVE_FETCHED_H */
