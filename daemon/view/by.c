// SPDX-License-Identifier: Apache-2.0
#include "view/by.h"

#include <string.h>

static const char *const names[BY_COUNT] = {
	[BY_FUNCTION] = "function", [BY_OBJECT] = "object", [BY_LINE] = "line", [BY_PROCESS] = "process",
	[BY_THREAD] = "thread", [BY_CONTAINER] = "container", [BY_SERVICE] = "service",
	[BY_CGROUP] = "cgroup",
};

static const char *const plurals[BY_COUNT] = {
	[BY_FUNCTION] = "functions", [BY_OBJECT] = "objects", [BY_LINE] = "lines", [BY_PROCESS] = "processes",
	[BY_THREAD] = "threads", [BY_CONTAINER] = "containers", [BY_SERVICE] = "services",
	[BY_CGROUP] = "cgroups",
};

const char *by_name(enum view_by by)
{
	return names[by];
}

const char *by_name_of(enum view_by by, size_t count)
{
	return count == 1 ? names[by] : plurals[by];
}

bool by_parse(const char *text, enum view_by *ret_by)
{
	for (size_t i = 0; i < BY_COUNT; i++)
		if (!strcmp(text, names[i])) {
			*ret_by = (enum view_by)i;
			return true;
		}
	return false;
}

bool by_is_frame(enum view_by by)
{
	return by == BY_FUNCTION || by == BY_OBJECT || by == BY_LINE;
}
