// SPDX-License-Identifier: Apache-2.0
#include "resolve/payer.h"

#include <string.h>

#include "base/hash.h"

static bool begins(const char *path, const char *prefix)
{
	return !strncmp(path, prefix, strlen(prefix));
}

/* The component behind the one that @path, which has no slash in front, begins with. */
static const char *next(const char *path)
{
	path += strcspn(path, "/");
	return path + strspn(path, "/");
}

/* What starts containers, and has their cgroups below its own. */
static bool is_runtime(const char *path)
{
	static const char *const services[] = { "containerd.service/", "docker.service/", "crio.service/",
						"kubelet.service/" };

	for (size_t i = 0; i < ARRAY_SIZE(services); i++)
		if (begins(path, services[i]))
			return true;
	return false;
}

static bool has_pods(const char *path)
{
	static const char name[] = "kubepods";
	const char *at = strstr(path, name);

	return at && at < path + strcspn(path, "/");
}

/* How many components of the path only root makes. */
static unsigned int depth_of(const char *path)
{
	if (begins(path, "kubepods"))
		return 3;
	/* LXC's: what is below is made in the container */
	if (begins(path, "lxc."))
		return 1;
	if (is_runtime(next(path)))
		return 3;
	/* a kubelet with a root of its own: /kubelet.slice/kubelet-kubepods.slice/..., /kubelet/kubepods/... */
	return has_pods(next(path)) ? 4 : 2;
}

/* "9:name=systemd:/user.slice/user-1000.slice/..." */
static const char *path_of(const char *line)
{
	const char *path = line ? strchr(line, ':') : NULL;

	path = path ? strchr(path + 1, ':') : NULL;
	if (!path)
		return "";
	path++;
	path += strspn(path, "/");
	/* seen from a cgroup namespace others are above its root */
	while (begins(path, "../"))
		path = next(path);
	return path;
}

uint32_t payer_of(const struct image_details *details)
{
	const char *path = path_of(details->cgroup), *end = path;
	uint64_t words[2] = { 0 };
	uint32_t payer;

	for (unsigned int i = depth_of(path); i && *end; i--)
		end = next(end);
	while (end > path && end[-1] == '/')
		end--;
	words[0] = hash_bytes(path, (size_t)(end - path));
	if (end == path)
		words[1] = details->user;
	payer = (uint32_t)hash_words(words, ARRAY_SIZE(words));
	return payer ? payer : 1;
}
