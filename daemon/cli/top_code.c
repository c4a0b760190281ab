// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "cli/annotate.h"
#include "cli/places.h"
#include "cli/top.h"
#include "helper/opener.h"

static void annotate_row_of(struct annotation *annotation, struct top *top, char *ret_error,
			    size_t size)
{
	const struct annotate_options *options = annotation->options;
	FILE *out;
	char *text = NULL;

	if (hits_new(&annotation->hits, options->function, options->object, &options->selection) ||
	    live_read(top->live, top_from(top), annotation->hits.reader)) {
		snprintf(ret_error, size, "cannot read what was sampled");
		return;
	}
	if (annotation_make(annotation, "this window", ret_error, size) < 0)
		return;
	out = open_memstream(&text, &top->code_size);
	if (out) {
		annotate_print(annotation, out);
		if (!fclose(out))
			top->code = steal_ptr(text);
		free(text);
	}
	if (!top->code)
		snprintf(ret_error, size, "out of memory");
}

/* Once, as an opener remembers what does not answer. */
static int need_opener(struct sysroot_process *looks)
{
	if (!looks->spaces && mount_namespace_table_new("", &looks->spaces) < 0)
		return -ENOMEM;
	return looks->opener ? 0 : opener_new(&looks->opener);
}

void top_free_code(struct top *top)
{
	free(steal_ptr(top->code));
	opener_free(steal_ptr(top->looks.opener));
	if (top->looks.spaces)
		mount_namespace_table_free(steal_ptr(top->looks.spaces));
}

static void make_code(struct top *top, const struct live_row *row)
{
	_cleanup_(annotation_done) struct annotation annotation;
	char pid[16];
	/* what a container runs is in its own root */
	struct annotate_options options = {
		.function = row->name, .object = *row->file ? row->file : NULL,
		.selection = top->selection, .places.process = &top->looks,
	};
	bool has_places;

	snprintf(pid, sizeof(pid), "%u", row->id);
	options.selection.process = pid;
	top->looks.tgid = row->is_kernel ? 0 : row->id;
	/* not the root's own, whose links could lead anywhere: the program itself is looked up inside that root alone */
	has_places = !places_add(&options.places.directories, &options.places.directory_count, "/usr/lib/debug");
	/* it looks into these places */
	if (annotation_init(&annotation, &options, NULL) < 0 || !has_places)
		snprintf(top->notice, sizeof(top->notice), "out of memory");
	else
		annotate_row_of(&annotation, top, top->notice, sizeof(top->notice));
	free(options.places.directories);
}

int top_make_code(struct top *top, const struct live_row *row)
{
	free(steal_ptr(top->code));
	top->code_size = top->code_lines = 0;
	title_of(row->name, row->id, top->code_of);
	*top->notice = 0;
	if (need_opener(&top->looks) < 0)
		snprintf(top->notice, sizeof(top->notice), "out of memory");
	else
		make_code(top, row);
	if (!top->code)
		return -ENOENT;
	for (size_t i = 0; i < top->code_size; i++) {
		if (top->code[i] != '\n')
			continue;
		top->code[i] = 0;
		top->code_lines++;
	}
	return 0;
}

double top_share_at(const char *line, size_t at)
{
	enum { DIGITS = 6 };

	if (strnlen(line, at + TOP_SHARE_COLUMNS) < at + TOP_SHARE_COLUMNS || strncmp(line + at + DIGITS, " %", 2) != 0)
		return -1;
	return strtod(line + at, NULL);
}

size_t top_hottest_line(const struct top *top)
{
	const char *text = top->code;
	double most = 0;
	size_t hottest = 0;

	for (size_t line = 0; line < top->code_lines; line++) {
		const double share = top_share_at(text, TOP_CODE_SHARE);

		if (share > most) {
			most = share;
			hottest = line;
		}
		text += strlen(text) + 1;
	}
	return hottest;
}

void top_print_code(FILE *out, const struct top *top, size_t first, size_t end)
{
	const char *text = top->code;

	for (size_t line = 0; line < min_of(end, top->code_lines); line++) {
		if (line >= first)
			fprintf(out, "%s\n", text);
		text += strlen(text) + 1;
	}
}
