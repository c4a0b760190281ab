// SPDX-License-Identifier: Apache-2.0
#include "view/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "view/report_build.h"
#include "view/store_reader.h"

static int report_fail(char *ret_error, size_t size, int err, const char *format, ...)
	_printf_(4, 5);

static int report_fail(char *ret_error, size_t size, int err, const char *format, ...)
{
	va_list args;

	if (ret_error) {
		va_start(args, format);
		vsnprintf(ret_error, size, format, args);
		va_end(args);
	}
	return err;
}

static void store_reader_closep(struct store_reader **reader)
{
	if (*reader)
		store_reader_close(*reader);
}

static void report_builder_freep(struct report_builder **builder)
{
	report_builder_free(*builder);
}

int report_load(const char *path, bool with_addresses, struct report **ret_report, char *ret_error,
		size_t error_size)
{
	_cleanup_(report_builder_freep) struct report_builder *builder = NULL;
	_cleanup_(store_reader_closep) struct store_reader *reader = NULL;
	struct report *report;
	const uint8_t *data;
	bool is_cut = false;
	size_t size;
	int ret, err;

	err = store_reader_open(path, &reader);
	if (err)
		return report_fail(ret_error, error_size, err, "Cannot open %s: %s.", path,
				   strerror(-err));
	err = report_builder_new(with_addresses, &builder);
	if (err)
		return report_fail(ret_error, error_size, err, "Out of memory.");
	for (uint64_t message = 1; (ret = store_reader_next(reader, &data, &size)); message++) {
		if (ret == -ENODATA) {
			is_cut = true;
			break;
		}
		err = ret < 0 ? ret : report_builder_add(builder, data, size);
		if (err == -EBADMSG)
			return report_fail(ret_error, error_size, err,
					   "%s is damaged or holds no OTLP profiles (message %" PRIu64
					   ").", path, message);
		if (err == -E2BIG)
			return report_fail(ret_error, error_size, err,
					   "Message %" PRIu64 " of %s needs more memory than is allowed.",
					   message, path);
		if (err)
			return report_fail(ret_error, error_size, err, "Cannot read %s: %s.", path,
					   strerror(-err));
	}
	err = report_builder_finish(builder, is_cut, &report);
	if (err)
		return report_fail(ret_error, error_size, err, "%s needs more memory than is allowed.",
				   path);
	if (!report->messages)
		err = is_cut ? -EBADMSG : -ENODATA;
	if (err) {
		report_free(report);
		return report_fail(ret_error, error_size, err, is_cut ?
				   "%s is cut off inside its first message." :
				   "%s holds no profiles.", path);
	}
	*ret_report = report;
	return 0;
}
