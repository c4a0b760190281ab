// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/outfile.h"
#include "cli/select.h"
#include "view/page.h"
#include "view/recording.h"

static const char help[] =
	"usage: stacktap flamegraph [OPTION...] [FILE]\n\n"
	"Draws a file of OTLP profiles (default: stacktap.otlp; - is standard input) as a flame graph:\n"
	"one HTML file that needs no network, with search, call tree, callers, threads and time.\n\n"
	SELECT_HELP
	"  -o, --output FILE       default: flamegraph.html; - is standard output; a name that ends in\n"
	"                          .svg is what --svg writes\n"
	"      --svg               a picture that does not move, of one event (default: the one with\n"
	"                          most samples)\n"
	"      --title TEXT        default: the file's name, without its directory\n"
	"      --json              say as JSON what was written\n"
	"  -h, --help\n";

enum {
	OPT_SVG = 256,
	OPT_TITLE,
	TITLE_MAX = 1024,	/* bytes */
};

struct options {
	const char *path, *output, *title;
	struct selection selection;
	bool is_svg, use_json;
};

static bool ends_in(const char *text, const char *end)
{
	size_t length = strlen(text), wanted = strlen(end);

	return length >= wanted && !strcmp(text + length - wanted, end);
}

static int parse(int argc, char **argv, struct options *options)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		SELECT_OPTIONS,
		{ "output", required_argument, NULL, 'o' },
		{ "svg", no_argument, NULL, OPT_SVG },
		{ "title", required_argument, NULL, OPT_TITLE },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	int option, ret;

	opterr = 0;
	while ((option = cli_option(argc, argv, ":ho:", long_options)) != -1) {
		switch (option) {
		case 'h':
			return cli_help(help) + 1;
		case SELECT_PROCESS ... SELECT_END - 1:
			ret = select_parse(option, optarg, &options->selection);
			if (ret)
				return ret + 1;
			break;
		case 'o':
			options->output = optarg;
			break;
		case OPT_SVG:
			options->is_svg = true;
			break;
		case OPT_TITLE:
			options->title = optarg;
			break;
		case 'j':
			options->use_json = true;
			cli_use_json();
			break;
		default:
			return cli_bad_option(argc, argv, option) + 1;
		}
	}
	if (optind + 1 < argc)
		return cli_usage_error("flamegraph takes one file, not also `%s'",
				       argv[optind + 1]) + 1;
	if (optind < argc)
		options->path = argv[optind];
	if (options->output && ends_in(options->output, ".svg"))
		options->is_svg = true;
	if (!options->output)
		options->output = options->is_svg ? "flamegraph.svg" : "flamegraph.html";
	if (options->use_json && !strcmp(options->output, "-"))
		return cli_usage_error("--json and -o - both want standard output") + 1;
	return CLI_OK;
}

/* A path is of no use to who gets the page. */
static const char *default_title(const char *path)
{
	const char *slash = strrchr(path, '/');

	return recording_name(slash && slash[1] ? slash + 1 : path);
}

static void free_model(struct model **model)
{
	model_free(*model);
}

static void say(const struct options *options, const struct model *model, uint64_t samples,
		uint64_t bytes)
{
	struct json json;

	if (!options->use_json) {
		fprintf(stderr, "stacktap: %s: %" PRIu64 " samples, %u nodes, %" PRIu64 " bytes\n",
			strcmp(options->output, "-") ? options->output : "standard output", samples,
			tree_count(&model->tree), bytes);
		return;
	}
	json_init(&json, stdout);
	json_object(&json, NULL);
	json_string(&json, "output", options->output);
	json_string(&json, "format", options->is_svg ? "svg" : "html");
	json_u64(&json, "samples", samples);
	json_u64(&json, "nodes", tree_count(&model->tree));
	json_u64(&json, "events", options->is_svg ? 1 : model->events.count);
	json_u64(&json, "bytes", bytes);
	json_bool(&json, "cut", model->is_cut);
	json_end(&json);
}

static uint64_t count_samples(const struct options *options, const struct model *model)
{
	uint64_t samples = 0;

	if (options->is_svg)
		return model_event(model, model_main_event(model))->samples;
	for (uint32_t i = 0; i < model->events.count; i++)
		samples += model_event(model, i)->samples;
	return samples;
}

int flamegraph_run(int argc, char **argv)
{
	_cleanup_(outfile_done) struct outfile output = { 0 };
	struct options options = { .path = "stacktap.otlp" };
	_cleanup_(free_model) struct model *model = NULL;
	_cleanup_free_ char *title = NULL;
	char error[512];
	uint64_t bytes;
	int ret, err;

	ret = parse(argc, argv, &options);
	if (ret)
		return ret - 1;
	if (model_load(options.path, &(struct model_options){
		.selection = &options.selection,
		.with_times = !options.is_svg,
	}, &model, error, sizeof(error)) < 0)
		return cli_error("%s", error);
	if (!model->events.count)
		return select_found_nothing(&options.selection, options.path);
	if (model->is_cut && !options.use_json)
		fprintf(stderr, "stacktap: %s is cut off or damaged; this is what is whole\n",
			recording_name(options.path));
	title = utf8_dup(options.title ? options.title : default_title(options.path), TITLE_MAX);
	if (!title)
		return cli_error("out of memory");
	ret = outfile_open(options.output, false, &output);
	if (ret)
		return ret;
	err = options.is_svg ? svg_write(model, model_main_event(model), title, output.file) :
			       page_write(model, title, output.file);
	if (err)
		return cli_error("%s needs more memory than is allowed",
				 recording_name(options.path));
	ret = outfile_finish(&output, &bytes);
	if (ret)
		return ret;
	say(&options, model, count_samples(&options, model), bytes);
	return cli_finish();
}
