// SPDX-License-Identifier: Apache-2.0
#include "cli/messages.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/progress.h"
#include "export/store_list.h"
#include "view/recording.h"
#include "view/store_reader.h"

#define COPY_STEP ((size_t)64 << 10)
enum { ERROR_SIZE = PATH_MAX + 256 };

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
		if (got < 0 || fwrite(bytes, 1, (size_t)got, copy) != (size_t)got)
			return -errno;
	}
	if (fflush(copy))
		return -errno;
	close(steal_fd(fd));
	*fd = fcntl(fileno(copy), F_DUPFD_CLOEXEC, 3);
	return *fd < 0 ? -errno : 0;
}

int messages_open(const char *path, struct messages *ret_messages)
{
	const bool is_stdin = !strcmp(path, "-");
	struct stat st;
	uint8_t first;
	int err = 0;

	*ret_messages = (struct messages){ .path = path, .fd = -1 };
	if (is_stdin && isatty(STDIN_FILENO))
		return cli_error("standard input is a terminal: name a file, or redirect one to it");
	ret_messages->fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) :
			   open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ret_messages->is_store = ret_messages->fd >= 0 && !fstat(ret_messages->fd, &st) &&
				 S_ISDIR(st.st_mode);
	if (ret_messages->is_store)
		err = store_list(ret_messages->fd, &ret_messages->times, &ret_messages->count);
	else if (ret_messages->fd < 0 ||
		 (lseek(ret_messages->fd, 0, SEEK_SET) < 0 && errno != ESPIPE))
		err = -errno;
	else if (lseek(ret_messages->fd, 0, SEEK_SET) < 0)
		err = copy_aside(&ret_messages->fd);
	if (err) {
		messages_close(ret_messages);
		return cli_error("cannot open %s: %s%s", recording_name(path), strerror(-err),
				 recording_remedy(path, err));
	}
	/* the length of a message begins with a byte below these tags, see view/store_reader.c */
	ret_messages->is_bare = pread(ret_messages->fd, &first, 1, 0) == 1 &&
				(first == 0x0a || first == 0x12);
	return CLI_OK;
}

void messages_close(struct messages *messages)
{
	if (messages->fd >= 0)
		close(steal_fd(&messages->fd));
	free(steal_ptr(messages->times));
}

static void closep(struct store_reader **store)
{
	if (*store)
		store_reader_close(*store);
}

uint64_t messages_size(const struct messages *messages)
{
	uint64_t bytes = 0;
	struct stat st;

	if (!messages->is_store)
		return fstat(messages->fd, &st) ? 0 : (uint64_t)st.st_size;
	for (size_t i = 0; i < messages->count; i++)
		if (!fstatat(messages->fd, store_name(messages->times[i]).text, &st, 0))
			bytes += (uint64_t)st.st_size;
	return bytes;
}

/* Those of a file: 0, -ENODATA if the last one is cut off, or an error. *ret_number: of the last one. */
static int read_all(int fd, int (*each)(void *ctx, const uint8_t *data, size_t size), void *ctx,
		    uint64_t *ret_number)
{
	_cleanup_(closep) struct store_reader *store = NULL;
	const uint8_t *data;
	off_t before = 0, at;
	size_t size;
	int r = store_reader_open(fd, &store);

	*ret_number = 0;
	while (!r && (r = store_reader_next(store, &data, &size)) > 0) {
		++*ret_number;
		at = lseek(fd, 0, SEEK_CUR);
		progress_read((size_t)(at - before));
		before = at;
		r = each(ctx, data, size);
	}
	return r;
}

static int say_empty(const char *name, bool is_cut, bool has_no_files)
{
	char error[ERROR_SIZE];

	recording_fail_empty(name, is_cut, has_no_files, error, sizeof(error));
	return cli_error("%s", error);
}

static int say_error(int fd, const char *name, int error, uint64_t number)
{
	char text[ERROR_SIZE];

	if (error == -EBADMSG) {
		recording_fail_damaged(name, fd, number, text, sizeof(text));
		return cli_error("%s", text);
	}
	if (error == -E2BIG || error == -ENOBUFS)
		return cli_error("message %" PRIu64 " of %s needs more memory than is allowed", number,
				 name);
	return cli_error("cannot read %s: %s", name, strerror(-error));
}

int messages_each_of(struct messages *messages, size_t file,
		     int (*each)(void *ctx, const uint8_t *data, size_t size), void *ctx,
		     uint64_t *ret_count)
{
	_cleanup_close_ int fd = store_open_file(messages->fd, messages->times[file]);
	char path[PATH_MAX];
	int r = fd;

	*ret_count = 0;
	if (fd == -ENOENT)
		return CLI_OK;
	if (fd >= 0)
		r = read_all(fd, each, ctx, ret_count);
	messages->is_cut |= r == -ENODATA && file + 1 < messages->count;
	if (!r || r == -ENODATA)
		return CLI_OK;
	snprintf(path, sizeof(path), "%s/%s", messages->path, store_name(messages->times[file]).text);
	return say_error(fd, path, r, *ret_count);
}

static int each_of_store(struct messages *messages,
			 int (*each)(void *ctx, const uint8_t *data, size_t size), void *ctx)
{
	uint64_t total = 0, number;
	int ret = CLI_OK;

	for (size_t i = 0; !ret && i < messages->count; i++) {
		ret = messages_each_of(messages, i, each, ctx, &number);
		total += number;
	}
	progress_done();
	return ret || total ? ret : say_empty(messages->path, false, !messages->count);
}

int messages_each(struct messages *messages,
		  int (*each)(void *ctx, const uint8_t *data, size_t size), void *ctx)
{
	const char *name = recording_name(messages->path);
	uint64_t number;
	int r;

	messages->is_cut = false;
	if (messages->is_store)
		return each_of_store(messages, each, ctx);
	if (lseek(messages->fd, 0, SEEK_SET) < 0)
		return cli_error("cannot read %s: %s", name, strerror(errno));
	r = read_all(messages->fd, each, ctx, &number);
	progress_done();
	messages->is_cut = r == -ENODATA;
	if (!number && (!r || messages->is_cut))
		return say_empty(name, messages->is_cut, false);
	return !r || messages->is_cut ? CLI_OK : say_error(messages->fd, name, r, number);
}
