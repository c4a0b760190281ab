// SPDX-License-Identifier: Apache-2.0
#include "cli/convert.h"

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
	"Writes one event of a file of OTLP profiles (default: stacktap.otlp; - is\n"
	"standard input) in the format of another tool, and prints what that format\n"
	"cannot hold.\n\n"
	"  pprof        .pb.gz .pprof .pgo       go tool pprof, go build -pgo, others\n"
	"  folded       .folded .collapsed .txt  a stack per line, for flamegraph.pl\n"
	"  speedscope   .speedscope.json         speedscope.app\n"
	"  firefox      .firefox.json            profiler.firefox.com\n"
	"  perf-script  .perf .perf-script       as `perf script' prints it\n\n"
	"Or writes another tool's profile as OTLP: pprof, perf.data, or what\n"
	"`perf script' prints.\n\n"
	"  otlp         .otlp\n\n"
	"Output:\n"
	"  -o, --output OUTPUT     - is standard output\n"
	"  -f, --format FORMAT     default: by how OUTPUT ends\n"
	"      --value WHICH       samples (default) or weight, for formats with only\n"
	"                          one value\n"
	"      --json              print what was written as JSON\n"
	"  -h, --help\n\n"
	SELECT_HELP;

enum {
	OPT_VALUE = 256,
	NAME_MAX_BYTES = 1024,
};

struct options {
	struct convert_job job;
	bool is_import;
};

static int parse_value(const char *text, bool *ret_by_weight)
{
	*ret_by_weight = !strcmp(text, "weight");
	if (*ret_by_weight || !strcmp(text, "samples"))
		return CLI_OK;
	return cli_usage_error("unknown --value `%s': use samples or weight", text);
}

static int parse_option(int argc, char **argv, int option, struct options *options)
{
	switch (option) {
	case SELECT_PROCESS ... SELECT_END - 1:
		return select_parse(option, optarg, &options->job.selection);
	case 'o':
		options->job.output = optarg;
		return CLI_OK;
	case 'f':
		options->is_import = !strcmp(optarg, "otlp");
		if (options->is_import)
			return CLI_OK;
		options->job.format = convert_by_name(optarg);
		if (options->job.format)
			return CLI_OK;
		return cli_usage_error("unknown --format `%s': use pprof, folded, speedscope, "
				       "firefox, perf-script or otlp", optarg);
	case OPT_VALUE:
		return parse_value(optarg, &options->job.by_weight);
	case 'j':
		options->job.use_json = true;
		cli_use_json();
		return CLI_OK;
	default:
		return cli_bad_option(argc, argv, option);
	}
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
	if (!options->job.output)
		return cli_usage_error("convert needs an output: -o FILE");
	if (!options->job.format && !options->is_import)
		options->is_import = convert_ends_in(options->job.output, ".otlp");
	if (!options->job.format && !options->is_import)
		options->job.format = convert_by_path(options->job.output);
	if (options->is_import && (!selection_is_empty(&options->job.selection) || options->job.by_weight))
		return cli_usage_error("samples cannot be selected when the output is otlp: "
				       "convert all of it, and select when you read it");
	if (!options->job.format && !options->is_import)
		return cli_usage_error("`%s' has an unknown extension: use --format; "
				       "--help lists both", options->job.output);
	if (options->job.use_json && !strcmp(options->job.output, "-"))
		return cli_usage_error("--json and -o - both write to standard output");
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
		options->job.path = argv[optind];
	ret = check(options);
	return ret ? ret + 1 : 0;
}

static void free_model(struct model **model)
{
	model_free(*model);
}

static const char *const losses[] = {
	[VIEW_LOSS_COMMENTS] = "comments beyond the first 256",
	[VIEW_LOSS_TEXTS] = "frames to drop, frames to keep and documents but the first",
	[VIEW_LOSS_PERIODS] = "periods but the first",
	[VIEW_LOSS_NEGATIVE] = "values below 0",
	[VIEW_LOSS_LINKS] = "links of samples to spans",
	[VIEW_LOSS_VALUES] = "attributes of samples that are neither text nor whole numbers",
	[VIEW_LOSS_OWN] = "stacktap's own attributes of samples",
	[VIEW_LOSS_PROFILE] = "attributes of profiles",
	[VIEW_LOSS_RESOURCE] = "attributes of resources but for process, pid, container, service and cgroup",
	[VIEW_LOSS_BUILD_IDS] = "build-ids but GNU's",
};

_Static_assert(ARRAY_SIZE(losses) == VIEW_LOSSES, "each loss has a name");

/* What the format never has, and what this recording has beyond that. */
static void list_losses(char *text, size_t size, const char *always, uint32_t more)
{
	size_t length = (size_t)snprintf(text, size, "%s", always);

	for (unsigned int i = 0; i < VIEW_LOSSES && length < size; i++)
		if (more & 1u << i)
			length += (size_t)snprintf(text + length, size - length, "; %s", losses[i]);
}

static void say(const struct convert_job *job, const struct model *model, uint32_t number,
		uint64_t bytes)
{
	const struct model_event *event = model_event(model, number);
	struct json json;
	char loss[1024];

	list_losses(loss, sizeof(loss), job->format->loss, model->remarks.losses);
	if (!job->use_json) {
		fprintf(stderr, "stacktap: %s: %" PRIu64 " samples of %s as %s, without %s",
			strcmp(job->output, "-") ? job->output : "standard output",
			event->samples, event->source, job->format->name,
			loss);
		if (model->events.count > 1)
			fprintf(stderr, ", and without %u more event%s (--event)",
				model->events.count - 1, model->events.count == 2 ? "" : "s");
		if (job->format->model.with_times && model->timeline.width > 1)
			fprintf(stderr, "; times are rounded to %" PRIu64 " us",
				model->timeline.width / 1000);
		fputc('\n', stderr);
		return;
	}
	json_init(&json, stdout);
	json_object(&json, NULL);
	json_string(&json, "output", job->output);
	json_string(&json, "format", job->format->name);
	json_string(&json, "event", event->source);
	json_string(&json, "without", loss);
	json_u64(&json, "samples", event->samples);
	json_u64(&json, "weight", event->weight);
	json_u64(&json, "other_events", model->events.count - 1);
	json_u64(&json, "bytes", bytes);
	json_bool(&json, "cut", model->is_cut);
	json_end(&json);
}

int convert_write(const struct convert_job *job)
{
	_cleanup_(outfile_done) struct outfile output = { 0 };
	_cleanup_(free_model) struct model *model = NULL;
	_cleanup_free_ char *name = NULL;
	struct model_options how = job->format->model;
	uint64_t bytes;
	char error[512];
	uint32_t event;
	int ret;

	how.selection = &job->selection;
	if (model_load(job->path, &how, &model, error, sizeof(error)) < 0)
		return cli_error("%s", error);
	if (!model->events.count)
		return select_found_nothing(&job->selection, job->path);
	if (model->is_cut && !job->use_json)
		fprintf(stderr, "stacktap: %s is cut off or damaged; this is what is whole\n",
			recording_name(job->path));
	if (convert_ends_in(job->output, ".pgo") && !has_start_lines(model))
		return cli_error("%s has no functions with lines, by which go build -pgo finds calls: "
				 "run stacktap symbolize first", recording_name(job->path));
	name = utf8_dup(job->name ? job->name : recording_name(job->path), NAME_MAX_BYTES);
	if (!name)
		return cli_error("out of memory");
	ret = outfile_open(job->output, job->format->is_binary, &output);
	if (ret)
		return ret;
	event = model_main_event(model);
	if (job->format->write(model, &(struct convert_options){
		.event = event, .by_weight = job->by_weight, .name = name,
	}, output.file))
		return cli_error(RECORDING_TOO_LARGE, recording_name(job->path));
	ret = outfile_finish(&output, &bytes);
	if (ret)
		return ret;
	if (!job->is_quiet)
		say(job, model, event, bytes);
	return cli_finish();
}

int convert_run(int argc, char **argv)
{
	struct options options = { .job.path = "stacktap.otlp" };
	int ret = parse(argc, argv, &options);

	if (ret)
		return ret - 1;
	if (options.is_import)
		return import_run(options.job.path, options.job.output, options.job.use_json);
	return convert_write(&options.job);
}
