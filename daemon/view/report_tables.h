/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a report adds up to, while it grows: events, their processes, and the processes' functions,
 * each found by its key. Names are interned, so that keys compare by address.
 */
#ifndef STACKTAP_VIEW_REPORT_TABLES_H
#define STACKTAP_VIEW_REPORT_TABLES_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/index.h"
#include "view/report.h"

struct report_table {
	struct buffer rows;
	uint32_t count;
	struct index index;
};

struct process_row {
	uint32_t event;
	struct report_process process;
};

struct function_row {
	uint32_t process;
	uint64_t stamp;		/* of the last stack that counted it in total */
	struct report_function function;
};

struct report_tables {
	struct arena arena;	/* names; in the end the finished arrays as well */
	struct report_table names, events, processes, functions;
};

void report_tables_init(struct report_tables *tables);
void report_tables_free(struct report_tables *tables);	/* not the arena */

/* Clean text, cut at 4 KiB; NULL when POOL_REPORT is used up. */
const char *report_name(struct report_tables *tables, const char *text);
/* Positions of rows, new ones zero but for their key; -E2BIG. Names in keys are interned ones. */
int report_event_find(struct report_tables *tables, const struct report_event *key,
		      uint32_t *ret_position);
int report_process_find(struct report_tables *tables, uint32_t event,
			const struct report_process *key, uint32_t *ret_position);
int report_function_find(struct report_tables *tables, uint32_t process,
			 const struct report_function *key, uint32_t *ret_position);

/* Sorted arrays for the report, in the arena: each process has its functions, each event its own. */
int report_tables_finish(struct report_tables *tables, struct report *report);

static inline struct report_event *report_event_row(struct report_tables *tables, uint32_t i)
{
	return (struct report_event *)(void *)tables->events.rows.data + i;
}

static inline struct process_row *report_process_row(struct report_tables *tables, uint32_t i)
{
	return (struct process_row *)(void *)tables->processes.rows.data + i;
}

static inline struct function_row *report_function_row(struct report_tables *tables, uint32_t i)
{
	return (struct function_row *)(void *)tables->functions.rows.data + i;
}

/* Sums do not wrap, whatever the file says. */
static inline void report_add(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

#endif /* STACKTAP_VIEW_REPORT_TABLES_H */
