/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the module and its clients tell each other over netlink: what it says of itself, of sessions, CPUs, tables
 * and events, and what a session may be asked to change.
 */
#ifndef STACKTAP_CLIENT_MESSAGE_H
#define STACKTAP_CLIENT_MESSAGE_H

#include <linux/stacktap.h>

#include "base/macro.h"
#include "client/filter.h"

struct control_module {
	uint16_t abi_major, abi_minor;
	char version[32];
	uint64_t features;
	uint32_t sessions;
	uint32_t tables, lists;
	uint64_t table_rows, table_bytes, list_bytes, table_limit;
	bool has_ceiling;		/* modules before ABI 1.11 have none */
	uint32_t ceiling_permille;	/* of each CPU, for all sessions together; 0: none */
};

struct control_source {
	uint32_t id;
	char name[STACKTAP_NAME_LEN];
	uint32_t type;
	uint64_t config, config1, config2;
	uint8_t mode;			/* enum stacktap_mode */
	uint64_t period;		/* 0: by rate */
	uint32_t rate_hz;		/* 0: by period */
	uint64_t nominal_hz;
	uint32_t flags;			/* STACKTAP_SRC_* */
	uint32_t fallback_errno, fallback_cpus; /* read only */
};

struct control_session {
	uint64_t id;
	uint32_t owner_tgid;
	char owner_comm[STACKTAP_COMM_LEN];
	uint8_t state;			/* enum stacktap_state */
	uint64_t generation, created;
	uint32_t user_frames, walk_limit_ns, slice_bytes, slice_every, slice_max_bytes;
	bool has_budget;		/* modules before ABI 1.8 have none, nor what follows */
	uint32_t budget_ns, degraded, kernel_frames, rate_divisor;
	uint64_t degradations, rates_refused;
	bool has_ceiling;		/* modules before ABI 1.11 have none */
	uint32_t ceiling_permille;	/* its own; 0: none */
	uint64_t ring_bytes, stash_bytes;
	uint32_t tables, lists;
	uint64_t table_bytes, list_bytes, lists_refused;
	struct control_source sources[STACKTAP_MAX_SOURCES];
	size_t source_count;
	struct control_filter filter;
};

struct control_counts {
	uint32_t source_id, type;
	uint64_t config, period;
	uint32_t fallback_errno;
	uint64_t calls, recorded, filtered, throttled, lost[STACKTAP_LOST_REASONS];
	uint64_t enabled_ns, running_ns, moved, stale, stalled;
	bool has_times_at;		/* modules before ABI 1.11 do not tell, theirs are of now */
	uint64_t times_at;		/* of these two, ns of CLOCK_MONOTONIC */
	uint32_t share_percent;		/* 100 of modules before ABI 1.9 */
	uint64_t multiplexed;
	uint64_t raises;		/* times that the handler doubled the period */
	uint64_t missed;		/* periods that late timers swallowed */
	uint64_t in_place, put_off;	/* samples that interrupts finished; that they began and left to phase 2 */
	uint64_t fallback_recorded;	/* of @recorded, by cpu-clock; before ABI 1.14 all in a fallback, else 0 */
	uint64_t kernel_end[STACKTAP_END_REASONS], user_end[STACKTAP_END_REASONS];
};

/* How long something took: bucket i counts what was below 1 << (STACKTAP_TIME_SHIFT + i) ns. */
struct control_cost {
	uint64_t ns;			/* the sum */
	uint64_t times[STACKTAP_TIME_BUCKETS];
};

struct control_cpu {
	uint64_t session_id;
	uint32_t cpu;
	uint8_t state;			/* enum stacktap_cpu_state */
	uint32_t error;			/* why it has no counter, 0: no reason is known */
	bool has_offlines;		/* modules before ABI 1.10 do not tell */
	uint64_t offlines;		/* times it left */
	uint64_t ring_bytes, ring_used;
	uint64_t table_hits, table_misses, table_frames, table_fp_frames, table_searches;
	uint64_t slices, slices_refused;
	bool has_costs;			/* modules before ABI 1.6 do not tell */
	struct control_cost handler, drain;
	struct control_counts counts[STACKTAP_MAX_SOURCES];
	size_t count_count;
};

struct control_table {
	uint64_t id, bytes, rows;
	uint32_t users;			/* sessions that are charged with it */
	uint64_t hit;			/* time when a walk last used it, to a second; 0: never */
};

struct control_event {
	uint8_t kind;			/* enum stacktap_event */
	uint64_t time, session_id, count;
	uint64_t lost[STACKTAP_LOST_REASONS];	/* of @count */
	bool has_cpu, has_source;
	bool has_lost;			/* modules before ABI 1.10 do not tell */
	uint32_t cpu, source_id, error;
};

/* What to change of a session; members that are NULL or 0 stay. */
struct control_change {
	const struct control_source *sources;
	size_t source_count;
	const struct control_filter *filter;	/* an empty one removes the filter */
	uint32_t user_frames, walk_limit_ns, slice_bytes, slice_every, slice_max_bytes;
	const uint32_t *budget_ns;
	const uint32_t *ceiling_permille;
	bool two_phase;
};

#endif /* STACKTAP_CLIENT_MESSAGE_H */
