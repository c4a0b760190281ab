/* SPDX-License-Identifier: Apache-2.0 */
/* Where the journal's open file has something already: thread A's, see export/cut.h. */
#ifndef STACKTAP_PROCESS_JOURNALLED_H
#define STACKTAP_PROCESS_JOURNALLED_H

#include "base/macro.h"

struct journalled {
	uint32_t epoch;		/* of that file; 0: in none */
	uint32_t index;		/* in its table of such things */
	uint16_t listed;	/* of a Location without names: the last window that lists it, of 65,536 */
	bool is_final;		/* there is no more to be told of it */
};

#endif /* STACKTAP_PROCESS_JOURNALLED_H */
