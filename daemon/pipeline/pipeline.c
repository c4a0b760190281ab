// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "capture/error.h"
#include "capture/kept.h"
#include "client/event.h"
#include "pipeline/threads.h"

enum {
	SLICE_MAX_MINOR = 5,		/* the module knows SLICE_MAX_BYTES */
	BUDGET_MINOR = 8,		/* and BUDGET_NS */
	CEILING_MINOR = 11,		/* and CEILING */
	JITTER_MINOR = 11,		/* and NO_JITTER, without which those before do well */
	SCAN_DRAIN_EVERY = 32,		/* processes of the first scan between two rounds */
	/* together less than the exporter leaves of the pool, see there */
	REQUESTS_BYTES = 512 << 10,
	WINDOWS_BYTES = 64 << 10,	/* their contents count in the aggregate pool */
	RESULTS_BYTES = 384 << 10,
	PARTS_BYTES = 4096,		/* one at a time; its contents count in the aggregate pool */
};

_Atomic uint64_t pipeline_closings;

static int fail_control(const struct pipeline *pipeline, int error, const char *what,
			char *ret_error, size_t error_size)
{
	const char *sentence = pipeline->control ? control_error(pipeline->control) : NULL;

	return fail_with(error, ret_error, error_size, "%s: %s", what,
		    sentence && sentence[0] ? sentence : strerror(-error));
}

static int start_thread(pthread_t *thread, bool *ret_has, void *(*main)(void *), void *ctx,
			const char *name)
{
	sigset_t all, old;
	int r;

	/* signals are the main thread's */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(thread, NULL, main, ctx);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		return -r;
	pthread_setname_np(*thread, name);
	*ret_has = true;
	return 0;
}

/* The first scan, before there are samples; side-band rings must not overflow meanwhile. */
static int merge_first(void *ctx, uint32_t tgid)
{
	struct pipeline *pipeline = ctx;
	struct process_snapshot *snapshot;
	uint64_t time;
	int r;

	r = opener_scan(symbolizer_opener(pipeline->symbolizer), tgid, &snapshot);
	/* a process that went away or may not be read is no failure of the scan */
	if (r < 0) {
		pipeline->wants_all |= r == -EAGAIN || r == -EBUSY || r == -EPIPE;
		return 0;
	}
	process_table_merge(drain_processes(pipeline->drain), snapshot);
	process_snapshot_free(snapshot);
	/* thread B is woken up behind the side band, now and then, or by more than a few that are announced */
	if (++pipeline->scans % SCAN_DRAIN_EVERY)
		return 0;
	return capture_drain(pipeline->capture, &time);
}

static int start_stages(struct pipeline *pipeline, char *ret_error, size_t error_size)
{
	const struct pipeline_options *options = &pipeline->options;
	struct symbolizer_options symbolizer = options->symbolizer;
	const struct drain_output output = drain_thread_output(pipeline);
	struct drain_options drain = {
		.sources = options->sources,
		.source_count = options->source_count,
		.window_ms = options->window_ms,
		.window_max_ms = options->window_max_ms,
		.early_ms = options->early_ms,
		.follow_tgids = options->follow_tgids,
		.follow_count = options->follow_count,
	};
	int r;

	r = queue_new(POOL_QUEUES, REQUESTS_BYTES, &pipeline->requests);
	if (!r)
		r = queue_new(POOL_QUEUES, WINDOWS_BYTES, &pipeline->windows);
	if (!r)
		r = queue_new(POOL_QUEUES, RESULTS_BYTES, &pipeline->results);
	if (!r && options->sink.journal)
		r = queue_new(POOL_QUEUES, PARTS_BYTES, &pipeline->parts);
	symbolizer.turn = names_turn;
	symbolizer.turn_ctx = pipeline;
	if (!r)
		r = symbolizer_new(&symbolizer, &pipeline->symbolizer);
	if (r < 0)
		return fail_with(r, ret_error, error_size, "cannot set up symbols: %s", strerror(-r));
	drain.kernel = symbolizer_kernel(pipeline->symbolizer);
	r = drain_new(&drain, &output, &pipeline->drain);
	mapped_file_unref(drain.kernel);
	if (r < 0)
		return fail_with(r, ret_error, error_size, "cannot set up windows: %s", strerror(-r));
	r = capture_open(&options->capture, &drain_ops, pipeline->drain, &pipeline->capture);
	if (r < 0)
		return fail_with(r, ret_error, error_size, "%s", capture_strerror(r));
	r = tables_start(pipeline);
	if (r < 0)
		return fail_with(r, ret_error, error_size, "cannot set up unwind tables: %s",
			    strerror(-r));
	r = start_thread(&pipeline->symbol_thread, &pipeline->has_symbol_thread, symbol_thread,
			 pipeline, "stacktap-names");
	if (!r)
		r = start_thread(&pipeline->export_thread, &pipeline->has_export_thread,
				 export_thread, pipeline, "stacktap-export");
	if (!r && pipeline->parts)
		r = start_thread(&pipeline->journal_thread, &pipeline->has_journal_thread, journal_thread,
				 pipeline, "stacktap-journal");
	if (r < 0)
		return fail_with(r, ret_error, error_size, "cannot start a thread: %s", strerror(-r));
	r = opener_processes(symbolizer_opener(pipeline->symbolizer), merge_first, pipeline);
	if (r < 0)
		return fail_with(r, ret_error, error_size, "cannot read /proc: %s", strerror(-r));
	pipeline->scans = 1;
	r = tables_load_first(pipeline);
	if (r == -EINTR)
		return fail_with(r, ret_error, error_size, "interrupted before sampling began");
	if (r < 0)
		return fail_with(r, ret_error, error_size, "cannot load unwind tables: %s",
			    strerror(-r));
	return 0;
}

/* Kernels that are locked down hand out no memory of processes; all else works without. */
static int configure(struct pipeline *pipeline, struct control_change *change)
{
	const unsigned int minor = capture_info(pipeline->capture)->abi_minor;
	uint64_t id = capture_session_id(pipeline->capture);
	int r;

	change->slice_bytes = pipeline->unwinder ? pipeline->options.slice_bytes : 0;
	if (change->slice_bytes && minor >= SLICE_MAX_MINOR)
		change->slice_max_bytes = pipeline->options.slice_max_bytes;
	else if (change->slice_bytes < pipeline->options.slice_max_bytes && change->slice_bytes)
		log_info("no sample carries more than %u bytes of its stack: the kernel module has "
			 "ABI %d.%u, more takes %d.%d", change->slice_bytes,
			 STACKTAP_ABI_MAJOR, minor, STACKTAP_ABI_MAJOR, SLICE_MAX_MINOR);
	r = control_set_session(pipeline->control, id, change);
	if (r != -EPERM || !change->slice_bytes) {
		pipeline->stats.has_deferred = !r && change->slice_bytes;
		return r;
	}
	log_info("stacks of programs that have just started are walked by frame pointers: %s",
		 control_error(pipeline->control));
	change->slice_bytes = 0;
	change->slice_max_bytes = 0;
	return control_set_session(pipeline->control, id, change);
}

/* Its samples end where ours begin, but for the milliseconds in between. Where it does not fit it ends here. */
static void take_over(struct pipeline *pipeline)
{
	struct kept_fds *fds = pipeline->options.kept;
	struct kept *kept;
	char why[256];
	uint64_t id;
	int r, stopped;

	if (!fds || fds->session < 0 || fds->ledger < 0)
		return;
	id = kept_session_of(fds->session);
	r = kept_open(fds, &kept, why, sizeof(why));
	stopped = id ? control_stop(pipeline->control, id) : 0;
	/* it was held, or somebody was faster */
	if (!r && stopped < 0 && stopped != -EALREADY) {
		r = stopped;
		snprintf(why, sizeof(why), "it cannot be stopped: %s", strerror(-r));
		kept_close(kept);
	}
	if (r < 0)
		log_warning("cannot take over the session of a daemon that was killed: %s; its samples since "
			    "the last read are lost", why);
	else
		capture_take_over(pipeline->capture, kept);
}

static int start_sampling(struct pipeline *pipeline, char *ret_error, size_t error_size)
{
	const struct pipeline_options *options = &pipeline->options;
	struct control_change change = {
		.sources = options->sources,
		.source_count = options->source_count,
		.filter = options->filter,
		.user_frames = options->user_frames,
		.walk_limit_ns = options->walk_limit_ns,
		.budget_ns = options->has_budget ? &options->budget_ns : NULL,
		.ceiling_permille = options->has_ceiling ? &options->ceiling_permille : NULL,
		.two_phase = options->two_phase,
	};
	uint64_t id = capture_session_id(pipeline->capture);
	int r = 0;

	for (size_t i = 0; !r && i < options->source_count; i++)
		r = event_check_countable(&options->sources[i], ret_error, error_size);
	if (r < 0)
		return r;
	if (options->has_budget && capture_info(pipeline->capture)->abi_minor < BUDGET_MINOR)
		return fail_with(-EOPNOTSUPP, ret_error, error_size,
			    "the loaded module (ABI 1.%u) does not support a budget; load the "
			    "module of this version", capture_info(pipeline->capture)->abi_minor);
	if (options->has_ceiling && capture_info(pipeline->capture)->abi_minor < CEILING_MINOR)
		return fail_with(-EOPNOTSUPP, ret_error, error_size,
			    "the loaded module (ABI 1.%u) does not support a ceiling; load the "
			    "module of this version",
			    capture_info(pipeline->capture)->abi_minor);
	for (size_t i = 0; i < options->source_count; i++)
		if (capture_info(pipeline->capture)->abi_minor < JITTER_MINOR)
			pipeline->options.sources[i].flags &= ~STACKTAP_SRC_NO_JITTER;
	r = configure(pipeline, &change);
	if (r < 0)
		return fail_control(pipeline, r, "the kernel module refuses the configuration",
				    ret_error, error_size);
	take_over(pipeline);
	r = start_thread(&pipeline->drain_thread, &pipeline->has_drain_thread, drain_thread,
			 pipeline, "stacktap-drain");
	if (r < 0)
		return fail_with(r, ret_error, error_size, "cannot start a thread: %s", strerror(-r));
	r = options->is_held ? 0 : control_start(pipeline->control, id);
	if (r < 0)
		return fail_control(pipeline, r, "sampling does not start", ret_error, error_size);
	pipeline->is_started = !options->is_held;
	return 0;
}

int pipeline_start(const struct pipeline_options *options, struct pipeline **ret_pipeline,
		   char *ret_error, size_t error_size)
{
	struct pipeline *pipeline = calloc(1, sizeof(*pipeline));
	int r;

	if (!pipeline)
		return fail_with(-ENOMEM, ret_error, error_size, "out of memory");
	pipeline->options = *options;
	/* its images are of no other one */
	pipeline->options.encode.number = 1;
	pthread_mutex_init(&pipeline->lock, NULL);
	pthread_cond_init(&pipeline->window_gone, NULL);
	/* those of a pipeline before this one, which has ended */
	pipeline->closing = pipeline->closed = atomic_load(&pipeline_closings);
	r = start_stages(pipeline, ret_error, error_size);
	if (!r) {
		r = control_open(&pipeline->control);
		if (r < 0)
			fail_control(pipeline, r, r == -ENODEV ?
				     "the kernel module has no netlink family: it is being "
				     "unloaded, or this is not the initial network namespace" :
				     "cannot talk to the kernel module", ret_error, error_size);
	}
	if (!r)
		r = start_sampling(pipeline, ret_error, error_size);
	/* what the caller lent for the call only */
	pipeline->options.filter = NULL;
	pipeline->options.follow_tgids = NULL;
	pipeline->options.kept = NULL;
	if (r < 0) {
		pipeline_stop(pipeline);
		pipeline_free(pipeline);
		return r;
	}
	*ret_pipeline = pipeline;
	return 0;
}

uint64_t pipeline_session_id(const struct pipeline *pipeline)
{
	return capture_session_id(pipeline->capture);
}

void pipeline_set_purpose(struct pipeline *pipeline, uint64_t purpose)
{
	capture_set_purpose(pipeline->capture, purpose);
}

uint64_t pipeline_close_window(struct pipeline *pipeline)
{
	const uint64_t closing = atomic_fetch_add(&pipeline_closings, 1) + 1;

	capture_wake(pipeline->capture);
	return closing;
}

bool pipeline_has_closed(struct pipeline *pipeline, uint64_t closing)
{
	bool has_closed;

	pthread_mutex_lock(&pipeline->lock);
	has_closed = pipeline->closed >= closing &&
		     pipeline->stats.windows - pipeline->windows_under_way >= pipeline->closed_windows;
	pthread_mutex_unlock(&pipeline->lock);
	return has_closed;
}

int pipeline_hold(struct pipeline *pipeline, bool is_held)
{
	const uint64_t id = pipeline_session_id(pipeline);
	int r;

	if (pipeline->is_started == !is_held)
		return 0;
	r = is_held ? control_stop(pipeline->control, id) : control_start(pipeline->control, id);
	/* somebody else was faster */
	if (r < 0 && r != -EALREADY)
		return r;
	pipeline->is_started = !is_held;
	return 0;
}

int pipeline_stop(struct pipeline *pipeline)
{
	int r = 0;

	if (pipeline->is_stopped)
		return 0;
	pipeline->is_stopped = true;
	if (pipeline->is_started) {
		r = control_stop(pipeline->control, pipeline_session_id(pipeline));
		/* somebody else may have stopped it */
		if (r == -EALREADY)
			r = 0;
	}
	if (pipeline->symbolizer)
		symbolizer_finish(pipeline->symbolizer);
	atomic_store_explicit(&pipeline->stop, true, memory_order_release);
	if (pipeline->has_drain_thread) {
		capture_wake(pipeline->capture);
		pthread_join(pipeline->drain_thread, NULL);
	}
	if (pipeline->parts)
		queue_close(pipeline->parts);
	if (pipeline->has_journal_thread)
		pthread_join(pipeline->journal_thread, NULL);
	/* from left to right: each queue is emptied by its reader before the next is closed */
	if (pipeline->results)
		queue_close(pipeline->results);
	if (pipeline->requests)
		queue_close(pipeline->requests);
	if (pipeline->has_symbol_thread)
		pthread_join(pipeline->symbol_thread, NULL);
	if (pipeline->windows)
		queue_close(pipeline->windows);
	if (pipeline->has_export_thread)
		pthread_join(pipeline->export_thread, NULL);
	return r < 0 ? r : pipeline->error;
}

void pipeline_free(struct pipeline *pipeline)
{
	if (!pipeline)
		return;
	pipeline_stop(pipeline);
	queue_free(pipeline->requests, message_drop);
	queue_free(pipeline->windows, message_drop);
	queue_free(pipeline->results, message_drop);
	queue_free(pipeline->parts, message_drop);
	journal_forget(pipeline);
	drain_thread_forget(pipeline);
	drain_free(pipeline->drain);
	tables_stop(pipeline);
	symbolizer_free(pipeline->symbolizer);
	capture_close(pipeline->capture);
	control_close(pipeline->control);
	pthread_cond_destroy(&pipeline->window_gone);
	pthread_mutex_destroy(&pipeline->lock);
	free(pipeline);
}

const char *const pipeline_thread_names[PIPELINE_THREADS] = {
	[THREAD_DRAIN] = "drain",
	[THREAD_NAMES] = "names",
	[THREAD_EXPORT] = "export",
	[THREAD_JOURNAL] = "journal",
};

static uint64_t thread_ns(pthread_t thread, bool has_thread)
{
	struct timespec time;
	clockid_t clock;

	/* of one that has ended there is none */
	if (!has_thread || pthread_getcpuclockid(thread, &clock) || clock_gettime(clock, &time))
		return 0;
	return (uint64_t)time.tv_sec * NSEC_PER_SEC + (uint64_t)time.tv_nsec;
}

/* Nobody joins them meanwhile. */
static void tell_threads(const struct pipeline *pipeline, uint64_t ret_ns[static PIPELINE_THREADS])
{
	if (pipeline->is_stopped)
		return;
	ret_ns[THREAD_DRAIN] = thread_ns(pipeline->drain_thread, pipeline->has_drain_thread);
	ret_ns[THREAD_NAMES] = thread_ns(pipeline->symbol_thread, pipeline->has_symbol_thread);
	ret_ns[THREAD_EXPORT] = thread_ns(pipeline->export_thread, pipeline->has_export_thread);
	ret_ns[THREAD_JOURNAL] = thread_ns(pipeline->journal_thread, pipeline->has_journal_thread);
}

void pipeline_stats(struct pipeline *pipeline, struct pipeline_stats *ret_stats)
{
	uint64_t now;

	pthread_mutex_lock(&pipeline->lock);
	*ret_stats = pipeline->stats;
	pthread_mutex_unlock(&pipeline->lock);
	tell_threads(pipeline, ret_stats->thread_ns);
	now = clock_monotonic();
	for (int i = 0; i < PIPELINE_THREADS; i++)
		ret_stats->busy_ns[i] = work_taken(&pipeline->work[i], now);
}
