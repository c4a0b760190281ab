// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "cli/cli.h"
#include "cli/top.h"

static const char help[] =
	"usage: stacktap top [OPTION...]\n\n"
	"Samples, and keeps showing the hottest functions of the last seconds: as a live\n"
	"screen on a terminal (h lists its keys), else as text. Needs the module, but not\n"
	"the daemon.\n\n"
	"Display:\n"
	"  -d, --delay TIME        between two prints (default: 2, at least 0.1)\n"
	"  -n, --iterations N      end after N prints\n"
	"  -b, --batch             plain text, one print after the other\n"
	"      --window TIME       how far back each print looks (default: 10)\n"
	"      --group WHAT        function (default), process, thread, object,\n"
	"                          container, service, cgroup\n"
	"      --sort COLUMN       self (default) or total\n"
	"      --filter REGEX      only rows with a name that matches; shares stay\n"
	"                          relative to all\n"
	"      --limit N           rows (default: 20, all on the screen; 0: all)\n"
	"      --json              one JSON object a line\n"
	"  -h, --help\n\n"
	"Selection:\n"
	"      --process NAME|PID, --thread NAME|TID, --container ID, --service NAME\n"
	"                          count only these samples; all are still taken\n\n"
	"What to sample, as for `record':\n"
	"  -a, --all-cpus; -p, --pid; -t, --tid; -u, --uid; --comm; -G, --cgroup;\n"
	"  -C, --cpu; --user-only, --all-user; --kernel-only, --all-kernel;\n"
	"  --exclude-idle\n\n"
	"How to sample, as for `record':\n"
	"  -e, --event (one); -F, --freq; -c, --count; --freq-mode; --no-jitter;\n"
	"  --max-stack; -g; --call-graph; --slice-bytes; --slice-max-bytes;\n"
	"  --budget-ns; --ceiling; --sideband-bytes; --lines\n";

enum {
	OPT_WINDOW = RECORD_OWN,
	OPT_GROUP,
	OPT_SORT,
	OPT_FILTER,
	OPT_LIMIT,
	OPT_JSON,
};

/* Its own, those of filters and those that select are in one table. */
_Static_assert((int)OPT_JSON < (int)FILTER_USER_ONLY && (int)FILTER_END <= (int)SELECT_PROCESS,
	       "a number of two options");

const char *const top_groups[LIVE_GROUP_COUNT] = {
	[LIVE_FUNCTION] = "function",
	[LIVE_PROCESS] = "process",
	[LIVE_THREAD] = "thread",
	[LIVE_OBJECT] = "object",
	[LIVE_CONTAINER] = "container",
	[LIVE_SERVICE] = "service",
	[LIVE_CGROUP] = "cgroup",
};

static int set_group(struct top *top, const char *text)
{
	for (size_t i = 0; i < LIVE_GROUP_COUNT; i++) {
		if (!strcmp(text, top_groups[i])) {
			top->browse.group = (enum live_group)i;
			return CLI_OK;
		}
	}
	return cli_usage_error("unknown --group `%s': use function, process, thread, object, "
			       "container, service or cgroup", text);
}

static int parse_own(void *ctx, int option, const char *argument)
{
	struct top *top = ctx;

	switch (option) {
	case 'd':
		if (!cli_parse_duration(argument, &top->delay_ms) || top->delay_ms < TOP_DELAY_MIN_MS)
			return cli_usage_error("delay `%s' is not a time of 0.1 s at least", argument);
		return CLI_OK;
	case 'n':
		if (!cli_parse_number(argument, 1, UINT32_MAX, &top->iterations))
			return cli_usage_error("`%s' is not a number of iterations", argument);
		return CLI_OK;
	case 'b':
		top->is_batch = true;
		return CLI_OK;
	case OPT_WINDOW:
		if (!cli_parse_duration(argument, &top->look_back_ms))
			return cli_usage_error("window `%s' is not a time such as 10 or 1m", argument);
		return CLI_OK;
	case OPT_GROUP:
		return set_group(top, argument);
	case OPT_SORT:
		top->browse.by_total = !strcmp(argument, "total");
		if (!top->browse.by_total && strcmp(argument, "self"))
			return cli_usage_error("unknown --sort `%s': use self or total", argument);
		return CLI_OK;
	case OPT_FILTER:
		return name_filter_parse(&top->filter, argument);
	case OPT_LIMIT:
		if (!cli_parse_number(argument, 0, UINT32_MAX, &top->limit))
			return cli_usage_error("limit `%s' is not a number", argument);
		top->has_limit = true;
		return CLI_OK;
	case SELECT_PROCESS:
	case SELECT_THREAD:
	case SELECT_CONTAINER:
	case SELECT_SERVICE:
		return select_parse(option, argument, &top->selection);
	case OPT_JSON:
		top->use_json = true;
		cli_use_json();
		return CLI_OK;
	default:
		return CLI_GO_ON;
	}
}

int top_parse(int argc, char **argv, struct top *top)
{
	static const struct option long_options[] = {
		RECORD_OPTIONS,
		{ "delay", required_argument, NULL, 'd' },
		{ "iterations", required_argument, NULL, 'n' },
		{ "batch", no_argument, NULL, 'b' },
		{ "window", required_argument, NULL, OPT_WINDOW },
		{ "group", required_argument, NULL, OPT_GROUP },
		{ "sort", required_argument, NULL, OPT_SORT },
		{ "filter", required_argument, NULL, OPT_FILTER },
		{ "process", required_argument, NULL, SELECT_PROCESS },
		{ "thread", required_argument, NULL, SELECT_THREAD },
		{ "container", required_argument, NULL, SELECT_CONTAINER },
		{ "service", required_argument, NULL, SELECT_SERVICE },
		{ "limit", required_argument, NULL, OPT_LIMIT },
		{ "json", no_argument, NULL, OPT_JSON },
		{ 0 },
	};
	const struct record_command command = {
		.help = help,
		.letters = "+:bd:n:" RECORD_LETTERS,
		.options = long_options,
		.option = parse_own,
		.ctx = top,
	};
	int ret = record_parse_as(&command, argc, argv, &top->options);

	if (ret)
		return ret;
	if (top->options.command)
		return cli_usage_error("top runs no command, not `%s'", top->options.command[0]) + 1;
	/* weights of two events do not add up */
	if (top->options.source_count > 1)
		return cli_usage_error("top counts one event, not %zu", top->options.source_count) + 1;
	return CLI_OK;
}
