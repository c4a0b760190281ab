/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a listener listens: a port of the loopback interface, "8080", "127.0.0.1:8080", "[::1]:8080",
 * "localhost:0", or a unix socket, a path with a slash. No other interface: what is served here goes to
 * who works on this host.
 */
#ifndef STACKTAP_WEB_ADDRESS_H
#define STACKTAP_WEB_ADDRESS_H

#include <sys/socket.h>

#include "base/macro.h"

enum { ADDRESS_NAME_MAX = 128 };

struct address {
	struct sockaddr_storage storage;
	socklen_t size;
};

/* -EINVAL: it is neither; -EADDRNOTAVAIL: another interface; -ENAMETOOLONG: of a path. */
int address_parse(const char *text, struct address *ret_address);
bool address_is_unix(const struct address *address);
/*
 * A listening socket that does not block; port 0 is replaced by the one that it got. A unix socket is its
 * owner's alone, and takes the place of one that nobody listens on any more. -errno
 */
int address_listen(struct address *address, int *ret_fd);
/* "http://127.0.0.1:8080", or the path. */
void address_name(const struct address *address, char *ret_name, size_t size);

#endif /* STACKTAP_WEB_ADDRESS_H */
