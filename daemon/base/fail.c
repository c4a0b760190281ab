// SPDX-License-Identifier: Apache-2.0
#include "base/fail.h"

#include <stdarg.h>
#include <string.h>

int fail_with(int error, char *ret_text, size_t size, const char *format, ...)
{
	va_list args;

	if (!ret_text)
		return error;
	va_start(args, format);
	vsnprintf(ret_text, size, format, args);
	va_end(args);
	return error;
}

void fail_note(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	if (used && used + 2 < size) {
		strcpy(text + used, "; ");
		used += 2;
	}
	va_start(args, format);
	vsnprintf(text + used, size - used, format, args);
	va_end(args);
}
