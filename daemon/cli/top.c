// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/signal.h"
#include "cli/cli.h"
#include "cli/record.h"
#include "cli/targets.h"
#include "service/host.h"
#include "client/name.h"
#include "pipeline/pipeline.h"
#include "view/live.h"

static const char help[] =
	"usage: stacktap top [OPTION...]\n\n"
	"Samples, and prints the hottest functions of the last seconds again and again. Needs the\n"
	"module, but not the daemon.\n\n"
	"  -d, --delay TIME     between two prints (default: 2, at least 0.1)\n"
	"  -n, --iterations N   end after N of them\n"
	"  -b, --batch          plain text, one print after the other; so far the only way\n"
	"      --window TIME    that is looked back (default: 10)\n"
	"      --group WHAT     function (default), process, thread, object, container, service\n"
	"      --sort COLUMN    self (default) or total\n"
	"      --filter REGEX   only rows of which a name matches; shares stay those of all\n"
	"      --limit N        rows (default: 20; 0: all)\n"
	"      --json           one object a line\n"
	"  -h, --help\n\n"
	"What to sample, and how, is said as for `record': -a -p -t -u -G -C -e -F -c, --comm,\n"
	"--user-only, --kernel-only, --exclude-idle, --freq-mode, --no-jitter, --max-stack,\n"
	"--call-graph, --slice-bytes, --slice-max-bytes, --budget-ns, --ceiling, --sideband-bytes.\n";

enum {
	OPT_WINDOW = RECORD_OWN,
	OPT_GROUP,
	OPT_SORT,
	OPT_FILTER,
	OPT_LIMIT,
	OPT_JSON,
};

enum {
	DELAY_MS = 2000,
	DELAY_MIN_MS = 100,
	LOOK_BACK_MS = 10000,
	LIMIT = 20,
	PIPELINE_MS = 1000,
	MAX_BYTES = 32 << 20,	/* of messages in the window, and again of those that wait */
};

struct top {
	struct record_options options;
	uint64_t delay_ms, look_back_ms, iterations, limit;
	enum live_group group;
	bool by_total, use_json, has_filter;
	regex_t filter;
	struct environment environment;
	struct host_resource resource;
	struct targets targets;
	struct pipeline *pipeline;
	struct live *live;
	int signals;
};

static const char *const groups[LIVE_GROUP_COUNT] = {
	[LIVE_FUNCTION] = "function",
	[LIVE_PROCESS] = "process",
	[LIVE_THREAD] = "thread",
	[LIVE_OBJECT] = "object",
	[LIVE_CONTAINER] = "container",
	[LIVE_SERVICE] = "service",
};

static void top_done(struct top *top)
{
	pipeline_free(top->pipeline);
	live_free(top->live);
	targets_done(&top->targets);
	host_resource_done(&top->resource);
	environment_free(&top->environment);
	record_options_done(&top->options);
	if (top->has_filter)
		regfree(&top->filter);
	if (top->signals >= 0)
		close(top->signals);
}

static int sink_payload(void *ctx, struct payload *payload)
{
	struct top *top = ctx;
	int ret = live_add(top->live, payload->data, payload->size, clock_monotonic());

	free(payload->data);
	return ret;
}

static int set_group(struct top *top, const char *text)
{
	for (size_t i = 0; i < LIVE_GROUP_COUNT; i++) {
		if (!strcmp(text, groups[i])) {
			top->group = (enum live_group)i;
			return CLI_OK;
		}
	}
	return cli_usage_error("there is no group `%s'; there are function, process, thread, object, "
			       "container and service", text);
}

static int set_filter(struct top *top, const char *text)
{
	char error[128];
	int ret;

	if (top->has_filter)
		regfree(&top->filter);
	ret = regcomp(&top->filter, text, REG_EXTENDED | REG_NOSUB);
	top->has_filter = !ret;
	if (!ret)
		return CLI_OK;
	regerror(ret, &top->filter, error, sizeof(error));
	return cli_usage_error("filter `%s' is no regular expression: %s", text, error);
}

static int parse_own(void *ctx, int option, const char *argument)
{
	struct top *top = ctx;

	switch (option) {
	case 'd':
		if (!cli_parse_duration(argument, &top->delay_ms) || top->delay_ms < DELAY_MIN_MS)
			return cli_usage_error("delay `%s' is not a time of 0.1 s at least", argument);
		return CLI_OK;
	case 'n':
		if (!cli_parse_number(argument, 1, UINT32_MAX, &top->iterations))
			return cli_usage_error("`%s' is not a number of iterations", argument);
		return CLI_OK;
	case 'b':
		return CLI_OK;
	case OPT_WINDOW:
		if (!cli_parse_duration(argument, &top->look_back_ms))
			return cli_usage_error("window `%s' is not a time such as 10 or 1m", argument);
		return CLI_OK;
	case OPT_GROUP:
		return set_group(top, argument);
	case OPT_SORT:
		top->by_total = !strcmp(argument, "total");
		if (!top->by_total && strcmp(argument, "self"))
			return cli_usage_error("there is no column `%s' to sort by; there are self and "
					       "total", argument);
		return CLI_OK;
	case OPT_FILTER:
		return set_filter(top, argument);
	case OPT_LIMIT:
		if (!cli_parse_number(argument, 0, UINT32_MAX, &top->limit))
			return cli_usage_error("limit `%s' is not a number", argument);
		return CLI_OK;
	case OPT_JSON:
		top->use_json = true;
		cli_use_json();
		return CLI_OK;
	default:
		return CLI_GO_ON;
	}
}

static int parse(int argc, char **argv, struct top *top)
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

static bool matches(const struct top *top, const struct live_row *row)
{
	return !top->has_filter || !regexec(&top->filter, row->owner, 0, NULL, 0) ||
	       !regexec(&top->filter, row->name, 0, NULL, 0) ||
	       !regexec(&top->filter, row->file, 0, NULL, 0);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static uint64_t cut_stacks(const struct live_table *table)
{
	return table->samples > table->complete ? table->samples - table->complete : 0;
}

static void print_row(const struct top *top, const struct live_table *table,
		      const struct live_row *row)
{
	printf("%6.2f %% %6.2f %%  ", percent(row->self, table->weight),
	       percent(row->total, table->weight));
	switch (top->group) {
	case LIVE_FUNCTION:
		printf("%-15s %7u  [%c] %s%s%s\n", row->owner, row->id, row->is_kernel ? 'k' : 'u',
		       row->name, *row->file ? "  " : "", row->file);
		break;
	case LIVE_OBJECT:
		printf("[%c] %s\n", row->is_kernel ? 'k' : 'u', *row->file ? row->file : "-");
		break;
	case LIVE_PROCESS:
	case LIVE_THREAD:
		printf("%-15s %7u\n", row->owner, row->id);
		break;
	default:
		printf("%s\n", *row->owner ? row->owner : "-");
	}
}

static void print_text(const struct top *top, const struct live_table *table)
{
	double seconds = (double)(table->end - table->start) / NSEC_PER_SEC;
	uint64_t left = top->limit ?: UINT64_MAX;
	char clock[16] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm))
		strftime(clock, sizeof(clock), "%T", &tm);
	printf("stacktap top, %s: %.1f s, user %.1f %%, kernel %.1f %%, idle %.1f %% of samples\n"
	       "samples %" PRIu64 ", lost %" PRIu64 ", cut stacks %" PRIu64 ", source %s", clock,
	       seconds, percent(table->user, table->weight), percent(table->kernel, table->weight),
	       percent(table->idle, table->weight), table->samples, table->lost, cut_stacks(table),
	       top->options.sources[0].name);
	if (table->fallback_errno)
		printf(" counted as %s (%s)", table->event, name_of_errno(table->fallback_errno));
	if (table->is_cut)
		printf("; the window is cut for want of memory");
	printf("\n\n  SELF     TOTAL   %s\n", groups[top->group]);
	for (uint32_t i = 0; i < table->rows.count && left; i++) {
		if (!matches(top, live_row(table, i)))
			continue;
		print_row(top, table, live_row(table, i));
		left--;
	}
	putchar('\n');
}

static void print_json(const struct top *top, const struct live_table *table)
{
	uint64_t left = top->limit ?: UINT64_MAX;
	struct json json;

	json_init(&json, stdout);
	json_object(&json, NULL);
	json_u64(&json, "start_unix_nano", table->start);
	json_u64(&json, "end_unix_nano", table->end);
	json_string(&json, "source", top->options.sources[0].name);
	json_string(&json, "event", table->event);
	json_string(&json, "unit", table->unit);
	json_u64(&json, "fallback_errno", table->fallback_errno);
	json_u64(&json, "samples", table->samples);
	json_u64(&json, "lost", table->lost);
	json_u64(&json, "cut_stacks", cut_stacks(table));
	json_u64(&json, "weight", table->weight);
	json_u64(&json, "user", table->user);
	json_u64(&json, "kernel", table->kernel);
	json_u64(&json, "idle", table->idle);
	json_bool(&json, "cut", table->is_cut);
	json_string(&json, "group", groups[top->group]);
	json_array(&json, "rows");
	for (uint32_t i = 0; i < table->rows.count && left; i++) {
		const struct live_row *row = live_row(table, i);

		if (!matches(top, row))
			continue;
		left--;
		json_object(&json, NULL);
		json_u64(&json, "id", row->id);
		json_string(&json, "owner", row->owner);
		json_string(&json, "name", row->name);
		json_string(&json, "file", row->file);
		json_bool(&json, "kernel", row->is_kernel);
		json_u64(&json, "self", row->self);
		json_u64(&json, "total", row->total);
		json_u64(&json, "samples", row->samples);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
}

static int show(struct top *top)
{
	uint64_t now = clock_monotonic(), span = top->look_back_ms * NSEC_PER_MSEC;
	struct live_table table;
	int ret = live_build(top->live, now > span ? now - span : 0, top->group, top->by_total,
			     &table);

	if (!ret && top->use_json)
		print_json(top, &table);
	else if (!ret)
		print_text(top, &table);
	live_table_free(&table);
	if (ret < 0)
		return cli_error("cannot add up what was sampled: %s", strerror(-ret));
	/* a reader that has gone ends it */
	return fflush(stdout) || ferror(stdout) ? CLI_FAILED : CLI_OK;
}

static int catch_signals(struct top *top)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	/* before the pipeline's threads start, which inherit the mask */
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	top->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return top->signals < 0 ? -errno : 0;
}

static int start(struct top *top)
{
	struct pipeline_options pipeline;
	char error[512];
	int ret;

	if (environment_load(&top->environment, error, sizeof(error)) < 0 ||
	    host_resource_load(&top->environment, NULL, &top->resource, error, sizeof(error)) < 0)
		return cli_error("%s", error);
	ret = targets_init(&top->targets, &top->options.filter) ?: catch_signals(top) ?:
	      live_new(MAX_BYTES, &top->live);
	if (ret < 0)
		return cli_error("cannot prepare to sample: %s", strerror(-ret));
	record_pipeline(&top->options, &top->environment, &top->resource, &pipeline);
	pipeline.window_ms = (unsigned int)min_of(top->delay_ms, (uint64_t)PIPELINE_MS);
	pipeline.window_max_ms = pipeline.window_ms;
	pipeline.sink = (struct pipeline_sink){ .payload = sink_payload, .ctx = top };
	if (pipeline_start(&pipeline, &top->pipeline, error, sizeof(error)) < 0)
		return cli_error("%s", error);
	/* the module has it; descriptors of cgroups would keep their mount busy */
	control_filter_done(&top->options.filter);
	return CLI_OK;
}

/* Until a signal, the last iteration, the end of what -p and -t name, or of whoever reads. */
static int loop(struct top *top)
{
	uint64_t due = clock_monotonic();
	int ret = CLI_OK;

	for (uint64_t i = 0; !ret && (!top->iterations || i < top->iterations); i++) {
		struct pollfd pollfd = { .fd = top->signals, .events = POLLIN };
		uint64_t now = clock_monotonic();

		/* one that took too long makes the next ones late, not many */
		due = max_of(due + top->delay_ms * NSEC_PER_MSEC, now);
		if (poll(&pollfd, 1, (int)min_of((due - now) / NSEC_PER_MSEC, (uint64_t)INT32_MAX)) > 0)
			break;
		ret = show(top);
		if (targets_are_gone(&top->targets))
			break;
	}
	return ret;
}

int top_run(int argc, char **argv)
{
	_cleanup_(top_done) struct top top = {
		.delay_ms = DELAY_MS, .look_back_ms = LOOK_BACK_MS, .limit = LIMIT, .signals = -1,
	};
	int ret, stopped;

	ret = parse(argc, argv, &top);
	if (ret)
		return ret - 1;
	ret = start(&top);
	if (ret)
		return ret;
	ret = loop(&top);
	stopped = pipeline_stop(top.pipeline);
	if (!ret && stopped < 0)
		return cli_error("sampling did not end cleanly: %s", strerror(-stopped));
	return ret ?: cli_finish();
}
