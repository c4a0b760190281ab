/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring records in memory to callbacks: what the ring's consumer does with each batch, and what
 * tests and benchmarks do with a recorded or synthetic ring image.
 *
 * Nothing in the bytes is trusted: a record is delivered only when it and its sections lie inside
 * the data.
 */
#ifndef STACKTAP_CAPTURE_REPLAY_H
#define STACKTAP_CAPTURE_REPLAY_H

#include "capture/ops.h"
#include "capture/stats.h"

/*
 * Deliver the records of one CPU's ring to ops->sample and ops->record. @data must be aligned to
 * STACKTAP_RECORD_ALIGN. -EBADMSG at the first malformed record: the ones before it have been
 * delivered, nothing behind it is. Counts records, samples and bytes in @stats.
 */
int ring_parse(const void *data, size_t bytes, uint32_t cpu, const struct capture_ops *ops,
	       void *ctx, struct capture_stats *stats);

#endif /* STACKTAP_CAPTURE_REPLAY_H */
