// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <arpa/inet.h>
#include <string.h>

#include "cli/cli.h"

int output_open(const char *path, struct output *ret_output)
{
	struct store_file *file = NULL;
	int ret;

	if (!strcmp(path, "-")) {
		if (isatty(STDOUT_FILENO))
			return cli_error("a profile is binary: redirect standard output, or name a "
					 "file with -o");
	} else {
		ret = store_file_create(path, &file);
		if (ret < 0)
			return cli_error("cannot write %s: %s", path, strerror(-ret));
	}
	*ret_output = (struct output){ .path = path, .file = file };
	return CLI_OK;
}

static int write_stdout(struct output *output, const uint8_t *data, size_t size)
{
	uint32_t length;

	if (size > UINT32_MAX)
		return -EFBIG;
	length = htonl((uint32_t)size);
	if (fwrite(&length, sizeof(length), 1, stdout) != 1 ||
	    fwrite(data, 1, size, stdout) != size || fflush(stdout) == EOF)
		return -errno;
	output->bytes += sizeof(length) + size;
	return 0;
}

int output_append(struct output *output, const uint8_t *data, size_t size)
{
	int ret;

	if (output->error)
		return output->error;
	if (output->file)
		ret = store_file_append(output->file, data, size);
	else
		ret = write_stdout(output, data, size);
	output->error = ret;
	return ret;
}

int output_close(struct output *output)
{
	int ret = 0;

	if (output->file)
		ret = store_file_close(output->file, &output->bytes);
	output->file = NULL;
	if (!output->error)
		output->error = ret;
	return output->error;
}
