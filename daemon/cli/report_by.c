// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/fit.h"
#include "cli/pager.h"
#include "cli/report.h"
#include "cli/row.h"
#include "cli/select.h"
#include "view/focus.h"
#include "view/recording.h"

enum { ERROR_COLUMNS = 8 };

static double percent(const struct diff_share *share)
{
	return 100 * share->test.share[DIFF_AFTER];
}

static int order(const void *a, const void *b)
{
	const struct diff_row *left = *(const struct diff_row *const *)a;
	const struct diff_row *right = *(const struct diff_row *const *)b;
	double l = left->self.parts[DIFF_AFTER], r = right->self.parts[DIFF_AFTER];

	if (l < r || l > r)
		return l > r ? -1 : 1;
	l = left->total.parts[DIFF_AFTER];
	r = right->total.parts[DIFF_AFTER];
	if (l < r || l > r)
		return l > r ? -1 : 1;
	return (left > right) - (left < right);
}

/* The width that it takes in bytes, also where there is none. */
static int say_error(const struct diff_share *share, char text[16])
{
	if (fit_left(0) < FIT_ERRORS)
		return 0;
	if (share->test.error >= 0)
		snprintf(text, 16, " ± %.2f", 100 * share->test.error);
	return ERROR_COLUMNS + !!*text;
}

static void print_row(const struct report_cli *cli, const struct diff_row *row)
{
	char self[16] = "", total[16] = "";
	int used;

	/* the sign has two bytes, and one column */
	used = fit_print("%6.2f %%%-*s", percent(&row->self), say_error(&row->self, self), self);
	if (by_is_frame(cli->by) && fit_left(0) >= FIT_SHARES)
		used += fit_print("  %6.2f %%%-*s", percent(&row->total), say_error(&row->total, total), total);
	used += fit_print("  ");
	row_print(cli->by, row, used);
}

static void put_share(struct json *json, const char *name, const struct diff_share *share)
{
	json_object(json, name);
	json_u64(json, "weight", (uint64_t)share->parts[DIFF_AFTER]);
	json_double(json, "percent", percent(share));
	if (share->test.error >= 0) {
		json_double(json, "error95", 100 * share->test.error);
		json_double(json, "phi", fmax(share->test.phi[DIFF_AFTER], 1));
	}
	json_end(json);
}

static void put_rows(const struct report_cli *cli, const struct diff_row *const *rows, size_t count)
{
	const struct model_event *event = model_event(cli->model, cli->shares.events[DIFF_AFTER]);
	struct json json;

	json_init(&json, stdout);
	json_object(&json, NULL);
	json_string(&json, "file", cli->path);
	json_string(&json, "view", "by");
	json_string(&json, "by", by_name(cli->by));
	json_string(&json, "source", event->source);
	json_string(&json, "event", event->event);
	json_string(&json, "unit", event->unit);
	json_u64(&json, "samples", event->samples);
	json_u64(&json, "weight", event->weight);
	json_bool(&json, "times", cli->shares.sides[DIFF_AFTER].has_times);
	json_double(&json, "percent_limit", cli->least);
	if (cli->filter->is_set)
		json_string(&json, "filter", cli->filter->text);
	json_array(&json, "rows");
	for (size_t i = 0; i < count; i++) {
		json_object(&json, NULL);
		row_put(&json, cli->by, rows[i]);
		if (by_is_frame(cli->by))
			put_share(&json, "self", &rows[i]->self);
		put_share(&json, "total", &rows[i]->total);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
}

void report_say_untold(const struct sliced *sliced)
{
	char note[FIT_NOTE] = "";

	if (sliced_is_telling(sliced) || fit_left(0) < FIT_ERRORS)
		return;
	fit_add(note, "no errors (±): samples are in only %u of %d time slices, too few to estimate their "
		"correlation", sliced->used, SLICES);
	fit_words(0, 0, note);
}

static void print_heading(const struct report_cli *cli)
{
	if (fit_left(0) < FIT_SHARES)
		fputs(by_is_frame(cli->by) ? "    SELF  " : "   SHARE  ", stdout);
	else if (fit_left(0) < FIT_ERRORS)
		fputs(by_is_frame(cli->by) ? "    SELF     TOTAL  " : "   SHARE  ", stdout);
	else
		fputs(by_is_frame(cli->by) ? "    SELF             TOTAL          " : "   SHARE          ", stdout);
	for (const char *name = by_name(cli->by); *name; name++)
		putchar(toupper((unsigned char)*name));
	putchar('\n');
}

/* A table of lines without any is one of functions: what is to be done for lines goes beside it. */
static void tell_lines(const struct report_cli *cli)
{
	for (size_t i = 0; i < cli->shares.rows.count; i++)
		if (diff_row(&cli->shares, i)->line)
			return;
	fprintf(stderr, "stacktap: %s has no source lines: `stacktap symbolize' adds them from debug files\n",
		recording_name(cli->path));
}

/* Rows that match: of a line also where a function does that it is compiled into, or the object of one. */
static bool *find_wanted(const struct report_cli *cli)
{
	const struct diff *shares = &cli->shares;
	const uint32_t frames = cli->filter->is_set && cli->by == BY_LINE ? cli->model->frames.count : 0;
	bool *wanted = calloc((size_t)shares->rows.count + 1, sizeof(*wanted));

	if (!wanted)
		return NULL;
	for (size_t i = 0; i < shares->rows.count; i++)
		wanted[i] = row_is_wanted(cli->filter, diff_row(shares, i));
	for (uint32_t i = 0; i < frames; i++) {
		const struct diff_row *row = diff_row_of(shares, cli->model, i);

		if (row && !wanted[row - diff_row(shares, 0)])
			wanted[row - diff_row(shares, 0)] = row_is_wanted_frame(cli->filter, model_frame(cli->model, i));
	}
	return wanted;
}

static int print_by(const struct report_cli *cli)
{
	const struct diff *shares = &cli->shares;
	_cleanup_free_ const struct diff_row **rows =
		calloc((size_t)shares->rows.count + 1, sizeof(struct diff_row *));
	_cleanup_free_ const bool *wanted = find_wanted(cli);
	size_t count = 0, shown;

	if (!rows || !wanted)
		return cli_error("out of memory");
	for (size_t i = 0; i < shares->rows.count; i++) {
		const struct diff_row *row = diff_row(shares, i);

		if (row->total.parts[DIFF_AFTER] > 0 && percent(&row->total) >= cli->least &&
		    wanted[i])
			rows[count++] = row;
	}
	if (count)
		qsort(rows, count, sizeof(struct diff_row *), order);
	shown = cli->limit && cli->limit < count ? (size_t)cli->limit : count;
	if (cli->use_json) {
		put_rows(cli, rows, shown);
		return CLI_OK;
	}
	print_heading(cli);
	for (size_t i = 0; i < shown; i++)
		print_row(cli, rows[i]);
	if (shown < count)
		printf("... and %zu more\n", count - shown);
	report_say_untold(&cli->shares.sides[DIFF_AFTER]);
	return CLI_OK;
}

static int show(struct report_cli *cli)
{
	switch (cli->view) {
	case REPORT_TREE:
		return report_print_tree(cli);
	case REPORT_CALLERS:
		return report_print_callers(cli);
	case REPORT_SUMMARY:
		return report_print_summary(cli);
	default:
		return print_by(cli);
	}
}

/* Of a tree the stacks that have a function which matches; rows are chosen when they are printed. */
static int focus(struct report_cli *cli)
{
	struct focus focus;
	int err;

	if (!cli->filter->is_set)
		return 0;
	err = focus_find(cli->model, row_is_wanted_frame, cli->filter, &focus);
	if (!err)
		focus_apply(&focus, cli->model);
	focus_done(&focus);
	return err;
}

/* A tree's are its own matter. The summary has the factor of all that is tested, paths as well. */
static int find_shares(struct report_cli *cli)
{
	cli->event = model_main_event(cli->model);
	if (cli->view == REPORT_TREE || cli->view == REPORT_CALLERS)
		return focus(cli);
	return diff_make_one(cli->model, cli->event, cli->by, cli->view == REPORT_SUMMARY, &cli->shares);
}

int report_show(struct report_cli *cli)
{
	char error[512];
	int ret = CLI_FAILED;

	if (model_load(cli->input, &(struct model_options){
		.selection = &cli->selection, .with_times = true,
		.with_lines = cli->view == REPORT_BY && cli->by == BY_LINE,
	}, &cli->model, error, sizeof(error)) < 0)
		return cli_error("%s", error);
	if (!cli->model->events.count) {
		ret = select_found_nothing(&cli->selection, cli->path);
	} else if (find_shares(cli) < 0) {
		ret = cli_error(RECORDING_TOO_LARGE, recording_name(cli->path));
	} else {
		if ((cli->model->is_cut || cli->is_cut) && !cli->use_json)
			fprintf(stderr, "stacktap: %s is cut off or damaged; this is what is whole\n",
				recording_name(cli->path));
		if (!cli->use_json) {
			/* what is said on a terminal goes before the pager's screen, not into it */
			if (cli->view == REPORT_BY && cli->by == BY_LINE)
				tell_lines(cli);
			fit_start(cli->is_wide);
			pager_start();
		}
		ret = show(cli) ?: cli_finish();
	}
	diff_free(&cli->shares);
	model_free(cli->model);
	return ret;
}
