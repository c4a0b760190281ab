// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/fit.h"
#include "cli/report.h"
#include "view/callers.h"
#include "view/recording.h"
#include "view/tree_errors.h"

enum {
	INDENT_MAX = 48,	/* what is deeper has its depth in digits */
	NAME_MIN = 30,		/* columns that indentation leaves to names */
};

/* A tree to be printed: that of the model, or one of callers. */
struct printer {
	const struct report_cli *cli;
	const struct tree *tree;
	double all;
	uint32_t *first, *next;		/* children, the heaviest first */
	uint32_t *level;		/* of a node that is printed: how far to the right */
	struct tree_errors errors;
	struct json json;
	bool is_callers;
};

static int lighter(const void *a, const void *b, void *ctx)
{
	const struct tree *tree = ctx;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	uint64_t l = tree_sum(tree, left)->total, r = tree_sum(tree, right)->total;

	if (l != r)
		return l < r ? -1 : 1;
	return (left < right) - (left > right);
}

/* The lightest first, so that each goes before what its parent has so far. */
static void link_children(struct printer *printer, uint32_t *order)
{
	uint32_t count = tree_count(printer->tree);

	for (uint32_t i = 0; i < count; i++) {
		printer->first[i] = printer->next[i] = UINT32_MAX;
		order[i] = i;
	}
	qsort_r(order, count, sizeof(*order), lighter, (void *)(uintptr_t)printer->tree);
	for (uint32_t k = 0; k < count; k++) {
		uint32_t i = order[k], parent = tree_node(printer->tree, i)->parent;

		if (i == TREE_ROOT)
			continue;
		printer->next[i] = printer->first[parent];
		printer->first[parent] = i;
	}
}

static double share_of(const struct printer *printer, uint64_t weight)
{
	return printer->all > 0 ? 100 * (double)weight / printer->all : 0;
}

/* "" where it is not known or has no room; what it takes, also where there is none, in bytes: the sign has two, and one column. */
static int say_error(const struct printer *printer, uint32_t node, enum tree_share share, char text[16])
{
	const double error = fit_left(0) < FIT_ERRORS ? -1 : tree_error(&printer->errors, node, share);

	if (fit_left(0) < FIT_ERRORS)
		return 0;
	if (error >= 0)
		snprintf(text, 16, " ± %.2f", 100 * error);
	return 8 + !!*text;
}

static bool is_shown(const struct printer *printer, uint32_t node)
{
	return share_of(printer, tree_sum(printer->tree, node)->total) >= printer->cli->least &&
	       tree_sum(printer->tree, node)->samples;
}

/* One more level of a function that does nothing but call itself: text has one line for all of them. */
static bool is_repeated(const struct printer *printer, uint32_t i)
{
	const struct tree_node *node = tree_node(printer->tree, i);
	const struct tree_node *parent = tree_node(printer->tree, node->parent);
	const struct tree_sum *above = tree_sum(printer->tree, node->parent);

	return node->parent != TREE_ROOT && parent->frame == node->frame &&
	       above->total == tree_sum(printer->tree, i)->total && !above->self_samples;
}

static void print_node(const struct printer *printer, uint32_t i)
{
	const struct tree_node *node = tree_node(printer->tree, i);
	const struct model_frame *frame = model_frame(printer->cli->model, node->frame);
	uint32_t depth = printer->level[i], indent = INDENT_MAX, last = i, count = 1;
	char error[16] = "", self_error[16] = "", deep[16] = "", repeated[24] = "";
	int used;

	while (printer->first[last] != UINT32_MAX && is_repeated(printer, printer->first[last])) {
		last = printer->first[last];
		count++;
	}
	if (count > 1)
		snprintf(repeated, sizeof(repeated), "(%u times)", count);
	used = fit_print("%6.2f %%%-*s  ", share_of(printer, tree_sum(printer->tree, i)->total),
			 say_error(printer, i, TREE_TOTAL, error), error);
	/* who called has run in what it called */
	if (!printer->is_callers && fit_left(0) >= FIT_SHARES)
		used += fit_print("%6.2f %%%-*s  ", share_of(printer, tree_sum(printer->tree, last)->self),
				  say_error(printer, last, TREE_SELF, self_error), self_error);
	if (fit_left(used) < INDENT_MAX + NAME_MIN)
		indent = (uint32_t)max_of(fit_left(used) - NAME_MIN, 0);
	if (depth > indent)
		snprintf(deep, sizeof(deep), "%u: ", depth);
	used += fit_print("%*s%s", (int)min_of(depth, indent), "", deep);
	fit_function(used, frame->name, repeated, frame->file);
}

static void put_node(struct printer *printer, uint32_t i)
{
	const struct tree_node *node = tree_node(printer->tree, i);
	const struct model_frame *frame = model_frame(printer->cli->model, node->frame);
	const struct tree_sum *sum = tree_sum(printer->tree, i);
	struct json *json = &printer->json;
	double error = tree_error(&printer->errors, i, TREE_TOTAL);

	json_object(json, NULL);
	json_u64(json, "node", i);
	json_i64(json, "parent", node->parent == TREE_ROOT ? -1 : (int64_t)node->parent);
	json_string(json, "name", frame->name);
	json_string(json, "file", frame->file);
	json_bool(json, "kernel", frame->kind == FRAME_KIND_KERNEL);
	json_u64(json, "total", sum->total);
	json_u64(json, "samples", sum->samples);
	json_double(json, "total_percent", share_of(printer, sum->total));
	if (error >= 0)
		json_double(json, "error95", 100 * error);
	if (!printer->is_callers) {
		json_u64(json, "self", sum->self);
		json_double(json, "self_percent", share_of(printer, sum->self));
		error = tree_error(&printer->errors, i, TREE_SELF);
		if (error >= 0)
			json_double(json, "self_error95", 100 * error);
	}
	json_end(json);
}

/* Depth first, as the eye follows it; lists, not recursion, as stacks may be deep. */
static void walk(struct printer *printer)
{
	uint32_t node = printer->first[TREE_ROOT], parent;
	uint64_t roots = 0;

	while (node != UINT32_MAX && node != TREE_ROOT) {
		parent = tree_node(printer->tree, node)->parent;
		if (is_shown(printer, node) && (parent != TREE_ROOT || !printer->cli->limit ||
						roots++ < printer->cli->limit)) {
			printer->level[node] = parent == TREE_ROOT ? 0 : printer->level[parent] +
					       !is_repeated(printer, node);
			if (printer->cli->use_json)
				put_node(printer, node);
			else if (!is_repeated(printer, node))
				print_node(printer, node);
			if (printer->first[node] != UINT32_MAX) {
				node = printer->first[node];
				continue;
			}
		}
		while (node != TREE_ROOT && printer->next[node] == UINT32_MAX)
			node = tree_node(printer->tree, node)->parent;
		if (node != TREE_ROOT)
			node = printer->next[node];
	}
}

static void print_heading(bool is_callers)
{
	if (fit_left(0) < FIT_SHARES)
		puts(is_callers ? "    SELF   FUNCTION" : "   TOTAL   CALL");
	else if (fit_left(0) < FIT_ERRORS)
		puts(is_callers ? "    SELF   FUNCTION, its callers" : "   TOTAL       SELF  CALL");
	else
		puts(is_callers ? "    SELF          FUNCTION, below it who calls it" :
				  "   TOTAL              SELF            CALL");
}

static void put_head(struct printer *printer, const struct tree_sum *sum)
{
	const struct report_cli *cli = printer->cli;
	struct json *json = &printer->json;

	json_init(json, stdout);
	json_object(json, NULL);
	json_string(json, "file", cli->path);
	json_string(json, "view", printer->is_callers ? "callers" : "tree");
	json_u64(json, "weight", sum->total);
	json_u64(json, "samples", sum->samples);
	json_double(json, "percent_limit", cli->least);
	if (cli->filter->is_set)
		json_string(json, "filter", cli->filter->text);
	json_u64(json, "beyond", printer->errors.beyond);
	json_array(json, "nodes");
}

/* Why rows that are there have no errors. */
static void say_untold(const struct printer *printer)
{
	char note[FIT_NOTE] = "";

	report_say_untold(&printer->errors.whole);
	if (!printer->errors.beyond || fit_left(0) < FIT_ERRORS)
		return;
	fit_add(note, "only the %d rows with the most samples, and those of fewer than 10, have errors (±); %zu rows have none", DIFF_PATHS_MAX,
		printer->errors.beyond);
	fit_words(0, 0, note);
}

/* A tree without a node, also without a root, has its heading, and no rows. */
static void print(struct printer *printer, uint32_t *order)
{
	const struct tree *whole = &printer->cli->model->tree;
	struct tree_sum sum = { 0 };

	link_children(printer, order);
	if (tree_count(whole))
		sum = *tree_sum(whole, TREE_ROOT);
	printer->all = (double)sum.total;
	if (printer->cli->use_json)
		put_head(printer, &sum);
	else
		print_heading(printer->is_callers);
	if (tree_count(printer->tree))
		walk(printer);
	if (printer->cli->use_json) {
		json_end(&printer->json);
		json_end(&printer->json);
	} else {
		say_untold(printer);
	}
}

/* -E2BIG */
static int print_tree(struct report_cli *cli, const struct tree *tree, const uint32_t *place)
{
	struct printer printer = { .cli = cli, .tree = tree, .is_callers = place != NULL };
	const size_t count = (size_t)tree_count(tree) + 1, bytes = count * 4 * sizeof(uint32_t);
	_cleanup_free_ uint32_t *memory = NULL;
	double least = 0;
	int err;

	/* what is shown by the same share must not miss its error by a rounding */
	if (tree_count(tree))
		least = (double)tree_sum(&cli->model->tree, TREE_ROOT)->total * cli->least / 100 * (1 - 1e-9);
	err = tree_errors_make(cli->model, cli->event, tree, place, least, &printer.errors);
	if (!err && pool_charge(POOL_REPORT, bytes)) {
		memory = calloc(1, bytes);
		if (memory) {
			printer.first = memory;
			printer.next = printer.first + count;
			printer.level = printer.next + count;
			print(&printer, printer.level + count);
		}
		pool_uncharge(POOL_REPORT, bytes);
	}
	tree_errors_free(&printer.errors);
	return memory ? 0 : -E2BIG;
}

static int too_large(const struct report_cli *cli)
{
	return cli_error(RECORDING_TOO_LARGE, recording_name(cli->path));
}

int report_print_tree(struct report_cli *cli)
{
	if (model_sum(cli->model, cli->event) || print_tree(cli, &cli->model->tree, NULL))
		return too_large(cli);
	return CLI_OK;
}

int report_print_callers(struct report_cli *cli)
{
	const struct tree *tree = &cli->model->tree;
	struct callers callers;
	double least = 0;
	int err;

	if (model_sum(cli->model, cli->event))
		return too_large(cli);
	if (tree_count(tree))
		least = (double)tree_sum(tree, TREE_ROOT)->total * cli->least / 100;
	err = callers_make(tree, least, &callers) ?: print_tree(cli, &callers.tree, callers.place);
	callers_free(&callers);
	return err ? too_large(cli) : CLI_OK;
}
