/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What perf says of mappings, as `perf script --show-mmap-events --show-task-events' prints it in the order of time: which
 * part of which file a process has where. And build-ids, as `perf buildid-list' prints them. Memory is POOL_REPORT's.
 */
#ifndef STACKTAP_VIEW_AREAS_H
#define STACKTAP_VIEW_AREAS_H

#include <stdio.h>

#include "view/rows.h"

enum area_kind { AREA_AT_RUN_TIME, AREA_IN_FILE, AREA_KINDS };

struct area {
	uint64_t start, size, offset;
	uint32_t older;			/* index + 1 of what the process had mapped before; 0: nothing */
	uint32_t path, build_id;	/* in `texts` */
	int32_t mapping[AREA_KINDS];	/* for who makes Mappings of it; 0: none yet */
};

struct areas {
	struct rows processes;		/* the newest area of each */
	struct rows ids;		/* of paths */
	struct buffer areas, texts;
};

void areas_init(struct areas *areas);
void areas_free(struct areas *areas);

int areas_read_ids(struct areas *areas, FILE *file);	/* -E2BIG */
/* @event is "PERF_RECORD_...", and @rest what follows it in its line; what says nothing of mappings is passed over. -E2BIG */
int areas_take(struct areas *areas, const char *event, const char *rest);

/*
 * Where @pid had @path mapped at @address; NULL: that is not known. Some versions of perf print addresses as they were at
 * run time, others where they are in the file.
 */
struct area *areas_find(struct areas *areas, uint32_t pid, const char *path, uint64_t address, enum area_kind *ret_kind);
/* "" if there is none; @area may be NULL. */
const char *areas_build_id(const struct areas *areas, const struct area *area, const char *path);

#endif /* STACKTAP_VIEW_AREAS_H */
