// SPDX-License-Identifier: Apache-2.0
#include "web/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "web/guard.h"

enum { BACKLOG = 16, PORT_DIGITS = 5, HOST_MAX = 64, SOCKET_MODE = 0600 };

static bool parse_port(const char *text, uint16_t *ret_port)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long port = UINT16_MAX + 1ul;

	if (digits && digits <= PORT_DIGITS)
		port = strtoul(text, NULL, 10);
	*ret_port = (uint16_t)port;
	return !text[digits] && port <= UINT16_MAX;
}

static int parse_unix(const char *text, struct address *address)
{
	struct sockaddr_un *un = (struct sockaddr_un *)(void *)&address->storage;

	if (strlen(text) >= sizeof(un->sun_path))
		return -ENAMETOOLONG;
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, text, strlen(text) + 1);
	address->size = sizeof(*un);
	return 0;
}

static int parse_host(const char *host, uint16_t port, struct address *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&address->storage;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&address->storage;

	if (!strcmp(host, "localhost"))
		host = "127.0.0.1";
	if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		address->size = sizeof(*in);
	} else if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		address->size = sizeof(*in6);
	} else {
		return -EINVAL;
	}
	return guard_is_loopback(host) ? 0 : -EADDRNOTAVAIL;
}

int address_parse(const char *text, struct address *ret_address)
{
	const char *colon = strrchr(text, ':'), *port_text = colon ? colon + 1 : text;
	char host[HOST_MAX] = "localhost";
	size_t length = colon ? (size_t)(colon - text) : 0;
	uint16_t port;

	memset(ret_address, 0, sizeof(*ret_address));
	if (strchr(text, '/'))
		return parse_unix(text, ret_address);
	if (length > 2 && text[0] == '[' && text[length - 1] == ']') {
		text++;
		length -= 2;
	} else if (memchr(text, ':', length)) {
		return -EINVAL;
	}
	if (!parse_port(port_text, &port) || length >= sizeof(host) || colon == text)
		return -EINVAL;
	if (colon)
		snprintf(host, sizeof(host), "%.*s", (int)length, text);
	return parse_host(host, port, ret_address);
}

bool address_is_unix(const struct address *address)
{
	return address->storage.ss_family == AF_UNIX;
}

/* Is there a socket by that name that nobody listens on? */
static bool is_left_over(const struct address *address)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)&address->storage;
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (fd < 0 || lstat(un->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return false;
	return connect(fd, (const struct sockaddr *)un, address->size) && errno == ECONNREFUSED;
}

static int bind_unix(int fd, const struct address *address)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)&address->storage;

	/* before it has a name, so that it is never anybody else's */
	if (fchmod(fd, SOCKET_MODE))
		return -errno;
	if (!bind(fd, (const struct sockaddr *)un, address->size))
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	if (!is_left_over(address) || unlink(un->sun_path))
		return -EADDRINUSE;
	return bind(fd, (const struct sockaddr *)un, address->size) ? -errno : 0;
}

static int bind_port(int fd, const struct address *address)
{
	/* connections of an instance before may still linger */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)))
		return -errno;
	return bind(fd, (const struct sockaddr *)&address->storage, address->size) ? -errno : 0;
}

int address_listen(struct address *address, int *ret_fd)
{
	_cleanup_close_ int fd = socket(address->storage.ss_family,
					SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t size = address->size;
	int err;

	if (fd < 0)
		return -errno;
	err = address_is_unix(address) ? bind_unix(fd, address) : bind_port(fd, address);
	if (err)
		return err;
	if (listen(fd, BACKLOG) || (!address_is_unix(address) &&
				    getsockname(fd, (struct sockaddr *)&address->storage, &size)))
		return -errno;
	*ret_fd = steal_fd(&fd);
	return 0;
}

void address_name(const struct address *address, char *ret_name, size_t size)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)&address->storage;
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)&address->storage;
	const struct sockaddr_in6 *in6 = (const void *)&address->storage;
	char host[INET6_ADDRSTRLEN] = "";

	switch (address->storage.ss_family) {
	case AF_UNIX:
		snprintf(ret_name, size, "%s", un->sun_path);
		break;
	case AF_INET:
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(ret_name, size, "http://%s:%u", host, ntohs(in->sin_port));
		break;
	default:
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(ret_name, size, "http://[%s]:%u", host, ntohs(in6->sin6_port));
	}
}
