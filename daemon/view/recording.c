// SPDX-License-Identifier: Apache-2.0
#include "view/recording.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "export/otlp.h"
#include "export/unpack.h"
#include "view/store_reader.h"

#define UNPACK_MAX ((size_t)512 << 20)
#define COPY_STEP ((size_t)64 << 10)

static int fail(char *ret_error, size_t size, int err, const char *format, ...) _printf_(4, 5);

static int fail(char *ret_error, size_t size, int err, const char *format, ...)
{
	va_list args;

	if (ret_error) {
		va_start(args, format);
		vsnprintf(ret_error, size, format, args);
		va_end(args);
	}
	return err;
}

const char *recording_name(const char *path)
{
	return strcmp(path, "-") ? path : "standard input";
}

static void store_reader_closep(struct store_reader **reader)
{
	if (*reader)
		store_reader_close(*reader);
}

static int widen(const uint8_t *data, size_t size, struct time_span *span)
{
	_cleanup_(unpack_free) struct unpacked unpacked = { 0 };
	const OtlpProfilesData *message;
	uint64_t end;

	if (!unpack(&unpacked, OTLP_DATA_DESCRIPTOR, data, size, UNPACK_MAX))
		return unpacked.is_exhausted ? -E2BIG : -EBADMSG;
	message = (const OtlpProfilesData *)unpacked.message;
	for (size_t i = 0; i < message->n_resource_profiles; i++) {
		const OtlpResourceProfiles *group = message->resource_profiles[i];

		for (size_t k = 0; k < group->n_scope_profiles; k++) {
			const OtlpScopeProfiles *scope = group->scope_profiles[k];

			for (size_t m = 0; m < scope->n_profiles; m++) {
				const OtlpProfile *profile = scope->profiles[m];

				if (!profile->n_samples)
					continue;
				if (__builtin_add_overflow(profile->time_unix_nano,
							   profile->duration_nano, &end))
					end = UINT64_MAX;
				span->from = min_of(span->from, (uint64_t)profile->time_unix_nano);
				span->to = max_of(span->to, end);
			}
		}
	}
	return 0;
}

/* When the recording begins and ends. What is damaged is for the pass that follows to tell. */
static int find_bounds(int fd, struct reader *reader)
{
	_cleanup_(store_reader_closep) struct store_reader *store = NULL;
	struct time_span span = { .from = UINT64_MAX };
	const uint8_t *data;
	size_t size;
	int err;

	err = store_reader_open(fd, &store);
	if (err)
		return err;
	while (store_reader_next(store, &data, &size) > 0)
		if (widen(data, size, &span))
			break;
	if (span.from <= span.to)
		reader_set_bounds(reader, span.from, span.to);
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

/* What can be read once only, in a file without a name. */
static int copy_aside(int *fd)
{
	_cleanup_free_ char *bytes = malloc(COPY_STEP);
	_cleanup_fclose_ FILE *copy = tmpfile();
	ssize_t got;

	if (!copy || !bytes)
		return -errno;
	while ((got = read(*fd, bytes, COPY_STEP))) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (fwrite(bytes, 1, (size_t)got, copy) != (size_t)got)
			return -errno;
	}
	if (fflush(copy))
		return -errno;
	close(*fd);
	*fd = fcntl(fileno(copy), F_DUPFD_CLOEXEC, 3);
	return *fd < 0 || lseek(*fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

static int open_input(const char *path, bool needs_two_passes, int *ret_fd)
{
	int err;

	if (strcmp(path, "-"))
		*ret_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	else if (isatty(STDIN_FILENO))
		return -ENOTTY;
	else
		*ret_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	if (*ret_fd < 0)
		return -errno;
	if (!needs_two_passes || lseek(*ret_fd, 0, SEEK_SET) == 0)
		return 0;
	err = copy_aside(ret_fd);
	if (err && *ret_fd >= 0)
		close(steal_fd(ret_fd));
	return err;
}

static int read_all(struct store_reader *store, const char *name, struct reader *reader,
		    bool *ret_is_cut, char *ret_error, size_t error_size)
{
	const uint8_t *data;
	size_t size;
	int ret, err;

	for (uint64_t message = 1; (ret = store_reader_next(store, &data, &size)); message++) {
		if (ret == -ENODATA) {
			*ret_is_cut = true;
			break;
		}
		err = ret < 0 ? ret : reader_add(reader, data, size);
		if (err == -EBADMSG)
			return fail(ret_error, error_size, err,
				    "%s is damaged or holds no OTLP profiles (message %" PRIu64 ").",
				    name, message);
		if (err == -E2BIG)
			return fail(ret_error, error_size, err,
				    "Message %" PRIu64 " of %s needs more memory than is allowed.",
				    message, name);
		if (err)
			return fail(ret_error, error_size, err, "Cannot read %s: %s.", name,
				    strerror(-err));
	}
	if (reader_totals(reader)->messages)
		return 0;
	if (*ret_is_cut)
		return fail(ret_error, error_size, -EBADMSG,
			    "%s is cut off inside its first message.", name);
	return fail(ret_error, error_size, -ENODATA, "%s holds no profiles.", name);
}

int recording_read(const char *path, const struct selection *selection, struct reader *reader,
		   bool *ret_is_cut, char *ret_error, size_t error_size)
{
	_cleanup_(store_reader_closep) struct store_reader *store = NULL;
	bool needs_two_passes = selection && selection_needs_bounds(selection);
	const char *name = recording_name(path);
	_cleanup_close_ int fd = -1;
	int err;

	*ret_is_cut = false;
	err = open_input(path, needs_two_passes, &fd);
	if (!err && needs_two_passes)
		err = find_bounds(fd, reader);
	if (!err)
		err = store_reader_open(fd, &store);
	if (err == -ENOTTY)
		return fail(ret_error, error_size, err,
			    "Standard input is a terminal: name a file, or redirect one to it.");
	if (err)
		return fail(ret_error, error_size, err, "Cannot open %s: %s.", name,
			    strerror(-err));
	return read_all(store, name, reader, ret_is_cut, ret_error, error_size);
}
