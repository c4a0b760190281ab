// SPDX-License-Identifier: Apache-2.0
/*
 * The family under messages that are sound, nearly sound and noise, from several sockets at once,
 * while sessions that they are about sample, start, stop and die. Each message gets its answer,
 * each refusal says why, and nothing is left afterwards.
 *
 * NETLINK_MESSAGES and FUZZ_SEED in the environment; the same seed makes the same messages, though
 * not the same order between processes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "forge.h"
#include "module.h"
#include "tap.h"

enum {
	FUZZERS = 6,		/* most of a STOP is waiting */
	MORTALS = 2,		/* keepers of sessions that do not live long */
	MESSAGES = 2000,
	LIFE = 100,		/* messages that a fuzzer's own session sees */
	RING_BYTES = 65536,
	RECENT = 64,		/* ids, dead ones among them */
};

struct arena {
	_Atomic uint64_t ids[RECENT];
	atomic_uint next_id;
	atomic_bool over;
	struct {
		unsigned int sent, taken, refused, unanswered, mute, starts, stops, lives, wrong;
		char last[160];
	} fuzzers[FUZZERS];
	atomic_uint deaths;
};

struct fuzzer {
	unsigned int number;
	struct arena *arena;
	struct dice dice;
	struct client client;
	int cgroup_fd;
	uint64_t cgroup;	/* its id */
	bool about_own;		/* the message is sound and for our own session, which lives */
	struct message message;
};

#define STATS(fuzzer) ((fuzzer)->arena->fuzzers[(fuzzer)->number])
#define SAY(fuzzer, ...) snprintf(STATS(fuzzer).last, sizeof(STATS(fuzzer).last), __VA_ARGS__)

static void publish(struct arena *arena, uint64_t id)
{
	atomic_store(&arena->ids[atomic_fetch_add(&arena->next_id, 1) % RECENT], id);
}

static uint64_t roll_id(struct fuzzer *fuzzer)
{
	struct dice *dice = &fuzzer->dice;

	switch (dice_roll(dice, 16)) {
	case 0:
		return dice_roll(dice, UINT64_MAX) << dice_roll(dice, 64);
	case 1:
	case 2:
	case 3:
	case 4:
	case 5:
		return atomic_load(&fuzzer->arena->ids[dice_roll(dice, RECENT)]);
	default:
		fuzzer->about_own = true;
		return fuzzer->client.info.session_id;
	}
}

static void put_source(struct fuzzer *fuzzer, unsigned int id)
{
	static const struct {
		const char *name;
		uint32_t type;
		uint64_t config;
	} events[] = {
		{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
		{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
		{ "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
		{ "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
		{ "cache-misses", PERF_TYPE_HW_CACHE, 0x10000 },
	};
	struct message *message = &fuzzer->message;
	struct dice *dice = &fuzzer->dice;
	unsigned int event = dice_roll(dice, sizeof(events) / sizeof(events[0]));
	size_t nest = message_nest_begin(message, STACKTAP_A_SOURCE);

	message_put_u32(message, STACKTAP_SRC_ID, id);
	/* half of them as a running session takes it */
	if (dice_roll(dice, 2)) {
		message_put(message, STACKTAP_SRC_NAME, events[event].name,
			    strlen(events[event].name) + 1);
		message_put_u32(message, STACKTAP_SRC_TYPE, events[event].type);
		message_put_u64(message, STACKTAP_SRC_CONFIG, events[event].config);
	}
	if (dice_roll(dice, 4))
		message_put_u32(message, STACKTAP_SRC_RATE_HZ, 1 + dice_roll(dice, 499));
	else
		message_put_u64(message, STACKTAP_SRC_PERIOD, 1000000 + dice_roll(dice, 1u << 30));
	if (dice_roll(dice, 4))
		message_put_u64(message, STACKTAP_SRC_NOMINAL_HZ, 1000000000);
	if (!dice_roll(dice, 4))
		message_put_u8(message, STACKTAP_SRC_MODE, 1 + dice_roll(dice, 2));
	if (!dice_roll(dice, 4))
		message_put_u32(message, STACKTAP_SRC_FLAGS, dice_roll(dice, 64));
	message_nest_end(message, nest);
}

static void put_task_filter(struct fuzzer *fuzzer)
{
	struct message *message = &fuzzer->message;
	struct dice *dice = &fuzzer->dice;
	char comms[3][STACKTAP_COMM_LEN] = { "kmodtest", "swapper/0" };
	uint32_t ids[20];
	uint64_t cgroup = dice_roll(dice, 4) ? fuzzer->cgroup : dice_roll(dice, 1u << 20);
	int fds[4];
	unsigned int i;

	for (i = 0; i < 20; i++)
		ids[i] = dice_roll(dice, 1u << 16);
	for (i = 0; i < 4; i++)
		fds[i] = dice_roll(dice, 5) ? fuzzer->cgroup_fd : (int)dice_roll(dice, 12) - 1;
	snprintf(comms[2], sizeof(comms[2]), "%u", (unsigned int)dice_roll(dice, 1u << 30));
	if (!dice_roll(dice, 6))
		message_put(message, STACKTAP_FILTER_TIDS, ids, 4 * (1 + dice_roll(dice, 20)));
	if (!dice_roll(dice, 6))
		message_put(message, STACKTAP_FILTER_UIDS, ids, 4 * (1 + dice_roll(dice, 3)));
	if (!dice_roll(dice, 6))
		message_put(message, STACKTAP_FILTER_COMMS, comms, 16 * (1 + dice_roll(dice, 3)));
	if (!dice_roll(dice, 6))
		message_put(message, STACKTAP_FILTER_CGROUP_FDS, fds, 4 * (1 + dice_roll(dice, 4)));
	if (!dice_roll(dice, 6))
		message_put(message, STACKTAP_FILTER_CGROUPS, &cgroup, sizeof(cgroup));
}

static void put_filter(struct fuzzer *fuzzer)
{
	struct message *message = &fuzzer->message;
	struct dice *dice = &fuzzer->dice;
	size_t nest = message_nest_begin(message, STACKTAP_A_FILTER);
	static uint32_t tgids[STACKTAP_MAX_TGIDS];
	unsigned int nr, i;

	if (!dice_roll(dice, 3))
		message_put_u64(message, STACKTAP_FILTER_CPUS, 1 + dice_roll(dice, 3));
	if (!dice_roll(dice, 3)) {
		nr = 1 + dice_roll(dice, dice_roll(dice, 20) ? 20 : STACKTAP_MAX_TGIDS);
		for (i = 0; i < nr; i++)
			tgids[i] = 1 + dice_roll(dice, 1u << 22);
		message_put(message, STACKTAP_FILTER_TGIDS, tgids, nr * sizeof(*tgids));
	}
	if (!dice_roll(dice, 3))
		message_put_u32(message, STACKTAP_FILTER_FLAGS, dice_roll(dice, 8));
	put_task_filter(fuzzer);
	message_nest_end(message, nest);
}

static void put_settings(struct fuzzer *fuzzer)
{
	struct message *message = &fuzzer->message;
	struct dice *dice = &fuzzer->dice;
	unsigned int nr, i;
	size_t list;

	if (dice_roll(dice, 2)) {
		list = message_nest_begin(message, STACKTAP_A_SOURCES);
		nr = 1 + dice_roll(dice, dice_roll(dice, 8) ? 3 : STACKTAP_MAX_SOURCES + 2);
		for (i = 0; i < nr; i++)
			put_source(fuzzer, i);
		message_nest_end(message, list);
	}
	if (!dice_roll(dice, 3))
		put_filter(fuzzer);
	if (!dice_roll(dice, 4))
		message_put_u32(message, STACKTAP_A_USER_FRAMES, dice_roll(dice, 4098));
	if (!dice_roll(dice, 4))
		message_put_u32(message, STACKTAP_A_WALK_LIMIT_NS, dice_roll(dice, 101000));
	if (!dice_roll(dice, 8))
		message_put(message, STACKTAP_A_TWO_PHASE, NULL, 0);
	if (!dice_roll(dice, 4))
		message_put_u32(message, STACKTAP_A_BUDGET_NS, dice_roll(dice, 3));
	if (!dice_roll(dice, 4))
		message_put_u32(message, STACKTAP_A_SLICE_BYTES, 8 * dice_roll(dice, 8193));
	if (!dice_roll(dice, 4))
		message_put_u32(message, STACKTAP_A_SLICE_EVERY, dice_roll(dice, 5));
	if (!dice_roll(dice, 4))
		message_put_u32(message, STACKTAP_A_SLICE_MAX_BYTES, 8 * dice_roll(dice, 8193));
}

/* A message that somebody might have meant. */
static void forge_sound(struct fuzzer *fuzzer)
{
	static const uint8_t dumps[] = {
		STACKTAP_CMD_GET_SESSION, STACKTAP_CMD_GET_CPU, STACKTAP_CMD_GET_TABLE,
	};
	struct message *message = &fuzzer->message;
	struct wire *wire = &fuzzer->client.wire;
	struct dice *dice = &fuzzer->dice;

	fuzzer->about_own = false;
	switch (dice_roll(dice, 8)) {
	case 0:
		message_begin(wire, message, STACKTAP_CMD_GET_MODULE, 0);
		return;
	case 1:
		message_begin(wire, message, dumps[dice_roll(dice, 3)], NLM_F_DUMP);
		if (dice_roll(dice, 2))
			message_put_u64(message, STACKTAP_A_SESSION_ID, roll_id(fuzzer));
		fuzzer->about_own = false;
		return;
	case 2:
		message_begin(wire, message, STACKTAP_CMD_GET_SESSION, 0);
		break;
	case 3:
	case 4:
	case 5:
		message_begin(wire, message, STACKTAP_CMD_SET_SESSION, 0);
		message_put_u64(message, STACKTAP_A_SESSION_ID, roll_id(fuzzer));
		put_settings(fuzzer);
		return;
	default:
		message_begin(wire, message, dice_roll(dice, 2) ? STACKTAP_CMD_START :
			      STACKTAP_CMD_STOP, 0);
		break;
	}
	message_put_u64(message, STACKTAP_A_SESSION_ID, roll_id(fuzzer));
}

static void put_noise(struct fuzzer *fuzzer, uint32_t bytes)
{
	struct message *message = &fuzzer->message;
	uint32_t i;

	for (i = 0; i < bytes && message->header.nlmsg_len < sizeof(message->bytes) - 8; i++)
		message->bytes[message->header.nlmsg_len++] =
			dice_roll(&fuzzer->dice, 3) ? dice_roll(&fuzzer->dice, 32) :
			dice_roll(&fuzzer->dice, 256);
}

/* A chain of nests, one in the other, as long as the message allows. */
static void put_depth(struct fuzzer *fuzzer)
{
	struct message *message = &fuzzer->message;
	unsigned int depth = 1 + dice_roll(&fuzzer->dice, 2000), at = message->header.nlmsg_len, i;
	struct nlattr attr;

	for (i = 0; i < depth && at + (depth - i) * NLA_HDRLEN < sizeof(message->bytes); i++) {
		attr.nla_len = (depth - i) * NLA_HDRLEN;
		attr.nla_type = (i % 2 ? STACKTAP_A_SOURCE : STACKTAP_A_SOURCES) | NLA_F_NESTED;
		memcpy(message->bytes + at + i * NLA_HDRLEN, &attr, sizeof(attr));
	}
	message->header.nlmsg_len += i * NLA_HDRLEN;
}

/* Some attribute of the message, or of what may be a nest in it. */
static struct nlattr *roll_attr(struct fuzzer *fuzzer)
{
	struct message *message = &fuzzer->message;
	uint32_t at = NLMSG_LENGTH(GENL_HDRLEN), end = message->header.nlmsg_len;
	struct nlattr *attr = NULL;

	while (at + NLA_HDRLEN <= end) {
		attr = (void *)(message->bytes + at);
		if (!dice_roll(&fuzzer->dice, 4))
			break;
		/* into it or past it */
		if (attr->nla_type & NLA_F_NESTED && dice_roll(&fuzzer->dice, 4))
			at += NLA_HDRLEN;
		else
			at += NLA_ALIGN(attr->nla_len < NLA_HDRLEN ? NLA_HDRLEN : attr->nla_len);
	}
	return attr;
}

/* One step away from sound. The header stays such that the kernel owes an answer. */
static void spoil(struct fuzzer *fuzzer)
{
	static const uint16_t lengths[] = { 0, 1, 3, 4, 5, 6, 8, 9, 12, 20, 4096, 65535 };
	struct message *message = &fuzzer->message;
	struct genlmsghdr *generic = NLMSG_DATA(&message->header);
	struct nlattr *attr = roll_attr(fuzzer);
	struct dice *dice = &fuzzer->dice;
	uint32_t size = message->header.nlmsg_len, nr;

	switch (dice_roll(dice, 12)) {
	case 0:
		message->header.nlmsg_len = NLMSG_HDRLEN + dice_roll(dice, size - NLMSG_HDRLEN);
		break;
	case 1:
		put_noise(fuzzer, dice_roll(dice, dice_roll(dice, 8) ? 64 : 60000));
		break;
	case 2:
		message_put_u64(message, dice_roll(dice, 65536), dice_roll(dice, UINT64_MAX));
		break;
	case 3:
		message_put_u32(message, dice_roll(dice, STACKTAP_A_MAX + 2),
				dice_roll(dice, UINT32_MAX));
		break;
	case 4:
		put_depth(fuzzer);
		break;
	case 5:
		generic->cmd = dice_roll(dice, 2) ? dice_roll(dice, 256) :
			       dice_roll(dice, STACKTAP_CMD_MAX + 2);
		break;
	case 6:
		message->header.nlmsg_flags |= dice_roll(dice, 65536);
		break;
	case 7:
		if (attr)
			attr->nla_len = lengths[dice_roll(dice, sizeof(lengths) / sizeof(*lengths))];
		break;
	case 8:
		if (attr)
			attr->nla_type ^= 1u << dice_roll(dice, 16);
		break;
	case 9:
		if (attr)
			attr->nla_type = dice_roll(dice, STACKTAP_A_MAX + 4);
		break;
	default:
		for (nr = 1 + dice_roll(dice, 4); nr; nr--)
			message->bytes[NLMSG_HDRLEN + dice_roll(dice, size - NLMSG_HDRLEN)] ^=
				1u << dice_roll(dice, 8);
		break;
	}
	fuzzer->about_own = false;
}

static void forge_junk(struct fuzzer *fuzzer)
{
	message_begin(&fuzzer->client.wire, &fuzzer->message,
		      dice_roll(&fuzzer->dice, STACKTAP_CMD_MAX + 2),
		      dice_roll(&fuzzer->dice, 4) ? 0 : NLM_F_DUMP);
	put_noise(fuzzer, dice_roll(&fuzzer->dice, dice_roll(&fuzzer->dice, 8) ? 256 : 60000));
	fuzzer->about_own = false;
}

/* Does a refusal of this message come from the family, rather than from generic netlink itself? */
static bool is_for_family(const struct message *message)
{
	const struct genlmsghdr *generic = NLMSG_DATA(&message->header);
	bool dump = (message->header.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;

	if (message->header.nlmsg_len < NLMSG_LENGTH(GENL_HDRLEN))
		return false;
	switch (generic->cmd) {
	case STACKTAP_CMD_GET_SESSION:
		return true;
	case STACKTAP_CMD_GET_CPU:
	case STACKTAP_CMD_GET_TABLE:
		return dump;
	case STACKTAP_CMD_GET_MODULE:
	case STACKTAP_CMD_SET_SESSION:
	case STACKTAP_CMD_START:
	case STACKTAP_CMD_STOP:
		return !dump;
	default:
		return false;
	}
}

static void judge(struct fuzzer *fuzzer, int err)
{
	const struct genlmsghdr *generic = NLMSG_DATA(&fuzzer->message.header);

	STATS(fuzzer).sent++;
	if (err == -EAGAIN) {
		STATS(fuzzer).unanswered++;
		SAY(fuzzer, "no answer to command %u of %u bytes", generic->cmd,
		    fuzzer->message.header.nlmsg_len);
		return;
	}
	if (!err) {
		STATS(fuzzer).taken++;
		STATS(fuzzer).starts += generic->cmd == STACKTAP_CMD_START;
		STATS(fuzzer).stops += generic->cmd == STACKTAP_CMD_STOP;
		return;
	}
	STATS(fuzzer).refused++;
	if (!fuzzer->client.wire.sentence[0] && is_for_family(&fuzzer->message) &&
	    err != -ENOMEM && err != -ENOBUFS) {
		STATS(fuzzer).mute++;
		SAY(fuzzer, "command %u refused without a word: %d", generic->cmd, err);
	}
	/* whoever is alive is found */
	if (fuzzer->about_own && err == -ESRCH) {
		STATS(fuzzer).wrong++;
		SAY(fuzzer, "command %u: our own session is not found", generic->cmd);
	}
}

/* Another one for each life: filters may still hold the one before. */
static void renew_cgroup(struct fuzzer *fuzzer)
{
	struct stat stat;
	char path[64];

	snprintf(path, sizeof(path), "/sys/fs/cgroup/fuzz-%u", fuzzer->number);
	if (STATS(fuzzer).lives) {
		close(fuzzer->cgroup_fd);
		rmdir(path);
	}
	mkdir(path, 0755);
	fuzzer->cgroup_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fuzzer->cgroup = fstat(fuzzer->cgroup_fd, &stat) ? 0 : stat.st_ino;
}

static void begin_life(struct fuzzer *fuzzer)
{
	static const struct source clock = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK, .rate_hz = 99,
	};
	const struct timeval patience = { .tv_sec = 100 };
	struct client *client = &fuzzer->client;

	renew_cgroup(fuzzer);
	STATS(fuzzer).lives++;
	if (client_open(client) || client_add_rings(client, RING_BYTES) ||
	    client_set_sources(client, &clock, 1)) {
		STATS(fuzzer).wrong++;
		SAY(fuzzer, "a session of our own: '%.80s'", client->wire.sentence);
		_exit(1);
	}
	setsockopt(client->wire.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	publish(fuzzer->arena, client->info.session_id);
}

static _Noreturn void fuzz(struct fuzzer *fuzzer, unsigned int messages)
{
	unsigned int i;

	begin_life(fuzzer);
	for (i = 0; i < messages && !STATS(fuzzer).unanswered; i++) {
		if (i % LIFE == LIFE - 1) {
			client_close(&fuzzer->client);
			begin_life(fuzzer);
		}
		switch (dice_roll(&fuzzer->dice, 8)) {
		case 0:
		case 1:
			forge_junk(fuzzer);
			break;
		case 2:
		case 3:
		case 4:
			forge_sound(fuzzer);
			spoil(fuzzer);
			break;
		default:
			forge_sound(fuzzer);
			break;
		}
		fuzzer->client.wire.sentence[0] = 0;
		judge(fuzzer, wire_call(&fuzzer->client.wire, &fuzzer->message, NULL, NULL));
	}
	client_close(&fuzzer->client);
	_exit(0);
}

/* Sessions that others know the ids of, and that end in the midst of whatever is done to them. */
static _Noreturn void keep_mortals(struct arena *arena, uint64_t seed)
{
	const struct source clock = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK, .rate_hz = 199,
	};
	struct client client;
	struct dice dice;

	dice_seed(&dice, seed);
	while (!atomic_load(&arena->over)) {
		if (client_open(&client))
			continue;
		publish(arena, client.info.session_id);
		client_add_rings(&client, STACKTAP_RING_MIN_BYTES << dice_roll(&dice, 3));
		client_set_sources(&client, &clock, 1);
		client_start(&client);
		usleep(dice_roll(&dice, 50000));
		client_drain(&client);
		client_close(&client);
		atomic_fetch_add(&arena->deaths, 1);
		usleep(dice_roll(&dice, 100000));
	}
	_exit(0);
}

static pid_t fork_child(void)
{
	pid_t pid = fork();

	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static unsigned int wait_all(const pid_t *pids, unsigned int nr)
{
	unsigned int i, bad = 0;
	int status;

	for (i = 0; i < nr; i++)
		bad += waitpid(pids[i], &status, 0) != pids[i] || status;
	return bad;
}

static void report(const struct arena *arena, unsigned int messages)
{
	unsigned int sent = 0, taken = 0, refused = 0, unanswered = 0, mute = 0, wrong = 0, i;
	unsigned int starts = 0, stops = 0, lives = 0;

	for (i = 0; i < FUZZERS; i++) {
		sent += arena->fuzzers[i].sent;
		taken += arena->fuzzers[i].taken;
		refused += arena->fuzzers[i].refused;
		unanswered += arena->fuzzers[i].unanswered;
		mute += arena->fuzzers[i].mute;
		wrong += arena->fuzzers[i].wrong;
		starts += arena->fuzzers[i].starts;
		stops += arena->fuzzers[i].stops;
		lives += arena->fuzzers[i].lives;
		if (arena->fuzzers[i].last[0])
			tap_note("%s", arena->fuzzers[i].last);
	}
	tap(sent >= messages && !unanswered, "%u messages, %u taken, %u refused, %u without answer",
	    sent, taken, refused, unanswered);
	tap(taken > messages / 20 && refused > messages / 20, "some of both kinds");
	tap(starts + stops >= messages / 100 && starts && stops, "%u STARTs and %u STOPs did it",
	    starts, stops);
	tap(!mute, "each refusal has its sentence, but for %u", mute);
	tap(!wrong && lives > FUZZERS, "%u sessions served as long as they lived, but for %u", lives,
	    wrong);
	tap(arena->deaths > 0, "%u others died meanwhile", arena->deaths);
}

void case_netlink(void)
{
	unsigned long messages = module_setting("NETLINK_MESSAGES", MESSAGES);
	unsigned long seed = module_setting("FUZZ_SEED", 1);
	struct arena *arena = mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t fuzzers[FUZZERS], mortals[MORTALS];
	static struct fuzzer fuzzer;
	struct wire deaf;
	unsigned int i;

	tap_note("FUZZ_SEED=%lu NETLINK_MESSAGES=%lu", seed, messages);
	/* one that wants to hear of everything and never listens */
	if (!tap(!wire_open(&deaf) && !setsockopt(deaf.fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP,
						  &deaf.group, sizeof(deaf.group)), "the family"))
		return;
	for (i = 0; i < MORTALS; i++) {
		mortals[i] = fork_child();
		if (!mortals[i])
			keep_mortals(arena, seed + 100 + i);
	}
	for (i = 0; i < FUZZERS; i++) {
		fuzzers[i] = fork_child();
		if (fuzzers[i])
			continue;
		fuzzer.number = i;
		fuzzer.arena = arena;
		dice_seed(&fuzzer.dice, seed + i);
		fuzz(&fuzzer, (messages + FUZZERS - 1) / FUZZERS);
	}
	tap(!wait_all(fuzzers, FUZZERS), "those who sent it lived to tell");
	atomic_store(&arena->over, true);
	tap(!wait_all(mortals, MORTALS), "and so did those whose sessions died");
	report(arena, messages);
	wire_close(&deaf);
	tap(module_is_empty(), "the family answers, and the module holds nothing any more");
	munmap(arena, sizeof(*arena));
}
