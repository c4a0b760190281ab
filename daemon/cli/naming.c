// SPDX-License-Identifier: Apache-2.0
#include "cli/naming.h"

#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "cli/cli.h"
#include "cli/dwo_places.h"
#include "cli/index_cache.h"
#include "cli/module_functions.h"
#include "cli/parser_error.h"
#include "cli/places.h"
#include "view/recording.h"

#define PROGRESS_NS (2 * NSEC_PER_SEC)	/* nobody wants to be told what takes less */

/* Locations of one function come after each other, and those that are hot again and again. */
enum { PLAIN_NAMES = 4096 };
struct naming_plain {
	const char *system_name, *name;
};

int naming_open(struct naming *naming, const struct debugfile_places *places)
{
	int ret;

	census_init(&naming->census);
	naming->began = clock_monotonic();
	ret = places_debuginfod(places, &naming->debuginfod);
	if (ret)
		return ret;
	naming->plain = calloc(PLAIN_NAMES, sizeof(*naming->plain));
	if (!naming->plain || parser_new(&naming->parser) < 0 ||
	    debugfile_finder_new(naming->parser, places, naming->debuginfod, &naming->finder) < 0)
		return cli_error("out of memory");
	return CLI_OK;
}

void naming_close(struct naming *naming)
{
	for (uint32_t i = 0; i < naming->outcome_count; i++)
		free(naming->outcomes[i].file);
	free(naming->outcomes);
	free(naming->plain);
	debugfile_finder_free(naming->finder);
	debuginfod_free(naming->debuginfod);
	parser_free(naming->parser);
	census_free(&naming->census);
}

/* Between questions, each of which may take a while. */
static void show_progress(const struct naming *naming, const struct recorded_object *object)
{
	if (isatty(STDERR_FILENO) && clock_monotonic() - naming->began > PROGRESS_NS)
		fprintf(stderr, "\r\033[K%zu of %u: %s",
			(size_t)(object - census_at(&naming->census, 0)) + 1,
			naming->census.objects.count, object->path);
}

static void end_progress(const struct naming *naming)
{
	if (isatty(STDERR_FILENO) && clock_monotonic() - naming->began > PROGRESS_NS)
		fputs("\r\033[K", stderr);
}

/* A Location by its address in the file. */
struct wanted {
	uint64_t address;
	uint32_t location;
	bool is_other;			/* the file has another function there */
};

static int by_address(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* The object's Locations that this file may name, sorted. */
static int collect(const struct naming *naming, const struct recorded_object *object,
		   const struct debugfile *file, struct wanted **ret_wanted, uint32_t *ret_count)
{
	struct wanted *wanted = calloc((size_t)object->locations + 1, sizeof(*wanted));

	if (!wanted)
		return -ENOMEM;
	*ret_count = 0;
	for (uint32_t i = object->first; i != CENSUS_END; i = census_location(&naming->census, i)->next) {
		const struct recorded_location *location = census_location(&naming->census, i);

		if (location->count || (!location->is_unnamed && !location->wants_lines) ||
		    !debugfile_address(file, location, &wanted[*ret_count].address))
			continue;
		wanted[(*ret_count)++].location = i;
	}
	qsort(wanted, *ret_count, sizeof(*wanted), by_address);
	*ret_wanted = wanted;
	return 0;
}

/* @system_name, which is interned, as its source has it. NULL: no memory. */
static const char *plain_name(struct naming *naming, const char *system_name)
{
	struct naming_plain *last = &naming->plain[((uintptr_t)system_name >> 3) % PLAIN_NAMES];
	char name[DEMANGLE_MAX];

	if (last->system_name != system_name)
		*last = (struct naming_plain){
			.system_name = system_name,
			.name = parser_demangle(naming->parser, system_name, name) ?
					system_name : texts_intern(&naming->census.texts, name),
		};
	return last->name;
}

static int add_frame(struct naming *naming, struct recorded_location *location,
		     const struct lines_answer *answer, const struct lines_frame *frame)
{
	struct census *census = &naming->census;
	struct recorded_frame row = {
		.line = frame->line, .column = frame->line ? frame->column : 0,
		.start_line = frame->start_line,
	};

	row.system_name = texts_intern(&census->texts, answer->strings + frame->name);
	if (!row.system_name)
		return -E2BIG;
	row.name = plain_name(naming, row.system_name);
	row.file = texts_intern(&census->texts, answer->strings + frame->file);
	if (!row.name || !row.file)
		return -E2BIG;
	return census_name(census, location, &row);
}

/*
 * Where a module's sections are is not recorded, but which function an address is in. One that has another one there by
 * the file is not named by it; nor is what has none to tell by.
 */
static bool is_same(const struct recorded_location *location, const char *function, struct naming_outcome *outcome,
		    bool *ret_is_other)
{
	const bool is = location->function && !strcmp(location->function, function);

	if (!location->function)
		outcome->unsaid++;
	else if (!function[0])
		outcome->absent++;
	else if (!is)
		outcome->others++;
	*ret_is_other = !is && location->function && function[0];
	return is;
}

/* The frames of one address for all Locations that have it. */
static int take_frames(struct naming *naming, struct naming_outcome *outcome, const struct dwo_places *dwos,
		       const struct lines_answer *answer, const struct lines_frame *frames, uint32_t count,
		       struct wanted *wanted)
{
	struct recorded_location *location = census_location(&naming->census, wanted->location);
	const char *function = answer->strings + (count ? frames[count - 1].name : 0);
	int r = 0;

	if (dwos->file->is_module && !is_same(location, function, outcome, &wanted->is_other))
		return 0;
	/* one that does not know what it is in names nothing */
	if (!function[0])
		return 0;
	for (uint32_t i = 0; !r && i < count; i++)
		if (answer->strings[frames[i].name])
			r = add_frame(naming, location, answer, &frames[i]);
	outcome->matched++;
	outcome->found += location->is_unnamed || count > 1 || frames[0].line || answer->strings[frames[0].file];
	outcome->with_lines += frames[0].line > 0;
	return r;
}

/* Addresses of one question, and which is the first of the next. */
static uint32_t next_question(const struct wanted *wanted, uint32_t count, uint32_t first,
			      uint64_t addresses[static LINES_ADDRESSES_MAX], uint32_t *ret_count)
{
	uint32_t i;

	*ret_count = 0;
	for (i = first; i < count; i++) {
		if (*ret_count && addresses[*ret_count - 1] == wanted[i].address)
			continue;
		if (*ret_count == LINES_ADDRESSES_MAX)
			break;
		addresses[(*ret_count)++] = wanted[i].address;
	}
	return i;
}

static int ask_all(struct naming *naming, struct naming_outcome *outcome, struct dwo_places *dwos,
		   struct wanted *wanted, uint32_t count)
{
	uint64_t addresses[LINES_ADDRESSES_MAX];
	uint32_t asked, next;
	int r = 0;

	for (uint32_t i = 0; !r && i < count; i = next) {
		static struct lines_answer answer;
		const struct lines_frame *frames;
		uint32_t at = 0;

		show_progress(naming, outcome->object);
		next = next_question(wanted, count, i, addresses, &asked);
		r = dwo_files_ask(&dwos->files, addresses, &asked, &answer);
		if (r < 0)
			return r;
		while (wanted[next - 1].address > addresses[asked - 1])
			next--;
		frames = answer.frames;
		for (uint32_t k = i; !r && k < next; k++) {
			if (wanted[k].address != addresses[at])
				frames += answer.counts[at++];
			r = take_frames(naming, outcome, dwos, &answer, frames, answer.counts[at],
					&wanted[k]);
		}
		lines_answer_free(&answer);
	}
	return r;
}

const char *naming_failure(int error)
{
	switch (error) {
	case -ENODATA:
		return "it has neither symbols nor DWARF";
	case -EUCLEAN:
		return "it has relocations that are damaged, or of an unknown type";
	case -EFBIG:
		return "its debug sections, unpacked or relocated, need more memory than the parser may take";
	default:
		return parser_error(error);
	}
}

#define add_note(outcome, ...) fail_note((outcome)->note, sizeof((outcome)->note), __VA_ARGS__)

static void note_kept(struct naming_outcome *outcome, uint32_t count, const char *why)
{
	if (count)
		add_note(outcome, "%u stay as recorded: %s", count, why);
}

/*
 * Labels of the kernel's table are no functions of the file, so another name alone says little. One that is a function of
 * the file, elsewhere, proves that its code is not where it is expected to be, and what fits does so by chance.
 */
static bool is_moved(struct naming *naming, const struct debugfile *file, const struct wanted *wanted, uint32_t count)
{
	struct module_functions functions;
	bool is = false;

	module_functions_init(&functions);
	for (uint32_t i = 0; !is && i < count; i++)
		is = wanted[i].is_other &&
		     module_functions_elsewhere(&functions, naming->parser, file, wanted[i].address,
						census_location(&naming->census, wanted[i].location)->function);
	module_functions_free(&functions);
	return is;
}

/* What a module's Locations have got, or have not. */
static void check_functions(struct naming *naming, struct naming_outcome *outcome)
{
	const uint32_t told = outcome->matched + outcome->others + outcome->absent + outcome->unsaid;

	if (!outcome->is_moved) {
		note_kept(outcome, outcome->others, "this file has another function at their addresses");
		note_kept(outcome, outcome->absent, "where their code is depends on the kernel's configuration (.exit.text, "
			  "arm64's .plt, and what is behind them), or this file has no function there");
		note_kept(outcome, outcome->unsaid, "nothing recorded says which functions they are in");
		note_kept(outcome, outcome->wanted - min_of(told, outcome->wanted),
			  "their addresses were withheld (kernel.kptr_restrict)");
		return;
	}
	for (uint32_t i = outcome->object->first; i != CENSUS_END; i = census_location(&naming->census, i)->next)
		census_location(&naming->census, i)->count = 0;
	outcome->found = outcome->with_lines = 0;
	add_note(outcome, "all stay as recorded: this file has another function at %u of their addresses, and what is recorded "
		 "there elsewhere", outcome->others);
}

/* Why no address that was recorded has a place in the file. */
static const char *why_elsewhere(const struct debugfile *file)
{
	if (!file->is_kernel)
		return "its addresses are those of a process: only the program or library itself says which they are "
		       "in the file (--binary, --sysroot)";
	if (file->facts.image == UINT64_MAX)
		return "the file does not say where the kernel's code begins";
	return "the kernel's addresses were withheld when it was recorded";
}

/* One pass over what has no name yet. */
static int name_once(struct naming *naming, struct naming_outcome *outcome, const struct debugfile *file,
		   struct dwo_places *dwos)
{
	const bool with_dwarf = file->with_dwarf;
	_cleanup_free_ struct wanted *wanted = NULL;
	uint32_t count;
	int r = collect(naming, outcome->object, file, &wanted, &count);

	if (!r && !count && !outcome->matched && !outcome->note[0])
		add_note(outcome, "%s", why_elsewhere(file));
	if (r < 0 || !count)
		return r;
	outcome->others = outcome->absent = outcome->unsaid = 0;
	outcome->is_moved = false;
	r = parser_open_lines(naming->parser, file->object, file->fd, with_dwarf, with_dwarf ? &file->alt : NULL,
			      with_dwarf ? &file->split : NULL, PARSER_LINES_MS);
	if (!r) {
		index_cache_load(naming->parser, file);
		r = ask_all(naming, outcome, dwos, wanted, count);
	}
	if (!r)
		index_cache_save(naming->parser, file);
	if (!r && file->is_module)
		outcome->is_moved = is_moved(naming, file, wanted, count);
	if (!r && !outcome->note[0])
		dwo_places_note(dwos, sizeof(outcome->note), outcome->note);
	return r;
}

/* Without a CPU nothing is known of the file. */
static int name_by(struct naming *naming, struct naming_outcome *outcome, const struct debugfile *file, struct dwo_places *dwos)
{
	unsigned int tries = PARSER_TRIES;
	int r;

	do
		r = name_once(naming, outcome, file, dwos);
	while (parser_may_try_again(naming->parser, r, &tries));
	return r;
}

/* A file of the right build that was read and leaves something to be wished for. */
static void note_nothing(struct naming_outcome *outcome, const struct debugfile *file)
{
	if (outcome->note[0])
		return;
	if (!outcome->matched)
		add_note(outcome, "it has no function at these addresses");
	else if (!outcome->with_lines && file->with_dwarf)
		add_note(outcome, "without lines: its DWARF has none for these addresses, or is damaged");
}

static int name_object(struct naming *naming, struct naming_outcome *outcome)
{
	struct debugfile file;
	struct dwo_places dwos;
	int r = debugfile_find(naming->finder, outcome->object, &file);

	snprintf(outcome->note, sizeof(outcome->note), "%s", file.note);
	if (r < 0)
		return 0;
	outcome->file = strdup(file.object->path);
	dwo_places_init(&dwos, naming->parser, naming->finder, &file);
	r = name_by(naming, outcome, &file, &dwos);
	if (r < 0 && r != -E2BIG && (file.split.fd >= 0 || dwos.files.is_wanted)) {
		snprintf(outcome->note, sizeof(outcome->note),
			 "without inlined functions: its split DWARF (.dwp, .dwo) cannot be read: %s", naming_failure(r));
		debugfile_drop_split(&file);
		dwo_files_drop(&dwos.files);
		r = name_by(naming, outcome, &file, &dwos);
	}
	if (r < 0 && r != -E2BIG && file.with_dwarf) {
		snprintf(outcome->note, sizeof(outcome->note),
			 "without lines: its DWARF cannot be read: %s", naming_failure(r));
		file.with_dwarf = false;
		r = name_by(naming, outcome, &file, &dwos);
	}
	if (r < 0)
		snprintf(outcome->note, sizeof(outcome->note), "%s", naming_failure(r));
	else if (file.is_module)
		check_functions(naming, outcome);
	else
		note_nothing(outcome, &file);
	debugfile_close(&file);
	return r == -E2BIG ? r : 0;
}

static uint32_t count_wanted(const struct naming *naming, const struct recorded_object *object)
{
	uint32_t count = 0;

	for (uint32_t i = object->first; i != CENSUS_END; i = census_location(&naming->census, i)->next)
		count += census_location(&naming->census, i)->is_unnamed ||
			 census_location(&naming->census, i)->wants_lines;
	return count;
}

static bool has_file(const struct recorded_object *object)
{
	return (object->path[0] != '[' || debugfile_is_kernel(object->path) || debugfile_is_module(object->path)) &&
	       (object->build_id[0] || object->htlhash[0]);
}

int naming_run(struct naming *naming, const char *path)
{
	int r = 0;

	naming->outcomes = calloc((size_t)naming->census.objects.count + 1, sizeof(*naming->outcomes));
	if (!naming->outcomes)
		return cli_error("out of memory");
	for (uint32_t i = 0; !r && i < naming->census.objects.count; i++) {
		struct naming_outcome *outcome = &naming->outcomes[naming->outcome_count];

		outcome->object = census_at(&naming->census, i);
		outcome->wanted = count_wanted(naming, outcome->object);
		/* memory without a file has none to look for */
		if (!outcome->wanted || (!outcome->object->unnamed && !has_file(outcome->object)))
			continue;
		show_progress(naming, outcome->object);
		naming->outcome_count++;
		r = name_object(naming, outcome);
	}
	end_progress(naming);
	return r < 0 ? cli_error("%s has more names than there is memory allowed for",
				 recording_name(path)) : CLI_OK;
}
