/* SPDX-License-Identifier: Apache-2.0 */
/* Where the payload under construction has something already: of the one thread that encodes, see export/dictionary.h. */
#ifndef STACKTAP_PROCESS_ENCODED_H
#define STACKTAP_PROCESS_ENCODED_H

#include "base/macro.h"

struct encoded {
	uint64_t generation;	/* of the dictionary that has it; 0: none */
	int32_t index;		/* of its entry */
	uint32_t variant;	/* of the ways to encode it; what a Location's or Stack's names were then */
};

#endif /* STACKTAP_PROCESS_ENCODED_H */
