// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/fit.h"
#include "cli/report.h"
#include "view/recording.h"

enum { SHARE_TEXT = 48, TOPIC_COLUMNS = 10 };

struct summary {
	const struct report_cli *cli;
	const struct model_event *event;
	struct json json;
};

static void line(struct summary *summary, const char *topic, const char *format, ...) _printf_(3, 4);

static void line(struct summary *summary, const char *topic, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!summary->cli->use_json) {
		fit_words(fit_print("%-*s ", TOPIC_COLUMNS, topic), TOPIC_COLUMNS + 1, text);
		return;
	}
	json_object(&summary->json, NULL);
	json_string(&summary->json, "topic", topic);
	json_string(&summary->json, "text", text);
	json_end(&summary->json);
}

/* A share and its error, where that is known. */
static const char *share_text(const struct diff_share *share, char text[SHARE_TEXT])
{
	int used = snprintf(text, SHARE_TEXT, "%.2f %%", 100 * share->test.share[DIFF_AFTER]);

	if (share->test.error >= 0)
		snprintf(text + used, SHARE_TEXT - (size_t)used, " ± %.2f", 100 * share->test.error);
	return text;
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static void say_what(struct summary *summary)
{
	const struct reader_totals *totals = &summary->cli->model->totals;
	const struct model_event *event = summary->event;
	double seconds = totals->end > totals->start ? (double)(totals->end - totals->start) / 1e9 : 0;
	char busy[64] = "";

	/* one sample has no time between */
	if (!strcmp(event->unit, "nanoseconds") && seconds > 0 && event->samples > 1)
		snprintf(busy, sizeof(busy), ", %.2f CPUs sampled on average",
			 (double)event->weight / 1e9 / seconds);
	line(summary, "recording", "%s: %.1f s, %" PRIu64 " sample%s of %s%s%s%s",
	     recording_name(summary->cli->path), seconds, event->samples,
	     event->samples == 1 ? "" : "s", event->source,
	     event->fallback_errno ? " counted as " : "", event->fallback_errno ? event->event : "",
	     busy);
}

/* The row with the largest share, by self or by total where that is below @most. */
static const struct diff_row *largest(const struct diff *shares, bool by_self, double most)
{
	const struct diff_row *best = NULL;

	for (size_t i = 0; i < shares->rows.count; i++) {
		const struct diff_row *row = diff_row(shares, i);
		const struct diff_share *share = by_self ? &row->self : &row->total;

		if (share->test.share[DIFF_AFTER] <= most &&
		    (!best || share->parts[DIFF_AFTER] >
		     (by_self ? &best->self : &best->total)->parts[DIFF_AFTER]))
			best = row;
	}
	return best;
}

static int heavier(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left < right) - (left > right);
}

/* How many functions have half of all to themselves. */
static int say_half(struct summary *summary)
{
	const struct diff *shares = &summary->cli->shares;
	_cleanup_free_ double *parts = calloc((size_t)shares->rows.count + 1, sizeof(*parts));
	double sum = 0, half = shares->sides[DIFF_AFTER].weight / 2;
	size_t count = 0, used = 0;

	if (!parts)
		return cli_error("out of memory");
	for (size_t i = 0; i < shares->rows.count; i++)
		if (diff_row(shares, i)->self.parts[DIFF_AFTER] > 0)
			parts[used++] = diff_row(shares, i)->self.parts[DIFF_AFTER];
	if (used)
		qsort(parts, used, sizeof(*parts), heavier);
	while (count < used && sum < half)
		sum += parts[count++];
	line(summary, "spread", "50 %% of the total is in %zu of the %zu functions sampled", count, used);
	return CLI_OK;
}

static void say_functions(struct summary *summary)
{
	const struct diff *shares = &summary->cli->shares;
	const struct diff_row *self = largest(shares, true, 1), *total = largest(shares, false, 0.9);
	char share[SHARE_TEXT];

	if (self)
		line(summary, "self", "%s: %s%s%s (the largest share, without callees)",
		     share_text(&self->self, share), self->name, *self->file ? " of " : "", self->file);
	if (total)
		line(summary, "total", "%s: %s%s%s (the largest share below 90 %%, with callees)",
		     share_text(&total->total, share), total->name, *total->file ? " of " : "", total->file);
	else
		line(summary, "total", "no function has less than 90 %% with its callees");
}

static void say_modes(struct summary *summary)
{
	const struct diff *shares = &summary->cli->shares;
	double kernel = 0, unnamed = 0, all = shares->sides[DIFF_AFTER].weight;

	for (size_t i = 0; i < shares->rows.count; i++) {
		const struct diff_row *row = diff_row(shares, i);

		if (row->is_kernel)
			kernel += row->self.parts[DIFF_AFTER];
		if (!strcmp(row->name, "[no symbol]") || !strcmp(row->name, "[no mapping]"))
			unnamed += row->self.parts[DIFF_AFTER];
	}
	line(summary, "mode", "%.1f %% in user space, %.1f %% in the kernel; %.1f %% in unknown functions",
	     percent(all - kernel, all), percent(kernel, all), percent(unnamed, all));
}

static int say_processes(struct summary *summary)
{
	struct report_cli *cli = (struct report_cli *)(uintptr_t)summary->cli;
	const struct diff_row *best;
	char share[SHARE_TEXT];
	struct diff shares;
	size_t count = 0;
	int ret = CLI_OK;

	if (diff_make_one(cli->model, cli->shares.events[DIFF_AFTER], BY_PROCESS, false, &shares) < 0) {
		ret = cli_error(RECORDING_TOO_LARGE, recording_name(cli->path));
	} else {
		best = largest(&shares, true, 1);
		for (size_t i = 0; i < shares.rows.count; i++)
			count += diff_row(&shares, i)->self.parts[DIFF_AFTER] > 0;
		if (best)
			line(summary, "process", "%s: %s (the largest of %zu, by name)",
			     share_text(&best->self, share), *best->owner ? best->owner : "[no name]", count);
	}
	diff_free(&shares);
	return ret;
}

/* Load that comes and goes, and the function whose samples depend on each other most. */
static void say_odd(struct summary *summary)
{
	const struct diff *shares = &summary->cli->shares;
	const struct sliced *sliced = &shares->sides[DIFF_AFTER];
	const struct diff_row *burst = NULL;
	double most = 0;

	for (unsigned int i = 0; i < SLICES; i++)
		most = fmax(most, sliced->slices[i]);
	if (!sliced->has_times)
		line(summary, "over time", "unknown: samples have no times");
	else
		line(summary, "over time", "the busiest of %d equal time slices has %.1f times the mean; %u %s empty",
		     SLICES, sliced->weight > 0 ? most * SLICES / sliced->weight : 0, SLICES - sliced->used,
		     SLICES - sliced->used == 1 ? "is" : "are");
	for (size_t i = 0; i < shares->rows.count; i++)
		if (!burst || diff_row(shares, i)->self.test.phi[DIFF_AFTER] >
		    burst->self.test.phi[DIFF_AFTER])
			burst = diff_row(shares, i);
	if (burst && burst->self.test.phi[DIFF_AFTER] >= 2)
		line(summary, "bursts", "%s runs in bursts: %.0f of its samples count as one independent sample (phi)",
		     burst->name, burst->self.test.phi[DIFF_AFTER]);
	else
		line(summary, "bursts", "no function is seen to run in bursts (phi below 2)");
}

static void say_sure(struct summary *summary)
{
	const struct diff *shares = &summary->cli->shares;
	double size = sliced_size(&shares->sides[DIFF_AFTER]) / shares->phi_median;
	char paths[128] = "; ";

	if (!diff_say_paths(shares, paths + strlen(paths), sizeof(paths) - strlen(paths)))
		*paths = 0;
	if (!sliced_is_telling(&shares->sides[DIFF_AFTER]))
		return line(summary, "error", "unknown: samples are in only %u of %d time slices, "
			    "too few to estimate their correlation%s",
			    shares->sides[DIFF_AFTER].used, SLICES, paths);
	line(summary, "error", "at 95 %%: ± %.2f for a share of 50 %%, ± %.2f for 5 %%, ± %.2f for 0.5 %% "
	     "(median phi %.1f)%s", 196 * sqrt(0.25 / size),
	     196 * sqrt(0.05 * 0.95 / size), 196 * sqrt(0.005 * 0.995 / size), shares->phi_median, paths);
}

static void say_lost(struct summary *summary)
{
	const struct model_event *event = summary->event;

	if (!event->has_quality)
		line(summary, "lost", "unknown: this is a part of a recording, or a file of another program");
	else
		line(summary, "lost", "%" PRIu64 " samples lost (%.2f %%); %.1f %% of stacks complete, "
		     "%.1f %% with names for all frames", event->lost,
		     percent((double)event->lost, (double)(event->drawn + event->lost)),
		     percent((double)event->complete, (double)event->samples),
		     percent((double)event->named, (double)event->samples));
}

int report_print_summary(struct report_cli *cli)
{
	struct summary summary = {
		.cli = cli,
		.event = model_event(cli->model, cli->shares.events[DIFF_AFTER]),
	};
	int ret;

	if (cli->use_json) {
		json_init(&summary.json, stdout);
		json_object(&summary.json, NULL);
		json_string(&summary.json, "file", cli->path);
		json_string(&summary.json, "view", "summary");
		json_array(&summary.json, "lines");
	}
	say_what(&summary);
	ret = say_processes(&summary);
	if (ret)
		return ret;
	say_functions(&summary);
	ret = say_half(&summary);
	if (ret)
		return ret;
	say_modes(&summary);
	say_odd(&summary);
	say_sure(&summary);
	say_lost(&summary);
	if (cli->use_json) {
		json_end(&summary.json);
		json_end(&summary.json);
	}
	return CLI_OK;
}
