// SPDX-License-Identifier: Apache-2.0
#include "cli/pair.h"

#include <string.h>

#include "cli/cli.h"
#include "view/recording.h"

int pair_parse(int option, const char *argument, struct pair *pair)
{
	struct selection before = { 0 };
	int ret;

	if (option != PAIR_FROM && option != PAIR_TO)
		return select_parse(option, argument, &pair->selection);
	ret = select_parse(option == PAIR_FROM ? SELECT_FROM : SELECT_TO, argument, &before);
	if (option == PAIR_FROM)
		pair->from = before.from;
	else
		pair->to = before.to;
	return ret;
}

static struct selection selection_of(const struct pair *pair, unsigned int side)
{
	struct selection selection = pair->selection;

	if (side == DIFF_BEFORE && pair_has_times(pair)) {
		selection.from = pair->from;
		selection.to = pair->to;
	}
	return selection;
}

const char *pair_name(const struct pair *pair, unsigned int side, char text[PAIR_NAME_MAX])
{
	const struct selection selection = selection_of(pair, side);
	char time[SELECTION_TIME_MAX] = "";

	if (pair_has_times(pair))
		selection_say_time(&selection, time, sizeof(time));
	snprintf(text, PAIR_NAME_MAX, "%.*s%s", PAIR_NAME_MAX - SELECTION_TIME_MAX - 1,
		 recording_name(pair->paths[side]), time);
	return text;
}

int pair_is_too_large(const struct pair *pair)
{
	char before[PAIR_NAME_MAX], after[PAIR_NAME_MAX];

	return cli_error("%s and %s need more memory than is allowed: " RECORDING_NARROW,
			 pair_name(pair, DIFF_BEFORE, before), pair_name(pair, DIFF_AFTER, after));
}

static int check_sides(const struct pair *pair, const struct model *model)
{
	struct selection selection;

	for (unsigned int i = 0; i < DIFF_SIDES; i++)
		if (!model_has_side(model, i == DIFF_BEFORE ? MODEL_BEFORE : MODEL_AFTER)) {
			selection = selection_of(pair, i);
			return select_found_nothing(&selection, pair->paths[i]);
		}
	return CLI_OK;
}

/* What does not prevent a comparison. */
static void warn(const struct pair *pair, const struct model *model)
{
	const struct time_span *before = &model->before.span, *after = &model->span;
	const bool has_times = pair_has_times(pair);

	for (unsigned int i = has_times ? DIFF_AFTER : 0; i < DIFF_SIDES; i++)
		if (i == DIFF_BEFORE ? model->before.is_cut : model->is_cut)
			fprintf(stderr, "stacktap: %s is cut off or damaged; this is what is whole\n",
				recording_name(pair->paths[i]));
	if (has_times && before->from < after->to && after->from < before->to)
		fprintf(stderr, "stacktap: the two times overlap, so changes appear smaller than they are: "
				"--before-to and --from separate them\n");
}

int pair_load(const struct pair *pair, bool use_json, struct model **ret_model)
{
	const struct selection before = selection_of(pair, DIFF_BEFORE);
	const struct model_options options = { .selection = &pair->selection, .before = &before,
					       .with_times = true, .is_short = true };
	struct model *model;
	char error[512];
	int ret;

	if (model_load_pair(pair->paths[DIFF_BEFORE], pair->paths[DIFF_AFTER], &options, &model, error,
			    sizeof(error)) < 0)
		return cli_error("%s", error);
	*ret_model = model;
	ret = check_sides(pair, model);
	if (!ret && !use_json)
		warn(pair, model);
	return ret;
}
