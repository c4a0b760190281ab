// SPDX-License-Identifier: Apache-2.0
#include "view/diff.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/diff.h"
#include "cli/fit.h"
#include "cli/pager.h"
#include "cli/select.h"
#include "view/recording.h"

static const char help[] =
	"usage: stacktap diff [OPTION...] BEFORE AFTER\n\n"
	"Compares two files of OTLP profiles (one may be -, standard input): which functions and call\n"
	"paths have a larger or smaller share of the total, and whether the change is significant.\n\n"
	SELECT_HELP
	"      --by WHAT           rows: function (default), object, process, thread, container, service,\n"
	"                          cgroup\n"
	"      --fail-over P%      exit status 3 if the total of a row grew significantly and by more than\n"
	"                          P percentage points\n"
	"      --all               also rows whose change is not significant or that have too few samples\n"
	"  -n, --limit N           rows of each table (default: 10; 0: all)\n"
	"      --wide              do not shorten names to fit the terminal\n"
	"      --json              everything as JSON\n"
	"  -h, --help\n";

enum {
	OPT_BY = 256,
	OPT_FAIL_OVER,
	OPT_ALL,
	OPT_WIDE,
	DEFAULT_LIMIT = 10,
};

/* "3", "0.5%": percentage points. */
static bool parse_percent(const char *text, double *ret_percent)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	*ret_percent = strtod(text, &end);
	return (!*end || !strcmp(end, "%")) && *ret_percent <= 100;
}

static int parse_option(int option, struct diff_cli *diff, bool *has_limit)
{
	switch (option) {
	case OPT_BY:
		if (!by_parse(optarg, &diff->by))
			return cli_usage_error("unknown --by `%s': use " BY_NAMES, optarg);
		return CLI_OK;
	case OPT_FAIL_OVER:
		diff->has_fail_over = true;
		if (!parse_percent(optarg, &diff->fail_over))
			return cli_usage_error("`%s' is not a percentage like 2 or 0.5%%", optarg);
		return CLI_OK;
	case OPT_ALL:
		diff->with_all = true;
		return CLI_OK;
	case OPT_WIDE:
		diff->is_wide = true;
		return CLI_OK;
	case 'n':
		*has_limit = true;
		if (!cli_parse_number(optarg, 0, UINT32_MAX, &diff->limit))
			return cli_usage_error("limit `%s' is not a number", optarg);
		return CLI_OK;
	case 'j':
		diff->use_json = true;
		cli_use_json();
		return CLI_OK;
	default:
		return select_parse(option, optarg, &diff->selection);
	}
}

static int parse(int argc, char **argv, struct diff_cli *diff)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		SELECT_OPTIONS,
		{ "by", required_argument, NULL, OPT_BY },
		{ "fail-over", required_argument, NULL, OPT_FAIL_OVER },
		{ "all", no_argument, NULL, OPT_ALL },
		{ "wide", no_argument, NULL, OPT_WIDE },
		{ "limit", required_argument, NULL, 'n' },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	bool has_limit = false;
	int option, ret;

	opterr = 0;
	while ((option = cli_option(argc, argv, ":hn:", long_options)) != -1) {
		if (option == 'h')
			return cli_help(help) + 1;
		if (option == '?' || option == ':')
			return cli_bad_option(argc, argv, option) + 1;
		ret = parse_option(option, diff, &has_limit);
		if (ret)
			return ret + 1;
	}
	if (argc - optind != DIFF_SIDES)
		return cli_usage_error("diff takes two files, not %d", argc - optind) + 1;
	for (unsigned int i = 0; i < DIFF_SIDES; i++)
		diff->paths[i] = argv[optind + (int)i];
	if (!strcmp(diff->paths[0], "-") && !strcmp(diff->paths[1], "-"))
		return cli_usage_error("standard input cannot be both files") + 1;
	if (!has_limit)
		diff->limit = diff->use_json ? 0 : DEFAULT_LIMIT;
	return CLI_OK;
}

static bool is_failure(const struct diff_cli *cli, const struct diff_share *total)
{
	return cli->has_fail_over && total->verdict == DIFF_GREW &&
	       100 * total->test.change > cli->fail_over;
}

static size_t count_failures(const struct diff_cli *cli)
{
	size_t count = 0;

	for (size_t i = 0; i < cli->diff.rows.count; i++)
		count += is_failure(cli, &diff_row(&cli->diff, i)->total);
	return count;
}

static bool has_side(const struct model *model, enum model_side side)
{
	for (uint32_t i = 0; i < model->events.count; i++)
		if (model_event(model, i)->side == side)
			return true;
	return false;
}

int diff_load(const char *const paths[DIFF_SIDES], const struct model_options *options,
	      bool use_json, struct model **ret_model)
{
	struct model *model;
	char error[512];

	if (model_load_pair(paths[DIFF_BEFORE], paths[DIFF_AFTER], options, &model, error,
			    sizeof(error)) < 0)
		return cli_error("%s", error);
	*ret_model = model;
	if (!has_side(model, MODEL_BEFORE))
		return select_found_nothing(options->selection, paths[DIFF_BEFORE]);
	if (!has_side(model, MODEL_AFTER))
		return select_found_nothing(options->selection, paths[DIFF_AFTER]);
	for (unsigned int i = 0; i < DIFF_SIDES; i++)
		if ((i == DIFF_BEFORE ? model->before.is_cut : model->is_cut) && !use_json)
			fprintf(stderr, "stacktap: %s is cut off or damaged; this is what is whole\n",
				recording_name(paths[i]));
	return CLI_OK;
}

static void cli_done(struct diff_cli *cli)
{
	diff_free(&cli->diff);
	model_free(cli->model);
}

int diff_run(int argc, char **argv)
{
	_cleanup_(cli_done) struct diff_cli cli = { 0 };
	uint32_t events[DIFF_SIDES];
	char error[1024];
	int ret;

	ret = parse(argc, argv, &cli);
	if (ret)
		return ret - 1;
	ret = diff_load(cli.paths, &(struct model_options){
		.selection = &cli.selection, .with_times = true, .is_short = true,
	}, cli.use_json, &cli.model);
	if (ret)
		return ret;
	if (!diff_events(cli.model, events, error, sizeof(error)))
		return cli_error("%s", error);
	if (diff_make(cli.model, events, cli.by, &cli.diff) < 0)
		return cli_error("%s and %s need more memory than is allowed: "
				 RECORDING_NARROW,
				 recording_name(cli.paths[0]), recording_name(cli.paths[1]));
	cli.failures = count_failures(&cli);
	if (cli.use_json) {
		ret = diff_print_json(&cli);
	} else {
		fit_start(cli.is_wide);
		pager_start();
		ret = diff_print(&cli);
	}
	return ret ?: cli_finish() ?: cli.failures ? CLI_GREW : CLI_OK;
}
