// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as packets to a helper, as a daemon would send them that somebody took over: cut off, too long, with more
 * descriptors than one. Each is answered by one packet of the same operation, and no descriptor stays.
 */
#include <stdlib.h>
#include <string.h>

#include "helper/protocol.h"

static int fuzz_socket = -1;
#define HELPER_FD fuzz_socket
#include "helper/serve.c"

#include "fds.h"
#include "packets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What came back: one answer, which says how long it is, and nothing with a refusal. */
static void check(int socket, uint32_t op)
{
	static uint8_t payload[HELPER_BYTES_MAX];
	union descriptor_room room;
	struct helper_header header;
	struct iovec parts[] = {
		{ .iov_base = &header, .iov_len = sizeof(header) },
		{ .iov_base = payload, .iov_len = sizeof(payload) },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts) };
	ssize_t n;
	int fd;

	descriptor_expect(&message, &room);
	n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < (ssize_t)sizeof(header) || descriptor_take(&message, &fd) < 0 || header.op != op ||
	    header.bytes != (size_t)n - sizeof(header) || header.result > 0 ||
	    (header.result < 0 && (header.bytes || fd >= 0)))
		abort();
	if (fd >= 0)
		close(fd);
}

/* A byte of how many descriptors come, and the packet. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t request[HELPER_BYTES_MAX], answer[HELPER_BYTES_MAX];
	struct helper_header header = { 0 };
	struct fds before;
	int sockets[2];

	if (size < 2)
		return 0;
	before = fds_free();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		abort();
	fuzz_socket = sockets[0];
	size = min_of(size - 1, (size_t)HELPER_BYTES_MAX);
	packets_put(sockets[1], data + 1, size, data[0] % 4);
	memcpy(&header, data + 1, min_of(size, sizeof(header)));
	memset(request, 0, sizeof(request));
	if (serve_one(HELPER_PARSER, request, answer))
		check(sockets[1], header.op);
	else if (size >= sizeof(header) && data[0] % 4 < 2)
		abort();
	close(sockets[0]);
	close(sockets[1]);
	fds_check(&before);
	return 0;
}
