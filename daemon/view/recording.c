// SPDX-License-Identifier: Apache-2.0
#include "view/recording.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fail.h"
#include "export/otlp.h"
#include "export/store_list.h"
#include "export/unpack.h"
#include "view/store_reader.h"

#define UNPACK_MAX ((size_t)512 << 20)
#define COPY_STEP ((size_t)64 << 10)

static void (*told)(size_t bytes, bool is_done);

void recording_watch(void (*watch)(size_t bytes, bool is_done))
{
	told = watch;
}

const char *recording_name(const char *path)
{
	return strcmp(path, "-") ? path : "standard input";
}

const char *recording_remedy(const char *path, int err)
{
	if (err == -EACCES)
		return "; recordings are readable by their owner alone: use sudo, or chown the file";
	if (err == -ENOENT && !strcmp(path, "stacktap.otlp"))
		return "; `stacktap record' writes one";
	return "";
}

static void store_reader_closep(struct store_reader **reader)
{
	if (*reader)
		store_reader_close(*reader);
}

int recording_widen(const uint8_t *data, size_t size, struct time_span *span, uint64_t *samples)
{
	_cleanup_(unpack_free) struct unpacked unpacked = { 0 };
	const OtlpProfilesData *message;
	uint64_t end;

	if (!unpack_profiles(&unpacked, data, size, UNPACK_MAX))
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
				for (size_t n = 0; samples && n < profile->n_samples; n++)
					*samples += profile->samples[n]->n_timestamps_unix_nano ?: 1;
			}
		}
	}
	return 0;
}

/* When a file's profiles begin and end. What is damaged is for the pass that follows to tell. */
static int widen_by_file(int fd, struct time_span *span)
{
	_cleanup_(store_reader_closep) struct store_reader *store = NULL;
	const uint8_t *data;
	size_t size;
	int err;

	err = store_reader_open(fd, &store);
	if (err)
		return err;
	while (store_reader_next(store, &data, &size) > 0)
		if (recording_widen(data, size, span, NULL))
			break;
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

const char *recording_copy_place(void)
{
	const char *place = secure_getenv("TMPDIR");

	return place && *place ? place : "/tmp";
}

/* Without a name, so that its room is free once it is closed. */
static FILE *open_copy(void)
{
	_cleanup_close_ int fd = open(recording_copy_place(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	FILE *file;

	/* not every file system has these */
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/stacktap-XXXXXX", recording_copy_place());
		fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0)
			unlink(path);
	}
	file = fd < 0 ? NULL : fdopen(fd, "w+");
	if (file)
		steal_fd(&fd);
	return file;
}

/* What can be read once only, in a file without a name. */
static int copy_aside(int *fd)
{
	_cleanup_free_ char *bytes = malloc(COPY_STEP);
	_cleanup_fclose_ FILE *copy = open_copy();
	uint64_t size = 0;
	ssize_t got;

	if (!copy || !bytes)
		return -errno;
	while ((got = read(*fd, bytes, COPY_STEP))) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		size += (size_t)got;
		if (size > RECORDING_COPY_MAX)
			return -EFBIG;
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

	if (strcmp(path, "-")) {
		*ret_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	} else if (isatty(STDIN_FILENO)) {
		return -ENOTTY;
	} else {
		*ret_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	}
	if (*ret_fd < 0)
		return -errno;
	if (!needs_two_passes || lseek(*ret_fd, 0, SEEK_SET) == 0)
		return 0;
	err = copy_aside(ret_fd);
	if (err && *ret_fd >= 0)
		close(steal_fd(ret_fd));
	return err;
}

static int open_named(const char *path, bool needs_two_passes, int *ret_fd, char *ret_error, size_t error_size)
{
	int err = open_input(path, needs_two_passes, ret_fd);

	if (err == -ENOTTY)
		return fail_with(err, ret_error, error_size,
				 "standard input is a terminal: name a file, or redirect one to it");
	if (err)
		return fail_with(err, ret_error, error_size,
				 "cannot open %s: %s%s", recording_name(path), strerror(-err),
				 recording_remedy(path, err));
	return 0;
}

/* What `stacktap convert -o x.otlp' reads. */
static bool is_foreign(int fd)
{
	static const char perf_magic[] = "PERFILE2";
	static const uint8_t gzip_magic[] = { 0x1f, 0x8b };
	char head[sizeof(perf_magic) - 1];

	return pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
	       (!memcmp(head, perf_magic, sizeof(head)) || !memcmp(head, gzip_magic, sizeof(gzip_magic)));
}

int recording_fail_damaged(const char *name, int fd, uint64_t message, char *ret_error, size_t error_size)
{
	if (message <= 1 && is_foreign(fd))
		return fail_with(-EBADMSG, ret_error, error_size,
				 "%s is a perf or pprof file, not OTLP: `stacktap convert -o "
				 "x.otlp' converts it", name);
	return fail_with(-EBADMSG, ret_error, error_size,
			 "%s is damaged or holds no OTLP profiles (message %" PRIu64 ")", name, max_of(message, (uint64_t)1));
}

int recording_fail_empty(const char *name, bool is_cut, bool has_no_files, char *ret_error, size_t error_size)
{
	if (is_cut)
		return fail_with(-EBADMSG, ret_error, error_size, "%s is cut off inside its first message", name);
	return fail_with(-ENODATA, ret_error, error_size, "%s holds no profiles%s", name,
			 has_no_files ? ": there is no file profiles-TIME.otlp in it" : "");
}

/* What is read, into what. */
struct job {
	const char *name;
	const struct selection *selection;	/* NULL: all */
	struct reader *reader;
	struct recording_again *again;	/* NULL: once is enough */
	bool is_cut;
	bool has_no_files;	/* of a store */
	char *error;
	size_t error_size;
};

/*
 * Every message of a file, also into @copy if there is one: 0, -ENODATA when it is cut off, or an error with its
 * sentence.
 */
static int read_messages(int fd, const struct job *job, struct store_copy *copy)
{
	_cleanup_(store_reader_closep) struct store_reader *store = NULL;
	const size_t error_size = job->error_size;
	const char *name = job->name;
	char *error = job->error;
	const uint8_t *data;
	size_t size;
	int ret, err;

	ret = store_reader_open(fd, &store);
	if (ret)
		return fail_with(ret, error, error_size,
				 "cannot open %s: %s", name, strerror(-ret));
	store_reader_keep(store, copy);
	for (uint64_t message = 1; (ret = store_reader_next(store, &data, &size)); message++) {
		if (ret == -ENODATA)
			return ret;
		err = ret < 0 ? ret : reader_add(job->reader, data, size);
		if (err == -EBADMSG)
			return recording_fail_damaged(name, fd, message, error, error_size);
		if (err == -E2BIG)
			return fail_with(err, error, error_size,
					 "message %" PRIu64 " of %s needs more memory than is allowed: "
					 RECORDING_NARROW, message, name);
		if (err)
			return fail_with(err, error, error_size, "cannot read %s: %s", name,
					 strerror(-err));
		if (told)
			told(size, false);
	}
	return 0;
}

static int check_messages(const struct job *job)
{
	if (reader_totals(job->reader)->messages)
		return 0;
	return recording_fail_empty(job->name, job->is_cut, job->has_no_files, job->error, job->error_size);
}

int recording_check(int fd, const char *name, char *ret_error, size_t error_size)
{
	_cleanup_(store_reader_closep) struct store_reader *store = NULL;
	struct time_span span = { .from = UINT64_MAX };
	const uint8_t *data;
	size_t size;
	int ret = store_reader_open(fd, &store);

	if (ret)
		return fail_with(ret, ret_error, error_size, "cannot open %s: %s", name, strerror(-ret));
	ret = store_reader_next(store, &data, &size);
	if (!ret || ret == -ENODATA)
		return recording_fail_empty(name, ret, false, ret_error, error_size);
	if (ret > 0)
		ret = recording_widen(data, size, &span, NULL);
	/* what is too large is said where it is read, of what is selected */
	return ret == -EBADMSG ? recording_fail_damaged(name, fd, 1, ret_error, error_size) : 0;
}

static int fail_open(const struct job *job, int err)
{
	return fail_with(err, job->error, job->error_size, "cannot open %s: %s", job->name, strerror(-err));
}

/* The reader of a second pass, which has @span as the first had; NULL: there is none. */
static int begin_again(const struct job *job, const struct time_span *span, struct reader **ret_reader)
{
	int err = job->again->begin(job->again->ctx, ret_reader);

	if (err)
		return err;
	if (told)
		told(0, true);
	if (*ret_reader && span->from <= span->to)
		reader_set_bounds(*ret_reader, span->from, span->to);
	return 0;
}

/* Of a file as many messages as the first pass had, as far as they are still there and whole. */
static int read_again(int fd, struct reader *reader, uint64_t *messages, bool *is_cut)
{
	_cleanup_(store_reader_closep) struct store_reader *store = NULL;
	const uint8_t *data;
	size_t size;
	int err = store_reader_open(fd, &store), ret = 1;

	while (!err && *messages && (ret = store_reader_next(store, &data, &size)) > 0) {
		err = reader_add(reader, data, size);
		*messages -= 1;
		if (told)
			told(size, false);
	}
	*is_cut |= ret < 0 || err;
	return err == -E2BIG || err == -ENOMEM ? err : 0;
}

/* @start: where its first message is; below 0: it is to be read from @copy, if that has it all. */
static int read_file_again(int fd, off_t start, struct store_copy *copy, const struct job *job,
			   const struct time_span *span)
{
	uint64_t messages = reader_totals(job->reader)->messages;
	struct reader *reader = NULL;
	int err;

	if (start < 0) {
		if (copy->file && fflush(copy->file))
			copy->err = -errno;
		if (copy->err) {
			job->again->copy_err = copy->err;
			return 0;
		}
		fd = fileno(copy->file);
		start = 0;
	}
	err = begin_again(job, span, &reader);
	if (err || !reader || lseek(fd, start, SEEK_SET) < 0)
		return err;
	job->again->is_cut = job->is_cut;
	return read_again(fd, reader, &messages, &job->again->is_cut);
}

static void copy_close(struct store_copy *copy)
{
	if (copy->file)
		fclose(copy->file);
}

static int read_file(int fd, bool needs_bounds, struct job *job)
{
	const off_t start = lseek(fd, 0, SEEK_CUR);
	_cleanup_(copy_close) struct store_copy copy = { .limit = RECORDING_COPY_MAX };
	struct time_span span = { .from = UINT64_MAX };
	int err = needs_bounds ? widen_by_file(fd, &span) : 0;

	if (job->again && start < 0) {
		copy.file = open_copy();
		copy.err = copy.file ? 0 : -errno;
	}
	if (err)
		return fail_open(job, err);
	if (span.from <= span.to)
		reader_set_bounds(job->reader, span.from, span.to);
	err = read_messages(fd, job, &copy);
	job->is_cut = err == -ENODATA;
	if (err && !job->is_cut)
		return err;
	err = check_messages(job);
	if (!err && job->again)
		job->again->err = read_file_again(fd, start, &copy, job, &span);
	return err;
}

/* One of a store's files; the daemon may have removed it meanwhile. */
static int use_store_file(int directory, uint64_t time, struct time_span *span)
{
	_cleanup_close_ int fd = store_open_file(directory, time);

	return fd < 0 ? 0 : widen_by_file(fd, span);
}

/* What is in a file was sampled before the next one was begun. */
static size_t first_file(const uint64_t *times, size_t count, const struct selection *selection,
			 const struct time_span *bounds)
{
	const struct time_span span = selection ? selection_span(selection, bounds->from, bounds->to) :
						  (struct time_span){ .to = UINT64_MAX };
	size_t first = 0;

	while (first + 1 < count && times[first + 1] < span.from / NSEC_PER_MSEC)
		first++;
	return first;
}

static int read_store_again(int directory, const uint64_t *times, size_t count, const struct job *job,
			    const struct time_span *bounds)
{
	const struct selection *other = job->again->selection;
	uint64_t messages = other ? UINT64_MAX : reader_totals(job->reader)->messages;
	struct reader *reader = NULL;
	int err = begin_again(job, bounds, &reader);

	for (size_t i = first_file(times, count, other ?: job->selection, bounds); i < count && !err && reader; i++) {
		_cleanup_close_ int fd = store_open_file(directory, times[i]);
		bool is_cut = false;

		if (fd >= 0)
			err = read_again(fd, reader, &messages, &is_cut);
		/* the daemon is writing the last one */
		job->again->is_cut |= is_cut && i + 1 < count;
	}
	return err;
}

static int read_store(int directory, bool needs_bounds, struct job *job)
{
	struct time_span bounds = { .from = UINT64_MAX };
	_cleanup_free_ uint64_t *times = NULL;
	size_t count;
	int err = store_list(directory, &times, &count);

	if (err)
		return fail_open(job, err);
	job->has_no_files = !count;
	if (count && needs_bounds) {
		use_store_file(directory, times[0], &bounds);
		for (size_t i = count; i-- > 0 && !bounds.to;)
			use_store_file(directory, times[i], &bounds);
		use_store_file(directory, times[count - 1], &bounds);
		if (bounds.from <= bounds.to)
			reader_set_bounds(job->reader, bounds.from, bounds.to);
	}
	for (size_t i = first_file(times, count, job->selection, &bounds); i < count; i++) {
		_cleanup_close_ int fd = store_open_file(directory, times[i]);

		if (fd == -ENOENT)
			continue;
		err = fd < 0 ? fail_with(fd, job->error, job->error_size,
					 "cannot open a file of %s: %s%s", job->name,
					 strerror(-fd), recording_remedy(job->name, fd)) :
			       read_messages(fd, job, NULL);
		/* the daemon is writing the last one */
		if (err == -ENODATA && i + 1 < count)
			job->is_cut = true;
		else if (err && err != -ENODATA)
			return err;
	}
	err = check_messages(job);
	if (!err && job->again)
		job->again->err = read_store_again(directory, times, count, job, &bounds);
	return err;
}

int recording_read_twice(const char *path, const struct selection *selection, struct reader *reader,
			 struct recording_again *again, bool *ret_is_cut, char *ret_error,
			 size_t error_size)
{
	bool needs_bounds = (selection && selection_needs_bounds(selection)) ||
			    (again && again->selection && selection_needs_bounds(again->selection));
	struct job job = {
		.name = recording_name(path), .selection = selection, .reader = reader,
		.again = again, .error = ret_error, .error_size = error_size,
	};
	_cleanup_close_ int fd = -1;
	struct stat st;
	int err;

	*ret_is_cut = false;
	err = open_named(path, needs_bounds, &fd, ret_error, error_size);
	if (err)
		return err;
	if (!fstat(fd, &st) && S_ISDIR(st.st_mode))
		err = read_store(fd, needs_bounds, &job);
	else
		err = read_file(fd, needs_bounds, &job);
	*ret_is_cut = job.is_cut;
	if (told)
		told(0, true);
	return err;
}

int recording_read(const char *path, const struct selection *selection, struct reader *reader,
		   bool *ret_is_cut, char *ret_error, size_t error_size)
{
	return recording_read_twice(path, selection, reader, NULL, ret_is_cut, ret_error, error_size);
}
