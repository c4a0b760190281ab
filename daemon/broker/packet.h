/* SPDX-License-Identifier: Apache-2.0 */
/* One packet of broker/protocol.h, either way. */
#ifndef STACKTAP_BROKER_PACKET_H
#define STACKTAP_BROKER_PACKET_H

#include "base/macro.h"
#include "broker/protocol.h"

struct packet {
	struct broker_header header;
	void *payload;		/* with room for @bytes when it is received, which then is what came */
	size_t bytes;
	int fds[BROKER_FDS_MAX];
	size_t fd_count;
};

int packet_send(int socket, const struct packet *packet);
/* Descriptors are the caller's. -EPIPE: the other end is gone; -EBADMSG: that is no packet. */
int packet_receive(int socket, struct packet *packet);
void packet_close(struct packet *packet);

#endif /* STACKTAP_BROKER_PACKET_H */
