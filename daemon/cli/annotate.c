// SPDX-License-Identifier: Apache-2.0
#include "cli/annotate.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/places.h"
#include "cli/select.h"
#include "view/recording.h"

static const char help[] =
	"usage: stacktap annotate [OPTION...] FUNCTION [FILE]\n\n"
	"Prints where in a function the samples of a file of OTLP profiles are (default: stacktap.otlp;\n"
	"- is standard input): its source lines, where lines and sources are known, else its\n"
	"instructions. Lines are those that `symbolize' has written, or of a debug file of the same\n"
	"build-id. FUNCTION is as `report' calls it; parameters may be left out.\n\n"
	"      --object NAME          the function of this program or library: path, file name, build-id\n"
	"      --no-source            instructions, also where sources are known\n"
	"  -M, --disassembler-style intel|att  of x86 (default: att)\n"
	"      --asm-raw              the bytes of each instruction, too\n"
	"      --percent-limit P      leave out lines and instructions with less than P % (default: 0)\n"
	"      --source-dir DIR       look for sources below it first, by the ends of their paths; may be\n"
	"                             repeated\n"
	"      --debug-dir DIR        as of `symbolize'; so are the next two\n"
	"      --sysroot DIR\n"
	"      --binary FILE\n\n"
	SELECT_HELP
	"      --json                 everything as JSON\n"
	"  -h, --help\n";

enum {
	OPT_OBJECT = 256,
	OPT_NO_SOURCE,
	OPT_ASM_RAW,
	OPT_PERCENT_LIMIT,
	OPT_SOURCE_DIR,
	OPT_DEBUG_DIR,
	OPT_SYSROOT,
	OPT_BINARY,
	CANDIDATES_MAX = 8,		/* that are listed */
};

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

static int say_ambiguous(const struct hits *hits, const struct candidate *candidates, size_t count)
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
	return cli_error("`%s' may be %s%s; choose with %s", hits->function, list,
			 count == CANDIDATES_MAX ? ", and others" : "",
			 same_name ? "--object" : "its whole name, or --object");
}

static int say_nothing_found(const struct hits *hits, const struct annotate_options *options)
{
	const char *name = recording_name(options->path);

	if (!hits->events.count)
		return select_found_nothing(&options->selection, options->path);
	if (hits->called)
		return cli_error("%s: no sample is in the code of `%s' itself: %" PRIu64
				 " are in what it calls; see `stacktap report --callers'", name,
				 hits->function, hits->called);
	return cli_error("%s: there is no function `%s'%s%s in it; `stacktap report --by function' "
			 "lists those there are", name, hits->function, options->object ? " of " : "",
			 options->object ? options->object : "");
}

/* The hits of one function of one object, of the event with most samples of it. */
static int choose(struct annotation *annotation)
{
	struct candidate candidates[CANDIDATES_MAX];
	struct hits *hits = &annotation->hits;
	size_t count = list_candidates(hits, candidates);

	if (!count)
		return say_nothing_found(hits, annotation->options);
	if (count > 1)
		return say_ambiguous(hits, candidates, count);
	annotation->event = hits_event(hits, 0);
	for (uint32_t i = 1; i < hits->events.count; i++)
		if (hits_event(hits, i)->function_samples > annotation->event->function_samples)
			annotation->event = hits_event(hits, i);
	annotation->chosen = calloc(hits->rows.count, sizeof(*annotation->chosen));
	if (!annotation->chosen)
		return cli_error("out of memory");
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
	return CLI_OK;
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

static void annotation_done(struct annotation *annotation)
{
	debugfile_close(&annotation->code);
	debugfile_close(&annotation->debug);
	debugfile_finder_free(annotation->finder);
	parser_free(annotation->parser);
	buffer_free(&annotation->sections);
	buffer_free(&annotation->rows);
	arena_free(&annotation->arena);
	free(annotation->places);
	free(annotation->chosen);
	hits_free(&annotation->hits);
}

static int annotate(struct annotate_options *options)
{
	_cleanup_(annotation_done) struct annotation annotation = {
		.options = options, .code = { .fd = -1, .alt_fd = -1 },
		.debug = { .fd = -1, .alt_fd = -1 },
	};
	char plain[DEMANGLE_MAX], error[512];
	int ret;

	if (parser_new(&annotation.parser) < 0 ||
	    debugfile_finder_new(annotation.parser, &options->places, NULL, &annotation.finder) < 0)
		return cli_error("out of memory");
	/* names are shown without their mangling */
	if (!parser_demangle(annotation.parser, options->function, plain))
		options->function = plain;
	arena_init(&annotation.arena, POOL_REPORT);
	buffer_init(&annotation.sections, POOL_REPORT);
	buffer_init(&annotation.rows, POOL_REPORT);
	if (hits_load(&annotation.hits, options->path, options->function, options->object,
		      &options->selection, error, sizeof(error)) < 0)
		return cli_error("%s", error);
	ret = choose(&annotation);
	if (ret)
		return ret;
	ret = make_sections(&annotation);
	if (ret == -ENOENT)
		return cli_error("%s: %s%s", options->function,
				 annotation.note[0] ? annotation.note : "neither lines nor code are here",
				 annotation.chosen[0]->kind == FRAME_KIND_NATIVE ?
				 "; --binary, --debug-dir and --sysroot say where to look" : "");
	if (ret < 0)
		return cli_error("%s needs more memory than is allowed.", recording_name(options->path));
	if (options->use_json) {
		annotate_print_json(&annotation);
		return cli_finish();
	}
	if (annotation.hits.is_cut)
		fprintf(stderr, "stacktap: %s is cut off or damaged; this is what is whole\n",
			recording_name(options->path));
	annotate_print(&annotation);
	return cli_finish();
}

static int parse_option(int argc, char **argv, int option, struct annotate_options *options)
{
	struct debugfile_places *places = &options->places;

	switch (option) {
	case OPT_OBJECT:
		options->object = optarg;
		return CLI_OK;
	case OPT_NO_SOURCE:
		options->without_source = true;
		return CLI_OK;
	case OPT_ASM_RAW:
		options->with_bytes = true;
		return CLI_OK;
	case 'M':
		options->is_intel = !strcmp(optarg, "intel");
		if (!options->is_intel && strcmp(optarg, "att") != 0)
			return cli_usage_error("there is no style `%s'; there are att and intel", optarg);
		return CLI_OK;
	case OPT_PERCENT_LIMIT:
		if (!cli_parse_percent(optarg, &options->least))
			return cli_usage_error("`%s' is not a percentage like 2 or 0.5%%", optarg);
		return CLI_OK;
	case OPT_SOURCE_DIR:
		return places_add(&options->source_directories, &options->source_directory_count, optarg);
	case OPT_DEBUG_DIR:
		return places_add(&places->directories, &places->directory_count, optarg);
	case OPT_BINARY:
		return places_add(&places->binaries, &places->binary_count, optarg);
	case OPT_SYSROOT:
		places->sysroot = optarg;
		return CLI_OK;
	case 'j':
		options->use_json = true;
		cli_use_json();
		return CLI_OK;
	case '?':
	case ':':
		return cli_bad_option(argc, argv, option);
	default:
		return select_parse(option, optarg, &options->selection);
	}
}

/* The exit code + 1, or 0 to go on. */
static int parse(int argc, char **argv, struct annotate_options *options)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "object", required_argument, NULL, OPT_OBJECT },
		{ "no-source", no_argument, NULL, OPT_NO_SOURCE },
		{ "disassembler-style", required_argument, NULL, 'M' },
		{ "asm-raw", no_argument, NULL, OPT_ASM_RAW },
		{ "percent-limit", required_argument, NULL, OPT_PERCENT_LIMIT },
		{ "source-dir", required_argument, NULL, OPT_SOURCE_DIR },
		{ "debug-dir", required_argument, NULL, OPT_DEBUG_DIR },
		{ "sysroot", required_argument, NULL, OPT_SYSROOT },
		{ "binary", required_argument, NULL, OPT_BINARY },
		SELECT_OPTIONS,
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	int option, ret;

	opterr = 0;
	while ((option = cli_option(argc, argv, ":hM:", long_options)) != -1) {
		if (option == 'h')
			return cli_help(help) + 1;
		ret = parse_option(argc, argv, option, options);
		if (ret)
			return ret + 1;
	}
	if (optind == argc)
		return cli_usage_error("annotate wants a FUNCTION; `stacktap report' lists the hottest") + 1;
	if (optind + 2 < argc)
		return cli_usage_error("annotate takes one file, not also `%s'", argv[optind + 2]) + 1;
	options->function = argv[optind];
	if (optind + 1 < argc)
		options->path = argv[optind + 1];
	ret = places_check(&options->places, &options->default_directory);
	return ret ? ret + 1 : 0;
}

int annotate_run(int argc, char **argv)
{
	struct annotate_options options = {
		.path = "stacktap.otlp", .places = { .sysroot = "/" },
	};
	int ret = parse(argc, argv, &options);

	ret = ret ? ret - 1 : annotate(&options);
	free(options.source_directories);
	free(options.places.directories);
	free(options.places.binaries);
	free(options.default_directory);
	return ret;
}
