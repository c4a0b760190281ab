/* SPDX-License-Identifier: Apache-2.0 */
/* What was read so far. */
#ifndef STACKTAP_CAPTURE_STATS_H
#define STACKTAP_CAPTURE_STATS_H

#include "base/macro.h"

struct capture_stats {
	uint64_t records, samples, bytes;
	uint64_t bad_records;		/* malformed; the rest of that ring's batch was skipped */
	uint64_t sideband_records, sideband_lost;
	uint32_t cpus;
};

#endif /* STACKTAP_CAPTURE_STATS_H */
