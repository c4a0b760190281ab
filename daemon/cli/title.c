// SPDX-License-Identifier: Apache-2.0
#include "cli/title.h"

#include <string.h>

#include "base/utf8.h"

void title_of(const char *function, uint32_t id, char ret_title[static TITLE_BYTES])
{
	char number[sizeof(", 4294967295")];
	const int length = snprintf(number, sizeof(number), ", %u", id);

	utf8_copy(ret_title, TITLE_BYTES - (size_t)length, function);
	strcat(ret_title, number);
}
