/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What grew and what shrank between two recordings: shares of each one's total, tested for significance, see
 * view/significance.h and docs/diff.md.
 */
#ifndef STACKTAP_VIEW_DIFF_H
#define STACKTAP_VIEW_DIFF_H

#include "view/by.h"
#include "view/model.h"
#include "view/significance.h"

enum {
	DIFF_BEFORE,
	DIFF_AFTER,
	DIFF_SIDES,
};

enum diff_verdict {
	DIFF_FEW,		/* too few samples: not tested */
	DIFF_SAME,		/* no significant change */
	DIFF_GREW,
	DIFF_SHRANK,
};

/* Samples in either recording of what is tested, if nothing changed. */
enum { DIFF_EXPECTED_MIN = 10 };

enum { DIFF_PATHS_MAX = 65536 };	/* that are tested, the largest: there may be millions */

#define DIFF_INDEPENDENT_MIN 5.0	/* the same, divided by phi */
#define DIFF_RATE 0.05			/* of false discoveries among those of a table */

struct diff_share {
	double parts[DIFF_SIDES];	/* weight */
	struct share_test test;
	double q;			/* least rate at which it is a discovery */
	enum diff_verdict verdict;
	uint32_t tested;		/* its number while it is tested */
};

/* "" what the rows are not of. */
struct diff_row {
	const char *owner;		/* process, container, service or cgroup; the object of a line whose source is no whole path */
	const char *name, *file;	/* of the function, the thread; of its object, or of @line its source */
	uint64_t line;			/* by BY_LINE; 0: unknown, the row is of a function */
	bool is_kernel;
	struct diff_share self, total;	/* equal but for functions and objects */
};

struct diff_path {
	uint32_t node;
	bool is_deepest;		/* no call below it has the most of its change */
	struct diff_share total;
};

struct diff_count {
	size_t tested, few, grew, shrank;
	size_t beyond;			/* of paths: not tested, as there are more than DIFF_PATHS_MAX */
};

struct diff {
	enum view_by by;
	uint32_t events[DIFF_SIDES];
	struct sliced sides[DIFF_SIDES];
	struct rows rows;		/* struct diff_row */
	struct buffer paths;		/* struct diff_path, those that were tested, callers first */
	struct diff_count self, total, path;
	double path_least;		/* expected samples below which none was: DIFF_EXPECTED_MIN or, if too many have those, more */
	double phi_median, phi_max;	/* of what was tested */
};

/* Events of both sides that can be compared; false with a sentence: there are none. Both have samples. */
bool diff_events(const struct model *model, uint32_t ret_events[DIFF_SIDES], char *ret_error,
		 size_t error_size);
/* A model of a pair with times. Makes its sums. -E2BIG; the diff is to be freed in any case. */
int diff_make(struct model *model, const uint32_t events[DIFF_SIDES], enum view_by by,
	      struct diff *ret_diff);
/*
 * Of one recording, which is DIFF_AFTER: nothing is judged, but each share has its error, by its own phi
 * where it has DIFF_EXPECTED_MIN samples, else of independent ones; below 0: not known, as all samples are in too few
 * slices. @with_paths: they count for the factors, too.
 */
int diff_make_one(struct model *model, uint32_t event, enum view_by by, bool with_paths, struct diff *ret_diff);
/*
 * Which paths were tested, in a sentence without its full stop, if there were too many to test all; false: there were not.
 */
bool diff_say_paths(const struct diff *diff, char *ret_text, size_t size);
/* The row of a frame, by_is_frame(); NULL: none. */
const struct diff_row *diff_row_of(const struct diff *diff, struct model *model, uint32_t frame);
void diff_free(struct diff *diff);

static inline struct diff_row *diff_row(const struct diff *diff, size_t i)
{
	return (struct diff_row *)(void *)diff->rows.data.data + i;
}

static inline struct diff_path *diff_path(const struct diff *diff, size_t i)
{
	return (struct diff_path *)(void *)diff->paths.data + i;
}

static inline size_t diff_path_count(const struct diff *diff)
{
	return diff->paths.size / sizeof(struct diff_path);
}

static inline bool diff_is_change(const struct diff_share *share)
{
	return share->verdict == DIFF_GREW || share->verdict == DIFF_SHRANK;
}

#endif /* STACKTAP_VIEW_DIFF_H */
