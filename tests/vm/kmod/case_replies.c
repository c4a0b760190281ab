// SPDX-License-Identifier: Apache-2.0
/* What asking and setting cost others: memory in one piece, interrupts of CPUs, half a change. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "tap.h"

enum {
	RING_BYTES = 65536,
	CALLS = 100,
	OTHERS = 6,
	MOST_BYTES = 16384,	/* of a datagram of two pages, with what the kernel keeps beside it */
};

#define MAX_SAMPLE_RATE "/proc/sys/kernel/perf_event_max_sample_rate"
#define MAX_PERCENT "/proc/sys/kernel/perf_cpu_time_max_percent"

static const struct source two[] = {
	{ .name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
	  .rate_hz = 99 },
	{ .name = "page-faults", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS,
	  .rate_hz = 99, .mode = STACKTAP_MODE_FREQ },
};

/* What waits in the socket of @port, with all that it is kept in; -1: there is no such socket. */
static long unread_bytes(uint32_t port)
{
	FILE *file = fopen("/proc/net/netlink", "re");
	unsigned int protocol, groups, pid;
	long bytes = -1, rmem;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%*s %u %u %x %ld", &protocol, &pid, &groups, &rmem) == 4 &&
		    protocol == NETLINK_GENERIC && pid == port)
			bytes = rmem;
	if (file)
		fclose(file);
	return bytes;
}

/* The first datagram of a dump for somebody who has not told yet how much he takes at once. */
static void check_dump(struct client *client, uint8_t command, const char *name)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	socklen_t length = sizeof(address);
	static struct message message;
	long bytes;
	int fd;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	message_begin(&client->wire, &message, command, NLM_F_DUMP);
	bytes = sendto(fd, &message, message.header.nlmsg_len, 0, (void *)&address, sizeof(address));
	if (bytes > 0 && !getsockname(fd, (void *)&address, &length))
		bytes = unread_bytes(address.nl_pid);
	tap(bytes > 0 && bytes <= MOST_BYTES, "%s: a datagram takes two pages at most: %ld", name, bytes);
	close(fd);
}

/* Function calls that CPUs other than 0 were interrupted for. */
static unsigned long call_interrupts(void)
{
	FILE *file = fopen("/proc/interrupts", "re");
	unsigned long sum = 0, value;
	char line[4096], *at, *end;

	while (file && fgets(line, sizeof(line), file)) {
		at = strchr(line, ':');
		if (!at || !strstr(line, "Function call interrupts"))
			continue;
		strtoul(at + 1, &at, 10);
		for (;; at = end) {
			value = strtoul(at, &end, 10);
			if (end == at)
				break;
			sum += value;
		}
	}
	if (file)
		fclose(file);
	return sum;
}

static void check_interrupts(struct client *client)
{
	unsigned long before, after;
	struct message message;
	cpu_set_t all, first;
	unsigned int i, failed = 0;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(0, sizeof(first), &first);
	before = call_interrupts();
	for (i = 0; i < CALLS; i++) {
		message_begin(&client->wire, &message, STACKTAP_CMD_GET_CPU, NLM_F_DUMP);
		failed += wire_call(&client->wire, &message, NULL, NULL) != 0;
	}
	after = call_interrupts();
	sched_setaffinity(0, sizeof(all), &all);
	tap(!failed && after - before < CALLS, "%u dumps of CPUs interrupt the others %lu times", CALLS,
	    after - before);
}

static void visit_rate(const void *attrs, size_t size, void *arg)
{
	const void *at = attr_find(attrs, size, STACKTAP_A_SESSION, &size);

	at = at ? attr_find(at, size, STACKTAP_A_SOURCES, &size) : NULL;
	at = at ? attr_find(at, size, STACKTAP_A_SOURCE, &size) : NULL;
	if (at)
		*(uint32_t *)arg = attr_u32(at, size, STACKTAP_SRC_RATE_HZ);
}

/* Of the first source. */
static uint32_t rate_of(struct client *client)
{
	struct message message;
	uint32_t rate = 0;

	client_begin(client, &message, STACKTAP_CMD_GET_SESSION);
	wire_call(&client->wire, &message, visit_rate, &rate);
	return rate;
}

static void put_rate(struct message *message, uint32_t id, uint32_t rate_hz)
{
	size_t nest = message_nest_begin(message, STACKTAP_A_SOURCE);

	message_put_u32(message, STACKTAP_SRC_ID, id);
	message_put_u32(message, STACKTAP_SRC_RATE_HZ, rate_hz);
	message_nest_end(message, nest);
}

static int set_rates(struct client *client, uint32_t first, uint32_t second)
{
	struct message message;
	size_t nest;

	client_begin(client, &message, STACKTAP_CMD_SET_SESSION);
	nest = message_nest_begin(&message, STACKTAP_A_SOURCES);
	put_rate(&message, 0, first);
	put_rate(&message, 1, second);
	message_nest_end(&message, nest);
	return client_send(client, &message);
}

static void read_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "re");

	if (!file || !fgets(line, size, file))
		line[0] = 0;
	if (file)
		fclose(file);
}

/* The second of two changes is one that the kernel refuses when it is asked, and not before. */
static void check_whole(struct client *client)
{
	char most[32], percent[32];
	int err;

	read_line(MAX_SAMPLE_RATE, most, sizeof(most));
	read_line(MAX_PERCENT, percent, sizeof(percent));
	/* without a share of the time there is no limit to set */
	load_write(MAX_PERCENT, "25");
	load_write(MAX_SAMPLE_RATE, "1000");
	err = set_rates(client, 199, 5000);
	load_write(MAX_SAMPLE_RATE, most);
	load_write(MAX_PERCENT, percent);
	tap(err == -EINVAL && client->wire.sentence[0], "one of two rates is refused: %d, '%s'", err,
	    client->wire.sentence);
	client_drain(client);
	tap(rate_of(client) == 99 && client->ledgers[0][0].config.rate_hz == 99,
	    "so the other stays as it was: %u, in the stream %u", rate_of(client),
	    client->ledgers[0][0].config.rate_hz);
	err = set_rates(client, 199, 299);
	client_drain(client);
	tap(!err && rate_of(client) == 199 && client->ledgers[0][0].config.rate_hz == 199,
	    "both or none");
}

/* Rings of others, until there is no room for the smallest. */
static unsigned int fill_up(struct client *others)
{
	uint32_t bytes = 4u << 20;
	unsigned int slot = 0;

	memset(others, 0, OTHERS * sizeof(*others));
	while (slot < 2 * OTHERS && bytes >= client_least_ring(&others[0])) {
		struct client *client = &others[slot / 2];

		if (!(slot % 2) && !client->info.session_id && client_open(client))
			break;
		if (client_add_ring(client, slot % 2, bytes))
			bytes /= 2;
		else
			slot++;
	}
	return slot;
}

static void visit_cpus(const void *attrs, size_t size, void *arg)
{
	const void *at = attr_find(attrs, size, STACKTAP_A_SESSION, &size);

	at = at ? attr_find(at, size, STACKTAP_A_FILTER, &size) : NULL;
	at = at ? attr_find(at, size, STACKTAP_FILTER_CPUS, &size) : NULL;
	if (at)
		memcpy(arg, at, sizeof(uint64_t));
}

static int set_two_phase(struct client *client)
{
	struct message message;

	client_begin(client, &message, STACKTAP_CMD_SET_SESSION);
	message_put(&message, STACKTAP_A_TWO_PHASE, NULL, 0);
	return client_send(client, &message);
}

static int set_rate_and_cpus(struct client *client, uint32_t rate_hz, uint64_t cpus)
{
	struct message message;
	size_t nest;

	client_begin(client, &message, STACKTAP_CMD_SET_SESSION);
	nest = message_nest_begin(&message, STACKTAP_A_SOURCES);
	put_rate(&message, 0, rate_hz);
	message_nest_end(&message, nest);
	nest = message_nest_begin(&message, STACKTAP_A_FILTER);
	message_put_u64(&message, STACKTAP_FILTER_CPUS, cpus);
	message_nest_end(&message, nest);
	return client_send(client, &message);
}

/* Another rate, which is fine, and another CPU, whose stash finds no room. */
static void check_filter(void)
{
	static const struct source clock = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
		.rate_hz = 997,
	};
	static struct client client, others[OTHERS];
	struct message message;
	unsigned int nr, i;
	uint64_t cpus = 0;
	int err;

	if (!tap(!client_open(&client) && !client_add_rings(&client, RING_BYTES) &&
		 !client_set_sources(&client, &clock, 1) && !set_two_phase(&client) &&
		 !client_set_filter(&client, 1, NULL, 0, 0) && !client_start(&client),
		 "a session on one CPU"))
		return;
	nr = fill_up(others);
	err = set_rate_and_cpus(&client, 499, 3);
	tap(err == -ENOMEM && client.wire.sentence[0], "beside %u rings another CPU is refused: %d, '%s'",
	    nr, err, client.wire.sentence);
	client_begin(&client, &message, STACKTAP_CMD_GET_SESSION);
	wire_call(&client.wire, &message, visit_cpus, &cpus);
	client_drain(&client);
	tap(cpus == 1 && client_cpu_state(&client, 1) == STACKTAP_CPU_DESELECTED,
	    "so it stays deselected: CPUs 0x%llx, state %u", (unsigned long long)cpus,
	    client_cpu_state(&client, 1));
	tap(rate_of(&client) == 997 && client.ledgers[0][0].config.rate_hz == 997,
	    "and the rate is what it was: %u, in the stream %u", rate_of(&client),
	    client.ledgers[0][0].config.rate_hz);
	for (i = 0; i < OTHERS; i++)
		if (others[i].info.session_id)
			client_close(&others[i]);
	err = set_rate_and_cpus(&client, 499, 3);
	tap(!err && rate_of(&client) == 499 && client_cpu_state(&client, 1) == STACKTAP_CPU_ONLINE,
	    "with room there are both: %d", err);
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	tap(client_balanced(&client), "the ledger balances");
	client_close(&client);
}

/* Sets of ids that fit no small piece of memory. */
static void visit_partial(const void *attrs, size_t size, void *arg)
{
	const void *at = attr_find(attrs, size, STACKTAP_A_SESSION, &size);
	size_t length = 0;

	at = at ? attr_find(at, size, STACKTAP_A_FILTER, &size) : NULL;
	if (!at)
		return;
	if (attr_find(at, size, STACKTAP_FILTER_PARTIAL, &length))
		*(long *)arg = -1;
	else if (attr_find(at, size, STACKTAP_FILTER_TGIDS, &length))
		*(long *)arg = length / sizeof(uint32_t);
}

static void check_ids(struct client *client)
{
	static uint32_t tgids[STACKTAP_MAX_TGIDS];
	struct message message;
	long dumped = 0, told = 0;
	unsigned int i;

	for (i = 0; i < STACKTAP_MAX_TGIDS; i++)
		tgids[i] = i + 1;
	if (!tap(!client_set_filter(client, 3, tgids, STACKTAP_MAX_TGIDS, 0), "a filter of %u",
		 STACKTAP_MAX_TGIDS))
		return;
	check_dump(client, STACKTAP_CMD_GET_SESSION, "GET_SESSION with that");
	message_begin(&client->wire, &message, STACKTAP_CMD_GET_SESSION, NLM_F_DUMP);
	wire_call(&client->wire, &message, visit_partial, &dumped);
	client_begin(client, &message, STACKTAP_CMD_GET_SESSION);
	wire_call(&client->wire, &message, visit_partial, &told);
	tap(dumped == -1 && told == STACKTAP_MAX_TGIDS,
	    "the dump says that they are missing, the session by its id has them: %ld, %ld", dumped,
	    told);
	tap(!client_set_filter(client, 3, NULL, 0, 0), "the filter is removed");
}

void case_replies(void)
{
	static struct client client;

	if (!tap(!client_open(&client) && !client_add_rings(&client, RING_BYTES) &&
		 !client_set_sources(&client, two, 2) && !client_start(&client), "a session"))
		return;
	check_dump(&client, STACKTAP_CMD_GET_SESSION, "GET_SESSION");
	check_dump(&client, STACKTAP_CMD_GET_CPU, "GET_CPU");
	check_dump(&client, STACKTAP_CMD_GET_TABLE, "GET_TABLE");
	check_interrupts(&client);
	check_whole(&client);
	check_ids(&client);
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	tap(client_balanced(&client), "the ledger balances");
	client_close(&client);
	check_filter();
}
