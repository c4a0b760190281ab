// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <stdarg.h>

static const char *program_name = "stacktap";
static enum log_level max_level = LOG_LEVEL_INFO;
static bool journal;

void log_setup(const char *program, enum log_level level)
{
	program_name = program;
	max_level = level;
	journal = getenv("JOURNAL_STREAM") != NULL;
}

bool log_enabled(enum log_level level)
{
	return level <= max_level;
}

void log_write(enum log_level level, const char *format, ...)
{
	int saved = errno;
	char line[2048];
	va_list args;

	if (level > max_level)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	/* one call, so that lines of several threads do not mix */
	if (journal)
		fprintf(stderr, "<%d>%s\n", (int)level, line);
	else
		fprintf(stderr, "%s: %s\n", program_name, line);
	errno = saved;
}
