// SPDX-License-Identifier: Apache-2.0
/*
 * What waits for one deadline on one CPU, and what comes behind it. "turns" is for a guest with one CPU and icount; the
 * kernel's tracer times phase 2 meanwhile, see case deadline.
 */
#include <linux/perf_event.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "searched.h"
#include "tap.h"

enum {
	DEADLINE_NS = 100000,
	DEADLINE_OTHERS = 7,		/* sessions beside the one that has much to do */
	DEADLINE_RATE = 99,		/* of that one, whose sources all overflow together */
	DEADLINE_OTHERS_RATE = 9999,
	DEADLINE_OTHERS_FRAMES = 8,
	DEADLINE_TURNS = 150000000,
	/* in ns: a deep stack that others come behind, what is beside its walk, the others' stacks, handlers in between */
	DEADLINE_LONGEST = 2 * DEADLINE_NS,
	DEADLINE_BEHIND = 300,
	DEADLINE_PATIENCE = 600,	/* pauses of 20 ms */
};

static bool begin(struct client *client, const struct source *source, unsigned int nr, uint32_t ring_bytes,
		  uint32_t frames, bool two_phase, client_visit *visit, void *arg)
{
	struct source sources[STACKTAP_MAX_SOURCES];
	struct message message;
	unsigned int i;

	for (i = 0; i < nr; i++)
		sources[i] = *source;
	if (client_open(client) || client_add_rings(client, ring_bytes) || client_set_sources(client, sources, nr))
		return false;
	client->visit = visit;
	client->visit_arg = arg;
	client_begin(client, &message, STACKTAP_CMD_SET_SESSION);
	message_put_u32(&message, STACKTAP_A_USER_FRAMES, frames);
	if (two_phase)
		message_put(&message, STACKTAP_A_TWO_PHASE, NULL, 0);
	return !client_send(client, &message);
}

static bool end(struct client *client)
{
	bool good = !client_stop(client);

	client_drain(client);
	good &= client_balanced(client) && !client_lost(client, STACKTAP_LOST_STASH_FULL);
	client_close(client);
	return good;
}

struct waited {
	uint64_t samples, behind, longest;
};

static void visit_waited(const struct sample_view *view, void *arg)
{
	const struct stacktap_sample *sample = view->sample;
	struct waited *waited = arg;

	/* of another task, or of this one while it was no longer there */
	if (sample->tgid != (uint32_t)getpid() || sample->header.flags & STACKTAP_SAMPLE_STALE)
		return;
	waited->samples++;
	waited->behind += sample->delay_ns > DEADLINE_NS;
	if (sample->delay_ns > waited->longest)
		waited->longest = sample->delay_ns;
}

/*
 * Again and again a session has eight stacks in its stash each of which takes all the time that there is, and others
 * have short ones. None waits for all of the eight.
 */
void case_turns(void)
{
	static const struct source much = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
		.rate_hz = DEADLINE_RATE, .flags = STACKTAP_SRC_NO_JITTER,
	};
	static const struct source little = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
		.rate_hz = DEADLINE_OTHERS_RATE,
	};
	struct client first, others[DEADLINE_OTHERS];
	struct waited all = { 0 }, each[DEADLINE_OTHERS];
	struct searched searched;
	unsigned int i, good = 0;
	bool is_begun;

	memset(each, 0, sizeof(each));
	is_begun = searched_begin(&searched) &&
		   begin(&first, &much, STACKTAP_MAX_SOURCES, 4 << 20, STACKTAP_MAX_USER_FRAMES, true,
			 visit_waited, &all) &&
		   searched_set(&first, &searched);
	for (i = 0; i < DEADLINE_OTHERS; i++)
		is_begun &= begin(&others[i], &little, 1, 1 << 20, DEADLINE_OTHERS_FRAMES, true, visit_waited,
				  &each[i]);
	if (!tap(is_begun, "one session with deep stacks, %u with short ones", DEADLINE_OTHERS))
		return;
	is_begun = !client_start(&first);
	for (i = 0; i < DEADLINE_OTHERS; i++)
		is_begun &= !client_start(&others[i]);
	tap(is_begun, "START");
	searched_burn(&searched, DEADLINE_TURNS);
	for (i = 0; i < DEADLINE_OTHERS; i++)
		good += end(&others[i]);
	tap(end(&first) && good == DEADLINE_OTHERS, "the ledgers balance, no stash was full");
	tap(all.samples > 100 && all.behind > all.samples / 2, "of %" PRIu64 " deep stacks %" PRIu64
	    " waited for a deadline", all.samples, all.behind);
	for (i = 0; i < DEADLINE_OTHERS; i++)
		tap(each[i].samples > 1000 && each[i].longest <= DEADLINE_LONGEST,
		    "%" PRIu64 " short ones waited for %" PRIu64 " ns at most", each[i].samples, each[i].longest);
	searched_end(&searched);
}

struct behind {
	uint32_t tgid;
	uint64_t samples, cut, frames;
};

static void visit_behind(const struct sample_view *view, void *arg)
{
	const struct stacktap_sample *sample = view->sample;
	struct behind *behind = arg;

	if (sample->tgid != behind->tgid || sample->header.flags & STACKTAP_SAMPLE_USER_MODE)
		return;
	behind->samples++;
	/* the user stack is too short to be cut by anything else */
	if (sample->user_end != STACKTAP_END_TIME)
		return;
	behind->cut++;
	behind->frames += sample->kernel_end == STACKTAP_END_TIME && view->nr_user == 1 && view->nr_kernel == 1;
}

/* Of eight samples in one interrupt those behind the deadline have one frame of either stack; for PREEMPT_RT. */
void case_behind(void)
{
	static const struct source source = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
		.rate_hz = 499, .flags = STACKTAP_SRC_NO_JITTER,
	};
	struct behind behind = { 0 };
	struct client client;
	unsigned int i;

	if (!tap(begin(&client, &source, STACKTAP_MAX_SOURCES, 4 << 20, STACKTAP_MAX_USER_FRAMES, false,
		       visit_behind, &behind), "a session with eight clocks"))
		return;
	behind.tgid = load_fork(0, true);
	tap(!client_start(&client), "START");
	for (i = 0; i < DEADLINE_PATIENCE && behind.cut < DEADLINE_BEHIND; i++) {
		usleep(20000);
		client_drain(&client);
	}
	load_kill(behind.tgid);
	tap(end(&client), "the ledger balances");
	tap(behind.cut >= DEADLINE_BEHIND && behind.frames == behind.cut, "of %" PRIu64 " samples in the kernel %" PRIu64
	    " came behind the deadline, %" PRIu64 " with one frame of either stack", behind.samples, behind.cut,
	    behind.frames);
}
