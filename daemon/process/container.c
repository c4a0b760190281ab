// SPDX-License-Identifier: Apache-2.0
#include "process/container.h"

#include <string.h>

static const char hex_digits[] = "0123456789abcdef";

static bool strip(const char **component, size_t *length, const char *prefix, const char *suffix)
{
	size_t before = strlen(prefix), behind = strlen(suffix);

	if (*length <= before + behind || memcmp(*component, prefix, before) ||
	    memcmp(*component + *length - behind, suffix, behind))
		return false;
	*component += before;
	*length -= before + behind;
	return true;
}

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
	} else if (strip(&start, &length, "libpod-", "")) {
		/* podman without systemd; "libpod-payload-ID" with the unit's own cgroup split */
		strip(&start, &length, "payload-", "");
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

/* systemd writes what a unit's name cannot hold as \xNN. */
static bool unescape_name(const char *name, size_t length, char ret_id[static 65])
{
	size_t used = 0;

	for (size_t i = 0; i < length; used++) {
		unsigned int code;

		if (used == 64)
			return false;
		if (length - i >= 4 && !memcmp(name + i, "\\x", 2) &&
		    sscanf(name + i + 2, "%2x", &code) == 1 && code) {
			ret_id[used] = (char)code;
			i += 4;
		} else {
			ret_id[used] = name[i++];
		}
	}
	ret_id[used] = '\0';
	return used > 0;
}

/*
 * Machines have names: "lxc.payload.NAME" or "lxc/NAME", "systemd-nspawn@NAME.service",
 * "machine-NAME.scope"; the last of virtual machines as well, which are no containers.
 */
static bool name_in_component(const char *component, size_t length, bool is_in_lxc,
			      char ret_id[static 65])
{
	if (strip(&component, &length, "machine-", ".scope"))
		return (length < 4 || memcmp(component, "qemu", 4)) &&
		       unescape_name(component, length, ret_id);
	if (is_in_lxc || strip(&component, &length, "lxc.payload.", "") ||
	    strip(&component, &length, "systemd-nspawn@", ".service"))
		return unescape_name(component, length, ret_id);
	return false;
}

enum container_form container_of_component(const char *component, size_t length, bool is_in_lxc,
					   char ret_id[static 65])
{
	if (id_in_component(component, length, ret_id))
		return CONTAINER_ID;
	return name_in_component(component, length, is_in_lxc, ret_id) ? CONTAINER_MACHINE :
									 CONTAINER_NONE;
}
