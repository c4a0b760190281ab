// SPDX-License-Identifier: Apache-2.0
#include "process/cgroup.h"

#include <string.h>

#include "process/container.h"

enum {
	UUID_CHARS = 36,
	STATIC_POD_CHARS = 32,	/* the kubelet gives pods from files a hash of what is in them */
};

/* "1234abcd-..." or, where systemd has the naming, "1234abcd_..."; 0: it is neither. */
static size_t pod_uid(const char *text, size_t length, char ret_uid[static CGROUP_POD_BYTES])
{
	size_t used;

	for (used = 0; used < min_of(length, (size_t)UUID_CHARS); used++) {
		bool is_dash = text[used] == '-' || text[used] == '_';

		if (is_dash ? used != 8 && used != 13 && used != 18 && used != 23 :
			      !memchr("0123456789abcdef", text[used], 16))
			break;
		ret_uid[used] = is_dash ? '-' : text[used];
	}
	ret_uid[used] = '\0';
	if (used == UUID_CHARS && ret_uid[8] == '-' && ret_uid[13] == '-' && ret_uid[18] == '-' &&
	    ret_uid[23] == '-')
		return used;
	return used == STATIC_POD_CHARS && !strchr(ret_uid, '-') ? used : 0;
}

/* "pod" and a UID stand at the start of a component, or behind the dash of a slice's name. */
static bool pod_of_component(const char *component, size_t length, struct cgroup_facts *facts)
{
	const char *end = component + length, *at = component;
	char uid[CGROUP_POD_BYTES];

	for (; (at = memmem(at, (size_t)(end - at), "pod", 3)); at += 3) {
		size_t used;

		if (at != component && at[-1] != '-')
			continue;
		used = pod_uid(at + 3, (size_t)(end - at - 3), uid);
		if (!used || (at + 3 + used < end && at[3 + used] != '.' && at[3 + used] != ':'))
			continue;
		memcpy(facts->pod_uid, uid, sizeof(uid));
		return true;
	}
	return false;
}

/* The class stands before the pod, in a component of its own or in the slice's name; the best has no name. */
static const char *pod_qos(const char *path, size_t length)
{
	const char *last = memrchr(path, '/', length);
	const char *start = last && last > path ? memrchr(path, '/', (size_t)(last - path)) : NULL;

	start = start ? start : path;
	length -= (size_t)(start - path);
	if (memmem(start, length, "burstable", 9))
		return "Burstable";
	return memmem(start, length, "besteffort", 10) ? "BestEffort" : "Guaranteed";
}

static bool ends_with(const char *text, size_t length, const char *suffix)
{
	size_t behind = strlen(suffix);

	return length > behind && !memcmp(text + length - behind, suffix, behind);
}

static void take_container(struct cgroup_facts *facts, enum container_form form, const char *id)
{
	strcpy(facts->container_id, id);
	strcpy(facts->container_name, form == CONTAINER_MACHINE ? id : "");
}

static void read_component(struct cgroup_facts *facts, const char *component, size_t length,
			   bool is_in_lxc)
{
	char id[CGROUP_ID_BYTES];
	enum container_form form = container_of_component(component, length, is_in_lxc, id);

	if (form != CONTAINER_NONE) {
		take_container(facts, form, id);
		/* a unit of podman's that gave its cgroup to the container is the container's */
		if (length < 15 || memcmp(component, "libpod-payload-", 15) != 0)
			facts->unit[0] = '\0';
		return;
	}
	if ((ends_with(component, length, ".service") || ends_with(component, length, ".scope")) &&
	    length < sizeof(facts->unit)) {
		memcpy(facts->unit, component, length);
		facts->unit[length] = '\0';
	}
}

static void read_path(const char *path, size_t length, struct cgroup_facts *ret_facts)
{
	const char *end = path + length, *next = memchr(path, '/', length);
	const bool has_pods = memmem(path, length, "kubepods", 8);
	bool is_in_lxc = false;

	*ret_facts = (struct cgroup_facts){ 0 };
	while (next) {
		const char *component = next + 1;
		size_t size;

		next = memchr(component, '/', (size_t)(end - component));
		size = (size_t)((next ? next : end) - component);
		if (has_pods && pod_of_component(component, size, ret_facts))
			ret_facts->pod_qos = pod_qos(path, (size_t)(component + size - path));
		read_component(ret_facts, component, size, is_in_lxc);
		is_in_lxc = size == 3 && !memcmp(component, "lxc", 3);
	}
}

void cgroup_read(const char *text, struct cgroup_facts *ret_facts)
{
	struct cgroup_facts facts;
	size_t best = 0;

	*ret_facts = (struct cgroup_facts){ 0 };
	while (*text) {
		size_t line = strcspn(text, "\n"), length;
		const char *begin = text, *end = text + line;
		/* "12:cpu,cpuacct:/path" */
		const char *path = memchr(text, ':', line);

		path = path ? memchr(path + 1, ':', (size_t)(end - path - 1)) : NULL;
		length = path ? (size_t)(end - path - 1) : 0;
		text = *end ? end + 1 : end;
		if (!length)
			continue;
		read_path(path + 1, length, &facts);
		if (!facts.container_id[0] == !ret_facts->container_id[0] ? length <= best :
									   !facts.container_id[0])
			continue;
		best = length;
		*ret_facts = facts;
		if (length > 1 && line < sizeof(ret_facts->line)) {
			memcpy(ret_facts->line, begin, line);
			ret_facts->line[line] = '\0';
		}
	}
}

bool cgroup_unit_service(const char *unit, char *ret_service, size_t size)
{
	size_t length = strlen(unit);

	if (!ends_with(unit, length, ".service") || !strncmp(unit, "user@", 5) ||
	    !strncmp(unit, "systemd-nspawn@", 15))
		return false;
	snprintf(ret_service, size, "%.*s", (int)(length - strlen(".service")), unit);
	return true;
}
