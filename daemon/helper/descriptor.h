/* SPDX-License-Identifier: Apache-2.0 */
/* The one descriptor that may come with a packet of helper/protocol.h. */
#ifndef STACKTAP_HELPER_DESCRIPTOR_H
#define STACKTAP_HELPER_DESCRIPTOR_H

#include <sys/socket.h>

#include "base/macro.h"

union descriptor_room {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* @fd, -1: none, with @message; @room lasts until it is sent. */
void descriptor_put(struct msghdr *message, union descriptor_room *room, int fd);
/* To be called before @message is received. */
void descriptor_expect(struct msghdr *message, union descriptor_room *room);
/*
 * The caller's, or -1: none came. -EBADMSG, and none is kept: more than one did, or the message was cut off, for there was
 * more of it than there was room.
 */
int descriptor_take(struct msghdr *message, int *ret_fd);

#endif /* STACKTAP_HELPER_DESCRIPTOR_H */
