// SPDX-License-Identifier: Apache-2.0
#include "cli/messages.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"
#include "view/recording.h"
#include "view/store_reader.h"

#define COPY_STEP ((size_t)64 << 10)

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
	uint8_t first;
	int err = 0;

	*ret_messages = (struct messages){ .path = path, .fd = -1 };
	if (is_stdin && isatty(STDIN_FILENO))
		return cli_error("Standard input is a terminal: name a file, or redirect one to it.");
	ret_messages->fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) :
			   open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (ret_messages->fd < 0 ||
	    (lseek(ret_messages->fd, 0, SEEK_SET) < 0 && errno != ESPIPE))
		err = -errno;
	else if (lseek(ret_messages->fd, 0, SEEK_SET) < 0)
		err = copy_aside(&ret_messages->fd);
	if (err) {
		messages_close(ret_messages);
		return cli_error("Cannot open %s: %s.%s", recording_name(path), strerror(-err),
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
}

static void closep(struct store_reader **store)
{
	if (*store)
		store_reader_close(*store);
}

int messages_each(struct messages *messages,
		  int (*each)(void *ctx, const uint8_t *data, size_t size), void *ctx)
{
	_cleanup_(closep) struct store_reader *store = NULL;
	const char *name = recording_name(messages->path);
	uint64_t number = 0;
	const uint8_t *data;
	size_t size;
	int r;

	if (lseek(messages->fd, 0, SEEK_SET) < 0)
		return cli_error("Cannot read %s: %s.", name, strerror(errno));
	r = store_reader_open(messages->fd, &store);
	while (!r && (r = store_reader_next(store, &data, &size)) > 0) {
		number++;
		r = each(ctx, data, size);
	}
	messages->is_cut = r == -ENODATA;
	if (!number && !r)
		return cli_error("%s holds no profiles.", name);
	if (!number && messages->is_cut)
		return cli_error("%s is cut off inside its first message.", name);
	if (!r || messages->is_cut)
		return CLI_OK;
	if (r == -EBADMSG)
		return cli_error("%s is damaged or holds no OTLP profiles (message %" PRIu64 ").", name,
				 max_of(number, (uint64_t)1));
	if (r == -E2BIG || r == -ENOBUFS)
		return cli_error("Message %" PRIu64 " of %s needs more memory than is allowed.", number,
				 name);
	return cli_error("Cannot read %s: %s.", name, strerror(-r));
}
