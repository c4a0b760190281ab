// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>

#include "cpu.h"
#include "session.h"
#include "source.h"

enum {
	SOURCE_FALLBACK_HZ = 99,
	SOURCE_ASSUMED_HZ = 1000,	/* of a source of which only the period is known */
	/* no CPU runs slower than 100 MHz, so this is MAX_RATE_HZ there */
	SOURCE_MIN_CYCLES = 10000,
};

#ifdef STACKTAP_TEST
static bool like_pmu;
module_param(like_pmu, bool, 0644);
MODULE_PARM_DESC(like_pmu, "take clocks and software events that are set up from now on as a PMU's interrupts, where there is none");
#endif

static bool source_is_clock(u32 type, u64 config)
{
	return type == PERF_TYPE_SOFTWARE &&
	       (config == PERF_COUNT_SW_CPU_CLOCK || config == PERF_COUNT_SW_TASK_CLOCK);
}

u64 st_source_period(const struct stacktap_source *source)
{
	if (source_is_clock(source->type, source->config))
		return source->mode == STACKTAP_MODE_PERIOD && source->period ?
			source->period : NSEC_PER_SEC / source->rate_hz;
	if (source->mode == STACKTAP_MODE_FREQ)
		return 0;
	return source->period ?: source->nominal_hz / source->rate_hz;
}

unsigned int st_source_rate(const struct stacktap_source *source)
{
	if (source->rate_hz)
		return source->rate_hz;
	if (source_is_clock(source->type, source->config))
		/* not DIV_ROUND_UP_ULL(), which cuts the divisor to 32 bits */
		return DIV64_U64_ROUND_UP(NSEC_PER_SEC, source->period);
	if (source->nominal_hz)
		return min_t(u64, DIV64_U64_ROUND_UP(source->nominal_hz, source->period),
			     STACKTAP_MAX_RATE_HZ);
	return SOURCE_ASSUMED_HZ;
}

static u64 period_slow(u64 period, u32 shift)
{
	/* perf takes 63 bits */
	return period > (u64)S64_MAX >> shift ? S64_MAX : period << shift;
}

/*
 * A rate of whole samples a second, so that it and the period that is made of it say the same; that
 * never falls below 1.
 */
static struct stacktap_source source_slow(const struct stacktap_source *source, u32 shift)
{
	struct stacktap_source slow = *source;

	if (source->rate_hz)
		slow.rate_hz = max(source->rate_hz >> shift, 1U);
	slow.period = period_slow(source->period, shift);
	return slow;
}

/* Of cpu-clock in place of @slow, which is slowed by @shift already. */
static u64 source_fallback_period(const struct stacktap_source *slow, u32 shift)
{
	return slow->rate_hz ? NSEC_PER_SEC / slow->rate_hz :
			       period_slow(NSEC_PER_SEC / SOURCE_FALLBACK_HZ, shift);
}

static u64 source_min_period(const struct stacktap_source *source)
{
	if (source_is_clock(source->type, source->config))
		return STACKTAP_MIN_PERIOD_NS;
	if (source->type == PERF_TYPE_HARDWARE &&
	    (source->config == PERF_COUNT_HW_CPU_CYCLES ||
	     source->config == PERF_COUNT_HW_INSTRUCTIONS ||
	     source->config == PERF_COUNT_HW_REF_CPU_CYCLES))
		return SOURCE_MIN_CYCLES;
	return 1;
}

/*
 * Only PMUs of the CPUs themselves: others read a user's memory when their event is made, as kprobe
 * and uprobe do by the pointer in config1, and we make events again in a worker. Nothing of the
 * user's goes into the event that finds out, so it is as harmless there.
 */
static int source_check_pmu(u32 type, struct netlink_ext_ack *extack)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.disabled = 1,
	};
	struct perf_event *event;
	bool own;

	/* of a task, because a PMU that has no idea of tasks is none of a CPU */
	event = perf_event_create_kernel_counter(&attr, -1, current, NULL, NULL);
	if (PTR_ERR(event) == -ENOMEM)
		return -ENOMEM;
	own = !IS_ERR(event) && event->pmu->type == type &&
	      event->pmu->task_ctx_nr == perf_hw_context;
	if (!IS_ERR(event))
		perf_event_release_kernel(event);
	if (own)
		return 0;
	NL_SET_ERR_MSG(extack, "of PMUs only those of the CPUs themselves can be sources");
	return -EOPNOTSUPP;
}

int st_source_check(const struct stacktap_source *source, struct netlink_ext_ack *extack)
{
	u64 period;

	if (source->type == PERF_TYPE_TRACEPOINT || source->type == PERF_TYPE_BREAKPOINT) {
		NL_SET_ERR_MSG(extack, "tracepoints and breakpoints cannot be sources");
		return -EOPNOTSUPP;
	}
	if (source->type == PERF_TYPE_SOFTWARE && source->config == PERF_COUNT_SW_DUMMY) {
		NL_SET_ERR_MSG(extack, "the dummy event never overflows");
		return -EINVAL;
	}
	/* their registers are of two instants: docs/precise.md */
	if (source->flags & STACKTAP_SRC_PRECISE_MASK) {
		NL_SET_ERR_MSG(extack, "precise events are not supported");
		return -EOPNOTSUPP;
	}
	if (source->type >= PERF_TYPE_MAX) {
		int err = source_check_pmu(source->type, extack);

		if (err)
			return err;
	}
	if (source->mode == STACKTAP_MODE_FREQ && source->period) {
		NL_SET_ERR_MSG(extack, "frequency mode takes a rate, not a period");
		return -EINVAL;
	}
	if (!source->rate_hz && !source->period) {
		NL_SET_ERR_MSG(extack, "a source needs a rate or a period");
		return -EINVAL;
	}
	if (source->mode == STACKTAP_MODE_FREQ)
		return 0;
	if (!source->period && !source->nominal_hz &&
	    !source_is_clock(source->type, source->config)) {
		NL_SET_ERR_MSG(extack, "a rate in period mode needs the source's nominal rate");
		return -EINVAL;
	}
	period = st_source_period(source);
	if (period < source_min_period(source)) {
		NL_SET_ERR_MSG(extack, "the period is too short: more than 10000 samples a second");
		return -ERANGE;
	}
	if (period >> 63) {
		NL_SET_ERR_MSG(extack, "the period does not fit 63 bits");
		return -ERANGE;
	}
	if (source->nominal_hz && source->nominal_hz / period > STACKTAP_MAX_RATE_HZ) {
		NL_SET_ERR_MSG(extack, "they give more than 10000 samples a second");
		return -ERANGE;
	}
	return 0;
}

static struct perf_event *counter_event_create(struct stacktap_counter *counter,
					       const struct stacktap_source *source, u32 type,
					       u64 config, u64 period,
					       perf_overflow_handler_t handler)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.config = config,
		.disabled = 1,
		.exclude_guest = 1,
		.exclude_hv = 1,
		.exclude_user = !!(source->flags & STACKTAP_SRC_EXCLUDE_USER),
		.exclude_kernel = !!(source->flags & STACKTAP_SRC_EXCLUDE_KERNEL),
	};

	if (type == source->type && config == source->config) {
		attr.config1 = source->config1;
		attr.config2 = source->config2;
	}
	if (period) {
		attr.sample_period = period;
	} else {
		attr.freq = 1;
		attr.sample_freq = source->rate_hz;
	}
	return perf_event_create_kernel_counter(&attr, counter->cpu->cpu, NULL, handler, counter);
}

u64 st_counter_fallback_recorded(const struct stacktap_counter *counter, u64 recorded)
{
	lockdep_assert_held(&counter->cpu->session->lock);
	return counter->fallback_recorded +
	       (counter->fallback_errno ? recorded - counter->recorded_before : 0);
}

/* What the event sampled that is released; none of that waits in the stash. */
static void counter_settle(struct stacktap_counter *counter)
{
	u64 recorded = local64_read(&counter->recorded);

	counter->fallback_recorded = st_counter_fallback_recorded(counter, recorded);
	counter->recorded_before = recorded;
}

/*
 * @event, which has not been enabled yet, is @counter's from now on. The handler does not run; period,
 * raised and fallback_errno are those of @event already.
 */
static void counter_begin(struct stacktap_counter *counter, const struct stacktap_source *slow,
			  struct perf_event *event, bool two_phase)
{
	u32 type = counter->fallback_errno ? PERF_TYPE_SOFTWARE : slow->type;
	u64 config = counter->fallback_errno ? PERF_COUNT_SW_CPU_CLOCK : slow->config;

	memset(&counter->stall, 0, sizeof(counter->stall));
	counter->type = type;
	counter->config = config;
	counter->rate_hz = slow->rate_hz;
	counter->rate_shift = degrade_rate_shift(counter->cpu->session->degrade.step);
	counter->clock = source_is_clock(type, config);
	counter->context = counter->clock ? STACKTAP_CONTEXT_HRTIMER :
			   type == PERF_TYPE_SOFTWARE ? STACKTAP_CONTEXT_TASK :
			   STACKTAP_CONTEXT_IRQ;
	counter->one_phase = type == PERF_TYPE_SOFTWARE && !two_phase;
#ifdef STACKTAP_TEST
	if (READ_ONCE(like_pmu))
		counter->one_phase = false;
#endif
	counter->may_finish = !counter->one_phase && !two_phase;
	st_pace_begin(&counter->pace, event, counter->period,
		      counter->clock ? PACE_CLOCK :
		      type == PERF_TYPE_SOFTWARE ? PACE_SOFTWARE : PACE_COUNTER,
		      !(slow->flags & STACKTAP_SRC_NO_JITTER), counter->index);
	counter->event = event;
}

int st_counter_create(struct stacktap_counter *counter, const struct stacktap_source *source,
		      bool two_phase, perf_overflow_handler_t handler)
{
	u32 shift = degrade_rate_shift(counter->cpu->session->degrade.step);
	const struct stacktap_source slow = source_slow(source, shift);
	u64 config = source->config, period = st_source_period(&slow);
	u32 type = source->type, fallback_errno = 0;
	struct perf_event *event;

	lockdep_assert_held(&counter->cpu->session->lock);
	/*
	 * Taken first: an offline callback that moves it from here on marks the new event as dead.
	 * One that has moved it had cleared the bit before, which the acquire shows us: perf might
	 * still make an event then, to kill it unmarked. The locks that perf takes for the event
	 * order all this before its life.
	 */
	counter->hotplug_seq = smp_load_acquire(&counter->cpu->hotplug_seq);
	if (!cpumask_test_cpu(counter->cpu->cpu, counter->cpu->session->online))
		return -ENODEV;
	event = counter_event_create(counter, &slow, type, config, period, handler);
	if (IS_ERR(event)) {
		int err = PTR_ERR(event);

		/*
		 * Our offline callback runs before perf's, so the number has moved when that is
		 * why; the CPU may be back by now, which is no reason to fall back.
		 */
		if (counter->hotplug_seq != READ_ONCE(counter->cpu->hotplug_seq) ||
		    !cpumask_test_cpu(counter->cpu->cpu, counter->cpu->session->online))
			return -ENODEV;
		if (err == -EACCES || err == -ENOMEM || source->flags & STACKTAP_SRC_NO_FALLBACK ||
		    source_is_clock(type, config))
			return err;
		fallback_errno = -err;
		type = PERF_TYPE_SOFTWARE;
		config = PERF_COUNT_SW_CPU_CLOCK;
		period = source_fallback_period(&slow, shift);
		event = counter_event_create(counter, &slow, type, config, period, handler);
		if (IS_ERR(event))
			return PTR_ERR(event);
	}

	counter->period = period;
	counter->raised = 0;
	counter_settle(counter);
	counter->fallback_errno = fallback_errno;
	counter->fallback = (struct stacktap_fallback) { 0 };
	counter_begin(counter, &slow, event, two_phase);
	return 0;
}

struct perf_event *st_counter_create_real(struct stacktap_counter *counter,
					  const struct stacktap_source *source,
					  perf_overflow_handler_t handler)
{
	u32 shift = degrade_rate_shift(counter->cpu->session->degrade.step);
	const struct stacktap_source slow = source_slow(source, shift);
	struct perf_event *event;

	lockdep_assert_held(&counter->cpu->session->lock);
	event = counter_event_create(counter, &slow, slow.type, slow.config,
				     st_source_period(&slow), handler);
	/*
	 * The number is cpu-clock's: if the CPU has left since, that is dead and this may live, on a CPU
	 * that is back. If it leaves from here on both are dead, and the number tells so.
	 */
	if (IS_ERR(event) || counter->hotplug_seq == READ_ONCE(counter->cpu->hotplug_seq))
		return event;
	perf_event_release_kernel(event);
	return ERR_PTR(-ENODEV);
}

void st_counter_replace(struct stacktap_counter *counter, const struct stacktap_source *source,
			struct perf_event *event, bool two_phase)
{
	u32 shift = degrade_rate_shift(counter->cpu->session->degrade.step);
	const struct stacktap_source slow = source_slow(source, shift);
	u64 whole = st_source_period(&slow), period;

	/* what the handler had to do to keep the ceiling holds; in frequency mode the kernel sees to it */
	period = period_slow(whole, counter->raised);
	if (!whole || (period != whole && perf_event_period(event, period))) {
		counter->raised = 0;
		period = whole;
	}
	counter->period = period;
	counter_settle(counter);
	counter->fallback_errno = 0;
	counter_begin(counter, &slow, event, two_phase);
}

void st_counter_enable(struct stacktap_counter *counter)
{
	counter->enabled_at = ktime_get_mono_fast_ns();
	perf_event_enable(counter->event);
}

u64 st_counter_read(struct stacktap_counter *counter)
{
	u64 enabled, running, count;

	lockdep_assert_held(&counter->cpu->session->lock);
	count = perf_event_read_value(counter->event, &enabled, &running);
	counter->seen_enabled_ns = counter->enabled_ns + enabled;
	counter->seen_running_ns = counter->running_ns + running;
	counter->seen_at = ktime_get_mono_fast_ns();
	return count;
}

void st_counter_release(struct stacktap_counter *counter)
{
	struct perf_event *event = counter->event;

	lockdep_assert_held(&counter->cpu->session->lock);
	if (!event)
		return;
	perf_event_disable(event);
	st_counter_read(counter);
	counter->enabled_ns = counter->seen_enabled_ns;
	counter->running_ns = counter->seen_running_ns;
	/* first, so that who finds it in an NMI is waited for before it is freed */
	WRITE_ONCE(counter->event, NULL);
	perf_event_release_kernel(event);
	counter_share_restart(counter);
}

int st_counter_set_period(struct stacktap_counter *counter, const struct stacktap_source *source)
{
	u32 shift = degrade_rate_shift(counter->cpu->session->degrade.step);
	const struct stacktap_source slow = source_slow(source, shift);
	u64 period = counter->fallback_errno ? source_fallback_period(&slow, shift) :
					       st_source_period(&slow);
	u32 raised = counter->rate_shift + READ_ONCE(counter->raised);
	u64 old = counter->period;
	int err;

	lockdep_assert_held(&counter->cpu->session->lock);
	/* a step that is smaller than what the handler had to do does not undo the rest of that */
	raised = shift > counter->rate_shift && raised > shift ? min(raised - shift, 62U) : 0;
	/* in frequency mode the kernel has taken it back by itself */
	if (!period)
		raised = 0;
	period = period_slow(period, raised);
	WRITE_ONCE(counter->setting, true);
	/* pairs with counter_raise(): who sees the new period sees that it is being set */
	smp_wmb();
	/* first: what the handler draws by the old one meanwhile would be loaded after the new one */
	WRITE_ONCE(counter->period, period);
	/* perf sets it on the counter's own CPU, thus between two handlers */
	err = perf_event_period(counter->event, period ?: slow.rate_hz);
	if (err)
		WRITE_ONCE(counter->period, old);
	else
		WRITE_ONCE(counter->raised, raised);
	/* likewise: who sees that it is set sees the period */
	smp_wmb();
	WRITE_ONCE(counter->setting, false);
	if (err)
		return err;
	counter->rate_hz = slow.rate_hz;
	counter->rate_shift = shift;
	/* what it counted so far was counted by another period */
	counter->stall.suspected = false;
	return 0;
}

void st_counter_rearm(struct stacktap_counter *counter)
{
	perf_event_disable(counter->event);
	st_pace_rearm(&counter->pace, counter->event, counter->period);
	perf_event_enable(counter->event);
}

void st_counter_last_times(struct stacktap_counter *counter, u64 *ret_enabled, u64 *ret_running,
			   u64 *ret_at)
{
	u64 now;

	lockdep_assert_held(&counter->cpu->session->lock);
	*ret_enabled = counter->seen_enabled_ns;
	*ret_running = counter->seen_running_ns;
	*ret_at = counter->seen_at;
	/* hardware's take turns; software's never do, so for them our own clock tells */
	if (!counter->event || counter->type != PERF_TYPE_SOFTWARE ||
	    counter->hotplug_seq != READ_ONCE(counter->cpu->hotplug_seq))
		return;
	now = ktime_get_mono_fast_ns();
	*ret_enabled = counter->enabled_ns + now - counter->enabled_at;
	*ret_running = counter->running_ns + now - counter->enabled_at;
	*ret_at = now;
}
