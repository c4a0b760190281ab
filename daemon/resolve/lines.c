// SPDX-License-Identifier: Apache-2.0
#include "resolve/lines.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "helper/suspects.h"
#include "resolve/objects.h"

enum {
	LEAST_MS = 50,		/* less is not begun with */
	UNOPENED_S = 60,	/* until a file that nothing leads to any more is asked for again */
	SPLIT_LATE_MAX = 10,	/* windows in which there was no time for the .dwo files of a program */
};

struct wanted {
	uint64_t address;
	struct location *location;
};

static int compare_addresses(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static void put_off(const struct wanted *wanted, uint32_t count, struct lines_stats *stats)
{
	for (uint32_t i = 0; i < count; i++)
		atomic_store_explicit(&wanted[i].location->is_put_off, true, memory_order_relaxed);
	stats->put_off += count;
}

/* The outermost function keeps the name that symbols gave it. */
static const char *name_of(const struct location *location, const struct lines_answer *answer,
			   const struct lines_frame *frame, bool is_outermost)
{
	return is_outermost && location->line_count ? location->lines[0].function->system_name :
						      answer->strings + frame->name;
}

static int take_frames(struct names *names, struct location *location,
		       const struct lines_answer *answer, const struct lines_frame *frames,
		       uint32_t count, size_t *budget)
{
	struct line lines[LINES_FRAMES_MAX];
	uint32_t made = 0;
	int r = 0;

	for (; made < count && !r; made += !r) {
		const struct lines_frame *frame = &frames[made];
		const char *file = answer->strings + frame->file;

		lines[made] = (struct line){ .line = frame->line, .column = frame->line ? frame->column : 0 };
		r = names_get_at(names, name_of(location, answer, frame, made + 1 == count),
				 file[0] ? file : NULL, frame->start_line, budget, &lines[made].function);
	}
	if (!r)
		return location_set_lines(location, lines, count);
	while (made)
		function_unref(lines[--made].function);
	return r;
}

static void take(struct names *names, const struct wanted *wanted, uint32_t count,
		 const struct lines_answer *answer, size_t *budget, struct lines_stats *stats)
{
	const struct lines_frame *frames = answer->frames;
	int r;

	for (uint32_t i = 0; i < count; frames += answer->counts[i++]) {
		const uint32_t n = answer->counts[i];

		/* a name alone is what symbols have said already */
		if (!n || (!frames[n - 1].file && n == 1))
			continue;
		r = take_frames(names, wanted[i].location, answer, frames, n, budget);
		stats->with_lines += !r;
		stats->with_inlined += !r && n > 1;
		if (r == -EAGAIN)
			put_off(wanted + i, 1, stats);
	}
}

/* One question, and the files that it may be asked of. */
struct question {
	struct parser *parser;
	const struct lines_source *source;
	struct parts_of of;
	struct lines_facts facts;
	struct parser_part moved, package;
	struct stand_in parts, index;	/* of the program: whoever shares its debug file has others */
	bool has_dwarf;
	bool has_index;			/* from disk */
};

/* Of what the parser is asked: a part in another file may be what it dies of. */
static const struct object *suspect_of(const struct question *question)
{
	return question->moved.fd >= 0 || question->package.fd >= 0 ? &question->parts.object : question->source->object;
}

/* Milliseconds until then, at least one. */
static uint32_t left_until(uint64_t deadline)
{
	const uint64_t now = clock_monotonic();

	return deadline > now + NSEC_PER_MSEC ? (uint32_t)((deadline - now) / NSEC_PER_MSEC) : 1;
}

static bool may_pass(int error)
{
	return error == -ETIME || error == -EDQUOT || error == -EAGAIN || error == -ENOMEM;
}

/* Which files there are to be asked. -ENOLINK: what dwz has moved away is nowhere for now. */
static int find_files(struct question *question)
{
	const struct lines_source *source = question->source;
	struct lines_facts *facts = &question->facts;
	/* what it says that there is not is not asked for again */
	int r = parser_debug(question->parser, source->object, source->fd, PARSER_READ_MS, facts);

	if (r < 0)
		return r;
	question->has_dwarf = facts->has_dwarf;
	if (facts->has_dwarf && facts->alt_build_id[0]) {
		r = source->parts ? parts_moved(&question->of, facts, &question->moved) : -ENOENT;
		if (r < 0 && objects_may_pass(r))
			return -EAGAIN;
		/* of what dwz has moved a part away the rest is not worth much */
		question->has_dwarf = !r;
	} else if (facts->has_dwarf && source->parts && !source->known->has_no_split) {
		r = parts_package(&question->of, false, &question->package);
		if (r < 0 && objects_may_pass(r))
			return -EAGAIN;
	}
	if (question->has_dwarf || facts->has_go_lines)
		return 0;
	return facts->has_dwarf && source->parts ? -ENOLINK : -ENODATA;
}

/* One that is damaged costs the time that it takes to make it anew; one that the parser dies of is gone before it asks again. */
static int load_index(struct question *question)
{
	const struct lines_source *source = question->source;
	_cleanup_close_ int fd = -1;
	uint64_t size;
	int r;

	if (!question->has_dwarf || !source->indices || indices_get(source->indices, source->object, &fd, &size) < 0)
		return 0;
	r = parser_load_index(question->parser, &question->index.object, fd, size, left_until(source->deadline));
	indices_judge(source->indices, source->object, r);
	question->has_index = !r;
	/* another parser has nothing open */
	return r == -EPIPE || r == -ETIMEDOUT || r == -EAGAIN ? -EAGAIN : 0;
}

/* The one that the question has needed, if it is new. */
static void save_index(const struct question *question)
{
	const struct lines_source *source = question->source;
	uint64_t size;
	int fd;

	if (!question->has_dwarf || !source->indices || question->has_index || source->known->has_large_index ||
	    !indices_may_put(source->indices, source->program->payer) ||
	    parser_save_index(question->parser, &question->index.object, left_until(source->deadline), &fd, &size) < 0)
		return;
	source->known->has_large_index = size > INDICES_QUEUE_BYTES;
	indices_put(source->indices, source->object, source->program->payer, &fd, size);
}

static int open_files(struct question *question)
{
	const struct lines_source *source = question->source;
	int r = parser_open_lines(question->parser, source->object, source->fd, question->has_dwarf, &question->moved,
				  &question->package, left_until(source->deadline));

	return r ?: load_index(question);
}

/*
 * Inlined functions that are in no file that has been asked: in a package that nobody has looked for yet, in .dwo files. Half of
 * the time is for these.
 */
static int ask_split(struct question *question, const uint64_t *addresses, uint32_t *count, struct lines_answer *answer,
		     struct lines_stats *stats)
{
	const struct lines_source *source = question->source;
	const uint32_t left = left_until(source->deadline);
	struct dwarf_known *known = source->known;
	struct dwo_files files = {
		.parser = question->parser, .suspect = &question->parts.object, .question_ms = left, .end = source->deadline,
		.deadline = clock_monotonic() + left / 2 * NSEC_PER_MSEC, .is_wanted = true,
	};
	int r = question->package.fd < 0 && !question->facts.alt_build_id[0] ?
		parts_package(&question->of, true, &question->package) : -ENOENT;

	if (!r)
		r = open_files(question);
	else
		r = objects_may_pass(r) ? -EAGAIN : 0;
	if (r < 0)
		return r;
	files.object = suspect_of(question);
	parts_look_for_dwos(&question->of, &files);
	r = dwo_files_ask(&files, addresses, count, answer);
	if (r < 0 && !may_pass(r)) {
		known->has_no_split = true;
		return -EAGAIN;
	}
	if (!r && files.why == DWO_LATE) {
		known->has_no_split = ++known->split_late == SPLIT_LATE_MAX;
		lines_answer_free(answer);
		return -EAGAIN;
	}
	stats->without_inlined += files.without;
	return r;
}

static int look_up(struct question *question, const uint64_t *addresses, uint32_t *count, struct lines_answer *answer,
		   struct lines_stats *stats)
{
	const struct lines_source *source = question->source;
	int r = find_files(question);

	if (!r)
		r = open_files(question);
	if (!r)
		r = parser_lines(question->parser, suspect_of(question), addresses, *count, left_until(source->deadline), answer);
	if (r < 0 || !answer->split)
		return r;
	if (!source->parts || source->known->has_no_split) {
		stats->without_inlined += answer->split;
		return 0;
	}
	lines_answer_free(answer);
	return ask_split(question, addresses, count, answer, stats);
}

/* *count: of how many is then known what there is, at least one. */
static int ask(struct parser *parser, struct names *names, const struct lines_source *source,
	       const struct wanted *wanted, uint32_t *count, size_t *budget, struct lines_stats *stats)
{
	struct question question = {
		.parser = parser, .source = source,
		.moved = { .fd = -1, .suspect = &question.parts.object },
		.package = { .fd = -1, .suspect = &question.parts.object },
		.of = { .parts = source->parts, .program = source->program, .object = source->object, .known = source->known },
	};
	struct lines_answer *answer;
	struct parser_work work;
	uint64_t *addresses;
	int r = -ENOMEM;

	if (source->deadline < clock_monotonic() + LEAST_MS * NSEC_PER_MSEC)
		return -ETIME;
	stand_in_init(&question.parts, source->program, SUSPECT_PARTS);
	stand_in_init(&question.index, source->program, SUSPECT_INDEX);
	answer = malloc(sizeof(*answer));
	addresses = malloc(*count * sizeof(*addresses));
	if (answer && addresses) {
		for (uint32_t i = 0; i < *count; i++)
			addresses[i] = wanted[i].address;
		r = parser_begin_lines(parser, &work);
		if (!r) {
			r = look_up(&question, addresses, count, answer, stats);
			/* without its package it has lines, but for inlined functions */
			if (r < 0 && !may_pass(r) && question.package.fd >= 0) {
				source->known->has_no_split = true;
				r = -EAGAIN;
			}
			if (!r)
				save_index(&question);
			parser_end_lines(parser, &work);
		}
	}
	if (r == 0) {
		take(names, wanted, *count, answer, budget, stats);
		lines_answer_free(answer);
	}
	free(answer);
	free(addresses);
	return r;
}

void lines_resolve(struct parser *parser, struct names *names, const struct lines_source *source,
		   struct location **locations, size_t count, size_t *budget,
		   struct lines_stats *stats)
{
	_cleanup_free_ struct wanted *wanted = NULL;
	uint32_t n;
	int r = source->fd < 0 ? -EAGAIN : 0;

	if (!source->object || source->known->seek_lines_at > clock_monotonic())
		return;
	if (source->fd < 0 && !objects_may_pass(source->fd)) {
		source->known->seek_lines_at = clock_monotonic() + UNOPENED_S * NSEC_PER_SEC;
		return;
	}
	wanted = malloc(count * sizeof(*wanted));
	if (!wanted)
		return;
	for (size_t i = 0; i < count; i++)
		wanted[i] = (struct wanted){ locations[i]->address - locations[i]->is_return, locations[i] };
	qsort(wanted, count, sizeof(*wanted), compare_addresses);
	for (size_t i = 0; i < count; i += n) {
		n = (uint32_t)min_of(count - i, (size_t)LINES_ADDRESSES_MAX);
		if (!r)
			r = ask(parser, names, source, wanted + i, &n, budget, stats);
		/* what takes long and what fails is different: the one begins anew with more time */
		if (may_pass(r))
			put_off(wanted + i, n, stats);
	}
	if (source->parts)
		stats->parts = *parts_stats(source->parts);
	if (r == 0 || may_pass(r))
		return;
	log_debug("%s: no source lines: %s", source->object->path,
		  r == -EFBIG ? "its compressed debug sections need more memory than the parser may take" : strerror(-r));
	stats->without += !source->known->seek_lines_at;
	source->known->seek_lines_at = r == -ENOLINK ? source->known->seek_moved_at : UINT64_MAX;
}
