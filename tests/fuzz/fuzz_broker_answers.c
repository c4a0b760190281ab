// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as packets from the broker: answers of another size, to another question, with descriptors that nobody
 * asked for. No crash, what is taken is what was asked for, and no descriptor stays.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "broker/broker.c"

#include "fds.h"
#include "packets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_fd(int fd)
{
	if (fd < 0)
		return;
	if (fcntl(fd, F_GETFD) != FD_CLOEXEC)
		abort();
	close(fd);
}

static void ask_for(uint8_t which)
{
	const struct stacktap_mappings_set set = { .size = sizeof(set), .tgid = 1, .mappings = (uintptr_t)"" };
	const struct broker_event event = { .type = 0 };
	struct record_request record = { .seconds = 1 };
	struct stacktap_info info;
	int info_error, status;
	pid_t pid;

	switch (which % 10) {
	case 0:
		check_fd(broker_open_device(&info, &info_error));
		break;
	case 1:
		check_fd(broker_open_sideband(0, 0));
		break;
	case 2:
		if (broker_try_event(&event) > 0)
			abort();
		break;
	case 3:
		check_fd(broker_open_kernel(BROKER_SYMBOLS));
		break;
	case 4:
		check_fd(broker_open_config());
		break;
	case 5:
		check_fd(broker_read_secret("/etc/key"));
		break;
	case 6:
		if (broker_set_mappings(STDERR_FILENO, &set) > 0)
			abort();
		break;
	case 7:
		broker_start_helper(0, STDERR_FILENO, &pid);
		break;
	case 8:
		broker_start_record(&record, STDERR_FILENO, STDERR_FILENO, &pid);
		break;
	default:
		pid = broker_wait(7, &status);
		if (pid != 7 && pid != 0 && pid != -1)
			abort();
	}
}

/* A byte of what is asked for, one of how many descriptors come, and the packet. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char room[STACKTAP_MAX_MAPPINGS * sizeof(struct stacktap_mapping)];
	struct fds before;
	int sockets[2];

	if (size < 3)
		return 0;
	before = fds_free();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		abort();
	broker.socket = sockets[0];
	broker.pid = 1;
	broker.mappings = room;
	packets_put(sockets[1], data + 2, min_of(size - 2, (size_t)4096), data[1] % 4);
	/* no second answer: it has ended by then */
	shutdown(sockets[1], SHUT_WR);
	ask_for(data[0]);
	close(sockets[0]);
	close(sockets[1]);
	fds_check(&before);
	return 0;
}
