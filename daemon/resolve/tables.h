/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread B's cache of the unwind tables that the module holds for this session: which object has
 * which. An object is compiled when a mapping list first names it; the table's bytes are the
 * module's from then on. Here are its number and, of those used last, the bytes as well, for the
 * stacks that we walk ourselves.
 *
 * What cannot be compiled is remembered as well, and what was dropped is left alone for a while.
 * Compiling takes at most a quarter of the time in the long run, and 30 seconds in one go, not counting
 * time in which the parser waits for a CPU, up to half of it. The number of entries is bounded, the least
 * recently named goes first; when the module has no room the tables that no walk has hit for longest go.
 * The parser compiles; what it hands over is charged to POOL_TABLES until the module has it.
 */
#ifndef STACKTAP_RESOLVE_TABLES_H
#define STACKTAP_RESOLVE_TABLES_H

#include "resolve/tables_ops.h"

struct tables;

struct tables_stats {
	uint64_t tables, rows, bytes;	/* of this session, in the module */
	uint64_t compiled, failed;	/* failed: no call frame information, too large, broken */
	uint64_t deferred;		/* put off: too much of the time went into compiling */
	uint64_t evicted, refused;	/* refused: the module had no room even so */
	uint64_t compile_ns;
	uint64_t kept, kept_bytes;	/* here */
	uint64_t refused_files;		/* right now: too large, for the parser's memory or time, or the module's room */
	/* The last one's path and the reason; empty: there is none. */
	char last_failed[256], last_refused[256];
};

int tables_new(const struct tables_ops *ops, struct tables **ret_tables);
void tables_free(struct tables *tables);	/* the module's are dropped with the session */

/* Who causes the questions which follow, 0: nobody; see resolve/payer.h. */
void tables_pay(struct tables *tables, uint32_t payer);

/*
 * The table of an object, compiled and loaded if need be; 0: it has none, or none now. @tgid is a
 * process that maps it.
 */
uint64_t tables_get(struct tables *tables, struct object *object, uint32_t tgid);
/*
 * The same table to walk with here; NULL: there is none, or no room. It stays until
 * tables_walk_done(), as do all others asked for since the last one.
 */
const struct unwind_table *tables_view(struct tables *tables, struct object *object, uint32_t tgid);
void tables_walk_done(struct tables *tables);
/* The module does not know this one (any more): it is loaded again when asked for. */
void tables_forget(struct tables *tables, uint64_t id);
/*
 * Drop what was hit least recently until @bytes are free, or at least a part of all; but nothing that
 * was loaded or hit in the last seconds, or all would be loaded and dropped in turn. False: there is
 * nothing to drop.
 */
bool tables_evict(struct tables *tables, uint64_t bytes);
/*
 * True once when lists should be made again: after tables were dropped, which their lists keep in
 * memory, and when it is time to try again what has failed.
 */
bool tables_want_lists(struct tables *tables);

const struct tables_stats *tables_stats(const struct tables *tables);

#endif /* STACKTAP_RESOLVE_TABLES_H */
