/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of seven bits a byte, the lowest first, as protobuf has them. */
#ifndef STACKTAP_BASE_VARINT_H
#define STACKTAP_BASE_VARINT_H

#include "base/macro.h"

/* The one at *@at, which then is behind it; what a 64-bit number has no room for is dropped. False: it does not end before @end. */
static inline bool varint_take(const uint8_t **at, const uint8_t *end, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64 && *at < end; shift += 7) {
		const uint8_t byte = *(*at)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

#endif /* STACKTAP_BASE_VARINT_H */
