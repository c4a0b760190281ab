/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the process table, shared by the files that feed it: events, samples and scans. */
#ifndef STACKTAP_PROCESS_TABLE_H
#define STACKTAP_PROCESS_TABLE_H

#include <sys/queue.h>

#include "base/clock.h"
#include "process/files.h"
#include "process/process.h"

#define TIE_NS (10 * NSEC_PER_USEC)		/* what clocks of two CPUs may differ by */
#define TICK_NS (10 * NSEC_PER_MSEC)		/* precision of start times in /proc: USER_HZ */
#define MISS_INTERVAL_NS (NSEC_PER_SEC / 4)	/* between two that samples ask for, doubling */

enum {
	PROCESS_IMAGES = 4,	/* the running one and the last that ended */
	WANTED_MAX = 256,
};

struct process {
	struct hash_link link;
	TAILQ_ENTRY(process) reap;
	uint64_t reap_time;	/* 0: not on the list */
	TAILQ_ENTRY(process) list;
	uint64_t list_due;	/* 0: not on the list */
	uint64_t list_last;	/* it is due then at the latest */
	uint64_t next_miss, miss_interval;
	bool is_missed;		/* a sample has shown that its list is wanted */
	uint32_t tgid;
	uint32_t parent_tgid;
	struct image *images[PROCESS_IMAGES]; /* newest first */
	uint64_t next_scan, scan_interval;
	bool is_followed;
};

struct process_table {
	struct process_observer observer;
	struct hash_table processes;
	struct hash_table files;
	TAILQ_HEAD(reap_list, process) reap; /* processes with ended images, oldest end first */
	bool (*send_list)(void *ctx, struct mapping_list *list);	/* NULL: without lists */
	void *list_ctx;
	uint32_t own_tgid;	/* this process: its list can wait */
	uint64_t own_from;
	uint32_t *list_tgids;
	size_t list_tgid_count;
	TAILQ_HEAD(lists, process) lists; /* processes whose list is to be made, first come first */
	uint32_t wanted[WANTED_MAX];
	size_t wanted_count;
	bool wants_all;
	bool follows;	/* only some processes are looked at */
};

/* The @i-th of table->processes, which are in no order. */
static inline struct process *process_at(const struct process_table *table, uint32_t i)
{
	return container_of(table->processes.links[i], struct process, link);
}

struct process *process_find(const struct process_table *table, uint32_t tgid);
struct process *process_get(struct process_table *table, uint32_t tgid); /* made when unknown */
/* The image that ran at @time, NULL when none did that we know of. */
struct image *process_image_at(const struct process *process, uint64_t time);
/* Put a new image before those of the process, which end at @time. */
struct image *process_push_image(struct process_table *table, struct process *process,
				 uint64_t since, uint64_t time, const char *comm);
/* The same for a process or a program that no event has told of. */
struct image *process_unknown(struct process_table *table, struct process *process,
			      uint64_t time, const char *comm);
void process_end(struct process_table *table, struct process *process, struct image *image,
		 uint64_t time);
/* Its list is not due, nor has it been missed. */
void process_forget_list(struct process_table *table, struct process *process);
void process_drop_image(struct process *process, size_t i);
void process_reap_later(struct process_table *table, struct process *process, uint64_t time);
void process_want_scan(struct process_table *table, struct process *process, uint64_t time);

void image_doubt(struct image *image, uint64_t time);
void image_announce(struct process_table *table, const struct process *process,
		    struct image *image);

struct extent {
	uint64_t start, end, file_offset, since;
};

int process_map(struct process_table *table, const struct process *process, struct image *image,
		const struct extent *extent, const struct file_key *key, bool *ret_replaced);
void image_inherit(struct process_table *table, const struct process *process,
		   struct image *child, const struct image *parent);

#endif /* STACKTAP_PROCESS_TABLE_H */
