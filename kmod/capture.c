// SPDX-License-Identifier: GPL-2.0-only
/*
 * From overflow to record. Phase 1 runs in NMI or in a PMU's interrupt and fills a slot of the stash.
 * Phase 2 runs with IRQs off on the same CPU (see defer.c), walks the user stack and writes the ring.
 * Timer and software events do both at once, and so does an interrupt or NMI of the PMU that hit user mode
 * where place.h lets it. User space has the ring mapped, so nothing is decided by what is read back from
 * there.
 */
#include <linux/cgroup.h>
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>

#include "allowance.h"
#include "capture.h"
#include "ceiling.h"
#include "compat/compat.h"
#include "defer.h"
#include "events.h"
#include "place.h"
#include "record.h"
#include "session.h"
#include "slice.h"
#include "stack.h"
#include "user.h"

#include <stacktap/stretch.h>

#ifdef STACKTAP_TEST
static bool noop;
module_param(noop, bool, 0644);
MODULE_PARM_DESC(noop, "count overflows and do nothing else, to measure what they cost by themselves");
#endif

enum {
	/* kept free behind the user stack */
	CAPTURE_EXTRA_BYTES = 2 * sizeof(struct stacktap_section) +
			      STACKTAP_MAX_EXACT_PCS * sizeof(u16) + sizeof(u64),
	/* the first user frame is always written, so there has to be room for it */
	CAPTURE_MIN_BYTES = sizeof(struct stacktap_sample) + CAPTURE_EXTRA_BYTES +
			    2 * (sizeof(struct stacktap_section) + sizeof(u64)),
	/* calls of one counter in a window that are too many: half as many again as may be asked for */
	CAPTURE_WINDOW_NS = 100000000,
	CAPTURE_WINDOW_CALLS = STACKTAP_MAX_RATE_HZ / (NSEC_PER_SEC / CAPTURE_WINDOW_NS) * 3 / 2,
	/* that are so few that they are not what exceeds the ceiling */
	CAPTURE_FEW_CALLS = 15,
};

static DEFINE_PER_CPU(struct stretch, capture_stretch);

/* What became of a hit where both phases are one. */
enum capture_outcome {
	CAPTURE_LOST,		/* before it came to the user stack */
	CAPTURE_DONE,
	CAPTURE_PUT_OFF,	/* nothing was written, phase 2 is to walk that stack */
};

static void capture_lose(struct stacktap_counter *counter, enum stacktap_lost reason, u64 time)
{
	struct stacktap_session *session = counter->cpu->session;

	counter_lose(counter, reason, time);
	/* no irq_work on a CPU that may be past its last flush: it would stay queued */
	if (reason != STACKTAP_LOST_OFFLINE && events_note(session, STACKTAP_EVENT_LOSS))
		st_defer_wake(session);
}

/* All that the interrupted context tells by itself; its flags. IRQs are off, or this is an NMI. */
static __always_inline u16
sample_begin(struct stacktap_sample *sample, const struct stacktap_counter *counter,
	     const struct perf_sample_data *data, struct pt_regs *regs, u64 now)
{
	struct task_struct *task = current;
	u16 flags = 0;

	if (user_mode(regs))
		flags |= STACKTAP_SAMPLE_USER_MODE;
	if (unlikely(task->flags & COMPAT_PF_NO_USER))
		flags |= STACKTAP_SAMPLE_KERNEL_THREAD;
	if (unlikely(is_idle_task(task)))
		flags |= STACKTAP_SAMPLE_IDLE;
	record_init(&sample->header, STACKTAP_RECORD_SAMPLE, flags, 0, now);
	sample->source = counter->index;
	sample->context = in_nmi() ? STACKTAP_CONTEXT_NMI : counter->context;
	sample->kernel_end = STACKTAP_END_NONE;
	sample->user_end = STACKTAP_END_NONE;
	sample->reserved = 0;
	sample->jitter = counter->pace.ended;
	sample->cpu = counter->cpu->cpu;
	sample->delay_ns = 0;
	sample->tgid = task->tgid;
	sample->tid = task->pid;
	/*
	 * RCU waits for us as it does for readers. That is needed here: once the thread is unhashed
	 * nothing else keeps its leader from being freed.
	 */
	sample->start_time = pid_alive(task) ? READ_ONCE(task->group_leader)->start_boottime :
			     task->start_boottime;
	sample->exec_id = task->self_exec_id;
	sample->cgroup_id = cgroup_id(task_dfl_cgroup(task));
	/* in frequency mode the kernel's own; otherwise what was drawn says nothing of the weight */
	sample->period = READ_ONCE(counter->period) ?: data->period;
	sample->generation = 0;
	/* a rename may be half done; the last byte is the only one that matters for safety */
	memcpy(sample->comm, task->comm, sizeof(sample->comm));
	sample->comm[sizeof(sample->comm) - 1] = 0;
	return flags;
}

/* What tells in phase 2 whether that context is still the one that runs. */
static void hit_begin(struct stacktap_hit *hit, struct pt_regs *regs)
{
	const struct task_struct *task = current;

	hit->task_start = task->start_boottime;
	hit->mm = task->mm;
	if (user_mode(regs)) {
		hit->pc = instruction_pointer(regs);
		hit->sp = user_stack_pointer(regs);
		hit->fp = stack_regs_fp(regs);
	}
}

static struct stacktap_section *section_begin(void *record, u32 size, u16 kind)
{
	struct stacktap_section *section = record + size;

	section->kind = kind;
	section->flags = 0;
	return section;
}

static u32 section_end(struct stacktap_section *section, unsigned int nr)
{
	u32 len = nr * sizeof(u64);

	section->len = len;
	return nr ? sizeof(*section) + len : 0;
}

static u32 section_exact(struct stacktap_section *section, const struct stacktap_stack *stack)
{
	u32 len = stack->nr_exact * sizeof(*stack->exact), size = ALIGN(len, STACKTAP_RECORD_ALIGN);

	section->len = len;
	memcpy(section + 1, stack->exact, len);
	memset((void *)(section + 1) + len, 0, size - len);
	return sizeof(*section) + size;
}

static u32 section_missing(struct stacktap_section *section, u64 address)
{
	*(u64 *)(section + 1) = address;
	return section_end(section, 1);
}

static unsigned int section_room(s64 space, u32 size, unsigned int limit)
{
	s64 room = space - size - (s64)sizeof(struct stacktap_section);

	return room > 0 ? min_t(u64, room / sizeof(u64), limit) : 0;
}

static unsigned int capture_kernel_room(s64 space)
{
	u32 kept = CAPTURE_MIN_BYTES - sizeof(struct stacktap_section) - sizeof(u64);

	return section_room(space, kept, STACKTAP_MAX_KERNEL_FRAMES);
}

static unsigned int level_user_frames(enum ceiling_level level, unsigned int frames)
{
	if (likely(level == CEILING_WHOLE))
		return frames;
	return level == CEILING_SHORT ? min_t(unsigned int, frames, CEILING_SHORT_FRAMES) : 1;
}

static unsigned int level_kernel_frames(enum ceiling_level level, unsigned int frames)
{
	return likely(level < CEILING_LEAF) ? frames : 1;
}

/* Of a stack that has all frames that were wanted, but not as many as the session does. */
static u8 short_end(u32 left_ns)
{
	return left_ns ? STACKTAP_END_BUDGET : STACKTAP_END_TIME;
}

static void capture_refuse(struct stacktap_counter *counter, s64 space, u64 now)
{
	struct stacktap_cpu *cpu = counter->cpu;

	capture_lose(counter, space >= (s64)(cpu->ring->data_bytes - RECORD_RESERVE) ?
			      STACKTAP_LOST_TOO_BIG : STACKTAP_LOST_RING_FULL, now);
	if (wq_has_sleeper(&cpu->session->wait))
		st_defer_wake(cpu->session);
}

/*
 * Where the next sample goes, or NULL when it is lost. Caller is the ring's producer. All parts of
 * a sample go straight into the ring; one that is cut by the end of the free space is dropped,
 * never shortened.
 */
static __always_inline struct stacktap_sample *
capture_begin(struct stacktap_counter *counter, u64 now, s64 *ret_space)
{
	struct stacktap_ring *ring = counter->cpu->ring;
	s64 space = record_debts(counter->cpu, record_space(ring));

	if (unlikely(space < CAPTURE_MIN_BYTES)) {
		if (space < 0)
			capture_lose(counter, STACKTAP_LOST_BAD_TAIL, now);
		else
			capture_refuse(counter, space, now);
		return NULL;
	}
	*ret_space = space;
	return ring_head(ring);
}

/* What follows the stack of @sample, which is @size bytes long so far. Returns its size then. */
static noinline u32 capture_extras(struct stacktap_cpu *cpu, struct stacktap_sample *sample,
				   u32 size, s64 space, struct cost_moment began,
				   u32 limit_ns)
{
	struct stacktap_stack *stack = &cpu->stack;

	if (stack->nr_exact)
		size += section_exact(section_begin(sample, size, STACKTAP_SECTION_EXACT_PC),
				      stack);
	if (stack->is_missing)
		size += section_missing(section_begin(sample, size, STACKTAP_SECTION_MISSING),
					stack->missing);
	if (stack->slice)
		size += st_slice_append(cpu, sample, size, space, began, limit_ns);
	return size;
}

/*
 * The user half of @sample, which is @size bytes long so far and has @flags and @kernel_end, and
 * its publication, for which the section has @left_ns from @began on. @slot is what phase 1 left of it,
 * NULL in one phase. @in_place: what would be cut or have a slice is put off instead.
 */
static __always_inline enum capture_outcome
capture_finish(struct stacktap_counter *counter, struct stacktap_sample *sample, u32 size,
	       const struct stacktap_slot *slot, u16 flags, u8 kernel_end, s64 space,
	       struct cost_moment began, u32 left_ns, enum ceiling_level level, bool in_place)
{
	struct stacktap_section *section = section_begin(sample, size, STACKTAP_SECTION_USER_IPS);
	struct stacktap_cpu *cpu = counter->cpu;
	struct stacktap_session *session = cpu->session;
	struct stacktap_ring *ring = cpu->ring;
	struct stacktap_stack *stack = &cpu->stack;
	unsigned int wanted = level_user_frames(level, session->user_frames);
	u32 limit_ns = min(left_ns, session->walk_limit_ns);

	stack->ips = (u64 *)(section + 1);
	stack->nr = 0;
	stack->max = section_room(space - CAPTURE_EXTRA_BYTES, size, wanted);
	stack->end = STACKTAP_END_NONE;
	stack->extras = 0;
	stack->generation = 0;
	flags = st_user_walk(cpu, slot, flags, began, limit_ns, in_place);
	if (in_place && unlikely(stack->end == STACK_PUT_OFF)) {
		count_add(1, &counter->put_off);
		return CAPTURE_PUT_OFF;
	}
	if (unlikely(stack->end == STACKTAP_END_DEPTH && stack->nr >= stack->max)) {
		if (stack->max < wanted) {
			capture_refuse(counter, space, began.now);
			return CAPTURE_DONE;
		}
		if (wanted < session->user_frames)
			stack->end = short_end(left_ns);
	}
	if (unlikely(level != CEILING_WHOLE))
		stack->slice = 0;
	size += section_end(section, stack->nr);
	if (unlikely(stack->extras))
		size = capture_extras(cpu, sample, size, space, began, limit_ns);

	sample->header.size = size;
	sample->header.flags = flags;
	sample->user_end = stack->end;
	sample->generation = stack->generation;
	ring_commit(ring, size);

	count_add(1, &counter->recorded);
	if (in_place)
		count_add(1, &counter->in_place);
	count_add(1, &counter->kernel_end[kernel_end]);
	count_add(1, &counter->user_end[stack->end]);
	if (unlikely(flags & (STACKTAP_SAMPLE_MOVED | STACKTAP_SAMPLE_STALE)))
		count_add(1, flags & STACKTAP_SAMPLE_MOVED ? &counter->moved : &counter->stale);

	/* the barrier in wq_has_sleeper() orders head before the look at the queue */
	if (ring->data_bytes - RECORD_RESERVE - space + size >= ring->watermark &&
	    wq_has_sleeper(&session->wait))
		st_defer_wake(session);
	return CAPTURE_DONE;
}

/* How a kernel stack ended for which @stack had room for all of @wanted frames. */
static u8 kernel_end_of(const struct stacktap_stack *stack, unsigned int wanted,
			unsigned int frames, u32 left_ns)
{
	return stack->end == STACKTAP_END_DEPTH && wanted < frames ? short_end(left_ns) :
								     stack->end;
}

/*
 * The kernel half of @sample; how it ended is in @cpu->stack. Returns the size so far, 0 when the end
 * of the ring cut it.
 */
static noinline u32 capture_kernel(struct stacktap_cpu *cpu, struct stacktap_sample *sample,
				   struct pt_regs *regs, s64 space, u32 left_ns,
				   enum ceiling_level level)
{
	u32 size = sizeof(*sample);
	struct stacktap_section *section = section_begin(sample, size,
							 STACKTAP_SECTION_KERNEL_IPS);
	unsigned int frames = READ_ONCE(cpu->session->kernel_frames);
	unsigned int wanted = level_kernel_frames(level, frames);
	struct stacktap_stack *stack = &cpu->stack;

	stack->ips = (u64 *)(section + 1);
	stack->nr = 0;
	stack->max = min(capture_kernel_room(space), wanted);
	st_stack_walk_kernel(regs, stack);
	if (stack->end == STACKTAP_END_DEPTH && stack->max < wanted)
		return 0;
	stack->end = kernel_end_of(stack, wanted, frames, left_ns);
	sample->kernel_end = stack->end;
	return size + section_end(section, stack->nr);
}

/* Both phases in one. @in_place: see capture_in_place(). */
static __always_inline enum capture_outcome
capture_now(struct stacktap_counter *counter, struct perf_sample_data *data,
	    struct pt_regs *regs, struct cost_moment began, u32 left_ns,
	    enum ceiling_level level, bool in_place)
{
	struct stacktap_sample *sample;
	u32 size = sizeof(*sample);
	u8 end = STACKTAP_END_NONE;
	u64 now = began.now;
	u16 flags;
	s64 space;

	sample = capture_begin(counter, now, &space);
	if (!sample)
		return CAPTURE_LOST;
	flags = sample_begin(sample, counter, data, regs, now);
	if (!in_place && !user_mode(regs)) {
		size = capture_kernel(counter->cpu, sample, regs, space, left_ns, level);
		end = counter->cpu->stack.end;
	}
	if (!size) {
		capture_refuse(counter, space, now);
		return CAPTURE_LOST;
	}
	cost_add_alone(&counter->cpu->front_cost, began.ticks);
	return capture_finish(counter, sample, size, NULL, flags, end, space, began, left_ns, level,
			      in_place);
}

/* Phase 2 of what phase 1 left in @slot, for which the section has @left_ns from @began on. */
static void capture_later(const struct stacktap_slot *slot, struct cost_moment began,
			  u32 left_ns)
{
	struct stacktap_counter *counter = slot->counter;
	struct stacktap_section *section;
	enum ceiling_level level;
	struct stacktap_sample *sample;
	u32 size = sizeof(*sample);
	u64 now = began.now;
	s64 space;

	sample = capture_begin(counter, now, &space);
	if (!sample)
		return;
	if (slot->kernel_nr > capture_kernel_room(space)) {
		capture_refuse(counter, space, now);
		return;
	}
	*sample = slot->sample;
	/* @now is by the counter, and an NMI in this section looked at the clock */
	sample->delay_ns = clamp_t(s64, now - slot->sample.header.time, 0, U32_MAX);
	if (slot->kernel_nr) {
		section = section_begin(sample, size, STACKTAP_SECTION_KERNEL_IPS);
		memcpy(section + 1, slot->kernel_ips, slot->kernel_nr * sizeof(u64));
		size += section_end(section, slot->kernel_nr);
	}
	/* what the handler spent on it is spent: it is written, if only with its leaf */
	level = min_t(enum ceiling_level, st_ceiling_look(counter->cpu, now), CEILING_LEAF);
	capture_finish(counter, sample, size, slot,
		       slot->sample.header.flags | STACKTAP_SAMPLE_TWO_PHASE,
		       slot->sample.kernel_end, space, began, left_ns, level, false);
}

static bool capture_one_phase(struct stacktap_counter *counter, const struct perf_event *event,
			      struct perf_sample_data *data, struct pt_regs *regs,
			      struct cost_moment began, enum ceiling_level level)
{
	const struct stretch_cause cause = {
		.is_timer = counter->clock,
		.interrupt = counter->clock ? compat_hrtimer_interrupt(&event->hw.hrtimer) : 0,
	};
	struct stretch *stretch = this_cpu_ptr(&capture_stretch);
	struct stacktap_cpu *cpu = counter->cpu;
	enum capture_outcome outcome;
	u32 left_ns;

	if (unlikely(cpu->recording)) {
		capture_lose(counter, STACKTAP_LOST_REENTRY, began.now);
		return false;
	}
	cpu->recording = true;
	barrier();
	left_ns = stretch_begin(stretch, began.now, SESSION_WALK_LIMIT_NS, cause);
	/* each of many sessions would go beyond it by its first frames and by a kernel stack */
	if (SESSION_IS_STRICT && !left_ns)
		level = max_t(enum ceiling_level, level, CEILING_LEAF);
	outcome = capture_now(counter, data, regs, began, left_ns, level, false);
	stretch_end(stretch, began.now, cost_later(began).now, cause);
	barrier();
	cpu->recording = false;
	return outcome != CAPTURE_LOST;
}

/*
 * Both phases in one of a hit that phase 2 can have as well, where place_walk_ns() allows it. What is not
 * done within @walk_ns is put off, not cut.
 */
static enum capture_outcome capture_in_place(struct stacktap_counter *counter,
					     struct perf_sample_data *data, struct pt_regs *regs,
					     struct cost_moment began, u32 walk_ns,
					     enum ceiling_level level)
{
	struct stacktap_cpu *cpu = counter->cpu;
	enum capture_outcome outcome;

	cpu->recording = true;
	barrier();
	outcome = capture_now(counter, data, regs, began, walk_ns, level, true);
	barrier();
	cpu->recording = false;
	if (unlikely(outcome == CAPTURE_PUT_OFF))
		place_put_off(cpu);
	return outcome;
}

static noinline void slot_walk_kernel(struct stacktap_slot *slot, struct pt_regs *regs,
				      enum ceiling_level level)
{
	unsigned int frames = READ_ONCE(slot->counter->cpu->session->kernel_frames);
	/* not the CPU's: in NMI that may be in use */
	struct stacktap_stack stack;

	stack.ips = slot->kernel_ips;
	stack.nr = 0;
	stack.max = level_kernel_frames(level, frames);
	st_stack_walk_kernel(regs, &stack);
	slot->kernel_nr = stack.nr;
	slot->sample.kernel_end = kernel_end_of(&stack, stack.max, frames, U32_MAX);
}

static void capture_stash(struct stacktap_counter *counter, struct perf_sample_data *data,
			  struct pt_regs *regs, u64 now, enum ceiling_level level)
{
	struct stacktap_cpu *cpu = counter->cpu;
	struct stacktap_stash *stash;
	struct stacktap_slot *slot;

	/* an NMI may still come in: then the guard sends it away */
	if (cpu->stashing) {
		capture_lose(counter, STACKTAP_LOST_REENTRY, now);
		return;
	}
	cpu->stashing = true;
	barrier();
	/* software events bring no stash along, but may fire in an NMI all the same */
	stash = cpu->stash;
	slot = stash ? stash_reserve(stash) : NULL;
	if (!slot) {
		capture_lose(counter, STACKTAP_LOST_STASH_FULL, now);
	} else {
		slot->counter = counter;
		slot->kernel_nr = 0;
		hit_begin(&slot->hit, regs);
		sample_begin(&slot->sample, counter, data, regs, now);
		if (!user_mode(regs))
			slot_walk_kernel(slot, regs, level);
		stash_push(stash);
	}
	barrier();
	cpu->stashing = false;
	st_defer_drain(cpu->session);
}

/*
 * Half as many calls from now on, or from the next but one, where the PMU has been given its period
 * already; that sample alone stands for half of what it says. The look every two seconds makes a step of
 * degrading of it, see degrade.c.
 */
static noinline void counter_raise(struct stacktap_counter *counter, struct perf_event *event)
{
	u64 period = READ_ONCE(counter->period);

	counter->window_calls = 0;
	/* pairs with st_counter_set_period(): who sets another one has the last word */
	smp_rmb();
	if (READ_ONCE(counter->setting) || event->hw.sample_period > S64_MAX / 4)
		return;
	if (period && cmpxchg(&counter->period, period, period * 2) != period)
		return;
	event->hw.sample_period = period ? period * 2 : event->hw.sample_period * 2;
	WRITE_ONCE(counter->raised, counter->raised + 1);
	local64_inc(&counter->raises);
}

static noinline void counter_late(struct stacktap_counter *counter, const struct perf_event *event,
				  u64 period, u64 now)
{
	u64 missed = st_pace_late(&counter->pace, event, period, now);

	if (missed) {
		local64_add(missed, &counter->missed);
		WRITE_ONCE(counter->cpu->owing, true);
	}
}

static __always_inline void counter_pace(struct stacktap_counter *counter,
					 struct perf_event *event, u64 now)
{
	struct stacktap_pace *pace = &counter->pace;
	u64 period = READ_ONCE(counter->period);

	/* hidden: by a pointer of their own arm64 loads and stores its fields in pairs */
	OPTIMIZER_HIDE_VAR(pace);
	if (!counter->clock) {
		pace_count(pace, event, period);
		return;
	}
	if (unlikely(!pace_is_due(pace, event)))
		counter_late(counter, event, period, now);
	pace_clock(pace, event, period);
}

static __always_inline bool counter_too_fast(struct stacktap_counter *counter, u64 now)
{
	if (now - counter->window_began >= CAPTURE_WINDOW_NS) {
		counter->window_began = now;
		counter->window_calls = 0;
	}
	return ++counter->window_calls > CAPTURE_WINDOW_CALLS;
}

/* IRQs are off, or this is an NMI. Returns whether a user stack was walked. */
static __always_inline bool capture_handle(struct stacktap_counter *counter,
					   struct perf_event *event, struct perf_sample_data *data,
					   struct pt_regs *regs,
					   struct cost_moment began,
					   enum ceiling_level level)
{
	struct stacktap_session *session = counter->cpu->session;
	bool throttled = event->hw.interrupts == COMPAT_MAX_INTERRUPTS;
	const struct stacktap_filter *filter;
	enum capture_outcome outcome;
	u64 now = began.now;
	u32 walk_ns;

	if (throttled) {
		local64_inc(&counter->throttled);
		WRITE_ONCE(counter->cpu->owing, true);
	}
	if (unlikely(!READ_ONCE(session->armed))) {
		counter_lose(counter, STACKTAP_LOST_STOPPED, now);
		return false;
	}
	if (unlikely(!cpumask_test_cpu(counter->cpu->cpu, session->online))) {
		counter_lose(counter, STACKTAP_LOST_OFFLINE, now);
		return false;
	}
	/* not before: on a CPU that may be past its last flush an irq_work would stay queued */
	if (throttled && events_note(session, STACKTAP_EVENT_THROTTLE))
		st_defer_wake(session);
	/* a PMU may be some instructions late, and in the kernel by then */
	if (unlikely(user_mode(regs) ? event->attr.exclude_user : event->attr.exclude_kernel)) {
		local64_inc(&counter->filtered);
		return false;
	}
	/* overflow handlers run with preemption off, and filters are freed after synchronize_rcu */
	filter = rcu_dereference_raw(session->filter);
	if (filter && !st_filter_pass(filter, regs)) {
		local64_inc(&counter->filtered);
		return false;
	}
	if (unlikely(level >= CEILING_NOTHING)) {
		capture_lose(counter, STACKTAP_LOST_BUDGET, now);
		return false;
	}
	if (counter->one_phase && !in_nmi())
		return capture_one_phase(counter, event, data, regs, began, level);
	walk_ns = place_walk_ns(counter, regs, now);
	outcome = walk_ns ? capture_in_place(counter, data, regs, began, walk_ns, level) :
			    CAPTURE_PUT_OFF;
	if (outcome == CAPTURE_PUT_OFF)
		capture_stash(counter, data, regs, now, level);
	return walk_ns && outcome != CAPTURE_LOST;
}

void st_capture_overflow(struct perf_event *event, struct perf_sample_data *data,
			 struct pt_regs *regs)
{
	struct stacktap_counter *counter = event->overflow_handler_context;
	enum ceiling_level level;
	unsigned long flags;
	struct cost_moment began;
	bool is_whole, is_fast;
	u32 ns;
	u64 now;

	local64_inc(&counter->calls);
#ifdef STACKTAP_TEST
	if (READ_ONCE(noop)) {
		local64_inc(&counter->filtered);
		return;
	}
#endif
	/*
	 * Software events come with IRQs on. The call that swaps the stash for a bigger one and frees
	 * this one must not slip in, nor anything else that would pass for our time.
	 */
	local_irq_save(flags);
	began = cost_moment();
	now = began.now;
	counter_pace(counter, event, now);
	level = st_ceiling_look(counter->cpu, now);
	is_whole = capture_handle(counter, event, data, regs, began, level);
	is_fast = counter_too_fast(counter, now);
	if (unlikely(is_fast) || (unlikely(level == CEILING_SLOWER) &&
				  counter->window_calls > CAPTURE_FEW_CALLS))
		counter_raise(counter, event);
	ns = cost_add(is_whole ? &counter->cpu->whole_cost : &counter->cpu->handler_cost,
		      began.ticks);
	st_ceiling_charge(counter->cpu, ns + CEILING_INTERRUPT_NS);
	if (counter->may_finish || counter->context == STACKTAP_CONTEXT_IRQ)
		allowance_note(this_cpu_ptr(&st_allowance), now, ns);
	if (counter->clock)
		pace_note_due(&counter->pace, event, READ_ONCE(counter->period),
			      event->hw.interrupts != COMPAT_MAX_INTERRUPTS);
	local_irq_restore(flags);
}

bool st_capture_drain_cpu(struct stacktap_cpu *cpu, struct cost_moment began, u32 limit_ns)
{
	struct stacktap_stash *stash = cpu->stash;
	struct cost_moment moment;
	unsigned int nr;
	bool is_first;
	u32 ticks = 0;
	u64 spent;

	lockdep_assert_irqs_disabled();
	if (!stash || cpu->recording)
		return false;
	nr = stash_count(stash);
	if (!nr)
		return false;
	cpu->recording = true;
	barrier();
	/*
	 * What comes in meanwhile is left for the next run, so that this one is bounded. The first has
	 * its leaf and a few frames in any case: a virtual CPU that was taken away costs none.
	 */
	for (is_first = true; nr; nr--, is_first = false) {
		moment = cost_later(began);
		spent = moment.now - began.now;
		if (is_first)
			ticks = moment.ticks;
		else if (unlikely(spent > limit_ns))
			break;
		capture_later(stash_first(stash), moment,
			      spent < limit_ns ? limit_ns - spent : 0);
		stash_pop(stash);
	}
	barrier();
	cpu->recording = false;
	st_ceiling_charge(cpu, cost_add_alone(&cpu->drain_cost, ticks));
	return nr;
}
