// SPDX-License-Identifier: Apache-2.0
/* Calls that meet the end of what they are about, and STARTs while CPUs come and go. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "module.h"
#include "tap.h"

enum {
	CLOSES = 60,
	TOGGLES = 12,
	RING_BYTES = 65536,
};

/* As many as a session may have: a CPU that leaves has to meet the creation of one of its counters. */
static const struct source sources[STACKTAP_MAX_SOURCES] = {
	{ .name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
	  .rate_hz = 499 },
	{ .name = "page-faults", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS,
	  .period = 7 },
	{ .name = "context-switches", .type = PERF_TYPE_SOFTWARE,
	  .config = PERF_COUNT_SW_CONTEXT_SWITCHES, .period = 3 },
	{ .name = "cpu-migrations", .type = PERF_TYPE_SOFTWARE,
	  .config = PERF_COUNT_SW_CPU_MIGRATIONS, .period = 5 },
	{ .name = "minor-faults", .type = PERF_TYPE_SOFTWARE,
	  .config = PERF_COUNT_SW_PAGE_FAULTS_MIN, .period = 11 },
	{ .name = "major-faults", .type = PERF_TYPE_SOFTWARE,
	  .config = PERF_COUNT_SW_PAGE_FAULTS_MAJ, .period = 1 },
	{ .name = "alignment-faults", .type = PERF_TYPE_SOFTWARE,
	  .config = PERF_COUNT_SW_ALIGNMENT_FAULTS, .period = 1 },
	{ .name = "emulation-faults", .type = PERF_TYPE_SOFTWARE,
	  .config = PERF_COUNT_SW_EMULATION_FAULTS, .period = 1 },
};

struct arena {
	_Atomic uint64_t id;
	atomic_uint served, missed, wrong;
};

/* All that netlink can do to a session that ends at any moment. */
static _Noreturn void hammer(struct arena *arena, unsigned int number)
{
	static const uint8_t commands[] = {
		STACKTAP_CMD_START, STACKTAP_CMD_GET_SESSION, STACKTAP_CMD_STOP,
		STACKTAP_CMD_SET_SESSION,
	};
	struct message message;
	struct wire wire;
	unsigned int i;
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (wire_open(&wire))
		_exit(1);
	for (i = number;; i++) {
		message_begin(&wire, &message, commands[i % 4], 0);
		message_put_u64(&message, STACKTAP_A_SESSION_ID, atomic_load(&arena->id));
		if (i % 4 == 3)
			message_nest_end(&message, message_nest_begin(&message, STACKTAP_A_FILTER));
		err = wire_call(&wire, &message, NULL, NULL);
		if (!err)
			atomic_fetch_add(&arena->served, 1);
		else if (err == -ESRCH)
			atomic_fetch_add(&arena->missed, 1);
		/* EINVAL: it had no ring or source yet */
		else if (err != -EALREADY && err != -EINVAL)
			atomic_fetch_add(&arena->wrong, 1);
	}
}

/* A session that runs, known to those who hammer. */
static int arena_enter(struct arena *arena, struct client *client)
{
	int err = client_open(client);

	if (err)
		return err;
	atomic_store(&arena->id, client->info.session_id);
	client_add_rings(client, RING_BYTES);
	client_set_sources(client, sources, 3);
	client_start(client);
	load_fault(20);
	return 0;
}

static bool end_by_close(struct arena *arena)
{
	struct client client;

	if (arena_enter(arena, &client))
		return false;
	client_close(&client);
	return true;
}

/* Is the session of @owner, who has executed sleep(1), gone while it sleeps? */
static bool ended_before(pid_t owner)
{
	unsigned int i;

	/* a message that is under way holds it no longer than that takes */
	for (i = 0; i < 60000 && module_sessions(); i++)
		usleep(1000);
	return i < 60000 && waitpid(owner, NULL, WNOHANG) == 0;
}

static bool end_by_exec(struct arena *arena)
{
	struct client client;
	int pipes[2], got;
	bool good;
	pid_t pid;
	char byte;

	if (pipe2(pipes, O_CLOEXEC))
		return false;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!arena_enter(arena, &client))
			execl("/bin/sleep", "sleep", "1000", NULL);
		/* no end of the pipe but a word */
		_exit(write(pipes[1], "", 1) < 0);
	}
	close(pipes[1]);
	got = read(pipes[0], &byte, 1);
	close(pipes[0]);
	good = got == 0 && ended_before(pid);
	load_kill(pid);
	return good;
}

static void check_netlink(const char *what, bool (*end)(struct arena *arena))
{
	struct arena *arena = mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int i, ended = 0;
	pid_t hammers[2];

	atomic_store(&arena->id, 1);
	for (i = 0; i < 2; i++) {
		hammers[i] = fork();
		if (!hammers[i])
			hammer(arena, i);
	}
	for (i = 0; i < CLOSES || (i < 50 * CLOSES && (!arena->served || !arena->missed)); i++)
		ended += end(arena);
	load_kill(hammers[0]);
	load_kill(hammers[1]);
	tap(ended == i && arena->served && arena->missed && !arena->wrong,
	    "netlink beside %u of %u sessions that end by %s: %u served, %u came too late, %u otherwise",
	    ended, i, what, arena->served, arena->missed, arena->wrong);
	tap(module_is_empty(), "nothing is left");
	munmap(arena, sizeof(*arena));
}

struct shared_fd {
	atomic_int fd;
	atomic_bool over;
	atomic_uint served, missed;
};

static void *call_forever(void *arg)
{
	struct shared_fd *shared = arg;

	while (!atomic_load(&shared->over)) {
		struct stacktap_ring_create create = {
			.size = sizeof(create), .data_bytes = RING_BYTES,
		};
		struct stacktap_info info = { .size = sizeof(info) };
		struct stacktap_flush flush = { .size = sizeof(flush) };
		int fd = atomic_load(&shared->fd);
		struct pollfd pollfd = { .fd = fd, .events = POLLIN };
		void *p;

		if (ioctl(fd, STACKTAP_IOC_INFO, &info))
			atomic_fetch_add(&shared->missed, 1);
		else
			atomic_fetch_add(&shared->served, 1);
		ioctl(fd, STACKTAP_IOC_RING_CREATE, &create);
		poll(&pollfd, 1, 0);
		p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
		ioctl(fd, STACKTAP_IOC_FLUSH, &flush);
		if (p != MAP_FAILED)
			munmap(p, 4096);
	}
	return NULL;
}

/* The fd is closed by one thread while another is in the middle of a call on it. */
static void check_ioctls(void)
{
	struct shared_fd shared = { .fd = -1 };
	pthread_t threads[2];
	unsigned int i;
	int fd;

	for (i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, call_forever, &shared))
			return;
	for (i = 0; i < CLOSES || (i < 50 * CLOSES && (!shared.served || !shared.missed)); i++) {
		fd = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC);
		atomic_store(&shared.fd, fd);
		usleep(500 * (i % 8));
		close(fd);
	}
	atomic_store(&shared.over, true);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	tap(shared.served && shared.missed, "calls on an fd that others close: %u served, %u not",
	    shared.served, shared.missed);
	tap(module_is_empty(), "nothing is left");
}

/* Samples of CPU 1 that come from now on. */
static bool cpu_1_samples(struct client *client)
{
	uint64_t before;
	unsigned int i;

	client_drain(client);
	before = client->ledgers[1][0].samples;
	for (i = 0; i < 600 && client->ledgers[1][0].samples < before + 20; i++) {
		usleep(50000);
		client_drain(client);
	}
	return client->ledgers[1][0].samples >= before + 20;
}

static bool open_sources(struct client *client)
{
	return !client_open(client) && !client_add_rings(client, 1 << 20) &&
	       !client_set_sources(client, sources, STACKTAP_MAX_SOURCES);
}

static void check_hotplug(void)
{
	unsigned int i, started = 0, wrong = 0;
	struct client client, other;
	pid_t toggler, user;
	int status = -1;

	if (!tap(open_sources(&client), "a session"))
		return;
	/* while there are counters like ours, perf makes more of them without waiting for hotplug's end */
	if (!tap(open_sources(&other) && !client_start(&other), "another one that goes on"))
		return;
	user = load_fork(1, false);
	toggler = fork();
	if (!toggler) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (i = 0; i < TOGGLES; i++)
			wrong += !load_set_online(1, false) || !load_set_online(1, true);
		_exit(wrong != 0);
	}
	while (waitpid(toggler, &status, WNOHANG) == 0) {
		wrong += !!client_start(&client);
		load_fault(50);
		wrong += !!client_stop(&client);
		client_drain(&client);
		client_drain(&other);
		started++;
	}
	client_close(&other);
	tap(!status && started && !wrong, "%u times START and STOP while CPU 1 goes and comes, %u "
	    "refused", started, wrong);
	load_kill(user);
	user = load_fork(1, false);
	tap(!client_start(&client) && cpu_1_samples(&client), "CPU 1 is sampled afterwards");
	load_kill(user);
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	client_flush(&client);
	client_drain(&client);
	tap(client_balanced(&client), "the ledgers balance");
	client_close(&client);
	tap(module_is_empty(), "nothing is left");
}

/* A session that ends by STOP, or by its owner's going, wherever its CPUs are by then. */
static bool come_and_go(bool stops, uint64_t *samples)
{
	struct client client;
	unsigned int cpu, i, rings = 0;
	bool good;

	if (client_open(&client))
		return false;
	/* those that are away get none */
	for (cpu = 0; cpu < CLIENT_MAX_CPUS; cpu++)
		rings += !client_add_ring(&client, cpu, RING_BYTES);
	good = rings && !client_set_sources(&client, sources, 3) && !client_start(&client);
	load_fault(50);
	if (good && stops) {
		good = !client_stop(&client);
		client_drain(&client);
		client_flush(&client);
		client_drain(&client);
		good &= client_balanced(&client);
		for (i = 0; i < 3; i++)
			*samples += client_samples(&client, i);
	}
	client_close(&client);
	return good;
}

/* One after the other until standard input ends, for tests/vm/cases/hotplug.py. */
void case_comers(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned int came = 0, good = 0;
	uint64_t samples = 0;

	while (!poll(&input, 1, 0)) {
		came++;
		good += come_and_go(came & 1, &samples);
	}
	tap(came && good == came, "of %u sessions %u came and went well", came, good);
	tap(samples > 0, "%" PRIu64 " samples", samples);
}

void case_races(void)
{
	check_netlink("a close", end_by_close);
	check_netlink("their owner's exec", end_by_exec);
	check_ioctls();
	check_hotplug();
}
