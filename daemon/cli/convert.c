// SPDX-License-Identifier: Apache-2.0
#include "view/convert.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/import.h"
#include "cli/outfile.h"
#include "cli/select.h"
#include "view/recording.h"

static const char help[] =
	"usage: stacktap convert [OPTION...] -o OUTPUT [FILE]\n\n"
	"Writes one event of a file of OTLP profiles (default: stacktap.otlp; - is standard input)\n"
	"in the format of another tool, and says what that has no place for.\n\n"
	"  pprof        .pb.gz .pprof .pgo       go tool pprof, what reads its files, go build -pgo\n"
	"  folded       .folded .collapsed .txt  a stack per line, for flamegraph.pl and others\n"
	"  speedscope   .speedscope.json         speedscope.app\n"
	"  firefox      .firefox.json            profiler.firefox.com\n"
	"  perf-script  .perf .perf-script       as `perf script' prints it\n\n"
	"Or writes another tool's profile as OTLP: pprof, perf.data, or what `perf script' prints.\n\n"
	"  otlp         .otlp\n\n"
	SELECT_HELP
	"  -o, --output OUTPUT     - is standard output\n"
	"  -f, --format FORMAT     default: by how OUTPUT ends\n"
	"      --value WHICH       samples (default) or weight, where a format has one value alone\n"
	"      --json              say as JSON what was written\n"
	"  -h, --help\n";

enum {
	OPT_VALUE = 256,
	NAME_MAX_BYTES = 1024,
};

struct options {
	const char *path, *output;
	const struct convert_format *format;
	struct selection selection;
	bool by_weight, use_json, is_import;
};

static int parse_value(const char *text, bool *ret_by_weight)
{
	*ret_by_weight = !strcmp(text, "weight");
	if (*ret_by_weight || !strcmp(text, "samples"))
		return CLI_OK;
	return cli_usage_error("value `%s' is neither samples nor weight", text);
}

static int parse_option(int argc, char **argv, int option, struct options *options)
{
	switch (option) {
	case SELECT_PROCESS ... SELECT_END - 1:
		return select_parse(option, optarg, &options->selection);
	case 'o':
		options->output = optarg;
		return CLI_OK;
	case 'f':
		options->is_import = !strcmp(optarg, "otlp");
		if (options->is_import)
			return CLI_OK;
		options->format = convert_by_name(optarg);
		if (options->format)
			return CLI_OK;
		return cli_usage_error("there is no format `%s'; there are pprof, folded, speedscope, "
				       "firefox, perf-script and otlp", optarg);
	case OPT_VALUE:
		return parse_value(optarg, &options->by_weight);
	case 'j':
		options->use_json = true;
		cli_use_json();
		return CLI_OK;
	default:
		return cli_bad_option(argc, argv, option);
	}
}

static bool ends_in(const char *path, const char *ending)
{
	size_t length = strlen(path);

	return length > strlen(ending) && !strcmp(path + length - strlen(ending), ending);
}

/* `go build -pgo' finds calls by their line, counted from that of their function. */
static bool has_start_lines(const struct model *model)
{
	for (uint32_t i = 0; i < model->frames.count; i++)
		if (model_frame(model, i)->start_line && model_frame(model, i)->line)
			return true;
	return false;
}

static int check(struct options *options)
{
	if (!options->output)
		return cli_usage_error("convert wants an output: -o FILE");
	if (!options->format && !options->is_import)
		options->is_import = ends_in(options->output, ".otlp");
	if (!options->format && !options->is_import)
		options->format = convert_by_path(options->output);
	if (options->is_import && (!selection_is_empty(&options->selection) || options->by_weight))
		return cli_usage_error("nothing can be selected of what becomes otlp: convert all of "
				       "it, and select from that");
	if (!options->format && !options->is_import)
		return cli_usage_error("`%s' does not end as a format's files do: name the format by "
				       "--format; --help has both", options->output);
	if (options->use_json && !strcmp(options->output, "-"))
		return cli_usage_error("--json and -o - both want standard output");
	return CLI_OK;
}

/* The exit code + 1, or 0 to go on. */
static int parse(int argc, char **argv, struct options *options)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		SELECT_OPTIONS,
		{ "output", required_argument, NULL, 'o' },
		{ "format", required_argument, NULL, 'f' },
		{ "value", required_argument, NULL, OPT_VALUE },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	int option, ret;

	opterr = 0;
	while ((option = cli_option(argc, argv, ":ho:f:", long_options)) != -1) {
		if (option == 'h')
			return cli_help(help) + 1;
		ret = parse_option(argc, argv, option, options);
		if (ret)
			return ret + 1;
	}
	if (optind + 1 < argc)
		return cli_usage_error("convert takes one file, not also `%s'",
				       argv[optind + 1]) + 1;
	if (optind < argc)
		options->path = argv[optind];
	ret = check(options);
	return ret ? ret + 1 : 0;
}

static void free_model(struct model **model)
{
	model_free(*model);
}

static void say(const struct options *options, const struct model *model, uint32_t number,
		uint64_t bytes)
{
	const struct model_event *event = model_event(model, number);
	struct json json;

	if (!options->use_json) {
		fprintf(stderr, "stacktap: %s: %" PRIu64 " samples of %s as %s, without %s",
			strcmp(options->output, "-") ? options->output : "standard output",
			event->samples, event->source, options->format->name,
			options->format->loss);
		if (model->events.count > 1)
			fprintf(stderr, ", and without %u more event%s (--event)",
				model->events.count - 1, model->events.count == 2 ? "" : "s");
		if (options->format->model.with_times && model->timeline.width > 1)
			fprintf(stderr, "; times are rounded to %" PRIu64 " us",
				model->timeline.width / 1000);
		fputc('\n', stderr);
		return;
	}
	json_init(&json, stdout);
	json_object(&json, NULL);
	json_string(&json, "output", options->output);
	json_string(&json, "format", options->format->name);
	json_string(&json, "event", event->source);
	json_string(&json, "without", options->format->loss);
	json_u64(&json, "samples", event->samples);
	json_u64(&json, "weight", event->weight);
	json_u64(&json, "other_events", model->events.count - 1);
	json_u64(&json, "bytes", bytes);
	json_bool(&json, "cut", model->is_cut);
	json_end(&json);
}

int convert_run(int argc, char **argv)
{
	_cleanup_(outfile_done) struct outfile output = { 0 };
	struct options options = { .path = "stacktap.otlp" };
	_cleanup_(free_model) struct model *model = NULL;
	_cleanup_free_ char *name = NULL;
	struct model_options how;
	uint64_t bytes;
	char error[512];
	uint32_t event;
	int ret;

	ret = parse(argc, argv, &options);
	if (ret)
		return ret - 1;
	if (options.is_import)
		return import_run(options.path, options.output, options.use_json);
	how = options.format->model;
	how.selection = &options.selection;
	if (model_load(options.path, &how, &model, error, sizeof(error)) < 0)
		return cli_error("%s", error);
	if (!model->events.count)
		return select_found_nothing(&options.selection, options.path);
	if (model->is_cut && !options.use_json)
		fprintf(stderr, "stacktap: %s is cut off or damaged; this is what is whole\n",
			recording_name(options.path));
	if (ends_in(options.output, ".pgo") && !has_start_lines(model))
		return cli_error("%s has no functions with lines, by which go build -pgo finds calls: "
				 "run stacktap symbolize first", recording_name(options.path));
	name = utf8_dup(recording_name(options.path), NAME_MAX_BYTES);
	if (!name)
		return cli_error("out of memory");
	ret = outfile_open(options.output, options.format->is_binary, &output);
	if (ret)
		return ret;
	event = model_main_event(model);
	if (options.format->write(model, &(struct convert_options){
		.event = event, .by_weight = options.by_weight, .name = name,
	}, output.file))
		return cli_error("%s needs more memory than is allowed",
				 recording_name(options.path));
	ret = outfile_finish(&output, &bytes);
	if (ret)
		return ret;
	say(&options, model, event, bytes);
	return cli_finish();
}
