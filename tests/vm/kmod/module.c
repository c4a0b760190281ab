// SPDX-License-Identifier: Apache-2.0
#include "module.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "load.h"
#include "tap.h"
#include "wire.h"

struct holdings {
	uint32_t sessions, tables, lists;
	uint64_t list_bytes;
};

static void visit_holdings(const void *attrs, size_t size, void *arg)
{
	struct holdings *holdings = arg;

	holdings->sessions = attr_u32(attrs, size, STACKTAP_A_SESSIONS);
	holdings->tables = attr_u32(attrs, size, STACKTAP_A_TABLES);
	holdings->lists = attr_u32(attrs, size, STACKTAP_A_LISTS);
	holdings->list_bytes = attr_u64(attrs, size, STACKTAP_A_LIST_BYTES);
}

static int holdings_read(struct holdings *holdings)
{
	struct message message;
	struct wire wire;
	int err;

	*holdings = (struct holdings) { .sessions = UINT32_MAX };
	err = wire_open(&wire);
	if (err)
		return err;
	message_begin(&wire, &message, STACKTAP_CMD_GET_MODULE, 0);
	err = wire_call(&wire, &message, visit_holdings, holdings);
	wire_close(&wire);
	return err;
}

uint32_t module_sessions(void)
{
	struct holdings holdings;

	holdings_read(&holdings);
	return holdings.sessions;
}

bool module_wait_idle(void)
{
	unsigned int i;

	for (i = 0; i < 600 && module_sessions(); i++)
		usleep(100000);
	return !module_sessions();
}

enum {
	FILL_RINGS = 6,		/* of half the limit, of a quarter, and so on */
	FILL_LEAST_MIB = 8,	/* what that leaves is enough for what each ring takes besides */
};

/* What ring_limit_mib allows, or 0 when it is no power of two that rings can fill. */
static uint32_t ring_limit(void)
{
	FILE *file = fopen("/sys/module/stacktap/parameters/ring_limit_mib", "re");
	uint32_t mib = 0;

	if (file && fscanf(file, "%" SCNu32, &mib) != 1)
		mib = 0;
	if (file)
		fclose(file);
	return mib & (mib - 1) || mib < FILL_LEAST_MIB || mib > STACKTAP_RING_MAX_BYTES >> 20 ?
	       0 : mib << 20;
}

/* Rings for all that @limit allows, each in a session of its own. Returns 0 or an errno. */
static int fill(uint32_t limit)
{
	int fds[FILL_RINGS], err = 0;
	unsigned int i;

	for (i = 0; i < FILL_RINGS && !err; i++) {
		struct stacktap_ring_create create = {
			.size = sizeof(create), .data_bytes = limit >> (i + 1),
		};

		fds[i] = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC);
		err = fds[i] < 0 || ioctl(fds[i], STACKTAP_IOC_RING_CREATE, &create) ? errno : 0;
	}
	while (i--)
		if (fds[i] >= 0)
			close(fds[i]);
	return err;
}

bool module_is_empty(void)
{
	struct holdings holdings;
	uint32_t limit;
	unsigned int i;
	int err = 0;

	if (!module_wait_idle() || holdings_read(&holdings))
		return false;
	if (holdings.tables || holdings.lists || holdings.list_bytes) {
		tap_note("left: %" PRIu32 " tables, %" PRIu32 " lists of %" PRIu64 " bytes",
			 holdings.tables, holdings.lists, holdings.list_bytes);
		return false;
	}
	limit = ring_limit();
	if (!limit)
		return true;
	/* memory goes back after a grace period, when the last file is gone already */
	for (i = 0; i < 100; i++) {
		err = fill(limit);
		if (!err)
			return true;
		usleep(100000);
	}
	tap_note("rings for %" PRIu32 " bytes: %s", limit, strerror(err));
	return false;
}

bool module_set(const char *parameter, unsigned int value)
{
	char path[128], text[16];

	snprintf(path, sizeof(path), "/sys/module/stacktap/parameters/%s", parameter);
	snprintf(text, sizeof(text), "%u", value);
	return load_write(path, text);
}

unsigned long module_setting(const char *name, unsigned long otherwise)
{
	const char *value = getenv(name);

	return value && *value ? strtoul(value, NULL, 0) : otherwise;
}
