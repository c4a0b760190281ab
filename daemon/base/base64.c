// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <string.h>

enum { BITS = 6 };

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const uint8_t *bytes, size_t size, char *ret_text)
{
	for (size_t i = 0; i < size; i += 3) {
		const size_t rest = min_of(size - i, (size_t)3);
		uint32_t group = 0;

		for (size_t k = 0; k < 3; k++)
			group = group << 8 | (k < rest ? bytes[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			*ret_text++ = k <= rest ? digits[group >> (3 - k) * BITS & 63] : '=';
	}
	*ret_text = '\0';
}

ssize_t base64_decode(const char *text, size_t length, uint8_t *ret_bytes)
{
	const uint8_t *start = ret_bytes;
	uint32_t word = 0;
	int bits = 0;

	for (size_t i = 0; i < length; i++) {
		const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

		if (!digit)
			return -EBADMSG;
		word = word << BITS | (uint32_t)(digit - digits);
		bits += BITS;
		if (bits >= 8) {
			bits -= 8;
			*ret_bytes++ = (uint8_t)(word >> bits);
		}
	}
	return ret_bytes - start;
}
