// SPDX-License-Identifier: GPL-2.0-only
/*
 * From overflow to record. Phase 1 is all that runs in NMI or in a PMU's interrupt: it fills a slot
 * of the stash. Phase 2 runs with IRQs off on the same CPU (see defer.c), walks the user stack and
 * writes the ring. Timer and software events do both at once.
 */
#include <linux/cgroup.h>
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/ktime.h>

#include "capture.h"
#include "compat/compat.h"
#include "defer.h"
#include "events.h"
#include "record.h"
#include "session.h"
#include "slice.h"
#include "stack.h"
#include "user.h"

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
	/* time limits that all stacks of one drain may take in full; what is left gets short walks */
	CAPTURE_DRAIN_LIMITS = 4,
};

static void capture_lose(struct stacktap_counter *counter, enum stacktap_lost reason, u64 time)
{
	struct stacktap_session *session = counter->cpu->session;

	counter_lose(counter, reason, time);
	/* no irq_work on a CPU that may be past its last flush: it would stay queued */
	if (reason != STACKTAP_LOST_OFFLINE && events_note(session, STACKTAP_EVENT_LOSS))
		defer_wake(session);
}

/* All that the interrupted context tells by itself. IRQs are off, or this is an NMI. */
static __always_inline void
sample_begin(struct stacktap_sample *sample, const struct stacktap_counter *counter,
	     const struct perf_event *event, const struct perf_sample_data *data,
	     struct pt_regs *regs, u64 now)
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
	memset(sample->reserved, 0, sizeof(sample->reserved));
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
	/* clock events keep last_period from their creation, whatever they were changed to */
	sample->period = counter->clock ? event->hw.sample_period : data->period;
	sample->generation = 0;
	/* a rename may be half done; the last byte is the only one that matters for safety */
	memcpy(sample->comm, task->comm, sizeof(sample->comm));
	sample->comm[sizeof(sample->comm) - 1] = 0;
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
	section->len = nr * sizeof(u64);
	return nr ? sizeof(*section) + section->len : 0;
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

static void capture_refuse(struct stacktap_counter *counter, s64 space, u64 now)
{
	struct stacktap_cpu *cpu = counter->cpu;

	capture_lose(counter, space >= (s64)(cpu->ring->data_bytes - RECORD_RESERVE) ?
			      STACKTAP_LOST_TOO_BIG : STACKTAP_LOST_RING_FULL, now);
	if (wq_has_sleeper(&cpu->session->wait))
		defer_wake(cpu->session);
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
				   u32 size, s64 space, u64 now)
{
	struct stacktap_stack *stack = &cpu->stack;

	if (stack->nr_exact)
		size += section_exact(section_begin(sample, size, STACKTAP_SECTION_EXACT_PC),
				      stack);
	if (stack->is_missing)
		size += section_missing(section_begin(sample, size, STACKTAP_SECTION_MISSING),
					stack->missing);
	if (stack->slice)
		size += slice_append(cpu, sample, size, space, now);
	return size;
}

/* The user half of @sample, which is @size bytes long so far, and its publication. */
static __always_inline void
capture_finish(struct stacktap_counter *counter, struct stacktap_sample *sample, u32 size,
	       const struct stacktap_hit *hit, s64 space, u64 now)
{
	struct stacktap_section *section = section_begin(sample, size, STACKTAP_SECTION_USER_IPS);
	struct stacktap_cpu *cpu = counter->cpu;
	struct stacktap_session *session = cpu->session;
	struct stacktap_ring *ring = cpu->ring;
	struct stacktap_stack *stack = &cpu->stack;

	stack->ips = (u64 *)(section + 1);
	stack->nr = 0;
	stack->max = section_room(space - CAPTURE_EXTRA_BYTES, size, session->user_frames);
	stack->end = STACKTAP_END_NONE;
	stack->extras = 0;
	stack->generation = 0;
	user_walk(cpu, sample, hit, now);
	if (unlikely(stack->end == STACKTAP_END_DEPTH && stack->nr >= stack->max &&
		     stack->max < session->user_frames)) {
		capture_refuse(counter, space, now);
		return;
	}
	size += section_end(section, stack->nr);
	if (unlikely(stack->extras))
		size = capture_extras(cpu, sample, size, space, now);

	sample->header.size = size;
	sample->user_end = stack->end;
	sample->generation = stack->generation;
	ring_commit(ring, size);

	local64_inc(&counter->recorded);
	local64_inc(&counter->kernel_end[sample->kernel_end]);
	local64_inc(&counter->user_end[stack->end]);
	if (unlikely(sample->header.flags & (STACKTAP_SAMPLE_MOVED | STACKTAP_SAMPLE_STALE)))
		local64_inc(sample->header.flags & STACKTAP_SAMPLE_MOVED ? &counter->moved :
									   &counter->stale);

	/* the barrier in wq_has_sleeper() orders head before the look at the queue */
	if (ring->data_bytes - RECORD_RESERVE - space + size >= ring->watermark &&
	    wq_has_sleeper(&session->wait))
		defer_wake(session);
}

/* The kernel half of @sample. Returns the size so far, 0 when the end of the ring cut it. */
static noinline u32 capture_kernel(struct stacktap_cpu *cpu, struct stacktap_sample *sample,
				   struct pt_regs *regs, s64 space)
{
	u32 size = sizeof(*sample);
	struct stacktap_section *section = section_begin(sample, size,
							 STACKTAP_SECTION_KERNEL_IPS);
	unsigned int wanted = READ_ONCE(cpu->session->kernel_frames);
	struct stacktap_stack *stack = &cpu->stack;

	stack->ips = (u64 *)(section + 1);
	stack->nr = 0;
	stack->max = min(capture_kernel_room(space), wanted);
	stack_walk_kernel(regs, stack);
	if (stack->end == STACKTAP_END_DEPTH && stack->max < wanted)
		return 0;
	sample->kernel_end = stack->end;
	return size + section_end(section, stack->nr);
}

/* Both phases in one. Returns whether it came to the user stack. */
static bool capture_now(struct stacktap_counter *counter, struct perf_event *event,
			struct perf_sample_data *data, struct pt_regs *regs, u64 now, u32 began)
{
	struct stacktap_sample *sample;
	u32 size = sizeof(*sample);
	s64 space;

	sample = capture_begin(counter, now, &space);
	if (!sample)
		return false;
	sample_begin(sample, counter, event, data, regs, now);
	if (!user_mode(regs))
		size = capture_kernel(counter->cpu, sample, regs, space);
	if (!size) {
		capture_refuse(counter, space, now);
		return false;
	}
	cost_add(&counter->cpu->front_cost, began);
	capture_finish(counter, sample, size, NULL, space, now);
	return true;
}

/* Phase 2 of what phase 1 left in @slot, by a drain that began at @since, 0 for now. Returns when. */
static u64 capture_later(const struct stacktap_slot *slot, u64 since)
{
	struct stacktap_counter *counter = slot->counter;
	u64 now = ktime_get_mono_fast_ns(), began = now, clock = now;
	struct stacktap_section *section;
	struct stacktap_sample *sample;
	u32 size = sizeof(*sample);
	s64 space;

	if (since) {
		began = since;
		/* a walk that began so long ago ends at its first look at the clock */
		if (now - since > CAPTURE_DRAIN_LIMITS * counter->cpu->session->walk_limit_ns)
			clock = since;
	}
	sample = capture_begin(counter, now, &space);
	if (!sample)
		return began;
	if (slot->kernel_nr > capture_kernel_room(space)) {
		capture_refuse(counter, space, now);
		return began;
	}
	*sample = slot->sample;
	sample->header.flags |= STACKTAP_SAMPLE_TWO_PHASE;
	sample->delay_ns = min_t(u64, now - sample->header.time, U32_MAX);
	if (slot->kernel_nr) {
		section = section_begin(sample, size, STACKTAP_SECTION_KERNEL_IPS);
		memcpy(section + 1, slot->kernel_ips, slot->kernel_nr * sizeof(u64));
		size += section_end(section, slot->kernel_nr);
	}
	capture_finish(counter, sample, size, &slot->hit, space, clock);
	return began;
}

static bool capture_one_phase(struct stacktap_counter *counter, struct perf_event *event,
			      struct perf_sample_data *data, struct pt_regs *regs, u64 now,
			      u32 began)
{
	struct stacktap_cpu *cpu = counter->cpu;
	bool is_whole;

	if (unlikely(cpu->recording)) {
		capture_lose(counter, STACKTAP_LOST_REENTRY, now);
		return false;
	}
	cpu->recording = true;
	barrier();
	is_whole = capture_now(counter, event, data, regs, now, began);
	barrier();
	cpu->recording = false;
	return is_whole;
}

static noinline void slot_walk_kernel(struct stacktap_slot *slot, struct pt_regs *regs)
{
	/* not the CPU's: in NMI that may be in use */
	struct stacktap_stack stack;

	stack.ips = slot->kernel_ips;
	stack.nr = 0;
	stack.max = READ_ONCE(slot->counter->cpu->session->kernel_frames);
	stack_walk_kernel(regs, &stack);
	slot->kernel_nr = stack.nr;
	slot->sample.kernel_end = stack.end;
}

static void capture_stash(struct stacktap_counter *counter, struct perf_event *event,
			  struct perf_sample_data *data, struct pt_regs *regs, u64 now)
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
		sample_begin(&slot->sample, counter, event, data, regs, now);
		if (!user_mode(regs))
			slot_walk_kernel(slot, regs);
		stash_push(stash);
	}
	barrier();
	cpu->stashing = false;
	defer_drain(cpu->session);
}

/* IRQs are off, or this is an NMI. Returns whether a user stack was walked. */
static __always_inline bool capture_handle(struct stacktap_counter *counter,
					   struct perf_event *event, struct perf_sample_data *data,
					   struct pt_regs *regs, u32 began)
{
	struct stacktap_session *session = counter->cpu->session;
	bool throttled = event->hw.interrupts == COMPAT_MAX_INTERRUPTS;
	u64 now = ktime_get_mono_fast_ns();
	const struct stacktap_filter *filter;

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
		defer_wake(session);
	/* a PMU may be some instructions late, and in the kernel by then */
	if (unlikely(user_mode(regs) ? event->attr.exclude_user : event->attr.exclude_kernel)) {
		local64_inc(&counter->filtered);
		return false;
	}
	/* overflow handlers run with preemption off, and filters are freed after synchronize_rcu */
	filter = rcu_dereference_raw(session->filter);
	if (filter && !filter_pass(filter, regs)) {
		local64_inc(&counter->filtered);
		return false;
	}
	if (counter->one_phase && !in_nmi())
		return capture_one_phase(counter, event, data, regs, now, began);
	capture_stash(counter, event, data, regs, now);
	return false;
}

void capture_overflow(struct perf_event *event, struct perf_sample_data *data,
		      struct pt_regs *regs)
{
	struct stacktap_counter *counter = event->overflow_handler_context;
	unsigned long flags;
	bool is_whole;
	u32 began;

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
	began = cost_ticks();
	is_whole = capture_handle(counter, event, data, regs, began);
	cost_add(is_whole ? &counter->cpu->whole_cost : &counter->cpu->handler_cost, began);
	local_irq_restore(flags);
}

void capture_drain_cpu(struct stacktap_cpu *cpu)
{
	struct stacktap_stash *stash = cpu->stash;
	struct stacktap_slot *slot;
	unsigned int nr;
	u64 since = 0;
	u32 began;

	lockdep_assert_irqs_disabled();
	if (!stash || cpu->recording)
		return;
	nr = stash_count(stash);
	if (!nr)
		return;
	began = cost_ticks();
	cpu->recording = true;
	barrier();
	/* what comes in meanwhile is left for the next run, so that this one is bounded */
	for (; nr; nr--) {
		slot = stash_first(stash);
		since = capture_later(slot, since);
		stash_pop(stash);
	}
	barrier();
	cpu->recording = false;
	cost_add(&cpu->drain_cost, began);
}
