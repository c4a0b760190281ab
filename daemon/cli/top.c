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
#include "cli/screen.h"
#include "cli/targets.h"
#include "service/host.h"
#include "client/name.h"
#include "pipeline/pipeline.h"
#include "view/browse.h"
#include "view/live.h"

static const char help[] =
	"usage: stacktap top [OPTION...]\n\n"
	"Samples, and shows the hottest functions of the last seconds again and again: on the screen\n"
	"of a terminal (h: its keys), else as text. Needs the module, but not the daemon.\n\n"
	"  -d, --delay TIME     between two prints (default: 2, at least 0.1)\n"
	"  -n, --iterations N   end after N of them\n"
	"  -b, --batch          plain text, one print after the other\n"
	"      --window TIME    that is looked back (default: 10)\n"
	"      --group WHAT     function (default), process, thread, object, container, service\n"
	"      --sort COLUMN    self (default) or total\n"
	"      --filter REGEX   only rows of which a name matches; shares stay those of all\n"
	"      --limit N        rows (default: 20, all on the screen; 0: all)\n"
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
	struct browse browse;
	bool is_batch, use_json, has_limit, has_filter;
	uint64_t zero;			/* what is older counts no more */
	const char *notice;		/* on the screen, until the next key */
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
			top->browse.group = (enum live_group)i;
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
			return cli_usage_error("there is no column `%s' to sort by; there are self and "
					       "total", argument);
		return CLI_OK;
	case OPT_FILTER:
		return set_filter(top, argument);
	case OPT_LIMIT:
		if (!cli_parse_number(argument, 0, UINT32_MAX, &top->limit))
			return cli_usage_error("limit `%s' is not a number", argument);
		top->has_limit = true;
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

static void print_row(FILE *out, const struct top *top, const struct live_table *table,
		      const struct live_row *row)
{
	fprintf(out, "%6.2f %% %6.2f %%  ", percent(row->self, table->weight),
	       percent(row->total, table->weight));
	switch (top->browse.group) {
	case LIVE_FUNCTION:
		fprintf(out, "%-15s %7u  [%c] %s%s%s\n", row->owner, row->id, row->is_kernel ? 'k' : 'u',
		       row->name, *row->file ? "  " : "", row->file);
		break;
	case LIVE_OBJECT:
		fprintf(out, "[%c] %s\n", row->is_kernel ? 'k' : 'u', *row->file ? row->file : "-");
		break;
	case LIVE_PROCESS:
	case LIVE_THREAD:
		fprintf(out, "%-15s %7u\n", row->owner, row->id);
		break;
	default:
		fprintf(out, "%s\n", *row->owner ? row->owner : "-");
	}
}

static void print_header(FILE *out, const struct top *top, const struct live_table *table)
{
	double seconds = (double)(table->end - table->start) / NSEC_PER_SEC;
	char clock[16] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm))
		strftime(clock, sizeof(clock), "%T", &tm);
	fprintf(out, "stacktap top, %s: %.1f s, user %.1f %%, kernel %.1f %%, idle %.1f %% of samples\n"
	       "samples %" PRIu64 ", lost %" PRIu64 ", cut stacks %" PRIu64 ", source %s", clock,
	       seconds, percent(table->user, table->weight), percent(table->kernel, table->weight),
	       percent(table->idle, table->weight), table->samples, table->lost, cut_stacks(table),
	       top->options.sources[0].name);
	if (table->fallback_errno)
		fprintf(out, " counted as %s (%s)", table->event, name_of_errno(table->fallback_errno));
	if (table->is_cut)
		fprintf(out, "; the window is cut for want of memory");
	fputc('\n', out);
}

static void print_heading(FILE *out, const struct top *top)
{
	fprintf(out, "  SELF     TOTAL   %s\n", groups[top->browse.group]);
}

static void print_text(FILE *out, const struct top *top, const struct live_table *table)
{
	uint64_t left = top->limit ?: UINT64_MAX;

	print_header(out, top, table);
	fputc('\n', out);
	print_heading(out, top);
	for (uint32_t i = 0; i < table->rows.count && left; i++) {
		if (!matches(top, live_row(table, i)))
			continue;
		print_row(out, top, table, live_row(table, i));
		left--;
	}
	fputc('\n', out);
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
	json_string(&json, "group", groups[top->browse.group]);
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

static int build(struct top *top, struct live_table *table)
{
	uint64_t now = clock_monotonic(), span = top->look_back_ms * NSEC_PER_MSEC;
	uint64_t from = max_of(now > span ? now - span : 0, top->zero);
	int ret = live_build(top->live, from, top->browse.group, top->browse.by_total, table);

	if (!ret)
		return CLI_OK;
	screen_close();
	return cli_error("cannot add up what was sampled: %s", strerror(-ret));
}

static int show(struct top *top)
{
	struct live_table table;
	int ret = build(top, &table);

	if (!ret && top->use_json)
		print_json(top, &table);
	else if (!ret)
		print_text(stdout, top, &table);
	live_table_free(&table);
	if (ret)
		return ret;
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
	if (!top->is_batch) {
		sigaddset(&set, SIGQUIT);
		sigaddset(&set, SIGWINCH);
	}
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

static const char keys_help[] =
	"q         quit\n"
	"d         delay between two tables\n"
	"/ f       filter: a regular expression, empty for none\n"
	"g         next group: function, process, thread, object, container, service\n"
	"s         sort by self or total\n"
	"p space   freeze, and go on\n"
	"z         zero: the window starts now\n"
	"arrows, page up, page down, home, end: move\n"
	"Ctrl-L    draw anew\n"
	"\nAny key goes back.\n";

enum { HEADER_LINES = 4 };

static size_t page_of(void)
{
	return (size_t)max_of(screen_lines() - HEADER_LINES, 0);
}

static uint64_t shown_rows(const struct top *top, const struct live_table *table)
{
	uint64_t rows = 0, limit = top->limit ?: UINT64_MAX;

	for (uint32_t i = 0; i < table->rows.count && rows < limit; i++)
		rows += matches(top, live_row(table, i));
	return rows;
}

static void print_rows(FILE *out, const struct top *top, const struct live_table *table,
		       uint64_t end)
{
	uint64_t row = 0;

	for (uint32_t i = 0; i < table->rows.count && row < end; i++) {
		if (!matches(top, live_row(table, i)))
			continue;
		if (row++ >= top->browse.first)
			print_row(out, top, table, live_row(table, i));
	}
}

static void print_prompt(FILE *out, const struct top *top)
{
	if (top->browse.ask)
		fprintf(out, "%s: %s_", top->browse.ask == BROWSE_DELAY ? "delay" : "filter",
			top->browse.text);
	else if (top->notice)
		fputs(top->notice, out);
	else
		fprintf(out, "sorted by %s%s%s", top->browse.by_total ? "total" : "self",
			top->has_filter ? ", filtered" : "",
			top->browse.is_frozen ? ", frozen" : "");
	fputc('\n', out);
}

static void draw(struct top *top, const struct live_table *table)
{
	uint64_t rows = shown_rows(top, table);
	char *text = NULL, *next, *line;
	size_t size, page = page_of();
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	browse_fit(&top->browse, rows, page);
	print_header(out, top, table);
	print_prompt(out, top);
	if (top->browse.has_help) {
		fputs(keys_help, out);
	} else {
		print_heading(out, top);
		print_rows(out, top, table, min_of(rows, (uint64_t)(top->browse.first + page)));
	}
	if (!fclose(out)) {
		next = text;
		screen_begin();
		for (int i = 0; (line = strsep(&next, "\n")) && next; i++) {
			size_t row = top->browse.first + (size_t)i - HEADER_LINES;

			screen_line(i, top->browse.has_help ? SCREEN_PLAIN :
				    i == HEADER_LINES - 1 ? SCREEN_HEADING :
				    i >= HEADER_LINES && row == top->browse.selected ?
				    SCREEN_SELECTED : SCREEN_PLAIN, line);
		}
		screen_end();
	}
	free(text);
}

static void take_filter(struct top *top)
{
	regex_t filter;

	if (*top->browse.text && regcomp(&filter, top->browse.text, REG_EXTENDED | REG_NOSUB)) {
		top->notice = "this is no regular expression";
		return;
	}
	if (top->has_filter)
		regfree(&top->filter);
	top->has_filter = *top->browse.text;
	if (top->has_filter)
		top->filter = filter;
}

static void take_delay(struct top *top)
{
	uint64_t delay_ms;

	if (cli_parse_duration(top->browse.text, &delay_ms) && delay_ms >= DELAY_MIN_MS)
		top->delay_ms = delay_ms;
	else
		top->notice = "this is not a time of 0.1 s at least";
}

/* All keys that wait; BROWSE_DRAW, BROWSE_BUILD or BROWSE_QUIT. */
static enum browse_effect take_keys(struct top *top, const struct live_table *table)
{
	enum browse_effect effect, result = BROWSE_DRAW;
	int key;

	while ((key = screen_key()) >= 0) {
		top->notice = NULL;
		effect = browse_key(&top->browse, key, shown_rows(top, table), page_of());
		if (effect == BROWSE_QUIT)
			return effect;
		if (effect == BROWSE_SET_FILTER)
			take_filter(top);
		else if (effect == BROWSE_SET_DELAY)
			take_delay(top);
		else if (effect == BROWSE_ZERO)
			top->zero = clock_monotonic();
		if (effect == BROWSE_ZERO || effect == BROWSE_BUILD)
			result = BROWSE_BUILD;
	}
	return result;
}

/* Of the signals that wait, does one end it? */
static bool take_signals(struct top *top)
{
	struct signalfd_siginfo info;

	while (read(top->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGWINCH)
			return true;
		screen_resize();
	}
	return false;
}

static int rebuild(struct top *top, struct live_table *table)
{
	live_table_free(table);
	return build(top, table);
}

/* As loop(); the pipeline's threads drain meanwhile, however slow the terminal is. */
static int screen_loop(struct top *top)
{
	uint64_t last = clock_monotonic(), iterations = 0;
	struct live_table table;
	int ret = build(top, &table);

	while (!ret) {
		struct pollfd pollfds[] = {
			{ .fd = top->signals, .events = POLLIN },
			{ .fd = STDIN_FILENO, .events = POLLIN },
		};
		uint64_t now = clock_monotonic(), due = last + top->delay_ms * NSEC_PER_MSEC;
		uint64_t wait_ms = due > now ? (due - now) / NSEC_PER_MSEC + 1 : 0;
		enum browse_effect effect = BROWSE_DRAW;

		draw(top, &table);
		if (poll(pollfds, 2, (int)min_of(wait_ms, (uint64_t)INT32_MAX)) < 0)
			continue;
		if (take_signals(top) || (pollfds[1].revents & (POLLHUP | POLLERR)))
			break;
		if (pollfds[1].revents)
			effect = take_keys(top, &table);
		if (effect == BROWSE_QUIT)
			break;
		if (effect == BROWSE_BUILD)
			ret = rebuild(top, &table);
		if (clock_monotonic() < due)
			continue;
		last = clock_monotonic();
		if (!ret && !top->browse.is_frozen)
			ret = rebuild(top, &table);
		if (++iterations == top->iterations || targets_are_gone(&top->targets))
			break;
	}
	live_table_free(&table);
	screen_close();
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
	top.is_batch |= top.use_json || !screen_is_possible();
	ret = start(&top);
	if (ret)
		return ret;
	if (!top.is_batch && !screen_open())
		return cli_error("cannot draw on this terminal; --batch needs none");
	if (!top.is_batch && !top.has_limit)
		top.limit = 0;
	ret = top.is_batch ? loop(&top) : screen_loop(&top);
	stopped = pipeline_stop(top.pipeline);
	if (!ret && stopped < 0)
		return cli_error("sampling did not end cleanly: %s", strerror(-stopped));
	return ret ?: cli_finish();
}
