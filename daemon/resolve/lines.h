/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source lines and inlined functions of Locations while they are recorded, from DWARF that is on the host. Only where
 * it is asked for: opening it takes long. In each window as much as LINES_WINDOW_NS allow, the rest in the next.
 */
#ifndef STACKTAP_RESOLVE_LINES_H
#define STACKTAP_RESOLVE_LINES_H

#include "helper/parser.h"
#include "profile/location.h"
#include "resolve/indices.h"
#include "resolve/names.h"
#include "resolve/parts.h"

#define LINES_WINDOW_NS NSEC_PER_SEC
#define LINES_RECORDING_NS (10 * NSEC_PER_SEC)	/* where no later window has the rest */

struct lines_stats {
	uint64_t with_lines;	/* Locations */
	uint64_t with_inlined;	/* of these, with functions that were inlined there */
	uint64_t put_off;	/* for want of time: they have another try */
	uint64_t without;	/* objects that have none, or none that can be read */
	uint64_t without_inlined;	/* Locations whose inlined functions are in a file that is not there, or not read */
	struct parts_stats parts;
};

/* Where they are looked for. */
struct lines_source {
	struct parts *parts;	/* finds what else has a part of it; NULL: nobody does */
	struct indices *indices;	/* on disk; NULL: none */
	struct object *program, *object;	/* @program's debug file, or itself */
	struct dwarf_known *known;	/* of these; keeps in mind that there are none */
	int fd;				/* -errno: it cannot be opened */
	uint64_t deadline;	/* of the window, CLOCK_MONOTONIC ns */
};

/*
 * Give @locations, of one object and named by its symbols, the Lines that @source has for them. Those that are put off
 * are marked so. *budget: as names_get().
 */
void lines_resolve(struct parser *parser, struct names *names, const struct lines_source *source,
		   struct location **locations, size_t count, size_t *budget,
		   struct lines_stats *stats);

#endif /* STACKTAP_RESOLVE_LINES_H */
