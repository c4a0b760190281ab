// SPDX-License-Identifier: Apache-2.0
#include "view/convert.h"

#include <string.h>

const struct convert_format convert_formats[] = {
	{
		.name = "pprof", .endings = { ".pb.gz", ".pprof", ".pgo" }, .is_binary = true,
		.loss = "times and CPUs", .model = { .is_exact = true, .with_remarks = true }, .write = pprof_write,
	}, {
		.name = "folded", .endings = { ".folded", ".collapsed", ".txt" },
		.loss = "times, threads, process ids, containers, services, cgroups, addresses, files and "
			"lines",
		.write = folded_write,
	}, {
		.name = "speedscope", .endings = { ".speedscope.json", ".speedscope" },
		.loss = "times but for their order, containers, services, cgroups, addresses and lines",
		.model = { .with_times = true }, .write = speedscope_write,
	}, {
		.name = "firefox", .endings = { ".firefox.json" },
		.loss = "containers, services, cgroups, weights, addresses and lines",
		.model = { .with_times = true }, .write = firefox_write,
	}, {
		.name = "perf-script", .endings = { ".perf", ".perf-script" },
		.loss = "CPUs, containers, services, cgroups and lines",
		.model = { .with_times = true, .is_exact = true }, .write = perf_script_write,
	},
	{ 0 },
};

const struct convert_format *convert_by_name(const char *name)
{
	for (const struct convert_format *format = convert_formats; format->name; format++)
		if (!strcmp(format->name, name))
			return format;
	return NULL;
}

bool convert_ends_in(const char *path, const char *ending)
{
	size_t length = strlen(path), wanted = strlen(ending);

	return length > wanted && !strcmp(path + length - wanted, ending);
}

const struct convert_format *convert_by_path(const char *path)
{
	for (const struct convert_format *format = convert_formats; format->name; format++)
		for (size_t i = 0; i < ARRAY_SIZE(format->endings) && format->endings[i]; i++)
			if (convert_ends_in(path, format->endings[i]))
				return format;
	return NULL;
}
