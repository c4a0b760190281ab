// SPDX-License-Identifier: GPL-2.0-only
#include <linux/moduleparam.h>

#include "degrade.h"
#include "events.h"
#include "rate.h"

static unsigned int handler_budget_ns = 2000;
module_param(handler_budget_ns, uint, 0644);
MODULE_PARM_DESC(handler_budget_ns,
		 "mean time of overflow handlers above which a new session degrades, in ns; 0: never");

static void window_add(struct degrade_window *window, const struct stacktap_cost *cost,
		       unsigned int bucket)
{
	unsigned int i;

	window->ns += local64_read(&cost->ns);
	for (i = 0; i < STACKTAP_TIME_BUCKETS; i++) {
		u64 calls = local64_read(&cost->times[i]);

		window->calls += calls;
		if (i >= bucket)
			window->longer += calls;
	}
}

/* A handler may move them meanwhile: one call more or less in one of the three does no harm. */
static void window_read(struct degrade_window *ret_window, const struct stacktap_cpu *cpu,
			unsigned int bucket)
{
	unsigned int i;

	memset(ret_window, 0, sizeof(*ret_window));
	window_add(ret_window, &cpu->handler_cost, bucket);
	window_add(ret_window, &cpu->front_cost, bucket);
	for (i = 0; i < STACKTAP_MAX_SOURCES; i++)
		ret_window->lost += local64_read(&cpu->counters[i].lost[STACKTAP_LOST_BUDGET]);
}

/* How often the handlers doubled a period themselves, where they did since the last look. */
static u32 degrade_raises(struct stacktap_cpu *cpu)
{
	unsigned int i;
	u32 most = 0;

	for (i = 0; i < STACKTAP_MAX_SOURCES; i++) {
		struct stacktap_counter *counter = &cpu->counters[i];
		u64 raises = local64_read(&counter->raises);

		if (raises != counter->raises_seen)
			most = max(most, READ_ONCE(counter->raised));
		counter->raises_seen = raises;
	}
	return most;
}

static void degrade_restart(struct stacktap_session *session)
{
	unsigned int cpu, bucket = degrade_bucket(session->budget_ns);

	session->degrade.calm = 0;
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (pc)
			window_read(&pc->window, pc, bucket);
	}
}

void st_degrade_init(struct stacktap_session *session)
{
	session->budget_ns = READ_ONCE(handler_budget_ns);
	session->kernel_frames = degrade_kernel_frames(0);
	degrade_reset(&session->degrade);
}

void st_degrade_start(struct stacktap_session *session)
{
	lockdep_assert_held(&session->lock);
	degrade_restart(session);
}

void st_degrade_stop(struct stacktap_session *session)
{
	lockdep_assert_held(&session->lock);
	degrade_reset(&session->degrade);
	WRITE_ONCE(session->kernel_frames, degrade_kernel_frames(0));
}

/* Take or take back steps. */
static void degrade_step(struct stacktap_session *session, u32 step)
{
	bool gives_up = step > session->degrade.step;
	u32 frames = degrade_kernel_frames(step);

	WRITE_ONCE(session->degrade.step, step);
	session->degradations += gives_up;
	session->generation++;
	/* before CONFIG or behind it, so that no stack is deeper than what was told last */
	if (gives_up)
		WRITE_ONCE(session->kernel_frames, frames);
	st_rate_follow(session, true);
	WRITE_ONCE(session->kernel_frames, frames);
	st_events_raise(session, gives_up ? STACKTAP_EVENT_DEGRADED : STACKTAP_EVENT_RECOVERED, 0);
}

void st_degrade_look(struct stacktap_session *session)
{
	/* where the counter's rate is unknown, what cost_ns() assumes is for the ceiling alone */
	u32 budget_ns = cost_is_known() ? session->budget_ns : 0;
	unsigned int cpu, bucket = degrade_bucket(budget_ns);
	enum degrade_load worst = DEGRADE_UNKNOWN;
	u32 step, raised = 0;

	lockdep_assert_held(&session->lock);
	/* what perf refused before */
	st_rate_follow(session, false);
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);
		struct degrade_window window;
		enum degrade_load load;

		if (!pc || !pc->active)
			continue;
		raised = max(raised, degrade_raises(pc));
		window_read(&window, pc, bucket);
		load = degrade_judge(budget_ns, &pc->window, &window);
		if (load != DEGRADE_UNKNOWN)
			pc->window = window;
		worst = max(worst, load);
	}
	step = raised ? degrade_raised(&session->degrade, raised) :
			degrade_next(&session->degrade, worst);
	if (step != session->degrade.step)
		degrade_step(session, step);
	else if (raised)
		/* there is no step left for it, but CONFIG has to tell the period */
		st_rate_follow(session, true);
}

void st_degrade_set_budget(struct stacktap_session *session, u32 budget_ns)
{
	lockdep_assert_held(&session->lock);
	session->budget_ns = budget_ns;
	session->degrade.patience = DEGRADE_PATIENCE;
	session->degrade.has_recovered = false;
	degrade_restart(session);
	if (session->state == STACKTAP_STATE_RUNNING && !budget_ns && session->degrade.step)
		degrade_step(session, 0);
}
