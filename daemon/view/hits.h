/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in a function's code the samples of a recording are. A sample is in a function when the Location that
 * was on top of its stack has it: with what is inlined there, without what is called from there.
 */
#ifndef STACKTAP_VIEW_HITS_H
#define STACKTAP_VIEW_HITS_H

#include "view/reader.h"
#include "view/timeline.h"

/* An address and a line of the function, of one event. */
struct hit {
	const char *name;		/* the function's, as all views call it */
	const struct view_mapping *mapping;	/* the texts' */
	uint32_t event;
	enum frame_kind kind;
	uint64_t address;
	const char *source;		/* "" and 0: unknown */
	uint64_t line, start_line;
	uint64_t samples, weight;
	uint64_t inlined;		/* samples that were in a function inlined there */
};

struct hit_event {
	const char *source, *event, *unit;	/* as of struct view_profile */
	uint64_t samples, weight;	/* of the recording, as far as it is selected */
	uint64_t function_samples;	/* of the function */
	bool is_timeless;		/* of some samples the time is not known */
};

/* What a sample is to a function that is looked for. */
enum hit_match {
	HIT_NONE,
	HIT_BUT_PARAMETERS,
	HIT_EXACT,
	HIT_MATCHES,
};

struct hits {
	struct texts texts;
	const char *function, *object;	/* what is wanted; object NULL: whatever it is in */
	struct rows mappings, events, rows;	/* struct view_mapping *, hit_event, hit */
	struct reader *reader;
	uint32_t event;			/* of the Profile at hand */
	bool with_times;		/* the two that follow: of hits, and of all samples by hits_node(), at bounded room */
	struct timeline times, all;
	uint64_t called;		/* samples with the function further down the stack alone */
	bool is_cut;
};

/*
 * What is called @function, or so but for its parameters, of what hits->reader is given. @object: a path, its last
 * part, or the beginning of a build-id; NULL: any. -ENOMEM; hits_free() in any case.
 */
int hits_new(struct hits *hits, const char *function, const char *object,
	     const struct selection *selection);
/* The same of a recording, with times if there is memory for them. As recording_read() says it; hits_free() in any case. */
int hits_load(struct hits *hits, const char *path, const char *function, const char *object,
	      const struct selection *selection, char *ret_error, size_t error_size);
void hits_free(struct hits *hits);
/* How @name, of a hit, is what was wanted. */
enum hit_match hits_match(const struct hits *hits, const char *name);

static inline struct hit *hits_at(const struct hits *hits, uint32_t i)
{
	return (struct hit *)(void *)hits->rows.data.data + i;
}

/* A sample in hits->all. */
static inline uint32_t hits_node(uint32_t event, enum hit_match match)
{
	return event * HIT_MATCHES + match;
}

static inline struct hit_event *hits_event(const struct hits *hits, uint32_t i)
{
	return (struct hit_event *)(void *)hits->events.data.data + i;
}

#endif /* STACKTAP_VIEW_HITS_H */
