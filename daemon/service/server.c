// SPDX-License-Identifier: Apache-2.0
#include "service/server.h"

#include <string.h>

#include "base/clock.h"
#include "service/endpoint.h"
#include "service/extra.h"
#include "service/viewer.h"
#include "view/convert.h"
#include "view/model.h"
#include "view/site.h"
#include "web/listener.h"

enum {
	FOUND = 302, BAD_REQUEST = 400, NOT_FOUND = 404, FAILED = 500, UNAVAILABLE = 503, NO_MEMORY = 507,
	VIEWERS_MAX = 2, EXTRAS_MAX = 2,
	THREADS = TAPS_MAX + VIEWERS_MAX + EXTRAS_MAX + 2,	/* what takes no time, and refusals, find room */
	SECONDS = 30, SECONDS_MAX = 300,	/* the former is Go's */
	STEP_MS = 50,
	WAIT_MS = 45000,		/* deferred unwinding, one payload to a receiver that does not answer */
	VIEW_MS = 60000,		/* of what is in the store */
	TURN_MS = 10000,		/* is waited for while others look at it */
	SENTENCE_MAX = 512,
};

/* Of the daemon's memory, while requests are answered; beside its budget, see base/pool.c. */
#define SERVER_BYTES ((size_t)48 << 20)

struct server {
	struct listener *listener;
	char store_name[96];
	struct server_ops ops;
	unsigned int wait_ms;
	_Atomic bool stop;
	_Atomic unsigned int viewers, extras;	/* at work */
	_Atomic uint64_t views_failed;
};

struct question {
	struct selection selection;
	unsigned int seconds;
	const char *pid, *rate, *period;	/* NULL: not asked for */
	bool is_page;
};

static void say(struct web_answer *answer, unsigned int status, const char *text)
{
	answer->status = status;
	fprintf(answer->body, "%s\n", text);
}

/* "": not selected. */
static const char *word(const struct web_request *request, const char *name)
{
	const char *text = web_query(request, name);

	return text && text[0] ? text : NULL;
}

static bool parse(const struct web_request *request, struct question *question, struct web_answer *answer)
{
	static const char *const names[] = { "token", "seconds", "pid", "process", "thread", "container",
					     "service", "cgroup", "event", "rate", "period", NULL };
	const char *unknown = web_unknown_query(request, names), *seconds = word(request, "seconds");
	const char *pid = word(request, "pid");
	struct selection *selection = &question->selection;

	if (unknown) {
		say(answer, BAD_REQUEST, "Unknown parameter. Known are seconds, pid, process, "
		    "thread, container, service, cgroup, event, rate and period. Stored profiles "
		    "are at /store/.");
		return false;
	}
	question->seconds = seconds && web_is_number(seconds) ? (unsigned int)atoi(seconds) : seconds ? 0 : SECONDS;
	if (!question->seconds || question->seconds > SECONDS_MAX) {
		say(answer, BAD_REQUEST, "seconds must be a number from 1 to 300. Stored profiles are at /store/.");
		return false;
	}
	question->rate = word(request, "rate");
	question->period = word(request, "period");
	if ((question->rate && (!web_is_number(question->rate) || question->period)) ||
	    (question->period && !web_is_number(question->period))) {
		say(answer, BAD_REQUEST, "rate is in samples per second, period in events per "
		    "sample; only one of them may be given.");
		return false;
	}
	question->pid = pid;
	if (pid && (!web_is_number(pid) || word(request, "process"))) {
		say(answer, BAD_REQUEST, "pid must be a process id, and cannot be combined with `process'.");
		return false;
	}
	selection->process = pid ?: word(request, "process");
	selection->thread = word(request, "thread");
	selection->container = word(request, "container");
	selection->service = word(request, "service");
	selection->cgroup = word(request, "cgroup");
	selection->event = word(request, "event");
	return true;
}

/* False: the client has hung up, or we end. */
static bool sleep_until(struct server *server, const struct web_request *request, uint64_t end)
{
	for (uint64_t now = clock_monotonic(); now < end; now = clock_monotonic()) {
		if (atomic_load(&server->stop) || web_is_gone(request))
			return false;
		usleep((useconds_t)(min_of(end - now, STEP_MS * NSEC_PER_MSEC) / NSEC_PER_USEC) + 1);
	}
	return true;
}

/* Everything of the window that is open goes through the tap. 0, -ECANCELED, -ETIMEDOUT, -ENODEV */
static int end_window(struct server *server, const struct web_request *request)
{
	const uint64_t start = clock_monotonic(), end = start + server->wait_ms * NSEC_PER_MSEC;
	uint64_t closing, now = start;
	bool has_closing = false;
	int err;

	for (; now < end; now = clock_monotonic()) {
		err = has_closing ? 0 : server->ops.close_window(server->ops.ctx, &closing);
		if (err && err != -EAGAIN)
			return err;
		has_closing = !err;
		if (has_closing && server->ops.has_closed(server->ops.ctx, closing))
			return 0;
		if (!sleep_until(server, request, now + STEP_MS * NSEC_PER_MSEC))
			return -ECANCELED;
	}
	return -ETIMEDOUT;
}

static void model_freep(struct model **model)
{
	model_free(*model);
}

static int fill(struct model *model, const struct tap *tap)
{
	size_t offset = 0, size;
	const uint8_t *data;
	int err = tap->is_full ? -E2BIG : 0;

	while (!err && tap_next(tap, &offset, &data, &size))
		err = reader_add(model->reader, data, size);
	return err;
}

static void write_profile(const struct question *question, const struct tap *tap, struct web_answer *answer)
{
	const struct model_options pprof = convert_by_name("pprof")->model;
	struct model_options options = question->is_page ? (struct model_options){ .with_times = true } : pprof;
	_cleanup_(model_freep) struct model *model = NULL;
	char name[64], text[SENTENCE_MAX];
	int err;

	snprintf(name, sizeof(name), "%u seconds", question->seconds);
	options.selection = &question->selection;
	err = model_new(&options, &model);
	if (!err)
		err = fill(model, tap);
	if (err)
		return say(answer, NO_MEMORY, "This needs more memory than is allowed. Ask for a shorter time.");
	model_finish(model);
	if (!model->events.count) {
		selection_say_nothing(&question->selection, name, text, sizeof(text));
		return say(answer, NOT_FOUND, text);
	}
	/* what was asked for, rather than the windows that it is cut out of */
	model->totals.start = question->selection.from.ns;
	model->totals.end = question->selection.to.ns;
	if (question->is_page)
		site_write_flamegraph(model, name, answer);
	else
		site_write_pprof(model, "stacktapd", answer);
}

static void take_profile(struct server *server, const struct web_request *request, struct question *question,
			 struct web_answer *answer)
{
	struct tap *tap = tap_open(server->ops.taps);
	int err = -ECANCELED;

	if (!tap)
		return say(answer, UNAVAILABLE, "Four profiles are being taken already. Try again later.");
	question->selection.from = (struct moment){ MOMENT_UNIX, clock_read(CLOCK_REALTIME) };
	if (sleep_until(server, request, clock_monotonic() + question->seconds * NSEC_PER_SEC)) {
		question->selection.to = (struct moment){ MOMENT_UNIX, clock_read(CLOCK_REALTIME) };
		err = end_window(server, request);
	}
	tap_stop(server->ops.taps, tap);
	if (!err)
		write_profile(question, tap, answer);
	else if (err == -ETIMEDOUT)
		say(answer, UNAVAILABLE, "The samples were not symbolized in time. `stacktap "
		    "status' says what the daemon is doing.");
	else
		say(answer, UNAVAILABLE, "The daemon is not sampling, or is stopping. `stacktap status' says why.");
	tap_close(server->ops.taps, tap);
}

static bool goes_on(void *ctx)
{
	const struct server *server = ctx;

	return !atomic_load(&server->stop);
}

/* False: so many are at work for as long as it makes sense to wait. */
static bool take_turn(struct server *server, const struct web_request *request, _Atomic unsigned int *used,
		      unsigned int most, unsigned int wait_ms)
{
	const uint64_t end = clock_monotonic() + wait_ms * NSEC_PER_MSEC;
	unsigned int now = atomic_load(used);

	for (;;) {
		if (now < most && atomic_compare_exchange_weak(used, &now, now + 1))
			return true;
		if (now < most)
			continue;
		if (clock_monotonic() >= end ||
		    !sleep_until(server, request, clock_monotonic() + STEP_MS * NSEC_PER_MSEC))
			return false;
		now = atomic_load(used);
	}
}

static void say_failed(struct server *server, int err, struct web_answer *answer)
{
	if (err == -ECANCELED)
		return say(answer, UNAVAILABLE, "The daemon is stopping or has stopped sampling, or the client has disconnected.");
	atomic_fetch_add(&server->views_failed, 1);
	if (err == -ETIMEDOUT)
		say(answer, UNAVAILABLE, "This takes longer than is allowed. Ask for a shorter time.");
	else
		say(answer, FAILED, "The process that reads the recording could not be started, or died. The daemon's log "
		    "says more.");
}

static void show_store(struct server *server, const char *path, const struct web_request *request,
		       struct web_answer *answer)
{
	_cleanup_close_ int directory = server->ops.open_store(server->ops.ctx);
	struct viewer_job job = { .name = server->store_name, .input = directory, .path = path, .request = request,
				  .goes_on = goes_on, .ctx = server };
	int err;

	if (directory == -ENOENT)
		return say(answer, NOT_FOUND, "There is no store: profiles go to a receiver. Take "
			   "one at /flamegraph or /debug/pprof/profile.");
	if (directory < 0)
		return say(answer, UNAVAILABLE, "The store cannot be opened now. `stacktap status' says what the daemon is doing.");
	if (!take_turn(server, request, &server->viewers, VIEWERS_MAX, TURN_MS))
		return say(answer, UNAVAILABLE, "Too many requests for the store. Try again later.");
	job.deadline = clock_monotonic() + VIEW_MS * NSEC_PER_MSEC;
	err = viewer_ask(&job, answer);
	atomic_fetch_sub(&server->viewers, 1);
	if (err)
		say_failed(server, err, answer);
}

static void take_extra(struct server *server, const char *path, const struct web_request *request,
		       const struct question *question, struct web_answer *answer)
{
	_cleanup_free_ char **arguments = server->ops.record_arguments(server->ops.ctx);
	const struct extra_options options = {
		.stacktap = server->ops.stacktap, .path = path, .request = request, .seconds = question->seconds,
		.arguments = arguments,
		.pid = question->pid, .selection = &question->selection, .rate = question->rate,
		.period = question->period, .stop = &server->stop, .is_sampling = server->ops.is_sampling,
		.ctx = server->ops.ctx,
	};
	char reason[SENTENCE_MAX];
	int err;

	if (!server->ops.is_sampling(server->ops.ctx))
		return say(answer, UNAVAILABLE, "The daemon is not sampling. `stacktap status' says why.");
	if (!arguments)
		return say(answer, UNAVAILABLE, "The daemon is busy, mostly with a reload. Try again in a moment.");
	if (!take_turn(server, request, &server->extras, EXTRAS_MAX, 0))
		return say(answer, UNAVAILABLE, "Two sessions for other requests are running. Try again later.");
	err = extra_take(&options, answer, reason, sizeof(reason));
	atomic_fetch_sub(&server->extras, 1);
	if (err == -EINVAL || err == -ENOEXEC)
		say(answer, err == -EINVAL ? BAD_REQUEST : UNAVAILABLE, reason);
	else if (err)
		say_failed(server, err, answer);
}

static void answer_request(void *ctx, const char *path, const struct web_request *request,
			   struct web_answer *answer)
{
	static const char store[] = "/store";
	struct server *server = ctx;
	struct question question = { .is_page = !strcmp(path, "/flamegraph") };

	if (!strncmp(path, store, sizeof(store) - 1) && path[sizeof(store) - 1] == '/')
		return show_store(server, path + sizeof(store) - 1, request, answer);
	if (!strcmp(path, "/") || !strcmp(path, store)) {
		answer->location = "store/";
		return say(answer, FOUND, "The store's timeline is at /store/.");
	}
	if (!question.is_page && strcmp(path, "/debug/pprof/profile"))
		say(answer, NOT_FOUND, "Not found. Ask for /debug/pprof/profile or /flamegraph, "
		    "both with "
		    "?seconds=N&pid=&process=&thread=&container=&service=&cgroup=&event=&rate=&period=, "
		    "or for /store/, the stored profiles.");
	else if (!parse(request, &question, answer))
		return;
	else if (question.rate || question.period)
		take_extra(server, path, request, &question, answer);
	else
		take_profile(server, request, &question, answer);
}

int server_open(const char *listen, const struct server_ops *ops, unsigned int wait_ms, struct server **ret_server,
		char *ret_error, size_t error_size)
{
	char token[GUARD_TOKEN_SIZE], host[65] = "";
	struct server *server;
	int err = endpoint_check(listen, ret_error, error_size);

	if (err)
		return err;
	server = calloc(1, sizeof(*server));
	err = server ? guard_make_token(token) : -ENOMEM;
	if (err) {
		snprintf(ret_error, error_size, "no token for it: %s", strerror(-err));
		free(server);
		return err;
	}
	server->ops = *ops;
	if (gethostname(host, sizeof(host) - 1))
		host[0] = '\0';
	snprintf(server->store_name, sizeof(server->store_name), "store%s%s", host[0] ? " of " : "", host);
	server->wait_ms = wait_ms ?: WAIT_MS;
	pool_get(POOL_REPORT)->limit = SERVER_BYTES;
	err = listener_open(&(struct listener_options){
		.address = endpoint_bare_address(listen),
		/* what a unix socket needs not, its mode says who may use it */
		.token = strchr(listen, '/') ? NULL : token,
		.pool = POOL_REPORT,
		.threads = THREADS,
		.handler = answer_request,
		.ctx = server,
	}, &server->listener, ret_error, error_size);
	if (err) {
		free(server);
		return err;
	}
	*ret_server = server;
	return 0;
}

void server_close(struct server *server)
{
	if (!server)
		return;
	atomic_store(&server->stop, true);
	listener_close(server->listener);
	free(server);
}

const char *server_name(const struct server *server)
{
	return listener_name(server->listener);
}

void server_tell(const struct server *server, struct snapshot *snapshot)
{
	const struct listener_counts *counts = listener_counts(server->listener);

	snapshot->serve.address = listener_address(server->listener);
	snapshot->serve.requests = counts->answered;
	snapshot->serve.failed = counts->failed;
	snapshot->serve.expired = counts->expired;
	snapshot->serve.views_failed = atomic_load(&server->views_failed);
	for (size_t i = 0; i < ARRAY_SIZE(counts->refused); i++)
		snapshot->serve.refused += counts->refused[i];
}
