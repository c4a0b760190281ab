/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording, or what is selected of it, in memory: one call tree of all its stacks, and which of them was seen
 * when, in which thread, for which event. Everything that is drawn or converted is made from it.
 */
#ifndef STACKTAP_VIEW_MODEL_H
#define STACKTAP_VIEW_MODEL_H

#include "view/labels.h"
#include "view/reader.h"
#include "view/significance.h"
#include "view/timeline.h"
#include "view/tree.h"

/* Texts are those of the model, which are interned. */
struct model_frame {
	const char *name, *file, *source;
	enum frame_kind kind;
	bool is_named, is_range, is_inlined;
	uint64_t line;		/* zero unless model_options' with_lines or is_exact */
	/* zero and "" unless is_exact */
	uint64_t address, start_line;
	uint64_t start, limit, offset;	/* of the mapping */
	const char *build_id;
	/* zero and "" unless with_remarks, see struct view_frame */
	const char *system_name;
	uint64_t column;
	uint8_t lacks;
	bool is_folded;
};

/* Of all Profiles together: each comment once, and of other texts the first. */
struct model_remarks {
	struct buffer comments;		/* const char * */
	const char *drop_frames, *keep_frames, *doc_url, *default_type;
	uint32_t losses;		/* a bit for each view_loss: also those of reader_totals, when it is whole */
};

struct model_group {
	uint32_t event;
	struct view_process process;
	uint32_t tid;
	const char *thread;
	uint32_t labels;	/* a set of them, with_remarks */
	uint32_t first;		/* of those that are one to folded_write() */
};

enum model_side {
	MODEL_AFTER,		/* or the only recording */
	MODEL_BEFORE,
};

struct model_event {
	enum model_side side;
	const char *source, *event, *unit;
	uint32_t fallback_errno;
	uint64_t period;	/* weight of each sample; 0: they differ */
	uint64_t samples, weight;
	bool is_default;	/* a pprof's, which says that this is looked at first */
	const char *period_type, *period_unit;	/* with_remarks, see struct view_remarks */
	uint64_t own_period;
	uint64_t timeless;	/* samples of which no time is known but their Profile's */
	double squares;		/* of its samples' weights, see struct sliced */
	bool has_quality;
	uint64_t complete, named, lost, drawn;	/* drawn: see struct view_profile */
};

struct model_options {
	const struct selection *selection;	/* NULL: all */
	const struct selection *before;	/* of a pair's MODEL_BEFORE; NULL: the same */
	bool with_times;	/* else the timeline has each stack once per group */
	bool with_lines;	/* frames are lines of functions, not functions */
	bool is_exact;		/* frames are addresses, with lines and mappings, not functions */
	bool with_remarks;	/* with what only pprof keeps of them */
	bool is_short;		/* files without directories, no source files: what two builds share */
};

struct model {
	struct texts texts;
	struct rows frames, groups, events;
	struct labels labels;
	struct model_remarks remarks;
	struct tree tree;		/* its sums: see model_sum() */
	struct timeline timeline;	/* groups and nodes are those of the model */
	struct reader_totals totals;
	struct time_span span;		/* that was selected */
	bool with_lines, is_exact, with_remarks, is_short, is_cut;
	struct {
		struct timeline timeline;
		struct reader_totals totals;
		struct time_span span;
		bool is_cut;
	} before;			/* the same of MODEL_BEFORE */
	bool is_pair;

	/* while it is made */
	struct reader *reader;
	enum model_side side;
	uint32_t event, group;		/* of the Profile and Sample at hand */
	struct buffer path;		/* frames of the stack at hand, from the root on: uint32_t */
};

/* As recording_read() says it. No samples are no error. */
int model_load(const char *path, const struct model_options *options, struct model **ret_model,
	       char *ret_error, size_t error_size);
/* Two recordings in one tree, each with events and groups of its own. No samples are no error, either. */
int model_load_pair(const char *before, const char *after, const struct model_options *options,
		    struct model **ret_model, char *ret_error, size_t error_size);
/* The first in steps: messages go into its reader; what a failing reader_add() has added so far stays. */
int model_new(const struct model_options *options, struct model **ret_model);
void model_finish(struct model *model);
void model_free(struct model *model);	/* NULL is fine */

bool model_has_side(const struct model *model, enum model_side side);	/* samples of it */
/*
 * Is the first looked at before the second one, of the same side? One that is_default is before others, then one with
 * more samples.
 */
bool model_is_before(const struct model_event *event, const struct model_event *other);
/* The first of MODEL_AFTER, or of all if it has none. */
uint32_t model_main_event(const struct model *model);
/* Sums of the tree: those of one event. -E2BIG */
int model_sum(struct model *model, uint32_t event);
/* All of an event, in slices of its recording's time. */
void model_slice(const struct model *model, uint32_t event, struct sliced *ret_sliced);

/* The frames of a node's stack, leaf first, into a buffer of uint32_t. -E2BIG */
int model_stack(const struct model *model, uint32_t node, struct buffer *frames, size_t *ret_count);

static inline struct timeline *model_timeline(const struct model *model, enum model_side side)
{
	const struct timeline *timeline =
		side == MODEL_BEFORE ? &model->before.timeline : &model->timeline;

	return (struct timeline *)(uintptr_t)timeline;
}

static inline const struct model_frame *model_frame(const struct model *model, uint32_t i)
{
	return (const struct model_frame *)(const void *)model->frames.data.data + i;
}

static inline struct model_group *model_group(const struct model *model, uint32_t i)
{
	return (struct model_group *)(void *)model->groups.data.data + i;
}

static inline struct model_event *model_event(const struct model *model, uint32_t i)
{
	return (struct model_event *)(void *)model->events.data.data + i;
}

#endif /* STACKTAP_VIEW_MODEL_H */
