// SPDX-License-Identifier: Apache-2.0
#include "view/site.h"

#include <stdarg.h>
#include <string.h>

#include "base/utf8.h"
#include "view/convert.h"
#include "view/overview.h"
#include "view/page.h"
#include "view/page_files.h"
#include "view/recording.h"
#include "view/report_load.h"

enum {
	STATUS_BAD_REQUEST = 400,
	STATUS_NOT_FOUND = 404,
	STATUS_FAILED = 500,
	STATUS_NO_MEMORY = 507,
	ERROR_MAX = 1024,
	TITLE_MAX = 256,
};

/* What a query selects, and what it compares that with. */
struct question {
	struct selection selection, before;
	bool is_pair;
};

struct route {
	const char *path;
	void (*answer)(const struct site *site, const struct question *question,
		       struct web_answer *answer);
	bool takes_pair;
};

static void refuse(struct web_answer *answer, unsigned int status, const char *format, ...)
	_printf_(3, 4);

static void refuse(struct web_answer *answer, unsigned int status, const char *format, ...)
{
	va_list args;

	answer->status = status;
	va_start(args, format);
	vfprintf(answer->body, format, args);
	va_end(args);
	fputc('\n', answer->body);
}

static bool parse_time(const char *name, const char *text, enum moment_base base,
		       struct moment *moment, struct web_answer *answer)
{
	struct moment parsed;

	if (!text || !text[0])
		return true;
	if (moment_parse(text, &parsed) && (base == MOMENT_NONE || parsed.base == MOMENT_START)) {
		*moment = parsed;
		if (base != MOMENT_NONE)
			moment->base = base;
		return true;
	}
	refuse(answer, STATUS_BAD_REQUEST, "%s: `%s' is not a time like %s.", name, text,
	       base == MOMENT_NONE ? "2.5, 500ms, 2026-11-23T14:00:05Z or @1764000000" :
				     "10 or 500ms");
	return false;
}

/* "": not selected, so that a form can send all of its fields. */
static const char *word(const struct web_request *request, const char *name)
{
	const char *text = web_query(request, name);

	return text && text[0] ? text : NULL;
}

static bool parse(const struct site *site, const struct web_request *request,
		  const struct route *route, struct question *question, struct web_answer *answer)
{
	static const char *const names[] = {
		"token", "pid", "process", "thread", "container", "service", "cgroup", "event", "from",
		"to", "since", "seconds", "before_from", "before_to", NULL,
	};
	const char *unknown = web_unknown_query(request, names), *pid = word(request, "pid");
	struct selection *selection = &question->selection;

	if (unknown) {
		refuse(answer, STATUS_BAD_REQUEST, "Unknown parameter `%s'. Known are pid, "
		       "process, thread, container, service, cgroup, event, from, to, since, "
		       "seconds, before_from and before_to.", unknown);
		return false;
	}
	if (pid && (!web_is_number(pid) || word(request, "process"))) {
		refuse(answer, STATUS_BAD_REQUEST, "pid must be a process id, and cannot be combined with `process'.");
		return false;
	}
	*selection = site->selection;
	selection->process = pid ?: word(request, "process") ?: selection->process;
	selection->thread = word(request, "thread") ?: selection->thread;
	selection->container = word(request, "container") ?: selection->container;
	selection->service = word(request, "service") ?: selection->service;
	selection->cgroup = word(request, "cgroup") ?: selection->cgroup;
	selection->event = word(request, "event") ?: selection->event;
	question->before = *selection;
	question->before.from = question->before.to = (struct moment){ 0 };
	if (!parse_time("from", word(request, "from"), MOMENT_NONE, &selection->from, answer) ||
	    !parse_time("to", word(request, "to"), MOMENT_NONE, &selection->to, answer) ||
	    !parse_time("since", word(request, "since"), MOMENT_END, &selection->from, answer) ||
	    !parse_time("seconds", word(request, "seconds"), MOMENT_END, &selection->from,
			answer) ||
	    !parse_time("before_from", word(request, "before_from"), MOMENT_NONE,
			&question->before.from, answer) ||
	    !parse_time("before_to", word(request, "before_to"), MOMENT_NONE, &question->before.to,
			answer))
		return false;
	question->is_pair = question->before.from.base || question->before.to.base;
	if (question->is_pair && !route->takes_pair) {
		refuse(answer, STATUS_BAD_REQUEST, "%s compares nothing: leave out before_from and "
		       "before_to.", route->path);
		return false;
	}
	return true;
}

static void model_freep(struct model **model)
{
	model_free(*model);
}

static const char *short_name(const struct site *site)
{
	const char *slash = strrchr(site->path, '/');

	if (site->name)
		return site->name;
	return slash && slash[1] ? slash + 1 : site->path;
}

static void refuse_nothing(const struct site *site, const struct selection *selection,
			   struct web_answer *answer)
{
	char text[ERROR_MAX];

	selection_say_nothing(selection, short_name(site), text, sizeof(text));
	refuse(answer, STATUS_NOT_FOUND, "%s", text);
}

static void refuse_read(int err, const char *text, struct web_answer *answer)
{
	refuse(answer, err == -E2BIG || err == -ENOMEM ? STATUS_NO_MEMORY :
	       err == -ENODATA ? STATUS_NOT_FOUND : STATUS_FAILED, "%s", text);
}

static struct model *load(const struct site *site, const struct question *question,
			  struct model_options options, struct web_answer *answer)
{
	struct model *model = NULL;
	char error[ERROR_MAX];
	int err;

	options.selection = &question->selection;
	options.before = &question->before;
	err = question->is_pair ?
		model_load_pair(site->path, site->path, &options, &model, error, sizeof(error)) :
		model_load(site->path, &options, &model, error, sizeof(error));
	if (err) {
		refuse_read(err, error, answer);
		return NULL;
	}
	if (!model_has_side(model, MODEL_AFTER))
		refuse_nothing(site, &question->selection, answer);
	else if (question->is_pair && !model_has_side(model, MODEL_BEFORE))
		refuse_nothing(site, &question->before, answer);
	else
		return model;
	model_free(model);
	return NULL;
}

static int write_changes(struct model *model, const char *title, struct web_answer *answer)
{
	_cleanup_(diff_free) struct diff diff = { 0 };
	uint32_t events[DIFF_SIDES];
	char error[ERROR_MAX];
	int err;

	if (!diff_events(model, events, error, sizeof(error))) {
		refuse(answer, STATUS_NOT_FOUND, "%s", error);
		return 0;
	}
	err = diff_make(model, events, BY_FUNCTION, &diff);
	if (err)
		return err;
	answer->type = "text/html; charset=utf-8";
	return page_write_diff(model, &diff, title, answer->body);
}

/* Its own policy allows its script; it may be shown inside of the site's page. */
static const char page_policy[] = "frame-ancestors 'self'";

void site_write_flamegraph(struct model *model, const char *name, struct web_answer *answer)
{
	_cleanup_free_ char *title = utf8_dup(name, TITLE_MAX);

	answer->policy = page_policy;
	answer->type = "text/html; charset=utf-8";
	if (!title || page_write(model, title, answer->body))
		refuse(answer, STATUS_NO_MEMORY, "This needs more memory than is allowed.");
}

static void answer_flamegraph(const struct site *site, const struct question *question,
			      struct web_answer *answer)
{
	_cleanup_(model_freep) struct model *model = load(site, question, (struct model_options){
		.with_times = true, .is_short = question->is_pair,
	}, answer);
	_cleanup_free_ char *title = NULL;
	char text[TITLE_MAX];

	if (!model)
		return;
	if (!question->is_pair)
		return site_write_flamegraph(model, short_name(site), answer);
	answer->policy = page_policy;
	snprintf(text, sizeof(text), "%s: what changed between two times", short_name(site));
	title = utf8_dup(text, TITLE_MAX);
	if (!title || write_changes(model, title, answer))
		refuse(answer, STATUS_NO_MEMORY, "This needs more memory than is allowed.");
}

void site_write_pprof(struct model *model, const char *name, struct web_answer *answer)
{
	const struct convert_options options = { .event = model_main_event(model), .name = name };

	if (pprof_write(model, &options, answer->body))
		return refuse(answer, STATUS_NO_MEMORY, "This needs more memory than is allowed.");
	answer->type = "application/octet-stream";
	answer->name = "profile.pb.gz";
}

static void answer_pprof(const struct site *site, const struct question *question,
			 struct web_answer *answer)
{
	const struct convert_format *format = convert_by_name("pprof");
	_cleanup_(model_freep) struct model *model = load(site, question, format->model, answer);

	if (model)
		site_write_pprof(model, short_name(site), answer);
}

static void answer_report(const struct site *site, const struct question *question,
			  struct web_answer *answer)
{
	struct report *report;
	char error[ERROR_MAX];
	int err;

	err = report_load(site->path, &question->selection, REPORT_FUNCTIONS, &report, error, sizeof(error));
	if (err) {
		refuse_read(err, error, answer);
		return;
	}
	if (report->event_count) {
		answer->type = "application/json";
		report_json(report, site->path, 0, answer->body);
	} else {
		refuse_nothing(site, &question->selection, answer);
	}
	report_free(report);
}

static void answer_timeline(const struct site *site, const struct question *question,
			    struct web_answer *answer)
{
	_cleanup_(overview_done) struct overview overview;
	char error[ERROR_MAX];
	int err = overview_load(site->path, &question->selection, &overview, error, sizeof(error));

	if (err)
		return refuse_read(err, error, answer);
	if (!overview.has_samples)
		return refuse_nothing(site, &question->selection, answer);
	if (overview_json(&overview, short_name(site), answer->body))
		return refuse_read(-E2BIG, "This needs more memory than is allowed.", answer);
	answer->type = "application/json";
}

static void put_nothing(void *ctx _unused_, FILE *file _unused_)
{
}

static void answer_root(const struct site *site, const struct question *question _unused_,
			struct web_answer *answer)
{
	_cleanup_free_ char *title = utf8_dup(short_name(site), TITLE_MAX);

	answer->type = "text/html; charset=utf-8";
	answer->policy = "frame-ancestors 'none'";
	page_files_fill(&page_files_site, title ? title : "", put_nothing, NULL, answer->body);
}

static const struct route routes[] = {
	{ "/", answer_root, false },
	{ "/flamegraph", answer_flamegraph, true },
	{ "/timeline.json", answer_timeline, false },
	{ "/report.json", answer_report, false },
	{ "/debug/pprof/profile", answer_pprof, false },
};

void site_answer(void *ctx, const char *path, const struct web_request *request,
		 struct web_answer *answer)
{
	const struct site *site = ctx;
	struct question question = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
		if (!strcmp(routes[i].path, path)) {
			if (parse(site, request, &routes[i], &question, answer))
				routes[i].answer(site, &question, answer);
			return;
		}
	refuse(answer, STATUS_NOT_FOUND, "Not found. Available are:");
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
		fprintf(answer->body, "  %s\n", routes[i].path);
}
