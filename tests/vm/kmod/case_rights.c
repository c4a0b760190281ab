// SPDX-License-Identifier: Apache-2.0
/* Who may ask the family for what: who sends and who opened the socket must both be capable. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "tables.h"
#include "tap.h"

#define PERFMON		(1ull << CAP_PERFMON)
#define SYS_ADMIN	(1ull << CAP_SYS_ADMIN)
#define ALL		(~0ull)

/* in an order in which all succeed */
static const struct {
	const char *name;
	uint8_t id;
	uint16_t flags;
} commands[] = {
	{ "GET_MODULE", STACKTAP_CMD_GET_MODULE, 0 },
	{ "SET_SESSION", STACKTAP_CMD_SET_SESSION, 0 },
	{ "START", STACKTAP_CMD_START, 0 },
	{ "GET_SESSION", STACKTAP_CMD_GET_SESSION, 0 },
	{ "a dump of GET_SESSION", STACKTAP_CMD_GET_SESSION, NLM_F_DUMP },
	{ "a dump of GET_CPU", STACKTAP_CMD_GET_CPU, NLM_F_DUMP },
	{ "a dump of GET_TABLE", STACKTAP_CMD_GET_TABLE, NLM_F_DUMP },
	{ "STOP", STACKTAP_CMD_STOP, 0 },
};

/* Keep those of root's capabilities in force that are in @wanted; others may come back. */
static bool have(uint64_t wanted)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return false;
	data[0].effective = data[0].permitted & wanted;
	data[1].effective = data[1].permitted & (wanted >> 32);
	return !syscall(SYS_capset, &header, data);
}

static void check_commands(struct wire *wire, uint64_t session_id, int expected, const char *who)
{
	struct message message;
	unsigned int i;
	int err;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		message_begin(wire, &message, commands[i].id, commands[i].flags);
		if (commands[i].id != STACKTAP_CMD_GET_MODULE)
			message_put_u64(&message, STACKTAP_A_SESSION_ID, session_id);
		wire->sentence[0] = 0;
		err = wire_call(wire, &message, NULL, NULL);
		/* Linux 6.1 and older hand a dump's start no extended ACK */
		tap(err == expected && (!err || commands[i].flags || wire->sentence[0]),
		    "%s: %s: %s, '%s'", who, commands[i].name, strerror(-err), wire->sentence);
	}
}

static int join(struct wire *wire)
{
	return setsockopt(wire->fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &wire->group,
			  sizeof(wire->group)) ? -errno : 0;
}

/* Tables tell a walk what to read, so their lists are for those who may read everything. */
static void check_lists(void)
{
	struct stacktap_mapping mapping = { .start = 0x10000, .end = 0x20000 };
	struct stacktap_image image;
	struct client poor, rich;

	if (!tap(have(PERFMON | SYS_ADMIN) && !client_open(&poor) && have(ALL) && !client_open(&rich) &&
		 !tables_image(&rich, getpid(), &image), "a session of who has no CAP_SYS_PTRACE"))
		return;
	tap(!(poor.info.features & STACKTAP_FEATURE_TABLES) &&
	    rich.info.features & STACKTAP_FEATURE_TABLES, "INFO offers him no tables");
	tap(tables_set(&poor, &image, 1, &mapping, 1) == -EPERM &&
	    !tables_of_module(&rich).lists, "nor does another's CAP_SYS_PTRACE help: a list is refused");
	tap(!tables_set(&rich, &image, 1, &mapping, 1), "who has it sets one");
	tap(have(PERFMON | SYS_ADMIN) && tables_set(&rich, &image, 2, &mapping, 1) == -EPERM,
	    "but nobody else in his session");
	tap(tables_of_session(&rich).lists == 1 && !tables_set(&rich, &image, 2, NULL, 0) &&
	    tables_wait(&rich, 0), "everybody may take it away");
	have(ALL);
	client_close(&poor);
	client_close(&rich);
}

void case_rights(void)
{
	static const struct source clock = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK, .rate_hz = 99,
	};
	struct wire admin, stranger;
	struct client client;
	uint64_t id;

	if (!tap(have(PERFMON) && !client_open(&client) && !client_add_rings(&client, 65536) &&
		 !client_set_sources(&client, &clock, 1), "CAP_PERFMON alone: a session"))
		return;
	id = client.info.session_id;
	check_commands(&client.wire, id, 0, "CAP_PERFMON alone");
	tap(join(&client.wire) == -EPERM, "CAP_PERFMON alone: the events are refused");

	if (!tap(have(SYS_ADMIN) && !wire_open(&admin), "CAP_SYS_ADMIN alone: the family"))
		return;
	check_commands(&admin, id, 0, "CAP_SYS_ADMIN alone");
	tap(!join(&admin), "CAP_SYS_ADMIN alone: the events are given");

	if (!tap(have(ALL & ~(PERFMON | SYS_ADMIN)) && !wire_open(&stranger),
		 "all other capabilities: the family"))
		return;
	check_commands(&stranger, id, -EPERM, "all other capabilities");
	tap(join(&stranger) == -EPERM, "all other capabilities: the events are refused");
	tap(have(ALL), "all capabilities again");
	check_commands(&stranger, id, -EPERM, "all on a stranger's socket");

	wire_close(&stranger);
	wire_close(&admin);
	client_close(&client);
	check_lists();
}
