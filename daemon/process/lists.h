/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapping lists for the module, which walks user stacks with them: a copy of what an image has mapped,
 * made by thread A and loaded by thread B.
 *
 * A list's generation is a time: it holds every mapping event up to then. So a sample that carries
 * it tells which events the module did not know of when it walked, and a fork that inherits the
 * list inherits a generation that is right for the child as well.
 *
 * Changes gather until none came for a moment: a program that starts maps its libraries one after the
 * other, as slowly as the host is. What is walked with half of them is cut, while stacks from before
 * the first list are deferred, so that one does not hurry.
 */
#ifndef STACKTAP_PROCESS_LISTS_H
#define STACKTAP_PROCESS_LISTS_H

#include "process/image.h"

enum { LISTS_DELAY_MS = 20 };

struct mapping_list {
	struct image *image;	/* owned */
	uint32_t tgid;
	uint64_t start_time;	/* 0: unknown; in clock ticks' precision unless is_bound */
	uint64_t exec_id;
	bool is_bound;		/* a sample has told start time and exec id */
	uint64_t generation;
	size_t count;
	struct mapping mappings[];	/* sorted, without overlap; each owns its file */
};

/* NULL: out of memory. */
struct mapping_list *mapping_list_new(struct image *image, uint64_t generation) _must_check_;
size_t mapping_list_bytes(const struct mapping_list *list);
void mapping_list_free(struct mapping_list *list);	/* NULL is fine */

struct process_table;
struct process;

/* The process' list in the module is not, or no longer, what it has mapped. */
void process_want_list(struct process_table *table, struct process *process, uint64_t time);
/* The same for an event that more of the kind may follow. */
void process_gather_list(struct process_table *table, struct process *process, uint64_t time);
/*
 * The same when a sample shows it: the list was refused, or got lost. Seldom, since the list may be
 * under way.
 */
void process_miss_list(struct process_table *table, struct process *process, uint64_t time);

#endif /* STACKTAP_PROCESS_LISTS_H */
