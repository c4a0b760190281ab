// SPDX-License-Identifier: Apache-2.0
#include "cli/flamegraph.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/outfile.h"
#include "view/convert.h"
#include "view/page.h"
#include "view/recording.h"

static const char help[] =
	"usage: stacktap flamegraph [OPTION...] [FILE]\n"
	"       stacktap flamegraph [OPTION...] --diff BEFORE [AFTER]\n"
	"       stacktap flamegraph [OPTION...] --before-from T --before-to T [FILE]\n\n"
	"Draws a file of OTLP profiles (default: stacktap.otlp; - is standard input) as\n"
	"a flame graph: one HTML file that needs no network, with search, call tree,\n"
	"callers, threads and time.\n\n"
	"Comparison:\n"
	"      --diff BEFORE       what changed since this file: red grew, blue shrank,\n"
	"                          grey is not significant; a box is as wide as the\n"
	"                          mean of both shares\n"
	"      --before-from T, --before-to T\n"
	"                          the same of two times of one file: the earlier one,\n"
	"                          given as with --from and --to; these and --since\n"
	"                          select the later one\n\n"
	SELECT_HELP
	"\nOutput:\n"
	"  -o, --output FILE       default: flamegraph.html; - is standard output; a\n"
	"                          name that ends in .svg is what --svg writes\n"
	"      --svg               a static picture of one event (default: the one with\n"
	"                          most samples)\n"
	"      --title TEXT        default: the file's name, without its directory\n"
	"      --json              print what was written as JSON\n"
	"  -h, --help\n";

enum {
	OPT_SVG = 256,
	OPT_TITLE,
	OPT_DIFF,
	TITLE_MAX = 1024,	/* bytes */
};

static int parse_paths(const char *path, struct pair *pair)
{
	const char **before = &pair->paths[DIFF_BEFORE];

	pair->paths[DIFF_AFTER] = path ?: "stacktap.otlp";
	if (*before && pair_has_times(pair))
		return cli_usage_error("--diff compares with another file, --before-from and "
				       "--before-to with another time of the same file: use one of "
				       "them");
	if (*before && !strcmp(*before, "-") && !strcmp(pair->paths[DIFF_AFTER], "-"))
		return cli_usage_error("standard input cannot be both files");
	if (pair_has_times(pair))
		*before = pair->paths[DIFF_AFTER];
	return CLI_OK;
}

static bool is_pair(const struct flamegraph_job *job)
{
	return job->pair.paths[DIFF_BEFORE];
}

static int parse(int argc, char **argv, struct flamegraph_job *job)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		SELECT_OPTIONS,
		PAIR_OPTIONS,
		{ "output", required_argument, NULL, 'o' },
		{ "svg", no_argument, NULL, OPT_SVG },
		{ "diff", required_argument, NULL, OPT_DIFF },
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
		case PAIR_FROM:
		case PAIR_TO:
			ret = pair_parse(option, optarg, &job->pair);
			if (ret)
				return ret + 1;
			break;
		case 'o':
			job->output = optarg;
			break;
		case OPT_SVG:
			job->is_svg = true;
			break;
		case OPT_DIFF:
			job->pair.paths[DIFF_BEFORE] = optarg;
			break;
		case OPT_TITLE:
			job->title = optarg;
			break;
		case 'j':
			job->use_json = true;
			cli_use_json();
			break;
		default:
			return cli_bad_option(argc, argv, option) + 1;
		}
	}
	if (optind + 1 < argc)
		return cli_usage_error("flamegraph takes one file, not also `%s'",
				       argv[optind + 1]) + 1;
	ret = parse_paths(argv[optind], &job->pair);
	if (ret)
		return ret + 1;
	if (job->output && convert_ends_in(job->output, ".svg"))
		job->is_svg = true;
	if (!job->output)
		job->output = job->is_svg ? "flamegraph.svg" : "flamegraph.html";
	if (job->use_json && !strcmp(job->output, "-"))
		return cli_usage_error("--json and -o - both write to standard output") + 1;
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

static void say(const struct flamegraph_job *job, const struct model *model, uint64_t samples,
		uint64_t bytes)
{
	struct json json;

	if (!job->use_json) {
		fprintf(stderr, "stacktap: %s: %" PRIu64 " samples, %u nodes, %" PRIu64 " bytes\n",
			strcmp(job->output, "-") ? job->output : "standard output", samples,
			tree_count(&model->tree), bytes);
		return;
	}
	json_init(&json, stdout);
	json_object(&json, NULL);
	json_string(&json, "output", job->output);
	json_string(&json, "format", job->is_svg ? "svg" : "html");
	json_u64(&json, "samples", samples);
	json_u64(&json, "nodes", tree_count(&model->tree));
	json_u64(&json, "events", job->is_svg || is_pair(job) ? 1 : model->events.count);
	json_u64(&json, "bytes", bytes);
	json_bool(&json, "cut", model->is_cut);
	json_end(&json);
}

static uint64_t count_samples(const struct flamegraph_job *job, const struct model *model)
{
	uint64_t samples = 0;

	if (job->is_svg)
		return model_event(model, model_main_event(model))->samples;
	for (uint32_t i = 0; i < model->events.count; i++)
		samples += model_event(model, i)->samples;
	return samples;
}

static char *title_of(const struct flamegraph_job *job)
{
	const char *name = default_title(job->pair.paths[DIFF_AFTER]);
	char both[TITLE_MAX];

	if (job->title || !is_pair(job))
		return utf8_dup(job->title ? job->title : name, TITLE_MAX);
	if (pair_has_times(&job->pair))
		snprintf(both, sizeof(both), "%s: what changed between two times", name);
	else
		snprintf(both, sizeof(both), "%s: what changed since %s", name,
			 default_title(job->pair.paths[DIFF_BEFORE]));
	return utf8_dup(both, TITLE_MAX);
}

static int load(const struct flamegraph_job *job, struct model **ret_model)
{
	const struct selection *selection = &job->pair.selection;
	const char *path = job->pair.paths[DIFF_AFTER];
	char error[512];

	if (model_load(path, &(struct model_options){
		.selection = selection,
		.with_times = !job->is_svg,
	}, ret_model, error, sizeof(error)) < 0)
		return cli_error("%s", error);
	if (!(*ret_model)->events.count)
		return select_found_nothing(selection, path);
	if ((*ret_model)->is_cut && !job->use_json)
		fprintf(stderr, "stacktap: %s is cut off or damaged; this is what is whole\n",
			recording_name(path));
	return CLI_OK;
}

static int load_diff(const struct flamegraph_job *job, struct model **ret_model, struct diff *ret_diff)
{
	uint32_t events[DIFF_SIDES];
	char error[1024];
	int ret;

	ret = pair_load(&job->pair, job->use_json, ret_model);
	if (ret)
		return ret;
	if (!diff_events(*ret_model, events, error, sizeof(error)))
		return cli_error("%s", error);
	if (diff_make(*ret_model, events, BY_FUNCTION, ret_diff) < 0)
		return pair_is_too_large(&job->pair);
	return CLI_OK;
}

static int draw(const struct flamegraph_job *job, struct model *model, const struct diff *diff,
		const char *title, FILE *file)
{
	if (is_pair(job))
		return job->is_svg ? svg_write_diff(model, diff, title, file) :
					 page_write_diff(model, diff, title, file);
	return job->is_svg ? svg_write(model, model_main_event(model), title, file) :
				 page_write(model, title, file);
}

int flamegraph_write(const struct flamegraph_job *job)
{
	_cleanup_(outfile_done) struct outfile output = { 0 };
	_cleanup_(free_model) struct model *model = NULL;
	_cleanup_(diff_free) struct diff diff = { 0 };
	_cleanup_free_ char *title = NULL;
	uint64_t bytes;
	int ret;

	ret = is_pair(job) ? load_diff(job, &model, &diff) : load(job, &model);
	if (ret)
		return ret;
	title = title_of(job);
	if (!title)
		return cli_error("out of memory");
	ret = outfile_open(job->output, false, &output);
	if (ret)
		return ret;
	if (draw(job, model, &diff, title, output.file))
		return cli_error(RECORDING_TOO_LARGE, recording_name(job->pair.paths[DIFF_AFTER]));
	ret = outfile_finish(&output, &bytes);
	if (ret)
		return ret;
	if (!job->is_quiet)
		say(job, model, count_samples(job, model), bytes);
	return cli_finish();
}

int flamegraph_run(int argc, char **argv)
{
	struct flamegraph_job job = { 0 };
	int ret = parse(argc, argv, &job);

	return ret ? ret - 1 : flamegraph_write(&job);
}
