// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/json.h"
#include "cli/annotate.h"
#include "cli/fit.h"
#include "view/recording.h"

enum {
	BYTES_SHOWN = 8,
	BYTES_COLUMNS = 80,	/* from which on there is room for bytes */
	TEXT_COLUMN = 44,
	SHARE_COLUMNS = 9,
	SAMPLES_COLUMNS = 9,
	ERROR_COLUMNS = 8,
	NOTE_INDENT = 2,
	INDENT_PART = 4,
	LINE_MAX_BYTES = 16384,	/* of two texts that have 4 KiB at most */
};

static const char skid[] =
	"a sample is at the instruction that was next when the interrupt came: "
	"mostly behind the one that took the time";

static const char *const modes[] = { "source", "code", "lines" };

static double percent_of_all(const struct annotation *annotation)
{
	const uint64_t all = annotation->event->weight;

	return all ? 100.0 * (double)annotation->weight / (double)all : 0;
}

/* Of all rows: none of them has an error where there are no times, or where the line has no room. */
static int error_columns(const struct annotation *annotation)
{
	return annotation->hits.with_times && fit_left(0) >= FIT_ERRORS ? ERROR_COLUMNS : 0;
}

static int share_columns(const struct annotation *annotation)
{
	return SHARE_COLUMNS + error_columns(annotation) + (fit_left(0) >= FIT_SHARES ? SAMPLES_COLUMNS : 0);
}

static const char *error_text(const struct report_error *error, char text[16])
{
	*text = 0;
	if (error->error95 >= 0)
		snprintf(text, 16, " ± %.2f", 100 * (double)error->error95);
	return text;
}

static void print_head(const struct annotation *annotation)
{
	const struct hit_event *event = annotation->event;
	const struct hit *hit = annotation->chosen[0];
	char error[16], note[FIT_NOTE] = "";

	fit_function(0, hit->name, "", hit->mapping->file[0] ? hit->mapping->file : "[no mapping]");
	fit_add(note, "%" PRIu64 " sample%s of %s, %.2f %%%s of all", annotation->samples,
		annotation->samples == 1 ? "" : "s", event->source, percent_of_all(annotation),
		error_text(&annotation->error, error));
	if (annotation->inlined)
		fit_add(note, ", %" PRIu64 " in functions inlined in it", annotation->inlined);
	if (annotation->hits.events.count > 1)
		fit_add(note, "; --event shows another of %u events", annotation->hits.events.count);
	fit_words(0, NOTE_INDENT, note);
	fit_words(fit_print("skid: "), NOTE_INDENT, skid);
	if (annotation->note[0])
		fit_words(fit_print("note: "), NOTE_INDENT, annotation->note);
}

static int print_bytes(const struct annotate_row *row)
{
	char text[3 * BYTES_SHOWN + 2] = "";

	for (size_t i = 0; i < BYTES_SHOWN; i++)
		if (i < row->size)
			snprintf(text + 3 * i, 4, "%02x%c", row->bytes[i],
				 i + 1 == BYTES_SHOWN && row->size > BYTES_SHOWN ? '+' : ' ');
	return fit_print("%-*s", (int)sizeof(text) - 1, text);
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* An address, whose last digits tell it from others. */
static int print_address(const struct annotate_row *row, int used)
{
	char address[24];

	if (fit_left(0) >= FIT_SHARES)
		return fit_print("  %8" PRIx64 ":  ", row->address);
	snprintf(address, sizeof(address), "%" PRIx64 ": ", row->address);
	fit_print(" ");
	fit_tail(address, fit_left(used + 1) / 2);
	return 1 + min_of(fit_columns(address), fit_left(used + 1) / 2);
}

/* An instruction; its line only where that is another one than @before has, and where there is room for it. */
static void print_code(const struct annotation *annotation, const struct annotate_row *row,
		       const struct annotate_row *before, int used)
{
	char text[LINE_MAX_BYTES], place[LINE_MAX_BYTES];
	int gap;

	used += print_address(row, used);
	if (annotation->options->with_bytes && fit_left(0) >= BYTES_COLUMNS)
		used += print_bytes(row);
	snprintf(text, sizeof(text), "%s%s%s%s", row->text, row->target ? "  <" : "", row->target ?: "",
		 row->target ? ">" : "");
	fit_end(text, fit_left(used));
	if (!row->file || (before && before->file == row->file && before->line == row->line))
		return;
	snprintf(place, sizeof(place), "  %s:%" PRIu64, last_part(row->file), row->line);
	gap = max_of(TEXT_COLUMN - fit_columns(text), 0);
	used += fit_columns(text) + fit_columns(place);
	if (used <= fit_left(0))
		fit_print("%*s%s", min_of(gap, fit_left(used)), "", place);
}

/* Where there is little room its indentation takes a part of it alone, or none. */
static void print_source(const char *text, int used)
{
	const int blanks = (int)strspn(text, " ");
	const int indent = fit_left(0) < FIT_SHARES ? 0 : fit_left(0) < FIT_ERRORS ? blanks / INDENT_PART : blanks;

	used += fit_print("%*s", indent, "");
	fit_end(text + blanks, fit_left(used));
}

static void print_row(const struct annotation *annotation, const struct annotate_row *row,
		      const struct annotate_row *before)
{
	const int columns = error_columns(annotation), shares = share_columns(annotation);
	char error[16] = "";

	if (columns)
		error_text(&row->error, error);
	/* the sign has two bytes, and one column */
	if (row->samples)
		fit_print(" %6.2f %%%-*s", annotate_percent(annotation, row->weight), columns + !!*error, error);
	else
		fit_print("%*s", SHARE_COLUMNS + columns, "");
	if (fit_left(0) >= FIT_SHARES && row->samples)
		fit_print(" %8" PRIu64, row->samples);
	else if (fit_left(0) >= FIT_SHARES)
		fit_print("%*s", SAMPLES_COLUMNS, "");
	if (annotation->mode == ANNOTATE_CODE)
		print_code(annotation, row, before, shares);
	else
		print_source(row->text ?: "[not here]",
			     shares + fit_print(fit_left(0) >= FIT_SHARES ? "  %6" PRIu64 "  " : " %4" PRIu64 " ",
						row->line));
	fit_print("\n");
}

static bool is_shown(const struct annotation *annotation, const struct annotate_row *row)
{
	const double least = annotation->options->least;

	return least <= 0 || (row->samples && annotate_percent(annotation, row->weight) >= least);
}

static void print_gap(const struct annotation *annotation)
{
	fit_print("%*s\n", share_columns(annotation) + 3, "...");
}

static void print_heading(const struct annotation *annotation, const struct annotate_section *section)
{
	int used = share_columns(annotation);

	fit_print("\n PERCENT%*s", error_columns(annotation), "");
	if (fit_left(0) >= FIT_SHARES) {
		fit_print(section->file ? "  SAMPLES    LINE  " : "  SAMPLES   ADDRESS  ");
		used += section->file ? 9 : 12;
	} else {
		used = SHARE_COLUMNS + fit_print(" ");
	}
	if (section->file) {
		fit_path(used, section->file);
	} else {
		char range[64];

		snprintf(range, sizeof(range), "%" PRIx64 " to %" PRIx64, section->start, section->start + section->size);
		fit_end(range, fit_left(used));
		fit_print("\n");
	}
}

static void print_section(const struct annotation *annotation, const struct annotate_section *section)
{
	const struct annotate_row *before = NULL;
	bool is_gap = false;

	print_heading(annotation, section);
	for (size_t i = 0; i < section->count; i++) {
		const struct annotate_row *row = annotate_row(annotation, section->first + i);

		if (!is_shown(annotation, row)) {
			is_gap = true;
			continue;
		}
		if (is_gap || row->is_after_gap)
			print_gap(annotation);
		print_row(annotation, row, is_gap ? NULL : before);
		is_gap = false;
		before = row;
	}
	if (is_gap)
		print_gap(annotation);
}

void annotate_print(const struct annotation *annotation, FILE *out)
{
	char note[FIT_NOTE] = "";

	fit_into(out);
	print_head(annotation);
	for (size_t i = 0; i < annotate_section_count(annotation); i++)
		print_section(annotation, annotate_section(annotation, i));
	if (annotation->outside) {
		fit_add(note, "%" PRIu64 " samples (%.2f %%) are in no line of this", annotation->outside,
			annotation->samples ? 100.0 * (double)annotation->outside / (double)annotation->samples : 0);
		fit_print("\n");
		fit_words(0, NOTE_INDENT, note);
	}
	fit_into(NULL);
}

static void put_error(struct json *json, const struct report_error *error)
{
	if (error->error95 < 0)
		return;
	json_double(json, "error95", 100 * (double)error->error95);
	json_double(json, "phi", (double)error->phi);
}

static void print_json_row(struct json *json, const struct annotation *annotation,
			   const struct annotate_row *row)
{
	char bytes[2 * INSTRUCTION_MAX + 1] = "";

	json_object(json, NULL);
	if (annotation->mode == ANNOTATE_CODE) {
		for (size_t i = 0; i < row->size; i++)
			snprintf(bytes + 2 * i, 3, "%02x", row->bytes[i]);
		json_u64(json, "address", row->address);
		json_string(json, "bytes", bytes);
		json_string(json, "target", row->target);
		json_string(json, "file", row->file);
	}
	json_u64(json, "line", row->line);
	json_string(json, "text", row->text);
	json_u64(json, "samples", row->samples);
	json_u64(json, "weight", row->weight);
	json_double(json, "percent", annotate_percent(annotation, row->weight));
	put_error(json, &row->error);
	json_end(json);
}

static void print_json_section(struct json *json, const struct annotation *annotation,
			       const struct annotate_section *section)
{
	json_object(json, NULL);
	if (section->file) {
		json_string(json, "file", section->file);
	} else {
		json_u64(json, "start", section->start);
		json_u64(json, "size", section->size);
	}
	json_u64(json, "weight", section->weight);
	json_array(json, "rows");
	for (size_t i = 0; i < section->count; i++) {
		const struct annotate_row *row = annotate_row(annotation, section->first + i);

		if (is_shown(annotation, row))
			print_json_row(json, annotation, row);
	}
	json_end(json);
	json_end(json);
}

void annotate_print_json(const struct annotation *annotation)
{
	const struct debugfile *file = annotation->mode == ANNOTATE_CODE ? &annotation->code :
									   &annotation->debug;
	const struct hit_event *event = annotation->event;
	const struct hit *hit = annotation->chosen[0];
	struct json json;

	json_init(&json, stdout);
	json_object(&json, NULL);
	json_string(&json, "recording", annotation->options->path);
	json_bool(&json, "cut", annotation->hits.is_cut);
	json_string(&json, "function", hit->name);
	json_string(&json, "object", hit->mapping->file);
	json_string(&json, "build_id", hit->mapping->build_id[0] ? hit->mapping->build_id : NULL);
	json_string(&json, "source", event->source);
	json_string(&json, "event", event->event);
	json_string(&json, "unit", event->unit);
	json_u64(&json, "samples", annotation->samples);
	json_u64(&json, "weight", annotation->weight);
	json_u64(&json, "inlined_samples", annotation->inlined);
	json_u64(&json, "outside_samples", annotation->outside);
	json_u64(&json, "all_samples", event->samples);
	json_u64(&json, "all_weight", event->weight);
	json_double(&json, "percent", percent_of_all(annotation));
	put_error(&json, &annotation->error);
	json_string(&json, "view", modes[annotation->mode]);
	json_string(&json, "by", file->object ? file->object->path : NULL);
	json_string(&json, "skid", skid);
	json_string(&json, "note", annotation->note[0] ? annotation->note : NULL);
	json_array(&json, "sections");
	for (size_t i = 0; i < annotate_section_count(annotation); i++)
		print_json_section(&json, annotation, annotate_section(annotation, i));
	json_end(&json);
	json_end(&json);
}
