// SPDX-License-Identifier: Apache-2.0
#include "cli/record_format.h"

#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/convert.h"
#include "cli/flamegraph.h"

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int say_endings(const char *output)
{
	char list[512] = ".otlp .html .svg";
	size_t used = strlen(list);

	for (const struct convert_format *format = convert_formats; format->name; format++)
		for (size_t i = 0; i < ARRAY_SIZE(format->endings) && format->endings[i]; i++) {
			if (strcmp(format->endings[i], ".pgo") && used < sizeof(list))
				used += (size_t)snprintf(list + used, sizeof(list) - used, " %s",
							 format->endings[i]);
		}
	return cli_usage_error("`%s' has an unknown extension; known extensions are %s", output, list);
}

/* Standard output, a device or a pipe takes OTLP, and so does a name without any ending. */
static bool is_plain(const char *output)
{
	const char *name = last_part(output), *dot = strrchr(name, '.');
	struct stat st;

	return !strcmp(output, "-") || !dot || dot == name || (!stat(output, &st) && !S_ISREG(st.st_mode));
}

int record_format_of(const char *output, struct record_format *ret_format)
{
	*ret_format = (struct record_format){ .output = output };
	if (is_plain(output) || convert_ends_in(output, ".otlp"))
		return CLI_OK;
	if (convert_ends_in(output, ".pgo"))
		return cli_usage_error("`%s' needs lines, which no recording has yet: record to .otlp, run "
				       "`stacktap symbolize', then `stacktap convert'", output);
	if (convert_ends_in(output, ".html"))
		ret_format->kind = RECORD_HTML;
	else if (convert_ends_in(output, ".svg"))
		ret_format->kind = RECORD_SVG;
	else if ((ret_format->convert = convert_by_path(output)))
		ret_format->kind = RECORD_CONVERTED;
	else
		return say_endings(output);
	if (asprintf(&ret_format->recording, "%s.%d.otlp", output, (int)getpid()) >= 0)
		return CLI_OK;
	ret_format->recording = NULL;
	return cli_error("out of memory");
}

int record_format_write(const struct record_format *format, bool is_quiet)
{
	int ret;

	/* no samples, no file; that was said */
	if (!format->recording || access(format->recording, F_OK))
		return CLI_OK;
	if (format->kind == RECORD_CONVERTED)
		ret = convert_write(&(struct convert_job){
			.path = format->recording, .output = format->output,
			.name = last_part(format->output), .format = format->convert,
			.is_quiet = is_quiet,
		});
	else
		ret = flamegraph_write(&(struct flamegraph_job){
			.pair.paths[DIFF_AFTER] = format->recording, .output = format->output,
			.title = last_part(format->output), .is_svg = format->kind == RECORD_SVG,
			.is_quiet = is_quiet,
		});
	if (!ret)
		unlink(format->recording);
	else
		fprintf(stderr, "stacktap: what was recorded is in %s\n", format->recording);
	return ret;
}

void record_format_done(struct record_format *format)
{
	free(format->recording);
}
