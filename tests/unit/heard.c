// SPDX-License-Identifier: Apache-2.0
#include "heard.h"

#include "unit.h"

#include <stdio.h>
#include <unistd.h>

static char said[1024];

static FILE *log_file;
static int old_stderr;

void listen_to_log(void)
{
	log_file = tmpfile();
	old_stderr = dup(STDERR_FILENO);
	assert_non_null(log_file);
	assert_true(old_stderr >= 0 && dup2(fileno(log_file), STDERR_FILENO) >= 0);
}

const char *heard(void)
{
	size_t length;

	fflush(stderr);
	assert_true(dup2(old_stderr, STDERR_FILENO) >= 0);
	close(old_stderr);
	rewind(log_file);
	length = fread(said, 1, sizeof(said) - 1, log_file);
	said[length] = '\0';
	fclose(log_file);
	return said;
}
