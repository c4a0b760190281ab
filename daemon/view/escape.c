// SPDX-License-Identifier: Apache-2.0
#include "view/escape.h"

void escape_json(FILE *file, const char *text)
{
	fputc('"', file);
	for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
		if (*s == '"' || *s == '\\') {
			fprintf(file, "\\%c", *s);
		} else if (*s < 0x20 || *s == 0x7f || *s == '<' || *s == '>' || *s == '&') {
			fprintf(file, "\\u%04x", *s);
		} else if (s[0] == 0xe2 && s[1] == 0x80 && (s[2] & 0xfe) == 0xa8) {
			/* U+2028 and U+2029 end a line */
			fputs(s[2] == 0xa8 ? "\\u2028" : "\\u2029", file);
			s += 2;
		} else {
			fputc(*s, file);
		}
	}
	fputc('"', file);
}

void escape_xml(FILE *file, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			fputs("&lt;", file);
			break;
		case '>':
			fputs("&gt;", file);
			break;
		case '&':
			fputs("&amp;", file);
			break;
		case '"':
			fputs("&quot;", file);
			break;
		case '\'':
			fputs("&#39;", file);
			break;
		default:
			/* what XML has no way to say; interned text has none */
			fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, file);
		}
	}
}
