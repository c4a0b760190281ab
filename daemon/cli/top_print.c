// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/fit.h"
#include "cli/top.h"
#include "client/name.h"

static const char *const sides[] = {
	[LIVE_CALLER] = "caller", [LIVE_SUBJECT] = "itself", [LIVE_CALLEE] = "callee",
};

/* Above what top_print_row() prints. */
static const struct {
	const char *owner, *id, *name;
} headings[LIVE_GROUP_COUNT] = {
	[LIVE_FUNCTION] = { "PROCESS", "PID", "FUNCTION" }, [LIVE_PROCESS] = { "PROCESS", "PID", NULL },
	[LIVE_THREAD] = { "THREAD", "TID", NULL }, [LIVE_OBJECT] = { .name = "OBJECT" },
	[LIVE_CONTAINER] = { .name = "CONTAINER" }, [LIVE_SERVICE] = { .name = "SERVICE" },
	[LIVE_CGROUP] = { .name = "CGROUP" },
};

enum { OWNER_MIN = 7, OWNER_MAX = 15, ID_MIN = 4 };

void top_fit(struct top *top, const struct live_table *table)
{
	top->owner_width = max_of(top->owner_width, OWNER_MIN + 0);
	top->id_width = max_of(top->id_width, ID_MIN + 0);
	if (top->browse.view != BROWSE_TABLE || !headings[top->browse.group].owner)
		return;
	for (uint32_t i = 0; i < table->rows.count; i++) {
		const struct live_row *row = live_row(table, i);
		const int owner = (int)min_of(strlen(row->owner), OWNER_MAX + (size_t)0);

		top->owner_width = max_of(top->owner_width, owner);
		top->id_width = max_of(top->id_width, snprintf(NULL, 0, "%u", row->id));
	}
}

bool top_matches(const struct top *top, const struct live_row *row)
{
	return name_filter_has(&top->filter, row->owner, row->name, row->file);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static uint64_t cut_stacks(const struct live_table *table)
{
	return table->samples > table->complete ? table->samples - table->complete : 0;
}

void top_print_row(FILE *out, const struct top *top, const struct live_table *table,
		   const struct live_row *row)
{
	const char mode = row->is_kernel ? 'k' : 'u';
	int used;

	fit_into(out);
	/* what calls has run in what it calls */
	if (row->side == LIVE_CALLER)
		used = fit_print("%8s", "");
	else
		used = fit_print("%6.2f %%", percent(row->self, table->weight));
	used += fit_print(" %6.2f %%  ", percent(row->total, table->weight));
	if (row->side) {
		used += fit_print("%s  [%c] ", sides[row->side], mode);
		fit_function(used, row->name, "", row->file);
	} else if (top->browse.group == LIVE_FUNCTION) {
		used += fit_print("%-*s %*u  [%c] ", top->owner_width, row->owner, top->id_width, row->id, mode);
		fit_function(used, row->name, "", row->file);
	} else if (top->browse.group == LIVE_OBJECT) {
		used += fit_print("[%c] ", mode);
		fit_path(used, *row->file ? row->file : "-");
	} else if (headings[top->browse.group].owner) {
		fit_print("%-*s %*u\n", top->owner_width, row->owner, top->id_width, row->id);
	} else {
		fit_path(used, *row->owner ? row->owner : "-");
	}
	fit_into(NULL);
}

void top_print_header(FILE *out, const struct top *top, const struct live_table *table)
{
	double seconds = (double)(table->end - table->start) / NSEC_PER_SEC;
	char clock[16] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm))
		strftime(clock, sizeof(clock), "%T", &tm);
	fprintf(out, "stacktap top, %s: %.1f s, user %.1f %%, kernel %.1f %%, idle %.1f %%\n"
	       "samples %" PRIu64 ", lost %" PRIu64, clock,
	       seconds, percent(table->user, table->weight), percent(table->kernel, table->weight),
	       percent(table->idle, table->weight), table->samples, table->lost);
	if (table->has_complete)
		fprintf(out, ", cut stacks %" PRIu64, cut_stacks(table));
	fprintf(out, ", source %s", top->options.sources[0].name);
	if (table->fallback_errno)
		fprintf(out, " counted as %s (%s)", table->event, name_of_errno(table->fallback_errno));
	if (table->is_cut)
		fprintf(out, "; the window is cut for want of memory");
	fputc('\n', out);
	if (top->cost.is_measured)
		fprintf(out, "own cost %.2f %% of %u CPU%s: module %.2f %%, programs %.2f %%\n",
			top->cost.module + top->cost.programs, top->cost.cpus,
			top->cost.cpus == 1 ? "" : "s", top->cost.module, top->cost.programs);
	else
		fputs("own cost: not measured yet\n", out);
}

void top_print_heading(FILE *out, const struct top *top)
{
	const char *name = headings[top->browse.group].name ?: "";

	fputs("    SELF    TOTAL  ", out);
	if (top->browse.view == BROWSE_CALLS)
		fprintf(out, "callers and callees of %s, %s %u\n", top->subject.name, top->subject.owner,
			top->subject.id);
	else if (headings[top->browse.group].owner)
		fprintf(out, "%-*s %*s%s%s\n", top->owner_width, headings[top->browse.group].owner,
			top->id_width, headings[top->browse.group].id, *name ? "  " : "", name);
	else
		fprintf(out, "%s\n", name);
}

void top_print_text(FILE *out, const struct top *top, const struct live_table *table)
{
	uint64_t left = top->limit ?: UINT64_MAX;

	top_print_header(out, top, table);
	fputc('\n', out);
	top_print_heading(out, top);
	for (uint32_t i = 0; i < table->rows.count && left; i++) {
		if (!top_matches(top, live_row(table, i)))
			continue;
		top_print_row(out, top, table, live_row(table, i));
		left--;
	}
	fputc('\n', out);
}

void top_print_json(const struct top *top, const struct live_table *table)
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
	if (table->has_complete)
		json_u64(&json, "cut_stacks", cut_stacks(table));
	json_u64(&json, "weight", table->weight);
	json_u64(&json, "user", table->user);
	json_u64(&json, "kernel", table->kernel);
	json_u64(&json, "idle", table->idle);
	json_bool(&json, "cut", table->is_cut);
	json_object(&json, "own_cost");
	json_u64(&json, "ns", top->cost.span_ns);
	json_u64(&json, "cpus", top->cost.cpus);
	json_u64(&json, "module_ns", top->cost.module_ns);
	json_u64(&json, "programs_ns", top->cost.programs_ns);
	json_end(&json);
	json_string(&json, "group", top_groups[top->browse.group]);
	json_array(&json, "rows");
	for (uint32_t i = 0; i < table->rows.count && left; i++) {
		const struct live_row *row = live_row(table, i);

		if (!top_matches(top, row))
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
