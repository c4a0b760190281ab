// SPDX-License-Identifier: Apache-2.0
/*
 * From cpu-clock back to the event that was asked for. stacktap_refuse.ko makes perf refuse that with an
 * error of our choice, and counts how often it was asked.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "module.h"
#include "tap.h"

#define REFUSE "/sys/module/stacktap_refuse/parameters/"

enum {
	RATE = 997,
	NEW_RATE = 499,
	CYCLES_HZ = 1000000000,
	LOOK_MS = 2000,
	/* the second time that perf is asked again is near */
	REFUSED_MS = 5000,
	RACERS = 5,
	RACE_SECONDS = 5,
};

static const struct source cycles = {
	.name = "cycles", .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
	.rate_hz = RATE, .nominal_hz = CYCLES_HZ,
};

static const struct source instructions = {
	.name = "instructions", .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS,
	.rate_hz = 99, .nominal_hz = CYCLES_HZ,
};

/* where samples came from, by what CONFIG said last */
struct origins {
	struct client *client;
	uint64_t timer, pmu, wrong, weights;
};

static void origins_visit(const struct sample_view *view, void *arg)
{
	const struct stacktap_sample *sample = view->sample;
	struct origins *origins = arg;
	const struct stacktap_config *config = &origins->client->ledgers[sample->cpu][0].config;
	bool stands_in = config->header.flags & STACKTAP_CONFIG_FALLBACK;
	bool is_timer = sample->context == STACKTAP_CONTEXT_HRTIMER;

	origins->timer += is_timer;
	origins->pmu += !is_timer;
	origins->wrong += is_timer != stands_in;
	origins->weights += sample->period != config->period;
}

static bool refuse(unsigned int error)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", error);
	return load_write(REFUSE "error", text);
}

static bool refusals(unsigned int *ret_cycles, unsigned int *ret_others)
{
	FILE *file = fopen(REFUSE "counts", "re");
	bool good = file && fscanf(file, "%u %u", ret_cycles, ret_others) == 2;

	if (file)
		fclose(file);
	return good;
}

static void visit_source(const void *attrs, size_t size, void *arg)
{
	const void *session = attr_find(attrs, size, STACKTAP_A_SESSION, &size);
	const void *sources = session ? attr_find(session, size, STACKTAP_A_SOURCES, &size) : NULL;
	const void *source = sources ? attr_find(sources, size, STACKTAP_A_SOURCE, &size) : NULL;
	uint32_t *fallback = arg;

	if (!source)
		return;
	fallback[0] = attr_u32(source, size, STACKTAP_SRC_FALLBACK_ERRNO);
	fallback[1] = attr_u32(source, size, STACKTAP_SRC_FALLBACK_CPUS);
}

/* By GET_SESSION, cpu-clock stands in on @cpus CPUs for @error. */
static bool stands_in(struct client *client, uint32_t error, uint32_t cpus)
{
	uint32_t fallback[2] = { UINT32_MAX, UINT32_MAX };
	struct message message;

	client_begin(client, &message, STACKTAP_CMD_GET_SESSION);
	wire_call(&client->wire, &message, visit_source, fallback);
	return fallback[0] == error && fallback[1] == cpus;
}

/* By the stream, all CPUs count the real event at @rate_hz, or cpu-clock for @error. */
static bool all_count(struct client *client, unsigned int nr_cpus, uint32_t error, uint32_t rate_hz)
{
	unsigned int cpu, good = 0;

	for (cpu = 0; cpu < nr_cpus; cpu++) {
		const struct ledger *ledger = &client->ledgers[cpu][0];
		const struct stacktap_config *config = &ledger->config;

		good += ledger->configured && config->fallback_errno == error &&
			!!(config->header.flags & STACKTAP_CONFIG_FALLBACK) == !!error &&
			config->perf_type == (error ? PERF_TYPE_SOFTWARE : PERF_TYPE_HARDWARE) &&
			!strcmp(config->name, error ? "cpu-clock" : "cycles") &&
			config->rate_hz == rate_hz && config->period == CYCLES_HZ / rate_hz;
	}
	return good == nr_cpus;
}

static bool wait_all(struct client *client, unsigned int nr_cpus, uint32_t rate_hz)
{
	unsigned int i;

	for (i = 0; i < 300; i++) {
		client_drain(client);
		if (all_count(client, nr_cpus, 0, rate_hz))
			return true;
		usleep(100000);
	}
	return false;
}

static void drain_for(struct client *client, unsigned int ms)
{
	for (; ms > 0; ms -= 100) {
		usleep(100000);
		client_drain(client);
	}
}

static bool open_session(struct client *client, const struct source *source)
{
	return !client_open(client) && !client_add_rings(client, 1 << 20) &&
	       !client_set_sources(client, source, 1);
}

/* For how many counters of @client, or of all if that is NULL, EVENT_FALLBACK_END came; the last errno. */
static uint32_t ends_told(struct wire *wire, const struct client *client, uint64_t *ret_count)
{
	char buffer[8192];
	uint32_t error = 0;

	*ret_count = 0;
	for (;;) {
		ssize_t size = recv(wire->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		const void *attrs = buffer + NLMSG_LENGTH(4);

		if (size < (ssize_t)NLMSG_LENGTH(4))
			return error;
		size -= NLMSG_LENGTH(4);
		if (attr_u8(attrs, size, STACKTAP_A_EVENT_KIND) != STACKTAP_EVENT_FALLBACK_END ||
		    (client &&
		     attr_u64(attrs, size, STACKTAP_A_SESSION_ID) != client->info.session_id))
			continue;
		*ret_count += attr_u64(attrs, size, STACKTAP_A_EVENT_COUNT);
		error = attr_u32(attrs, size, STACKTAP_A_ERRNO);
	}
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

/* At most, in the first @ms: at once, after 2 s, after 4 more, and so on. */
static unsigned int asked(uint64_t ms)
{
	uint64_t when, wait = LOOK_MS;
	unsigned int times = 1;

	for (when = wait; when <= ms; when += wait) {
		times++;
		wait *= 2;
	}
	return times;
}

static void refused(struct client *busy, struct client *absent, unsigned int nr_cpus,
		    struct origins *origins)
{
	unsigned int nr_cycles, nr_others;
	uint64_t began = now_ms(), ms;

	tap(refuse(EBUSY) && !client_start(busy), "cycles are refused with EBUSY");
	tap(refuse(ENOENT) && !client_start(absent) && refuse(EBUSY), "instructions with ENOENT");
	client_drain(busy);
	tap(all_count(busy, nr_cpus, EBUSY, RATE) && stands_in(busy, EBUSY, nr_cpus),
	    "cpu-clock stands in for EBUSY on %u CPUs, by CONFIG and by GET_SESSION", nr_cpus);
	drain_for(busy, REFUSED_MS / 2);
	tap(!client_set_rate(busy, 0, NEW_RATE), "another rate meanwhile");
	client_drain(busy);
	/* what came between the new period and its CONFIG */
	origins->weights = 0;
	drain_for(busy, REFUSED_MS / 2);
	tap(all_count(busy, nr_cpus, EBUSY, NEW_RATE), "which cpu-clock has");
	if (!tap(refusals(&nr_cycles, &nr_others), "how often perf was asked"))
		return;
	ms = now_ms() - began;
	tap(nr_cycles > nr_cpus && nr_cycles <= asked(ms) * nr_cpus,
	    "%u times for cycles on %u CPUs in %" PRIu64 " ms", nr_cycles, nr_cpus, ms);
	tap(nr_others == nr_cpus, "%u times for instructions: not again so soon", nr_others);
}

static void restored(struct client *busy, struct client *absent, unsigned int nr_cpus,
		     struct origins *origins, struct wire *wire)
{
	uint64_t before, count;
	uint32_t error;

	tap(origins->timer && !origins->pmu, "%" PRIu64 " samples of the timer, none of the PMU",
	    origins->timer);
	tap(refuse(0) && wait_all(busy, nr_cpus, NEW_RATE),
	    "once it can be had cycles count on all CPUs, at that rate");
	before = client_samples(busy, 0);
	drain_for(busy, 500);
	usleep(200000);
	error = ends_told(wire, busy, &count);
	tap(error == EBUSY && count == nr_cpus, "announced on %" PRIu64 " CPUs, errno %u", count, error);
	tap(stands_in(busy, 0, 0), "GET_SESSION has no fallback any more");
	tap(stands_in(absent, ENOENT, nr_cpus), "but of instructions");
	tap(client_samples(busy, 0) > before + 20 && origins->pmu, "samples go on: %" PRIu64 " of the PMU",
	    origins->pmu);
	tap(!client_stop(busy) && !client_stop(absent), "STOP");
	client_drain(busy);
	client_drain(absent);
	tap(!origins->wrong && !origins->weights, "samples of another counter than CONFIG says: %" PRIu64
	    ", or of another weight: %" PRIu64, origins->wrong, origins->weights);
	tap(client_count(busy, 0, STACKTAP_CNT_FALLBACK_RECORDED) == origins->timer,
	    "of %" PRIu64 " that were recorded the timer's are told apart",
	    client_count(busy, 0, STACKTAP_CNT_RECORDED));
	tap(client_balanced(busy) && client_balanced(absent), "the ledgers balance");
	tap(!client_lost(busy, STACKTAP_LOST_STOPPED), "nothing came from a counter that was replaced");
}

/* What is asked of a session around the look in which its counters come back. */
static bool disturb(struct client *client, unsigned int number, unsigned int step)
{
	switch (number) {
	case 0:
		return !client_set_rate(client, 0, step % 2 ? RATE : NEW_RATE);
	case 1:
		return !client_set_filter(client, step % 2 ? 1 : 3, NULL, 0, 0);
	case 2:
		return step % 8 || (!client_stop(client) && !client_start(client));
	default:
		return true;
	}
}

/* Sessions whose first looks are spread over the time in which all this happens to them. */
static void race(unsigned int nr_cpus, struct wire *wire)
{
	static struct client clients[RACERS];
	time_t end = time(NULL) + RACE_SECONDS;
	unsigned int i, step, balanced = 0;
	bool good = refuse(EBUSY);
	uint64_t count;

	for (i = 0; i < RACERS; i++) {
		good &= open_session(&clients[i], &cycles) && !client_start(&clients[i]);
		usleep(50000);
	}
	ends_told(wire, NULL, &count);
	for (step = 0; time(NULL) < end; step++) {
		/* mostly to be had, when it is first asked for */
		good &= refuse(step % 8 == 7 ? EBUSY : 0);
		good &= load_set_online(nr_cpus - 1, step % 4 > 1);
		for (i = 0; i < RACERS; i++) {
			good &= disturb(&clients[i], i, step);
			client_drain(&clients[i]);
		}
	}
	good &= load_set_online(nr_cpus - 1, true);
	for (i = 0; i < RACERS; i++) {
		/* one is closed as it is */
		if (i < RACERS - 1) {
			good &= !client_stop(&clients[i]);
			client_drain(&clients[i]);
			client_flush(&clients[i]);
			client_drain(&clients[i]);
			balanced += client_balanced(&clients[i]);
		}
		client_close(&clients[i]);
	}
	tap(good && balanced == RACERS - 1, "START, STOP, SET and CPUs against the look, %u rounds: "
	    "%u ledgers balance", step, balanced);
	usleep(200000);
	ends_told(wire, NULL, &count);
	/* not all of them, where events came faster than the socket has room for */
	tap_note("in which %" PRIu64 " counters came back by the look", count);
}

void case_fallback(void)
{
	unsigned int nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct client busy, absent;
	struct origins origins = { .client = &busy };
	struct wire wire;
	pid_t loads[2];

	if (!tap(open_session(&busy, &cycles) && open_session(&absent, &instructions),
		 "two sessions on %u CPUs", nr_cpus) ||
	    !tap(!wire_open(&wire) && !setsockopt(wire.fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP,
						  &wire.group, sizeof(wire.group)), "join"))
		return;
	busy.visit = origins_visit;
	busy.visit_arg = &origins;
	loads[0] = load_fork(0, false);
	loads[1] = load_fork(1, false);
	refused(&busy, &absent, nr_cpus, &origins);
	restored(&busy, &absent, nr_cpus, &origins, &wire);
	client_close(&busy);
	client_close(&absent);
	race(nr_cpus, &wire);
	wire_close(&wire);
	load_kill(loads[0]);
	load_kill(loads[1]);
	tap(refuse(0) && module_wait_idle(), "nothing is left");
}
