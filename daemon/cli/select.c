// SPDX-License-Identifier: Apache-2.0
#include "cli/select.h"

#include "cli/cli.h"
#include "view/recording.h"

static int parse_moment(const char *text, struct moment *moment)
{
	if (moment_parse(text, moment))
		return CLI_OK;
	return cli_usage_error("`%s' is not a time like 2.5, 500ms, 2026-11-23T14:00:05Z or "
			       "@1764000000", text);
}

int select_parse(int option, const char *argument, struct selection *selection)
{
	struct moment moment;

	switch (option) {
	case SELECT_PROCESS:
		selection->process = argument;
		return CLI_OK;
	case SELECT_CONTAINER:
		selection->container = argument;
		return CLI_OK;
	case SELECT_SERVICE:
		selection->service = argument;
		return CLI_OK;
	case SELECT_CGROUP:
		selection->cgroup = argument;
		return CLI_OK;
	case SELECT_THREAD:
		selection->thread = argument;
		return CLI_OK;
	case SELECT_EVENT:
		selection->event = argument;
		return CLI_OK;
	case SELECT_INLINE:
	case SELECT_NO_INLINE:
		selection->without_inlined = option == SELECT_NO_INLINE;
		return CLI_OK;
	case SELECT_FROM:
		return parse_moment(argument, &selection->from);
	case SELECT_TO:
		return parse_moment(argument, &selection->to);
	default:
		if (!moment_parse(argument, &moment) || moment.base != MOMENT_START || !moment.ns)
			return cli_usage_error("`%s' is not a time like 10, 500ms or 1m", argument);
		selection->from = (struct moment){ .base = MOMENT_END, .ns = moment.ns };
		return CLI_OK;
	}
}

/* The view that has what is there of the only kind that is selected by; NULL: there is none, or more than one. */
static const char *view_of_all(const struct selection *selection)
{
	const struct { const char *wanted, *view; } kinds[] = {
		{ selection->process, " --by process" }, { selection->thread, " --by thread" },
		{ selection->container, " --by container" }, { selection->service, " --by service" },
		{ selection->cgroup, " --by cgroup" }, { selection->event, "" },
	};
	const char *view = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!kinds[i].wanted)
			continue;
		if (view)
			return NULL;
		view = kinds[i].view;
	}
	return view;
}

int select_found_nothing(const struct selection *selection, const char *path)
{
	const char *view = view_of_all(selection);
	char text[1024];

	selection_say_nothing(selection, recording_name(path), text, sizeof(text));
	return view ? cli_error("%s; `stacktap report%s' lists those there are", text, view) : cli_error("%s", text);
}
