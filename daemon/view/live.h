/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `stacktap top` shows: the messages of the last seconds, added up anew whenever it is asked, so that what
 * leaves the window takes nothing along. Memory is charged to POOL_REPORT and bounded.
 */
#ifndef STACKTAP_VIEW_LIVE_H
#define STACKTAP_VIEW_LIVE_H

#include "view/reader.h"

enum live_group {
	LIVE_FUNCTION,		/* of each process */
	LIVE_PROCESS,
	LIVE_THREAD,
	LIVE_OBJECT,
	LIVE_CONTAINER,
	LIVE_SERVICE,
	LIVE_CGROUP,
	LIVE_GROUP_COUNT,
};

enum live_side { LIVE_ROW, LIVE_CALLER, LIVE_SUBJECT, LIVE_CALLEE };

struct live_row {
	enum live_side side;	/* LIVE_ROW but of live_build_calls() */
	uint32_t id;		/* of the process or thread; 0: none */
	bool is_kernel;		/* functions and objects */
	const char *owner;	/* process, thread, container, service or cgroup; "" of objects */
	const char *name, *file;	/* function and its object, "" where that is not the group */
	uint64_t self, total;	/* weight; equal but for functions and objects */
	uint64_t samples;	/* of self */
	uint64_t stamp;		/* of the last stack that counted in total */
};

struct live_table {
	struct texts texts;
	struct rows rows;
	uint64_t start, end;	/* Unix ns; 0: no messages */
	uint64_t samples, weight;
	uint64_t user, kernel, idle;	/* weight by what was interrupted */
	uint64_t lost;		/* of all processes */
	uint64_t complete;
	bool has_complete;	/* else it is not known: a Profile is not selected as a whole */
	const char *event, *unit;	/* NULL: no messages */
	uint32_t fallback_errno;
	bool is_cut;		/* older messages of the window did not fit */
};

static inline const struct live_row *live_row(const struct live_table *table, size_t i)
{
	return (const struct live_row *)(const void *)table->rows.data.data + i;
}

/* A function of a process, by the texts of its row. */
struct live_subject {
	uint32_t id;
	bool is_kernel;
	const char *owner, *name, *file;
};

struct live;

/*
 * @selection: what counts, of processes and threads alone; NULL: all. It stays the caller's, who keeps it.
 */
int live_new(size_t max_bytes, const struct selection *selection, struct live **ret_live);
void live_free(struct live *live);	/* NULL is fine */
/*
 * One message, which is copied; @now is a clock of the caller's. Any thread may, while another is in
 * live_build(), and never waits for more than a list's pointers. The oldest go beyond max_bytes.
 */
int live_add(struct live *live, const uint8_t *data, size_t size, uint64_t now);
/*
 * Of the messages since @from, older ones are dropped; rows by self or total, descending. -E2BIG, -EBADMSG; the
 * table is to be freed in any case.
 */
int live_build(struct live *live, uint64_t from, enum live_group group, bool by_total,
	       struct live_table *ret_table);
/*
 * The same, of one function: those that call it, itself, those that it calls; a callee's self is that of the
 * samples that came from here.
 */
int live_build_calls(struct live *live, uint64_t from, const struct live_subject *subject,
		     struct live_table *ret_table);
/* The messages since @from into @reader. -E2BIG, -EBADMSG, or what its sink said. */
int live_read(struct live *live, uint64_t from, struct reader *reader);
void live_table_free(struct live_table *table);

#endif /* STACKTAP_VIEW_LIVE_H */
