// SPDX-License-Identifier: Apache-2.0
/*
 * What becomes of a session that has degraded when it is stopped and started, when CPUs go and come,
 * and when it ends. Every handler exceeds a budget of 1 ns, so that no guest is too fast for this.
 */
#include <linux/perf_event.h>
#include <stacktap/degrade.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "module.h"
#include "tap.h"

enum {
	RATE = 997,
	SLOWEST = RATE >> DEGRADE_RATE_STEPS,
	LOOK_SECONDS = 2,
	ROUNDS = 6,
};

static const struct source clock_997 = {
	.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
	.rate_hz = RATE,
};

struct view {
	unsigned int state;
	uint32_t degraded, kernel_frames, divisor;
	uint64_t degradations;
};

static void visit_session(const void *attrs, size_t size, void *arg)
{
	const void *session = attr_find(attrs, size, STACKTAP_A_SESSION, &size);
	struct view *view = arg;

	if (!session)
		return;
	view->state = attr_u8(session, size, STACKTAP_A_STATE);
	view->degraded = attr_u32(session, size, STACKTAP_A_DEGRADED);
	view->kernel_frames = attr_u32(session, size, STACKTAP_A_KERNEL_FRAMES);
	view->divisor = attr_u32(session, size, STACKTAP_A_RATE_DIVISOR);
	view->degradations = attr_u64(session, size, STACKTAP_A_DEGRADATIONS);
}

static struct view look(struct client *client)
{
	struct view view = { 0 };
	struct message message;

	client_begin(client, &message, STACKTAP_CMD_GET_SESSION);
	wire_call(&client->wire, &message, visit_session, &view);
	return view;
}

static int set_budget(struct client *client, uint32_t budget_ns)
{
	struct message message;

	client_begin(client, &message, STACKTAP_CMD_SET_SESSION);
	message_put_u32(&message, STACKTAP_A_BUDGET_NS, budget_ns);
	return client_send(client, &message);
}

static bool is_whole(const struct view *view)
{
	return !view->degraded && view->kernel_frames == STACKTAP_MAX_KERNEL_FRAMES &&
	       view->divisor == 1;
}

static bool reaches(struct client *client, uint32_t step)
{
	unsigned int i;

	for (i = 0; i < 400 && look(client).degraded < step; i++) {
		usleep(100000);
		client_drain(client);
	}
	return look(client).degraded >= step;
}

/* By the stream and by the dump, all CPUs sample at @rate_hz with @step told. */
static bool all_follow(struct client *client, unsigned int nr_cpus, uint32_t rate_hz, uint32_t step)
{
	uint64_t sum = client_count(client, 0, STACKTAP_CNT_PERIOD);
	unsigned int cpu, good = 0;

	for (cpu = 0; cpu < nr_cpus; cpu++) {
		const struct ledger *ledger = &client->ledgers[cpu][0];
		unsigned int flags = ledger->config.header.flags;

		good += ledger->configured && ledger->config.rate_hz == rate_hz &&
			ledger->config.period == 1000000000 / rate_hz &&
			!!(flags & STACKTAP_CONFIG_DEGRADED) == !!step &&
			(flags & STACKTAP_CONFIG_STEP_MASK) >> STACKTAP_CONFIG_STEP_SHIFT == step;
	}
	return good == nr_cpus && sum == nr_cpus * (uint64_t)(1000000000 / rate_hz);
}

static bool wait_all(struct client *client, unsigned int nr_cpus, uint32_t rate_hz, uint32_t step)
{
	unsigned int i;

	for (i = 0; i < 300; i++) {
		client_drain(client);
		if (all_follow(client, nr_cpus, rate_hz, step))
			return true;
		usleep(100000);
	}
	return false;
}

static bool wait_samples(struct client *client, unsigned int cpu, unsigned int nr)
{
	uint64_t wanted = client->ledgers[cpu][0].samples + nr;
	unsigned int i;

	for (i = 0; i < 300 && client->ledgers[cpu][0].samples < wanted; i++) {
		usleep(100000);
		client_drain(client);
	}
	return client->ledgers[cpu][0].samples >= wanted;
}

static void cpus_go_and_come(struct client *client, unsigned int nr_cpus)
{
	bool good = true;
	struct view view;
	unsigned int i;

	tap(reaches(client, DEGRADE_DEPTH_STEPS + 1), "the rate is halved");
	good &= load_set_online(1, false);
	tap(good && reaches(client, DEGRADE_STEPS), "all steps are taken while CPU 1 is offline");
	view = look(client);
	tap(view.kernel_frames == degrade_kernel_frames(DEGRADE_STEPS) &&
	    view.divisor == 1 << DEGRADE_RATE_STEPS && view.degradations == DEGRADE_STEPS,
	    "GET_SESSION: %u frames, rates divided by %u, %llu times", view.kernel_frames,
	    view.divisor, (unsigned long long)view.degradations);
	tap(load_set_online(1, true) && wait_all(client, nr_cpus, SLOWEST, DEGRADE_STEPS),
	    "it comes back at the rate that holds by now");
	tap(wait_samples(client, 1, 10), "and is sampled");
	for (i = 0; i < ROUNDS; i++) {
		good &= !set_budget(client, i % 2);
		good &= load_set_online(1, false);
		good &= !set_budget(client, !(i % 2));
		/* one look at least, in some of them with the CPU away */
		usleep(i % 3 ? 100000 : LOOK_SECONDS * 1100000);
		good &= load_set_online(1, true);
		client_drain(client);
	}
	tap(good, "CPU 1 off and on while steps are taken and taken back, %u times", i);
	good = !set_budget(client, 0);
	view = look(client);
	tap(good && is_whole(&view), "without a budget it is whole at once");
	tap(wait_all(client, nr_cpus, RATE, 0) && wait_samples(client, 1, 10), "on all CPUs");
}

static void stop_and_start(struct client *client, unsigned int nr_cpus)
{
	uint64_t degradations;
	struct view view;

	tap(!set_budget(client, 1) && reaches(client, 1), "degraded again");
	tap(!client_stop(client), "STOP");
	view = look(client);
	degradations = view.degradations;
	tap(view.state == STACKTAP_STATE_STOPPED && is_whole(&view) && degradations > DEGRADE_STEPS,
	    "takes all steps back, and their number stays: %llu", (unsigned long long)degradations);
	client_drain(client);
	tap(client_balanced(client), "the ledger balances");
	usleep(LOOK_SECONDS * 1500000);
	view = look(client);
	tap(is_whole(&view) && view.degradations == degradations, "a stopped session takes none");
	tap(!set_budget(client, 0) && !client_start(client), "START");
	tap(wait_all(client, nr_cpus, RATE, 0), "it begins whole");
	tap(!set_budget(client, 1) && reaches(client, 1), "and degrades again");
}

void case_degrade(void)
{
	unsigned int nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct client client;

	if (!tap(!client_open(&client) && !client_add_rings(&client, 1 << 20) &&
		 !client_set_sources(&client, &clock_997, 1) && !set_budget(&client, 1) &&
		 !client_start(&client), "a session with a budget of 1 ns runs on %u CPUs", nr_cpus))
		return;
	cpus_go_and_come(&client, nr_cpus);
	stop_and_start(&client, nr_cpus);
	tap(load_set_online(1, false), "CPU 1 off");
	client_close(&client);
	tap(load_set_online(1, true) && module_wait_idle(), "closed while it is degraded, nothing is left");
}
