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
	uint64_t kept_sessions;		/* taken over of a daemon that was killed; what follows is of these */
	uint64_t kept_samples;
	uint64_t kept_unproven;		/* their process runs another program, or none, by now */
	uint64_t kept_unread_ns;	/* in which nobody read their rings */
};

#endif /* STACKTAP_CAPTURE_STATS_H */
