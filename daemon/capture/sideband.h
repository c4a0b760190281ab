/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The side band: one dummy perf event per CPU, which tells of mappings, program starts, forks and
 * exits there, on the same clock as the samples.
 *
 * perf's ring is mapped once, so records wrap; their times are in the trailer that sample_id_all
 * appends, at a fixed distance from the record's end.
 */
#ifndef STACKTAP_CAPTURE_SIDEBAND_H
#define STACKTAP_CAPTURE_SIDEBAND_H

#include <linux/perf_event.h>

#include "capture/ops.h"
#include "capture/stats.h"

enum {
	SIDEBAND_MAX_RECORD = 65536,	/* sizes have 16 bits */
};

struct sideband {
	uint32_t cpu;
	int fd;
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	uint64_t data_bytes;
	size_t map_bytes;		/* 0: memory of a test */
	uint64_t position, limit;	/* our tail; head as of the last snapshot */
	bool reports_lost;		/* read() of the event tells of losses at once */
	uint64_t lost_seen;		/* by read() or by LOST records, whatever came first */
	uint64_t lost_new;		/* of it, not yet in the stats */
	uint64_t lost_recorded;		/* by LOST records */
	bool is_suspect;		/* so full at the snapshot that something may be lost */
};

/* Charged to POOL_SIDEBAND. -EACCES, -EPERM: perf_event_paranoid; -ENODEV: the CPU is offline. */
int sideband_open(uint32_t cpu, size_t data_bytes, struct sideband **ret_sideband);
void sideband_close(struct sideband *sideband);

/* Fix how far the next merge reads and find out whether the kernel has dropped anything. */
void sideband_snapshot(struct sideband *sideband);

/*
 * Deliver the events of all side bands (NULLs are skipped) up to their snapshots and up to @until,
 * merged by time, then a gap for each CPU that lost some. @buffer holds SIDEBAND_MAX_RECORD bytes.
 */
void sideband_merge(struct sideband *const *sidebands, size_t count, uint64_t until,
		    uint64_t *buffer, const struct capture_ops *ops, void *ctx,
		    struct capture_stats *stats);

/* One whole record to a callback. -EBADMSG: malformed. *ret_lost grows by a LOST record's count. */
int sideband_parse(const struct perf_event_header *record, const struct capture_ops *ops,
		   void *ctx, uint64_t *ret_lost);
/* Distance of the time from the end of every record. */
enum { SIDEBAND_TIME_FROM_END = 24, SIDEBAND_TRAILER = 32 };

#endif /* STACKTAP_CAPTURE_SIDEBAND_H */
