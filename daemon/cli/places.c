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

int places_check(struct debugfile_places *places, char **ret_default)
{
	for (size_t i = 0; i < places->directory_count; i++)
		if (access(places->directories[i], R_OK | X_OK) < 0)
			return cli_error("Cannot read %s: %s.", places->directories[i],
					 strerror(errno));
	for (size_t i = 0; i < places->binary_count; i++)
		if (access(places->binaries[i], R_OK) < 0)
			return cli_error("Cannot read %s: %s.", places->binaries[i], strerror(errno));
	if (access(places->sysroot, X_OK) < 0)
		return cli_error("Cannot read %s: %s.", places->sysroot, strerror(errno));
	if (places->directory_count)
		return CLI_OK;
	if (asprintf(ret_default, "%s/usr/lib/debug",
		     strcmp(places->sysroot, "/") ? places->sysroot : "") < 0) {
		*ret_default = NULL;
		return cli_error("out of memory");
	}
	return places_add(&places->directories, &places->directory_count, *ret_default);
}
