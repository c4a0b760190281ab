// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "cli/annotate.h"
#include "view/recording.h"

enum { BYTES_SHOWN = 8, TEXT_COLUMN = 44, SHARE_COLUMNS = 18, ERROR_COLUMNS = 8 };

static const char skid[] =
	"a sample is at the instruction that was next when the interrupt came: "
	"mostly behind the one that took the time";

static const char *const modes[] = { "source", "code", "lines" };

static double percent_of_all(const struct annotation *annotation)
{
	const uint64_t all = annotation->event->weight;

	return all ? 100.0 * (double)annotation->weight / (double)all : 0;
}

/* Of the width of all rows' errors: none of them has one where there are no times. */
static int error_columns(const struct annotation *annotation)
{
	return annotation->hits.with_times ? ERROR_COLUMNS : 0;
}

static const char *error_text(const struct report_error *error, char text[16])
{
	*text = 0;
	if (error->error95 >= 0)
		snprintf(text, 16, " ± %.2f", 100 * (double)error->error95);
	return text;
}

static void print_head(FILE *out, const struct annotation *annotation)
{
	const struct hit_event *event = annotation->event;
	const struct hit *hit = annotation->chosen[0];
	char error[16];

	fprintf(out, "%s  %s\n", hit->name, hit->mapping->file[0] ? hit->mapping->file : "[no mapping]");
	fprintf(out, "%" PRIu64 " sample%s of %s, %.2f %%%s of all", annotation->samples,
		annotation->samples == 1 ? "" : "s", event->source, percent_of_all(annotation),
		error_text(&annotation->error, error));
	if (annotation->inlined)
		fprintf(out, ", %" PRIu64 " in functions inlined in it", annotation->inlined);
	if (annotation->hits.events.count > 1)
		fprintf(out, "; --event shows another of %u events", annotation->hits.events.count);
	fprintf(out, "\nskid: %s\n", skid);
	if (annotation->note[0])
		fprintf(out, "note: %s\n", annotation->note);
}

static void print_bytes(FILE *out, const struct annotate_row *row)
{
	for (size_t i = 0; i < BYTES_SHOWN; i++) {
		if (i < row->size)
			fprintf(out, "%02x%c", row->bytes[i],
				i + 1 == BYTES_SHOWN && row->size > BYTES_SHOWN ? '+' : ' ');
		else
			fputs("   ", out);
	}
	fputc(' ', out);
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* An instruction; its line only where that is another one than @before has. */
static void print_code(FILE *out, const struct annotation *annotation,
		       const struct annotate_row *row, const struct annotate_row *before)
{
	int width;

	fprintf(out, "  %8" PRIx64 ":  ", row->address);
	if (annotation->options->with_bytes)
		print_bytes(out, row);
	width = fprintf(out, "%s", row->text);
	if (row->target)
		width += fprintf(out, "  <%s>", row->target);
	if (row->file && !(before && before->file == row->file && before->line == row->line))
		fprintf(out, "%*s  %s:%" PRIu64, width < TEXT_COLUMN ? TEXT_COLUMN - width : 0, "",
			last_part(row->file), row->line);
}

static void print_row(FILE *out, const struct annotation *annotation,
		      const struct annotate_row *row, const struct annotate_row *before)
{
	char error[16];
	int columns = error_columns(annotation);

	error_text(&row->error, error);
	/* the sign has two bytes, and one column */
	if (row->samples)
		fprintf(out, " %6.2f %%%-*s %8" PRIu64, annotate_percent(annotation, row->weight),
			columns + !!*error, error, row->samples);
	else
		fprintf(out, "%*s", SHARE_COLUMNS + columns, "");
	if (annotation->mode == ANNOTATE_CODE)
		print_code(out, annotation, row, before);
	else
		fprintf(out, "  %6" PRIu64 "  %s", row->line, row->text ? row->text : "[not here]");
	fputc('\n', out);
}

static bool is_shown(const struct annotation *annotation, const struct annotate_row *row)
{
	const double least = annotation->options->least;

	return least <= 0 || (row->samples && annotate_percent(annotation, row->weight) >= least);
}

static void print_section(FILE *out, const struct annotation *annotation,
			  const struct annotate_section *section)
{
	const int columns = error_columns(annotation);
	const struct annotate_row *before = NULL;
	bool is_gap = false;

	if (section->file)
		fprintf(out, "\n PERCENT%*s  SAMPLES    LINE  %s\n", columns, "", section->file);
	else
		fprintf(out, "\n PERCENT%*s  SAMPLES   ADDRESS  %" PRIx64 " to %" PRIx64 "\n", columns, "",
			section->start, section->start + section->size);
	for (size_t i = 0; i < section->count; i++) {
		const struct annotate_row *row = annotate_row(annotation, section->first + i);

		if (!is_shown(annotation, row)) {
			is_gap = true;
			continue;
		}
		if (is_gap || row->is_after_gap)
			fprintf(out, "%*s...\n", SHARE_COLUMNS + columns, "");
		print_row(out, annotation, row, is_gap ? NULL : before);
		is_gap = false;
		before = row;
	}
	if (is_gap)
		fprintf(out, "%*s...\n", SHARE_COLUMNS + columns, "");
}

void annotate_print(const struct annotation *annotation, FILE *out)
{
	print_head(out, annotation);
	for (size_t i = 0; i < annotate_section_count(annotation); i++)
		print_section(out, annotation, annotate_section(annotation, i));
	if (annotation->outside)
		fprintf(out, "\n%" PRIu64 " samples (%.2f %%) are in no line of this\n", annotation->outside,
			annotation->samples ? 100.0 * (double)annotation->outside /
						      (double)annotation->samples : 0);
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
