// SPDX-License-Identifier: Apache-2.0
/*
 * NMIs that hit user mode and walk the stack themselves; needs stacktap_nmi.ko and the module that it
 * drives.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../workload/spin_with.h"
#include "../workload/write_with.h"
#include "cases.h"
#include "client.h"
#include "load.h"
#include "module.h"
#include "nmi.h"
#include "tap.h"

/* NMIs of a burst, for which a stash has room */
#define NMI_LINE	"100"

enum {
	NMI_PATIENCE = 2000,	/* pauses of 20 ms: guests may be slow */
	NMI_ENOUGH = 100,	/* samples of each kind */
	NMI_LIMIT = 100000,	/* ns of a walk, the most */
	NMI_SHORT_LIMIT = 10000,
	NMI_MEAN = 20000,	/* in_place_ns: about what handlers take in an emulated CPU */
	NMI_ALWAYS = 1000000,	/* the most */
	NMI_LOAD_MS = 3600000,	/* until it is killed */
	NMI_LINES = 1000,	/* bursts, at most, */
	NMI_BEHIND = 10,	/* and samples behind them that are enough */
	NMI_LINE_MS = 2,	/* in user mode behind each */
};

/* What was read; [0]: finished in NMI, [1]: by phase 2. */
struct in_place {
	pid_t burners[2];		/* whose stack is known */
	pid_t blind, torn;		/* whose first frame, whose second one cannot be read */
	pid_t deep;
	pid_t liner;			/* returns to user mode while hits of its wait in the stash */
	uint64_t user[2], kernel;
	uint64_t wrong;			/* says what no sample can that an NMI finished */
	uint64_t known[2], whole[2];	/* of @burners: leaf, and its caller, too */
	uint64_t unread[2];		/* in NMI, of @blind and @torn: up to the page */
	uint64_t misread[2];
	uint64_t cut[2];		/* of @deep, by time */
	uint64_t behind;		/* of @liner in user mode, hit before the sample before was written */
	/* of the sample before: hit, and written */
	uint64_t time[CLIENT_MAX_CPUS], written[CLIENT_MAX_CPUS];
	uint64_t unordered;
};

/* And what has come is read. */
static void nmis_end(struct client *client)
{
	nmi_set_interval(0);
	usleep(200000);
	client_drain(client);
}

static bool open_session(struct client *client, uint32_t limit)
{
	struct message message;

	if (client_open(client) || client_add_rings(client, 1 << 20) ||
	    client_set_sources(client, nmi_sources, NMI_SOURCES))
		return false;
	client_begin(client, &message, STACKTAP_CMD_SET_SESSION);
	message_put_u32(&message, STACKTAP_A_USER_FRAMES, STACKTAP_MAX_USER_FRAMES);
	message_put_u32(&message, STACKTAP_A_WALK_LIMIT_NS, limit);
	return !client_send(client, &message) && !client_start(client);
}

static void visit_user(const struct sample_view *view, struct in_place *found)
{
	const struct stacktap_sample *sample = view->sample;
	bool is_two = sample->header.flags & STACKTAP_SAMPLE_TWO_PHASE;
	bool is_known = view->nr_user && load_in_inner(view->user_ips[0]);
	const pid_t pid = (pid_t)sample->tgid;

	found->user[is_two]++;
	if (!is_two)
		found->wrong += sample->context != STACKTAP_CONTEXT_NMI || sample->delay_ns || !view->nr_user ||
				sample->user_end == STACKTAP_END_TIME ||
				sample->header.flags & (STACKTAP_SAMPLE_MOVED | STACKTAP_SAMPLE_STALE);
	if (is_known && (pid == found->burners[0] || pid == found->burners[1])) {
		found->known[is_two]++;
		found->whole[is_two] += view->nr_user > 1 && load_in_outer(view->user_ips[1]);
	} else if (is_known && pid == found->liner) {
		found->behind += is_two && sample->cpu < CLIENT_MAX_CPUS &&
				 sample->header.time < found->written[sample->cpu];
	} else if (is_known && pid == found->deep) {
		found->cut[is_two] += sample->user_end == STACKTAP_END_TIME;
	} else if (!is_two && (pid == found->blind || pid == found->torn)) {
		const bool is_torn = pid == found->torn;

		if (sample->user_end == STACKTAP_END_UNREADABLE && view->nr_user == 1u + is_torn)
			found->unread[is_torn]++;
		else
			found->misread[is_torn]++;
	}
}

static void visit(const struct sample_view *view, void *arg)
{
	const struct stacktap_sample *sample = view->sample;
	struct in_place *found = arg;

	if (sample->source != NMI_NMI)
		return;
	if (sample->header.flags & STACKTAP_SAMPLE_USER_MODE) {
		visit_user(view, found);
	} else {
		found->kernel++;
		found->wrong += !(sample->header.flags & STACKTAP_SAMPLE_TWO_PHASE);
	}
	if (sample->cpu < CLIENT_MAX_CPUS) {
		found->unordered += sample->header.time < found->time[sample->cpu];
		found->time[sample->cpu] = sample->header.time;
		found->written[sample->cpu] = sample->header.time + sample->delay_ns;
	}
}

/* Drain @client until that many more are counted. */
static bool drain_until(struct client *client, const uint64_t *count, uint64_t wanted)
{
	const uint64_t before = *count;
	unsigned int i;

	for (i = 0; i < NMI_PATIENCE && *count < before + wanted; i++) {
		usleep(20000);
		client_drain(client);
	}
	return *count >= before + wanted;
}

/* A process whose frame record, or if @is_torn the one behind it, lies in a page that nobody may read. */
static pid_t fork_unreadable(bool is_torn)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t *pages;
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		_exit(1);
	pages[0] = (uintptr_t)pages + page;
	pages[1] = (uintptr_t)fork_unreadable;
	if (mprotect((char *)pages + page, page, PROT_NONE))
		_exit(1);
	for (;;)
		spin_with((uintptr_t)pages + (is_torn ? 0 : page), 100000000);
}

static void __attribute__((noinline, noclone)) burn_deep(unsigned int depth)
{
	if (depth)
		burn_deep(depth - 1);
	else
		load_burn(NMI_LOAD_MS);
	__asm__ volatile("" : : : "memory");
}

static pid_t fork_deep(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	burn_deep(STACKTAP_MAX_USER_FRAMES - 100);
	_exit(1);
}

/* With a stack of as many frames as are walked, for which phase 2 needs all the time that it has. */
static void write_deep(int fd, const char *text, size_t size)
{
	static uint64_t frames[STACKTAP_MAX_USER_FRAMES][2];
	unsigned int i;

	for (i = 0; i < STACKTAP_MAX_USER_FRAMES - 1; i++) {
		frames[i][0] = (uintptr_t)frames[i + 1];
		frames[i][1] = (uintptr_t)write_deep;
	}
	write_with((uintptr_t)frames[0], fd, text, size);
}

/*
 * Hits that wait in the stash come first. Phase 2 of many deep stacks takes so long that the rest is left to
 * ksoftirqd, which a real-time task keeps waiting: that is in user mode before they are written, and the next
 * NMI hits it there.
 */
static void check_order(struct client *client, struct in_place *found)
{
	const struct sched_param first = { .sched_priority = 1 }, none = { 0 };
	const int fd = open(NMI_BURST, O_WRONLY | O_CLOEXEC);
	unsigned int i;

	found->liner = getpid();
	for (i = 0; i < NMI_LINES && found->behind < NMI_BEHIND && !found->unordered; i++) {
		sched_setscheduler(0, SCHED_FIFO, &first);
		write_deep(fd, NMI_LINE, strlen(NMI_LINE));
		load_burn(NMI_LINE_MS);
		sched_setscheduler(0, SCHED_OTHER, &none);
		client_drain(client);
	}
	close(fd);
	tap(found->behind >= NMI_BEHIND && !found->unordered, "samples of a CPU are in order of time, %" PRIu64
	    " behind those that waited for phase 2, but for %" PRIu64, found->behind, found->unordered);
}

/* Stacks that are known, and those that end in a page fault in NMI, which lets the next NMI in. */
static void check_stacks(struct client *client, struct in_place *found)
{
	bool is_enough = drain_until(client, &found->whole[0], NMI_ENOUGH);

	/* not where the leaf has no frame yet, nor in its caller, which is in the same 256 bytes */
	tap(is_enough && (found->known[0] - found->whole[0]) * 50 <= found->known[0], "leaf and caller in %" PRIu64
	    " of %" PRIu64, found->whole[0], found->known[0]);
	is_enough = drain_until(client, &found->unread[0], NMI_ENOUGH) &&
		    drain_until(client, &found->unread[1], NMI_ENOUGH);
	/* beside that, how they begin, and the turn of their loop */
	tap(is_enough && found->misread[0] * 50 <= found->unread[0] &&
	    found->misread[1] * 50 <= found->unread[1], "%" PRIu64 " and %" PRIu64
	    " faults in NMI end the stack at the page, %" PRIu64 " and %" PRIu64 " stacks do elsewhere",
	    found->unread[0], found->unread[1], found->misread[0], found->misread[1]);
	is_enough = drain_until(client, &found->kernel, NMI_ENOUGH);
	tap(is_enough && !found->wrong, "what hit the kernel, %" PRIu64 ", has taken two phases, wrong %" PRIu64,
	    found->kernel, found->wrong);
}

/* The mean of handlers is above the limit, then below. */
static void check_limit(struct client *client, struct in_place *found)
{
	uint64_t before;
	bool is_enough;

	tap(found->user[0] > found->user[1] * 4, "in place %" PRIu64 ", in two phases %" PRIu64, found->user[0],
	    found->user[1]);
	module_set("in_place_ns", 1);
	usleep(100000);
	client_drain(client);
	before = found->user[0];
	is_enough = drain_until(client, &found->whole[1], NMI_ENOUGH);
	tap(is_enough && found->user[0] == before, "beyond the limit all in two phases but %" PRIu64,
	    found->user[0] - before);
	/* about where the mean is, so that stacks take now this way, now that */
	module_set("in_place_ns", NMI_MEAN);
	before = found->user[0];
	drain_until(client, &found->user[1], NMI_ENOUGH);
	tap_note("in place %" PRIu64 " near the limit", found->user[0] - before);
	module_set("in_place_ns", NMI_ALWAYS);
	tap(drain_until(client, &found->whole[0], NMI_ENOUGH), "in place again below it");
}

static void check_in_place(void)
{
	struct in_place found = { 0 };
	struct client client;
	uint64_t counted;

	if (!tap(open_session(&client, NMI_LIMIT), "a session whose NMIs walk user stacks"))
		return;
	client.visit = visit;
	client.visit_arg = &found;
	found.burners[0] = load_fork(0, false);
	found.burners[1] = load_fork(1, false);
	found.blind = fork_unreadable(false);
	found.torn = fork_unreadable(true);
	tap(nmi_set_interval(NMI_INTERVAL_US), "NMIs begin");
	check_stacks(&client, &found);
	check_limit(&client, &found);
	check_order(&client, &found);
	nmis_end(&client);
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	counted = client_count(&client, NMI_NMI, STACKTAP_CNT_IN_PLACE);
	tap(counted == found.user[0], "%" PRIu64 " counted in place, %" PRIu64 " read", counted, found.user[0]);
	tap(client_balanced(&client), "captured + filtered + lost by reason = calls");
	tap(!found.unordered, "all samples of a CPU are in order of time but for %" PRIu64, found.unordered);
	client_close(&client);
	load_kill(found.burners[0]);
	load_kill(found.burners[1]);
	load_kill(found.blind);
	load_kill(found.torn);
}

/* What an NMI has no time for is left to phase 2 as if it had not been begun. */
static void check_put_off(void)
{
	struct in_place found = { 0 };
	struct client client;
	uint64_t put_off;
	bool is_enough;

	if (!tap(open_session(&client, NMI_SHORT_LIMIT), "put off: a session with little time for a walk"))
		return;
	client.visit = visit;
	client.visit_arg = &found;
	found.deep = fork_deep();
	nmi_set_interval(NMI_INTERVAL_US);
	is_enough = drain_until(&client, &found.cut[1], NMI_ENOUGH);
	nmis_end(&client);
	tap(!client_stop(&client), "put off: STOP");
	client_drain(&client);
	put_off = client_count(&client, NMI_NMI, STACKTAP_CNT_PUT_OFF);
	tap(is_enough && put_off >= 3, "put off: %" PRIu64 " stacks are cut in phase 2, %" PRIu64
	    " were left to it", found.cut[1], put_off);
	tap(put_off * 4 <= found.cut[1], "put off: and the next ones at once, without a try");
	tap(!found.cut[0] && !found.wrong, "put off: none is cut in NMI");
	tap(client_balanced(&client), "put off: captured + filtered + lost by reason = calls");
	client_close(&client);
	load_kill(found.deep);
}

void case_in_place(void)
{
	struct client keeper;

	/* see nmi_slow_clock */
	if (!tap(!client_open(&keeper) && !client_add_rings(&keeper, STACKTAP_RING_MIN_BYTES) &&
		 !client_set_sources(&keeper, &nmi_slow_clock, 1) && module_set("like_pmu", 1) &&
		 module_set("in_place_ns", NMI_ALWAYS) && !client_start(&keeper), "a session that stays"))
		return;
	check_in_place();
	check_put_off();
	client_close(&keeper);
	module_set("like_pmu", 0);
}
