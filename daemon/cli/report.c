// SPDX-License-Identifier: Apache-2.0
#include "view/report_load.h"

#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/fit.h"
#include "cli/named_copy.h"
#include "cli/pager.h"
#include "cli/places.h"
#include "cli/report.h"
#include "cli/select.h"
#include "client/name.h"
#include "view/recording.h"

static const char help[] =
	"usage: stacktap report [OPTION...] [FILE]\n\n"
	"Prints the hottest functions per process of a file of OTLP profiles (default:\n"
	"stacktap.otlp; - is standard input), or one of the views below, of the event\n"
	"with most samples. [k] marks kernel functions, [u] those of user space. ± is\n"
	"half of a percentage's 95 % confidence interval, in percentage points.\n\n"
	"Views:\n"
	"      --by WHAT           a table by function, line, object, process, thread,\n"
	"                          container, service or cgroup\n"
	"      --tree              what calls what, from the outermost function down\n"
	"      --callers           what ran, and below it who called it\n"
	"      --summary           at most ten lines: where time goes, bursts, errors,\n"
	"                          losses\n\n"
	SELECT_HELP
	"\nRows:\n"
	"      --filter REGEX      only rows whose name matches; of --tree and --callers\n"
	"                          stacks with a function or object that does; shares\n"
	"                          stay relative to all\n"
	"      --percent-limit P   leave out functions with a total of less than P %\n"
	"                          (default: 0; of --tree and --callers 0.5)\n"
	"  -n, --limit N           functions per process, and processes (default: 10;\n"
	"                          0: all); rows of --by; functions of --callers\n"
	"      --addresses         every address without a symbol on its own, not one\n"
	"                          line per mapping\n"
	"      --lines             a row for each line of a function, as FILE:LINE, see\n"
	"                          `symbolize'\n\n"
	"Names:\n"
	"      --debuginfod URL    with --lines or --by line: look up missing names and\n"
	"                          lines as `symbolize' does, also at this server\n"
	"      --debuginfod-max SIZE, --debuginfod-timeout TIME\n\n"
	"Output:\n"
	"      --wide              do not shorten names to fit the terminal\n"
	"      --json              everything as JSON\n"
	"  -h, --help\n";

enum {
	OPT_ADDRESSES = 256,
	OPT_LINES,
	OPT_BY,
	OPT_TREE,
	OPT_CALLERS,
	OPT_SUMMARY,
	OPT_PERCENT_LIMIT,
	OPT_FILTER,
	OPT_WIDE,
	DEFAULT_LIMIT = 10,
	PLACE_MAX = 512,	/* bytes */
	ERROR_COLUMNS = 8,
	NOTE_INDENT = 2,
};

struct options {
	const char *path;
	struct selection selection;
	uint64_t limit;
	bool use_json, is_wide;
	enum report_detail detail;
	enum report_view view;
	enum view_by by;
	double least;
	bool has_limit, has_least;
	struct name_filter filter;
	struct debugfile_places places;
};

#define TREE_LEAST 0.5		/* percent */

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static size_t limit_of(const struct options *options, size_t count)
{
	return options->limit && options->limit < count ? (size_t)options->limit : count;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A share and, in a line that has room for it, its error, in @columns at least; the columns that these take. */
static int print_share(uint64_t part, uint64_t whole, const struct report_error *error, int columns)
{
	char text[16] = "";

	if (fit_left(0) < FIT_ERRORS)
		return fit_print("%6.2f %%", percent(part, whole));
	if (error->error95 >= 0)
		snprintf(text, sizeof(text), " ± %.2f", 100 * (double)error->error95);
	/* the sign has two bytes, and one column */
	return fit_print("%6.2f %%%-*s", percent(part, whole), columns + !!*text, text);
}

/* Its end is left out where the line has no room. */
static int print_fact(int used, const char *what, const char *text)
{
	used += fit_end(what, fit_left(used));
	return used + fit_end(text, fit_left(used));
}

static void print_heading(const struct report_event *event, const struct report_process *process)
{
	char pid[16] = "", samples[48];
	int used, left;

	if (process->pid)
		snprintf(pid, sizeof(pid), " (%u)", process->pid);
	snprintf(samples, sizeof(samples), ", %" PRIu64 " sample%s", process->samples,
		 process->samples == 1 ? "" : "s");
	putchar('\n');
	used = print_share(process->weight, event->weight, &process->error, 0);
	used += fit_print("  ");
	left = fit_left(used);
	used += fit_end(process->name, left == INT_MAX ? left :
			max_of(left - fit_columns(pid) - fit_columns(samples), left / 2));
	used = print_fact(used, pid, samples);
	if (*process->service_name && strcmp(process->service_name, process->name) != 0)
		used = print_fact(used, ", service ", process->service_name);
	if (*process->container_id) {
		char id[13];

		snprintf(id, sizeof(id), "%s", process->container_id);
		print_fact(used, ", container ", id);
	}
	if (fit_left(0) < FIT_SHARES)
		puts("\n    SELF  FUNCTION");
	else
		puts(fit_left(0) < FIT_ERRORS ? "\n      SELF     TOTAL  FUNCTION" :
						"\n      SELF             TOTAL          FUNCTION");
}

static void print_process(const struct options *options, const struct report_event *event,
			  const struct report_process *process)
{
	size_t count = limit_of(options, process->function_count);
	const bool is_narrow = fit_left(0) < FIT_SHARES;

	print_heading(event, process);
	for (size_t i = 0; i < count; i++) {
		const struct report_function *function = &process->functions[i];
		char place[PLACE_MAX] = "";
		int used;

		used = fit_print("%s", is_narrow ? "" : "  ");
		used += print_share(function->self, process->weight, &function->self_error, ERROR_COLUMNS);
		if (!is_narrow) {
			used += fit_print("  ");
			used += print_share(function->total, process->weight, &function->total_error,
					    ERROR_COLUMNS);
		}
		used += fit_print("  [%c] ", function->is_kernel ? 'k' : 'u');
		if (function->source && *function->source)
			snprintf(place, sizeof(place), "%s:%" PRIu64, last_part(function->source), function->line);
		fit_function(used, function->name, place, function->file);
	}
	if (count < process->function_count)
		printf("%*s... and %zu more\n", is_narrow ? 0 : 21, "", process->function_count - count);
}

/* Does the source's name, its modifiers deferred, say what was counted? */
static bool is_same_event(const char *source, const char *event)
{
	size_t length = strlen(event);

	return !strncmp(source, event, length) && (!source[length] || source[length] == ':');
}

/* A line below a table, or what it takes of them. */
static void print_note(const char *note)
{
	fit_words(0, NOTE_INDENT, note);
}

/* Stacks of programs that had just started. */
static void print_deferred(const struct report_event *event)
{
	const struct view_quality *quality = &event->quality;
	char note[FIT_NOTE] = "";

	if (!quality->deferred_unwound && !quality->no_mappings)
		return;
	fit_add(note, "first stacks: %" PRIu64 " deferred, %" PRIu64 " by frame pointers alone "
		"(%" PRIu64 " refused, %" PRIu64 " expired, %" PRIu64 " failed)",
		quality->deferred_unwound, quality->no_mappings, quality->deferred_refused,
		quality->deferred_expired, quality->deferred_failed);
	print_note(note);
}

static void print_samples(const struct report_event *event)
{
	char note[FIT_NOTE] = "";

	fit_add(note, "samples %" PRIu64, event->samples);
	if (event->has_quality)
		fit_add(note, ", lost %" PRIu64 ", throttled %" PRIu64, event->quality.lost,
			event->quality.throttled);
	if (event->quality.stalled)
		fit_add(note, ", re-armed %" PRIu64, event->quality.stalled);
	fit_add(note, ", source %s", event->source);
	if (!is_same_event(event->source, event->event))
		fit_add(note, " counted as %s", event->event);
	if (event->fallback_errno)
		fit_add(note, " (%s: %s)", name_of_errno(event->fallback_errno),
			strerror((int)event->fallback_errno));
	print_note(note);
}

static void print_quality(const struct report_event *event)
{
	const struct view_quality *quality = &event->quality;
	char note[FIT_NOTE] = "";

	if (event->has_quality) {
		fit_add(note, "quality: %.1f %% complete, %.1f %% named, %.1f %% by function range, %.1f %% unnamed, "
			"%.1f %% lost, %.1f %% stale", percent(quality->complete, event->samples),
			percent(quality->named, event->samples), percent(quality->by_range, event->samples),
			percent(event->samples - min_of(event->samples, quality->named + quality->by_range),
				event->samples),
			percent(quality->lost, event->drawn + quality->lost),
			percent(quality->stale, event->samples));
		if (quality->missed)
			fit_add(note, ", %.1f %% missed (late timers)",
				percent(quality->missed, event->drawn + quality->missed));
		print_note(note);
	}
	*note = 0;
	if (quality->names_late) {
		fit_add(note, "names: %.1f %% of stacks have a frame whose name was not there in time; later windows look it up again",
			percent(quality->names_late, event->samples));
		print_note(note);
	}
	*note = 0;
	if (!quality->guessed)
		return;
	fit_add(note, "guessed: %.1f %% of stacks went by frame pointers and may lack a frame",
		percent(quality->guessed, event->samples));
	print_note(note);
}

static void print_totals(const struct report_event *event)
{
	putchar('\n');
	print_samples(event);
	print_quality(event);
	print_deferred(event);
}

static void print_text(const struct options *options, const struct report *report)
{
	double seconds = report->end > report->start ? (double)(report->end - report->start) / 1e9 : 0;
	char note[FIT_NOTE] = "";

	fit_add(note, "%s: %.1f s, %" PRIu64 " bytes, %" PRIu64 " message%s", recording_name(options->path),
		seconds, report->bytes, report->messages, report->messages == 1 ? "" : "s");
	print_note(note);
	for (size_t i = 0; i < report->event_count; i++) {
		const struct report_event *event = &report->events[i];
		size_t limit = limit_of(options, event->process_count);

		if (report->event_count > 1) {
			fputs("\n== ", stdout);
			fit_words(3, NOTE_INDENT, event->source);
		}
		for (size_t j = 0; j < limit; j++)
			print_process(options, event, &event->processes[j]);
		if (limit < event->process_count) {
			*note = 0;
			fit_add(note, "... and %zu more processes", event->process_count - limit);
			putchar('\n');
			print_note(note);
		}
		print_totals(event);
	}
}

static int set_view(struct options *options, enum report_view view)
{
	if (options->view && options->view != view)
		return cli_usage_error("--by, --tree, --callers and --summary exclude each other");
	options->view = view;
	return CLI_OK;
}

static int set_detail(struct options *options, enum report_detail detail)
{
	if (options->detail && options->detail != detail)
		return cli_usage_error("--addresses and --lines exclude each other");
	options->detail = detail;
	return CLI_OK;
}

static int parse_option(int option, struct options *options)
{
	if (places_has(option))
		return places_parse(option, optarg, &options->places);
	switch (option) {
	case OPT_ADDRESSES:
		return set_detail(options, REPORT_ADDRESSES);
	case OPT_LINES:
		return set_detail(options, REPORT_LINES);
	case OPT_BY:
		if (!by_parse(optarg, &options->by))
			return cli_usage_error("unknown --by `%s': use line, " BY_NAMES, optarg);
		return set_view(options, REPORT_BY);
	case OPT_TREE:
		return set_view(options, REPORT_TREE);
	case OPT_CALLERS:
		return set_view(options, REPORT_CALLERS);
	case OPT_SUMMARY:
		return set_view(options, REPORT_SUMMARY);
	case OPT_WIDE:
		options->is_wide = true;
		return CLI_OK;
	case OPT_FILTER:
		return name_filter_parse(&options->filter, optarg);
	case OPT_PERCENT_LIMIT:
		if (!cli_parse_percent(optarg, &options->least))
			return cli_usage_error("`%s' is not a percentage like 2 or 0.5%%", optarg);
		options->has_least = true;
		return CLI_OK;
	case 'n':
		if (!cli_parse_number(optarg, 0, UINT32_MAX, &options->limit))
			return cli_usage_error("limit `%s' is not a number", optarg);
		options->has_limit = true;
		return CLI_OK;
	case 'j':
		options->use_json = true;
		cli_use_json();
		return CLI_OK;
	default:
		return select_parse(option, optarg, &options->selection);
	}
}

static int parse(int argc, char **argv, struct options *options)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		SELECT_OPTIONS,
		{ "addresses", no_argument, NULL, OPT_ADDRESSES },
		{ "lines", no_argument, NULL, OPT_LINES },
		PLACES_SERVER_OPTIONS,
		{ "by", required_argument, NULL, OPT_BY },
		{ "tree", no_argument, NULL, OPT_TREE },
		{ "callers", no_argument, NULL, OPT_CALLERS },
		{ "summary", no_argument, NULL, OPT_SUMMARY },
		{ "percent-limit", required_argument, NULL, OPT_PERCENT_LIMIT },
		{ "filter", required_argument, NULL, OPT_FILTER },
		{ "wide", no_argument, NULL, OPT_WIDE },
		{ "limit", required_argument, NULL, 'n' },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	int option, ret;

	opterr = 0;
	while ((option = cli_option(argc, argv, ":hn:", long_options)) != -1) {
		if (option == 'h')
			return cli_help(help) + 1;
		if (option == '?' || option == ':')
			return cli_bad_option(argc, argv, option) + 1;
		ret = parse_option(option, options);
		if (ret)
			return ret + 1;
	}
	if (optind + 1 < argc)
		return cli_usage_error("report takes one file, not also `%s'", argv[optind + 1]) + 1;
	if (optind < argc)
		options->path = argv[optind];
	if (options->has_least && !options->view)
		return cli_usage_error("--percent-limit is for --by, --tree and --callers") + 1;
	if (options->filter.is_set && options->view == REPORT_SUMMARY)
		return cli_usage_error("--filter does not work with --summary") + 1;
	if (options->detail && options->view)
		return cli_usage_error("%s is for the hottest functions per process",
				       options->detail == REPORT_LINES ? "--lines" : "--addresses") + 1;
	if (options->places.debuginfod.url && options->detail != REPORT_LINES &&
	    (options->view != REPORT_BY || options->by != BY_LINE))
		return cli_usage_error("--debuginfod needs --lines or --by line; to add names to the recording itself, use "
				       "`stacktap symbolize --debuginfod'") + 1;
	if (!options->has_limit)
		options->limit = options->use_json || options->view > REPORT_BY ? 0 : DEFAULT_LIMIT;
	if (!options->has_least && options->view > REPORT_BY)
		options->least = TREE_LEAST;
	return CLI_OK;
}

/* Rows of which no name matches go; shares are of what all processes have. */
static void filter_report(const struct name_filter *filter, struct report *report)
{
	for (size_t i = 0; i < report->event_count; i++) {
		struct report_event *event = &report->events[i];
		size_t kept = 0;

		for (size_t j = 0; j < event->process_count; j++) {
			struct report_process *process = &event->processes[j];
			size_t count = 0;

			for (size_t k = 0; k < process->function_count; k++) {
				const struct report_function *function = &process->functions[k];

				if (name_filter_has(filter, process->name, function->name, function->file))
					process->functions[count++] = *function;
			}
			process->function_count = count;
			if (count)
				event->processes[kept++] = *process;
		}
		event->process_count = kept;
	}
}

static void free_report(struct report **report)
{
	report_free(*report);
}

/* What is read: the recording, or a copy that has the lines which a server's files give. */
struct input {
	char copy[32];
	const char *path;
	int fd;		/* of the copy; -1: there is none */
	bool is_cut;
};

static void close_input(struct input *input)
{
	if (input->fd >= 0)
		close(input->fd);
}

static int open_input(struct options *options, struct input *ret_input)
{
	_cleanup_free_ char *directory = NULL;
	int ret;

	*ret_input = (struct input){ .path = options->path, .fd = -1 };
	if (!options->places.debuginfod.url)
		return CLI_OK;
	ret = places_check(&options->places, &directory);
	if (!ret)
		ret = named_copy_make(options->path, &options->places, &ret_input->fd, &ret_input->is_cut);
	free(options->places.directories);
	snprintf(ret_input->copy, sizeof(ret_input->copy), "/proc/self/fd/%d", ret_input->fd);
	ret_input->path = ret_input->copy;
	return ret;
}

/* With JSON as well: there they are just absent. */
static void tell_errors(const struct options *options, const struct report *report)
{
	const char *name = recording_name(options->path);

	if (report->copy_errno)
		fprintf(stderr, "stacktap: cannot copy %s to a temporary file in %s (%s): sampling errors (±) are not "
			"shown; save the recording to a file and run report on it\n", name,
			recording_copy_place(), strerror(report->copy_errno));
	else if (report->without_errors == REPORT_NO_PASS)
		fprintf(stderr, "stacktap: sampling errors (±) of %s need more memory than is allowed and are not shown: "
			RECORDING_NARROW "\n", name);
	else if (report->without_errors == REPORT_CHANGED)
		fprintf(stderr, "stacktap: %s changed while it was read: sampling errors (±) of some processes are not "
			"shown; run report again\n", name);
}

static int run(struct options *options)
{
	_cleanup_(free_report) struct report *report = NULL;
	_cleanup_(close_input) struct input input;
	char error[512];
	int ret = open_input(options, &input);

	if (ret)
		return ret;
	if (options->view)
		return report_show(&(struct report_cli){
			.path = options->path, .input = input.path, .is_cut = input.is_cut,
			.selection = options->selection, .view = options->view,
			.by = options->by, .limit = options->limit, .least = options->least,
			.filter = &options->filter, .use_json = options->use_json, .is_wide = options->is_wide,
		});
	if (report_load(input.path, &options->selection, options->detail, &report, error, sizeof(error)) < 0)
		return cli_error("%s", error);
	if (!report->event_count && !selection_is_empty(&options->selection))
		return select_found_nothing(&options->selection, options->path);
	report->is_cut |= input.is_cut;
	if (report->is_cut && !options->use_json)
		fprintf(stderr, "stacktap: %s is cut off or damaged; this is what is whole\n",
			recording_name(options->path));
	tell_errors(options, report);
	if (options->filter.is_set)
		filter_report(&options->filter, report);
	if (options->use_json) {
		report_json(report, options->path, options->limit, stdout);
		return cli_finish();
	}
	fit_start(options->is_wide);
	pager_start();
	print_text(options, report);
	return cli_finish();
}

int report_run(int argc, char **argv)
{
	struct options options = { .path = "stacktap.otlp", .places = { .sysroot = "/" } };
	int ret = parse(argc, argv, &options);

	ret = ret ? ret - 1 : run(&options);
	name_filter_done(&options.filter);
	return ret;
}
