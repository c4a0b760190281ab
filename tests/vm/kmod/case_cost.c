// SPDX-License-Identifier: Apache-2.0
/*
 * What the module says of its own time, against what the same work takes longer while it is sampled.
 * For a guest with one CPU and icount, where a nanosecond is an instruction: elsewhere the two differ.
 * And that it is bounded, however deep a stack is, and be it a circle.
 */
#include <linux/perf_event.h>
#include <stacktap/allowance.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../workload/spin_with.h"
#include "cases.h"
#include "client.h"
#include "module.h"
#include "searched.h"
#include "tables.h"
#include "tap.h"

enum {
	COST_DEPTH = 900,
	COST_UNITS = 5000,
	COST_UNIT_LOOPS = 20000,
	COST_RATE = 997,
	COST_FAULTS = 300,
	COST_HOSTILE_DEPTH = STACKTAP_MAX_USER_FRAMES + 100,
	COST_SHORT_LIMIT = 10000,	/* ns, too little for so many frames */
	COST_CIRCLE = 4000,
	COST_TURNS = 100000000,
	COST_WAKE_NS = 1000000,
};

static const struct source sampled = {
	.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_CPU_CLOCK, .rate_hz = COST_RATE,
};

static const struct source interrupting = {
	.name = "cycles", .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
	.rate_hz = COST_RATE, .nominal_hz = 1000000000, .flags = STACKTAP_SRC_NO_FALLBACK,
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t __attribute__((noinline, noclone)) work(unsigned int depth)
{
	uint64_t took, began;
	int unit, i;

	if (depth) {
		took = work(depth - 1);
		__asm__ volatile("" : "+r"(took));
		return took;
	}
	began = now_ns();
	for (unit = 0; unit < COST_UNITS; unit++)
		for (i = 0; i < COST_UNIT_LOOPS; i++)
			__asm__ volatile("" : : "r"(i));
	return now_ns() - began;
}

/* The sum must lie where the counts of the buckets say. */
static bool bounded(const struct times *times)
{
	uint64_t least = 0, most = 0;
	unsigned int i;

	for (i = 0; i < STACKTAP_TIME_BUCKETS; i++) {
		least += i ? times->buckets[i] << (STACKTAP_TIME_SHIFT + i - 1) : 0;
		most += times->buckets[i] << (STACKTAP_TIME_SHIFT + i);
	}
	return least <= times->ns && times->ns <= most;
}

static void sample_work(bool two_phase, uint64_t bare)
{
	const char *how = two_phase ? "two phases" : "one phase";
	struct times handler, drain;
	struct message message;
	struct client client;
	uint64_t ours, more;

	if (!tap(!client_open(&client) && !client_add_rings(&client, 4 << 20) &&
		 !client_set_sources(&client, &sampled, 1), "%s: a session", how))
		return;
	if (two_phase) {
		client_begin(&client, &message, STACKTAP_CMD_SET_SESSION);
		message_put(&message, STACKTAP_A_TWO_PHASE, NULL, 0);
		client_send(&client, &message);
	}
	client_start(&client);
	more = work(COST_DEPTH);
	tap(!client_stop(&client), "%s: sampled and stopped", how);
	client_drain(&client);
	tap(client_balanced(&client), "%s: ledger balances", how);
	handler = client_times(&client, STACKTAP_A_HANDLER_NS, STACKTAP_A_HANDLER_TIMES);
	drain = client_times(&client, STACKTAP_A_DRAIN_NS, STACKTAP_A_DRAIN_TIMES);
	tap(handler.count == client_calls(&client, 0), "%s: %" PRIu64 " times in the handler for %"
	    PRIu64 " calls", how, handler.count, client_calls(&client, 0));
	if (two_phase)
		tap(drain.count && drain.count <= client_samples(&client, 0), "%s: %" PRIu64
		    " drains for %" PRIu64 " samples", how, drain.count, client_samples(&client, 0));
	else
		tap(!drain.count && !drain.ns, "%s: none in phase 2", how);
	tap(bounded(&handler) && bounded(&drain), "%s: the sums fit the buckets", how);
	more = more > bare ? more - bare : 0;
	ours = handler.ns + drain.ns;
	/* what remains is the timer's interrupt and perf; the stack is deep so that it is little */
	tap(ours < more && ours > more / 3, "%s: %" PRIu64 " ns of the %" PRIu64
	    " ns that the work took longer", how, ours, more);
	tap_note("%s: handler %" PRIu64 " ns, phase 2 %" PRIu64 " ns a sample", how,
		 handler.ns / (handler.count ?: 1), drain.ns / (handler.count ?: 1));
	client_close(&client);
}

/* The handler of a fault that a program has at such a depth leaves the walk, which is long, to phase 2. */
static bool __attribute__((noinline, noclone)) fault(unsigned int depth)
{
	const size_t size = COST_FAULTS * (size_t)sysconf(_SC_PAGESIZE);
	bool is_done;
	char *room;

	if (depth) {
		is_done = fault(depth - 1);
		__asm__ volatile("" : "+r"(is_done));
		return is_done;
	}
	room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		return false;
	madvise(room, size, MADV_NOHUGEPAGE);
	memset(room, 1, size);
	return !munmap(room, size);
}

/* Of software events: their handlers are called with IRQs on. */
static void sample_faults(void)
{
	static const struct source faults = {
		.name = "page-faults", .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS, .period = 1,
	};
	struct times handler, drain;
	struct message message;
	struct client client;

	if (!tap(!client_open(&client) && !client_add_rings(&client, 4 << 20) &&
		 !client_set_sources(&client, &faults, 1), "faults: a session"))
		return;
	client_begin(&client, &message, STACKTAP_CMD_SET_SESSION);
	message_put(&message, STACKTAP_A_TWO_PHASE, NULL, 0);
	client_send(&client, &message);
	client_start(&client);
	tap(fault(COST_DEPTH) && !client_stop(&client), "faults: sampled and stopped");
	client_drain(&client);
	handler = client_times(&client, STACKTAP_A_HANDLER_NS, STACKTAP_A_HANDLER_TIMES);
	drain = client_times(&client, STACKTAP_A_DRAIN_NS, STACKTAP_A_DRAIN_TIMES);
	tap(handler.count >= COST_FAULTS && drain.count && handler.ns < drain.ns / 2,
	    "faults: %" PRIu64 " ns in %" PRIu64 " handlers, %" PRIu64 " ns in %" PRIu64
	    " runs of phase 2", handler.ns, handler.count, drain.ns, drain.count);
	client_close(&client);
}

struct deep {
	uint64_t code;			/* that callers are in, 0: anywhere */
	uint64_t samples, cut, in_time, too_many, one_phase;
};

static void visit_deep(const struct sample_view *view, void *arg)
{
	struct deep *deep = arg;

	if (view->sample->tgid != (uint32_t)getpid() || view->nr_user < 2 ||
	    (deep->code ? view->user_ips[1] - deep->code >= SEARCHED_CODE : view->nr_user < 100))
		return;
	deep->samples++;
	deep->one_phase += !(view->sample->header.flags & STACKTAP_SAMPLE_TWO_PHASE);
	deep->cut += view->sample->user_end == STACKTAP_END_TIME;
	deep->in_time += view->sample->user_end == STACKTAP_END_DEPTH &&
			 view->nr_user == STACKTAP_MAX_USER_FRAMES;
	deep->too_many += view->nr_user > STACKTAP_MAX_USER_FRAMES;
}

/* None of @times reached a power of two above @limit and what else is done for a sample. */
static bool within(const struct times *times, uint32_t limit)
{
	unsigned int i, most = 0;

	while (1ull << (STACKTAP_TIME_SHIFT + most) < limit + 20000ull)
		most++;
	for (i = most + 1; i < STACKTAP_TIME_BUCKETS; i++)
		if (times->buckets[i])
			return false;
	return true;
}

/*
 * A session that shows @visit stacks of any depth. A walk takes @limit ns at most, or what the module allows
 * where that is 0.
 */
static bool begin_long_walks(struct client *client, const struct source *source, unsigned int nr_sources,
			     bool two_phase, uint32_t limit, const char *title, void (*visit)(const struct sample_view *view, void *arg),
			     void *arg)
{
	struct source sources[STACKTAP_MAX_SOURCES];
	struct message message;
	unsigned int i;

	for (i = 0; i < nr_sources; i++)
		sources[i] = *source;
	if (!tap(!client_open(client) && !client_add_rings(client, 4 << 20) &&
		 !client_set_sources(client, sources, nr_sources), "%s: a session", title))
		return false;
	client->visit = visit;
	client->visit_arg = arg;
	client_begin(client, &message, STACKTAP_CMD_SET_SESSION);
	message_put_u32(&message, STACKTAP_A_USER_FRAMES, STACKTAP_MAX_USER_FRAMES);
	if (limit)
		message_put_u32(&message, STACKTAP_A_WALK_LIMIT_NS, limit);
	if (two_phase)
		message_put(&message, STACKTAP_A_TWO_PHASE, NULL, 0);
	return tap(!client_send(client, &message) && !client_start(client), "%s: a limit of %u ns", title,
		   limit);
}

static void settle_long_walks(struct client *client, const char *title)
{
	tap(!client_stop(client), "%s: STOP", title);
	client_drain(client);
	tap(client_balanced(client), "%s: ledger balances", title);
}

/* Neither handler nor phase 2 was at it for more than @limit and what else is done for a sample. */
static void end_long_walks(struct client *client, uint32_t limit, const char *title)
{
	struct times handler = client_times(client, STACKTAP_A_HANDLER_NS, STACKTAP_A_HANDLER_TIMES);
	struct times drain = client_times(client, STACKTAP_A_DRAIN_NS, STACKTAP_A_DRAIN_TIMES);

	tap(within(&handler, limit) && within(&drain, limit),
	    "%s: neither handler nor phase 2 took longer, means %" PRIu64 " and %" PRIu64 " ns", title,
	    handler.ns / (handler.count ?: 1), drain.ns / (drain.count ?: 1));
	client_close(client);
}

/* Deeper than any sample may show, with a @limit of the walk's time, 0 for the module's own. */
static void sample_hostile(bool two_phase, uint32_t limit)
{
	const char *title = two_phase ? "deep, two phases" : "deep, one phase";
	struct deep deep = { 0 };
	struct client client;

	if (!begin_long_walks(&client, &sampled, 1, two_phase, limit, title, visit_deep, &deep))
		return;
	work(COST_HOSTILE_DEPTH);
	settle_long_walks(&client, title);
	tap(deep.samples >= 50 && !deep.too_many && deep.cut + deep.in_time >= deep.samples * 9 / 10 &&
	    (!limit || !deep.in_time), "%s: of %" PRIu64 " stacks %" PRIu64 " are cut by time, %" PRIu64
	    " by depth", title, deep.samples, deep.cut, deep.in_time);
	end_long_walks(&client, limit ?: 100000, title);
}

static bool has_pmu(void)
{
	struct client client;
	bool found = !client_open(&client) && !client_add_rings(&client, 1 << 16) &&
		     !client_set_sources(&client, &interrupting, 1) && !client_start(&client);

	client_close(&client);
	return found;
}

/*
 * The same in the PMU's interrupts, where there are any: of so deep a stack no part is taken there, phase 2 has all
 * the time for it, and the interrupt is over when its own is.
 */
static void sample_put_off(void)
{
	const char *title = "deep, in place";
	struct deep deep = { 0 };
	struct times handler;
	struct client client;
	uint64_t put_off;

	if (!has_pmu())
		return;
	tap(module_set("in_place_ns", ALLOWANCE_DEFAULT_NS), "%s: the module's own limit", title);
	if (!begin_long_walks(&client, &interrupting, 1, false, 0, title, visit_deep, &deep))
		return;
	work(COST_HOSTILE_DEPTH);
	settle_long_walks(&client, title);
	put_off = client_count(&client, 0, STACKTAP_CNT_PUT_OFF);
	tap(deep.samples >= 50 && !deep.one_phase && deep.cut + deep.in_time >= deep.samples * 9 / 10,
	    "%s: of %" PRIu64 " stacks %" PRIu64 " are cut by time, %" PRIu64 " by depth, none in place but %" PRIu64,
	    title, deep.samples, deep.cut, deep.in_time, deep.one_phase);
	tap(put_off, "%s: %" PRIu64 " were begun and put off", title, put_off);
	handler = client_times(&client, STACKTAP_A_HANDLER_NS, STACKTAP_A_HANDLER_TIMES);
	tap(within(&handler, ALLOWANCE_DEFAULT_NS * ALLOWANCE_WALK), "%s: no interrupt took longer", title);
	client_close(&client);
}

static uint64_t circle[COST_CIRCLE][2] __attribute__((aligned(16)));

struct circling {
	unsigned int frames;
	uint64_t samples, ended, in_time;
};

static void visit_circling(const struct sample_view *view, void *arg)
{
	struct circling *circling = arg;
	const uint64_t work_ip = (uintptr_t)work;

	if (view->sample->tgid != (uint32_t)getpid() || view->nr_user < 2 ||
	    view->user_ips[1] != work_ip)
		return;
	circling->samples++;
	/* beside the frames, the leaf */
	circling->ended += view->sample->user_end == STACKTAP_END_BAD_FRAME &&
			   view->nr_user == circling->frames + 1;
	circling->in_time += view->sample->user_end == STACKTAP_END_TIME;
}

/* @frames that lead up the stack and from the last to the first: one walk round, never another. */
static void sample_circle(bool two_phase, unsigned int frames)
{
	const char *title = two_phase ? "circle, two phases" : "circle, one phase";
	/* a short one is no dearer than any sample; the module's limit holds for a long one */
	const uint32_t limit = frames > 1 ? 100000 : 0;
	struct circling circling = { .frames = frames };
	struct client client;
	unsigned int i;

	for (i = 0; i < frames; i++) {
		circle[i][0] = (uintptr_t)circle[(i + 1) % frames];
		circle[i][1] = (uintptr_t)work;
	}
	if (!begin_long_walks(&client, &sampled, 1, two_phase, 0, title, visit_circling, &circling))
		return;
	spin_with((uintptr_t)circle[0], COST_TURNS);
	settle_long_walks(&client, title);
	tap(circling.samples >= 50 && circling.ended + (limit ? circling.in_time : 0) ==
	    circling.samples, "%s: %u frames: of %" PRIu64 " stacks %" PRIu64 " end at their first frame, %"
	    PRIu64 " by time", title, frames, circling.samples, circling.ended, circling.in_time);
	end_long_walks(&client, limit, title);
}

/* Deeper than any sample may show, and every frame is one whose rule has to be searched for. */
static void sample_searches(bool two_phase, uint32_t limit)
{
	const char *title = two_phase ? "tables, two phases" : "tables, one phase";
	struct searched searched;
	uint64_t frames, searches;
	struct deep deep = { 0 };
	struct client client;
	bool is_mapped;

	is_mapped = searched_begin(&searched);
	deep.code = searched.code;
	if (!begin_long_walks(&client, &sampled, 1, two_phase, limit, title, visit_deep, &deep))
		return;
	tap(is_mapped && searched_set(&client, &searched), "%s: tables and a list", title);
	searched_burn(&searched, COST_TURNS);
	settle_long_walks(&client, title);
	frames = tables_count(&client, STACKTAP_A_TABLE_FRAMES);
	searches = tables_count(&client, STACKTAP_A_TABLE_SEARCHES);
	tap(deep.samples >= 50 && !deep.too_many && deep.cut + deep.in_time == deep.samples,
	    "%s: of %" PRIu64 " stacks %" PRIu64 " are cut by time, %" PRIu64 " by depth", title,
	    deep.samples, deep.cut, deep.in_time);
	tap(searches > frames / 4 * 3, "%s: of %" PRIu64 " frames %" PRIu64 " were searched for", title, frames,
	    searches);
	end_long_walks(&client, limit ?: 100000, title);
	searched_end(&searched);
}

void case_cost(void)
{
	uint64_t bare = work(COST_DEPTH), again = work(COST_DEPTH);

	if (again < bare)
		bare = again;
	sample_work(false, bare);
	sample_work(true, bare);
	sample_faults();
	sample_hostile(false, 0);
	sample_hostile(true, 0);
	sample_hostile(false, COST_SHORT_LIMIT);
	sample_hostile(true, COST_SHORT_LIMIT);
	sample_circle(false, 1);
	/* the frames of arm64 are taken four at a time */
	for (unsigned int frames = 1; frames <= 4; frames++)
		sample_circle(true, frames);
	sample_circle(false, COST_CIRCLE);
	sample_circle(true, COST_CIRCLE);
	sample_searches(false, 0);
	sample_searches(true, 0);
	sample_searches(false, COST_SHORT_LIMIT);
	sample_searches(true, COST_SHORT_LIMIT);
	sample_put_off();
}

/* Takes the CPU from everybody else, again and again, be it while stacks wait for phase 2. */
static pid_t start_preempter(void)
{
	const struct sched_param first = { .sched_priority = 1 };
	const struct timespec pause = { .tv_nsec = COST_WAKE_NS };
	pid_t child = fork();

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		_exit(1);
	while (!nanosleep(&pause, NULL))
		;
	_exit(1);
}

/*
 * More stacks at a time than phase 2 has time for, of a task that is preempted meanwhile. What that takes in
 * sched_switch is measured by the kernel's own tracer, see case run_queue.
 */
void case_switches(void)
{
	static const char title[] = "switches";
	struct searched searched;
	struct deep deep = { 0 };
	struct client client;
	bool is_mapped;
	pid_t child;

	is_mapped = searched_begin(&searched);
	deep.code = searched.code;
	if (!begin_long_walks(&client, &sampled, STACKTAP_MAX_SOURCES, true, 0, title, visit_deep, &deep))
		return;
	tap(is_mapped && searched_set(&client, &searched), "%s: tables and a list", title);
	child = start_preempter();
	searched_burn(&searched, COST_TURNS);
	tap(child > 0 && !waitpid(child, NULL, WNOHANG) && !kill(child, SIGKILL) &&
	    waitpid(child, NULL, 0) == child, "%s: preempted to the end", title);
	settle_long_walks(&client, title);
	tap(deep.cut >= 50, "%s: of %" PRIu64 " stacks %" PRIu64 " are cut by time", title, deep.samples,
	    deep.cut);
	end_long_walks(&client, 100000, title);
}
