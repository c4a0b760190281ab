// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

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
	const struct model_event *event;
	FILE *file;
	double *x;		/* of each node; below 0: not drawn */
	uint32_t *depth;
	uint32_t *order;	/* nodes, parents first and siblings by weight */
	uint32_t levels;
	uint64_t all;
};

static const char *const colours[] = {
	[FRAME_KIND_NATIVE] = "#f7d774", [FRAME_KIND_KERNEL] = "#f2a07b",
	[FRAME_KIND_MANAGED] = "#a9c7f2",
};
static const char colour_inlined[] = "#9fd9bd", colour_unnamed[] = "#d5d5d8";
static const char colour_root[] = "#e6e6ea";

static const char *colour_of(const struct model_frame *frame)
{
	if (frame->is_inlined)
		return colour_inlined;
	if (!frame->is_named && frame->kind == FRAME_KIND_NATIVE)
		return colour_unnamed;
	return colours[frame->kind];
}

static double width_of(const struct svg *svg, uint32_t node)
{
	return svg->all ? (double)tree_node(&svg->model->tree, node)->total / (double)svg->all *
		(WIDTH - 2 * MARGIN) : 0;
}

static int heavier(const void *a, const void *b, void *ctx)
{
	const struct tree_node *left = tree_node(ctx, *(const uint32_t *)a);
	const struct tree_node *right = tree_node(ctx, *(const uint32_t *)b);

	if (left->parent != right->parent)
		return left->parent < right->parent ? -1 : 1;
	if (left->total != right->total)
		return left->total > right->total ? -1 : 1;
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
	qsort_r(svg->order + 1, count - 1, sizeof(*svg->order), heavier, (void *)(uintptr_t)tree);
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
		length += ((unsigned char)*s & 0xc0) != 0x80;
	for (size_t count = 0; name[bytes] && bytes < sizeof(text) - 8; bytes++) {
		count += ((unsigned char)name[bytes] & 0xc0) != 0x80;
		if (count > (length > room ? room - 1 : room))
			break;
	}
	while (bytes && ((unsigned char)name[bytes] & 0xc0) == 0x80)
		bytes--;
	snprintf(text, sizeof(text), "%.*s%s", (int)bytes, name, name[bytes] ? "\u2026" : "");
	fprintf(svg->file, "<text x=\"%.1f\" y=\"%.1f\">", x + 3, y + ROW - 5);
	escape_xml(svg->file, text);
	fputs("</text>", svg->file);
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
	fprintf(svg->file, "\n%" PRIu64 " samples, %.2f %%</title>"
		"<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>", node->samples,
		svg->all ? 100.0 * (double)node->total / (double)svg->all : 0, x, y,
		max_of(width - 0.3, 0.3), ROW - 1, frame ? colour_of(frame) : colour_root);
	put_label(svg, name, x, y, width);
	fputs("</g>\n", svg->file);
}

static void put_legend(const struct svg *svg, double height)
{
	static const struct { const char *name, *colour; } kinds[] = {
		{ "native", "#f7d774" }, { "kernel", "#f2a07b" }, { "inlined", colour_inlined },
		{ "JIT, runtime", "#a9c7f2" }, { "no name", colour_unnamed },
	};
	double x = MARGIN;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		fprintf(svg->file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>"
			"<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", x, height - 22, kinds[i].colour,
			x + 17, height - 12, kinds[i].name);
		x += 40 + (double)strlen(kinds[i].name) * CHARACTER;
	}
}

static void put_svg(struct svg *svg, const char *title)
{
	uint32_t count = tree_count(&svg->model->tree);
	double height = HEAD + FOOT + (double)svg->levels * ROW;

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
	fputs("</text>\n", svg->file);
	for (uint32_t i = 0; i < count; i++)
		if (svg->x[i] >= 0)
			put_node(svg, i, height);
	put_legend(svg, height);
	fputs("</svg>\n", svg->file);
}

int svg_write(struct model *model, uint32_t event, const char *title, FILE *file)
{
	uint32_t count = tree_count(&model->tree);
	size_t bytes = ((size_t)count + 1) * (sizeof(double) + 2 * sizeof(uint32_t));
	struct svg svg = { .model = model, .event = model_event(model, event), .file = file };
	_cleanup_free_ char *memory = NULL;

	if (!pool_charge(POOL_REPORT, bytes))
		return -E2BIG;
	memory = calloc(1, bytes);
	if (memory && count) {
		svg.x = (double *)(void *)memory;
		svg.depth = (uint32_t *)(void *)(svg.x + count);
		svg.order = svg.depth + count;
		svg.levels = 1;
		model_sum(model, event);
		svg.all = tree_node(&model->tree, TREE_ROOT)->total;
		place(&svg);
		put_svg(&svg, title);
	}
	pool_uncharge(POOL_REPORT, bytes);
	return memory ? 0 : -E2BIG;
}
