// SPDX-License-Identifier: Apache-2.0
#include <endian.h>
#include <getopt.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/messages.h"
#include "cli/outfile.h"
#include "cli/places.h"
#include "cli/progress.h"
#include "cli/symbolize.h"
#include "export/store_list.h"
#include "view/recording.h"

static const char help[] =
	"usage: stacktap symbolize [OPTION...] -o OUTPUT [FILE|DIRECTORY]\n\n"
	"Adds names, source files, lines and inlined functions to a file of OTLP profiles\n"
	"(default: stacktap.otlp; - is standard input) or a store's directory, from debug\n"
	"files, programs and libraries with the same build-ids. `stacktap objects' lists\n"
	"which are needed.\n\n"
	"  -o, --output FILE       - is standard output; may be the file that is read.\n"
	"                          For a directory: one file for all of it, or another\n"
	"                          directory, DIR/, with a file for each\n"
	"      --debug-dir DIR     debug files: below .build-id in it, as debuginfod-find\n"
	"                          keeps them, or with any name; may be repeated\n"
	"                          (default: usr/lib/debug in the sysroot)\n"
	"      --sysroot DIR       look for programs and libraries below it (default: /)\n"
	"      --binary FILE       a program, library or debug file; may be repeated\n"
	"      --debuginfod URL    ask this server for debug files that are not on this\n"
	"                          host; they are kept in ~/.cache/stacktap/debuginfod\n"
	"      --debuginfod-max SIZE\n"
	"                          largest file to fetch (default: 512M)\n"
	"      --debuginfod-timeout TIME\n"
	"                          for one file (default: 2m)\n"
	"      --json              print what was found as JSON\n"
	"  -h, --help\n";

struct options {
	const char *path, *output;
	char *default_directory;
	struct debugfile_places places;
	bool use_json;
};

struct job {
	const struct options *options;
	struct naming naming;
	struct outfile output;
	struct messages messages;
	struct buffer message;
	struct rename_counts counts;
};

static int add(void *ctx, const uint8_t *data, size_t size)
{
	return census_add(ctx, data, size);
}

static int write_message(void *ctx, const uint8_t *data, size_t size)
{
	struct job *job = ctx;
	uint32_t length;
	int r;

	job->message.size = 0;
	r = rename_message(&job->naming.census, data, size, &job->message, &job->counts);
	if (r < 0)
		return r;
	length = htobe32((uint32_t)job->message.size);
	if (!job->messages.is_bare)
		fwrite(&length, sizeof(length), 1, job->output.file);
	fwrite(job->message.data, job->message.size, 1, job->output.file);
	return 0;
}

static int say(struct job *job)
{
	const bool is_stdout = !strcmp(job->options->output, "-");

	if (job->messages.is_cut && !job->options->use_json)
		fprintf(stderr, "stacktap: %s is cut off or damaged; this is what is whole\n",
			recording_name(job->options->path));
	symbolize_sort(&job->naming);
	if (job->options->use_json)
		symbolize_print_json(&job->naming, &job->counts, job->options->output, job->messages.is_cut);
	else
		symbolize_print(&job->naming, &job->counts, is_stdout ? stderr : stdout);
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
	progress_done();
	return ret;
}

static int run(struct job *job)
{
	uint64_t bytes;
	int ret;

	/* once for what is in it, and once more to write it */
	progress_expect(2 * messages_size(&job->messages));
	ret = messages_each(&job->messages, add, &job->naming.census) ?:
	      naming_run(&job->naming, job->options->path);
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
	buffer_free(&job->message);
	naming_close(&job->naming);
}

static int symbolize(const struct options *options)
{
	_cleanup_(job_done) struct job job = { .options = options, .messages = { .fd = -1 } };
	int ret;

	buffer_init(&job.message, POOL_REPORT);
	ret = messages_open(options->path, &job.messages);
	if (ret)
		return ret;
	ret = naming_open(&job.naming, &options->places);
	if (ret)
		return ret;
	return run(&job);
}

static int parse_option(int argc, char **argv, int option, struct options *options)
{
	if (places_has(option))
		return places_parse(option, optarg, &options->places);
	switch (option) {
	case 'o':
		options->output = optarg;
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
		PLACES_OPTIONS,
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
		return cli_usage_error("symbolize needs an output: -o FILE") + 1;
	if (options->use_json && !strcmp(options->output, "-"))
		return cli_usage_error("--json and -o - both write to standard output") + 1;
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
