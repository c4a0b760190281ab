// SPDX-License-Identifier: GPL-2.0-only
#include <linux/export.h>
#include <linux/perf_event.h>
#include <linux/smp.h>

#include "../capture.h"
#include "../defer.h"
#include "../session.h"
#include "inject.h"

static void inject_cpu(struct stacktap_cpu *cpu, struct pt_regs *regs,
		       struct stacktap_injection *injection)
{
	struct perf_sample_data data;
	struct perf_event *event;
	unsigned int i;

	for (i = 0; i < STACKTAP_MAX_SOURCES; i++) {
		/* freed after a grace period that begins when it is not found here any more */
		event = READ_ONCE(cpu->counters[i].event);
		if (!event || event->attr.type != PERF_TYPE_SOFTWARE ||
		    event->attr.config != PERF_COUNT_SW_ALIGNMENT_FAULTS)
			continue;
		/* nor does perf let a counter overflow that does not count */
		if (READ_ONCE(event->state) != PERF_EVENT_STATE_ACTIVE)
			continue;
		injection->calls++;
		injection->recording += READ_ONCE(cpu->recording);
		injection->stashing += READ_ONCE(cpu->stashing);
		perf_sample_data_init(&data, 0, 1);
		st_capture_overflow(event, &data, regs);
	}
}

void stacktap_inject(struct pt_regs *regs, struct stacktap_injection *ret_injection)
{
	struct stacktap_session *session;
	struct stacktap_cpu *cpu;
	unsigned int slot;

	*ret_injection = (struct stacktap_injection) { 0 };
	for (slot = 0; slot < STACKTAP_MAX_SESSIONS; slot++) {
		session = st_defer_session(slot);
		cpu = session ? session_cpu(session, smp_processor_id()) : NULL;
		if (cpu)
			inject_cpu(cpu, regs, ret_injection);
	}
}
EXPORT_SYMBOL_GPL(stacktap_inject);
