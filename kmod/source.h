/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_SOURCE_H
#define STACKTAP_KMOD_SOURCE_H

#include <linux/perf_event.h>
#include <linux/stacktap.h>

struct netlink_ext_ack;
struct stacktap_counter;
struct stacktap_cpu;

/* What triggers samples, as the user configured it. */
struct stacktap_source {
	char name[STACKTAP_NAME_LEN];
	u32 type;
	u64 config;
	u64 config1;
	u64 config2;
	u8 mode;		/* enum stacktap_mode */
	u64 period;		/* as given; 0: derived from the rate */
	u32 rate_hz;
	u64 nominal_hz;
	u32 flags;		/* STACKTAP_SRC_* */
};

int st_source_check(const struct stacktap_source *source, struct netlink_ext_ack *extack);

/* Period in the source's own unit; 0 in frequency mode. */
u64 st_source_period(const struct stacktap_source *source);

/* Samples per second that a CPU may deliver; an assumption where only a period is known. */
unsigned int st_source_rate(const struct stacktap_source *source);

/*
 * Make the disabled event of @counter, cpu-clock if the real one is not to be had. -ENODEV: the
 * CPU went offline.
 */
int st_counter_create(struct stacktap_counter *counter, const struct stacktap_source *source,
		      bool two_phase, perf_overflow_handler_t handler);
/* The real event of @counter beside cpu-clock, which stands in for it; disabled. ERR_PTR(). */
struct perf_event *st_counter_create_real(struct stacktap_counter *counter,
					  const struct stacktap_source *source,
					  perf_overflow_handler_t handler);
/* Of @recorded samples, which were read once and the handler goes on from, those of cpu-clock in a fallback. */
u64 st_counter_fallback_recorded(const struct stacktap_counter *counter, u64 recorded);
/* Take @event, which st_counter_create_real() made, in place of cpu-clock, which is released, its samples recorded. */
void st_counter_replace(struct stacktap_counter *counter, const struct stacktap_source *source,
			struct perf_event *event, bool two_phase);
void st_counter_release(struct stacktap_counter *counter);
/* Make a live event follow a change of period or rate. */
int st_counter_set_period(struct stacktap_counter *counter, const struct stacktap_source *source);
/* @counter's event begins to count. */
void st_counter_enable(struct stacktap_counter *counter);
/* Re-arm a live event that overflows no more, with a whole period; those to come are drawn anew. */
void st_counter_rearm(struct stacktap_counter *counter);
/* What @counter's event has counted. Interrupts its CPU, and notes the times on that occasion. */
u64 st_counter_read(struct stacktap_counter *counter);
/* The times as they are known, of counter->seen_at at the latest for hardware; interrupts nobody. */
void st_counter_last_times(struct stacktap_counter *counter, u64 *ret_enabled, u64 *ret_running,
			   u64 *ret_at);

#endif /* STACKTAP_KMOD_SOURCE_H */
