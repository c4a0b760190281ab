// SPDX-License-Identifier: Apache-2.0
#include "cli/row.h"

#include "cli/fit.h"

void row_print(enum view_by by, const struct diff_row *row, int used)
{
	if (by_is_frame(by))
		used += fit_print("[%c] ", row->is_kernel ? 'k' : 'u');
	switch (by) {
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
	switch (by) {
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
