// SPDX-License-Identifier: Apache-2.0
#include "helper/descriptor.h"

#include <string.h>

void descriptor_put(struct msghdr *message, union descriptor_room *room, int fd)
{
	struct cmsghdr *cmsg = &room->align;

	if (fd < 0)
		return;
	*room = (union descriptor_room){ 0 };
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	message->msg_control = room;
	message->msg_controllen = sizeof(*room);
}

void descriptor_expect(struct msghdr *message, union descriptor_room *room)
{
	message->msg_control = room;
	message->msg_controllen = sizeof(*room);
}

int descriptor_take(struct msghdr *message, int *ret_fd)
{
	/* the room is for two, as control messages are aligned; the kernel closes what does not fit */
	int fds[2] = { -1, -1 };
	struct cmsghdr *cmsg;

	for (cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg))
		if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
			memcpy(fds, CMSG_DATA(cmsg), min_of(cmsg->cmsg_len - CMSG_LEN(0), sizeof(fds)));
	*ret_fd = fds[0];
	if (fds[1] < 0 && !(message->msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	*ret_fd = -1;
	return -EBADMSG;
}
