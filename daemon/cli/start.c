// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/session.h"

static const char start_help[] =
	"usage: stacktap start SESSION [--json]\n\n"
	"Starts a stopped session.\n\n"
	"  SESSION   a session's id, its owner's name (stacktapd), or all\n"
	"  --json    print the result as JSON\n"
	"  -h, --help\n";

static const char stop_help[] =
	"usage: stacktap stop SESSION [--json]\n\n"
	"Stops sampling in a session. Its owner keeps it; `stacktap start' resumes it.\n\n"
	"  SESSION   a session's id, its owner's name (stacktapd), or all\n"
	"  --json    print the result as JSON\n"
	"  -h, --help\n";

struct action {
	const char *verb;
	int (*run)(struct control *control, uint64_t id);
	bool is_all;
	struct json *json;	/* NULL: say nothing */
};

static int act(void *ctx, struct control *control, const struct control_session *session)
{
	const struct action *action = ctx;
	char what[64];
	int ret;

	ret = action->run(control, session->id);
	/* "all" asks for a state, so that those which are in it already are no failure */
	if (ret == -EALREADY && action->is_all)
		ret = 0;
	if (ret < 0) {
		snprintf(what, sizeof(what), "cannot %s session %" PRIu64, action->verb,
			 session->id);
		return session_refused(control, what, ret);
	}
	if (action->json)
		json_u64(action->json, NULL, session->id);
	return CLI_OK;
}

static int run(int argc, char **argv, struct action *action, const char *help)
{
	_cleanup_(session_closep) struct control *control = NULL;
	_cleanup_free_ char *text = NULL;
	_cleanup_fclose_ FILE *memory = NULL;
	bool use_json;
	struct json json;
	size_t size;
	int ret;

	ret = cli_parse_json(argc, argv, help, &use_json);
	if (ret != CLI_GO_ON)
		return ret;
	if (optind + 1 != argc)
		return cli_usage_error("%s needs one session: an id, an owner's name, or all",
				       action->verb);
	action->is_all = !strcmp(argv[optind], "all");
	ret = session_connect(&control, NULL);
	if (ret)
		return ret;
	if (use_json) {
		/* kept back until all went well: a failure prints an object of its own */
		memory = open_memstream(&text, &size);
		if (!memory)
			return cli_error("out of memory");
		json_init(&json, memory);
		json_object(&json, NULL);
		json_array(&json, "sessions");
		action->json = &json;
	}
	ret = session_each_named(control, argv[optind], act, action);
	if (ret || !memory)
		return ret;
	json_end(&json);
	json_end(&json);
	if (fflush(memory) == EOF)
		return cli_error("out of memory");
	fputs(text, stdout);
	return cli_finish();
}

int start_run(int argc, char **argv)
{
	struct action action = { .verb = "start", .run = control_start };

	return run(argc, argv, &action, start_help);
}

int stop_run(int argc, char **argv)
{
	struct action action = { .verb = "stop", .run = control_stop };

	return run(argc, argv, &action, stop_help);
}
