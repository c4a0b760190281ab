// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/fit.h"
#include "cli/report.h"
#include "view/recording.h"

enum {
	CALLERS_MAX = 64,	/* frames above a function that are followed */
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
	double *error, *self_error;	/* of each node's shares; below 0: unknown */
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

	if (printer->error[i] >= 0 && fit_left(0) >= FIT_ERRORS)
		snprintf(error, sizeof(error), "± %.2f", 100 * printer->error[i]);
	while (printer->first[last] != UINT32_MAX && is_repeated(printer, printer->first[last])) {
		last = printer->first[last];
		count++;
	}
	if (count > 1)
		snprintf(repeated, sizeof(repeated), "(%u times)", count);
	/* the sign has two bytes, and one column */
	used = fit_print("%6.2f %% %-*s  ", share_of(printer, tree_sum(printer->tree, i)->total),
			 *error ? 8 : fit_left(0) < FIT_ERRORS ? 0 : 7, error);
	/* who called has run in what it called */
	if (!printer->is_callers && fit_left(0) >= FIT_SHARES) {
		if (printer->self_error[last] >= 0 && fit_left(0) >= FIT_ERRORS)
			snprintf(self_error, sizeof(self_error), " ± %.2f", 100 * printer->self_error[last]);
		used += fit_print("%6.2f %%%-*s  ", share_of(printer, tree_sum(printer->tree, last)->self),
				  *self_error ? 9 : fit_left(0) < FIT_ERRORS ? 0 : 8, self_error);
	}
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

	json_object(json, NULL);
	json_u64(json, "node", i);
	json_i64(json, "parent", node->parent == TREE_ROOT ? -1 : (int64_t)node->parent);
	json_string(json, "name", frame->name);
	json_string(json, "file", frame->file);
	json_bool(json, "kernel", frame->kind == FRAME_KIND_KERNEL);
	json_u64(json, "total", sum->total);
	json_u64(json, "samples", sum->samples);
	json_double(json, "total_percent", share_of(printer, sum->total));
	if (printer->error[i] >= 0)
		json_double(json, "error95", 100 * printer->error[i]);
	if (!printer->is_callers) {
		json_u64(json, "self", sum->self);
		json_double(json, "self_percent", share_of(printer, sum->self));
		if (printer->self_error[i] >= 0)
			json_double(json, "self_error95", 100 * printer->self_error[i]);
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

static void find_errors(struct printer *printer)
{
	const struct diff *shares = &printer->cli->shares;

	for (uint32_t i = 0; i < tree_count(printer->tree); i++)
		printer->error[i] = printer->self_error[i] = -1;
	if (!printer->is_callers) {
		for (size_t i = 0; i < diff_path_count(shares); i++) {
			const struct diff_path *path = diff_path(shares, i);

			printer->error[path->node] = path->total.test.error;
			printer->self_error[path->node] = path->self_error;
		}
		return;
	}
	/* functions alone: those that stand at the root */
	for (uint32_t i = 1; i < tree_count(printer->tree); i++) {
		const struct diff_row *row;

		if (tree_node(printer->tree, i)->parent != TREE_ROOT)
			continue;
		row = diff_row_of(shares, printer->cli->model, tree_node(printer->tree, i)->frame);
		if (row)
			printer->error[i] = row->self.test.error;
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
	json_array(json, "nodes");
}

/* A tree without a node, also without a root, has its heading, and no rows. */
static int print_tree(struct report_cli *cli, const struct tree *tree, bool is_callers)
{
	struct printer printer = { .cli = cli, .tree = tree, .is_callers = is_callers };
	const struct tree *whole = &cli->model->tree;
	struct tree_sum sum = { 0 };
	size_t count = (size_t)tree_count(tree) + 1;
	size_t bytes = count * (4 * sizeof(uint32_t) + 2 * sizeof(double));
	_cleanup_free_ char *memory = NULL;

	if (!pool_charge(POOL_REPORT, bytes))
		return cli_error("%s needs more memory than is allowed: "
				 RECORDING_NARROW, recording_name(cli->path));
	memory = calloc(1, bytes);
	if (memory) {
		printer.error = (double *)(void *)memory;
		printer.self_error = printer.error + count;
		printer.first = (uint32_t *)(void *)(printer.self_error + count);
		printer.next = printer.first + count;
		printer.level = printer.next + count;
		link_children(&printer, printer.level + count);
		find_errors(&printer);
		if (tree_count(whole))
			sum = *tree_sum(whole, TREE_ROOT);
		printer.all = (double)sum.total;
		if (cli->use_json)
			put_head(&printer, &sum);
		else
			print_heading(is_callers);
		if (tree_count(tree))
			walk(&printer);
		if (cli->use_json) {
			json_end(&printer.json);
			json_end(&printer.json);
		}
	}
	pool_uncharge(POOL_REPORT, bytes);
	return memory ? CLI_OK : cli_error("out of memory");
}

int report_print_tree(struct report_cli *cli)
{
	if (model_sum(cli->model, cli->shares.events[DIFF_AFTER]))
		return cli_error("%s needs more memory than is allowed: "
				 RECORDING_NARROW, recording_name(cli->path));
	return print_tree(cli, &cli->model->tree, false);
}

/* A stack on its way up: where it is, and which node of the callers has it. */
struct climber {
	uint32_t at, node;
	uint64_t samples, weight;
};

/* One call up. What is below the limit is not followed: a large recording has more paths than memory. */
static int climb(const struct tree *tree, struct climber *climber, double least, struct tree *callers)
{
	struct tree_sum *sum;
	int err;

	if (climber->at == TREE_ROOT ||
	    (climber->node != TREE_ROOT && (double)tree_sum(callers, climber->node)->total < least)) {
		climber->at = TREE_ROOT;
		return 0;
	}
	err = tree_child(callers, climber->node, tree_node(tree, climber->at)->frame, &climber->node) ?:
	      tree_extend(callers);
	if (err)
		return err;
	sum = tree_sum(callers, climber->node);
	rows_sum(&sum->samples, climber->samples);
	rows_sum(&sum->total, climber->weight);
	climber->at = tree_node(tree, climber->at)->parent;
	return 0;
}

/* What ran stands at the root, those that called it below it: level by level, so that sums are known. */
static int turn_over(const struct tree *tree, struct climber *climbers, double least,
		     struct tree *callers)
{
	size_t count = 0;
	int err = 0;

	for (uint32_t i = 1; i < tree_count(tree); i++) {
		const struct tree_sum *leaf = tree_sum(tree, i);

		if (leaf->self_samples)
			climbers[count++] = (struct climber){
				.at = i, .samples = leaf->self_samples, .weight = leaf->self,
			};
	}
	for (unsigned int depth = 0; depth <= CALLERS_MAX && count && !err; depth++) {
		size_t kept = 0;

		for (size_t i = 0; i < count && !err; i++) {
			err = climb(tree, &climbers[i], least, callers);
			if (climbers[i].at != TREE_ROOT)
				climbers[kept++] = climbers[i];
		}
		count = kept;
	}
	if (!err && tree_count(callers)) {
		tree_sum(callers, TREE_ROOT)->samples = tree_sum(tree, TREE_ROOT)->samples;
		tree_sum(callers, TREE_ROOT)->total = tree_sum(tree, TREE_ROOT)->total;
	}
	return err;
}

int report_print_callers(struct report_cli *cli)
{
	const struct tree *tree = &cli->model->tree;
	size_t bytes = ((size_t)tree_count(tree) + 1) * sizeof(struct climber);
	_cleanup_free_ struct climber *climbers = NULL;
	struct tree callers;
	double least = 0;
	int err, ret;

	if (!pool_charge(POOL_REPORT, bytes))
		return cli_error("%s needs more memory than is allowed: "
				 RECORDING_NARROW, recording_name(cli->path));
	climbers = calloc(1, bytes);
	tree_init(&callers);
	err = model_sum(cli->model, cli->shares.events[DIFF_AFTER]);
	if (!err && tree_count(tree))
		least = (double)tree_sum(tree, TREE_ROOT)->total * cli->least / 100;
	if (err || !climbers || turn_over(tree, climbers, least, &callers))
		ret = cli_error("%s needs more memory than is allowed: "
				RECORDING_NARROW, recording_name(cli->path));
	else
		ret = print_tree(cli, &callers, true);
	tree_free(&callers);
	pool_uncharge(POOL_REPORT, bytes);
	return ret;
}
