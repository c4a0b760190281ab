// SPDX-License-Identifier: Apache-2.0
#include <endian.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/debugfile.h"
#include "cli/messages.h"
#include "cli/outfile.h"
#include "cli/places.h"
#include "export/store_list.h"
#include "view/recording.h"
#include "view/rename.h"

static const char help[] =
	"usage: stacktap symbolize [OPTION...] -o OUTPUT [FILE|DIRECTORY]\n\n"
	"Adds names, source files, lines and inlined functions to a file of OTLP profiles (default:\n"
	"stacktap.otlp; - is standard input) or a store's directory, from debug files, programs and\n"
	"libraries with the same build-ids. `stacktap objects' lists which are needed.\n\n"
	"  -o, --output FILE     - is standard output; may be the file that is read. For a directory: one\n"
	"                        file for all of it, or another directory, DIR/, with a file for each\n"
	"      --debug-dir DIR   debug files: below .build-id in it, as debuginfod-find keeps them, or\n"
	"                        with any name; may be repeated (default: usr/lib/debug in the sysroot)\n"
	"      --sysroot DIR     look for programs and libraries below it (default: /)\n"
	"      --binary FILE     a program, library or debug file; may be repeated\n"
	"      --debuginfod URL  ask this server for debug files that are not on this host; they are kept\n"
	"                        in ~/.cache/stacktap/debuginfod\n"
	"      --debuginfod-max SIZE      largest file to fetch (default: 512M)\n"
	"      --debuginfod-timeout TIME  for one file (default: 2m)\n"
	"      --json            print what was found as JSON\n"
	"  -h, --help\n";

enum {
	OPT_DEBUG_DIR = 256,
	OPT_SYSROOT,
	OPT_BINARY,
	OPT_DEBUGINFOD,
	OPT_DEBUGINFOD_MAX,
	OPT_DEBUGINFOD_TIMEOUT,
};

#define PROGRESS_NS (2 * NSEC_PER_SEC)	/* nobody wants to be told what takes less */

struct options {
	const char *path, *output;
	char *default_directory;
	struct debugfile_places places;
	bool use_json;
};

/* Locations of one function come after each other, and those that are hot again and again. */
enum { PLAIN_NAMES = 4096 };
struct plain {
	const char *system_name, *name;
};

/* What became of an object. */
struct outcome {
	const struct recorded_object *object;
	char *file;			/* NULL: none */
	char note[sizeof(((struct debugfile *)NULL)->note)];
	uint32_t wanted, found, with_lines;	/* Locations */
};

struct job {
	const struct options *options;
	struct census census;
	struct parser *parser;
	struct plain plain[PLAIN_NAMES];	/* names that were asked for, by address */
	struct debugfile_finder *finder;
	struct debuginfod *debuginfod;	/* NULL: no server is asked */
	struct outcome *outcomes;
	uint32_t outcome_count;
	uint64_t began;
	struct outfile output;
	struct messages messages;
	struct buffer message;
	struct rename_counts counts;
};

/* A Location by its address in the file. */
struct wanted {
	uint64_t address;
	uint32_t location;
};

static int add(void *ctx, const uint8_t *data, size_t size)
{
	return census_add(ctx, data, size);
}

/* Between questions, each of which may take a while. */
static void show_progress(const struct job *job, const struct recorded_object *object)
{
	if (isatty(STDERR_FILENO) && clock_monotonic() - job->began > PROGRESS_NS)
		fprintf(stderr, "\r\033[K%zu of %u: %s",
			(size_t)(object - census_at(&job->census, 0)) + 1,
			job->census.objects.count, object->path);
}

static void end_progress(const struct job *job)
{
	if (isatty(STDERR_FILENO) && clock_monotonic() - job->began > PROGRESS_NS)
		fputs("\r\033[K", stderr);
}

static int by_address(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* The object's Locations that this file may name, sorted. */
static int collect(const struct job *job, const struct recorded_object *object,
		   const struct debugfile *file, struct wanted **ret_wanted, uint32_t *ret_count)
{
	struct wanted *wanted = calloc((size_t)object->locations + 1, sizeof(*wanted));

	if (!wanted)
		return -ENOMEM;
	*ret_count = 0;
	for (uint32_t i = object->first; i != CENSUS_END; i = census_location(&job->census, i)->next) {
		const struct recorded_location *location = census_location(&job->census, i);

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
static const char *plain_name(struct job *job, const char *system_name)
{
	struct plain *last = &job->plain[((uintptr_t)system_name >> 3) % PLAIN_NAMES];
	char name[DEMANGLE_MAX];

	if (last->system_name != system_name)
		*last = (struct plain){
			.system_name = system_name,
			.name = parser_demangle(job->parser, system_name, name) ?
					system_name : texts_intern(&job->census.texts, name),
		};
	return last->name;
}

static int add_frame(struct job *job, struct recorded_location *location,
		     const struct lines_answer *answer, const struct lines_frame *frame)
{
	struct census *census = &job->census;
	struct recorded_frame row = {
		.line = frame->line, .column = frame->line ? frame->column : 0,
		.start_line = frame->start_line,
	};

	row.system_name = texts_intern(&census->texts, answer->strings + frame->name);
	if (!row.system_name)
		return -E2BIG;
	row.name = plain_name(job, row.system_name);
	row.file = texts_intern(&census->texts, answer->strings + frame->file);
	if (!row.name || !row.file)
		return -E2BIG;
	return census_name(census, location, &row);
}

/* The frames of one address for all Locations that have it. */
static int take_frames(struct job *job, struct outcome *outcome, const struct lines_answer *answer,
		       const struct lines_frame *frames, uint32_t count, uint32_t index)
{
	struct recorded_location *location = census_location(&job->census, index);
	int r = 0;

	/* one that does not know what it is in names nothing */
	if (!count || !answer->strings[frames[count - 1].name])
		return 0;
	for (uint32_t i = 0; !r && i < count; i++)
		if (answer->strings[frames[i].name])
			r = add_frame(job, location, answer, &frames[i]);
	outcome->found++;
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

static int ask_all(struct job *job, struct outcome *outcome, const struct debugfile *file,
		   const struct wanted *wanted, uint32_t count, uint32_t *ret_split)
{
	uint64_t addresses[LINES_ADDRESSES_MAX];
	uint32_t asked, next;
	int r = 0;

	*ret_split = 0;
	for (uint32_t i = 0; !r && i < count; i = next) {
		static struct lines_answer answer;
		const struct lines_frame *frames;
		uint32_t at = 0;

		show_progress(job, outcome->object);
		next = next_question(wanted, count, i, addresses, &asked);
		r = parser_lines(job->parser, file->object, addresses, asked, &answer);
		if (r < 0)
			return r;
		*ret_split += answer.split;
		frames = answer.frames;
		for (uint32_t k = i; !r && k < next; k++) {
			if (wanted[k].address != addresses[at])
				frames += answer.counts[at++];
			r = take_frames(job, outcome, &answer, frames, answer.counts[at],
					wanted[k].location);
		}
		lines_answer_free(&answer);
	}
	return r;
}

static const char *failure(int error)
{
	switch (error) {
	case -ENODATA:
		return "there is nothing in it that names functions";
	case -EPIPE:
	case -ENOTRECOVERABLE:
		return "the parser crashed in it, or ran out of memory";
	case -ETIMEDOUT:
	case -ETIME:
		return "it takes too long to read";
	default:
		return strerror(-error);
	}
}

/* One pass over what has no name yet. */
static int name_by(struct job *job, struct outcome *outcome, const struct debugfile *file,
		   bool with_dwarf)
{
	const int alt_fd = with_dwarf ? file->alt_fd : -1;
	_cleanup_free_ struct wanted *wanted = NULL;
	uint32_t count, split;
	int r = collect(job, outcome->object, file, &wanted, &count);

	if (r < 0 || !count)
		return r;
	r = parser_open_lines(job->parser, file->object, file->fd, with_dwarf, alt_fd,
			      file->alt_size);
	if (!r)
		r = ask_all(job, outcome, file, wanted, count, &split);
	if (!r && split)
		snprintf(outcome->note, sizeof(outcome->note),
			 "%u without inlined functions: those are in .dwo files (split DWARF), which are "
			 "not read", split);
	return r;
}

static int name_object(struct job *job, struct outcome *outcome)
{
	struct debugfile file;
	int r = debugfile_find(job->finder, outcome->object, &file);

	snprintf(outcome->note, sizeof(outcome->note), "%s", file.note);
	if (r < 0)
		return 0;
	outcome->file = strdup(file.object->path);
	r = name_by(job, outcome, &file, file.with_dwarf);
	if (r < 0 && r != -E2BIG && file.with_dwarf) {
		snprintf(outcome->note, sizeof(outcome->note),
			 "without lines: its DWARF cannot be read: %s", failure(r));
		r = name_by(job, outcome, &file, false);
	}
	if (r < 0)
		snprintf(outcome->note, sizeof(outcome->note), "%s", failure(r));
	debugfile_close(&file);
	return r == -E2BIG ? r : 0;
}

static uint32_t count_wanted(const struct job *job, const struct recorded_object *object)
{
	uint32_t count = 0;

	for (uint32_t i = object->first; i != CENSUS_END; i = census_location(&job->census, i)->next)
		count += census_location(&job->census, i)->is_unnamed ||
			 census_location(&job->census, i)->wants_lines;
	return count;
}

static bool has_file(const struct recorded_object *object)
{
	return object->path[0] != '[' && (object->build_id[0] || object->htlhash[0]);
}

static int name_all(struct job *job)
{
	int r = 0;

	job->outcomes = calloc((size_t)job->census.objects.count + 1, sizeof(*job->outcomes));
	if (!job->outcomes)
		return cli_error("out of memory");
	for (uint32_t i = 0; !r && i < job->census.objects.count; i++) {
		struct outcome *outcome = &job->outcomes[job->outcome_count];

		outcome->object = census_at(&job->census, i);
		outcome->wanted = count_wanted(job, outcome->object);
		/* the kernel and memory without a file have no files to look for */
		if (!outcome->wanted || (!outcome->object->unnamed && !has_file(outcome->object)))
			continue;
		show_progress(job, outcome->object);
		job->outcome_count++;
		r = name_object(job, outcome);
	}
	end_progress(job);
	return r < 0 ? cli_error("%s has more names than there is memory allowed for",
				 recording_name(job->options->path)) : CLI_OK;
}

static int write_message(void *ctx, const uint8_t *data, size_t size)
{
	struct job *job = ctx;
	uint32_t length;
	int r;

	job->message.size = 0;
	r = rename_message(&job->census, data, size, &job->message, &job->counts);
	if (r < 0)
		return r;
	length = htobe32((uint32_t)job->message.size);
	if (!job->messages.is_bare)
		fwrite(&length, sizeof(length), 1, job->output.file);
	fwrite(job->message.data, job->message.size, 1, job->output.file);
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct outcome *x = a, *y = b;

	if (x->object->samples != y->object->samples)
		return x->object->samples > y->object->samples ? -1 : 1;
	return strcmp(x->object->path, y->object->path);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void say_fetched(const struct debuginfod_stats *stats, FILE *file)
{
	const uint64_t failed = stats->unreachable + stats->timed_out + stats->failed;

	fprintf(file, "debuginfod: %" PRIu64 " debug files fetched (%.1f MB), %" PRIu64
		" kept from before, %" PRIu64 " not there, %" PRIu64 " too large, %" PRIu64 " failed\n",
		stats->fetched, (double)stats->bytes / 1e6, stats->from_cache, stats->absent,
		stats->too_large, failed);
}

static void say_text(const struct job *job, FILE *file)
{
	const struct rename_counts *counts = &job->counts;

	for (uint32_t i = 0; i < job->outcome_count; i++) {
		const struct outcome *outcome = &job->outcomes[i];

		fprintf(file, "%6u of %u found, %u with lines  %s\n", outcome->found,
			outcome->wanted, outcome->with_lines,
			outcome->object->path[0] ? outcome->object->path : "[no mapping]");
		if (outcome->file)
			fprintf(file, "        by %s\n", outcome->file);
		if (outcome->note[0])
			fprintf(file, "        %s\n", outcome->note);
	}
	if (counts->left)
		fprintf(file, "%" PRIu64
			" messages would be too long with names and stay as they are\n", counts->left);
	if (job->debuginfod)
		say_fetched(debuginfod_stats(job->debuginfod), file);
	fprintf(file, "%" PRIu64 " frames of all samples: %.1f %% had names, %.1f %% have\n",
		counts->frames, percent(counts->named_before, counts->frames),
		percent(counts->named_after, counts->frames));
}

static void say_fetched_json(const struct debuginfod_stats *stats, struct json *json)
{
	json_object(json, "debuginfod");
	json_u64(json, "fetched", stats->fetched);
	json_u64(json, "bytes", stats->bytes);
	json_u64(json, "from_cache", stats->from_cache);
	json_u64(json, "absent", stats->absent);
	json_u64(json, "too_large", stats->too_large);
	json_u64(json, "unreachable", stats->unreachable);
	json_u64(json, "timed_out", stats->timed_out);
	json_u64(json, "failed", stats->failed);
	json_end(json);
}

static void say_json(const struct job *job)
{
	struct json json;

	json_init(&json, stdout);
	json_object(&json, NULL);
	json_string(&json, "output", job->options->output);
	json_array(&json, "objects");
	for (uint32_t i = 0; i < job->outcome_count; i++) {
		const struct outcome *outcome = &job->outcomes[i];
		const struct recorded_object *object = outcome->object;

		json_object(&json, NULL);
		json_string(&json, "path", object->path[0] ? object->path : NULL);
		json_string(&json, "build_id", object->build_id[0] ? object->build_id : NULL);
		json_string(&json, "htlhash", object->htlhash[0] ? object->htlhash : NULL);
		json_string(&json, "file", outcome->file);
		json_string(&json, "note", outcome->note[0] ? outcome->note : NULL);
		json_u64(&json, "wanted", outcome->wanted);
		json_u64(&json, "found", outcome->found);
		json_u64(&json, "with_lines", outcome->with_lines);
		json_end(&json);
	}
	json_end(&json);
	if (job->debuginfod)
		say_fetched_json(debuginfod_stats(job->debuginfod), &json);
	json_u64(&json, "frames", job->counts.frames);
	json_u64(&json, "named_before", job->counts.named_before);
	json_u64(&json, "named_after", job->counts.named_after);
	json_u64(&json, "messages_left", job->counts.left);
	json_bool(&json, "cut", job->messages.is_cut);
	json_end(&json);
}

static int say(struct job *job)
{
	const bool is_stdout = !strcmp(job->options->output, "-");

	if (job->messages.is_cut && !job->options->use_json)
		fprintf(stderr, "stacktap: %s is cut off or damaged; this is what is whole\n",
			recording_name(job->options->path));
	qsort(job->outcomes, job->outcome_count, sizeof(*job->outcomes), compare);
	if (job->options->use_json)
		say_json(job);
	else
		say_text(job, is_stdout ? stderr : stdout);
	return cli_finish();
}

static bool is_directory(const char *path)
{
	struct stat st;

	return (path[0] && path[strlen(path) - 1] == '/') || (!stat(path, &st) && S_ISDIR(st.st_mode));
}

/* What is in @directory is replaced file by file, so it must not be what is read. */
static int make_directory(const struct job *job, const char *directory)
{
	struct stat st, from;

	if (mkdir(directory, 0700) < 0 && errno != EEXIST)
		return cli_error("cannot make %s: %s", directory, strerror(errno));
	if (stat(directory, &st) < 0 || fstat(job->messages.fd, &from) < 0)
		return cli_error("cannot read %s: %s", directory, strerror(errno));
	if (st.st_dev == from.st_dev && st.st_ino == from.st_ino)
		return cli_error("%s is the store itself, which its daemon writes to: name another directory "
				 "with -o", directory);
	return CLI_OK;
}

/* A store's files under the same names. One that is gone meanwhile, or empty, has none. */
static int write_store(struct job *job)
{
	char path[PATH_MAX];
	uint64_t count, bytes;
	int ret = make_directory(job, job->options->output);

	for (size_t i = 0; !ret && i < job->messages.count; i++) {
		if (snprintf(path, sizeof(path), "%s/%s", job->options->output,
			     store_name(job->messages.times[i]).text) >= (int)sizeof(path))
			return cli_error("the name of %s is too long", job->options->output);
		ret = outfile_open(path, true, &job->output) ?:
		      messages_each_of(&job->messages, i, write_message, job, &count);
		if (!ret && count)
			ret = outfile_finish(&job->output, &bytes);
		outfile_done(&job->output);
	}
	return ret;
}

static int run(struct job *job)
{
	uint64_t bytes;
	int ret;

	ret = messages_each(&job->messages, add, &job->census) ?: name_all(job);
	if (ret)
		return ret;
	if (is_directory(job->options->output) && job->messages.is_store)
		ret = write_store(job);
	else
		ret = outfile_open(job->options->output, true, &job->output) ?:
		      messages_each(&job->messages, write_message, job) ?:
		      outfile_finish(&job->output, &bytes);
	return ret ? ret : say(job);
}

static void job_done(struct job *job)
{
	outfile_done(&job->output);
	messages_close(&job->messages);
	for (uint32_t i = 0; i < job->outcome_count; i++)
		free(job->outcomes[i].file);
	free(job->outcomes);
	debugfile_finder_free(job->finder);
	debuginfod_free(job->debuginfod);
	parser_free(job->parser);
	buffer_free(&job->message);
	census_free(&job->census);
}

static int symbolize(const struct options *options)
{
	_cleanup_(job_done) struct job job = { .options = options, .messages = { .fd = -1 } };
	int ret;

	census_init(&job.census);
	buffer_init(&job.message, POOL_REPORT);
	job.began = clock_monotonic();
	ret = messages_open(options->path, &job.messages);
	if (ret)
		return ret;
	ret = places_debuginfod(&options->places, &job.debuginfod);
	if (ret)
		return ret;
	if (parser_new(&job.parser) < 0 ||
	    debugfile_finder_new(job.parser, &options->places, job.debuginfod, &job.finder) < 0)
		return cli_error("out of memory");
	return run(&job);
}

static int parse_option(int argc, char **argv, int option, struct options *options)
{
	struct debugfile_places *places = &options->places;
	uint64_t ms;

	switch (option) {
	case 'o':
		options->output = optarg;
		return CLI_OK;
	case OPT_DEBUG_DIR:
		return places_add(&places->directories, &places->directory_count, optarg);
	case OPT_BINARY:
		return places_add(&places->binaries, &places->binary_count, optarg);
	case OPT_SYSROOT:
		places->sysroot = optarg;
		return CLI_OK;
	case OPT_DEBUGINFOD:
		places->debuginfod.url = optarg;
		return CLI_OK;
	case OPT_DEBUGINFOD_MAX:
		return cli_parse_bytes(optarg, &places->debuginfod.file_bytes) &&
		       places->debuginfod.file_bytes ? CLI_OK :
			cli_usage_error("`%s' is not a size like 100M", optarg);
	case OPT_DEBUGINFOD_TIMEOUT:
		if (!cli_parse_duration(optarg, &ms) || ms > DEBUGINFOD_SECONDS_MAX * 1000ull)
			return cli_usage_error("`%s' is not a time from 1s to 1h", optarg);
		places->debuginfod.seconds = (uint32_t)((ms + 999) / 1000);
		return CLI_OK;
	case 'j':
		options->use_json = true;
		cli_use_json();
		return CLI_OK;
	default:
		return cli_bad_option(argc, argv, option);
	}
}

/* The exit code + 1, or 0 to go on. */
static int parse(int argc, char **argv, struct options *options)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "output", required_argument, NULL, 'o' },
		{ "debug-dir", required_argument, NULL, OPT_DEBUG_DIR },
		{ "sysroot", required_argument, NULL, OPT_SYSROOT },
		{ "binary", required_argument, NULL, OPT_BINARY },
		{ "debuginfod", required_argument, NULL, OPT_DEBUGINFOD },
		{ "debuginfod-max", required_argument, NULL, OPT_DEBUGINFOD_MAX },
		{ "debuginfod-timeout", required_argument, NULL, OPT_DEBUGINFOD_TIMEOUT },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	int option, ret;

	opterr = 0;
	while ((option = cli_option(argc, argv, ":ho:", long_options)) != -1) {
		if (option == 'h')
			return cli_help(help) + 1;
		ret = parse_option(argc, argv, option, options);
		if (ret)
			return ret + 1;
	}
	if (optind + 1 < argc)
		return cli_usage_error("symbolize takes one file, not also `%s'", argv[optind + 1]) + 1;
	if (optind < argc)
		options->path = argv[optind];
	if (!options->output)
		return cli_usage_error("symbolize wants an output: -o FILE") + 1;
	if (options->use_json && !strcmp(options->output, "-"))
		return cli_usage_error("--json and -o - both want standard output") + 1;
	ret = places_check(&options->places, &options->default_directory);
	return ret ? ret + 1 : 0;
}

int symbolize_run(int argc, char **argv)
{
	struct options options = { .path = "stacktap.otlp", .places = { .sysroot = "/" } };
	int ret = parse(argc, argv, &options);

	ret = ret ? ret - 1 : symbolize(&options);
	free(options.places.directories);
	free(options.places.binaries);
	free(options.default_directory);
	return ret;
}
