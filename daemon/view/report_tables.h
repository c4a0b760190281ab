/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a report adds up to, while it grows: events, their processes, and the processes' functions,
 * each found by its key. Names are interned, so that keys compare by address.
 */
#ifndef STACKTAP_VIEW_REPORT_TABLES_H
#define STACKTAP_VIEW_REPORT_TABLES_H

#include "view/report.h"
#include "view/texts.h"

/* What shares are of. */
struct report_whole {
	double squares;		/* see struct sliced */
	uint64_t first, last;	/* Unix ns, of its samples */
	bool is_timeless;	/* of some the time is not known */
};

struct event_row {
	struct report_event event;
	struct report_whole whole;
};

struct process_row {
	uint32_t event;
	struct report_process process;
	struct report_whole whole;
};

struct function_row {
	uint32_t process;
	uint64_t stamp;		/* of the last stack that counted it in total */
	struct report_function function;
};

struct report_tables {
	struct texts texts;	/* whose arena gets the finished arrays as well */
	struct rows events, processes, functions;
};

void report_tables_init(struct report_tables *tables);
void report_tables_free(struct report_tables *tables);

/* Positions of rows, new ones zero but for their key; -E2BIG. Names in keys are interned ones. */
int report_event_find(struct report_tables *tables, const struct report_event *key,
		      uint32_t *ret_position);
int report_process_find(struct report_tables *tables, uint32_t event,
			const struct report_process *key, uint32_t *ret_position);
int report_function_find(struct report_tables *tables, uint32_t process,
			 const struct report_function *key, uint32_t *ret_position);

/* The same of what there is; INDEX_NONE: there is none. */
uint32_t report_event_look_up(const struct report_tables *tables, const struct report_event *key);
uint32_t report_process_look_up(const struct report_tables *tables, uint32_t event,
				const struct report_process *key);
uint32_t report_function_look_up(const struct report_tables *tables, uint32_t process,
				 const struct report_function *key);

/* Sorted arrays for the report, in the arena: each process has its functions, each event its own. */
int report_tables_finish(struct report_tables *tables, struct report *report);

static inline struct event_row *report_event_row(const struct report_tables *tables, uint32_t i)
{
	return (struct event_row *)(void *)tables->events.data.data + i;
}

static inline struct process_row *report_process_row(const struct report_tables *tables, uint32_t i)
{
	return (struct process_row *)(void *)tables->processes.data.data + i;
}

static inline struct function_row *report_function_row(const struct report_tables *tables, uint32_t i)
{
	return (struct function_row *)(void *)tables->functions.data.data + i;
}

#endif /* STACKTAP_VIEW_REPORT_TABLES_H */
