// SPDX-License-Identifier: Apache-2.0
#include "process/container.h"

#include <string.h>

static const char hex_digits[] = "0123456789abcdef";

/*
 * A path component is the id alone or between a runtime's prefix and ".scope":
 * "docker-ID.scope", "cri-containerd-ID.scope", "crio-ID.scope", "libpod-ID.scope".
 */
static bool id_in_component(const char *component, size_t length, char ret_id[static 65])
{
	const char *start = component;
	size_t digits;

	/* the runtime's own process beside the container */
	if (memmem(component, length, "conmon", 6))
		return false;
	if (length > 6 && !memcmp(component + length - 6, ".scope", 6)) {
		length -= 6;
		start = memrchr(component, '-', length);
		start = start ? start + 1 : component;
		length -= (size_t)(start - component);
	}
	/* a pod of cri-containerd in systemd's naming: "kubepods-...slice:cri-containerd:ID" */
	component = memrchr(start, ':', length);
	if (component) {
		length -= (size_t)(component + 1 - start);
		start = component + 1;
	}
	digits = min_of(strspn(start, hex_digits), length);
	if (digits == 64 && length == 64) {
		memcpy(ret_id, start, 64);
		ret_id[64] = '\0';
		return true;
	}
	if (digits != 32 || length <= 33 || length > 64 || start[32] != '-' ||
	    strspn(start + 33, "0123456789") < length - 33)
		return false;
	memcpy(ret_id, start, length);
	ret_id[length] = '\0';
	return true;
}

int container_id_from_cgroup(const char *text, char ret_id[static 65])
{
	bool found = false;

	while (*text) {
		size_t line = strcspn(text, "\n");
		const char *end = text + line;
		/* "12:cpu,cpuacct:/path" */
		const char *path = memchr(text, ':', line);

		path = path ? memchr(path + 1, ':', (size_t)(end - path - 1)) : NULL;
		while (path && path < end) {
			const char *component = path + 1;
			size_t length;

			path = memchr(component, '/', (size_t)(end - component));
			length = (size_t)((path ? path : end) - component);
			if (id_in_component(component, length, ret_id))
				found = true;
		}
		if (found)
			return 0;
		text = *end ? end + 1 : end;
	}
	return -ENOENT;
}
