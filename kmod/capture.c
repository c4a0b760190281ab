// SPDX-License-Identifier: GPL-2.0-only
/*
 * From overflow to record. Phase 1 is all that runs in NMI or in a PMU's interrupt: it fills a slot
 * of the stash. Phase 2 runs with IRQs off on the same CPU, walks the user stack and writes the
 * ring. Timer and software events do both at once.
 */
#include <linux/cgroup.h>
#include <linux/irq_work.h>
#include <linux/moduleparam.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/ktime.h>

#include "capture.h"
#include "compat/compat.h"
#include "events.h"
#include "record.h"
#include "session.h"
#include "stack.h"
#include "user.h"

#ifdef STACKTAP_TEST
static bool noop;
module_param(noop, bool, 0644);
MODULE_PARM_DESC(noop, "count overflows and do nothing else, to measure what they cost by themselves");
#endif

enum {
	/* kept free behind the user stack */
	CAPTURE_EXACT_BYTES = sizeof(struct stacktap_section) + STACKTAP_MAX_EXACT_PCS * sizeof(u16),
};

DEFINE_PER_CPU(u64, capture_pending);
static DEFINE_PER_CPU(u64, capture_waking);
static DEFINE_PER_CPU(struct irq_work, capture_drain_work);
static DEFINE_PER_CPU(struct irq_work, capture_wake_work);

/* by session->slot; read with IRQs off or under RCU, cleared before a grace period */
static struct stacktap_session *capture_slots[STACKTAP_MAX_SESSIONS];
static_assert(STACKTAP_MAX_SESSIONS <= 64);

static void capture_lose(struct stacktap_counter *counter, enum stacktap_lost reason, u64 time)
{
	struct stacktap_session *session = counter->cpu->session;

	counter_lose(counter, reason, time);
	/* no irq_work on a CPU that may be past its last flush: it would stay queued */
	if (reason != STACKTAP_LOST_OFFLINE && events_note(session, STACKTAP_EVENT_LOSS))
		capture_wake(session);
}

static void hit_fill(struct stacktap_hit *hit, const struct stacktap_counter *counter,
		     const struct perf_event *event, const struct perf_sample_data *data,
		     struct pt_regs *regs, u64 now)
{
	const struct task_struct *task = current;

	hit->time = now;
	hit->task_start = task->start_boottime;
	hit->exec_id = task->self_exec_id;
	hit->mm = task->mm;
	hit->tgid = task->tgid;
	hit->tid = task->pid;
	hit->source = counter->index;
	hit->context = counter->context != STACKTAP_CONTEXT_IRQ || !in_nmi() ? counter->context :
		       STACKTAP_CONTEXT_NMI;
	/* clock events keep last_period from their creation, whatever they were changed to */
	hit->period = counter->clock ? event->hw.sample_period : data->period;
	hit->kernel_end = STACKTAP_END_NONE;
	hit->kernel_nr = 0;
	hit->flags = 0;
	if (task->flags & COMPAT_PF_NO_USER)
		hit->flags |= STACKTAP_SAMPLE_KERNEL_THREAD;
	if (is_idle_task(task))
		hit->flags |= STACKTAP_SAMPLE_IDLE;
	if (user_mode(regs)) {
		hit->flags |= STACKTAP_SAMPLE_USER_MODE;
		hit->pc = instruction_pointer(regs);
		hit->sp = user_stack_pointer(regs);
		hit->fp = stack_regs_fp(regs);
	}
	/* a rename may be half done; the last byte is the only one that matters for safety */
	memcpy(hit->comm, task->comm, sizeof(hit->comm));
	hit->comm[sizeof(hit->comm) - 1] = 0;

	rcu_read_lock();
	/* once the thread is unhashed nothing keeps its leader from being freed */
	hit->image_start = pid_alive(task) ? READ_ONCE(task->group_leader)->start_boottime :
			   task->start_boottime;
	hit->cgroup_id = cgroup_id(task_dfl_cgroup(current));
	rcu_read_unlock();
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

static unsigned int section_room(s64 space, u32 size, unsigned int limit)
{
	s64 room = (space - size - (s64)sizeof(struct stacktap_section)) / (s64)sizeof(u64);

	return clamp_t(s64, room, 0, limit);
}

/*
 * Phase 2 of one hit. @ips are its kernel frames, or NULL to walk them from @regs now. Caller is
 * the ring's producer. Walks go straight into the ring; one that is cut by the end of the free
 * space is dropped, never shortened.
 */
static void capture_record(struct stacktap_counter *counter, struct stacktap_hit *hit,
			   const u64 *ips, struct pt_regs *regs, u64 now)
{
	struct stacktap_cpu *cpu = counter->cpu;
	struct stacktap_session *session = cpu->session;
	struct stacktap_ring *ring = cpu->ring;
	struct stacktap_section *section;
	struct stacktap_sample *sample;
	struct stacktap_stack stack;
	u32 size = sizeof(*sample);
	s64 space, room;

	space = record_debts(cpu, record_space(ring));
	if (space < 0) {
		capture_lose(counter, STACKTAP_LOST_BAD_TAIL, now);
		return;
	}
	/* the first user frame is always written, so there has to be room for it */
	room = space - CAPTURE_EXACT_BYTES;
	if (room < (s64)(sizeof(*sample) + 2 * sizeof(*section) + 2 * sizeof(u64)))
		goto full;
	sample = ring_head(ring);

	stack.nr = hit->kernel_nr;
	stack.max = section_room(room, size + sizeof(*section) + sizeof(u64),
				 STACKTAP_MAX_KERNEL_FRAMES);
	if (stack.nr > stack.max)
		goto full;
	section = section_begin(sample, size, STACKTAP_SECTION_KERNEL_IPS);
	stack.ips = (u64 *)(section + 1);
	if (ips) {
		memcpy(stack.ips, ips, stack.nr * sizeof(*ips));
	} else if (!user_mode(regs)) {
		stack_walk_kernel(regs, &stack);
		if (stack.end == STACKTAP_END_DEPTH && stack.max < STACKTAP_MAX_KERNEL_FRAMES)
			goto full;
		hit->kernel_end = stack.end;
	}
	size += section_end(section, stack.nr);

	section = section_begin(sample, size, STACKTAP_SECTION_USER_IPS);
	stack.ips = (u64 *)(section + 1);
	stack.nr = 0;
	stack.max = section_room(room, size, session->user_frames);
	stack.nr_exact = 0;
	stack.generation = 0;
	user_walk(cpu, hit, &stack, now);
	if (stack.end == STACKTAP_END_DEPTH && stack.max < session->user_frames)
		goto full;
	size += section_end(section, stack.nr);
	if (unlikely(stack.nr_exact))
		size += section_exact(section_begin(sample, size, STACKTAP_SECTION_EXACT_PC), &stack);

	memset(sample, 0, sizeof(*sample));
	if (ips)
		hit->flags |= STACKTAP_SAMPLE_TWO_PHASE;
	record_init(&sample->header, STACKTAP_RECORD_SAMPLE, hit->flags, size, hit->time);
	sample->source = hit->source;
	sample->context = hit->context;
	sample->kernel_end = hit->kernel_end;
	sample->user_end = stack.end;
	sample->cpu = cpu->cpu;
	sample->delay_ns = min_t(u64, now - hit->time, U32_MAX);
	sample->tgid = hit->tgid;
	sample->tid = hit->tid;
	sample->start_time = hit->image_start;
	sample->exec_id = hit->exec_id;
	sample->cgroup_id = hit->cgroup_id;
	sample->period = hit->period;
	sample->generation = stack.generation;
	memcpy(sample->comm, hit->comm, sizeof(sample->comm));
	ring_commit(ring, size);

	local64_inc(&counter->recorded);
	local64_inc(&counter->kernel_end[hit->kernel_end]);
	local64_inc(&counter->user_end[stack.end]);
	if (hit->flags & STACKTAP_SAMPLE_MOVED)
		local64_inc(&counter->moved);
	if (hit->flags & STACKTAP_SAMPLE_STALE)
		local64_inc(&counter->stale);

	/* the barrier in wq_has_sleeper() orders head before the look at the queue */
	if (ring->data_bytes - RECORD_RESERVE - space + size >= ring->watermark &&
	    wq_has_sleeper(&session->wait))
		capture_wake(session);
	return;

full:
	capture_lose(counter, space >= (s64)(ring->data_bytes - RECORD_RESERVE) ?
			      STACKTAP_LOST_TOO_BIG : STACKTAP_LOST_RING_FULL, now);
	if (wq_has_sleeper(&session->wait))
		capture_wake(session);
}

static void capture_one_phase(struct stacktap_counter *counter, struct perf_event *event,
			      struct perf_sample_data *data, struct pt_regs *regs, u64 now)
{
	struct stacktap_cpu *cpu = counter->cpu;
	struct stacktap_hit hit;
	unsigned long flags;

	local_irq_save(flags);
	if (cpu->recording) {
		capture_lose(counter, STACKTAP_LOST_REENTRY, now);
	} else {
		cpu->recording = true;
		barrier();
		hit_fill(&hit, counter, event, data, regs, now);
		capture_record(counter, &hit, NULL, regs, now);
		barrier();
		cpu->recording = false;
	}
	local_irq_restore(flags);
}

static void capture_stash(struct stacktap_counter *counter, struct perf_event *event,
			  struct perf_sample_data *data, struct pt_regs *regs, u64 now)
{
	struct stacktap_cpu *cpu = counter->cpu;
	struct stacktap_stash *stash;
	struct stacktap_slot *slot;
	unsigned long flags;

	/* an NMI may still come in: then the guard sends it away */
	local_irq_save(flags);
	if (cpu->stashing) {
		capture_lose(counter, STACKTAP_LOST_REENTRY, now);
		goto out;
	}
	cpu->stashing = true;
	barrier();
	/*
	 * Not read before: software events come with IRQs on, and the call that swaps the stash for
	 * a bigger one and has this one freed would slip in. They bring no stash along, but may
	 * fire in an NMI all the same.
	 */
	stash = cpu->stash;
	slot = stash ? stash_reserve(stash) : NULL;
	if (!slot) {
		capture_lose(counter, STACKTAP_LOST_STASH_FULL, now);
	} else {
		struct stacktap_stack stack = {
			.ips = slot->kernel_ips,
			.max = STACKTAP_MAX_KERNEL_FRAMES,
		};

		hit_fill(&slot->hit, counter, event, data, regs, now);
		if (!user_mode(regs))
			stack_walk_kernel(regs, &stack);
		slot->hit.kernel_nr = stack.nr;
		slot->hit.kernel_end = stack.end;
		stash_push(stash);
	}
	barrier();
	cpu->stashing = false;
	this_cpu_or(capture_pending, 1ULL << cpu->session->slot);
	irq_work_queue(this_cpu_ptr(&capture_drain_work));
out:
	local_irq_restore(flags);
}

void capture_overflow(struct perf_event *event, struct perf_sample_data *data,
		      struct pt_regs *regs)
{
	struct stacktap_counter *counter = event->overflow_handler_context;
	struct stacktap_session *session = counter->cpu->session;
	bool throttled = event->hw.interrupts == COMPAT_MAX_INTERRUPTS;
	u64 now;

	local64_inc(&counter->calls);
#ifdef STACKTAP_TEST
	if (READ_ONCE(noop)) {
		local64_inc(&counter->filtered);
		return;
	}
#endif
	now = ktime_get_mono_fast_ns();
	if (throttled) {
		local64_inc(&counter->throttled);
		WRITE_ONCE(counter->cpu->owing, true);
	}
	if (unlikely(!READ_ONCE(session->armed))) {
		counter_lose(counter, STACKTAP_LOST_STOPPED, now);
		return;
	}
	if (unlikely(!cpumask_test_cpu(counter->cpu->cpu, session->online))) {
		counter_lose(counter, STACKTAP_LOST_OFFLINE, now);
		return;
	}
	/* not before: on a CPU that may be past its last flush an irq_work would stay queued */
	if (throttled && events_note(session, STACKTAP_EVENT_THROTTLE))
		capture_wake(session);
	/* overflow handlers run with preemption off, and filters are freed after synchronize_rcu */
	if (!filter_pass(rcu_dereference_raw(session->filter), regs)) {
		local64_inc(&counter->filtered);
		return;
	}
	if (counter->one_phase && !in_nmi())
		capture_one_phase(counter, event, data, regs, now);
	else
		capture_stash(counter, event, data, regs, now);
}

void capture_drain_cpu(struct stacktap_cpu *cpu)
{
	struct stacktap_stash *stash = cpu->stash;
	struct stacktap_slot *slot;
	unsigned int nr;

	lockdep_assert_irqs_disabled();
	if (!stash || cpu->recording)
		return;
	cpu->recording = true;
	barrier();
	/* what comes in meanwhile is left for the next run, so that this one is bounded */
	for (nr = stash_count(stash); nr; nr--) {
		slot = stash_first(stash);
		capture_record(&cpu->counters[slot->hit.source], &slot->hit, slot->kernel_ips,
			       NULL, ktime_get_mono_fast_ns());
		stash_pop(stash);
	}
	barrier();
	cpu->recording = false;
}

void capture_drain(void)
{
	unsigned int this_cpu = smp_processor_id();
	struct stacktap_session *session;
	struct stacktap_cpu *cpu;
	u64 pending;

	/* cleared before the stash is read: an NMI in between sets it again and queues the work */
	pending = this_cpu_xchg(capture_pending, 0);
	while (pending) {
		session = READ_ONCE(capture_slots[__ffs64(pending)]);
		pending &= pending - 1;
		if (!session)
			continue;
		cpu = session_cpu(session, this_cpu);
		if (cpu)
			capture_drain_cpu(cpu);
	}
}

static void capture_drain_run(struct irq_work *work)
{
	capture_drain_pending();
}

static void capture_wake_run(struct irq_work *work)
{
	struct stacktap_session *session;
	u64 waking = this_cpu_xchg(capture_waking, 0);

	rcu_read_lock();
	while (waking) {
		session = READ_ONCE(capture_slots[__ffs64(waking)]);
		waking &= waking - 1;
		if (!session)
			continue;
		wake_up_poll(&session->wait, EPOLLIN | EPOLLRDNORM);
		events_kick(session);
	}
	rcu_read_unlock();
}

void capture_wake(struct stacktap_session *session)
{
	preempt_disable();
	this_cpu_or(capture_waking, 1ULL << session->slot);
	irq_work_queue(this_cpu_ptr(&capture_wake_work));
	preempt_enable();
}

void capture_attach(struct stacktap_session *session)
{
	WRITE_ONCE(capture_slots[session->slot], session);
}

void capture_detach(struct stacktap_session *session)
{
	WRITE_ONCE(capture_slots[session->slot], NULL);
	synchronize_rcu();
}

void capture_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		compat_irq_work_init_hard(per_cpu_ptr(&capture_drain_work, cpu),
					  capture_drain_run);
		init_irq_work(per_cpu_ptr(&capture_wake_work, cpu), capture_wake_run);
	}
}

void capture_exit(void)
{
	unsigned int cpu;

	/* nobody queues any more, and nothing was queued on a CPU after its offline callback */
	for_each_possible_cpu(cpu) {
		irq_work_sync(per_cpu_ptr(&capture_drain_work, cpu));
		irq_work_sync(per_cpu_ptr(&capture_wake_work, cpu));
	}
}
