// SPDX-License-Identifier: Apache-2.0
#include "view/report_load.h"

#include "view/recording.h"
#include "view/report_build.h"

static void report_builder_freep(struct report_builder **builder)
{
	report_builder_free(*builder);
}

static int begin_again(void *ctx, struct reader **ret_reader)
{
	return report_builder_again(ctx, ret_reader);
}

int report_load(const char *path, const struct selection *selection, enum report_detail detail,
		struct report **ret_report, char *ret_error, size_t error_size)
{
	_cleanup_(report_builder_freep) struct report_builder *builder = NULL;
	struct recording_again again = { .begin = begin_again };
	bool is_cut;
	int err;

	err = report_builder_new(selection, detail, &builder);
	if (err) {
		snprintf(ret_error, ret_error ? error_size : 0, "out of memory");
		return err;
	}
	again.ctx = builder;
	err = recording_read_twice(path, selection, report_builder_reader(builder), &again, &is_cut,
				   ret_error, error_size);
	if (err)
		return err;
	if (again.err)
		report_builder_give_up(builder);
	err = report_builder_finish(builder, is_cut, ret_report);
	if (err)
		snprintf(ret_error, ret_error ? error_size : 0, RECORDING_TOO_LARGE, recording_name(path));
	else if (again.copy_err)
		(*ret_report)->copy_errno = -again.copy_err;
	return err;
}
