// SPDX-License-Identifier: Apache-2.0
#include "view/diff.h"

#include <string.h>

#define NONE UINT32_MAX

/* The modifiers of an event in perf's words, by which only a part of what runs is counted. */
static const char *modifiers(const char *source)
{
	const char *last = strrchr(source, '/');
	const char *colon = strrchr(last ? last : source, ':');

	return colon ? colon + 1 : last ? last + 1 : "";
}

static bool is_comparable(const struct model_event *a, const struct model_event *b)
{
	return a->event == b->event && a->unit == b->unit &&
	       !strcmp(modifiers(a->source), modifiers(b->source));
}

bool diff_events(const struct model *model, uint32_t ret_events[DIFF_SIDES], char *ret_error,
		 size_t error_size)
{
	uint32_t after = NONE, before = NONE, most = NONE;
	const struct model_event *a, *b;

	for (uint32_t i = 0; i < model->events.count; i++) {
		const struct model_event *event = model_event(model, i);
		uint32_t *best = event->side == MODEL_BEFORE ? &most : &after;

		if (*best == NONE || model_is_before(event, model_event(model, *best)))
			*best = i;
	}
	b = model_event(model, after);
	for (uint32_t i = 0; i < model->events.count; i++) {
		const struct model_event *event = model_event(model, i);

		if (event->side == MODEL_BEFORE && is_comparable(event, b) &&
		    (before == NONE || model_is_before(event, model_event(model, before))))
			before = i;
	}
	ret_events[DIFF_BEFORE] = before;
	ret_events[DIFF_AFTER] = after;
	if (before != NONE)
		return true;
	a = model_event(model, most);
	snprintf(ret_error, error_size,
		 "shares of different events cannot be compared: before is %s (counted as %s, in "
		 "%s), after is %s (counted as %s, in %s); --event selects one that both have",
		 a->source, a->event, a->unit, b->source, b->event, b->unit);
	return false;
}
