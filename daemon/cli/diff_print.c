// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/diff.h"
#include "cli/fit.h"
#include "cli/row.h"

#define PATH_STEP " > "
#define PATH_CUT "…" PATH_STEP

enum {
	PATH_CALLS = 6,		/* that a line has at most */
	NOTE_INDENT = 2,
};

/* A row of a table: of diff.rows, or of its paths. */
struct line {
	const struct diff_share *share;
	const struct diff_row *row;
	const struct diff_path *path;
};

struct table {
	struct line *lines;
	size_t count;
	struct diff_count found;	/* of those that match, also where they are not lines */
};

static const char *const verdicts[] = {
	[DIFF_FEW] = "few", [DIFF_SAME] = "same", [DIFF_GREW] = "grew", [DIFF_SHRANK] = "shrank",
};

/* What is significant first, then what is not, then what was not tested; the largest change first. */
static int order(const void *a, const void *b)
{
	const struct diff_share *left = ((const struct line *)a)->share;
	const struct diff_share *right = ((const struct line *)b)->share;
	int l = diff_is_change(left) ? 2 : left->verdict == DIFF_SAME;
	int r = diff_is_change(right) ? 2 : right->verdict == DIFF_SAME;

	if (l != r)
		return r - l;
	l = fabs(left->test.change) < fabs(right->test.change);
	r = fabs(left->test.change) > fabs(right->test.change);
	/* rows come from one array, in an order that is the same each time */
	return l != r ? l - r : (left > right) - (left < right);
}

static void sort(struct table *table)
{
	if (table->count)
		qsort(table->lines, table->count, sizeof(*table->lines), order);
}

static void count_line(const struct diff_share *share, struct diff_count *count)
{
	count->tested += share->verdict != DIFF_FEW;
	count->few += share->verdict == DIFF_FEW;
	count->grew += share->verdict == DIFF_GREW;
	count->shrank += share->verdict == DIFF_SHRANK;
}

static int rows_of(const struct diff_cli *cli, bool by_self, bool with_all, struct table *ret_table)
{
	const struct diff *diff = &cli->diff;

	*ret_table = (struct table){ .lines = calloc((size_t)diff->rows.count + 1,
						     sizeof(struct line)) };
	if (!ret_table->lines)
		return cli_error("out of memory");
	for (size_t i = 0; i < diff->rows.count; i++) {
		const struct diff_row *row = diff_row(diff, i);
		const struct line line = { .row = row, .share = by_self ? &row->self : &row->total };

		/* also rows of other events, and of callers that are leaves nowhere */
		if (line.share->parts[0] + line.share->parts[1] <= 0 || !cli->wanted[i])
			continue;
		count_line(line.share, &ret_table->found);
		if (with_all || diff_is_change(line.share))
			ret_table->lines[ret_table->count++] = line;
	}
	sort(ret_table);
	return CLI_OK;
}

static int paths_of(const struct diff_cli *cli, bool with_all, struct table *ret_table)
{
	const struct diff *diff = &cli->diff;

	*ret_table = (struct table){ .lines = calloc(diff_path_count(diff) + 1,
						     sizeof(struct line)) };
	if (!ret_table->lines)
		return cli_error("out of memory");
	for (size_t i = 0; i < diff_path_count(diff); i++) {
		const struct diff_path *path = diff_path(diff, i);

		if (cli->filter.is_set && !focus_has(&cli->focus, path->node))
			continue;
		count_line(&path->total, &ret_table->found);
		if (with_all || path->is_deepest)
			ret_table->lines[ret_table->count++] =
				(struct line){ .path = path, .share = &path->total };
	}
	sort(ret_table);
	return CLI_OK;
}

static size_t limit_of(const struct diff_cli *cli, size_t count)
{
	return cli->limit && cli->limit < count ? (size_t)cli->limit : count;
}

/* How many of a path's last @count calls a line has room for behind @used columns: one at least. */
static size_t calls_that_fit(const struct diff_cli *cli, const uint32_t *frames, size_t count, int used)
{
	int left = fit_left(used) - fit_columns(model_frame(cli->model, frames[0])->name);
	size_t fit = min_of(count, (size_t)PATH_CALLS);

	for (size_t i = 1; i < fit; i++) {
		left -= fit_columns(PATH_STEP) + fit_columns(model_frame(cli->model, frames[i])->name);
		/* what is left out takes room, too */
		if (left < (i + 1 < count ? fit_columns(PATH_CUT) : 0))
			return i;
	}
	return fit;
}

/* Callers first; a long one is cut at the side of the callers. */
static int print_path(const struct diff_cli *cli, uint32_t node, int used)
{
	_cleanup_(buffer_free) struct buffer buffer;
	const uint32_t *frames;
	size_t count, shown;

	buffer_init(&buffer, POOL_REPORT);
	if (model_stack(cli->model, node, &buffer, &count))
		return cli_error("out of memory");
	frames = (const uint32_t *)(const void *)buffer.data;
	shown = calls_that_fit(cli, frames, count, used);
	if (shown < count)
		used += fit_print(PATH_CUT);
	for (size_t i = shown; i-- > 0;) {
		used += fit_end(model_frame(cli->model, frames[i])->name, fit_left(used));
		if (i)
			used += fit_print(PATH_STEP);
	}
	putchar('\n');
	return CLI_OK;
}

/* Where a line has room for it; the columns that it takes. */
static int print_error(const struct diff_share *share)
{
	char error[32];

	if (fit_left(0) < FIT_ERRORS)
		return 0;
	if (share->verdict == DIFF_FEW)
		return fit_print("too few ");
	snprintf(error, sizeof(error), "± %.2f", 100 * share->test.error);
	/* the sign has two bytes, and one column */
	return fit_print("%-9s", error);
}

/* @all: what was found without a filter. */
static int print_table(const struct diff_cli *cli, const char *title, struct table *table,
		       const struct diff_count *all)
{
	const struct diff_count *found = cli->filter.is_set ? &table->found : all;
	const bool by_row = all != &cli->diff.path;
	const bool is_narrow = fit_left(0) < FIT_SHARES;
	size_t count = limit_of(cli, table->count);
	char note[FIT_NOTE] = "";
	int ret = CLI_OK;

	fit_add(note, "%s", title);
	if (cli->filter.is_set)
		fit_add(note, " with `%s' (shares of all samples)", cli->filter.text);
	fit_add(note, ": %zu grew, %zu shrank, %zu without a significant change", found->grew, found->shrank,
		found->tested - found->grew - found->shrank);
	/* how many paths match is known only of those that were considered for a test */
	if (found != &table->found || by_row)
		fit_add(note, ", %zu of too few samples", found->few);
	putchar('\n');
	fit_words(0, NOTE_INDENT, note);
	if (count)
		puts(is_narrow ? "  CHANGE" : fit_left(0) < FIT_ERRORS ? "    BEFORE     AFTER  CHANGE" :
								       "    BEFORE     AFTER           CHANGE");
	for (size_t i = 0; i < count && !ret; i++) {
		const struct line *line = &table->lines[i];
		const struct share_test *test = &line->share->test;
		int used;

		used = fit_print("%c ", diff_is_change(line->share) || !cli->with_all ? ' ' : '~');
		if (!is_narrow)
			used += fit_print("%6.2f %%  %6.2f %%  ", 100 * test->share[0], 100 * test->share[1]);
		used += fit_print("%+6.2f ", 100 * test->change);
		used += print_error(line->share);
		used += fit_print(" ");
		if (line->row)
			row_print(cli->diff.by, line->row, used);
		else
			ret = print_path(cli, line->path->node, used);
	}
	if (count < table->count)
		printf("%*s... and %zu more\n", is_narrow ? 0 : fit_left(0) < FIT_ERRORS ? 20 : 31, "",
		       table->count - count);
	free(table->lines);
	return ret;
}

static const struct reader_totals *totals_of(const struct diff_cli *cli, unsigned int side)
{
	return side == DIFF_BEFORE ? &cli->model->before.totals : &cli->model->totals;
}

static double seconds_of(const struct diff_cli *cli, unsigned int side)
{
	const struct reader_totals *totals = totals_of(cli, side);

	return totals->end > totals->start ? (double)(totals->end - totals->start) / 1e9 : 0;
}

static void print_head(const struct diff_cli *cli)
{
	static const char *const names[] = { "before", "after " };
	const struct diff *diff = &cli->diff;
	char name[PAIR_NAME_MAX], note[FIT_NOTE];

	for (unsigned int i = 0; i < DIFF_SIDES; i++) {
		const struct model_event *event = model_event(cli->model, diff->events[i]);

		*note = 0;
		fit_add(note, "%s, %.1f s, %" PRIu64 " samples of %s", pair_name(&cli->pair, i, name),
			seconds_of(cli, i), event->samples, event->source);
		if (event->fallback_errno)
			fit_add(note, " counted as %s", event->event);
		fit_words(fit_print("%s: ", names[i]), fit_columns(names[i]) + 2, note);
	}
	for (unsigned int i = 0; i < DIFF_SIDES; i++) {
		if (diff->sides[i].has_times && diff->sides[i].used >= SLICES_MIN)
			continue;
		*note = 0;
		fit_add(note, "%s %s: how samples depend on each other is not known (phi = 1), so that "
			"changes may look more certain than they are", pair_name(&cli->pair, i, name),
			diff->sides[i].has_times ? "is too short or idle" : "has samples without times");
		fit_words(0, NOTE_INDENT, note);
	}
	*note = 0;
	fit_add(note, "variance factor phi: median %.2f, largest %.2f; false discovery rate: %.0f %% of the "
		"significant changes of a table at most", diff->phi_median, diff->phi_max, 100 * DIFF_RATE);
	fit_words(0, NOTE_INDENT, note);
}

static int print_tables(const struct diff_cli *cli)
{
	struct table table;
	char title[128];
	int ret;

	ret = rows_of(cli, false, cli->with_all, &table);
	if (ret)
		return ret;
	snprintf(title, sizeof(title), "total by %s", by_name(cli->diff.by));
	ret = print_table(cli, by_is_frame(cli->diff.by) ? title : title + strlen("total "), &table,
			  &cli->diff.total);
	if (!ret && by_is_frame(cli->diff.by)) {
		ret = rows_of(cli, true, cli->with_all, &table);
		if (ret)
			return ret;
		snprintf(title, sizeof(title), "self by %s", by_name(cli->diff.by));
		ret = print_table(cli, title, &table, &cli->diff.self);
	}
	if (ret || !by_is_frame(cli->diff.by))
		return ret;
	ret = paths_of(cli, cli->with_all, &table) ?:
	      print_table(cli, "call paths", &table, &cli->diff.path);
	if (!ret && diff_say_paths(&cli->diff, title, sizeof(title)))
		fit_words(0, NOTE_INDENT, title);
	return ret;
}

int diff_print(const struct diff_cli *cli)
{
	char note[FIT_NOTE] = "";
	int ret;

	print_head(cli);
	ret = print_tables(cli);
	if (ret || !cli->has_fail_over)
		return ret;
	fit_add(note, "--fail-over %g%%: %s, %zu %s grew by more than %g percentage point%s", cli->fail_over,
		cli->failures ? "failed" : "passed", cli->failures, by_name_of(cli->diff.by, cli->failures),
		cli->fail_over, cli->fail_over == 1 ? "" : "s");
	putchar('\n');
	fit_words(0, NOTE_INDENT, note);
	return CLI_OK;
}

static void put_share(struct json *json, const char *name, const struct diff_share *share)
{
	const struct share_test *test = &share->test;

	json_object(json, name);
	json_double(json, "before_percent", 100 * test->share[DIFF_BEFORE]);
	json_double(json, "after_percent", 100 * test->share[DIFF_AFTER]);
	json_double(json, "change", 100 * test->change);
	json_string(json, "verdict", verdicts[share->verdict]);
	if (share->verdict != DIFF_FEW) {
		json_double(json, "error95", 100 * test->error);
		json_double(json, "phi_before", test->phi[DIFF_BEFORE]);
		json_double(json, "phi_after", test->phi[DIFF_AFTER]);
		json_double(json, "z", test->z);
		json_double(json, "p", test->p);
		json_double(json, "q", share->q);
	}
	json_end(json);
}

/* How many paths match is known only of those that were considered for a test. */
static void put_count(struct json *json, const struct diff_cli *cli, const char *name, const struct diff_count *count,
		      bool with_few)
{
	json_object(json, name);
	json_u64(json, "tested", count->tested);
	if (with_few)
		json_u64(json, "few", count->few);
	if (count == &cli->diff.path)
		json_u64(json, "beyond", count->beyond);
	json_u64(json, "grew", count->grew);
	json_u64(json, "shrank", count->shrank);
	json_end(json);
}

static void put_side(struct json *json, const struct diff_cli *cli, unsigned int side)
{
	const struct reader_totals *totals = totals_of(cli, side);
	const struct model_event *event = model_event(cli->model, cli->diff.events[side]);
	const struct sliced *sliced = &cli->diff.sides[side];

	json_object(json, side == DIFF_BEFORE ? "before" : "after");
	json_string(json, "file", cli->pair.paths[side]);
	json_bool(json, "cut", side == DIFF_BEFORE ? cli->model->before.is_cut :
						     cli->model->is_cut);
	json_u64(json, "start_unix_nano", totals->start);
	json_u64(json, "end_unix_nano", totals->end);
	json_double(json, "seconds", seconds_of(cli, side));
	json_string(json, "source", event->source);
	json_string(json, "event", event->event);
	json_string(json, "unit", event->unit);
	json_u64(json, "fallback_errno", event->fallback_errno);
	json_u64(json, "samples", event->samples);
	json_u64(json, "weight", event->weight);
	json_bool(json, "times", sliced->has_times);
	json_u64(json, "slices", sliced->has_times ? sliced->used : 0);
	json_end(json);
}

static void put_row(struct json *json, const struct diff_cli *cli, const struct diff_row *row)
{
	json_object(json, NULL);
	row_put(json, cli->diff.by, row);
	if (by_is_frame(cli->diff.by))
		put_share(json, "self", &row->self);
	put_share(json, "total", &row->total);
	json_end(json);
}

static int put_path(struct json *json, const struct diff_cli *cli, const struct diff_path *path)
{
	_cleanup_(buffer_free) struct buffer frames;
	size_t count;

	buffer_init(&frames, POOL_REPORT);
	if (model_stack(cli->model, path->node, &frames, &count))
		return cli_error("out of memory");
	json_object(json, NULL);
	json_array(json, "stack");
	while (count-- > 0)
		json_string(json, NULL,
			    model_frame(cli->model,
					((const uint32_t *)(const void *)frames.data)[count])->name);
	json_end(json);
	json_bool(json, "deepest", path->is_deepest);
	put_share(json, "total", &path->total);
	json_end(json);
	return CLI_OK;
}

/* Of what matches. */
static int put_filtered(struct json *json, const struct diff_cli *cli)
{
	struct table self, total, path;
	int ret = rows_of(cli, true, false, &self);

	if (ret)
		return ret;
	free(self.lines);
	ret = rows_of(cli, false, false, &total);
	if (ret)
		return ret;
	free(total.lines);
	ret = paths_of(cli, false, &path);
	if (ret)
		return ret;
	free(path.lines);
	json_object(json, "counts_filtered");
	put_count(json, cli, "self", &self.found, true);
	put_count(json, cli, "total", &total.found, true);
	put_count(json, cli, "paths", &path.found, false);
	json_end(json);
	return CLI_OK;
}

static void put_head(struct json *json, const struct diff_cli *cli)
{
	const struct diff *diff = &cli->diff;

	put_side(json, cli, DIFF_BEFORE);
	put_side(json, cli, DIFF_AFTER);
	if (cli->filter.is_set)
		json_string(json, "filter", cli->filter.text);
	json_string(json, "by", by_name(diff->by));
	json_double(json, "false_discovery_rate", DIFF_RATE);
	json_double(json, "phi_median", diff->phi_median);
	json_double(json, "phi_max", diff->phi_max);
	if (by_is_frame(diff->by))
		json_double(json, "path_samples_min", diff->path_least);
	json_object(json, "counts");
	put_count(json, cli, "self", &diff->self, true);
	put_count(json, cli, "total", &diff->total, true);
	put_count(json, cli, "paths", &diff->path, true);
	json_end(json);
	if (cli->has_fail_over) {
		json_double(json, "fail_over", cli->fail_over);
		json_u64(json, "failures", cli->failures);
	}
}

int diff_print_json(const struct diff_cli *cli)
{
	struct table table;
	struct json json;
	int ret;

	ret = rows_of(cli, false, true, &table);
	if (ret)
		return ret;
	json_init(&json, stdout);
	json_object(&json, NULL);
	put_head(&json, cli);
	if (cli->filter.is_set)
		ret = put_filtered(&json, cli);
	json_array(&json, "rows");
	for (size_t i = 0; i < limit_of(cli, table.count); i++)
		put_row(&json, cli, table.lines[i].row);
	json_end(&json);
	free(table.lines);
	table = (struct table){ 0 };
	json_array(&json, "paths");
	ret = ret ?: paths_of(cli, true, &table);
	for (size_t i = 0, put = 0; !ret && i < table.count && put < limit_of(cli, SIZE_MAX); i++)
		if (cli->with_all || diff_is_change(table.lines[i].share)) {
			ret = put_path(&json, cli, table.lines[i].path);
			put++;
		}
	free(table.lines);
	json_end(&json);
	json_end(&json);
	return ret;
}
