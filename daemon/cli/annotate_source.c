// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <string.h>

#include "cli/annotate.h"
#include "cli/sysroot.h"

enum {
	SOURCE_MAX = 16 << 20,		/* bytes of a file */
	SOURCE_LINE_MAX = 500,		/* bytes of a line that are shown */
	TAB = 8,
	AROUND = 3,			/* lines shown before the first and behind the last sample */
	FAR = 40,			/* lines without samples, beyond which they are left out */
};

/* Samples of a line. */
struct line_hits {
	const char *file;
	uint64_t line, start_line, samples, weight;
	uint32_t first_hit;	/* as of struct annotate_row */
};

static int by_line(const void *a, const void *b)
{
	const struct line_hits *x = a, *y = b;

	return strcmp(x->file, y->file) ?: (x->line > y->line) - (x->line < y->line);
}

static int open_in_sysroot(const struct sysroot *sysroot, const char *file, char ret_path[static PATH_MAX],
			   struct stat *ret_stat)
{
	return sysroot ? sysroot_resolve(sysroot, file, ret_path) ?: sysroot_open_file(sysroot, ret_path, ret_stat) :
			 -ENOENT;
}

/* Above where it starts: a path of a debug file may name any other of the host's. */
static bool goes_up(const char *path)
{
	int depth = 0;

	for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
		const size_t length = strcspn(path, "/");

		if (length == 2 && !strncmp(path, "..", 2))
			depth--;
		else if (length != 1 || *path != '.')
			depth++;
		if (depth < 0)
			return true;
		path += length;
	}
	return false;
}

/* Below each --source-dir, by as much of the end of its path as is there; else below the sysroot. */
static int open_source(const struct annotation *annotation, const char *file, char ret_path[static PATH_MAX])
{
	const struct annotate_options *options = annotation->options;
	_cleanup_close_ int fd = -ENOENT;
	struct stat st;

	for (size_t i = 0; fd < 0 && i < options->source_directory_count; i++)
		for (const char *part = file; fd < 0 && part; part = strchr(part, '/')) {
			part += strspn(part, "/");
			if (!goes_up(part) && snprintf(ret_path, PATH_MAX, "%s/%s", options->source_directories[i],
				     part) < PATH_MAX)
				fd = sysroot_open_file(NULL, ret_path, &st);
		}
	if (fd < 0 && file[0] == '/')
		fd = open_in_sysroot(debugfile_finder_sysroot(annotation->finder), file, ret_path, &st);
	if (fd < 0 || st.st_size > SOURCE_MAX)
		return -ENOENT;
	return steal_fd(&fd);
}

/* The whole of a source file with a NUL, or NULL: it is not here. */
static char *read_source(const struct annotation *annotation, const char *file, char ret_path[static PATH_MAX])
{
	_cleanup_close_ int fd = open_source(annotation, file, ret_path);
	size_t size = 0;
	ssize_t got = 0;
	char *text = fd < 0 ? NULL : malloc(SOURCE_MAX + 1);

	while (text && size < SOURCE_MAX && (got = read(fd, text + size, SOURCE_MAX - size)) > 0)
		size += (size_t)got;
	if (!text || got < 0) {
		free(text);
		return NULL;
	}
	text[size] = '\0';
	return text;
}

static const char *keep_line(struct annotation *annotation, const char *line)
{
	char wide[SOURCE_LINE_MAX];
	size_t used = 0;

	for (; *line && *line != '\n' && used + TAB < sizeof(wide); line++) {
		if (*line == '\r' && line[1] == '\n')
			break;
		if (*line != '\t') {
			wide[used++] = *line;
			continue;
		}
		do
			wide[used++] = ' ';
		while (used % TAB);
	}
	wide[used] = '\0';
	return annotate_text(annotation, wide);
}

/* The lines from @first to @last, those that are far from samples left out. @text NULL: it is not here. */
static int add_rows(struct annotation *annotation, const char *text, const struct line_hits *hits,
		    size_t count, uint64_t first, uint64_t last)
{
	uint64_t shown = first;
	size_t next = 0;

	for (uint64_t line = 1; line <= last && text && *text; line++) {
		while (next < count && hits[next].line < line)
			next++;
		const bool is_hit = next < count && hits[next].line == line;
		const bool is_near = (next < count && hits[next].line - line <= FAR) ||
				     (next && line - hits[next - 1].line <= FAR);

		if (line >= first && (is_hit || is_near)) {
			struct annotate_row row = {
				.line = line, .text = keep_line(annotation, text),
				.samples = is_hit ? hits[next].samples : 0,
				.weight = is_hit ? hits[next].weight : 0,
				.first_hit = is_hit ? hits[next].first_hit : 0,
				.is_after_gap = line > shown,
			};

			if (!row.text || buffer_append(&annotation->rows, &row, sizeof(row)))
				return -E2BIG;
			shown = line + 1;
		}
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	/* what the file does not have */
	for (size_t i = 0; i < count; i++) {
		struct annotate_row row = {
			.line = hits[i].line, .samples = hits[i].samples, .weight = hits[i].weight,
			.first_hit = hits[i].first_hit,
		};

		if (hits[i].line >= shown && buffer_append(&annotation->rows, &row, sizeof(row)))
			return -E2BIG;
	}
	return 0;
}

/* What has samples in one file. */
static int add_section(struct annotation *annotation, const struct line_hits *hits, size_t count,
		       bool *ret_found)
{
	const uint64_t last = hits[count - 1].line + AROUND;
	struct annotate_section section = { .first = annotate_row_count(annotation) };
	uint64_t first = hits[0].line > AROUND ? hits[0].line - AROUND : 1, start = UINT64_MAX;
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX];
	int r;

	for (size_t i = 0; i < count; i++) {
		if (hits[i].start_line)
			start = min_of(start, hits[i].start_line);
		rows_sum(&section.weight, hits[i].weight);
	}
	if (start <= hits[0].line)
		first = start;
	text = read_source(annotation, hits[0].file, path);
	section.file = annotate_text(annotation, text ? path : hits[0].file);
	if (!section.file)
		return -E2BIG;
	r = add_rows(annotation, text, hits, count, text ? first : 1, last);
	if (r < 0)
		return r;
	if (text) {
		*ret_found = true;
		if (!annotate_row(annotation, annotate_row_count(annotation) - 1)->text)
			annotate_note(annotation, "%s has fewer lines than when it was compiled",
				      section.file);
	}
	section.count = annotate_row_count(annotation) - section.first;
	return buffer_append(&annotation->sections, &section, sizeof(section)) ? -E2BIG : 0;
}

static int heaviest_first(const void *a, const void *b)
{
	const struct annotate_section *x = a, *y = b;

	return (x->weight < y->weight) - (x->weight > y->weight) ?: strcmp(x->file, y->file);
}

int annotate_source(struct annotation *annotation, bool *ret_found)
{
	_cleanup_free_ struct line_hits *hits = calloc(annotation->count, sizeof(*hits));
	size_t count = 0, lines = 0;
	int r = 0;

	*ret_found = false;
	if (!hits)
		return -E2BIG;
	annotation->outside = 0;
	for (size_t i = 0; i < annotation->count; i++) {
		const struct annotate_place *place = &annotation->places[i];
		const struct hit *hit = annotation->chosen[i];

		if (!place->file) {
			annotation->outside += hit->samples;
			continue;
		}
		hits[count++] = (struct line_hits){
			.file = place->file, .line = place->line, .start_line = place->start_line,
			.samples = hit->samples, .weight = hit->weight, .first_hit = (uint32_t)i + 1,
		};
		annotation->next_hit[i] = 0;
	}
	qsort(hits, count, sizeof(*hits), by_line);
	for (size_t i = 0; i < count; i++) {
		if (lines && !by_line(&hits[lines - 1], &hits[i])) {
			rows_sum(&hits[lines - 1].samples, hits[i].samples);
			rows_sum(&hits[lines - 1].weight, hits[i].weight);
			annotation->next_hit[hits[i].first_hit - 1] = hits[lines - 1].first_hit;
			hits[lines - 1].first_hit = hits[i].first_hit;
		} else {
			hits[lines++] = hits[i];
		}
	}
	for (size_t i = 0, next; !r && i < lines; i = next) {
		for (next = i + 1; next < lines && !strcmp(hits[next].file, hits[i].file);)
			next++;
		r = add_section(annotation, hits + i, next - i, ret_found);
	}
	if (!r && annotate_section_count(annotation))
		qsort(annotation->sections.data, annotate_section_count(annotation),
		      sizeof(struct annotate_section), heaviest_first);
	return r;
}
