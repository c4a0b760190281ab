// SPDX-License-Identifier: GPL-2.0-only
#include "capture.h"
#include "counting.h"
#include "events.h"
#include "fallback.h"

enum {
	/* in looks, which are two seconds apart */
	FALLBACK_FIRST = 1,
	FALLBACK_MOST = 32,
};

static void fallback_wait(struct stacktap_fallback *fallback, unsigned int looks)
{
	fallback->wait = looks;
	fallback->left = looks;
}

/* In how many looks the first try is. */
static unsigned int fallback_first(u32 error)
{
	/* there is no such PMU, or it cannot sample: no other user of it will go away */
	return error == ENOENT || error == EOPNOTSUPP ? FALLBACK_MOST : FALLBACK_FIRST;
}

/* Have the real event of @counter, which runs, in place of cpu-clock; if not, nothing has changed. */
static int fallback_end(struct stacktap_counter *counter)
{
	struct stacktap_session *session = counter->cpu->session;
	const struct stacktap_source *source = &session->sources[counter->index];
	u32 fallback_errno = counter->fallback_errno;
	struct perf_event *event;
	int err;

	lockdep_assert_held(&session->lock);
	event = st_counter_create_real(counter, source, st_capture_overflow);
	if (IS_ERR(event))
		return PTR_ERR(event);
	/* before cpu-clock is gone: the real one goes through phase 2 where that does not */
	err = st_counting_prepare_phases(session, counter->cpu, counter);
	if (err) {
		perf_event_release_kernel(event);
		return err;
	}
	/* cpu-clock's timer is cancelled on its CPU, where the handler runs with IRQs off: it is over */
	st_counter_release(counter);
	st_counting_drain(counter->cpu);
	st_counter_replace(counter, source, event, session->two_phase);
	/* while nothing counts: what cpu-clock sampled is before CONFIG, what the real one does behind */
	st_counting_announce(counter->cpu, counter);
	st_counter_enable(counter);
	st_events_raise_counter(counter, STACKTAP_EVENT_FALLBACK_END, fallback_errno);
	return 0;
}

static void fallback_try(struct stacktap_counter *counter)
{
	struct stacktap_fallback *fallback = &counter->fallback;

	if (!counter->fallback_errno)
		return;
	/* it is new */
	if (!fallback->wait)
		fallback_wait(fallback, fallback_first(counter->fallback_errno));
	if (--fallback->left)
		return;
	if (fallback_end(counter))
		fallback_wait(fallback, min(2 * fallback->wait, FALLBACK_MOST));
}

void st_fallback_look(struct stacktap_session *session)
{
	unsigned int cpu, i;

	lockdep_assert_held(&session->lock);
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		for (i = 0; pc && pc->active && i < session->nr_sources; i++)
			fallback_try(&pc->counters[i]);
	}
}
