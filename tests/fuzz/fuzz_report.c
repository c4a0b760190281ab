// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a message of an OTLP file, for the report, the call tree and all that is written of it: no crash, no
 * hang, and all memory comes back.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/pool.h"
#include "view/callers.h"
#include "view/convert.h"
#include "view/page.h"
#include "view/report_build.h"
#include "view/tree_errors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_error(const struct report_error *error)
{
	if (!isfinite(error->error95) || (error->error95 >= 0 && !(error->phi >= 1)))
		abort();
}

static void look_at(const struct report *report)
{
	uint64_t self;

	for (size_t i = 0; i < report->event_count; i++) {
		const struct report_event *event = &report->events[i];

		for (size_t k = 0; k < event->process_count; k++) {
			const struct report_process *process = &event->processes[k];

			self = 0;
			look_at_error(&process->error);
			for (size_t m = 0; m < process->function_count; m++) {
				const struct report_function *function = &process->functions[m];

				look_at_error(&function->self_error);
				look_at_error(&function->total_error);
				if (!function->name[0] || function->self > function->total ||
				    __builtin_add_overflow(self, function->self, &self))
					self = UINT64_MAX;
			}
			if (self != UINT64_MAX && self > process->weight)
				abort();
		}
	}
}

static void look_at_errors(const struct model *model, uint32_t event, const struct tree *tree, const uint32_t *place)
{
	struct tree_errors errors;

	if (!tree_errors_make(model, event, tree, place, 0, &errors))
		for (uint32_t i = 0; i < tree_count(tree); i++)
			for (enum tree_share share = 0; share < TREE_SHARES; share++)
				if (!isfinite(tree_error(&errors, i, share)))
					abort();
	tree_errors_free(&errors);
}

static void look_at_callers(const struct model *model, uint32_t event)
{
	struct callers callers;

	look_at_errors(model, event, &model->tree, NULL);
	if (!callers_make(&model->tree, 0, &callers))
		look_at_errors(model, event, &callers.tree, callers.place);
	callers_free(&callers);
}

/* What is below a node is never less than the node, and all of it is the event's. */
static void look_at_tree(struct model *model)
{
	for (uint32_t event = 0; event < model->events.count; event++) {
		if (model_sum(model, event))
			return;
		if (tree_sum(&model->tree, TREE_ROOT)->samples != model_event(model, event)->samples)
			abort();
		for (uint32_t i = 1; i < tree_count(&model->tree); i++) {
			const struct tree_node *node = tree_node(&model->tree, i);

			if (node->parent >= i || node->frame >= model->frames.count ||
			    tree_sum(&model->tree, i)->samples > tree_sum(&model->tree, node->parent)->samples)
				abort();
		}
		look_at_callers(model, event);
	}
}

static void write_all(struct model *model, size_t which)
{
	FILE *file = fopen("/dev/null", "w");
	const struct convert_options options = { .event = model_main_event(model), .name = "x" };
	const struct convert_format *format = convert_formats;

	if (!file)
		abort();
	for (; which && format->name; which--)
		format++;
	if (format->name)
		format->write(model, &options, file);
	else if (which)
		page_write(model, "x", file);
	else
		svg_write(model, options.event, "x", file);
	fclose(file);
}

static void make_tree(const uint8_t *data, size_t size)
{
	const struct selection selection = { .from = { MOMENT_UNIX, 1700000000000000000 } };
	const struct model_options options = {
		.selection = size & 2 ? &selection : NULL, .with_times = size & 4,
		.is_exact = size & 8, .with_remarks = size & 8,
	};
	struct model *model;

	if (model_new(&options, &model))
		return;
	if (!reader_add(model->reader, data, size)) {
		model_finish(model);
		look_at_tree(model);
		if (model->events.count)
			write_all(model, size / 16 % 7);
	}
	model_free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct report_builder *builder;
	struct reader *again = NULL;
	struct report *report;
	int err;

	if (report_builder_new(NULL, size % 3, &builder))
		return 0;
	/* a second message meets the tables of the first; a bad one ends the report half added */
	err = reader_add(report_builder_reader(builder), data, size);
	if (!err)
		err = reader_add(report_builder_reader(builder), data, size);
	/* the pass for errors has one message more than the sums */
	if (!err)
		err = report_builder_again(builder, &again);
	for (int i = 0; again && i < 3; i++)
		reader_add(again, data, size);
	if (!report_builder_finish(builder, false, &report)) {
		if (!err)
			look_at(report);
		report_free(report);
	}
	report_builder_free(builder);
	make_tree(data, size);
	if (atomic_load(&pool_get(POOL_REPORT)->used))
		abort();
	return 0;
}
