// SPDX-License-Identifier: Apache-2.0
#include "cli/annotate.h"

#include <getopt.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/fit.h"
#include "cli/pager.h"
#include "cli/places.h"
#include "cli/select.h"
#include "view/recording.h"

static const char help[] =
	"usage: stacktap annotate [OPTION...] FUNCTION [FILE]\n\n"
	"Prints the samples of a function by source line, where lines and sources are\n"
	"known, else by instruction, from a file of OTLP profiles (default:\n"
	"stacktap.otlp; - is standard input). Lines come from `symbolize', or from a\n"
	"debug file with the same build-id. FUNCTION is a name as `report' prints it;\n"
	"parameters may be left out. ± is half of a percentage's 95 % confidence\n"
	"interval, in percentage points.\n\n"
	"Code:\n"
	"      --object NAME       the function of this program or library: path, file\n"
	"                          name, build-id\n"
	"      --no-source         instructions, also where sources are known\n"
	"      --source-dir DIR    look for sources below DIR first, by the ends of their\n"
	"                          paths; may be repeated\n"
	"  -M, --disassembler-style intel|att\n"
	"                          syntax for x86 (default: att)\n"
	"      --asm-raw           also print the bytes of each instruction\n"
	"      --percent-limit P   leave out lines and instructions with less than P %\n"
	"                          (default: 0)\n\n"
	"Debug files, as for `symbolize':\n"
	"      --debug-dir DIR, --sysroot DIR, --binary FILE\n"
	"      --debuginfod URL    ask this server for a debug file that is not on this\n"
	"                          host\n"
	"      --debuginfod-max SIZE, --debuginfod-timeout TIME\n\n"
	SELECT_HELP
	"\nOutput:\n"
	"      --wide              do not shorten lines to fit the terminal\n"
	"      --json              everything as JSON\n"
	"  -h, --help\n";

enum {
	OPT_OBJECT = 256,
	OPT_NO_SOURCE,
	OPT_ASM_RAW,
	OPT_PERCENT_LIMIT,
	OPT_SOURCE_DIR,
	OPT_WIDE,
};

static int annotate(struct annotate_options *options)
{
	_cleanup_(annotation_done) struct annotation annotation;
	char plain[DEMANGLE_MAX], error[2048];
	struct debuginfod *debuginfod = NULL;
	int ret = places_debuginfod(&options->places, &debuginfod);

	if (annotation_init(&annotation, options, debuginfod) < 0)
		return cli_error("out of memory");
	if (ret)
		return ret;
	/* names are shown without their mangling */
	if (!parser_demangle(annotation.parser, options->function, plain))
		options->function = plain;
	if (hits_load(&annotation.hits, options->path, options->function, options->object,
		      &options->selection, error, sizeof(error)) < 0)
		return cli_error("%s", error);
	if (annotation_make(&annotation, recording_name(options->path), error, sizeof(error)) < 0)
		return cli_error("%s", error);
	if (options->use_json) {
		annotate_print_json(&annotation);
		return cli_finish();
	}
	if (annotation.hits.is_cut)
		fprintf(stderr, "stacktap: %s is cut off or damaged; this is what is whole\n",
			recording_name(options->path));
	fit_start(options->is_wide);
	pager_start();
	annotate_print(&annotation, stdout);
	return cli_finish();
}

static int parse_option(int argc, char **argv, int option, struct annotate_options *options)
{
	if (places_has(option))
		return places_parse(option, optarg, &options->places);
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
			return cli_usage_error("unknown --disassembler-style `%s': use att or intel", optarg);
		return CLI_OK;
	case OPT_PERCENT_LIMIT:
		if (!cli_parse_percent(optarg, &options->least))
			return cli_usage_error("`%s' is not a percentage like 2 or 0.5%%", optarg);
		return CLI_OK;
	case OPT_SOURCE_DIR:
		return places_add(&options->source_directories, &options->source_directory_count, optarg);
	case OPT_WIDE:
		options->is_wide = true;
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
		PLACES_OPTIONS,
		SELECT_OPTIONS,
		{ "wide", no_argument, NULL, OPT_WIDE },
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
		return cli_usage_error("annotate needs a FUNCTION; `stacktap report' lists the hottest") + 1;
	if (optind + 2 < argc)
		return cli_usage_error("annotate takes one file, not also `%s'", argv[optind + 2]) + 1;
	options->function = argv[optind];
	if (optind + 1 < argc)
		options->path = argv[optind + 1];
	else if (access(options->path, F_OK) && !access(options->function, F_OK))
		return cli_usage_error("annotate needs a FUNCTION before the file; `stacktap "
				       "report %s' lists the hottest",
				       options->function) + 1;
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
