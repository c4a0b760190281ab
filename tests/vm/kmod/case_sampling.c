// SPDX-License-Identifier: Apache-2.0
/* Sampling itself: what is counted, what is in a sample, what is lost. */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "tap.h"

static const struct source cycles_997 = {
	.name = "cycles", .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
	.rate_hz = 997, .nominal_hz = 1000000000,
};

static const struct source clock_997 = {
	.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
	.rate_hz = 997,
};

enum {
	DRAWN_PERIOD = 1000,
	DRAWN_WHOLE = 1 << 15,
	DRAWN_NEAR = 3,			/* page faults: two by rounding, and what is read a little later */
	DRAWN_FAULTS = 32000,
	DRAWN_ENOUGH = 10,
};

struct stacks {
	uint32_t user_tgid;
	uint32_t kernel_tgid;
	uint64_t user_leaf;	/* samples of user_tgid in load_inner() */
	uint64_t user_chain;	/* of these, load_outer() is next */
	uint64_t user_all;
	uint64_t kernel_hits;	/* samples of kernel_tgid that hit the kernel */
	uint64_t kernel_both;	/* of these, both halves are there */
	uint64_t kernel_complete;
	uint64_t bad_ips;	/* an address on the wrong side */
	uint64_t idle;
	uint64_t ends[2][STACKTAP_END_REASONS];
	uint64_t moved, stale, two_phase;
	uint64_t user_hits, user_two_phase; /* samples that hit user mode, and of these in two phases */
	uint64_t in_place_wrong; /* of one phase, but what only several can have */
	uint64_t contexts[8];
	uint64_t total;
};

static void stacks_visit(const struct sample_view *view, void *arg)
{
	const struct stacktap_sample *sample = view->sample;
	struct stacks *stacks = arg;
	unsigned int i;

	stacks->total++;
	stacks->contexts[sample->context & 7]++;
	stacks->ends[0][sample->kernel_end]++;
	stacks->ends[1][sample->user_end]++;
	stacks->moved += !!(sample->header.flags & STACKTAP_SAMPLE_MOVED);
	stacks->stale += !!(sample->header.flags & STACKTAP_SAMPLE_STALE);
	stacks->two_phase += !!(sample->header.flags & STACKTAP_SAMPLE_TWO_PHASE);
	if (sample->header.flags & STACKTAP_SAMPLE_USER_MODE) {
		stacks->user_hits++;
		stacks->user_two_phase += !!(sample->header.flags & STACKTAP_SAMPLE_TWO_PHASE);
	}
	if (!(sample->header.flags & STACKTAP_SAMPLE_TWO_PHASE))
		stacks->in_place_wrong += sample->delay_ns || sample->user_end == STACKTAP_END_TIME ||
					  !(sample->header.flags & STACKTAP_SAMPLE_USER_MODE) ||
					  sample->header.flags & (STACKTAP_SAMPLE_MOVED | STACKTAP_SAMPLE_STALE);
	stacks->idle += !!(sample->header.flags & STACKTAP_SAMPLE_IDLE);
	for (i = 0; i < view->nr_kernel; i++)
		stacks->bad_ips += !(view->kernel_ips[i] >> 63);
	for (i = 0; i < view->nr_user; i++)
		stacks->bad_ips += view->user_ips[i] >> 63;
	if (sample->tgid == stacks->user_tgid) {
		stacks->user_all++;
		if (view->nr_user && load_in_inner(view->user_ips[0])) {
			stacks->user_leaf++;
			stacks->user_chain += view->nr_user > 1 &&
					      load_in_outer(view->user_ips[1]);
		}
	}
	if (sample->tgid == stacks->kernel_tgid &&
	    !(sample->header.flags & STACKTAP_SAMPLE_USER_MODE)) {
		stacks->kernel_hits++;
		stacks->kernel_both += view->nr_kernel && view->nr_user;
		stacks->kernel_complete += sample->kernel_end == STACKTAP_END_COMPLETE;
	}
}

static void stacks_note(const struct stacks *stacks)
{
	unsigned int i;

	tap_note("%" PRIu64 " samples, idle %" PRIu64 ", moved %" PRIu64 ", stale %" PRIu64
		 ", two-phase %" PRIu64, stacks->total, stacks->idle, stacks->moved, stacks->stale,
		 stacks->two_phase);
	for (i = 0; i < STACKTAP_END_REASONS; i++)
		tap_note("end %u: kernel %" PRIu64 ", user %" PRIu64, i, stacks->ends[0][i],
			 stacks->ends[1][i]);
}

/* Drain @client every 50 ms for @ms. */
static void drain_for(struct client *client, unsigned int ms)
{
	for (; ms; ms -= ms < 50 ? ms : 50) {
		usleep(50000);
		client_drain(client);
	}
}

/* Drain @client until its visitor has counted @wanted; a guest may be slow, and lose timer ticks. */
static void drain_until(struct client *client, const uint64_t *count, uint64_t wanted)
{
	unsigned int i;

	for (i = 0; i < 600 && *count < wanted; i++)
		drain_for(client, 50);
}

void case_clock(void)
{
	struct stacks stacks = { 0 };
	struct client client;
	struct times times;
	pid_t user, kernel;
	uint64_t running, missed, periods;

	if (!tap(!client_open(&client), "open"))
		return;
	tap(client_start(&client) < 0 && client.wire.sentence[0], "START without source: '%s'",
	    client.wire.sentence);
	tap(!client_set_sources(&client, &clock_997, 1), "set cpu-clock at 997 Hz");
	tap(client_start(&client) < 0, "START without ring: '%s'", client.wire.sentence);
	tap(!client_add_rings(&client, 1 << 20), "rings");
	user = load_fork(0, false);
	kernel = load_fork(1, true);
	stacks.user_tgid = user;
	stacks.kernel_tgid = kernel;
	client.visit = stacks_visit;
	client.visit_arg = &stacks;
	usleep(200000);
	tap(!client_start(&client), "START");
	drain_until(&client, &stacks.user_all, 600);
	drain_until(&client, &stacks.kernel_hits, 400);
	tap(!client_stop(&client), "STOP");
	running = client_count(&client, 0, STACKTAP_CNT_RUNNING_NS);
	client_drain(&client);
	load_kill(user);
	load_kill(kernel);
	stacks_note(&stacks);
	tap(client_balanced(&client), "ledger balances: %" PRIu64 " samples of %" PRIu64 " calls",
	    client_samples(&client, 0), client_calls(&client, 0));
	times = client_times(&client, STACKTAP_A_HANDLER_NS, STACKTAP_A_HANDLER_TIMES);
	/* none where the kernel does not know its TSC's rate */
	tap(!times.count || (times.count == client_calls(&client, 0) && times.ns >= times.count),
	    "%" PRIu64 " times of handlers, %" PRIu64 " ns in all", times.count, times.ns);
	tap(client.rings[0].first_type == STACKTAP_RECORD_CLOCK_ANCHOR, "first record is the anchor");
	missed = client_count(&client, 0, STACKTAP_CNT_MISSED);
	periods = running / 1003009;
	tap(client_calls(&client, 0) + missed <= periods + periods / 50 &&
	    (client_calls(&client, 0) + missed + 100 >= periods - periods / 20 ||
	     client_count(&client, 0, STACKTAP_CNT_THROTTLED)),
	    "%" PRIu64 " calls and %" PRIu64 " missed periods are running time over period: %" PRIu64,
	    client_calls(&client, 0), missed, periods);
	tap(!stacks.bad_ips, "kernel addresses above, user addresses below");
	tap(stacks.user_all > 100 && stacks.user_leaf * 100 > stacks.user_all * 90,
	    "leaf of the burner known in %" PRIu64 " of %" PRIu64, stacks.user_leaf, stacks.user_all);
	tap(stacks.user_leaf && stacks.user_chain * 100 >= stacks.user_leaf * 99,
	    "and its caller in %" PRIu64, stacks.user_chain);
	tap(stacks.kernel_hits > 60 && stacks.kernel_both * 100 >= stacks.kernel_hits * 99,
	    "kernel and user half in %" PRIu64 " of %" PRIu64 " hits in a syscall",
	    stacks.kernel_both, stacks.kernel_hits);
	tap(stacks.kernel_complete * 100 >= stacks.kernel_hits * 98,
	    "kernel half complete in %" PRIu64, stacks.kernel_complete);
	client_close(&client);
}

/* The counts of the arm-pmu line(s) of /proc/interrupts, or -1 where there is none. */
static int64_t pmu_interrupts(void)
{
	FILE *file = fopen("/proc/interrupts", "re");
	int64_t sum = 0, found = -1;
	char line[1024];

	while (file && fgets(line, sizeof(line), file)) {
		char *at = strchr(line, ':');

		if (!strstr(line, "arm-pmu") || !at)
			continue;
		for (at++;;) {
			char *end;
			long long value = strtoll(at, &end, 10);

			if (end == at)
				break;
			sum += value;
			at = end;
		}
		found = sum;
	}
	if (file)
		fclose(file);
	return found;
}

static long max_sample_rate(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
	long rate = -1;

	if (file && fscanf(file, "%ld", &rate) != 1)
		rate = -1;
	if (file)
		fclose(file);
	return rate;
}

/* What the interrupts of a PMU made of a running session's hits, beside what it counts itself. */
static void check_phases(struct client *client, const struct stacks *stacks)
{
	uint64_t in_place = client_count(client, 0, STACKTAP_CNT_IN_PLACE);
	uint64_t put_off = client_count(client, 0, STACKTAP_CNT_PUT_OFF);

	tap(stacks->contexts[client->info.features & STACKTAP_FEATURE_NMI ?
			     STACKTAP_CONTEXT_NMI : STACKTAP_CONTEXT_IRQ] == stacks->total,
	    "all samples from PMU interrupts%s", client->info.features & STACKTAP_FEATURE_NMI ? ", NMIs" : "");
	/* the interrupt after one that found no end, or too late a one, finds the stash taken at times */
	tap(stacks->user_hits > 500 && stacks->user_two_phase * 10 <= stacks->user_hits,
	    "of %" PRIu64 " hits in user mode %" PRIu64 " take two phases, %" PRIu64 " put off", stacks->user_hits,
	    stacks->user_two_phase, put_off);
	tap(!stacks->in_place_wrong, "what one phase has is whole, at once, and no hit in the kernel");
	tap(in_place >= stacks->total - stacks->two_phase, "%" PRIu64 " samples counted in place, %" PRIu64
	    " read", in_place, stacks->total - stacks->two_phase);
}

/* The hardware event where there is a PMU, the fallback with its reason where there is none. */
void case_cycles(void)
{
	struct source strict = cycles_997;
	struct stacks stacks = { 0 };
	const struct stacktap_config *config;
	long rate = max_sample_rate();
	struct client client;
	int64_t before, after;
	uint64_t earlier;
	pid_t user, kernel;

	if (!tap(!client_open(&client), "open") || !tap(!client_add_rings(&client, 1 << 20), "rings"))
		return;
	client.visit = stacks_visit;
	client.visit_arg = &stacks;
	before = pmu_interrupts();
	strict.flags = STACKTAP_SRC_NO_FALLBACK;
	tap(!client_set_sources(&client, &strict, 1), "set cycles without fallback");
	if (before < 0) {
		tap(client_start(&client) == -ENOENT, "START says ENOENT: '%s'",
		    client.wire.sentence);
	} else {
		tap(!client_start(&client) && !client_stop(&client), "START and STOP");
	}
	tap(!client_set_sources(&client, &cycles_997, 1), "set cycles");
	user = load_fork(0, false);
	kernel = load_fork(1, true);
	stacks.user_tgid = user;
	stacks.kernel_tgid = kernel;
	usleep(200000);
	client_drain(&client);
	memset(client.ledgers, 0, sizeof(client.ledgers));
	/* those of the first START, more the slower the host is */
	earlier = client_count(&client, 0, STACKTAP_CNT_CALLS);
	before = pmu_interrupts();
	tap(!client_start(&client), "START");
	drain_until(&client, &stacks.total, 1000);
	drain_until(&client, &stacks.user_all, 600);
	drain_until(&client, &stacks.kernel_hits, 400);
	tap(!client_stop(&client), "STOP");
	after = pmu_interrupts();
	client_drain(&client);
	load_kill(user);
	load_kill(kernel);
	stacks_note(&stacks);
	config = &client.ledgers[0][0].config;
	if (before < 0) {
		tap(config->header.flags & STACKTAP_CONFIG_FALLBACK &&
		    config->fallback_errno == ENOENT && config->perf_type == PERF_TYPE_SOFTWARE &&
		    !strcmp(config->name, "cpu-clock"), "CONFIG tells the fallback and ENOENT");
		tap(stacks.contexts[STACKTAP_CONTEXT_HRTIMER] == stacks.total,
		    "all samples from the timer");
		tap(client_balanced(&client), "ledger balances");
	} else {
		uint64_t calls = client_count(&client, 0, STACKTAP_CNT_CALLS) - earlier;

		tap(config->perf_type == PERF_TYPE_HARDWARE && !config->fallback_errno &&
		    config->period == 1000000000 / 997, "CONFIG tells hardware cycles");
		check_phases(&client, &stacks);
		tap(calls > 100 && (after - before) * 0.99 <= calls &&
		    calls <= (uint64_t)(after - before) * 1.01 + 1,
		    "%" PRIu64 " handler calls, %" PRId64 " PMU interrupts", calls, after - before);
		tap(stacks.user_leaf * 100 > stacks.user_all * 90 && stacks.user_chain * 100 >=
		    stacks.user_leaf * 99, "leaf and caller known: %" PRIu64 ", %" PRIu64 " of %"
		    PRIu64, stacks.user_leaf, stacks.user_chain, stacks.user_all);
		tap(stacks.kernel_both * 100 >= stacks.kernel_hits * 95,
		    "kernel and user half in %" PRIu64 " of %" PRIu64 " hits in a syscall",
		    stacks.kernel_both, stacks.kernel_hits);
		tap(stacks.stale * 100 <= stacks.total, "stale at most 1 %%: %" PRIu64,
		    stacks.stale);
	}
	tap(!stacks.bad_ips, "kernel addresses above, user addresses below");
	/* virtual CPUs lose time in handlers to their host, so this proves nothing here */
	tap_note("perf_event_max_sample_rate: %ld, was %ld", max_sample_rate(), rate);
	client_close(&client);
}

static void sample_two_phase(const struct source *source)
{
	struct stacks stacks = { 0 };
	struct message message;
	struct client client;
	pid_t user, kernel;

	if (!tap(!client_open(&client), "open") || !tap(!client_add_rings(&client, 1 << 20), "rings"))
		return;
	client.visit = stacks_visit;
	client.visit_arg = &stacks;
	client_set_sources(&client, source, 1);
	client_begin(&client, &message, STACKTAP_CMD_SET_SESSION);
	message_put(&message, STACKTAP_A_TWO_PHASE, NULL, 0);
	tap(!client_send(&client, &message), "%s: two phases", source->name);
	user = load_fork(0, false);
	kernel = load_fork(1, true);
	stacks.user_tgid = user;
	stacks.kernel_tgid = kernel;
	usleep(200000);
	tap(!client_start(&client), "START");
	drain_until(&client, &stacks.total, 1000);
	drain_until(&client, &stacks.user_all, 300);
	drain_until(&client, &stacks.kernel_hits, 300);
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	load_kill(user);
	load_kill(kernel);
	stacks_note(&stacks);
	tap(client_balanced(&client), "ledger balances");
	tap(stacks.total > 100 && stacks.two_phase == stacks.total, "all %" PRIu64
	    " samples in two phases", stacks.total);
	tap(stacks.user_chain * 100 >= stacks.user_all * 90, "leaf and caller in %" PRIu64 " of %"
	    PRIu64, stacks.user_chain, stacks.user_all);
	tap(stacks.kernel_both * 100 >= stacks.kernel_hits * 95, "both halves in %" PRIu64 " of %"
	    PRIu64, stacks.kernel_both, stacks.kernel_hits);
	tap(!client_count(&client, 0, STACKTAP_CNT_IN_PLACE) && !client_count(&client, 0, STACKTAP_CNT_PUT_OFF),
	    "none in place");
	client_close(&client);
}

/* Phase 2 on any machine: clock samples through the stash; the PMU's where there is one. */
void case_two_phase(void)
{
	sample_two_phase(&clock_997);
	if (pmu_interrupts() >= 0)
		sample_two_phase(&cycles_997);
}

/* Wait until @nr more calls became no sample, give or take those between two readings. */
static bool wait_for_losses(struct client *client, uint64_t nr)
{
	uint64_t before = 0, lost;
	unsigned int i;

	for (i = 0; i < 600; i++) {
		lost = client_unrecorded(client);
		if (!i)
			before = lost;
		if (lost >= before + nr)
			return true;
		usleep(100000);
	}
	return false;
}

/* What samples are to be read by is not lost to a full ring: it comes when there is room. */
static void check_full_start(struct client *client)
{
	struct source slower = clock_997;
	uint64_t anchors = client->rings[0].anchors, samples;
	unsigned int i;

	tap(!client_start(client) && wait_for_losses(client, 50), "START, full rings");
	slower.rate_hz = 499;
	tap(!client_stop(client) && !client_set_sources(client, &slower, 1), "STOP, 499 Hz");
	tap(!client_start(client) && wait_for_losses(client, 50), "START with full rings");
	client_drain(client);
	samples = client->ledgers[0][0].samples;
	for (i = 0; i < 600 && client->ledgers[0][0].samples < samples + 20; i++) {
		usleep(100000);
		client_drain(client);
	}
	tap(client->ledgers[0][0].samples >= samples + 20, "sampling goes on");
	tap(client->rings[0].anchors == anchors + 2 && client->ledgers[0][0].config.rate_hz == 499,
	    "anchor and CONFIG came first");
	tap(!client_stop(client), "STOP");
	client_drain(client);
	tap(client_balanced(client), "the ledger balances");
}

/* A reader that sleeps: losses are counted, and the last words fit. */
void case_stalled(void)
{
	struct client client;
	pid_t user, kernel;

	if (!tap(!client_open(&client), "open") ||
	    !tap(!client_add_rings(&client, STACKTAP_RING_MIN_BYTES), "smallest rings"))
		return;
	client_set_sources(&client, &clock_997, 1);
	user = load_fork(0, false);
	kernel = load_fork(1, true);
	tap(!client_start(&client), "START");
	tap(client_flush(&client) == -EBUSY, "FLUSH of a running session: EBUSY");
	wait_for_losses(&client, 200);
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	tap(client_balanced(&client), "the ledger balances without FLUSH");
	tap(client_lost(&client, STACKTAP_LOST_RING_FULL) > 20, "%" PRIu64 " lost to the full ring",
	    client_lost(&client, STACKTAP_LOST_RING_FULL));

	/* twice without a drain: the second stop's last words have to wait for FLUSH */
	tap(!client_start(&client), "START");
	usleep(300000);
	client_stop(&client);
	tap(!client_start(&client), "START again with full rings");
	usleep(300000);
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	tap(!client_flush(&client), "FLUSH");
	client_drain(&client);
	tap(client_balanced(&client), "the ledger balances after FLUSH");
	check_full_start(&client);
	load_kill(user);
	load_kill(kernel);
	client_close(&client);
}

/*
 * The timers of an emulated CPU are late all the time. Each gives one sample for the periods that have
 * passed since it was due; together with those that are counted as missed they are the time that passed.
 */
void case_missed(void)
{
	static const struct source clock = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK, .period = 200000,
	};
	uint64_t calls, missed, told = 0, expected, passed = 0;
	struct client client;
	pid_t user, kernel;
	unsigned int i;

	if (!tap(!client_open(&client), "open") || !tap(!client_add_rings(&client, 1 << 20), "rings"))
		return;
	/*
	 * perf must not stop the timer, which would then not be late: it does so after some hundred
	 * overflows without a tick, and an idle CPU has none.
	 */
	user = load_fork(0, false);
	kernel = load_fork(1, true);
	tap(!client_set_sources(&client, &clock, 1) && !client_start(&client), "cpu-clock, 200 us");
	/* for long enough that what is late when it stops, which nothing counts, is little */
	for (i = 0; i < 600 && (i < 60 || passed < 200); i++) {
		drain_for(&client, 50);
		passed = client_count(&client, 0, STACKTAP_CNT_MISSED);
	}
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	calls = client_count(&client, 0, STACKTAP_CNT_CALLS);
	missed = client_count(&client, 0, STACKTAP_CNT_MISSED);
	expected = client_count(&client, 0, STACKTAP_CNT_RUNNING_NS) / clock.period;
	for (i = 0; i < CLIENT_MAX_CPUS; i++)
		told += client.ledgers[i][0].missed;
	tap(missed >= 200 && told == missed, "%" PRIu64 " periods were missed, and %" PRIu64
	    " are in the stream", missed, told);
	load_kill(user);
	load_kill(kernel);
	tap(calls + missed <= expected + expected / 50 && calls + missed >= expected - expected / 20,
	    "%" PRIu64 " calls and these are the %" PRIu64 " periods that passed", calls, expected);
	tap(!client_count(&client, 0, STACKTAP_CNT_THROTTLED) && client_balanced(&client),
	    "never throttled, and the ledger balances");
	client_close(&client);
}

struct drawn {
	int counter;			/* perf's, of the same CPU's page faults */
	uint64_t faults;		/* that it had counted at the sample before; 0: there was none */
	uint64_t now;			/* and by now */
	uint64_t samples, right, varied;
	uint16_t jitter;		/* of the sample before */
};

static void drawn_visit(const struct sample_view *view, void *arg)
{
	const struct stacktap_sample *sample = view->sample;
	struct drawn *drawn = arg;
	uint64_t faults, told;

	if (sample->cpu)
		return;
	faults = drawn->now - drawn->faults;
	told = sample->jitter * sample->period / DRAWN_WHOLE;
	if (drawn->faults && sample->period == DRAWN_PERIOD) {
		drawn->samples++;
		drawn->right += told + DRAWN_NEAR >= faults && told <= faults + DRAWN_NEAR;
		drawn->varied += sample->jitter != drawn->jitter;
	}
	drawn->jitter = sample->jitter;
	drawn->faults = drawn->now;
}

/* Each sample says which period was drawn for it: that many page faults came since the one before. */
void case_drawn(void)
{
	static const struct source faults = {
		.name = "page-faults", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS,
		.period = DRAWN_PERIOD,
	};
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_PAGE_FAULTS,
	};
	struct drawn drawn = { .counter = -1 };
	struct client client;
	cpu_set_t set;
	unsigned int i;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	drawn.counter = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (!tap(drawn.counter >= 0 && !client_open(&client) && !client_add_rings(&client, 1 << 20) &&
		 !client_set_sources(&client, &faults, 1), "a period of %u page faults", DRAWN_PERIOD))
		return;
	client.visit = drawn_visit;
	client.visit_arg = &drawn;
	tap(!client_start(&client), "START");
	for (i = 0; i < DRAWN_FAULTS; i++) {
		load_fault(1);
		if (read(drawn.counter, &drawn.now, sizeof(drawn.now)) != sizeof(drawn.now))
			break;
		client_drain(&client);
	}
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	tap(drawn.samples >= DRAWN_ENOUGH && drawn.varied * 10 >= drawn.samples * 9, "%" PRIu64
	    " samples, of other periods than the one before %" PRIu64, drawn.samples, drawn.varied);
	/* another program may fault just then */
	tap(drawn.right * 10 >= drawn.samples * 8, "give or take %u the drawn period is the page faults since the"
	    " one before in %" PRIu64 " of %" PRIu64, DRAWN_NEAR, drawn.right, drawn.samples);
	tap(client_balanced(&client), "the ledger balances");
	client_close(&client);
	close(drawn.counter);
}

struct tgids {
	uint32_t wanted;
	uint64_t of_wanted, others, user_mode, kernel_mode, idle;
	uint64_t cpus[CLIENT_MAX_CPUS];
	uint64_t last_period;
};

static void tgids_visit(const struct sample_view *view, void *arg)
{
	const struct stacktap_sample *sample = view->sample;
	struct tgids *tgids = arg;

	if (sample->tgid == tgids->wanted)
		tgids->of_wanted++;
	else
		tgids->others++;
	if (sample->header.flags & STACKTAP_SAMPLE_USER_MODE)
		tgids->user_mode++;
	else
		tgids->kernel_mode++;
	tgids->idle += !!(sample->header.flags & STACKTAP_SAMPLE_IDLE);
	tgids->cpus[sample->cpu % CLIENT_MAX_CPUS]++;
	tgids->last_period = sample->period;
}

void case_filters(void)
{
	struct tgids tgids = { 0 };
	struct client client;
	pid_t user, kernel;
	uint32_t wanted, both[2];

	if (!tap(!client_open(&client), "open") || !tap(!client_add_rings(&client, 1 << 20), "rings"))
		return;
	client.visit = tgids_visit;
	client.visit_arg = &tgids;
	client_set_sources(&client, &clock_997, 1);
	user = load_fork(0, false);
	kernel = load_fork(1, true);
	wanted = user;
	both[0] = kernel;
	both[1] = user;

	tap(!client_set_filter(&client, 0, &wanted, 1, 0), "one tgid");
	tap(!client_start(&client), "START");
	tgids.wanted = wanted;
	drain_until(&client, &tgids.of_wanted, 51);
	tap(tgids.of_wanted > 50 && !tgids.others, "only of it: %" PRIu64 " and %" PRIu64,
	    tgids.of_wanted, tgids.others);
	tap(client_count(&client, 0, STACKTAP_CNT_FILTERED), "others were filtered");
	tap(!client_set_filter(&client, 0, both, 2, STACKTAP_FILTER_KERNEL_ONLY),
	    "live: two tgids, kernel only");
	client_drain(&client);
	memset(&tgids, 0, sizeof(tgids));
	drain_until(&client, &tgids.kernel_mode, 51);
	tap(tgids.kernel_mode > 50 && !tgids.user_mode, "only kernel hits");
	tap(!client_set_filter(&client, 0, NULL, 0, STACKTAP_FILTER_USER_ONLY), "live: user only");
	client_drain(&client);
	memset(&tgids, 0, sizeof(tgids));
	drain_until(&client, &tgids.user_mode, 51);
	tap(!tgids.kernel_mode && tgids.user_mode > 50, "only user hits");
	tap(!client_set_filter(&client, 2, NULL, 0, 0), "live: only CPU 1");
	client_drain(&client);
	memset(&tgids, 0, sizeof(tgids));
	drain_until(&client, &tgids.cpus[1], 51);
	tap(!tgids.cpus[0] && tgids.cpus[1] > 50, "only CPU 1");
	tap(client.rings[0].state == STACKTAP_CPU_DESELECTED &&
	    client_cpu_state(&client, 0) == STACKTAP_CPU_DESELECTED &&
	    client_cpu_state(&client, 1) == STACKTAP_CPU_ONLINE, "CPU 0 is told as deselected");
	load_kill(user);
	load_kill(kernel);
	tap(!client_set_filter(&client, 0, NULL, 0, STACKTAP_FILTER_EXCLUDE_IDLE), "no idle");
	client_drain(&client);
	memset(&tgids, 0, sizeof(tgids));
	drain_for(&client, 500);
	tap(!tgids.idle, "no idle samples");
	tap(!client_set_filter(&client, 0, NULL, 0, 0), "no filter");
	memset(&tgids, 0, sizeof(tgids));
	drain_until(&client, &tgids.idle, 51);
	tap(tgids.idle > 50, "idle samples: %" PRIu64, tgids.idle);
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	tap(client_balanced(&client), "the ledger balances");
	client_close(&client);
}

/* A new rate takes effect at once and is announced. */
void case_rate(void)
{
	struct tgids tgids = { 0 };
	struct client client, other;
	uint64_t configs, calls, fast;
	pid_t burners[2];

	if (!tap(!client_open(&client), "open") || !tap(!client_add_rings(&client, 1 << 20), "rings"))
		return;
	client.visit = tgids_visit;
	client.visit_arg = &tgids;
	client_set_sources(&client, &clock_997, 1);
	burners[0] = load_fork(0, false);
	burners[1] = load_fork(1, false);
	tap(!client_start(&client), "START at 997 Hz");
	drain_until(&client, &tgids.user_mode, 1);
	tap(tgids.last_period == 1000000000 / 997, "samples stand for 1/997 s");
	configs = client.ledgers[0][0].configs;
	tap(!client_set_rate(&client, 0, 100), "live: 100 Hz");
	client_drain(&client);
	tap(client.ledgers[0][0].configs == configs + 1 &&
	    client.ledgers[0][0].config.period == 10000000 &&
	    client.ledgers[0][0].config.rate_hz == 100, "CONFIG tells it");
	memset(&tgids, 0, sizeof(tgids));
	drain_until(&client, &tgids.user_mode, 1);
	tap(tgids.last_period == 10000000, "samples stand for 1/100 s");

	tap(!client_open(&other) && !client_add_rings(&other, 1 << 20), "a second session");
	client_set_sources(&other, &clock_997, 1);
	calls = client_count(&client, 0, STACKTAP_CNT_CALLS);
	tap(!client_start(&other), "START at 997 Hz beside it");
	for (int i = 0; i < 600 && client_count(&client, 0, STACKTAP_CNT_CALLS) < calls + 200; i++) {
		drain_for(&client, 50);
		client_drain(&other);
	}
	fast = client_count(&other, 0, STACKTAP_CNT_CALLS);
	calls = client_count(&client, 0, STACKTAP_CNT_CALLS) - calls;
	load_kill(burners[0]);
	load_kill(burners[1]);
	/* 9.97 on a machine of its own; timers of a virtual CPU may be late and skip */
	tap(calls && fast > calls && fast < calls * 12, "%" PRIu64 " calls here, %" PRIu64 " there",
	    calls, fast);
	tap(!client_stop(&client) && !client_stop(&other), "STOP both");
	client_drain(&client);
	client_drain(&other);
	tap(client_balanced(&client) && client_balanced(&other), "both ledgers balance");
	client_close(&client);
	client_close(&other);
}
