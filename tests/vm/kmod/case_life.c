// SPDX-License-Identifier: Apache-2.0
/* Life and death: hotplug, killed owners, hostile neighbours, refusals. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "module.h"
#include "tap.h"

static const struct source clock_and_faults[] = {
	{ .name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
	  .rate_hz = 997 },
	{ .name = "cycles", .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
	  .rate_hz = 499, .nominal_hz = 1000000000 },
	{ .name = "page-faults", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS,
	  .period = 3 },
	{ .name = "context-switches", .type = PERF_TYPE_SOFTWARE,
	  .config = PERF_COUNT_SW_CONTEXT_SWITCHES, .period = 1 },
};

void case_hotplug(void)
{
	struct client client;
	uint64_t faults, samples;
	struct pollfd pollfd;
	bool good = true;
	pid_t user;
	int i;

	if (!tap(!client_open(&client), "open") ||
	    !tap(!client_add_ring(&client, 0, 1 << 20), "a ring for CPU 0"))
		return;
	pollfd = (struct pollfd) { .fd = client.fd, .events = POLLPRI };
	tap(poll(&pollfd, 1, 0) == 1 && pollfd.revents & POLLPRI, "POLLPRI: CPU 1 lacks one");
	tap(!client_add_ring(&client, 1, 1 << 20), "a ring for CPU 1");
	tap(!poll(&pollfd, 1, 0), "no POLLPRI any more");
	tap(client_add_ring(&client, 1, 1 << 20) == -EEXIST, "another for CPU 1: EEXIST");
	tap(client_add_ring(&client, 7, 1 << 20) == -ENODEV, "for a CPU that is not there: ENODEV");
	tap(!client_set_sources(&client, clock_and_faults, 4), "four sources");
	user = load_fork(0, false);
	tap(!client_start(&client), "START");
	for (i = 0; i < 12; i++) {
		good &= load_set_online(1, false);
		load_fault(300);
		client_drain(&client);
		good &= load_set_online(1, true);
		load_fault(300);
		usleep(50000);
		client_drain(&client);
	}
	tap(good, "CPU 1 off and on, %d times", i);
	load_kill(user);
	user = load_fork(1, false);
	samples = client.ledgers[1][0].samples;
	faults = client_samples(&client, 2);
	for (i = 0; i < 600; i++) {
		usleep(50000);
		load_fault(300);
		client_drain(&client);
		if (i >= 10 && client.ledgers[1][0].samples > samples + 50 &&
		    client_samples(&client, 2) > faults && client_samples(&client, 3) > 10)
			break;
	}
	tap(client.ledgers[1][0].samples > samples + 10, "CPU 1 is sampled afterwards");
	tap(client_samples(&client, 2) > faults, "page faults: %" PRIu64,
	    client_samples(&client, 2));
	tap(client_samples(&client, 3) > 10, "context switches: %" PRIu64,
	    client_samples(&client, 3));
	load_set_online(1, false);
	tap(client_cpu_state(&client, 1) == STACKTAP_CPU_OFFLINE, "CPU 1 is told as offline");
	tap(!client_stop(&client), "STOP while CPU 1 is offline");
	client_drain(&client);
	tap(client_balanced(&client), "the ledgers of all four sources balance");
	load_set_online(1, true);
	tap(!client_start(&client), "START again");
	usleep(100000);
	load_set_online(1, false);
	load_kill(user);
	client_close(&client);
	tap(load_set_online(1, true), "closed while CPU 1 was offline");
}

void case_killed(void)
{
	struct client client;
	int i, ready[2];
	pid_t owner;
	char byte;

	tap(!module_sessions(), "no sessions");
	for (i = 0; i < 5; i++) {
		if (pipe(ready))
			return;
		owner = fork();
		if (!owner) {
			if (client_open(&client) || client_add_rings(&client, 1 << 20) ||
			    client_set_sources(&client, clock_and_faults, 4) ||
			    client_start(&client) || write(ready[1], "x", 1) != 1)
				_exit(1);
			load_burn(100000);
		}
		close(ready[1]);
		if (read(ready[0], &byte, 1) != 1)
			tap(false, "the owner runs");
		close(ready[0]);
		usleep(100000);
		if (!i)
			tap(module_sessions() == 1, "one session");
		load_kill(owner);
	}
	usleep(100000);
	tap(!module_sessions(), "no session outlives its killed owner");

	for (i = 0; i < STACKTAP_MAX_SESSIONS; i++)
		if (open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC) < 0)
			break;
	tap(i == STACKTAP_MAX_SESSIONS && open(STACKTAP_DEVICE, O_RDWR) < 0 && errno == EMFILE,
	    "session %d: EMFILE", i + 1);
}

/* A reader that writes nonsense to its consumer page. */
void case_scribble(void)
{
	struct client client;
	unsigned int seed = 1;
	uint64_t bad;
	int i;

	if (!tap(!client_open(&client), "open") ||
	    !tap(!client_add_rings(&client, STACKTAP_RING_MIN_BYTES), "rings"))
		return;
	client_set_sources(&client, clock_and_faults, 4);
	tap(!client_start(&client), "START");
	for (i = 0; i < 200000; i++) {
		uint64_t tail = (uint64_t)rand_r(&seed) << (rand_r(&seed) % 40);

		/* in turn wild, just beyond head, and unaligned */
		if (i % 3 == 1)
			tail = client.rings[0].producer->head + 8;
		else if (i % 3 == 2)
			tail = client.rings[0].producer->head - rand_r(&seed) % 4096 - 1;
		__atomic_store_n(&client.rings[i % 2].consumer->tail, tail, __ATOMIC_RELEASE);
		if (!(i % 1000))
			load_fault(20);
	}
	__atomic_store_n(&client.rings[0].consumer->tail, ~0ull, __ATOMIC_RELEASE);
	__atomic_store_n(&client.rings[1].consumer->tail, ~0ull, __ATOMIC_RELEASE);
	for (i = 0, bad = 0; i < 600 && bad <= 100; i++) {
		usleep(100000);
		bad = client_unrecorded(&client);
	}
	tap(!client_stop(&client), "STOP");
	tap(bad > 50, "%" PRIu64 " refused", bad);
	/* a reader that comes to its senses starts over at head */
	for (i = 0; i < 2; i++) {
		client.rings[i].tail = client.rings[i].producer->head;
		client.rings[i].consumer->tail = client.rings[i].tail;
	}
	tap(!client_flush(&client), "FLUSH");
	client_drain(&client);
	tap(!client.malformed && client_lost(&client, STACKTAP_LOST_BAD_TAIL) > 10,
	    "%" PRIu64 " told as bad tail", client_lost(&client, STACKTAP_LOST_BAD_TAIL));
	client_close(&client);
}

void case_mmap(void)
{
	const struct stacktap_ring_create odd = { .size = sizeof(odd), .data_bytes = 100000 };
	struct stacktap_info info = { .size = 8 };
	struct client client;
	struct ring *ring;
	uint32_t page;
	size_t size;
	char *p;

	if (!tap(!client_open(&client), "open") ||
	    !tap(!client_add_ring(&client, 0, 65536), "a ring"))
		return;
	ring = &client.rings[0];
	page = client.info.page_size;
	size = page + 2 * 65536;
#define REFUSED(length, prot, flags, offset) \
	(mmap(NULL, length, prot, flags, client.fd, offset) == MAP_FAILED)
	tap(REFUSED(page, PROT_READ, MAP_PRIVATE, ring->consumer_offset), "private");
	tap(REFUSED(2 * page, PROT_READ, MAP_SHARED, ring->consumer_offset), "too long");
	tap(REFUSED(page, PROT_READ, MAP_SHARED, ring->producer_offset), "too short");
	tap(REFUSED(size - page, PROT_READ, MAP_SHARED, ring->producer_offset + page), "inside");
	tap(REFUSED(size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->producer_offset), "writable");
	tap(REFUSED(page, PROT_READ | PROT_EXEC, MAP_SHARED, ring->consumer_offset), "executable");
	tap(REFUSED(page, PROT_READ, MAP_SHARED, 1ll << 40), "of a CPU without ring");
	tap(REFUSED(page, PROT_READ, MAP_SHARED, 1ll << 52), "of no CPU");
	p = (char *)ring->producer;
	tap(mprotect(p, size, PROT_READ | PROT_WRITE) && errno == EACCES, "mprotect to writable");
	tap(mprotect(p, page, PROT_NONE), "mprotect of a part, which splits");
	tap(munmap(p + page, page), "munmap of a part");
	tap(mremap(p, size, 2 * size, MREMAP_MAYMOVE) == MAP_FAILED, "mremap to grow");
	tap(mremap(p, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, p + (1 << 24)) == MAP_FAILED,
	    "mremap to move");
	tap(!memcmp(p + page, p + page + 65536, 65536), "data is there twice");

	tap(ioctl(client.fd, STACKTAP_IOC_RING_CREATE, &odd) && errno == EINVAL, "odd ring size");
	tap(ioctl(client.fd, STACKTAP_IOC_INFO, &info) && errno == EINVAL, "struct too small");
	struct { struct stacktap_info info; uint64_t more; } big = {
		.info.size = sizeof(big), .more = 1 };
	tap(ioctl(client.fd, STACKTAP_IOC_INFO, &big) && errno == E2BIG, "surplus not zero: E2BIG");
	big.more = 0;
	tap(!ioctl(client.fd, STACKTAP_IOC_INFO, &big), "surplus zero");
	tap(ioctl(client.fd, _IO('x', 0)) && errno == ENOTTY, "foreign ioctl: ENOTTY");
	client_close(&client);
}

static void refused(struct client *client, struct message *message, int expected, const char *what)
{
	int err = client_send(client, message);

	tap(err == expected && client->wire.sentence[0], "%s: %s, '%s'", what, strerror(-err),
	    client->wire.sentence);
}

static void refuse_source(struct client *client, const struct source *source, int expected,
			  const char *what)
{
	int err = client_set_sources(client, source, 1);

	tap(err == expected && client->wire.sentence[0], "%s: %s, '%s'", what, strerror(-err),
	    client->wire.sentence);
}

/* The number of the first PMU whose name matches, or 0. */
static uint32_t pmu_type(const char *pmu)
{
	char pattern[96];
	uint32_t type = 0;
	glob_t found;
	FILE *file;

	snprintf(pattern, sizeof(pattern), "/sys/bus/event_source/devices/%s/type", pmu);
	if (glob(pattern, 0, NULL, &found))
		return 0;
	file = fopen(found.gl_pathv[0], "re");
	if (file && fscanf(file, "%" SCNu32, &type) != 1)
		type = 0;
	if (file)
		fclose(file);
	globfree(&found);
	return type;
}

/* PMUs with numbers of their own: probes take pointers, and only those of CPUs are counters. */
static void refuse_pmus(struct client *client)
{
	static const char *const others[] = { "kprobe", "uprobe", "msr", "power" };
	static const char function[] = "vfs_read";
	struct source source = clock_and_faults[1];
	unsigned int i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		source.type = pmu_type(others[i]);
		source.config = 0;
		source.config1 = (uintptr_t)function;
		if (source.type)
			refuse_source(client, &source, -EOPNOTSUPP, others[i]);
		else
			tap_note("no PMU %s here", others[i]);
	}
	source.type = 9999;
	refuse_source(client, &source, -EOPNOTSUPP, "a PMU that is not there");
	source.type = pmu_type("armv8*");
	source.config = 0x11;
	source.config1 = 0;
	if (source.type)
		tap(!client_set_sources(client, &source, 1), "the CPUs' own PMU by its number");
}

void case_refusals(void)
{
	const struct source good = clock_and_faults[0];
	struct source source;
	struct message message;
	struct client client;
	uint32_t tgids[2] = { 1, 0 };
	size_t nest;
	pid_t child;
	int status;

	if (!tap(!client_open(&client), "open"))
		return;
	client_begin(&client, &message, STACKTAP_CMD_SET_SESSION);
	message_put_u32(&message, STACKTAP_A_MAX + 5, 1);
	refused(&client, &message, -EINVAL, "unknown attribute");
	client_begin(&client, &message, STACKTAP_CMD_START);
	message_put_u32(&message, STACKTAP_A_USER_FRAMES, 1);
	refused(&client, &message, -EINVAL, "attribute of another command");
	client_begin(&client, &message, STACKTAP_CMD_SET_SESSION);
	nest = message_nest_begin(&message, STACKTAP_A_FILTER);
	message_put_u32(&message, STACKTAP_FILTER_FLAGS, 1u << 30);
	message_nest_end(&message, nest);
	refused(&client, &message, -EINVAL, "unknown flag");
	client_begin(&client, &message, STACKTAP_CMD_SET_SESSION);
	nest = message_nest_begin(&message, STACKTAP_A_FILTER);
	message_put_u32(&message, STACKTAP_FILTER_ATTR_MAX + 1, 1);
	message_nest_end(&message, nest);
	refused(&client, &message, -EINVAL, "unknown attribute in a nest");
	client_begin(&client, &message, STACKTAP_CMD_SET_SESSION);
	message_put_u32(&message, STACKTAP_A_USER_FRAMES, 100000);
	refused(&client, &message, -ERANGE, "depth of 100000");
	message_begin(&client.wire, &message, STACKTAP_CMD_START, 0);
	refused(&client, &message, -EINVAL, "no session id");
	message_begin(&client.wire, &message, STACKTAP_CMD_START, 0);
	message_put_u64(&message, STACKTAP_A_SESSION_ID, 999999);
	refused(&client, &message, -ESRCH, "no such session");

	source = good;
	source.rate_hz = 1000000000;
	refuse_source(&client, &source, -ERANGE, "10^9 Hz");
	source.rate_hz = 0;
	refuse_source(&client, &source, -EINVAL, "neither rate nor period");
	source.period = 1000;
	refuse_source(&client, &source, -ERANGE, "1 us");
	source = good;
	source.flags = 1u << 31;
	refuse_source(&client, &source, -EINVAL, "unknown source flag");
	source = good;
	source.type = PERF_TYPE_HARDWARE;
	source.config = PERF_COUNT_HW_CPU_CYCLES;
	source.flags = 1u << STACKTAP_SRC_PRECISE_SHIFT;
	refuse_source(&client, &source, -EOPNOTSUPP, "precise cycles");
	source.flags = STACKTAP_SRC_PRECISE_MASK;
	refuse_source(&client, &source, -EOPNOTSUPP, "cycles as precise as can be");
	source = good;
	source.type = PERF_TYPE_TRACEPOINT;
	refuse_source(&client, &source, -EOPNOTSUPP, "tracepoint");
	refuse_pmus(&client);
	source = clock_and_faults[1];
	source.nominal_hz = 0;
	refuse_source(&client, &source, -EINVAL, "rate without nominal rate");
	source.mode = STACKTAP_MODE_FREQ;
	source.period = 1000000;
	refuse_source(&client, &source, -EINVAL, "period in frequency mode");
	source.mode = 9;
	refuse_source(&client, &source, -ERANGE, "unknown mode");

	tap(client_set_filter(&client, 0, tgids, 2, 0) == -EINVAL && client.wire.sentence[0],
	    "tgid 0: '%s'", client.wire.sentence);
	tap(client_set_filter(&client, 1ull << 63, NULL, 0, 0) == -EINVAL &&
	    client.wire.sentence[0], "CPU 63: '%s'", client.wire.sentence);
	tap(client_set_filter(&client, 0, NULL, 0, 3) == -EINVAL && client.wire.sentence[0],
	    "user and kernel only: '%s'", client.wire.sentence);
	tap(client_stop(&client) == -EALREADY && client.wire.sentence[0], "STOP: '%s'",
	    client.wire.sentence);
	client_add_rings(&client, 65536);
	client_set_sources(&client, &good, 1);
	client_start(&client);
	tap(client_start(&client) == -EALREADY && client.wire.sentence[0], "START: '%s'",
	    client.wire.sentence);
	tap(client_set_sources(&client, &good, 1) == -EBUSY && client.wire.sentence[0],
	    "sources of a running session: '%s'", client.wire.sentence);
	tap(client_set_rate(&client, 3, 100) == -EINVAL && client.wire.sentence[0],
	    "rate of no source: '%s'", client.wire.sentence);
	client_begin(&client, &message, STACKTAP_CMD_SET_SESSION);
	message_put(&message, STACKTAP_A_TWO_PHASE, NULL, 0);
	refused(&client, &message, -EBUSY, "phases of a running session");

	child = fork();
	if (!child) {
		struct wire wire;

		if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534) ||
		    wire_open(&wire))
			_exit(3);
		message_begin(&wire, &message, STACKTAP_CMD_STOP, 0);
		message_put_u64(&message, STACKTAP_A_SESSION_ID, client.info.session_id);
		_exit(wire_call(&wire, &message, NULL, NULL) == -EPERM && wire.sentence[0] ? 0 : 4);
	}
	tap(waitpid(child, &status, 0) == child && !status, "STOP without capability: EPERM (%d)",
	    status);
	client_close(&client);
}

/* All messages of a kind. */
struct told {
	unsigned int messages, latest;	/* which of all messages it is */
	uint64_t count, lost[STACKTAP_LOST_REASONS];
	uint32_t cpu, source, error;	/* of the last */
	bool has_cpu, has_source;
};

static void told_add(struct told *told, const void *attrs, size_t size)
{
	size_t found, lost_size;
	const void *lost = attr_find(attrs, size, STACKTAP_A_EVENT_LOST, &lost_size);
	unsigned int i;

	told->messages++;
	told->count += attr_u64(attrs, size, STACKTAP_A_EVENT_COUNT);
	for (i = 0; lost && i < STACKTAP_LOST_REASONS; i++)
		told->lost[i] += attr_u64(lost, lost_size, i + 1);
	told->cpu = attr_u32(attrs, size, STACKTAP_A_CPU_ID);
	told->source = attr_u32(attrs, size, STACKTAP_A_SRC_ID);
	told->error = attr_u32(attrs, size, STACKTAP_A_ERRNO);
	told->has_cpu = attr_find(attrs, size, STACKTAP_A_CPU_ID, &found);
	told->has_source = attr_find(attrs, size, STACKTAP_A_SRC_ID, &found);
}

/* The second source wants a PMU, on each of @cpus and once more on the one that came back. */
static void check_fallback(const struct told *told, unsigned int cpus)
{
	if (pmu_type("armv8*")) {
		tap(!told->messages, "no fallback where there is a PMU");
		return;
	}
	tap(told->count == cpus + 1 && told->has_cpu && told->cpu < cpus && told->has_source &&
	    told->source == 1 && told->error == ENOENT, "fallback: %" PRIu64 " times on %u CPUs, "
	    "source %u, errno %u", told->count, cpus, told->source, told->error);
}

/* What events told of losses is what the ring tells, reason by reason. */
static void check_losses(const struct told *told, const struct client *client)
{
	unsigned int i, wrong = 0;
	uint64_t sum = 0;

	for (i = 0; i < STACKTAP_LOST_REASONS; i++) {
		wrong += told->lost[i] != client_lost(client, i);
		sum += told->lost[i];
	}
	tap(sum && sum == told->count && !wrong && told->has_cpu && told->has_source,
	    "losses: %u messages tell of %" PRIu64 ", %" PRIu64 " by reason, %u reasons wrong",
	    told->messages, told->count, sum, wrong);
}

static void check_cpu(const struct told *told, const char *what)
{
	tap(told->messages == 1 && told->count == 1 && told->has_cpu && told->cpu == 1,
	    "CPU 1 %s: %u messages of %" PRIu64 " CPUs, the last %u", what, told->messages, told->count,
	    told->cpu);
}

void case_events(void)
{
	struct told told[STACKTAP_EVENT_KINDS] = { 0 };
	unsigned int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct client client;
	struct wire wire;
	char buffer[8192];
	int i;

	if (!tap(!wire_open(&wire) && wire.group, "the group exists"))
		return;
	tap(!setsockopt(wire.fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &wire.group,
			sizeof(wire.group)), "join");
	client_open(&client);
	client_add_rings(&client, STACKTAP_RING_MIN_BYTES);
	client_set_sources(&client, clock_and_faults, 4);
	client_start(&client);
	load_set_online(1, false);
	usleep(1000000);
	load_set_online(1, true);
	usleep(500000);
	client_stop(&client);
	/* what was owed to full rings comes with the flush */
	client_drain(&client);
	client_flush(&client);
	client_drain(&client);
	client_close(&client);
	usleep(200000);
	for (i = 0; i < 200; i++) {
		ssize_t size = recv(wire.fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		unsigned int kind;

		if (size < (ssize_t)NLMSG_LENGTH(4))
			break;
		kind = attr_u8(buffer + NLMSG_LENGTH(4), size - NLMSG_LENGTH(4),
			       STACKTAP_A_EVENT_KIND);
		if (kind >= STACKTAP_EVENT_KINDS)
			continue;
		told[kind].latest = i;
		told_add(&told[kind], buffer + NLMSG_LENGTH(4), size - NLMSG_LENGTH(4));
	}
	tap(told[STACKTAP_EVENT_SESSION_CREATED].messages, "created");
	tap(told[STACKTAP_EVENT_SESSION_STARTED].messages, "started");
	tap(told[STACKTAP_EVENT_SESSION_CHANGED].messages, "changed");
	tap(told[STACKTAP_EVENT_SESSION_STOPPED].messages &&
	    told[STACKTAP_EVENT_SESSION_STOPPED].latest > told[STACKTAP_EVENT_LOSS].latest,
	    "stopped, and no loss is told afterwards");
	tap(told[STACKTAP_EVENT_SESSION_DESTROYED].messages &&
	    told[STACKTAP_EVENT_SESSION_DESTROYED].latest > told[STACKTAP_EVENT_SESSION_STOPPED].latest,
	    "destroyed");
	check_cpu(&told[STACKTAP_EVENT_CPU_OFFLINE], "offline");
	check_cpu(&told[STACKTAP_EVENT_CPU_ONLINE], "online");
	check_losses(&told[STACKTAP_EVENT_LOSS], &client);
	check_fallback(&told[STACKTAP_EVENT_FALLBACK], cpus);
	tap(i < 60, "not too many: %d", i);
	wire_close(&wire);
}

/* Keep a session open until standard input ends, for run.sh to try rmmod. */
void case_hold(void)
{
	struct client client;
	char byte;

	if (client_open(&client) || client_add_rings(&client, 65536) ||
	    client_set_sources(&client, clock_and_faults, 1) || client_start(&client))
		exit(1);
	/* only the mappings hold the session now */
	close(client.fd);
	puts("held");
	fflush(stdout);
	if (read(STDIN_FILENO, &byte, 1) < 0)
		exit(1);
	_exit(0);
}

/* Sample CPU 1 through both phases until killed, for tests/vm/cases/lifecycle.py. */
void case_busy(void)
{
	const struct source clock = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK, .rate_hz = 2999,
	};
	struct message message;
	struct client client;
	struct pollfd pollfd;
	bool told = false;

	/* before the session, so that it does not hold it */
	load_fork(1, false);
	if (client_open(&client) || client_add_rings(&client, 65536) ||
	    client_set_sources(&client, &clock, 1))
		exit(1);
	client_begin(&client, &message, STACKTAP_CMD_SET_SESSION);
	message_put(&message, STACKTAP_A_TWO_PHASE, NULL, 0);
	if (client_send(&client, &message) || client_start(&client))
		exit(1);
	pollfd = (struct pollfd) { .fd = client.fd, .events = POLLIN };
	for (;;) {
		poll(&pollfd, 1, -1);
		client_drain(&client);
		if (!told && client.ledgers[1][0].samples > 100)
			told = puts("sampled") > 0;
	}
}
