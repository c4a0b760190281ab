// SPDX-License-Identifier: Apache-2.0
#include "cli/diff.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/fit.h"
#include "cli/pager.h"
#include "cli/row.h"

static const char help[] =
	"usage: stacktap diff [OPTION...] BEFORE AFTER\n"
	"       stacktap diff [OPTION...] --before-from T --before-to T [FILE|DIRECTORY]\n\n"
	"Compares two files of OTLP profiles (one may be -, standard input), or two\n"
	"times of one or of a store's directory: which functions and call paths have a\n"
	"larger or smaller share of the total, and whether the change is significant.\n\n"
	"Comparison:\n"
	"      --before-from T, --before-to T\n"
	"                          the earlier time, of one recording, given as with\n"
	"                          --from and --to; these and --since select the later\n"
	"                          one\n"
	"      --by WHAT           rows: function (default), object, process, thread,\n"
	"                          container, service, cgroup\n"
	"      --fail-over P%      exit status 3 if the total of a row grew\n"
	"                          significantly and by more than P percentage points\n\n"
	SELECT_HELP
	"\nRows:\n"
	"      --filter REGEX      only rows whose name matches, and call paths with a\n"
	"                          function or object that does; what is significant\n"
	"                          does not depend on it, --fail-over does\n"
	"      --all               also rows whose change is not significant or that\n"
	"                          have too few samples\n"
	"  -n, --limit N           rows of each table (default: 10; 0: all)\n\n"
	"Output:\n"
	"      --wide              do not shorten names to fit the terminal\n"
	"      --json              everything as JSON\n"
	"  -h, --help\n";

enum {
	OPT_BY = 256,
	OPT_FAIL_OVER,
	OPT_FILTER,
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
		if (!by_parse(optarg, &diff->by) || diff->by == BY_LINE)
			return cli_usage_error("unknown --by `%s': use " BY_NAMES, optarg);
		return CLI_OK;
	case OPT_FAIL_OVER:
		diff->has_fail_over = true;
		if (!parse_percent(optarg, &diff->fail_over))
			return cli_usage_error("`%s' is not a percentage like 2 or 0.5%%", optarg);
		return CLI_OK;
	case OPT_FILTER:
		return name_filter_parse(&diff->filter, optarg);
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
		return pair_parse(option, optarg, &diff->pair);
	}
}

static int parse_paths(int count, char *const *paths, struct pair *pair)
{
	if (pair_has_times(pair)) {
		if (count > 1)
			return cli_usage_error("--before-from and --before-to compare two times of one file, not %d files",
					       count);
		pair->paths[DIFF_BEFORE] = pair->paths[DIFF_AFTER] = count ? paths[0] : "stacktap.otlp";
		return CLI_OK;
	}
	if (count != DIFF_SIDES)
		return cli_usage_error("diff takes two files, not %d: of one file, --before-from and --before-to "
				       "compare two times", count);
	for (unsigned int i = 0; i < DIFF_SIDES; i++)
		pair->paths[i] = paths[i];
	if (!strcmp(paths[0], "-") && !strcmp(paths[1], "-"))
		return cli_usage_error("standard input cannot be both files");
	return CLI_OK;
}

static int parse(int argc, char **argv, struct diff_cli *diff)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		SELECT_OPTIONS,
		PAIR_OPTIONS,
		{ "by", required_argument, NULL, OPT_BY },
		{ "fail-over", required_argument, NULL, OPT_FAIL_OVER },
		{ "filter", required_argument, NULL, OPT_FILTER },
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
	ret = parse_paths(argc - optind, argv + optind, &diff->pair);
	if (ret)
		return ret + 1;
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
		count += is_failure(cli, &diff_row(&cli->diff, i)->total) &&
			 cli->wanted[i];
	return count;
}

/* Once for all tables: a regular expression takes its time. */
static int find_wanted(struct diff_cli *cli)
{
	cli->wanted = calloc((size_t)cli->diff.rows.count + 1, sizeof(*cli->wanted));
	if (!cli->wanted)
		return cli_error("out of memory");
	for (size_t i = 0; i < cli->diff.rows.count; i++)
		cli->wanted[i] = row_is_wanted(&cli->filter, diff_row(&cli->diff, i));
	return CLI_OK;
}

static void cli_done(struct diff_cli *cli)
{
	free(cli->wanted);
	focus_done(&cli->focus);
	name_filter_done(&cli->filter);
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
	ret = pair_load(&cli.pair, cli.use_json, &cli.model);
	if (ret)
		return ret;
	if (!diff_events(cli.model, events, error, sizeof(error)))
		return cli_error("%s", error);
	if (diff_make(cli.model, events, cli.by, &cli.diff) < 0 ||
	    (cli.filter.is_set && focus_find(cli.model, row_is_wanted_frame, &cli.filter, &cli.focus) < 0))
		return pair_is_too_large(&cli.pair);
	ret = find_wanted(&cli);
	if (ret)
		return ret;
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
