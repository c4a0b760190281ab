/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread B's stage of unwinding: loads mapping lists into the module, and the tables that they name.
 */
#ifndef STACKTAP_RESOLVE_LOADER_H
#define STACKTAP_RESOLVE_LOADER_H

#include "process/lists.h"
#include "resolve/tables.h"

struct loader;

struct loader_stats {
	struct tables_stats tables;
	uint64_t lists;			/* loaded */
	uint64_t lists_gone;		/* the process, or its program, was gone by then */
	uint64_t lists_refused;		/* the module had no room */
	uint64_t pending;		/* the pipeline's: on their way here */
};

int loader_new(const struct tables_ops *ops, struct loader **ret_loader);
void loader_free(struct loader *loader);

struct tables *loader_tables(struct loader *loader);

/* 0, or why the module did not take the list. */
int loader_load(struct loader *loader, const struct mapping_list *list);
/* True once when lists should be made again, see tables_want_lists(). */
bool loader_wants_lists(struct loader *loader);

void loader_stats(const struct loader *loader, struct loader_stats *ret_stats);

#endif /* STACKTAP_RESOLVE_LOADER_H */
