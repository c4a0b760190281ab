// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/signal.h"
#include "cli/cli.h"
#include "cli/fit.h"
#include "cli/screen.h"
#include "cli/top.h"

static const char keys_help[] =
	"q         quit; in what was entered: back, as Esc and left\n"
	"d         delay between two tables\n"
	"/ f       filter: a regular expression, empty for none\n"
	"g         next group: function, process, thread, object, container, service,\n"
	"          cgroup\n"
	"s         sort by self or total\n"
	"e + Enter callers and callees of the selected function; right does so, too\n"
	"a         annotate it: its source lines, or its instructions\n"
	"p space   freeze, and go on\n"
	"z         zero: the window starts now\n"
	"arrows, page up, page down, home, end: move\n"
	"F1 F4     help, filter, as in htop\n"
	"F6 F10    sort by self or total, quit\n"
	"Ctrl-L    draw anew\n"
	"\nAny key goes back.\n";

enum { HEADER_LINES = 5 };

static size_t page_of(void)
{
	return (size_t)max_of(screen_lines() - HEADER_LINES, 0);
}

static uint64_t shown_rows(const struct top *top, const struct live_table *table)
{
	uint64_t rows = 0, limit = top->limit ?: UINT64_MAX;

	if (top->browse.view == BROWSE_CODE)
		return top->code_lines;
	for (uint32_t i = 0; i < table->rows.count && rows < limit; i++)
		rows += top_matches(top, live_row(table, i));
	return rows;
}

static void print_rows(FILE *out, const struct top *top, const struct live_table *table,
		       uint64_t end)
{
	uint64_t row = 0;

	if (top->browse.view == BROWSE_CODE) {
		top_print_code(out, top, top->browse.first, end);
		return;
	}
	for (uint32_t i = 0; i < table->rows.count && row < end; i++) {
		if (!top_matches(top, live_row(table, i)))
			continue;
		if (row++ >= top->browse.first)
			top_print_row(out, top, table, live_row(table, i));
	}
}

/* And as many of the main keys as there is room for. */
static void print_state(FILE *out, const struct top *top, const struct live_table *table)
{
	static const char *const keys[] = { "h help", "q quit", "/ filter", "g group", "e callers", "a annotate" };
	int used;

	fit_into(out);
	used = fit_print("%ssorted by %s%s%s ", table->samples ? "" : "no samples yet, ",
			 top->browse.by_total ? "total" : "self", top->filter.is_set ? ", filtered" : "",
			 top->browse.is_frozen ? ", frozen" : "");
	for (size_t i = 0; i < ARRAY_SIZE(keys) && fit_left(used) >= fit_columns(keys[i]) + 2; i++)
		used += fit_print("  %s", keys[i]);
	fit_into(NULL);
}

static void print_prompt(FILE *out, const struct top *top, const struct live_table *table)
{
	if (top->browse.ask)
		fprintf(out, "%s: %s_", top->browse.ask == BROWSE_DELAY ? "delay" : "filter",
			top->browse.text);
	else if (*top->notice)
		fputs(top->notice, out);
	else if (top->browse.view != BROWSE_TABLE)
		fprintf(out, "%sh help  q back", top->browse.is_frozen ? "frozen   " : "");
	else
		print_state(out, top, table);
	fputc('\n', out);
}

/* Columns of percentages at the beginning of a line by perf's limits, each by its own. */
static void mark_shares(int line, const char *text, enum browse_view view)
{
	enum { COLUMN = 9 };
	const size_t first = view == BROWSE_CODE ? TOP_CODE_SHARE : 0, end = view == BROWSE_CODE ? first + 1 : 2 * COLUMN;

	for (size_t at = first; at < end; at += COLUMN) {
		const double percent = top_share_at(text, at);

		if (percent >= 0.5)
			screen_mark(line, (int)at, TOP_SHARE_COLUMNS, percent >= 5 ? SCREEN_HOT : SCREEN_WARM);
	}
}

/* A line of the screen. */
static void draw_line(const struct top *top, int i, const char *line)
{
	const bool is_selected = i >= HEADER_LINES &&
		top->browse.first + (size_t)i - HEADER_LINES == top->browse.selected;

	if (top->browse.has_help) {
		screen_line(i, SCREEN_PLAIN, line);
		return;
	}
	screen_line(i, i == HEADER_LINES - 1 ? SCREEN_HEADING : is_selected ? SCREEN_SELECTED : SCREEN_PLAIN,
		    line);
	if (i == HEADER_LINES - 1 && top->browse.view == BROWSE_TABLE)
		screen_mark(i, top->browse.by_total ? 12 : 4, top->browse.by_total ? 5 : 4, SCREEN_SORTED);
	else if (i >= HEADER_LINES && !is_selected)
		mark_shares(i, line, top->browse.view);
}

static void draw(struct top *top, const struct live_table *table)
{
	uint64_t rows = shown_rows(top, table);
	char *text = NULL, *next, *line;
	size_t size, page = page_of();
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	fit_width();
	browse_fit(&top->browse, rows, page);
	top_print_header(out, top, table);
	print_prompt(out, top, table);
	if (top->browse.has_help) {
		fputs(keys_help, out);
	} else {
		if (top->browse.view == BROWSE_CODE)
			fprintf(out, "annotate %s; Esc: back\n", top->code_of);
		else
			top_print_heading(out, top);
		print_rows(out, top, table, min_of(rows, (uint64_t)(top->browse.first + page)));
	}
	if (!fclose(out)) {
		next = text;
		screen_begin();
		for (int i = 0; (line = strsep(&next, "\n")) && next; i++)
			draw_line(top, i, line);
		screen_end();
	}
	free(text);
}

static void say(struct top *top, const char *text)
{
	snprintf(top->notice, sizeof(top->notice), "%s", text);
}

static void take_delay(struct top *top)
{
	uint64_t delay_ms;

	if (cli_parse_duration(top->browse.text, &delay_ms) && delay_ms >= TOP_DELAY_MIN_MS)
		top->delay_ms = delay_ms;
	else
		say(top, "this is not a time of 0.1 s at least");
}

static const struct live_row *selected_row(const struct top *top, const struct live_table *table)
{
	uint64_t row = 0;

	for (uint32_t i = 0; i < table->rows.count; i++)
		if (top_matches(top, live_row(table, i)) && row++ == top->browse.selected)
			return live_row(table, i);
	return NULL;
}

static int take_subject(struct top *top, const struct live_row *row)
{
	char *owner = strdup(row->owner), *name = strdup(row->name), *file = strdup(row->file);

	if (!owner || !name || !file) {
		free(owner);
		free(name);
		free(file);
		return -ENOMEM;
	}
	free(top->subject_owner);
	free(top->subject_name);
	free(top->subject_file);
	top->subject_owner = owner;
	top->subject_name = name;
	top->subject_file = file;
	top->subject = (struct live_subject){
		.id = row->id, .is_kernel = row->is_kernel, .owner = owner, .name = name, .file = file,
	};
	return 0;
}

/* Of the selected row: whom it calls and who calls it, or its code. */
static enum browse_effect show_function(struct top *top, const struct live_table *table,
					enum browse_effect what)
{
	const struct live_row *row = selected_row(top, table);

	if (!row)
		return BROWSE_DRAW;
	if (top->browse.view == BROWSE_TABLE && top->browse.group != LIVE_FUNCTION) {
		say(top, "a function has callers and code: g goes to the functions");
		return BROWSE_DRAW;
	}
	if (what == BROWSE_SHOW_CODE) {
		if (top_make_code(top, row))
			return BROWSE_DRAW;
		browse_enter(&top->browse, BROWSE_CODE);
		/* as perf: the hottest line, with what is around it */
		top->browse.selected = top_hottest_line(top);
		top->browse.first = top->browse.selected - min_of(top->browse.selected, page_of() / 2);
		return BROWSE_BUILD;
	}
	if (take_subject(top, row)) {
		say(top, "out of memory");
		return BROWSE_DRAW;
	}
	browse_enter(&top->browse, BROWSE_CALLS);
	return BROWSE_BUILD;
}

/* All keys that wait; BROWSE_DRAW, BROWSE_BUILD or BROWSE_QUIT. */
static enum browse_effect take_keys(struct top *top, const struct live_table *table)
{
	enum browse_effect effect, result = BROWSE_DRAW;
	int key;

	while ((key = screen_key()) >= 0) {
		*top->notice = 0;
		effect = browse_key(&top->browse, key, shown_rows(top, table), page_of());
		if (effect == BROWSE_QUIT)
			return effect;
		if (effect == BROWSE_SET_FILTER && !name_filter_set(&top->filter, top->browse.text))
			say(top, "invalid regular expression");
		else if (effect == BROWSE_SET_DELAY)
			take_delay(top);
		else if (effect == BROWSE_ZERO)
			top->zero = clock_monotonic();
		else if (effect == BROWSE_SHOW_CALLS || effect == BROWSE_SHOW_CODE)
			/* rows are of the view that is left: other keys wait for the next table */
			return show_function(top, table, effect);
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
	return top_build(top, table);
}

/* As loop(); the pipeline's threads drain meanwhile, however slow the terminal is. */
int top_screen_loop(struct top *top)
{
	uint64_t last = clock_monotonic(), iterations = 0;
	struct live_table table;
	int ret = top_build(top, &table);

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
		top_cost_measure(&top->cost);
		if (!ret && !top->browse.is_frozen)
			ret = rebuild(top, &table);
		if (++iterations == top->iterations || targets_are_gone(&top->targets))
			break;
	}
	live_table_free(&table);
	screen_close();
	return ret;
}
