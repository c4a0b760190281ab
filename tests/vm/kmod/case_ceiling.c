// SPDX-License-Identifier: Apache-2.0
/*
 * The ceiling: whatever is asked for, the module takes no more of a CPU than that, and what it gives up for it
 * has a name. For a guest with one CPU and icount, where a nanosecond is an instruction.
 */
#include <linux/perf_event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "tap.h"

enum {
	CEILING_SESSIONS = 8,
	CEILING_DEPTH = 1024,		/* frames, a page each */
	CEILING_UNIT_LOOPS = 20000,
	CEILING_WINDOW_NS = 100000000,
	CEILING_REST_US = 300000,	/* in which all that may be spent at once is earned again */
	CEILING_FIRST_WINDOWS = 12,	/* in which what may be spent at once is spent */
	CEILING_AT_ONCE_NS = 2500000,	/* so: 2 ms, and a stretch of each session */
	CEILING_WINDOWS = 10,		/* that are judged */
	CEILING_CALL_NS = 1000,		/* charged for a call's interrupt */
	CEILING_FAULTS = 64,		/* page faults for a unit of work */
	CEILING_MODEST_HZ = 19,		/* for which nothing has to be given up */
	CEILING_SHORT_STACK = 32,	/* what is left of a user stack at first */
	CEILING_CALLS = 1500,		/* of a counter in 100 ms, whatever its event */
};

#define CEILING_PARAMETER "/sys/module/stacktap/parameters/ceiling_permille"

struct load {
	const char *title;
	unsigned int sessions;
	bool two_phase;
	struct source source;
};

#define CLOCK(hz) { .name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, \
		    .config = PERF_COUNT_SW_CPU_CLOCK, .rate_hz = (hz) }

static const struct load loads[] = {
	{ "a modest rate, two phases", 1, true, CLOCK(CEILING_MODEST_HZ) },
	{ "10 kHz", 1, false, CLOCK(STACKTAP_MAX_RATE_HZ) },
	{ "10 kHz, two phases", 1, true, CLOCK(STACKTAP_MAX_RATE_HZ) },
	{ "8 sessions at 997 Hz", 8, false, CLOCK(997) },
	{ "8 sessions at 10 kHz, two phases", 8, true, CLOCK(STACKTAP_MAX_RATE_HZ) },
	{ "cycles at 10 kHz", 1, false,
	  { .name = "cycles", .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
	    .rate_hz = STACKTAP_MAX_RATE_HZ, .nominal_hz = 1000000000 } },
	{ "every page fault", 1, false,
	  { .name = "page-faults", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS,
	    .period = 1 } },
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What the module spent, and how often it doubled a period. */
struct spent {
	uint64_t ns, calls;
	uint64_t raises;
};

static struct spent spent_by(struct client *clients, unsigned int nr)
{
	struct spent spent = { 0 };
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct times handler = client_times(&clients[i], STACKTAP_A_HANDLER_NS,
						    STACKTAP_A_HANDLER_TIMES);
		struct times drain = client_times(&clients[i], STACKTAP_A_DRAIN_NS,
						  STACKTAP_A_DRAIN_TIMES);

		spent.ns += handler.ns + drain.ns + handler.count * CEILING_CALL_NS;
		spent.calls += handler.count;
		spent.raises += client_count(&clients[i], 0, STACKTAP_CNT_RAISES);
	}
	return spent;
}

static char *faulting;			/* pages to fault in, or NULL */

static void one_unit(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned int i;

	for (i = 0; i < CEILING_UNIT_LOOPS; i++)
		__asm__ volatile("" : : "r"(i));
	if (!faulting)
		return;
	madvise(faulting, CEILING_FAULTS * page, MADV_DONTNEED);
	for (i = 0; i < CEILING_FAULTS; i++)
		faulting[i * page] = 1;
}

/* Works for CEILING_WINDOW_NS; returns units per second. */
static double one_window(void)
{
	uint64_t began = now_ns(), units = 0, took;

	do {
		one_unit();
		units++;
		took = now_ns() - began;
	} while (took < CEILING_WINDOW_NS);
	return 1e9 * units / took;
}

struct verdict {
	double at_once_ns;		/* how far ahead of what is earned it was in the first windows, the most */
	double worst_share;		/* of the CPU in a window, in permille */
	double speed;			/* units per second, the slowest window's */
};

static struct verdict judge(struct client *clients, unsigned int nr, uint32_t permille)
{
	struct verdict verdict = { .speed = 1e18 };
	double ahead_ns = 0;
	unsigned int i;

	for (i = 0; i < CEILING_FIRST_WINDOWS + CEILING_WINDOWS; i++) {
		struct spent before = spent_by(clients, nr), after;
		uint64_t began = now_ns(), took;
		double speed = one_window(), share;

		after = spent_by(clients, nr);
		took = now_ns() - began;
		share = 1000.0 * (after.ns - before.ns) / took;
		/* a full ring would save what samples cost */
		for (unsigned int k = 0; k < nr; k++)
			client_drain(&clients[k]);
		if (i < CEILING_FIRST_WINDOWS) {
			ahead_ns += after.ns - before.ns - took * permille / 1000.0;
			if (ahead_ns < 0)
				ahead_ns = 0;
			if (ahead_ns > verdict.at_once_ns)
				verdict.at_once_ns = ahead_ns;
			continue;
		}
		if (share > verdict.worst_share)
			verdict.worst_share = share;
		if (speed < verdict.speed)
			verdict.speed = speed;
	}
	return verdict;
}

/* Runs judge() below frames of a page each. */
static struct verdict __attribute__((noinline, noclone))
judge_below(unsigned int depth, struct client *clients, unsigned int nr, uint32_t permille)
{
	volatile char page[4096 - 64];
	struct verdict verdict;

	page[0] = (char)depth;
	verdict = depth ? judge_below(depth - 1, clients, nr, permille) : judge(clients, nr, permille);
	__asm__ volatile("" : : "r"(page) : "memory");
	return verdict;
}

/* When the first stack of each kind came; 0: none did. */
struct order {
	uint64_t visited, whole, cut, leaf, other;
};

static void visit_order(const struct sample_view *view, void *arg)
{
	struct order *order = arg;
	uint64_t *first = NULL;

	if (view->sample->tgid != (uint32_t)getpid() || view->nr_kernel)
		return;
	order->visited++;
	if (view->sample->user_end == STACKTAP_END_BUDGET)
		first = view->nr_user == 1 ? &order->leaf :
			view->nr_user == CEILING_SHORT_STACK ? &order->cut : &order->other;
	else if (view->nr_user > CEILING_SHORT_STACK)
		first = &order->whole;
	if (first && !*first)
		*first = order->visited;
}

static bool set_ceiling(unsigned int permille)
{
	FILE *file = fopen(CEILING_PARAMETER, "w");
	bool is_set = file && fprintf(file, "%u", permille) > 0;

	return file && !fclose(file) && is_set;
}

static void one_load(const struct load *load, double bare, uint32_t permille)
{
	struct client clients[CEILING_SESSIONS];
	uint64_t lost = 0, samples = 0;
	unsigned int i, bucket, opened = 0;
	bool is_good = true, is_short = true;
	struct order order = { 0 };
	struct verdict verdict;
	struct message message;
	struct spent spent;

	for (i = 0; i < load->sessions; i++, opened++) {
		if (client_open(&clients[i]))
			break;
		is_good &= !client_add_rings(&clients[i], 1 << 20) &&
			   !client_set_sources(&clients[i], &load->source, 1);
		client_begin(&clients[i], &message, STACKTAP_CMD_SET_SESSION);
		if (load->two_phase)
			message_put(&message, STACKTAP_A_TWO_PHASE, NULL, 0);
		message_put_u32(&message, STACKTAP_A_BUDGET_NS, 0);
		is_good &= !client_send(&clients[i], &message) && !client_start(&clients[i]);
	}
	if (!tap(is_good && opened == load->sessions, "%s: sampled", load->title))
		goto close;
	clients[0].visit = visit_order;
	clients[0].visit_arg = &order;
	verdict = judge_below(CEILING_DEPTH, clients, opened, permille);
	tap(verdict.at_once_ns <= CEILING_AT_ONCE_NS, "%s: in the first %u ms no more than %u us beyond the "
	    "ceiling, %.0f", load->title, CEILING_FIRST_WINDOWS * 100, CEILING_AT_ONCE_NS / 1000, verdict.at_once_ns / 1000);
	tap(verdict.worst_share <= permille * 1.1, "%s: in no 100 ms more than %u permille of the CPU, "
	    "%.1f at most", load->title, permille, verdict.worst_share);
	/* perf looks at every page fault, sampled or not, which costs such a program more than we do */
	tap(verdict.speed >= (faulting ? 0.9 : 0.97) * bare, "%s: the program keeps %d %% of its speed, %.1f %%",
	    load->title, faulting ? 90 : 97, 100 * verdict.speed / bare);
	spent = spent_by(clients, opened);
	for (i = 0; i < opened; i++) {
		struct times handler = client_times(&clients[i], STACKTAP_A_HANDLER_NS,
						    STACKTAP_A_HANDLER_TIMES);
		struct times drain = client_times(&clients[i], STACKTAP_A_DRAIN_NS,
						  STACKTAP_A_DRAIN_TIMES);

		/* the limit of 100 us, a frame, and what else is done for a sample: below 2^17 ns */
		for (bucket = 17 - STACKTAP_TIME_SHIFT + 1; bucket < STACKTAP_TIME_BUCKETS; bucket++)
			is_short &= !handler.buckets[bucket] && !drain.buckets[bucket];
		is_good &= !client_stop(&clients[i]);
		client_drain(&clients[i]);
		is_good &= client_balanced(&clients[i]);
		lost += client_lost(&clients[i], STACKTAP_LOST_BUDGET);
		samples += client_samples(&clients[i], 0);
	}
	tap(is_short, "%s: no stretch with IRQs off is longer than the limit", load->title);
	tap(is_good, "%s: every call has a fate: %" PRIu64 " samples, %" PRIu64 " lost to the ceiling, the "
	    "period doubled %" PRIu64 " times", load->title, samples, lost, spent.raises);
	if (load->sessions == 1 && load->source.rate_hz == STACKTAP_MAX_RATE_HZ)
		tap(order.whole && order.whole < order.cut && order.cut < order.leaf && lost && !order.other,
		    "%s: what is given up: all but %u frames, all but the leaf, the sample (%" PRIu64 ", %" PRIu64
		    ", %" PRIu64 ")", load->title, CEILING_SHORT_STACK, order.whole, order.cut, order.leaf);
	if (load->source.rate_hz == CEILING_MODEST_HZ)
		tap(samples && !lost && !spent.raises, "%s: nothing is given up", load->title);
close:
	while (opened)
		client_close(&clients[--opened]);
}

/* Without a ceiling, too, no event comes more often than any rate that may be asked for. */
static void one_cap(void)
{
	const struct source *source = &loads[sizeof(loads) / sizeof(loads[0]) - 1].source;
	const struct ledger *ledger;
	uint64_t calls, most = 0;
	struct client client;
	unsigned int i;

	if (!tap(set_ceiling(0) && !client_open(&client) && !client_add_rings(&client, 1 << 20) &&
		 !client_set_sources(&client, source, 1) && !client_start(&client), "no ceiling, every page fault"))
		return;
	ledger = &client.ledgers[0][0];
	for (i = 0; i < CEILING_FIRST_WINDOWS + CEILING_WINDOWS; i++) {
		calls = client_count(&client, 0, STACKTAP_CNT_CALLS);
		one_window();
		calls = client_count(&client, 0, STACKTAP_CNT_CALLS) - calls;
		client_drain(&client);
		if (i >= CEILING_FIRST_WINDOWS && calls > most)
			most = calls;
	}
	/* 100 ms of ours lie in two of the handler's */
	tap(most <= 2 * CEILING_CALLS, "in no 100 ms more than %u calls, %" PRIu64 " at most", 2 * CEILING_CALLS, most);
	for (i = 0; i < 10 * CEILING_WINDOWS && ledger->config.period == 1; i++) {
		one_window();
		client_drain(&client);
	}
	tap(ledger->config.period > 1 && ledger->config.header.flags & STACKTAP_CONFIG_DEGRADED &&
	    client_count(&client, 0, STACKTAP_CNT_RAISES), "the stream tells that each stands for %llu",
	    (unsigned long long)ledger->config.period);
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	tap(client_balanced(&client), "the ledger balances");
	client_close(&client);
}

void case_ceiling(void)
{
	const size_t bytes = CEILING_FAULTS * (size_t)sysconf(_SC_PAGESIZE);
	struct verdict bare;
	char *pages;
	size_t i;

	pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!tap(pages != MAP_FAILED && set_ceiling(10), "a ceiling of 1 %% of the CPU"))
		return;
	madvise(pages, bytes, MADV_NOHUGEPAGE);
	for (i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		faulting = loads[i].source.config == PERF_COUNT_SW_PAGE_FAULTS &&
			   loads[i].source.type == PERF_TYPE_SOFTWARE ? pages : NULL;
		if (!i || faulting)
			bare = judge_below(CEILING_DEPTH, NULL, 0, 0);
		usleep(CEILING_REST_US);
		one_load(&loads[i], bare.speed, 10);
	}
	one_cap();
	munmap(pages, bytes);
}
