/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a recording has, before a part of it is looked at: samples over time of each event, and of whose work they
 * are. Memory is that of its names, however long the recording is.
 */
#ifndef STACKTAP_VIEW_OVERVIEW_H
#define STACKTAP_VIEW_OVERVIEW_H

#include "view/reader.h"
#include "view/rows.h"

enum {
	OVERVIEW_BUCKETS = 1024,
	OVERVIEW_EVENTS = 16,
};

enum overview_kind {
	OVERVIEW_PROCESS,
	OVERVIEW_SERVICE,
	OVERVIEW_CONTAINER,
	OVERVIEW_CGROUP,
	OVERVIEW_KINDS,
};

struct overview_event {
	const char *source, *unit;
	uint64_t samples;
	uint64_t counts[OVERVIEW_BUCKETS];
};

struct overview_part {
	enum overview_kind kind;
	const char *name;
	uint64_t samples;
};

struct overview {
	struct texts texts;
	struct rows parts;	/* struct overview_part */
	struct overview_event *events[OVERVIEW_EVENTS];
	uint32_t event_count;
	uint64_t other;		/* samples of events beyond these */
	uint64_t width;		/* of a bucket, ns; a power of two of milliseconds */
	uint64_t first, last;	/* buckets since 1970; what they count is in counts[bucket - first] */
	struct reader_totals totals;
	bool has_samples, is_cut;
};

/* As recording_read() says it; no samples are no error. Done with in any case. */
int overview_load(const char *path, const struct selection *selection, struct overview *overview,
		  char *ret_error, size_t error_size);
void overview_done(struct overview *overview);
/* "bucket_ns", "origin_ns", "events", "processes" and so on, the 100 with most samples of each. */
int overview_json(struct overview *overview, const char *name, FILE *file);

#endif /* STACKTAP_VIEW_OVERVIEW_H */
