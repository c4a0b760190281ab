// SPDX-License-Identifier: Apache-2.0
/*
 * The capture path in NMI, whatever that hits; needs stacktap_nmi.ko and the module it drives.
 * NMI_WANTED in the environment.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "module.h"
#include "tap.h"

#define NMI_PARAMETERS "/sys/module/stacktap_nmi/parameters/"

enum {
	NMI_INTERVAL_US = 60,
	NMI_PATIENCE = 60000,	/* pauses of 20 ms: guests may be slow */
	/* sources */
	NMI_CLOCK = 0,
	NMI_NMI = 1,
};

static const struct source clock_and_nmi[] = {
	{ .name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
	  .rate_hz = 997 },
	{ .name = "nmi", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_ALIGNMENT_FAULTS,
	  .period = 1 },
};

static const struct source slow_clock = {
	.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .rate_hz = 1,
};

struct nmi_counts {
	uint64_t nmis, calls, recording, stashing;
};

struct nmis {
	pid_t user[2];
	uint64_t total, elsewhere, one_phase;
	uint64_t user_all, user_chain;	/* samples of @user in user mode */
	uint64_t kernel;
};

static void nmis_visit(const struct sample_view *view, void *arg)
{
	const struct stacktap_sample *sample = view->sample;
	struct nmis *nmis = arg;

	if (sample->source != NMI_NMI)
		return;
	nmis->total++;
	nmis->elsewhere += sample->context != STACKTAP_CONTEXT_NMI;
	nmis->one_phase += !(sample->header.flags & STACKTAP_SAMPLE_TWO_PHASE);
	if (!(sample->header.flags & STACKTAP_SAMPLE_USER_MODE)) {
		nmis->kernel += view->nr_kernel > 1;
	} else if (sample->tgid == (uint32_t)nmis->user[0] ||
		   sample->tgid == (uint32_t)nmis->user[1]) {
		nmis->user_all++;
		nmis->user_chain += view->nr_user > 1 && load_in_inner(view->user_ips[0]) &&
				    load_in_outer(view->user_ips[1]);
	}
}

static bool nmi_set_interval(unsigned int us)
{
	FILE *file = fopen(NMI_PARAMETERS "interval_us", "we");
	bool good = file && fprintf(file, "%u", us) > 0;

	return file && !fclose(file) && good;
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

	if (!open_two_phase(&client, STACKTAP_RING_MIN_BYTES, clock_and_nmi, 2))
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
static unsigned int disturb(struct client *client, unsigned int round, uint64_t *ret_calls)
{
	uint64_t calls;

	switch (round % 32) {
	case 4:
		return !!client_stop(client);
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
		return !load_set_online(1, false);
	case 20:
		return !load_set_online(1, true);
	}
	return 0;
}

void case_nmi(void)
{
	const uint64_t wanted = module_setting("NMI_WANTED", 100000);
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
	if (!tap(open_two_phase(&keeper, STACKTAP_RING_MIN_BYTES, &slow_clock, 1),
		 "a session that stays"))
		return;
	if (!tap(open_two_phase(&client, 1 << 20, clock_and_nmi, 2), "a session in two phases"))
		return;
	client.visit = nmis_visit;
	client.visit_arg = &nmis;
	for (round = 0; round < 4; round++)
		pids[round] = load_fork(round & 1, round & 2);
	nmis.user[0] = pids[0];
	nmis.user[1] = pids[1];
	before = counts = nmi_counts();
	tap(nmi_set_interval(NMI_INTERVAL_US), "NMIs begin");
	for (round = 0; round < NMI_PATIENCE && counts.calls < before.calls + wanted; round++) {
		bad += disturb(&client, round, &ended);
		usleep(20000);
		client_drain(&client);
		counts = nmi_counts();
	}
	/* where a round may have left it */
	load_set_online(1, true);
	client_start(&client);
	nmi_set_interval(0);
	usleep(200000);
	counts = nmi_counts();
	tap(!client_stop(&client), "NMIs end, STOP");
	client_drain(&client);
	calls = client_calls(&client, NMI_NMI);
	tap(!bad, "of %u rounds with sessions and CPUs that come and go %u went wrong", round, bad);
	tap(counts.calls >= before.calls + wanted, "%" PRIu64 " overflows in %" PRIu64 " NMIs",
	    counts.calls - before.calls, counts.nmis - before.nmis);
	tap(client_balanced(&client), "captured + filtered + lost by reason = calls");
	tap(calls + ended == counts.calls - before.calls, "%" PRIu64 " calls = %" PRIu64
	    " delivered, less %" PRIu64 " of sessions that ended", calls,
	    counts.calls - before.calls, ended);
	tap(nmis.total && nmis.total == client_samples(&client, NMI_NMI) && !nmis.elsewhere &&
	    !nmis.one_phase, "all %" PRIu64 " samples from NMIs, in two phases", nmis.total);
	tap(counts.recording > before.recording, "%" PRIu64 " hit the writing of a ring",
	    counts.recording - before.recording);
	tap_note("%" PRIu64 " hit the filling of a stash; lost: %" PRIu64 " stash, %" PRIu64
		 " ring, %" PRIu64 " re-entry, %" PRIu64 " offline, %" PRIu64 " stopped",
		 counts.stashing - before.stashing, client_lost(&client, STACKTAP_LOST_STASH_FULL),
		 client_lost(&client, STACKTAP_LOST_RING_FULL),
		 client_lost(&client, STACKTAP_LOST_REENTRY),
		 client_lost(&client, STACKTAP_LOST_OFFLINE),
		 client_lost(&client, STACKTAP_LOST_STOPPED));
	tap(nmis.user_all > 100 && nmis.user_chain * 100 >= nmis.user_all * 90,
	    "leaf and caller in %" PRIu64 " of %" PRIu64, nmis.user_chain, nmis.user_all);
	tap(nmis.kernel > 100, "%" PRIu64 " kernel stacks", nmis.kernel);
	client_close(&client);

	tap(nmi_set_interval(NMI_INTERVAL_US), "NMIs again");
	for (round = bad = 0; round < 30; round++) {
		bad += !open_two_phase(&client, STACKTAP_RING_MIN_BYTES, clock_and_nmi, 2);
		usleep(10000);
		client_close(&client);
	}
	tap(!bad && nmi_set_interval(0), "%u sessions ended by their owner's death", round);
	for (round = 0; round < 4; round++)
		load_kill(pids[round]);
	client_close(&keeper);
}
