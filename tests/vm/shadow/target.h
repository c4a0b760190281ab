/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose stacks are walked twice: its tables and mapping list in the module, and what
 * libdwfl has to know to unwind it, of one state of its mappings.
 */
#ifndef SHADOW_TARGET_H
#define SHADOW_TARGET_H

#include "frames.h"

struct target {
	uint32_t pid;
	uint64_t start_time, exec_id;
	uint64_t generation;	/* of the list in the module */
	uint64_t hash;		/* of the mappings as they were read */
	Dwfl *dwfl;
	char name[STACKTAP_COMM_LEN];
};

/*
 * Bring both sides up to date with what @target->pid has mapped. False: it is gone, or nothing can
 * be walked there; then the target is empty.
 */
bool target_update(struct target *target, struct capture *capture, struct slice *slice);
void target_done(struct target *target);
void target_print_maps(const struct target *target);

#endif /* SHADOW_TARGET_H */
