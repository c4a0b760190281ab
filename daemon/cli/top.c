// SPDX-License-Identifier: Apache-2.0
#include "cli/top.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/signal.h"
#include "cli/cli.h"
#include "cli/screen.h"

enum {
	DELAY_MS = 2000,
	LOOK_BACK_MS = 10000,
	LIMIT = 20,
	PIPELINE_MS = 1000,
	MAX_BYTES = 32 << 20,	/* of messages in the window, and again of those that wait */
};

static void top_done(struct top *top)
{
	pipeline_free(top->pipeline);
	live_free(top->live);
	targets_done(&top->targets);
	host_resource_done(&top->resource);
	environment_free(&top->environment);
	record_options_done(&top->options);
	top_cost_done(&top->cost);
	free(top->subject_owner);
	free(top->subject_name);
	free(top->subject_file);
	top_free_code(top);
	name_filter_done(&top->filter);
	if (top->signals >= 0)
		close(top->signals);
}

static int sink_payload(void *ctx, struct payload *payload)
{
	struct top *top = ctx;
	int ret = live_add(top->live, payload->data, payload->size, clock_monotonic());

	free(payload->data);
	return ret;
}

uint64_t top_from(const struct top *top)
{
	uint64_t now = clock_monotonic(), span = top->look_back_ms * NSEC_PER_MSEC;

	return max_of(now > span ? now - span : 0, top->zero);
}

static bool shows_calls(const struct browse *browse)
{
	return browse->view == BROWSE_CALLS ||
	       (browse->view == BROWSE_CODE && browse->under_code == BROWSE_CALLS);
}

int top_build(struct top *top, struct live_table *ret_table)
{
	uint64_t from = top_from(top);
	int ret;

	if (shows_calls(&top->browse))
		ret = live_build_calls(top->live, from, &top->subject, ret_table);
	else
		ret = live_build(top->live, from, top->browse.group, top->browse.by_total,
				 ret_table);
	if (!ret) {
		top_fit(top, ret_table);
		return CLI_OK;
	}
	screen_close();
	return cli_error("cannot add up what was sampled: %s", strerror(-ret));
}

static int show(struct top *top)
{
	struct live_table table;
	int ret = top_build(top, &table);

	if (!ret && top->use_json)
		top_print_json(top, &table);
	else if (!ret)
		top_print_text(stdout, top, &table);
	live_table_free(&table);
	if (ret)
		return ret;
	/* a reader that has gone ends it */
	return fflush(stdout) || ferror(stdout) ? CLI_FAILED : CLI_OK;
}

static int catch_signals(struct top *top)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (!top->is_batch) {
		sigaddset(&set, SIGQUIT);
		sigaddset(&set, SIGWINCH);
	}
	/* before the pipeline's threads start, which inherit the mask */
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	top->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return top->signals < 0 ? -errno : 0;
}

static int start(struct top *top)
{
	struct pipeline_options pipeline;
	char error[512];
	int ret;

	if (environment_load(&top->environment, error, sizeof(error)) < 0 ||
	    host_resource_load(&top->environment, NULL, &top->resource, error, sizeof(error)) < 0)
		return cli_error("%s", error);
	ret = targets_init(&top->targets, &top->options.filter) ?: catch_signals(top) ?:
	      live_new(MAX_BYTES, &top->selection, &top->live);
	if (ret < 0)
		return cli_error("cannot prepare to sample: %s", strerror(-ret));
	record_pipeline(&top->options, &top->environment, &top->resource, &pipeline);
	pipeline.window_ms = (unsigned int)min_of(top->delay_ms, (uint64_t)PIPELINE_MS);
	pipeline.window_max_ms = pipeline.window_ms;
	pipeline.symbolizer.names_ms = NAMES_WINDOW_MS;
	pipeline.sink = (struct pipeline_sink){ .payload = sink_payload, .ctx = top };
	if (pipeline_start(&pipeline, &top->pipeline, error, sizeof(error)) < 0)
		return cli_error("%s", error);
	/* the module has it; descriptors of cgroups would keep their mount busy */
	control_filter_done(&top->options.filter);
	top_cost_measure(&top->cost);
	return CLI_OK;
}

/* Until a signal, the last iteration, the end of what -p and -t name, or of whoever reads. */
static int loop(struct top *top)
{
	uint64_t due = clock_monotonic();
	int ret = CLI_OK;

	for (uint64_t i = 0; !ret && (!top->iterations || i < top->iterations); i++) {
		struct pollfd pollfd = { .fd = top->signals, .events = POLLIN };
		uint64_t now = clock_monotonic();

		/* one that took too long makes the next ones late, not many */
		due = max_of(due + top->delay_ms * NSEC_PER_MSEC, now);
		if (poll(&pollfd, 1, (int)min_of((due - now) / NSEC_PER_MSEC, (uint64_t)INT32_MAX)) > 0)
			break;
		top_cost_measure(&top->cost);
		ret = show(top);
		if (targets_are_gone(&top->targets))
			break;
	}
	return ret;
}

int top_run(int argc, char **argv)
{
	_cleanup_(top_done) struct top top = {
		.delay_ms = DELAY_MS, .look_back_ms = LOOK_BACK_MS, .limit = LIMIT, .signals = -1,
	};
	int ret, stopped;

	ret = top_parse(argc, argv, &top);
	if (ret)
		return ret - 1;
	top.is_batch |= top.use_json || !screen_is_possible();
	ret = start(&top);
	if (ret)
		return ret;
	if (!top.is_batch && !screen_open())
		return cli_error("cannot draw on this terminal; --batch needs none");
	if (!top.is_batch && !top.has_limit)
		top.limit = 0;
	ret = top.is_batch ? loop(&top) : top_screen_loop(&top);
	stopped = pipeline_stop(top.pipeline);
	if (!ret && stopped < 0)
		return cli_error("sampling did not end cleanly: %s", strerror(-stopped));
	return ret ?: cli_finish();
}
