// SPDX-License-Identifier: GPL-2.0-only
#include "control.h"
#include "fallback.h"
#include "session.h"

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

void st_fallback_begin(struct stacktap_counter *counter)
{
	u32 error = counter->fallback_errno;

	/* there is no such PMU, or it cannot sample: no other user of it will go away */
	fallback_wait(&counter->fallback, error == ENOENT || error == EOPNOTSUPP ?
					  FALLBACK_MOST : FALLBACK_FIRST);
}

static void fallback_try(struct stacktap_counter *counter)
{
	struct stacktap_fallback *fallback = &counter->fallback;

	if (!counter->fallback_errno || --fallback->left)
		return;
	if (st_control_restore(counter))
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
