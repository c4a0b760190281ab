/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STACKTAP_FUZZ_PACKETS_H
#define STACKTAP_FUZZ_PACKETS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A packet of any bytes, with up to three descriptors. */
static inline void packets_put(int socket, const uint8_t *data, size_t size, size_t fd_count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(3 * sizeof(int))];
	} control = { 0 };
	struct iovec part = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	const int fds[3] = { STDERR_FILENO, STDERR_FILENO, STDERR_FILENO };
	struct cmsghdr *cmsg;

	if (fd_count) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&message);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, fd_count * sizeof(int));
	}
	if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
		abort();
}

#endif /* STACKTAP_FUZZ_PACKETS_H */
