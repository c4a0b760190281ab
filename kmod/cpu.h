/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_CPU_H
#define STACKTAP_KMOD_CPU_H

#include <linux/perf_event.h>
#include <linux/stacktap.h>
#include <stacktap/degrade.h>
#include <stacktap/unwind_memo.h>
#include <asm/local64.h>

#include "cost.h"
#include "pace.h"
#include "ring.h"
#include "slice.h"
#include "stack.h"
#include "stash.h"

struct stacktap_session;

/* The last look of stall.c. */
struct stacktap_stall {
	bool suspected;
	u64 calls;
	u64 count;		/* when suspected first */
	u64 busy_ns;		/* of the CPU */
};

/* The last look of share.c. */
struct stacktap_share {
	u64 enabled_ns;
	u64 running_ns;
	u64 busy_ns;		/* of the CPU */
	u32 percent;
};

/* fallback.c, in looks of policy.c; 0 of a counter that is new. */
struct stacktap_fallback {
	u8 wait;		/* from one try to have the real event to the next */
	u8 left;		/* of that */
};

/*
 * One source on one CPU. The local64_t are moved on this CPU only, from NMI too, but for those of the ring's
 * producer (see count.h), and read from anywhere; the rest belongs to the holder of the session's mutex
 * unless it says otherwise.
 */
struct stacktap_counter {
	struct perf_event *event;
	struct stacktap_cpu *cpu;
	u16 index;
	u8 context;		/* enum stacktap_context; NMI or IRQ is decided at the overflow */
	bool one_phase;
	bool may_finish;	/* where it is not: its interrupt may do both phases, see place.h */
	bool clock;		/* counts nanoseconds */
	u32 type;		/* of what really counts */
	u64 config;
	u64 period;		/* 0 in frequency mode; the handler reads it and may double it */
	bool setting;		/* but not while it is set */
	struct stacktap_pace pace; /* the handler's */
	u32 rate_hz;		/* 0 when only a period was asked for */
	u32 rate_shift;		/* both are slower by so many powers of two than they were asked for */
	u32 fallback_errno;
	struct stacktap_fallback fallback;
	u64 recorded_before;	/* of @recorded, when @event was made */
	u64 fallback_recorded;	/* of these, by cpu-clock in fallbacks that are over */
	unsigned int hotplug_seq; /* of the CPU when @event was made */
	u64 enabled_ns;		/* of events released before */
	u64 running_ns;
	u64 enabled_at;		/* when @event began to count */
	u64 seen_enabled_ns;	/* of all events, when they were read last */
	u64 seen_running_ns;
	u64 seen_at;		/* 0: never */
	u64 stalled;		/* times it was set anew */
	struct stacktap_stall stall;
	u64 multiplexed;	/* times that it began to be */
	u32 raised;		/* doublings of the period since that was set */
	u32 window_calls;	/* in the 100 ms that began at @window_began; the handler's */
	u64 window_began;
	struct stacktap_share share;

	local64_t calls;
	local64_t raises;	/* times that the handler doubled the period */
	u64 raises_seen;	/* by degrade.c */
	local64_t recorded;	/* the ring's producer, as in_place, put_off, moved, stale and the ends */
	local64_t filtered;
	local64_t throttled;
	local64_t missed;	/* periods that late timers swallowed */
	local64_t in_place;
	local64_t put_off;
	local64_t moved;
	local64_t stale;
	local64_t lost[STACKTAP_LOST_REASONS];
	local64_t kernel_end[STACKTAP_END_REASONS];
	local64_t user_end[STACKTAP_END_REASONS];
	/* already in the ring; belongs to the producer of the ring */
	u64 lost_reported[STACKTAP_LOST_REASONS];
	u64 throttled_reported;
	u64 missed_reported;
	u64 stalled_reported;
	struct stacktap_config announcement; /* the CONFIG that @configs_due owes */
	/* already in an EVENT; belongs to the events work */
	u64 lost_announced[STACKTAP_LOST_REASONS];
	u64 throttled_announced;
};

/* What a session has on one CPU. Made with the ring, lives as long as the session. */
struct stacktap_cpu {
	struct stacktap_session *session;
	unsigned int cpu;
	unsigned int hotplug_seq; /* moved by the offline callback: older events are dead */
	bool active;		/* counters exist */
	bool announced;		/* a CLOCK_ANCHOR of this run is in the ring or due */
	bool final_owed;	/* the STOPPED record found no room yet */
	u32 error;		/* why it has no counters though it should, positive */
	u32 error_told;
	struct stacktap_ring *ring;
	struct stacktap_stash *stash;
	bool stashing;		/* the overflow handler fills a slot; this CPU only, NMI included */
	bool recording;		/* the ring is being written */
	u8 untried;		/* hits of @put_off_mm to come that no handler walks */
	const struct mm_struct *put_off_mm; /* only ever compared */
	struct unwind_memo *memo; /* of walks; whoever writes the ring has it */
	local64_t horizon;	/* ceiling.c; this CPU only, NMI too */
	struct stacktap_stack stack; /* of that record; not on our stack, where it would be zeroed */
	bool owing;		/* something is not in the ring yet: a loss, a throttle, or these */
	bool anchor_due;	/* belongs to the producer of the ring, as the next three */
	u8 configs_due;		/* bits of sources */
	u8 states_due;		/* bits of enum stacktap_cpu_state */
	u8 state;		/* the last one owed or told */
	u64 lost_first;		/* time of the first of them */
	local64_t table_hits;	/* user stacks walked with a mapping list; the ring's producer, as the next */
	local64_t table_misses;
	local64_t table_frames;
	local64_t table_fp_frames;
	local64_t table_searches;
	struct stacktap_cost handler_cost; /* overflow handlers that do not walk the user stack */
	struct stacktap_cost whole_cost; /* those that do */
	struct stacktap_cost front_cost; /* of these, what comes before that */
	struct degrade_window window; /* where the one began that is being judged */
	struct stacktap_cost drain_cost; /* phase 2, all that was in the stash at a time */
	struct stacktap_counter counters[STACKTAP_MAX_SOURCES];
	struct stacktap_slices slices;
};

int st_cpu_create(struct stacktap_session *session, unsigned int cpu, u32 data_bytes, u32 watermark,
		  struct stacktap_cpu **ret_cpu);
void st_cpu_destroy(struct stacktap_cpu *cpu);

/*
 * Run @fn with IRQs off on the CPU, or right here when it is offline: either way @fn is the only
 * producer of the ring. Caller holds the session's mutex.
 */
void st_cpu_call(struct stacktap_cpu *cpu, void (*fn)(struct stacktap_cpu *cpu, void *arg),
		 void *arg);

static inline void counter_lose(struct stacktap_counter *counter, enum stacktap_lost reason,
				u64 time)
{
	struct stacktap_cpu *cpu = counter->cpu;

	local64_inc(&counter->lost[reason]);
	if (!READ_ONCE(cpu->lost_first))
		WRITE_ONCE(cpu->lost_first, time);
	WRITE_ONCE(cpu->owing, true);
}

/* Other counters take turns with it in the PMU. */
static inline bool counter_is_divided(const struct stacktap_counter *counter)
{
	return counter->share.percent < STACKTAP_MULTIPLEX_PERCENT;
}

/* @counter has no event (yet). */
static inline void counter_share_restart(struct stacktap_counter *counter)
{
	/* what earlier events of this counter had: st_counter_read() adds to it */
	counter->share = (struct stacktap_share) {
		.enabled_ns = counter->enabled_ns,
		.running_ns = counter->running_ns,
		.percent = 100,
	};
}

#endif /* STACKTAP_KMOD_CPU_H */
