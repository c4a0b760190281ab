/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_RECORD_H
#define STACKTAP_KMOD_RECORD_H

#include "cpu.h"

/*
 * Records other than samples. Every caller is the only producer of the CPU's ring, see ring.h.
 */
enum {
	RECORD_LOST_MAX = sizeof(struct stacktap_lost_record) +
			  STACKTAP_MAX_SOURCES * STACKTAP_LOST_REASONS *
			  sizeof(struct stacktap_lost_entry),
	RECORD_CPU_MAX = sizeof(struct stacktap_cpu_record) +
			 STACKTAP_MAX_SOURCES * (sizeof(struct stacktap_cpu_counts) +
						 sizeof(struct stacktap_cpu_more)),
	/* stays free while a session runs, so that its last words fit a ring nobody reads */
	RECORD_RESERVE = 3 * STACKTAP_MAX_SOURCES * sizeof(struct stacktap_throttle) +
			 RECORD_LOST_MAX + RECORD_CPU_MAX,
};

/* Space for records of a running session, or -EINVAL for an impossible tail. */
static inline s64 record_space(const struct stacktap_ring *ring)
{
	s64 space = ring_space(ring);

	if (space < 0)
		return space;
	return max_t(s64, space - RECORD_RESERVE, 0);
}

static inline void record_init(struct stacktap_record *header, u16 type, u16 flags, u32 size,
			       u64 time)
{
	header->size = size;
	header->type = type;
	header->flags = flags;
	header->time = time;
}

/*
 * What the ring owes, which is written before the next sample: THROTTLE, STALL, MISSED, LOST, and what the
 * sample is to be read by. Returns the space left, none when something of the latter did not fit, or
 * what record_space() does.
 */
s64 st_record_settle(struct stacktap_cpu *cpu, s64 space);

static inline s64 record_debts(struct stacktap_cpu *cpu, s64 space)
{
	return likely(!READ_ONCE(cpu->owing)) ? space : st_record_settle(cpu, space);
}

static inline void record_pay(struct stacktap_cpu *cpu)
{
	record_debts(cpu, record_space(cpu->ring));
}

void st_record_owe_anchor(struct stacktap_cpu *cpu);
/* What is configured now; by st_cpu_call(), so that it does not change meanwhile. */
void st_record_owe_config(struct stacktap_counter *counter);
/* Nothing but that the counts of the CPU's counters may have changed. */
void st_record_owe_counts(struct stacktap_cpu *cpu);
void st_record_owe_state(struct stacktap_cpu *cpu, enum stacktap_cpu_state state);
/* LOST and CPU{STOPPED} out of the reserve; repeated by FLUSH until there was room. */
void st_record_final(struct stacktap_cpu *cpu);

#endif /* STACKTAP_KMOD_RECORD_H */
