// SPDX-License-Identifier: Apache-2.0
#include "capture/hotplug.h"

#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

int hotplug_open(void)
{
	const struct sockaddr_nl address = {
		.nl_family = AF_NETLINK,
		.nl_groups = 1,	/* the kernel's own messages, not those that udev sends on */
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			NETLINK_KOBJECT_UEVENT);

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

bool hotplug_parse(const char *message, uint32_t *ret_cpu, bool *ret_online)
{
	const char *path;
	unsigned int cpu;
	int end = 0;

	if (!strncmp(message, "online@", 7))
		*ret_online = true;
	else if (!strncmp(message, "offline@", 8))
		*ret_online = false;
	else
		return false;
	path = strchr(message, '@') + 1;
	if (sscanf(path, "/devices/system/cpu/cpu%5u%n", &cpu, &end) != 1 || path[end])
		return false;
	*ret_cpu = cpu;
	return true;
}

int hotplug_read(int fd, uint32_t *ret_cpu, bool *ret_online)
{
	char message[2048];
	struct sockaddr_nl from;
	socklen_t from_size = sizeof(from);
	ssize_t size;

	while ((size = recvfrom(fd, message, sizeof(message) - 1, MSG_DONTWAIT,
				(struct sockaddr *)&from, &from_size)) >= 0) {
		message[size] = '\0';
		/* anybody with CAP_NET_ADMIN may send here; the kernel is port 0 */
		if (from_size == sizeof(from) && !from.nl_pid &&
		    hotplug_parse(message, ret_cpu, ret_online))
			return 1;
		from_size = sizeof(from);
	}
	return errno == ENOBUFS ? -ENOBUFS : 0;
}
