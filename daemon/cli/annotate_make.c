// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "cli/annotate.h"
#include "view/recording.h"

enum { CANDIDATES_MAX = 8 };	/* that are listed */

/* Where a sentence goes that says what is wrong. */
struct complaint {
	const char *recording;
	char *text;
	size_t size;
};

#define complain(complaint, err, ...) fail_with(err, (complaint)->text, (complaint)->size, __VA_ARGS__)

/* A function of an object, among those that the name may mean. */
struct candidate {
	const struct hit *hit;
	uint64_t samples;
};

static bool is_same_function(const struct hit *a, const struct hit *b)
{
	return a->name == b->name && a->mapping->file == b->mapping->file &&
	       a->mapping->build_id == b->mapping->build_id &&
	       a->mapping->htlhash == b->mapping->htlhash;
}

static int most_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return (x->samples < y->samples) - (x->samples > y->samples);
}

/* Those called exactly so, if there are any; the one with most samples first. */
static size_t list_candidates(const struct hits *hits, struct candidate *candidates)
{
	bool any_exact = false;
	size_t count = 0, k;

	for (uint32_t i = 0; i < hits->rows.count; i++)
		any_exact |= !strcmp(hits_at(hits, i)->name, hits->function);
	for (uint32_t i = 0; i < hits->rows.count; i++) {
		const struct hit *hit = hits_at(hits, i);

		if (any_exact && strcmp(hit->name, hits->function) != 0)
			continue;
		for (k = 0; k < count && !is_same_function(candidates[k].hit, hit);)
			k++;
		if (k == count && count == CANDIDATES_MAX)
			continue;
		if (k == count)
			candidates[count++] = (struct candidate){ .hit = hit };
		rows_sum(&candidates[k].samples, hit->samples);
	}
	qsort(candidates, count, sizeof(*candidates), most_first);
	return count;
}

static int say_ambiguous(const struct complaint *complaint, const struct hits *hits,
			 const struct candidate *candidates, size_t count)
{
	const bool same_name = candidates[0].hit->name == candidates[count - 1].hit->name;
	char list[1536] = "";
	size_t used = 0;

	for (size_t i = 0; i < count && used < sizeof(list); i++) {
		const struct hit *hit = candidates[i].hit;
		const struct view_mapping *mapping = hit->mapping;
		const char *id = mapping->build_id[0] ? mapping->build_id : mapping->htlhash;

		used += (size_t)snprintf(list + used, sizeof(list) - used,
					 "%s%s in %s%s%.8s (%" PRIu64 " samples)", i ? ", " : "", hit->name,
					 mapping->file[0] ? mapping->file : "[no mapping]", *id ? " " : "", id,
					 candidates[i].samples);
	}
	return complain(complaint, -ENOTUNIQ, "`%s' may be %s%s; choose with %s", hits->function, list,
			 count == CANDIDATES_MAX ? ", and others" : "",
			 same_name ? "--object" : "its whole name, or --object");
}

static int say_nothing_found(const struct complaint *complaint, const struct hits *hits,
			     const struct annotate_options *options)
{
	const char *name = complaint->recording;

	if (!hits->events.count) {
		selection_say_nothing(&options->selection, name, complaint->text, complaint->size);
		return -ENOENT;
	}
	if (hits->called)
		return complain(complaint, -ENOENT, "%s: no sample is in the code of `%s' itself: %" PRIu64
				 " are in what it calls; see `stacktap report --callers'", name,
				 hits->function, hits->called);
	return complain(complaint, -ENOENT, "%s: there is no function `%s'%s%s in it; `stacktap report --by function' "
			 "lists those there are", name, hits->function, options->object ? " of " : "",
			 options->object ? options->object : "");
}

/* The hits of one function of one object, of the event with most samples of it. */
static int choose(struct annotation *annotation, const struct complaint *complaint)
{
	struct candidate candidates[CANDIDATES_MAX];
	struct hits *hits = &annotation->hits;
	size_t count = list_candidates(hits, candidates);

	if (!count)
		return say_nothing_found(complaint, hits, annotation->options);
	if (count > 1)
		return say_ambiguous(complaint, hits, candidates, count);
	annotation->event = hits_event(hits, 0);
	for (uint32_t i = 1; i < hits->events.count; i++)
		if (hits_event(hits, i)->function_samples > annotation->event->function_samples)
			annotation->event = hits_event(hits, i);
	annotation->chosen = calloc(hits->rows.count, sizeof(*annotation->chosen));
	annotation->next_hit = calloc(hits->rows.count, sizeof(*annotation->next_hit));
	if (!annotation->chosen || !annotation->next_hit)
		return complain(complaint, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < hits->rows.count; i++) {
		const struct hit *hit = hits_at(hits, i);

		if (!is_same_function(hit, candidates[0].hit) ||
		    hits_event(hits, hit->event) != annotation->event)
			continue;
		annotation->chosen[annotation->count++] = hit;
		rows_sum(&annotation->samples, hit->samples);
		rows_sum(&annotation->weight, hit->weight);
		rows_sum(&annotation->inlined, hit->inlined);
	}
	return 0;
}

static void drop_sections(struct annotation *annotation)
{
	buffer_clear(&annotation->sections);
	buffer_clear(&annotation->rows);
}

/* Source before code before bare lines. -ENOENT: there is none of them. */
static int make_sections(struct annotation *annotation)
{
	const bool wants_source = !annotation->options->without_source;
	bool found = false;
	int r;

	annotate_find_files(annotation);
	r = annotate_find_places(annotation);
	annotation->mode = ANNOTATE_SOURCE;
	if (!r && wants_source)
		r = annotate_source(annotation, &found);
	if (r < 0 || found)
		return r;
	drop_sections(annotation);
	annotation->mode = ANNOTATE_CODE;
	r = annotate_code(annotation);
	if (r != -ENOENT || !wants_source)
		return r;
	drop_sections(annotation);
	annotation->mode = ANNOTATE_LINES;
	r = annotate_source(annotation, &found);
	return r ?: annotate_section_count(annotation) ? 0 : -ENOENT;
}

void annotation_done(struct annotation *annotation)
{
	debugfile_close(&annotation->code);
	debugfile_close(&annotation->debug);
	debugfile_finder_free(annotation->finder);
	debuginfod_free(annotation->debuginfod);
	parser_free(annotation->parser);
	buffer_free(&annotation->sections);
	buffer_free(&annotation->rows);
	arena_free(&annotation->arena);
	free(annotation->places);
	free(annotation->chosen);
	free(annotation->next_hit);
	hits_free(&annotation->hits);
}

int annotation_init(struct annotation *annotation, const struct annotate_options *options,
		    struct debuginfod *debuginfod)
{
	*annotation = (struct annotation){
		.options = options, .debuginfod = debuginfod, .code = DEBUGFILE_NONE,
		.debug = DEBUGFILE_NONE,
	};
	arena_init(&annotation->arena, POOL_REPORT);
	buffer_init(&annotation->sections, POOL_REPORT);
	buffer_init(&annotation->rows, POOL_REPORT);
	return parser_new(&annotation->parser) ?:
	       debugfile_finder_new(annotation->parser, &options->places, debuginfod, &annotation->finder);
}

int annotation_make(struct annotation *annotation, const char *recording, char *ret_error,
		    size_t size)
{
	const struct complaint complaint = {
		.recording = recording, .text = ret_error, .size = size,
	};
	const struct annotate_options *options = annotation->options;
	int ret = choose(annotation, &complaint);

	if (ret)
		return ret;
	ret = make_sections(annotation);
	if (ret == -ENOENT)
		return complain(&complaint, ret, "%s: %s%s", options->function,
				annotation->note[0] ? annotation->note : "neither lines nor code are here",
				annotate_has_file(annotation->chosen[0]) && !options->places.process &&
				!(annotate_is_module(annotation->chosen[0]) &&
				  (annotation->debug.with_dwarf || options->without_source)) ?
				"; --binary, --debug-dir and --sysroot say where to look" : "");
	if (ret < 0)
		return complain(&complaint, ret, RECORDING_TOO_LARGE, recording);
	annotate_errors(annotation);
	return 0;
}
