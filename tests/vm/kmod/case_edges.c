// SPDX-License-Identifier: Apache-2.0
/* Numbers at the edge of what is allowed, and a CPU that almost went away. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "tap.h"

static const struct source fast_clock = {
	.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
	.rate_hz = 997,
};

static void visit_tgids(const void *attrs, size_t size, void *arg)
{
	const void *session, *filter;
	size_t *bytes = arg;

	session = attr_find(attrs, size, STACKTAP_A_SESSION, &size);
	filter = session ? attr_find(session, size, STACKTAP_A_FILTER, &size) : NULL;
	if (filter && attr_find(filter, size, STACKTAP_FILTER_PARTIAL, bytes))
		*bytes = SIZE_MAX;
	else if (filter)
		attr_find(filter, size, STACKTAP_FILTER_TGIDS, bytes);
}

static void check_tgids(struct client *client, unsigned int nr, int expected)
{
	uint32_t *tgids = calloc(nr, sizeof(*tgids));
	struct message message;
	unsigned int i, flags;
	size_t bytes;
	int err;

	/* ours comes last and sorts somewhere in the middle */
	for (i = 0; i < nr; i++)
		tgids[i] = i + 1 < nr ? 100000 + i * 7 % nr : (uint32_t)getpid();
	err = client_set_filter(client, 3, tgids, nr, 0);
	free(tgids);
	tap(err == expected, "a filter of %u processes: %d", nr, err);
	for (flags = 0; !err && flags <= NLM_F_DUMP; flags += NLM_F_DUMP) {
		bytes = 0;
		message_begin(&client->wire, &message, STACKTAP_CMD_GET_SESSION, flags);
		if (!flags)
			message_put_u64(&message, STACKTAP_A_SESSION_ID, client->info.session_id);
		err = wire_call(&client->wire, &message, visit_tgids, &bytes);
		tap(!err && (bytes == nr * sizeof(*tgids) || (flags && bytes == SIZE_MAX)),
		    "GET_SESSION (%s) tells all of them, or that it does not: %d",
		    flags ? "dump" : "do", err);
	}
}

void case_edges(void)
{
	const struct source slow_clock = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK, .period = 1ull << 32,
	};
	struct stacktap_ring_create create = { .size = sizeof(create) };
	struct client client;
	struct message message;
	struct pollfd pollfd;
	unsigned int wait;
	uint64_t before;

	if (!tap(!client_open(&client) && !client_add_rings(&client, 1 << 20), "open, rings") ||
	    !tap(!client_set_sources(&client, &fast_clock, 1), "a source"))
		return;
	tap(!client_start(&client), "START");
	check_tgids(&client, 10000, 0);
	before = client_count(&client, 0, STACKTAP_CNT_RECORDED);
	for (wait = 0; wait < 100; wait++) {
		load_burn(300);
		if (client_count(&client, 0, STACKTAP_CNT_RECORDED) > before + 50)
			break;
	}
	tap(client_count(&client, 0, STACKTAP_CNT_RECORDED) > before + 50,
	    "found among 10000 processes");
	check_tgids(&client, STACKTAP_MAX_TGIDS, 0);
	check_tgids(&client, STACKTAP_MAX_TGIDS + 1, -ERANGE);
	tap(!client_stop(&client), "STOP");

	client_begin(&client, &message, STACKTAP_CMD_SET_SESSION);
	message_put(&message, STACKTAP_A_TWO_PHASE, NULL, 0);
	tap(!client_send(&client, &message) && !client_set_sources(&client, &slow_clock, 1) &&
	    !client_set_filter(&client, 0, NULL, 0, 0), "2^32 ns, two phases");
	before = client_count(&client, 0, STACKTAP_CNT_RECORDED);
	tap(!client_start(&client), "START");
	for (wait = 0; wait < 10; wait++) {
		load_burn(5000);
		if (client_count(&client, 0, STACKTAP_CNT_RECORDED) > before)
			break;
	}
	tap(!client_stop(&client), "STOP");
	tap(client_count(&client, 0, STACKTAP_CNT_RECORDED) > before, "samples go through a stash");
	client_close(&client);

	/* a watermark that is never reached, because records stop fitting before */
	if (!tap(!client_open(&client), "open"))
		return;
	create.data_bytes = create.watermark = client_least_ring(&client);
	tap(!ioctl(client.fd, STACKTAP_IOC_RING_CREATE, &create), "a watermark of the whole ring");
	client_set_sources(&client, &fast_clock, 1);
	client_set_filter(&client, 1, NULL, 0, 0);
	tap(!client_start(&client), "START");
	pollfd = (struct pollfd) { .fd = client.fd, .events = POLLIN };
	tap(poll(&pollfd, 1, 60000) == 1 && pollfd.revents & POLLIN,
	    "POLLIN when the ring refused a record");
	client_close(&client);
}

/* Rings of further sessions, until nothing is left of their limit. Returns how many, and what ended it. */
static unsigned int take_limit(uint32_t least, int *fds, int *ret_err)
{
	unsigned int nr = 0;
	uint32_t bytes;
	int err = 0;

	for (bytes = STACKTAP_RING_MAX_BYTES; bytes >= least; bytes /= 2) {
		while (nr < STACKTAP_MAX_SESSIONS - 1) {
			struct stacktap_ring_create create = {
				.size = sizeof(create), .data_bytes = bytes,
			};

			fds[nr] = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC);
			if (fds[nr] < 0)
				break;
			nr++;
			if (ioctl(fds[nr - 1], STACKTAP_IOC_RING_CREATE, &create)) {
				err = errno;
				close(fds[--nr]);
				break;
			}
		}
	}
	*ret_err = err;
	return nr;
}

/* Two phases need a stash on every CPU. */
static bool open_stashed(struct client *client)
{
	struct message message;

	if (!tap(!client_open(client) && !client_add_rings(client, 65536), "open, rings") ||
	    !tap(!client_set_sources(client, &fast_clock, 1), "a source"))
		return false;
	client_begin(client, &message, STACKTAP_CMD_SET_SESSION);
	message_put(&message, STACKTAP_A_TWO_PHASE, NULL, 0);
	return tap(!client_send(client, &message), "two phases");
}

/* Stashes count towards the limit of rings: with nothing left of it none can be had. */
void case_limit(void)
{
	int fds[STACKTAP_MAX_SESSIONS], err;
	struct client client;
	unsigned int nr, i;

	if (!open_stashed(&client))
		return;
	nr = take_limit(client_least_ring(&client), fds, &err);
	tap(err == EDQUOT, "rings of %u sessions, then: %s", nr, strerror(err));
	err = client_start(&client);
	tap(err == -ENOMEM && strstr(client.wire.sentence, "ring_limit_mib"), "START: %s, '%s'",
	    strerror(-err), client.wire.sentence);
	for (i = 0; i < nr; i++)
		close(fds[i]);
	tap(!client_start(&client) && !client_stop(&client), "START when they are gone");
	client_close(&client);
}

/* The errno in the event of @kind about CPU 1, or 0. Takes all that came. */
static unsigned int announced(struct wire *wire, unsigned int kind)
{
	unsigned int error = 0;
	char buffer[8192];
	ssize_t size;

	while ((size = recv(wire->fd, buffer, sizeof(buffer), MSG_DONTWAIT)) > (ssize_t)NLMSG_LENGTH(4)) {
		const void *attrs = buffer + NLMSG_LENGTH(4);

		size -= NLMSG_LENGTH(4);
		if (attr_u8(attrs, size, STACKTAP_A_EVENT_KIND) == kind &&
		    attr_u32(attrs, size, STACKTAP_A_CPU_ID) == 1)
			error = attr_u32(attrs, size, STACKTAP_A_ERRNO);
	}
	return error;
}

static bool has_state(struct client *client, unsigned int state)
{
	unsigned int i;

	for (i = 0; i < 300; i++) {
		client_drain(client);
		if (client->rings[1].state == state && client_cpu_state(client, 1) == state)
			return true;
		usleep(100000);
	}
	return false;
}

/* A CPU comes online and there is nothing left for its stash: said with the reason, once each time. */
void case_no_counter(void)
{
	int fds[STACKTAP_MAX_SESSIONS], err;
	struct client client;
	unsigned int nr, i, error;
	struct wire wire;

	if (!open_stashed(&client) ||
	    !tap(!wire_open(&wire) && !setsockopt(wire.fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP,
						  &wire.group, sizeof(wire.group)), "join"))
		return;
	tap(load_set_online(1, false) && !client_start(&client), "START without CPU 1");
	nr = take_limit(client_least_ring(&client), fds, &err);
	announced(&wire, STACKTAP_EVENT_NO_COUNTER);
	tap(err == EDQUOT && load_set_online(1, true), "nothing is left, CPU 1 comes");
	tap(has_state(&client, STACKTAP_CPU_NO_COUNTER), "it has no counter, by the dump and by the stream");
	tap(client_cpu_error(&client, 1) == EDQUOT, "the dump says why: %u",
	    client_cpu_error(&client, 1));
	usleep(300000);
	error = announced(&wire, STACKTAP_EVENT_NO_COUNTER);
	tap(error == EDQUOT, "and so does an event: %u", error);
	/* it had none before, so the filter does not depend on it */
	tap(!client_set_filter(&client, 0, NULL, 0, 0), "a filter is set all the same");
	client_drain(&client);
	tap(client.rings[1].refusals == 1, "and not told again: %" PRIu64, client.rings[1].refusals);
	for (i = 0; i < nr; i++)
		close(fds[i]);
	tap(!client_set_filter(&client, 0, NULL, 0, 0) && has_state(&client, STACKTAP_CPU_ONLINE),
	    "with room again it gets one");
	tap(!client_cpu_error(&client, 1), "and has no reason any more");
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	tap(client_balanced(&client), "the ledger balances");
	wire_close(&wire);
	client_close(&client);
}

/* A step of going offline that lies below perf's, or -1. */
static int find_late_step(void)
{
	FILE *file = fopen("/sys/devices/system/cpu/hotplug/states", "re");
	char line[128];
	int step = -1;

	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, "smpboot/threads:online"))
			step = atoi(line);
	if (file)
		fclose(file);
	return step;
}

/*
 * A CPU that turns back on its way down has lost its counters, but may be seen online before and
 * after. The neighbour keeps the session busy, so that its work is late.
 */
void case_turned_back(void)
{
	unsigned int i, wait, missed = 0, turned = 0;
	struct client client;
	char step[16];
	uint64_t samples;
	pid_t user, neighbour;

	snprintf(step, sizeof(step), "%d", find_late_step());
	if (!tap(!client_open(&client) && !client_add_rings(&client, 1 << 20), "open, rings"))
		return;
	client_set_sources(&client, &fast_clock, 1);
	user = load_fork(1, false);
	tap(!client_start(&client), "START");
	neighbour = fork();
	if (!neighbour) {
		struct wire wire;

		if (wire_open(&wire))
			_exit(1);
		client.wire = wire;
		for (;;)
			client_set_filter(&client, 3, NULL, 0, 0);
	}
	for (i = 0; i < 10; i++) {
		if (!load_write("/sys/devices/system/cpu/cpu1/hotplug/fail", step))
			break;
		turned += !load_set_online(1, false);
		/* in its own time: nothing else brings dead counters back */
		client_drain(&client);
		samples = client.ledgers[1][0].samples;
		for (wait = 0; wait < 100 && client.ledgers[1][0].samples < samples + 20; wait++) {
			usleep(100000);
			client_drain(&client);
		}
		missed += wait == 100;
	}
	tap(turned == 10, "CPU 1 turned back %u times", turned);
	tap(!missed, "it was sampled afterwards, but for %u times", missed);
	load_kill(neighbour);
	load_kill(user);
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	tap(client_balanced(&client), "the ledgers balance");
	client_close(&client);
}
