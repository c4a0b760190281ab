/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event names of the command line (perf's names) to sources.
 */
#ifndef STACKTAP_CLIENT_EVENT_H
#define STACKTAP_CLIENT_EVENT_H

#include "client/netlink.h"

struct broker_event;

/*
 * "cycles", "instructions:u", "cpu-clock", "page-faults", "LLC-load-misses", "r1a8",
 * "PMU/config=0x8/" ... to a source's type, config and flags, and its nominal rate where one is
 * known. With perf's terms /freq=N/ and /period=N/ also its rate_hz or period, else 0.
 * -EINVAL with a sentence in @error (what is wrong and the nearest name that works).
 */
int event_parse(const char *text, struct control_source *ret_source, char *error,
		size_t error_size);
/*
 * Can any CPU count it? -EOPNOTSUPP with the reason and the nearest that works. What is asked in vain
 * for want of rights is left to the module, and cycles may have no counter: cpu-clock stands in.
 */
int event_check_countable(const struct control_source *source, char *error, size_t error_size);
/* 0: that CPU can count it, with the rights that we have; -errno of perf_event_open(). */
int event_try(const struct broker_event *event);
/* Is the event a clock, so that periods are nanoseconds? */
bool event_is_clock(uint32_t type, uint64_t config);
/* Does a share of its samples mean a share of CPU time (cycles, clocks)? */
bool event_is_cpu_time(uint32_t type, uint64_t config);
/* perf's name of an event, or NULL. */
const char *event_name(uint32_t type, uint64_t config);

/*
 * What a busy CPU counts of cycles in a second: cpufreq's base or maximum frequency, else measured
 * with a perf counter for 20 ms, else 0.
 */
uint64_t event_nominal_cycles(void);

#endif /* STACKTAP_CLIENT_EVENT_H */
