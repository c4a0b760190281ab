/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading /proc: executable mappings and identity of a process. May block, for ever where somebody else's
 * file system is behind a mapping: the opener's.
 */
#ifndef STACKTAP_PROCESS_SCAN_H
#define STACKTAP_PROCESS_SCAN_H

#include "base/macro.h"

struct process_snapshot_mapping {
	uint64_t start, end, file_offset;
	uint32_t major, minor;
	uint64_t inode;
	char *path;		/* "" for anonymous memory, "[vdso]" */
};

struct process_snapshot {
	uint64_t time;		/* CLOCK_MONOTONIC ns before the first read */
	uint32_t tgid;
	uint32_t parent_tgid;
	uint64_t start_time;	/* CLOCK_BOOTTIME ns, in clock ticks' precision */
	char comm[16];
	struct process_snapshot_mapping *mappings; /* executable ones, sorted */
	size_t mapping_count;
	bool is_cut;		/* there were more than 16382, or of more than 2 MiB of paths */
};

/* -ESRCH: gone. A process that execs while it is read is read again. */
int process_scan(uint32_t tgid, struct process_snapshot **ret_snapshot);
void process_snapshot_free(struct process_snapshot *snapshot);

/* /proc/PID/maps from where @maps stands; adds to the mappings. -EBADMSG: not such a text. */
int process_maps_read(FILE *maps, struct process_snapshot *snapshot);

/*
 * Call @each for the number of every process there is. Stops on a non-zero return; a process may be gone
 * by then.
 */
int process_each(int (*each)(void *ctx, uint32_t tgid), void *ctx);

/* Of the process whose /proc/PID @proc is: CLOCK_BOOTTIME ns, cut to ticks. */
int process_start_time(int proc, uint64_t *ret_start_time);
/* Is there no process of this number? Another one may have it. */
bool process_has_gone(uint32_t tgid);

#endif /* STACKTAP_PROCESS_SCAN_H */
