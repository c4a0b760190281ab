// SPDX-License-Identifier: Apache-2.0
#include "broker/packet.h"

#include <string.h>
#include <sys/socket.h>

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(BROKER_FDS_MAX * sizeof(int))];
};

int packet_send(int socket, const struct packet *packet)
{
	union control control = { 0 };
	struct iovec parts[] = {
		{ .iov_base = (void *)(uintptr_t)&packet->header, .iov_len = sizeof(packet->header) },
		{ .iov_base = packet->payload, .iov_len = packet->bytes },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts) };
	const size_t fd_bytes = packet->fd_count * sizeof(int);
	struct cmsghdr *cmsg;

	if (fd_bytes) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(fd_bytes);
		cmsg = CMSG_FIRSTHDR(&message);
		if (!cmsg)
			return -EINVAL;
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fd_bytes);
		memcpy(CMSG_DATA(cmsg), packet->fds, fd_bytes);
	}
	while (sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* No more fit into the room for them, and the kernel closes what does not. */
static void take_fds(struct msghdr *message, struct packet *packet)
{
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg)) {
		const size_t bytes = cmsg->cmsg_len - CMSG_LEN(0);

		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS || bytes > sizeof(packet->fds))
			continue;
		memcpy(packet->fds, CMSG_DATA(cmsg), bytes);
		packet->fd_count = bytes / sizeof(int);
	}
}

int packet_receive(int socket, struct packet *packet)
{
	union control control;
	struct iovec parts[] = {
		{ .iov_base = &packet->header, .iov_len = sizeof(packet->header) },
		{ .iov_base = packet->payload, .iov_len = packet->bytes },
	};
	struct msghdr message = {
		.msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts),
		.msg_control = control.bytes, .msg_controllen = sizeof(control.bytes),
	};
	ssize_t n;

	packet->fd_count = 0;
	do
		n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return -EPIPE;
	take_fds(&message, packet);
	if (n < (ssize_t)sizeof(packet->header) || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		packet_close(packet);
		return -EBADMSG;
	}
	packet->bytes = (size_t)n - sizeof(packet->header);
	return 0;
}

void packet_close(struct packet *packet)
{
	while (packet->fd_count)
		close(packet->fds[--packet->fd_count]);
}
