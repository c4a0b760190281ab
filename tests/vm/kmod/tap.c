// SPDX-License-Identifier: Apache-2.0
#include "tap.h"

#include <stdarg.h>
#include <stdio.h>

static unsigned int tap_lines, tap_failed;

bool tap(bool good, const char *format, ...)
{
	va_list args;

	printf("%sok %u - ", good ? "" : "not ", ++tap_lines);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	tap_failed += !good;
	return good;
}

void tap_note(const char *format, ...)
{
	va_list args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

int tap_done(void)
{
	printf("1..%u\n", tap_lines);
	return tap_failed || !tap_lines;
}
