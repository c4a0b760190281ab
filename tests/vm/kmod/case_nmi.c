// SPDX-License-Identifier: Apache-2.0
/*
 * The capture path in NMI, whatever that hits; needs stacktap_nmi.ko and the module it drives.
 * NMI_WANTED in the environment.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "module.h"
#include "nmi.h"
#include "tap.h"

enum {
	NMI_PATIENCE = 60000,	/* pauses of 20 ms: guests may be slow */
	NMI_TOO_MANY = 300,	/* for a stash */
};

/* what nmi.c sends hits the kernel, too, as a PMU's interrupt that comes late does */
static const struct source nmi_of_user = {
	.name = "nmi:u", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_ALIGNMENT_FAULTS,
	.period = 1, .flags = STACKTAP_SRC_EXCLUDE_KERNEL,
};

struct nmi_counts {
	uint64_t nmis, calls, recording, stashing;
};

/* While something lasts, by the clock of samples. */
struct span {
	uint64_t begin, end;
};

struct nmis {
	pid_t user[2], reader;
	struct span drain, stop, offline;	/* the latest of each */
	uint64_t in_drain, in_reader, in_stop, in_offline;
	uint64_t total, elsewhere, one_phase;
	uint64_t user_all, user_chain;	/* samples of @user in user mode */
	uint64_t kernel;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void span_begin(struct span *span)
{
	*span = (struct span) { now_ns(), UINT64_MAX };
}

static void span_end(struct span *span)
{
	span->end = now_ns();
}

static bool span_has(const struct span *span, uint64_t time)
{
	return time >= span->begin && time <= span->end;
}

static void nmis_visit(const struct sample_view *view, void *arg)
{
	const struct stacktap_sample *sample = view->sample;
	struct nmis *nmis = arg;

	if (sample->source != NMI_NMI)
		return;
	nmis->total++;
	nmis->elsewhere += sample->context != STACKTAP_CONTEXT_NMI;
	nmis->one_phase += !(sample->header.flags & STACKTAP_SAMPLE_TWO_PHASE);
	nmis->in_stop += span_has(&nmis->stop, sample->header.time);
	nmis->in_offline += span_has(&nmis->offline, sample->header.time);
	/* from an earlier round, or of a ring that the same one came to later */
	if (span_has(&nmis->drain, sample->header.time)) {
		nmis->in_drain++;
		nmis->in_reader += sample->tgid == (uint32_t)nmis->reader;
	}
	if (!(sample->header.flags & STACKTAP_SAMPLE_USER_MODE)) {
		nmis->kernel += view->nr_kernel > 1;
	} else if (sample->tgid == (uint32_t)nmis->user[0] ||
		   sample->tgid == (uint32_t)nmis->user[1]) {
		nmis->user_all++;
		nmis->user_chain += view->nr_user > 1 && load_in_inner(view->user_ips[0]) &&
				    load_in_outer(view->user_ips[1]);
	}
}

static struct nmi_counts nmi_counts(void)
{
	FILE *file = fopen(NMI_PARAMETERS "counts", "re");
	struct nmi_counts counts = { 0 };

	if (file && fscanf(file, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &counts.nmis,
			   &counts.calls, &counts.recording, &counts.stashing) != 4)
		counts = (struct nmi_counts) { 0 };
	if (file)
		fclose(file);
	return counts;
}

static bool open_two_phase(struct client *client, uint32_t ring_bytes, const struct source *sources,
			   unsigned int nr)
{
	struct message message;

	if (client_open(client) || client_add_rings(client, ring_bytes) ||
	    client_set_sources(client, sources, nr))
		return false;
	client_begin(client, &message, STACKTAP_CMD_SET_SESSION);
	message_put(&message, STACKTAP_A_TWO_PHASE, NULL, 0);
	return !client_send(client, &message) && !client_start(client);
}

/* A session that comes and stops in the midst of NMIs. Its calls; UINT64_MAX: unbalanced. */
static uint64_t short_session(void)
{
	struct client client;
	uint64_t calls = UINT64_MAX;

	if (!open_two_phase(&client, STACKTAP_RING_MIN_BYTES, nmi_sources, NMI_SOURCES))
		return calls;
	usleep(20000);
	if (!client_stop(&client)) {
		client_drain(&client);
		/* its last words may have waited for room */
		client_flush(&client);
		client_drain(&client);
		if (client_balanced(&client))
			calls = client_calls(&client, NMI_NMI);
	}
	client_close(&client);
	return calls;
}

/* What NMIs may hit. Returns what went wrong; *ret_calls are those of sessions that ended. */
static unsigned int disturb(struct client *client, struct nmis *nmis, unsigned int round,
			    uint64_t *ret_calls)
{
	bool is_done;
	uint64_t calls;

	switch (round % 32) {
	case 4:
		span_begin(&nmis->stop);
		is_done = !client_stop(client);
		span_end(&nmis->stop);
		return !is_done;
	case 5:
		return !!client_start(client);
	case 12:
	case 24:
		calls = short_session();
		if (calls == UINT64_MAX)
			return 1;
		*ret_calls += calls;
		return 0;
	case 16:
		span_begin(&nmis->offline);
		is_done = load_set_online(1, false);
		span_end(&nmis->offline);
		return !is_done;
	case 20:
		return !load_set_online(1, true);
	}
	return 0;
}

static void drain(struct client *client, struct nmis *nmis)
{
	span_begin(&nmis->drain);
	client_drain(client);
	span_end(&nmis->drain);
}

/* Whether everything that an NMI may hit was hit. */
static bool hit_all(const struct client *client, const struct nmis *nmis, uint64_t recording,
		    uint64_t stashing)
{
	return recording && stashing && nmis->in_drain && nmis->in_reader && nmis->in_stop &&
	       nmis->in_offline && client_lost(client, STACKTAP_LOST_REENTRY) &&
	       client_lost(client, STACKTAP_LOST_OFFLINE);
}

/* Nothing leaves the stash as long as IRQs are off. */
static void check_burst(struct client *client)
{
	struct nmi_counts before = nmi_counts(), counts;
	uint64_t full = client_lost(client, STACKTAP_LOST_STASH_FULL), calls, kept;

	tap(nmi_burst(NMI_TOO_MANY), "a burst of NMIs while IRQs are off");
	counts = nmi_counts();
	client_flush(client);
	client_drain(client);
	calls = counts.calls - before.calls;
	full = client_lost(client, STACKTAP_LOST_STASH_FULL) - full;
	kept = calls - full;
	tap(full && calls > NMI_SLOTS && kept && kept <= NMI_SLOTS, "of its %" PRIu64
	    " overflows %" PRIu64 " found the stash full, which took %" PRIu64, calls, full, kept);
}

static void modes_visit(const struct sample_view *view, void *arg)
{
	uint64_t *modes = arg;

	modes[!!(view->sample->header.flags & STACKTAP_SAMPLE_USER_MODE)]++;
}

static void check_user_only(void)
{
	uint64_t modes[2] = { 0 }, filtered = 0;
	struct client client;
	unsigned int i;

	if (!tap(open_two_phase(&client, 1 << 20, &nmi_of_user, 1), "a session for user mode alone"))
		return;
	client.visit = modes_visit;
	client.visit_arg = modes;
	for (i = 0; i < 500 && modes[1] < 100; i++) {
		usleep(20000);
		client_drain(&client);
	}
	client_stop(&client);
	client_drain(&client);
	for (i = 0; i < CLIENT_MAX_CPUS; i++)
		filtered += client.ledgers[i][0].counts.filtered;
	tap(modes[1] && !modes[0] && filtered && client_balanced(&client), "%" PRIu64
	    " samples of user mode, %" PRIu64 " of the kernel, %" PRIu64 " filtered", modes[1], modes[0],
	    filtered);
	client_close(&client);
}

void case_nmi(void)
{
	const uint64_t wanted = module_setting("NMI_WANTED", 100000), most = 2 * wanted;
	struct nmi_counts before, counts;
	struct nmis nmis = { 0 };
	unsigned int round, bad = 0;
	struct client client, keeper;
	uint64_t calls, ended = 0;
	pid_t pids[4];

	/*
	 * Has the scheduler's tracepoint on all the while: QEMU before 8.1 may go on running, for
	 * ever, its translation of a breakpoint that stood there while the kernel patched it.
	 */
	if (!tap(open_two_phase(&keeper, STACKTAP_RING_MIN_BYTES, &nmi_slow_clock, 1),
		 "a session that stays"))
		return;
	if (!tap(open_two_phase(&client, 1 << 20, nmi_sources, NMI_SOURCES), "a session in two phases"))
		return;
	client.visit = nmis_visit;
	client.visit_arg = &nmis;
	for (round = 0; round < 4; round++)
		pids[round] = load_fork(round & 1, round & 2);
	nmis.user[0] = pids[0];
	nmis.user[1] = pids[1];
	nmis.reader = getpid();
	before = counts = nmi_counts();
	tap(nmi_set_interval(NMI_INTERVAL_US), "NMIs begin");
	/* twice as many where chance has left out something */
	for (round = 0; round < NMI_PATIENCE && counts.calls < before.calls + most; round++) {
		bad += disturb(&client, &nmis, round, &ended);
		usleep(20000);
		drain(&client, &nmis);
		counts = nmi_counts();
		if (counts.calls >= before.calls + wanted && counts.nmis >= before.nmis + wanted &&
		    hit_all(&client, &nmis, counts.recording - before.recording,
			    counts.stashing - before.stashing))
			break;
	}
	/* where a round may have left it */
	load_set_online(1, true);
	client_start(&client);
	nmi_set_interval(0);
	usleep(200000);
	client_drain(&client);
	check_burst(&client);
	counts = nmi_counts();
	tap(!client_stop(&client), "NMIs end, STOP");
	client_drain(&client);
	calls = client_calls(&client, NMI_NMI);
	tap(!bad, "of %u rounds with sessions and CPUs that come and go %u went wrong", round, bad);
	tap(counts.calls >= before.calls + wanted && counts.nmis >= before.nmis + wanted,
	    "%" PRIu64 " overflows in %" PRIu64 " NMIs", counts.calls - before.calls,
	    counts.nmis - before.nmis);
	tap(client_balanced(&client), "captured + filtered + lost by reason = calls");
	tap(calls + ended == counts.calls - before.calls, "%" PRIu64 " calls = %" PRIu64
	    " delivered, less %" PRIu64 " of sessions that ended", calls,
	    counts.calls - before.calls, ended);
	tap(nmis.total && nmis.total == client_samples(&client, NMI_NMI) && !nmis.elsewhere &&
	    !nmis.one_phase, "all %" PRIu64 " samples from NMIs, in two phases", nmis.total);
	tap(counts.recording > before.recording, "%" PRIu64 " hit the irq_work at the ring",
	    counts.recording - before.recording);
	tap(counts.stashing > before.stashing && client_lost(&client, STACKTAP_LOST_REENTRY),
	    "%" PRIu64 " hit the filling of a stash: %" PRIu64 " lost to re-entry",
	    counts.stashing - before.stashing, client_lost(&client, STACKTAP_LOST_REENTRY));
	tap(nmis.in_drain && nmis.in_reader, "%" PRIu64
	    " came while rings were read, %" PRIu64 " hit the reader itself", nmis.in_drain,
	    nmis.in_reader);
	/* none of these is LOST_STOPPED: a session is armed until its last counter is gone */
	tap(nmis.in_stop, "%" PRIu64 " sampled while the session was being stopped", nmis.in_stop);
	tap(nmis.in_offline && client_lost(&client, STACKTAP_LOST_OFFLINE), "%" PRIu64
	    " sampled while a CPU went offline, %" PRIu64 " lost on that CPU", nmis.in_offline,
	    client_lost(&client, STACKTAP_LOST_OFFLINE));
	tap(!client_lost(&client, STACKTAP_LOST_STOPPED), "none came to a session that is not armed");
	tap_note("%" PRIu64 " lost to a full ring", client_lost(&client, STACKTAP_LOST_RING_FULL));
	tap(nmis.user_all > 100 && nmis.user_chain * 100 >= nmis.user_all * 90,
	    "leaf and caller in %" PRIu64 " of %" PRIu64, nmis.user_chain, nmis.user_all);
	tap(nmis.kernel > 100, "%" PRIu64 " kernel stacks", nmis.kernel);
	client_close(&client);

	tap(nmi_set_interval(NMI_INTERVAL_US), "NMIs again");
	for (round = bad = 0; round < 30; round++) {
		bad += !open_two_phase(&client, STACKTAP_RING_MIN_BYTES, nmi_sources, NMI_SOURCES);
		usleep(10000);
		client_close(&client);
	}
	check_user_only();
	tap(!bad && nmi_set_interval(0), "%u sessions ended by their owner's death", round);
	for (round = 0; round < 4; round++)
		load_kill(pids[round]);
	client_close(&keeper);
}
