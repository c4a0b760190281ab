// SPDX-License-Identifier: Apache-2.0
#include "cli/outfile.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "cli/cli.h"

#define FILE_MODE 0600		/* what ran on a host is nobody else's business */

static int open_file(struct outfile *file)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	/* a pipe or device is written to, not replaced */
	if (!stat(file->path, &st) && !S_ISREG(st.st_mode)) {
		fd = open(file->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	} else {
		if (asprintf(&file->partial, "%s.partial", file->path) < 0) {
			file->partial = NULL;
			return -ENOMEM;
		}
		fd = open(file->partial, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
		/* emptied only by who owns it */
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
			free(steal_ptr(file->partial));
			return errno == EWOULDBLOCK ? -EBUSY : -errno;
		}
		if (fd >= 0 && ftruncate(fd, 0))
			return -errno;
	}
	if (fd < 0)
		return -errno;
	file->file = fdopen(fd, "w");
	if (!file->file)
		return -errno;
	steal_fd(&fd);
	return 0;
}

int outfile_open(const char *path, bool is_binary, struct outfile *ret_file)
{
	int err;

	*ret_file = (struct outfile){ .path = path };
	if (!strcmp(path, "-")) {
		if (is_binary && isatty(STDOUT_FILENO))
			return cli_error("this is binary: redirect standard output, or name a "
					 "file with -o");
		ret_file->file = stdout;
		return CLI_OK;
	}
	err = open_file(ret_file);
	if (!err)
		return CLI_OK;
	outfile_done(ret_file);
	return cli_error("cannot write %s: %s", path, strerror(-err));
}

int outfile_finish(struct outfile *file, uint64_t *ret_bytes)
{
	long bytes = ftell(file->file);
	int err = 0;

	*ret_bytes = bytes > 0 ? (uint64_t)bytes : 0;
	if (file->file == stdout)
		return cli_finish();
	if (ferror(file->file) || fflush(file->file))
		err = errno ? -errno : -EIO;
	if (!err && file->partial && fdatasync(fileno(file->file)))
		err = -errno;
	if (!err && file->partial && rename(file->partial, file->path))
		err = -errno;
	if (!err)
		free(steal_ptr(file->partial));
	if (fclose(steal_ptr(file->file)) && !err)
		err = -errno;
	return err ? cli_error("cannot write %s: %s", file->path, strerror(-err)) : CLI_OK;
}

void outfile_done(struct outfile *file)
{
	if (file->file && file->file != stdout)
		fclose(file->file);
	if (file->partial)
		unlink(file->partial);
	free(file->partial);
	*file = (struct outfile){ 0 };
}
