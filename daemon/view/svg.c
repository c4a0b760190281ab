// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "view/escape.h"
#include "view/page.h"

enum {
	WIDTH = 1200,
	MARGIN = 10,
	ROW = 17,
	HEAD = 46,
	FOOT = 34,
	LEVELS_MAX = 1000,	/* what viewers and mail programs still open */
};

#define CHARACTER 6.65		/* width of one of 11 px monospace, rounded up */
#define NARROWEST 0.5		/* px; what is below is not seen */

struct svg {
	struct model *model;
	const struct diff *diff;	/* NULL: one recording */
	const struct model_event *event;
	FILE *file;
	double *x;		/* of each node; below 0: not drawn */
	double *share;		/* of all; of a pair the mean of both, so that what vanished is seen */
	double *before;		/* of a pair: the share in the first */
	uint32_t *path;		/* of a pair: the number of the node's diff_path + 1, 0: not tested */
	uint32_t *depth;
	uint32_t *order;	/* nodes, parents first and siblings by weight */
	uint32_t levels;
};

static const char *const colours[] = {
	[FRAME_KIND_NATIVE] = "#f7d774", [FRAME_KIND_KERNEL] = "#f2a07b",
	[FRAME_KIND_MANAGED] = "#a9c7f2",
};
static const char colour_inlined[] = "#9fd9bd", colour_unnamed[] = "#d5d5d8";
static const char colour_root[] = "#e6e6ea";

/* By how much of both shares the change is. */
static const char *const colours_grew[] = { "#fbdcd5", "#f6b5a8", "#f08c7a", "#ea6a55" };
static const char *const colours_shrank[] = { "#dbe6fa", "#b3cdf5", "#8cb0ef", "#6a96e6" };
static const char colour_same[] = "#ececf0";

static double change_of(const struct svg *svg, uint32_t node)
{
	return 2 * (svg->share[node] - svg->before[node]);
}

static enum diff_verdict verdict_of(const struct svg *svg, uint32_t node)
{
	return svg->path[node] ? diff_path(svg->diff, svg->path[node] - 1)->total.verdict : DIFF_FEW;
}

static const char *colour_of_change(const struct svg *svg, uint32_t node)
{
	static const double steps[] = { 0.1, 0.3, 0.7 };
	enum diff_verdict verdict = verdict_of(svg, node);
	double relative = fabs(change_of(svg, node)) / (2 * svg->share[node]);
	size_t shade = 0;

	while (shade < ARRAY_SIZE(steps) && relative > steps[shade])
		shade++;
	if (verdict == DIFF_GREW)
		return colours_grew[shade];
	return verdict == DIFF_SHRANK ? colours_shrank[shade] : colour_same;
}

static const char *colour_of(const struct svg *svg, uint32_t i)
{
	const struct model_frame *frame;

	if (i == TREE_ROOT)
		return colour_root;
	if (svg->diff)
		return colour_of_change(svg, i);
	frame = model_frame(svg->model, tree_node(&svg->model->tree, i)->frame);
	if (frame->is_inlined)
		return colour_inlined;
	if (!frame->is_named && frame->kind == FRAME_KIND_NATIVE)
		return colour_unnamed;
	return colours[frame->kind];
}

static double width_of(const struct svg *svg, uint32_t node)
{
	return svg->share[node] * (WIDTH - 2 * MARGIN);
}

static int heavier(const void *a, const void *b, void *ctx)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	const struct svg *svg = ctx;
	uint32_t l = tree_node(&svg->model->tree, left)->parent;
	uint32_t r = tree_node(&svg->model->tree, right)->parent;

	if (l != r)
		return l < r ? -1 : 1;
	if (svg->share[left] < svg->share[right] || svg->share[left] > svg->share[right])
		return svg->share[left] > svg->share[right] ? -1 : 1;
	return (left > right) - (left < right);
}

/* Parents have smaller numbers, so that theirs is known; siblings follow each other. */
static void place(struct svg *svg)
{
	const struct tree *tree = &svg->model->tree;
	uint32_t count = tree_count(tree), last = UINT32_MAX;
	double next = 0;

	for (uint32_t i = 0; i < count; i++)
		svg->order[i] = i;
	qsort_r(svg->order + 1, count - 1, sizeof(*svg->order), heavier, svg);
	svg->x[TREE_ROOT] = MARGIN;
	for (uint32_t k = 1; k < count; k++) {
		uint32_t i = svg->order[k], parent = tree_node(tree, i)->parent;
		double width = width_of(svg, i);

		if (parent != last)
			next = svg->x[parent];
		last = parent;
		svg->depth[i] = svg->depth[parent] + 1;
		svg->x[i] = -1;
		if (svg->x[parent] < 0 || width < NARROWEST || svg->depth[i] >= LEVELS_MAX)
			continue;
		svg->x[i] = next;
		next += width;
		svg->levels = max_of(svg->levels, svg->depth[i] + 1);
	}
}

static void put_label(const struct svg *svg, const char *name, double x, double y, double width)
{
	size_t room = (size_t)max_of((width - 6) / CHARACTER, 0.0), length = 0, bytes = 0;
	char text[256];

	if (room < 3)
		return;
	/* whole characters, as many as fit */
	for (const char *s = name; *s; s++)
		length += !utf8_is_inside(*s);
	for (size_t count = 0; name[bytes] && bytes < sizeof(text) - 8; bytes++) {
		count += !utf8_is_inside(name[bytes]);
		if (count > (length > room ? room - 1 : room))
			break;
	}
	while (bytes && utf8_is_inside(name[bytes]))
		bytes--;
	snprintf(text, sizeof(text), "%.*s%s", (int)bytes, name, name[bytes] ? "\u2026" : "");
	fprintf(svg->file, "<text x=\"%.1f\" y=\"%.1f\">", x + 3, y + ROW - 5);
	escape_xml(svg->file, text);
	fputs("</text>", svg->file);
}

static bool is_vanished(const struct svg *svg, uint32_t i)
{
	return svg->diff && i != TREE_ROOT && !tree_sum(&svg->model->tree, i)->samples;
}

static void put_change(const struct svg *svg, uint32_t i)
{
	const char *const words[] = {
		[DIFF_FEW] = svg->diff->path.beyond ? "not tested" : "not tested: too few samples",
		[DIFF_SAME] = "no significant change",
		[DIFF_GREW] = "grew", [DIFF_SHRANK] = "shrank",
	};
	const double after = 2 * svg->share[i] - svg->before[i];

	fprintf(svg->file, "\n%.2f %% before, %.2f %% after: %+.2f", 100 * svg->before[i], 100 * after,
		100 * change_of(svg, i));
	if (i == TREE_ROOT)
		return;
	if (verdict_of(svg, i) != DIFF_FEW)
		fprintf(svg->file, " \302\261 %.2f",
			100 * diff_path(svg->diff, svg->path[i] - 1)->total.test.error);
	fprintf(svg->file, ", %s", is_vanished(svg, i) && verdict_of(svg, i) == DIFF_SHRANK ?
		"vanished" : words[verdict_of(svg, i)]);
}

static void put_node(const struct svg *svg, uint32_t i, double height)
{
	const struct tree_node *node = tree_node(&svg->model->tree, i);
	const struct model_frame *frame =
		i == TREE_ROOT ? NULL : model_frame(svg->model, node->frame);
	double x = svg->x[i], width = width_of(svg, i);
	double y = height - FOOT - (svg->depth[i] + 1.0) * ROW;
	const char *name = frame ? frame->name : "all";

	fputs("<g><title>", svg->file);
	escape_xml(svg->file, name);
	if (frame && frame->file[0]) {
		fputs("  ", svg->file);
		escape_xml(svg->file, frame->file);
	}
	if (svg->diff)
		put_change(svg, i);
	else
		fprintf(svg->file, "\n%" PRIu64 " samples, %.2f %%", tree_sum(&svg->model->tree, i)->samples,
			100 * svg->share[i]);
	fprintf(svg->file, "</title><rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" "
		"fill=\"%s\"%s/>", x, y, max_of(width - 0.3, 0.3), ROW - 1, colour_of(svg, i),
		is_vanished(svg, i) ? " stroke=\"#1c3f8a\" stroke-dasharray=\"3 2\"" : "");
	put_label(svg, name, x, y, width);
	fputs("</g>\n", svg->file);
}

static void put_legend(const struct svg *svg, double height)
{
	static const struct legend { const char *name, *colour; } kinds[] = {
		{ "native", "#f7d774" }, { "kernel", "#f2a07b" }, { "inlined", colour_inlined },
		{ "JIT, runtime", "#a9c7f2" }, { "no name", colour_unnamed },
	}, changes[] = {
		{ "grew", "#f08c7a" }, { "shrank (dashed: vanished)", "#8cb0ef" },
		{ "no significant change", colour_same },
	};
	const struct legend *legend = svg->diff ? changes : kinds;
	double x = MARGIN;

	for (size_t i = 0; i < (svg->diff ? ARRAY_SIZE(changes) : ARRAY_SIZE(kinds)); i++) {
		fprintf(svg->file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>"
			"<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", x, height - 22, legend[i].colour,
			x + 17, height - 12, legend[i].name);
		x += 40 + (double)strlen(legend[i].name) * CHARACTER;
	}
}

static void put_svg(struct svg *svg, const char *title)
{
	uint32_t count = tree_count(&svg->model->tree);
	double height = HEAD + FOOT + (double)svg->levels * ROW;
	char untested[128];

	fprintf(svg->file, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
		"viewBox=\"0 0 %d %.0f\" role=\"img\" "
		"font-family=\"ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"11\" "
		"fill=\"#1b1b20\">\n<title>", WIDTH, height, WIDTH, height);
	escape_xml(svg->file, title);
	fprintf(svg->file, "</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
		"<text x=\"%d\" y=\"20\" font-size=\"15\" font-weight=\"bold\">", MARGIN);
	escape_xml(svg->file, title);
	fprintf(svg->file, "</text>\n<text x=\"%d\" y=\"36\">%" PRIu64 " samples of ", MARGIN,
		svg->event->samples);
	escape_xml(svg->file, svg->event->source);
	if (svg->diff)
		fprintf(svg->file, ", %" PRIu64 " before",
			model_event(svg->model, svg->diff->events[DIFF_BEFORE])->samples);
	if (svg->diff && diff_say_paths(svg->diff, untested, sizeof(untested)))
		fprintf(svg->file, "; %s", untested);
	fputs("</text>\n", svg->file);
	for (uint32_t i = 0; i < count; i++)
		if (svg->x[i] >= 0)
			put_node(svg, i, height);
	put_legend(svg, height);
	fputs("</svg>\n", svg->file);
}

static int share_all(struct svg *svg, uint32_t event, double *shares)
{
	const struct tree *tree = &svg->model->tree;
	double all;

	if (model_sum(svg->model, event))
		return -E2BIG;
	all = (double)tree_sum(tree, TREE_ROOT)->total;
	for (uint32_t i = 0; i < tree_count(tree); i++)
		shares[i] = all > 0 ? (double)tree_sum(tree, i)->total / all : 0;
	return 0;
}

static int draw(struct svg *svg, uint32_t event, const char *title)
{
	uint32_t count = tree_count(&svg->model->tree);
	int err = 0;

	svg->levels = 1;
	if (svg->diff)
		err = share_all(svg, svg->diff->events[DIFF_BEFORE], svg->before);
	/* the last one, so that the tree has its samples */
	err = err ?: share_all(svg, event, svg->share);
	if (err)
		return err;
	for (uint32_t i = 0; svg->diff && i < count; i++)
		svg->share[i] = (svg->share[i] + svg->before[i]) / 2;
	for (size_t i = 0; svg->diff && i < diff_path_count(svg->diff); i++)
		svg->path[diff_path(svg->diff, i)->node] = (uint32_t)i + 1;
	place(svg);
	put_svg(svg, title);
	return 0;
}

static int write_tree(struct model *model, const struct diff *diff, uint32_t event,
		      const char *title, FILE *file)
{
	uint32_t count = tree_count(&model->tree);
	size_t bytes = ((size_t)count + 1) * (3 * sizeof(double) + 3 * sizeof(uint32_t));
	struct svg svg = { .model = model, .diff = diff, .file = file,
			   .event = model_event(model, event) };
	_cleanup_free_ char *memory = NULL;
	int err = 0;

	if (!pool_charge(POOL_REPORT, bytes))
		return -E2BIG;
	memory = calloc(1, bytes);
	if (memory && count) {
		svg.x = (double *)(void *)memory;
		svg.share = svg.x + count;
		svg.before = svg.share + count;
		svg.depth = (uint32_t *)(void *)(svg.before + count);
		svg.order = svg.depth + count;
		svg.path = svg.order + count;
		err = draw(&svg, event, title);
	}
	pool_uncharge(POOL_REPORT, bytes);
	return memory ? err : -E2BIG;
}

int svg_write(struct model *model, uint32_t event, const char *title, FILE *file)
{
	return write_tree(model, NULL, event, title, file);
}

int svg_write_diff(struct model *model, const struct diff *diff, const char *title, FILE *file)
{
	return write_tree(model, diff, diff->events[DIFF_AFTER], title, file);
}
