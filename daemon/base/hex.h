/* SPDX-License-Identifier: Apache-2.0 */
/* Digits of base 16, and bytes that are encoded as a percent sign and two of them. */
#ifndef STACKTAP_BASE_HEX_H
#define STACKTAP_BASE_HEX_H

/* 0 to 15, or -1. */
static inline int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that "%XX" at @text stands for, which may end in between, at @end or by a NUL; -1: none. */
static inline int hex_percent(const char *text, const char *end)
{
	int high, low;

	if (end - text < 3 || text[0] != '%')
		return -1;
	high = hex_digit(text[1]);
	low = high < 0 ? -1 : hex_digit(text[2]);
	return low < 0 ? -1 : high << 4 | low;
}

#endif /* STACKTAP_BASE_HEX_H */
