// SPDX-License-Identifier: GPL-2.0-only
#include "events.h"
#include "record.h"
#include "session.h"
#include "stall.h"

enum {
	/* in which a CPU must have been busy for so long: one that idles owes no overflows */
	STALL_BUSY_NS = NSEC_PER_SEC / 5,
	/* that a counter may count without an overflow; more than a delayed interrupt explains */
	STALL_PERIODS = 4,
};

/*
 * Reading a counter interrupts its CPU, so only those are read that gave no sample while their CPU
 * was busy. The first such look takes the count, a later one compares.
 */
static bool counter_stalled(struct stacktap_counter *counter, u64 busy_ns)
{
	struct stacktap_stall *stall = &counter->stall;
	u64 calls = local64_read(&counter->calls), count;

	if (calls != stall->calls) {
		stall->calls = calls;
		stall->busy_ns = busy_ns;
		stall->suspected = false;
		return false;
	}
	if (busy_ns - stall->busy_ns < STALL_BUSY_NS)
		return false;
	stall->busy_ns = busy_ns;
	count = st_counter_read(counter);
	if (!stall->suspected) {
		stall->suspected = true;
		stall->count = count;
		return false;
	}
	/* in frequency mode the kernel's own period, as it is now; one that is drawn is below two */
	return (count - stall->count) / STALL_PERIODS >
	       (counter->period ?: READ_ONCE(counter->event->hw.sample_period));
}

static void stall_tell(struct stacktap_cpu *cpu, void *arg)
{
	st_record_owe_counts(cpu);
	record_pay(cpu);
}

void st_stall_look(struct stacktap_counter *counter, u64 busy_ns)
{
	if (!counter_stalled(counter, busy_ns))
		return;
	st_counter_rearm(counter);
	counter->stall.suspected = false;
	WRITE_ONCE(counter->stalled, counter->stalled + 1);
	st_cpu_call(counter->cpu, stall_tell, NULL);
	st_events_raise_counter(counter, STACKTAP_EVENT_STALL, 0);
}
