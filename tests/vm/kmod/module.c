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

/* What ring_limit_mib allows, or 0 when it is no power of two that a ring can have. */
static uint32_t ring_limit(void)
{
	FILE *file = fopen("/sys/module/stacktap/parameters/ring_limit_mib", "re");
	uint32_t mib = 0;

	if (file && fscanf(file, "%" SCNu32, &mib) != 1)
		mib = 0;
	if (file)
		fclose(file);
	return mib & (mib - 1) || mib > STACKTAP_RING_MAX_BYTES >> 20 ? 0 : mib << 20;
}

bool module_is_empty(void)
{
	struct stacktap_ring_create create = { .size = sizeof(create) };
	struct holdings holdings;
	unsigned int i;
	int fd, err = 0;

	if (!module_wait_idle() || holdings_read(&holdings))
		return false;
	if (holdings.tables || holdings.lists || holdings.list_bytes) {
		tap_note("left: %" PRIu32 " tables, %" PRIu32 " lists of %" PRIu64 " bytes",
			 holdings.tables, holdings.lists, holdings.list_bytes);
		return false;
	}
	create.data_bytes = ring_limit();
	if (!create.data_bytes)
		return true;
	/* memory goes back after a grace period, when the last file is gone already */
	for (i = 0; i < 100; i++) {
		fd = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC);
		err = fd < 0 || ioctl(fd, STACKTAP_IOC_RING_CREATE, &create) ? errno : 0;
		if (fd >= 0)
			close(fd);
		if (!err)
			return true;
		usleep(100000);
	}
	tap_note("one ring of %" PRIu32 " bytes: %s", create.data_bytes, strerror(err));
	return false;
}

unsigned long module_setting(const char *name, unsigned long otherwise)
{
	const char *value = getenv(name);

	return value && *value ? strtoul(value, NULL, 0) : otherwise;
}
