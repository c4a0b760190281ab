/* SPDX-License-Identifier: Apache-2.0 */
/* A Sample of OTLP profiles with all that it is of, resolved, as a reader hands it out. */
#ifndef STACKTAP_VIEW_SAMPLE_H
#define STACKTAP_VIEW_SAMPLE_H

#include "base/macro.h"
#include "view/quality.h"
#include "view/selection.h"
#include "view/texts.h"

/* All texts are interned in the reader's texts and never NULL; "" when unknown. */

enum frame_kind {
	FRAME_KIND_NATIVE,
	FRAME_KIND_KERNEL,
	FRAME_KIND_MANAGED,	/* of a runtime: compiled just in time, or interpreted */
};

struct view_mapping {
	const char *file, *build_id, *htlhash;
	uint64_t start, limit, offset;
	uint8_t lacks;		/* a bit for each pprof_mapping_flag that it is said not to have */
};

/* A Line of a Location, or a Location without any. */
struct view_frame {
	const char *name;	/* without one: see reader_new() */
	const char *source;	/* file of the function's source */
	const struct view_mapping *mapping;	/* as long as the message lasts */
	uint64_t address;
	uint64_t line, column;	/* 0: unknown */
	uint64_t start_line;	/* of the function in @source, 0: unknown */
	const char *system_name;	/* of the function, with remarks alone; "" or NULL: unknown */
	enum frame_kind kind;
	bool is_named;
	bool is_range;		/* it has no name, but is called by where its function begins */
	bool is_inlined;	/* into the frame that follows, which is of the same Location */
	bool is_folded;		/* other functions are at its address, too */
	uint32_t number;	/* what the sink calls it, if it numbers frames */
};

struct view_process {
	uint32_t pid;		/* 0: the kernel's own threads and idle */
	const char *name, *container_id, *service_name;
	const char *cgroup;	/* a path */
};

/* What pprof has of a profile as a whole, see view/pprof_names.h; "" or none: nothing. */
struct view_remarks {
	const char *const *comments;
	size_t comment_count;
	bool has_more;		/* comments than are kept */
	bool has_attributes;	/* that are none of pprof's or stacktap's */
	const char *drop_frames, *keep_frames, *doc_url;
	/* how what is no count of samples was sampled; period 0: not known */
	const char *period_type, *period_unit;
	uint64_t period;
};

/* An attribute of a Sample that is none of OTLP's or stacktap's own. */
struct view_label {
	const char *key, *text;	/* without a text it is the number */
	int64_t number;
	const char *unit;	/* of the number */
};

struct view_profile {
	struct view_process process;
	const char *source;	/* as the user named the event, or the sample type */
	const char *event;	/* what really counted, see fallback_errno; may equal source */
	const char *unit;	/* of weights: "nanoseconds", "count" */
	const char *default_type;	/* of the types of values that the profile was made of, that which is looked at first */
	uint32_t fallback_errno;
	uint64_t period;	/* weight of each sample, 0: each has its own */
	bool is_count;		/* values are numbers of samples */
	uint64_t start, end;	/* Unix ns */
	uint64_t drawn;		/* samples that those which were sent were drawn of, without downsampling the same */
	bool has_quality;	/* written by stacktap, and all of it is selected */
	struct view_quality quality;
	struct view_remarks remarks;	/* if the sink is with_remarks */
};

struct view_sample {
	uint32_t tid;		/* 0: unknown */
	const char *thread;
	int64_t cpu;		/* -1: unknown */
	const struct view_frame *const *frames;	/* leaf first, one at least; NULL: the sink numbers stacks, or has none */
	size_t frame_count;
	uint32_t stack;		/* what the sink calls it, if it numbers stacks */
	uint64_t samples, weight;
	const struct view_label *labels;	/* if the sink is with_remarks */
	size_t label_count;
	const uint64_t *times;	/* Unix ns, not always in order; NULL: unknown */
	const uint64_t *weights; /* of each time; NULL: equal shares of @weight */
	size_t time_count;
};

/* Share of weight of moment @i. */
static inline uint64_t view_sample_weight(const struct view_sample *sample, size_t i)
{
	if (sample->weights)
		return sample->weights[i];
	return sample->weight / sample->time_count + (i < sample->weight % sample->time_count);
}

/* What a recording has and pprof has no place for. */
enum view_loss {
	VIEW_LOSS_COMMENTS,	/* than are kept */
	VIEW_LOSS_TEXTS,	/* of a profile as a whole, than the first */
	VIEW_LOSS_PERIODS,	/* of an event, than the first */
	VIEW_LOSS_NEGATIVE,	/* values */
	VIEW_LOSS_LINKS,
	VIEW_LOSS_VALUES,	/* of attributes of Samples */
	VIEW_LOSS_OWN,		/* attributes of Samples that stacktap has written */
	VIEW_LOSS_PROFILE,	/* its attributes */
	VIEW_LOSS_RESOURCE,	/* its attributes */
	VIEW_LOSS_BUILD_IDS,
	VIEW_LOSSES,
};

struct reader_sink {
	void *ctx;
	/* A Profile with Samples of which at least one is selected. 0 or -errno, which ends it. */
	int (*profile)(void *ctx, const struct view_profile *profile);
	/*
	 * Each may be NULL: numbers a frame, and a stack of such frames, leaf first; once in a message, however many
	 * stacks and Samples it is of.
	 */
	int (*frame)(void *ctx, struct view_frame *frame);
	int (*stack)(void *ctx, const struct view_frame *const *frames, size_t count, uint32_t *ret_number);
	bool without_stacks;	/* Samples have no frames: they are not looked at */
	bool with_remarks;	/* Profiles, Samples and functions have what only pprof keeps of them */
	/* All there is to see is valid until it returns. */
	int (*sample)(void *ctx, const struct view_profile *profile,
		      const struct view_sample *sample);
};

struct reader_totals {
	uint64_t messages, bytes;
	uint64_t start, end;	/* Unix ns, of all Profiles that were selected; 0: there was none */
	uint32_t losses;	/* a bit for each view_loss, of what was selected, if the sink is with_remarks */
};

#endif /* STACKTAP_VIEW_SAMPLE_H */
