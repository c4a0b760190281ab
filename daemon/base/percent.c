// SPDX-License-Identifier: Apache-2.0
#include "base/percent.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool percent_parse(const char *text, uint32_t *ret_permille)
{
	uint32_t permille = 0;

	if (!is_digit(*text))
		return false;
	for (; is_digit(*text) && permille <= 100; text++)
		permille = permille * 10 + (uint32_t)(*text - '0');
	permille *= 10;
	if (*text == '.') {
		if (!is_digit(*++text))
			return false;
		permille += (uint32_t)(*text++ - '0');
	}
	if (*text == '%')
		text++;
	if (*text || permille > 1000)
		return false;
	*ret_permille = permille;
	return true;
}
