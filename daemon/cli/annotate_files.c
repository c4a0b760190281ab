// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/utf8.h"
#include "cli/annotate.h"
#include "cli/dwo_places.h"
#include "cli/index_cache.h"
#include "cli/module_functions.h"
#include "cli/naming.h"

enum { TEXT_MAX = 1024 };

const char *annotate_text(struct annotation *annotation, const char *text)
{
	char clean[TEXT_MAX];
	size_t length = utf8_copy(clean, sizeof(clean), text);

	return arena_strdup(&annotation->arena, clean, length);
}

static const char *hex_or_none(const char *text)
{
	return strspn(text, "0123456789abcdef") == strlen(text) ? text : "";
}

bool annotate_is_module(const struct hit *hit)
{
	return hit->kind == FRAME_KIND_KERNEL && debugfile_is_module(hit->mapping->file);
}

bool annotate_has_file(const struct hit *hit)
{
	return hit->kind == FRAME_KIND_NATIVE || annotate_is_module(hit) ||
	       (hit->kind == FRAME_KIND_KERNEL && debugfile_is_kernel(hit->mapping->file));
}

void annotate_find_files(struct annotation *annotation)
{
	const struct hit *hit = annotation->chosen[0];
	/* ids become part of a path */
	const struct recorded_object object = {
		.path = hit->mapping->file, .build_id = hex_or_none(hit->mapping->build_id),
		.htlhash = hex_or_none(hit->mapping->htlhash),
	};

	if (!annotate_has_file(hit)) {
		annotate_note(annotation, hit->kind == FRAME_KIND_KERNEL ?
			      "kernel code outside of vmlinux and modules, such as a BPF program's, cannot be annotated" :
			      "JIT-compiled or interpreted code has no file to annotate");
		return;
	}
	debugfile_find(annotation->finder, &object, &annotation->debug);
	/* what a server said, who was asked for it wants to know */
	if (annotation->debuginfod && annotation->debug.note[0])
		annotate_note(annotation, "%s", annotation->debug.note);
	debugfile_find_code(annotation->finder, &object, &annotation->code);
}

bool annotate_address(const struct debugfile *file, const struct hit *hit, uint64_t *ret_address)
{
	const struct recorded_location location = {
		.address = hit->address, .start = hit->mapping->start,
		.offset = hit->mapping->offset, .limit = hit->mapping->limit,
	};

	return hit->mapping->file[0] && debugfile_address(file, &location, ret_address);
}

/* From address *next on, which it moves on behind what was answered. */
static int ask_frames_once(struct annotation *annotation, struct dwo_places *dwos, const uint64_t *addresses, uint32_t count,
			   uint32_t *next, annotate_each_frame *each, void *ctx)
{
	const struct debugfile *file = &annotation->debug;
	static struct lines_answer answer;
	int r;

	r = parser_open_lines(annotation->parser, file->object, file->fd, file->with_dwarf,
			      file->with_dwarf ? &file->alt : NULL, file->with_dwarf ? &file->split : NULL, PARSER_LINES_MS);
	if (!r)
		index_cache_load(annotation->parser, file);
	while (!r && *next < count) {
		uint32_t asked = min_of(count - *next, (uint32_t)LINES_ADDRESSES_MAX);
		const struct lines_frame *frames;

		r = dwo_files_ask(&dwos->files, addresses + *next, &asked, &answer);
		if (r < 0)
			break;
		frames = answer.frames;
		for (uint32_t k = 0; !r && k < asked; frames += answer.counts[k++])
			r = each(annotation, ctx, *next + k, frames, answer.counts[k], answer.strings);
		lines_answer_free(&answer);
		*next += asked;
	}
	if (!r)
		index_cache_save(annotation->parser, file);
	return r;
}

/* Without a CPU nothing is known of the file. */
static int ask_frames(struct annotation *annotation, struct dwo_places *dwos, const uint64_t *addresses, uint32_t count,
		      uint32_t *next, annotate_each_frame *each, void *ctx)
{
	unsigned int tries = PARSER_TRIES;
	int r;

	do
		r = ask_frames_once(annotation, dwos, addresses, count, next, each, ctx);
	while (parser_may_try_again(annotation->parser, r, &tries));
	return r;
}

int annotate_frames(struct annotation *annotation, const uint64_t *addresses, uint32_t count,
		    annotate_each_frame *each, void *ctx)
{
	struct debugfile *file = &annotation->debug;
	struct dwo_places dwos;
	char note[sizeof(file->note)];
	uint32_t next = 0;
	int r;

	dwo_places_init(&dwos, annotation->parser, annotation->finder, file);
	r = ask_frames(annotation, &dwos, addresses, count, &next, each, ctx);
	if (r < 0 && r != -E2BIG && (file->split.fd >= 0 || dwos.files.is_wanted)) {
		annotate_note(annotation,
			      "%s: without inlined functions: its split DWARF (.dwp, .dwo) cannot be read: %s",
			      file->object->path, naming_failure(r));
		debugfile_drop_split(file);
		dwo_files_drop(&dwos.files);
		return ask_frames(annotation, &dwos, addresses, count, &next, each, ctx);
	}
	dwo_places_note(&dwos, sizeof(note), note);
	if (!r && note[0])
		annotate_note(annotation, "%s: %s", file->object->path, note);
	return r;
}

/* A chosen hit by its address in the debug file. */
struct asked {
	uint64_t address;
	size_t hit;
	bool is_other;			/* a module's file has another function there */
};

struct question {
	struct asked *asked;		/* sorted, as are the addresses, which have each once */
	size_t count, next;
	const uint64_t *addresses;
	size_t others, absent;		/* of a module, addresses: where its file has another function, see naming.c, or none */
};

static int by_address(const void *a, const void *b)
{
	const struct asked *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static bool is_called(struct annotation *annotation, const char *linkage, const char *name)
{
	char plain[DEMANGLE_MAX];

	return !strcmp(name, parser_demangle(annotation->parser, linkage, plain) ? linkage : plain);
}

/* The frame that is the function's own: the outermost, or one inlined into another. */
static const struct lines_frame *frame_of(struct annotation *annotation, const char *name,
					  const struct lines_frame *frames, uint32_t count,
					  const char *strings)
{
	for (uint32_t i = 0; i + 1 < count; i++)
		if (is_called(annotation, strings + frames[i].name, name))
			return &frames[i];
	return count ? &frames[count - 1] : NULL;
}

/* Whether the function that a module's file has at the next hit's address is the one that is recorded, as all of its hits are. */
static bool is_same(struct annotation *annotation, struct question *question, const char *function)
{
	struct asked *asked = &question->asked[question->next];

	if (!function[0]) {
		question->absent++;
		return false;
	}
	asked->is_other = !is_called(annotation, function, annotation->chosen[asked->hit]->name);
	question->others += asked->is_other;
	return !asked->is_other;
}

static int take_place(struct annotation *annotation, void *ctx, uint32_t i,
		      const struct lines_frame *frames, uint32_t count, const char *strings)
{
	struct question *question = ctx;
	const bool is_good = !annotation->debug.is_module ||
			     is_same(annotation, question, count ? strings + frames[count - 1].name : "");

	for (; question->next < question->count &&
	       question->asked[question->next].address == question->addresses[i]; question->next++) {
		const size_t hit = question->asked[question->next].hit;
		const struct lines_frame *frame = frame_of(annotation, annotation->chosen[hit]->name,
							   frames, count, strings);

		if (!is_good || !frame || !frame->line || !strings[frame->file])
			continue;
		annotation->places[hit] = (struct annotate_place){
			.file = texts_intern(&annotation->hits.texts, strings + frame->file),
			.line = frame->line, .start_line = frame->start_line,
		};
		if (!annotation->places[hit].file)
			return -E2BIG;
	}
	return 0;
}

static bool is_moved(struct annotation *annotation, const struct question *question)
{
	struct module_functions functions;
	bool is = false;

	module_functions_init(&functions);
	for (size_t i = 0; !is && i < question->count; i++)
		is = question->asked[i].is_other &&
		     module_functions_elsewhere(&functions, annotation->parser, &annotation->debug, question->asked[i].address,
						annotation->chosen[question->asked[i].hit]->name);
	module_functions_free(&functions);
	return is;
}

/* As check_functions() of naming.c, of the hits of one function. */
static void check_module(struct annotation *annotation, const struct question *question)
{
	const char *path = annotation->debug.object->path;

	if (is_moved(annotation, question)) {
		memset(annotation->places, 0, annotation->count * sizeof(*annotation->places));
		annotate_note(annotation, "%s has another function at %zu of its addresses, and this one elsewhere; none has a line",
			      path, question->others);
		return;
	}
	if (question->others)
		annotate_note(annotation, "%s has another function at %zu of its addresses; these have no lines", path,
			      question->others);
	if (question->absent)
		annotate_note(annotation, "%s has no function at %zu of its addresses, or where that code is depends on the kernel's "
			      "configuration; these have no lines", path, question->absent);
}

static int ask_places(struct annotation *annotation)
{
	_cleanup_free_ struct asked *asked = calloc(annotation->count, sizeof(*asked));
	_cleanup_free_ uint64_t *addresses = calloc(annotation->count, sizeof(*addresses));
	struct question question = { .asked = asked, .addresses = addresses };
	uint32_t count = 0;
	int r;

	if (!asked || !addresses)
		return -E2BIG;
	for (size_t i = 0; i < annotation->count; i++) {
		if (!annotate_address(&annotation->debug, annotation->chosen[i],
				      &asked[question.count].address))
			continue;
		asked[question.count++].hit = i;
	}
	qsort(asked, question.count, sizeof(*asked), by_address);
	for (size_t i = 0; i < question.count; i++)
		if (!i || asked[i].address != asked[i - 1].address)
			addresses[count++] = asked[i].address;
	r = annotate_frames(annotation, addresses, count, take_place, &question);
	if (r < 0 && r != -E2BIG) {
		annotate_note(annotation, "the lines of %s cannot be read: %s",
			      annotation->debug.object->path, naming_failure(r));
		return 0;
	}
	if (!r && annotation->debug.is_module)
		check_module(annotation, &question);
	return r;
}

int annotate_find_places(struct annotation *annotation)
{
	bool any = false;

	annotation->places = calloc(annotation->count, sizeof(*annotation->places));
	if (!annotation->places)
		return -E2BIG;
	for (size_t i = 0; i < annotation->count; i++) {
		const struct hit *hit = annotation->chosen[i];

		if (!hit->line || !hit->source[0])
			continue;
		any = true;
		annotation->places[i] = (struct annotate_place){
			.file = hit->source, .line = hit->line, .start_line = hit->start_line,
		};
	}
	if (any || !annotation->debug.object || !annotation->debug.with_dwarf)
		return 0;
	return ask_places(annotation);
}
