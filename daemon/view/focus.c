// SPDX-License-Identifier: Apache-2.0
#include "view/focus.h"

/* Parents come before their children. */
static void mark(const struct model *model, const bool *frames, bool *nodes)
{
	const struct tree *tree = &model->tree;

	for (uint32_t i = 1; i < tree_count(tree); i++)
		nodes[i] = nodes[tree_node(tree, i)->parent] || frames[tree_node(tree, i)->frame];
}

int focus_find(const struct model *model, focus_test *is_wanted, const void *ctx, struct focus *ret_focus)
{
	const size_t nodes = (size_t)tree_count(&model->tree) + 1, bytes = nodes + model->frames.count;
	bool *frames;

	*ret_focus = (struct focus){ 0 };
	if (!pool_charge(POOL_REPORT, bytes))
		return -E2BIG;
	ret_focus->bytes = bytes;
	ret_focus->nodes = calloc(1, bytes);
	if (!ret_focus->nodes)
		return -E2BIG;
	frames = ret_focus->nodes + nodes;
	for (uint32_t i = 0; i < model->frames.count; i++)
		frames[i] = is_wanted(ctx, model_frame(model, i));
	mark(model, frames, ret_focus->nodes);
	return 0;
}

void focus_apply(const struct focus *focus, struct model *model)
{
	for (unsigned int side = MODEL_AFTER; side <= MODEL_BEFORE; side++) {
		struct timeline *timeline = model_timeline(model, side);

		for (size_t i = 0; i < timeline_count(timeline); i++)
			if (!focus_has(focus, timeline_at(timeline, i)->node))
				timeline_at(timeline, i)->node = TREE_ROOT;
	}
}

void focus_done(struct focus *focus)
{
	free(focus->nodes);
	pool_uncharge(POOL_REPORT, focus->bytes);
	*focus = (struct focus){ 0 };
}
