// SPDX-License-Identifier: Apache-2.0
#include "cli/places.h"

#include <string.h>

#include "cli/cli.h"

int places_add(const char ***list, size_t *count, const char *path)
{
	const char **grown = reallocarray(*list, *count + 1, sizeof(*grown));

	if (!grown)
		return cli_error("out of memory");
	*list = grown;
	grown[(*count)++] = path;
	return CLI_OK;
}

int places_parse(int option, const char *argument, struct debugfile_places *places)
{
	uint64_t ms;

	switch (option) {
	case PLACES_DEBUG_DIR:
		return places_add(&places->directories, &places->directory_count, argument);
	case PLACES_BINARY:
		return places_add(&places->binaries, &places->binary_count, argument);
	case PLACES_SYSROOT:
		places->sysroot = argument;
		return CLI_OK;
	case PLACES_DEBUGINFOD_MAX:
		return cli_parse_bytes(argument, &places->debuginfod.file_bytes) &&
		       places->debuginfod.file_bytes ? CLI_OK :
			cli_usage_error("`%s' is not a size like 100M", argument);
	case PLACES_DEBUGINFOD_TIMEOUT:
		if (!cli_parse_duration(argument, &ms) || ms > DEBUGINFOD_SECONDS_MAX * 1000ull)
			return cli_usage_error("`%s' is not a time from 1s to 1h", argument);
		places->debuginfod.seconds = (uint32_t)((ms + 999) / 1000);
		return CLI_OK;
	default:
		places->debuginfod.url = argument;
		return CLI_OK;
	}
}

int places_check(struct debugfile_places *places, char **ret_default)
{
	for (size_t i = 0; i < places->directory_count; i++)
		if (access(places->directories[i], R_OK | X_OK) < 0)
			return cli_error("cannot read %s: %s", places->directories[i],
					 strerror(errno));
	for (size_t i = 0; i < places->binary_count; i++)
		if (access(places->binaries[i], R_OK) < 0)
			return cli_error("cannot read %s: %s", places->binaries[i], strerror(errno));
	if (access(places->sysroot, X_OK) < 0)
		return cli_error("cannot read %s: %s", places->sysroot, strerror(errno));
	if (places->directory_count)
		return CLI_OK;
	if (asprintf(ret_default, "%s/usr/lib/debug",
		     strcmp(places->sysroot, "/") ? places->sysroot : "") < 0) {
		*ret_default = NULL;
		return cli_error("out of memory");
	}
	return places_add(&places->directories, &places->directory_count, *ret_default);
}

int places_cache(const char *what, char ret_path[static PATH_MAX])
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	/* what is relative there counts as not set */
	if (cache && cache[0] == '/')
		snprintf(ret_path, PATH_MAX, "%s/stacktap/%s", cache, what);
	else if (home && home[0] == '/')
		snprintf(ret_path, PATH_MAX, "%s/.cache/stacktap/%s", home, what);
	else
		return -ENOENT;
	return 0;
}

int places_debuginfod(const struct debugfile_places *places, struct debuginfod **ret_debuginfod)
{
	struct debuginfod_options options = places->debuginfod;
	char directory[PATH_MAX];
	int r;

	*ret_debuginfod = NULL;
	if (!options.url)
		return CLI_OK;
	if (debuginfod_check_url(options.url) < 0)
		return cli_usage_error("--debuginfod needs a URL like https://debuginfod.example, "
				       "not `%s'",
				       options.url);
	if (places_cache("debuginfod", directory) < 0)
		return cli_error("there is no directory to keep fetched debug files in: set HOME or "
				 "XDG_CACHE_HOME");
	options.directory = directory;
	r = debuginfod_new(&options, ret_debuginfod);
	if (r < 0)
		return cli_error("cannot keep fetched debug files in %s: %s", directory, strerror(-r));
	return CLI_OK;
}
