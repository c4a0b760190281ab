// SPDX-License-Identifier: Apache-2.0
#include "cli/named_copy.h"

#include <endian.h>
#include <fcntl.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/messages.h"
#include "cli/symbolize.h"

struct job {
	struct naming naming;
	struct messages messages;
	struct buffer message;
	FILE *file;
};

static int add(void *ctx, const uint8_t *data, size_t size)
{
	return census_add(ctx, data, size);
}

static int write_message(void *ctx, const uint8_t *data, size_t size)
{
	struct rename_counts counts = { 0 };
	struct job *job = ctx;
	uint32_t length;
	int r;

	job->message.size = 0;
	r = rename_message(&job->naming.census, data, size, &job->message, &counts);
	if (r < 0)
		return r;
	length = htobe32((uint32_t)job->message.size);
	fwrite(&length, sizeof(length), 1, job->file);
	fwrite(job->message.data, job->message.size, 1, job->file);
	return 0;
}

static int make(struct job *job, const char *path, const struct debugfile_places *places, int *ret_fd)
{
	int ret = messages_open(path, &job->messages) ?: naming_open(&job->naming, places) ?:
		  messages_each(&job->messages, add, &job->naming.census) ?: naming_run(&job->naming, path);

	if (ret)
		return ret;
	job->file = tmpfile();
	if (!job->file)
		return cli_error("cannot create a temporary file in /tmp: %s", strerror(errno));
	ret = messages_each(&job->messages, write_message, job);
	if (ret)
		return ret;
	if (fflush(job->file) || ferror(job->file))
		return cli_error("cannot write a temporary file in /tmp, which needs room for a copy of the recording: %s", strerror(errno));
	*ret_fd = fcntl(fileno(job->file), F_DUPFD_CLOEXEC, 0);
	if (*ret_fd < 0)
		return cli_error("cannot reopen a temporary file in /tmp: %s", strerror(errno));
	symbolize_print_missing(&job->naming, stderr);
	return CLI_OK;
}

static void job_done(struct job *job)
{
	messages_close(&job->messages);
	buffer_free(&job->message);
	naming_close(&job->naming);
	if (job->file)
		fclose(job->file);
}

int named_copy_make(const char *path, const struct debugfile_places *places, int *ret_fd, bool *ret_is_cut)
{
	_cleanup_(job_done) struct job job = { .messages = { .fd = -1 } };
	int ret;

	buffer_init(&job.message, POOL_REPORT);
	ret = make(&job, path, places, ret_fd);
	*ret_is_cut = job.messages.is_cut;
	return ret;
}
