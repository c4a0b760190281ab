// SPDX-License-Identifier: Apache-2.0
/* Filters by what a task is: its thread, user, name and cgroup. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "tap.h"

#define ROOT "/sys/fs/cgroup/"
#define V1 "/tmp/filters-v1"

enum {
	PLAIN,		/* user 0, a long name, no cgroup */
	SERVANT,	/* acts for user 1234, but belongs to root */
	RENAMED,	/* a short name over a longer one */
	IN_A,		/* in cgroup filters-a */
	INSIDE_A,	/* in filters-a/inner */
	IN_B,
	PROGRAMS,
	ENOUGH = 20,	/* samples */
	USER = 1234,
	CROWD = 10000,
};

static const struct source clock_997 = {
	.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
	.rate_hz = 997,
};

struct shared {
	_Atomic uint32_t second_tid;	/* of PLAIN's second thread, which burns as well */
	_Atomic unsigned int ready;
};

struct seen {
	pid_t pids[PROGRAMS];
	uint64_t of[PROGRAMS], others, second_thread;
	uint32_t second_tid;
};

static void visit(const struct sample_view *view, void *arg)
{
	struct seen *seen = arg;
	unsigned int i;

	seen->second_thread += view->sample->tid == seen->second_tid;
	for (i = 0; i < PROGRAMS; i++)
		if (view->sample->tgid == (uint32_t)seen->pids[i]) {
			seen->of[i]++;
			return;
		}
	seen->others++;
}

/* A task that was waited for may be in it for a moment longer. */
static bool remove_cgroup(const char *path)
{
	unsigned int i;

	for (i = 0; i < 600 && rmdir(path); i++) {
		if (errno != EBUSY)
			return false;
		usleep(50000);
	}
	return i < 600;
}

static void *burn(void *arg)
{
	struct shared *shared = arg;

	shared->second_tid = (uint32_t)syscall(SYS_gettid);
	for (;;)
		load_burn(1000);
	return NULL;
}

static void become(unsigned int program, struct shared *shared)
{
	pthread_t thread;

	prctl(PR_SET_NAME, "a-name-of-15-by");
	switch (program) {
	case PLAIN:
		if (pthread_create(&thread, NULL, burn, shared))
			_exit(1);
		while (!shared->second_tid)
			usleep(1000);
		break;
	case SERVANT:
		/* the real user stays 0; the call of the C library, as this is one thread */
		if (seteuid(USER))
			_exit(1);
		break;
	case RENAMED:
		prctl(PR_SET_NAME, "short");
		break;
	case IN_A:
		if (!load_write(ROOT "filters-a/cgroup.procs", "0"))
			_exit(1);
		break;
	case INSIDE_A:
		if (!load_write(ROOT "filters-a/inner/cgroup.procs", "0"))
			_exit(1);
		break;
	case IN_B:
		if (!load_write(ROOT "filters-b/cgroup.procs", "0"))
			_exit(1);
		break;
	}
	shared->ready++;
}

static pid_t begin(unsigned int program, struct shared *shared)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	become(program, shared);
	for (;;)
		load_burn(1000);
}

/* A filter of one or two kinds, as attributes. */
struct set {
	uint16_t type;
	const void *data;
	size_t size;
};

static int set_filter(struct client *client, const struct set *sets, unsigned int nr)
{
	struct message message;
	unsigned int i;
	size_t nest;

	client_begin(client, &message, STACKTAP_CMD_SET_SESSION);
	nest = message_nest_begin(&message, STACKTAP_A_FILTER);
	for (i = 0; i < nr; i++)
		message_put(&message, sets[i].type, sets[i].data, sets[i].size);
	message_nest_end(&message, nest);
	return client_send(client, &message);
}

static int set_one(struct client *client, uint16_t type, const void *data, size_t size)
{
	const struct set set = { type, data, size };

	return set_filter(client, &set, 1);
}

/* From here on samples of @wanted, a bitmap, come and no others. */
static void expect(struct client *client, struct seen *seen, unsigned int wanted, const char *what)
{
	unsigned int i, round, few;
	uint64_t strangers;

	client_drain(client);
	memset(seen->of, 0, sizeof(seen->of));
	seen->others = seen->second_thread = 0;
	for (round = 0; round < 600; round++) {
		usleep(50000);
		client_drain(client);
		for (i = few = 0; i < PROGRAMS; i++)
			few += (wanted >> i & 1) && seen->of[i] < ENOUGH;
		/* nothing is what is waited for, too */
		if (wanted ? !few : round == 20)
			break;
	}
	strangers = seen->others;
	for (i = 0; i < PROGRAMS; i++)
		strangers += wanted >> i & 1 ? 0 : seen->of[i];
	tap(!few && !strangers, "%s: %u of the programs too rarely, %" PRIu64 " samples of others",
	    what, few, strangers);
}

static void refused(struct client *client, const struct set *set, int err, const char *sentence)
{
	int got = set_filter(client, set, 1);

	tap(got == err && strstr(client->wire.sentence, sentence), "refused: %d, '%s'", got,
	    client->wire.sentence);
}

static void check_threads(struct client *client, struct seen *seen)
{
	uint32_t tids[CROWD];
	unsigned int i;

	tap(!set_one(client, STACKTAP_FILTER_TIDS, &seen->second_tid, 4), "a thread");
	expect(client, seen, 1 << PLAIN, "its process alone");
	tap(seen->second_thread == seen->of[PLAIN], "and of that this thread alone: %" PRIu64
	    " of %" PRIu64, seen->second_thread, seen->of[PLAIN]);
	/* whose id is the process', too */
	tap(!set_one(client, STACKTAP_FILTER_TIDS, &seen->pids[PLAIN], 4), "the main thread");
	expect(client, seen, 1 << PLAIN, "its process again");
	tap(!seen->second_thread, "and of that not the other thread: %" PRIu64 " of %" PRIu64,
	    seen->second_thread, seen->of[PLAIN]);
	for (i = 0; i < CROWD; i++)
		tids[i] = 1000000 + 64 * i;
	tids[CROWD / 2] = seen->second_tid;
	tids[CROWD / 3] = (uint32_t)seen->pids[IN_B];
	tap(!set_one(client, STACKTAP_FILTER_TIDS, tids, sizeof(tids)), "%u threads", CROWD);
	expect(client, seen, 1 << PLAIN | 1 << IN_B, "two of them are there");
	tids[1] = 0;
	refused(client, &(struct set){ STACKTAP_FILTER_TIDS, tids, sizeof(tids) }, -EINVAL, "tid set");
}

static void check_users(struct client *client, struct seen *seen)
{
	const uint32_t user = USER, nobody = 4321, none = UINT32_MAX, zero = 0;
	uint32_t pids[PROGRAMS];
	const struct set both[] = {
		{ STACKTAP_FILTER_TGIDS, pids, sizeof(pids) },
		{ STACKTAP_FILTER_UIDS, &zero, sizeof(zero) },
	};
	unsigned int i;

	for (i = 0; i < PROGRAMS; i++)
		pids[i] = (uint32_t)seen->pids[i];
	tap(!set_one(client, STACKTAP_FILTER_UIDS, &user, 4), "a user");
	expect(client, seen, 1 << SERVANT, "who acts for the user");
	tap(!set_filter(client, both, 2), "root, of our programs");
	expect(client, seen, ((1 << PROGRAMS) - 1) & ~(1 << SERVANT), "all but that one");
	tap(!set_one(client, STACKTAP_FILTER_UIDS, &nobody, 4), "a user of nothing");
	expect(client, seen, 0, "nothing");
	refused(client, &(struct set){ STACKTAP_FILTER_UIDS, &none, 4 }, -EINVAL, "uid set");
}

static void check_names(struct client *client, struct seen *seen)
{
	char names[2][STACKTAP_COMM_LEN] = { "short", "a-name-of-15-by" };
	char bad[STACKTAP_COMM_LEN] = "0123456789abcde";
	uint32_t user = USER;
	const struct set both[] = {
		{ STACKTAP_FILTER_COMMS, names, sizeof(names) },
		{ STACKTAP_FILTER_UIDS, &user, sizeof(user) },
	};

	tap(!set_one(client, STACKTAP_FILTER_COMMS, names, sizeof(names[0])), "a name");
	expect(client, seen, 1 << RENAMED, "who has it");
	tap(!set_one(client, STACKTAP_FILTER_COMMS, names, sizeof(names)), "two names");
	expect(client, seen, (1 << PROGRAMS) - 1, "all of our programs");
	tap(!set_filter(client, both, 2), "the same and a user");
	expect(client, seen, 1 << SERVANT, "who has one of both");
	strcpy(names[0], "shor");
	tap(!set_one(client, STACKTAP_FILTER_COMMS, names, sizeof(names[0])), "the beginning of a name");
	expect(client, seen, 0, "nothing");
	bad[15] = 'f';
	refused(client, &(struct set){ STACKTAP_FILTER_COMMS, bad, sizeof(bad) }, -EINVAL, "15 bytes");
	refused(client, &(struct set){ STACKTAP_FILTER_COMMS, "abc", 4 }, -EINVAL, "ragged");
}

static uint64_t reported[STACKTAP_MAX_CGROUPS];
static size_t nr_reported;

static void visit_session(const void *attrs, size_t size, void *arg)
{
	const void *session, *filter, *ids;

	(void)arg;
	session = attr_find(attrs, size, STACKTAP_A_SESSION, &size);
	filter = session ? attr_find(session, size, STACKTAP_A_FILTER, &size) : NULL;
	ids = filter ? attr_find(filter, size, STACKTAP_FILTER_CGROUPS, &size) : NULL;
	nr_reported = 0;
	if (!ids || size > sizeof(reported))
		return;
	memcpy(reported, ids, size);
	nr_reported = size / sizeof(reported[0]);
}

static void ask_session(struct client *client)
{
	struct message message;

	client_begin(client, &message, STACKTAP_CMD_GET_SESSION);
	wire_call(&client->wire, &message, visit_session, NULL);
}

static void check_refused_fds(struct client *client)
{
	int procs = open(ROOT "filters-a/cgroup.procs", O_RDONLY | O_CLOEXEC);
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC), closed = 1000;
	int v1 = -1;

	refused(client, &(struct set){ STACKTAP_FILTER_CGROUP_FDS, &closed, 4 }, -EBADF, "not open");
	refused(client, &(struct set){ STACKTAP_FILTER_CGROUP_FDS, &file, 4 }, -EBADF, "v2 directory");
	refused(client, &(struct set){ STACKTAP_FILTER_CGROUP_FDS, &client->fd, 4 }, -EBADF, "v2");
	refused(client, &(struct set){ STACKTAP_FILTER_CGROUP_FDS, &procs, 4 }, -ENOTDIR, "file");
	close(procs);
	close(file);
	mkdir(V1, 0700);
	if (!mount("cgroup", V1, "cgroup", 0, "none,name=filters"))
		v1 = open(V1, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (v1 < 0)
		tap_note("this kernel has no cgroup v1");
	else
		refused(client, &(struct set){ STACKTAP_FILTER_CGROUP_FDS, &v1, 4 }, -EOPNOTSUPP,
			"cgroup v1");
	close(v1);
	umount(V1);
	rmdir(V1);
}

static void check_cgroups(struct client *client, struct seen *seen)
{
	const int a = open(ROOT "filters-a", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int b = open(ROOT "filters-b", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const int inner = open(ROOT "filters-a/inner", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int both[] = { b, inner };
	uint64_t ids[2];
	struct stat stat;
	struct set kept[] = {
		{ STACKTAP_FILTER_CGROUPS, ids, sizeof(ids) },
		{ STACKTAP_FILTER_TIDS, &seen->pids[IN_B], sizeof(uint32_t) },
	};

	tap(!set_one(client, STACKTAP_FILTER_CGROUP_FDS, &a, 4), "a cgroup");
	expect(client, seen, 1 << IN_A | 1 << INSIDE_A, "it and what is below it");
	ask_session(client);
	tap(!fstat(a, &stat) && nr_reported == 1 && reported[0] == stat.st_ino,
	    "GET_SESSION tells its id");
	tap(!set_one(client, STACKTAP_FILTER_CGROUP_FDS, both, sizeof(both)), "two cgroups");
	expect(client, seen, 1 << IN_B | 1 << INSIDE_A, "these two");
	ask_session(client);
	memcpy(ids, reported, sizeof(ids));
	tap(nr_reported == 2 && !set_filter(client, kept, 2), "kept by their ids, and a thread");
	expect(client, seen, 1 << IN_B, "who is both");
	ids[1] = ~ids[1];
	refused(client, kept, -ENOENT, "no cgroup of that id");
	check_refused_fds(client);
	expect(client, seen, 1 << IN_B, "after refusals it is as before");

	/* removed while it is filtered by, and while its descriptor is open */
	load_kill(seen->pids[INSIDE_A]);
	tap(!set_one(client, STACKTAP_FILTER_CGROUP_FDS, &inner, 4), "the inner cgroup alone");
	tap(remove_cgroup(ROOT "filters-a/inner"), "is removed");
	expect(client, seen, 0, "nothing");
	ask_session(client);
	ids[0] = reported[0];
	tap(nr_reported == 1 && !set_one(client, STACKTAP_FILTER_CGROUPS, ids, 8), "it can be kept");
	refused(client, &(struct set){ STACKTAP_FILTER_CGROUP_FDS, &inner, 4 }, -ENOENT, "removed");
	tap(!set_one(client, STACKTAP_FILTER_CGROUP_FDS, &a, 4), "another instead");
	expect(client, seen, 1 << IN_A, "that one");
	close(a);
	close(b);
	close(inner);
}

/* Multiples of the inverse of GOLDEN_RATIO_32, which a set is laid out by first: a row of neighbours. */
static void check_layout(struct client *client, struct seen *seen)
{
	enum { NR = STACKTAP_MAX_TGIDS - 1 };
	uint32_t *ids = calloc(NR, sizeof(*ids));
	unsigned int i;

	/* the bit: no process has such an id */
	for (i = 0; i < NR; i++)
		ids[i] = i * 0xebb34377u | 1u << 31;
	ids[NR - 1] = (uint32_t)seen->pids[IN_A];
	tap(!set_one(client, STACKTAP_FILTER_TGIDS, ids, NR * sizeof(*ids)),
	    "%u numbers that hash to one place", NR);
	expect(client, seen, 1 << IN_A, "the last of them is there");
	free(ids);
}

static void check_limits(struct client *client)
{
	uint32_t *ids = calloc(STACKTAP_MAX_TGIDS, sizeof(*ids));
	const struct set sets[] = {
		{ STACKTAP_FILTER_TGIDS, ids, (STACKTAP_MAX_TGIDS - 1) * sizeof(*ids) },
		{ STACKTAP_FILTER_TIDS, ids, 2 * sizeof(*ids) },
	};
	unsigned int i;

	/* as close together, and as far apart, as can be */
	for (i = 0; i < STACKTAP_MAX_TGIDS; i++)
		ids[i] = i & 1 ? i : i << 18 | i;
	ids[0] = 1u << 31;
	tap(set_filter(client, sets, 2) == -E2BIG && strstr(client->wire.sentence, "12288"),
	    "more than 12288 numbers are refused: '%s'", client->wire.sentence);
	tap(!set_filter(client, sets, 1), "12287 of them are not");
	free(ids);
}

void case_task_filters(void)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct seen seen = { 0 };
	struct client client;
	unsigned int i;

	if (shared == MAP_FAILED || !tap(!client_open(&client), "open") ||
	    !tap(!client_add_rings(&client, 1 << 20), "rings"))
		return;
	mkdir(ROOT "filters-a", 0755);
	mkdir(ROOT "filters-a/inner", 0755);
	mkdir(ROOT "filters-b", 0755);
	for (i = 0; i < PROGRAMS; i++)
		seen.pids[i] = begin(i, shared);
	for (i = 0; i < 600 && shared->ready < PROGRAMS; i++)
		usleep(100000);
	tap(shared->ready == PROGRAMS, "%u programs", shared->ready);
	seen.second_tid = shared->second_tid;
	client.visit = visit;
	client.visit_arg = &seen;
	client_set_sources(&client, &clock_997, 1);
	tap(!client_start(&client), "START");
	check_threads(&client, &seen);
	check_users(&client, &seen);
	check_names(&client, &seen);
	check_cgroups(&client, &seen);
	check_limits(&client);
	check_layout(&client, &seen);
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	tap(client_balanced(&client) && client_count(&client, 0, STACKTAP_CNT_FILTERED),
	    "the ledger balances");
	for (i = 0; i < PROGRAMS; i++)
		if (i != INSIDE_A)
			load_kill(seen.pids[i]);
	client_close(&client);
	tap(remove_cgroup(ROOT "filters-a") && remove_cgroup(ROOT "filters-b"),
	    "the cgroups can be removed");
}
