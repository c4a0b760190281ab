// SPDX-License-Identifier: Apache-2.0
#include "cli/record.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/signal.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/record_format.h"
#include "cli/targets.h"
#include "export/relabel.h"
#include "service/host.h"
#include "pipeline/pipeline.h"
#include "resolve/cache.h"

enum {
	WINDOW_MS = 15000,
	WINDOW_MAX_MS = 60000,
	MAX_PAYLOAD_BYTES = 3584 * 1024,
	PROGRESS_MS = 1000,
	PROGRESS_FROM_MS = 2000,
	BYTES_PER_MB = 1000000,
};

struct record {
	struct record_options *options;
	struct output output;
	struct child child;
	struct targets targets;
	struct environment environment;
	struct host_resource resource;
	struct pipeline *pipeline;
	int signals;
	uint64_t start;
	bool has_progress;
	bool is_step;			/* what is written becomes something else */
};

static int sink_payload(void *ctx, struct payload *payload)
{
	struct record *record = ctx;
	int ret = output_append(&record->output, payload->data, payload->size);

	free(payload->data);
	return ret;
}

static void record_done(struct record *record)
{
	pipeline_free(record->pipeline);
	child_end(&record->child);
	targets_done(&record->targets);
	host_resource_done(&record->resource);
	environment_free(&record->environment);
	if (record->signals >= 0)
		close(record->signals);
}

static int catch_signals(struct record *record, sigset_t *ret_old)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigaddset(&set, numbers[i]);
	/* before the pipeline's threads start, which inherit the mask */
	sigprocmask(SIG_BLOCK, &set, ret_old);
	signal(SIGPIPE, SIG_IGN);
	record->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return record->signals < 0 ? -errno : 0;
}

/* A second Ctrl-C while the rest is written ends at once; a file is whole messages all the same. */
static void release_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void show_loading(uint64_t done, uint64_t total)
{
	fprintf(stderr, "[ stacktap record: Unwind tables: %" PRIu64 " of %" PRIu64
		" processes are ready ]\n", done, total);
}

static void show_naming(size_t done, size_t total)
{
	fprintf(stderr, "[ stacktap record: Names: %zu of %zu files are read ]\n", done, total);
}

void record_pipeline(const struct record_options *options, const struct environment *environment,
		     const struct host_resource *resource, struct pipeline_options *ret_pipeline)
{
	*ret_pipeline = (struct pipeline_options){
		.capture = {
			.sideband_bytes = (uint32_t)options->sideband_bytes,
		},
		.symbolizer = {
			.with_command_line = options->with_command_line,
			.with_kernel_addresses = !options->without_kernel_addresses,
			.with_lines = options->with_lines,
			.sysroot = "",
		},
		.encode = {
			.max_bytes = MAX_PAYLOAD_BYTES,
			.service_name = environment->service_name ?: options->service_name,
			.resource = resource->attributes,
			.resource_count = resource->count,
			.relabel = options->relabel,
			.with_cpu = true,
		},
		.source_count = options->source_count,
		.filter = &options->filter,
		.user_frames = (uint32_t)options->user_frames,
		.with_tables = options->with_tables,
		.slice_bytes = (uint32_t)options->slice_bytes,
		.slice_max_bytes = (uint32_t)options->slice_max_bytes,
		.has_budget = options->has_budget,
		.budget_ns = (uint32_t)options->budget_ns,
		.has_ceiling = options->has_ceiling,
		.ceiling_permille = options->ceiling_permille,
		.fault_in = true,
		.is_cancelled = signal_wants_end,
	};
	/* it is there once the daemon has run */
	if (!access(CACHE_DIRECTORY, W_OK))
		ret_pipeline->table_cache = CACHE_DIRECTORY;
	memcpy(ret_pipeline->sources, options->sources, sizeof(options->sources));
}

static int start_pipeline(struct record *record)
{
	struct record_options *options = record->options;
	const uint32_t child_tgid = (uint32_t)record->child.pid;
	struct pipeline_options pipeline;
	char error[512];

	record_pipeline(options, &record->environment, &record->resource, &pipeline);
	pipeline.loading = options->quiet ? NULL : show_loading;
	pipeline.naming = options->quiet ? NULL : show_naming;
	pipeline.window_ms = WINDOW_MS;
	pipeline.window_max_ms = WINDOW_MAX_MS;
	pipeline.sink = (struct pipeline_sink){ .payload = sink_payload, .ctx = record };
	if (record->child.pid && !options->has_all) {
		pipeline.follow_tgids = &child_tgid;
		pipeline.follow_count = 1;
	}
	if (pipeline_start(&pipeline, &record->pipeline, error, sizeof(error)) < 0)
		return cli_error("%s", error);
	/* the module has it; descriptors of cgroups would keep their mount busy */
	control_filter_done(&options->filter);
	record->start = clock_monotonic();
	return CLI_OK;
}

/* True: end. */
static bool take_signals(struct record *record)
{
	struct signalfd_siginfo info;
	bool is_over = false;

	while (read(record->signals, &info, sizeof(info)) == sizeof(info))
		is_over |= info.ssi_signo == SIGCHLD ?
				   record->child.pid && child_reap(&record->child) : true;
	return is_over;
}

static void show_progress(struct record *record, uint64_t elapsed_ms)
{
	struct pipeline_stats stats;

	if (record->options->quiet || elapsed_ms < PROGRESS_FROM_MS || !isatty(STDERR_FILENO))
		return;
	pipeline_stats(record->pipeline, &stats);
	fprintf(stderr, "\r%" PRIu64 " s, %" PRIu64 " samples ", elapsed_ms / 1000,
		stats.capture.samples);
	record->has_progress = true;
}

/* Until a signal, the end of the command, of what -p and -t name or of the time, or a full disk. */
static void wait_for_end(struct record *record)
{
	const struct record_options *options = record->options;

	while (!record->output.error) {
		struct pollfd pollfd = { .fd = record->signals, .events = POLLIN };
		uint64_t elapsed_ms = (clock_monotonic() - record->start) / NSEC_PER_MSEC;
		uint64_t wait_ms = PROGRESS_MS;

		if (options->duration_ms) {
			if (elapsed_ms >= options->duration_ms)
				break;
			wait_ms = min_of(wait_ms, options->duration_ms - elapsed_ms);
		}
		show_progress(record, elapsed_ms);
		if (targets_are_gone(&record->targets))
			break;
		if (poll(&pollfd, 1, (int)wait_ms) > 0 && take_signals(record))
			break;
	}
	if (record->has_progress)
		fputs("\r\033[K", stderr);
}

static void print_totals(const struct record *record, const struct pipeline_stats *stats)
{
	const struct window_counts *counts = &stats->counts;
	/* the last ones may have come behind the last sample; then the file does not tell of them */
	uint64_t lost = stats->drain.losses.lost;

	if (record->options->verbose && counts->samples)
		fprintf(stderr, "[ stacktap record: %.1f %% complete, %.1f %% named, %.1f %% by "
			"function range, %.1f %% unnamed, %.1f %% stale; %u CPUs, %" PRIu64 " windows ]\n",
			100.0 * (double)counts->complete / (double)counts->samples,
			100.0 * (double)counts->named / (double)counts->samples,
			100.0 * (double)counts->by_range / (double)counts->samples,
			100.0 * (double)(counts->samples - min_of(counts->samples, counts->named + counts->by_range)) /
				(double)counts->samples,
			100.0 * (double)counts->stale / (double)counts->samples,
			stats->capture.cpus, stats->windows);
	if (record->options->verbose && stats->has_deferred)
		fprintf(stderr, "[ stacktap record: deferred unwinding: %" PRIu64 " stacks, %" PRIu64
			" of them complete; %" PRIu64 " refused, %" PRIu64 " expired, %" PRIu64
			" failed; %" PRIu64 " by frame pointers alone ]\n", stats->drain.deferred.unwound,
			stats->drain.deferred.complete, stats->drain.deferred.refused, stats->drain.deferred.expired,
			stats->drain.deferred.failed, counts->user_end[STACKTAP_END_NO_MAPPINGS]);
	if (record->options->verbose && stats->absent.wanted)
		fprintf(stderr, "[ stacktap record: %" PRIu64 " stacks cut by an absent page; %" PRIu64
			" pages brought in, %" PRIu64 " failed, %" PRIu64 " refused ]\n",
			stats->absent.wanted, stats->absent.pages, stats->absent.failed,
			stats->absent.refused);
	if (stats->capture.sideband_lost)
		fprintf(stderr, "[ stacktap record: The kernel dropped %" PRIu64 " side-band records "
			"(mappings, forks, exits); samples that they may concern are marked "
			"doubtful. Larger --sideband-bytes avoid it ]\n",
			stats->capture.sideband_lost);
	if (relabel_samples(record->options->relabel))
		fprintf(stderr, "[ stacktap record: --relabel has left out %" PRIu64 " samples ]\n",
			relabel_samples(record->options->relabel));
	if (stats->loader.tables.refused_files)
		fprintf(stderr, "[ stacktap record: files whose unwind table is too large, which were walked "
			"by frame pointers: %" PRIu64 "; the last: %s ]\n",
			stats->loader.tables.refused_files, stats->loader.tables.last_refused);
	if (stats->symbolizer.put_off && record->output.bytes)
		fprintf(stderr, "[ stacktap record: frames that have no name for want of time or memory: %" PRIu64
			"; `stacktap symbolize' names later what is in files ]\n", stats->symbolizer.put_off);
	if (stats->loader.tables.deferred)
		fprintf(stderr, "[ stacktap record: times that an unwind table was put off for want of time: %" PRIu64
			"; stacks in their files were walked by frame pointers meanwhile ]\n", stats->loader.tables.deferred);
	if (record->is_step && record->output.bytes)
		fprintf(stderr, "[ stacktap record: Captured %" PRIu64 " samples, %" PRIu64 " lost ]\n",
			counts->samples, lost);
	else if (!record->output.bytes)
		fprintf(stderr, "[ stacktap record: Captured %" PRIu64 " samples, %" PRIu64
			" lost, wrote nothing ]\n", counts->samples, lost);
	else
		fprintf(stderr, "[ stacktap record: Captured %" PRIu64 " samples, %" PRIu64
			" lost, wrote %.3f MB %s ]\n", counts->samples, lost,
			(double)record->output.bytes / BYTES_PER_MB, record->output.path);
}

static int finish(struct record *record)
{
	struct pipeline_stats stats;
	int ret, error;

	/* those of the end itself are no second ones */
	take_signals(record);
	release_signals();
	ret = pipeline_stop(record->pipeline);
	pipeline_stats(record->pipeline, &stats);
	error = output_close(&record->output);
	if (error < 0)
		return cli_error("cannot write %s: %s", record->output.path, strerror(-error));
	if (ret < 0)
		return cli_error("sampling did not end cleanly: %s", strerror(-ret));
	if (!record->options->quiet)
		print_totals(record, &stats);
	if (stats.samples_dropped || stats.windows_dropped)
		return cli_error("memory ran out: %" PRIu64 " samples and %" PRIu64 " whole windows "
				 "are not in %s; a lower rate (-F) needs less",
				 stats.samples_dropped, stats.windows_dropped,
				 record->output.path);
	return CLI_OK;
}

static int run(struct record *record)
{
	const struct record_options *options = record->options;
	bool has_ended;
	char error[512];
	sigset_t mask;
	int ret;

	if (environment_load(&record->environment, error, sizeof(error)) < 0)
		return cli_error("%s", error);
	ret = host_resource_load(&record->environment, options->attributes, &record->resource, error,
				 sizeof(error));
	if (ret < 0)
		return cli_error("%s", error);
	ret = targets_init(&record->targets, &options->filter) ?: catch_signals(record, &mask);
	if (!ret && options->command)
		/* a profile on standard output is not to be mixed with what the command says, as with perf */
		ret = child_prepare(&record->child, options->command,
				    strcmp(options->output, "-") ? STDOUT_FILENO : STDERR_FILENO, &mask);
	if (ret < 0)
		return cli_error("cannot prepare to record: %s", strerror(-ret));
	ret = start_pipeline(record);
	if (ret)
		return ret;
	if (options->command) {
		ret = child_go(&record->child);
		if (ret < 0) {
			pipeline_stop(record->pipeline);
			return cli_error("cannot run %s: %s", options->command[0], strerror(-ret));
		}
	}
	wait_for_end(record);
	has_ended = record->child.pid && child_reap(&record->child);
	child_terminate(&record->child);
	ret = finish(record);
	/* the file is complete: a command that will not end can be left with Ctrl-C */
	child_end(&record->child);
	/* as perf: the command's own exit code, unless it was us who ended it */
	return !ret && has_ended ? child_exit_code(&record->child) : ret;
}

static int run_to(struct record_options *options, const char *path)
{
	_cleanup_(record_done) struct record record = {
		.options = options, .signals = -1, .is_step = path != options->output,
	};
	int ret = output_open(path, &record.output);

	if (ret)
		return ret;
	ret = run(&record);
	/* for the ways out that never came to write; closing twice is harmless */
	output_close(&record.output);
	return ret;
}

int record_run(int argc, char **argv)
{
	_cleanup_(record_format_done) struct record_format format = { 0 };
	_cleanup_(record_options_done) struct record_options options;
	int ret, written;

	ret = record_parse(argc, argv, &options);
	if (ret)
		return ret - 1;
	if (options.verbose)
		log_setup("stacktap", LOG_LEVEL_DEBUG);
	ret = record_format_of(options.output, &format);
	if (ret)
		return ret;
	ret = run_to(&options, record_format_path(&format));
	written = record_format_write(&format, options.quiet);
	return written ?: ret;
}
