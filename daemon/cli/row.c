// SPDX-License-Identifier: Apache-2.0
#include "cli/row.h"

#include <inttypes.h>
#include <string.h>

#include "cli/fit.h"

enum { LINE_TEXT = 4096 };	/* bytes of FILE:LINE: as much as of a path */

/* The end of a path that is longer. */
static const char *line_text(const struct diff_row *row, char text[LINE_TEXT])
{
	const size_t length = strlen(row->file), most = LINE_TEXT - sizeof(":18446744073709551615");

	snprintf(text, LINE_TEXT, "%s:%" PRIu64, row->file + (length > most ? length - most : 0), row->line);
	return text;
}

bool row_is_wanted(const struct name_filter *filter, const struct diff_row *row)
{
	char line[LINE_TEXT];

	return name_filter_has(filter, row->owner, row->line ? line_text(row, line) : row->name, row->file);
}

bool row_is_wanted_frame(const void *filter, const struct model_frame *frame)
{
	return name_filter_has(filter, "", frame->name, frame->file);
}

void row_print(enum view_by by, const struct diff_row *row, int used)
{
	char line[LINE_TEXT];

	if (by_is_frame(by))
		used += fit_print("[%c] ", row->is_kernel ? 'k' : 'u');
	if (row->line && *row->owner)
		return fit_function(used, line_text(row, line), "", row->owner);
	if (row->line)
		return fit_path(used, line_text(row, line));
	switch (by) {
	case BY_LINE:
	case BY_FUNCTION:
		return fit_function(used, row->name, "", row->file);
	case BY_OBJECT:
		return fit_path(used, *row->file ? row->file : "[no mapping]");
	case BY_THREAD:
		used += fit_end(row->owner, max_of(fit_left(used) / 2, 1));
		used += fit_print(", ");
		return fit_path(used, *row->name ? row->name : "[no name]");
	default:
		return fit_path(used, *row->owner ? row->owner : "[none]");
	}
}

void row_put(struct json *json, enum view_by by, const struct diff_row *row)
{
	if (row->line) {
		json_string(json, "source", row->file);
		json_u64(json, "line", row->line);
		if (*row->owner)
			json_string(json, "file", row->owner);
		json_bool(json, "kernel", row->is_kernel);
		return;
	}
	switch (by) {
	case BY_LINE:
	case BY_FUNCTION:
		json_string(json, "name", row->name);
		json_string(json, "file", row->file);
		json_bool(json, "kernel", row->is_kernel);
		break;
	case BY_OBJECT:
		json_string(json, "file", row->file);
		json_bool(json, "kernel", row->is_kernel);
		break;
	case BY_THREAD:
		json_string(json, "process", row->owner);
		json_string(json, "thread", row->name);
		break;
	default:
		json_string(json, by_name(by), row->owner);
	}
}
