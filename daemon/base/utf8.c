// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <string.h>

size_t utf8_length(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned char low = 0x80, high = 0xbf;
	size_t length;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		length = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		length = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		length = 4;
	else
		return 0;
	/* no overlong forms, no surrogates, nothing beyond U+10FFFF */
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if (!utf8_is_inside((char)s[i]))
			return 0;
	return length;
}

/* U+0080 to U+009F control terminals as well. */
static bool is_control(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

static bool is_graphic(char c)
{
	return c >= 0x20 && c < 0x7f;
}

size_t utf8_copy(char *ret_text, size_t size, const char *source)
{
	const char *s = source;
	size_t used = 0;

	while (*s) {
		size_t length;

		/* which nearly all are */
		if (is_graphic(*s) && used + 1 < size) {
			ret_text[used++] = *s++;
			continue;
		}
		length = is_control(s) ? 0 : utf8_length(s);
		if (used + max_of(length, (size_t)1) >= size)
			break;
		if (length)
			memcpy(ret_text + used, s, length);
		else
			ret_text[used] = '?';
		length = max_of(length, (size_t)1);
		used += length;
		s += length;
	}
	ret_text[used] = '\0';
	return used;
}

size_t utf8_shorten(char *ret_text, size_t size, const char *source)
{
	static const char ellipsis[] = "\u2026";
	size_t used = utf8_copy(ret_text, size, source);

	/* each byte has its place, or that of its '?' */
	if (!source[used] || size < sizeof(ellipsis))
		return used;
	used = utf8_copy(ret_text, size - strlen(ellipsis), source);
	memcpy(ret_text + used, ellipsis, sizeof(ellipsis));
	return used + strlen(ellipsis);
}

char *utf8_dup(const char *source, size_t max)
{
	size_t size = strnlen(source, max) + 1;
	char *text = malloc(size);

	if (text)
		utf8_copy(text, size, source);
	return text;
}
