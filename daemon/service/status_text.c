// SPDX-License-Identifier: Apache-2.0
#include "service/status.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/pool.h"

/*
 * A line is printed where its group is there, and one of @when is not 0, or, without @when, its fact is
 * there. In the text {} is the next of @values, times in ms, {%} its share of all samples; {fact} and {label}
 * are what they say.
 */
struct status_line {
	enum counter_group group;
	const char *text;
	enum counter_id when[3];
	enum fact_id fact;
	enum counter_id values[11];
};

#define C(name) COUNTER_##name

static const struct status_line lines[] = {
	{ .group = GROUP_DAEMON, .text = "daemon: stacktapd {fact}, pid {}, up {} s",
	  .fact = FACT_DAEMON_version, .values = { C(DAEMON_pid), C(DAEMON_uptime_seconds) } },
	{ .group = GROUP_DAEMON, .text = "  runs as user {fact}", .fact = FACT_DAEMON_user },
	{ .group = GROUP_DAEMON, .text = "  keeps the rights that it was started with: {fact}",
	  .fact = FACT_DAEMON_kept_rights },
	{ .group = GROUP_DAEMON, .text = "  not sampling: {fact}", .fact = FACT_DAEMON_error },
	{ .group = GROUP_DAEMON, .text = "  not sampling for now: {fact}", .fact = FACT_DAEMON_paused },
	{ .group = GROUP_DAEMON, .text = "  configurations refused: {}",
	  .when = { C(DAEMON_reloads_failed) }, .values = { C(DAEMON_reloads_failed) } },
	{ .group = GROUP_WINDOWS,
	  .text = "  session {}: {} samples, {} lost, {} windows, {} side-band records lost",
	  .values = { C(DAEMON_session), C(WINDOWS_samples), C(WINDOWS_lost), C(WINDOWS_windows),
		      C(CAPTURE_sideband_lost) } },
	{ .group = GROUP_CAPTURE,
	  .text = "  took over the session of a daemon that was killed: {} samples, unread for {} ms, {} of "
		  "processes that exited or executed another program",
	  .when = { C(CAPTURE_kept_sessions) },
	  .values = { C(CAPTURE_kept_samples), C(CAPTURE_kept_unread_nano), C(CAPTURE_kept_unproven) } },
	{ .group = GROUP_WINDOWS,
	  .text = "  not exported for want of memory or disk: {} samples, {} whole windows",
	  .when = { C(WINDOWS_samples_dropped), C(WINDOWS_windows_dropped) },
	  .values = { C(WINDOWS_samples_dropped), C(WINDOWS_windows_dropped) } },
	{ .group = GROUP_WINDOWS, .text = "  degraded by a step {} times, now by {}",
	  .when = { C(WINDOWS_degradations) },
	  .values = { C(WINDOWS_degradations), C(WINDOWS_degraded) } },
	{ .group = GROUP_WINDOWS, .text = "  counters multiplexed {} times, now {}",
	  .when = { C(WINDOWS_multiplexings) },
	  .values = { C(WINDOWS_multiplexings), C(WINDOWS_multiplexed) } },
	{ .group = GROUP_WINDOWS,
	  .text = "  quality: {%} % complete, {%} % named, {%} % by function range, {%} % stale",
	  .when = { C(WINDOWS_samples) },
	  .values = { C(WINDOWS_complete), C(WINDOWS_named), C(WINDOWS_by_range), C(WINDOWS_stale) } },
	{ .group = GROUP_SYMBOLIZER, .text = "  frames without a name for want of memory: {}",
	  .when = { C(SYMBOLIZER_names_refused) }, .values = { C(SYMBOLIZER_names_refused) } },
	{ .group = GROUP_SYMBOLIZER,
	  .text = "  frames whose names were not there in time: {}, in {} windows; later windows look them up again",
	  .when = { C(SYMBOLIZER_late) }, .values = { C(SYMBOLIZER_late), C(SYMBOLIZER_windows_late) } },
	{ .group = GROUP_SYMBOLIZER,
	  .text = "  programs and files looked at late, as too many were started at once: {}",
	  .when = { C(SYMBOLIZER_unannounced) }, .values = { C(SYMBOLIZER_unannounced) } },
	{ .group = GROUP_SYMBOLIZER, .text = "  frames put off to the next window: {}",
	  .when = { C(SYMBOLIZER_put_off) }, .values = { C(SYMBOLIZER_put_off) } },
	{ .group = GROUP_JIT,
	  .text = "  perf maps and jitdumps: of {} processes, {} functions in {} bytes, {} dropped for want of "
		  "memory, {} bad lines",
	  .when = { C(JIT_processes) },
	  .values = { C(JIT_processes), C(JIT_functions), C(JIT_bytes), C(JIT_dropped), C(JIT_bad_entries) } },
	{ .group = GROUP_JIT, .text = "  perf maps and jitdumps that are refused: {}",
	  .when = { C(JIT_refused_files) }, .values = { C(JIT_refused_files) } },
	{ .group = GROUP_LINES, .text = "  source lines: {} frames, {} put off, {} files have none",
	  .when = { C(LINES_frames), C(LINES_put_off), C(LINES_files_without) },
	  .values = { C(LINES_frames), C(LINES_put_off), C(LINES_files_without) } },
	{ .group = GROUP_LINES,
	  .text = "  split DWARF: {} files read; {} frames without inlined functions, as a .dwo or .dwp file was not found or read; {} files "
		  "refused for their owner or mode",
	  .when = { C(LINES_split_files), C(LINES_split_missing), C(LINES_parts_refused) },
	  .values = { C(LINES_split_files), C(LINES_split_missing), C(LINES_parts_refused) } },
	{ .group = GROUP_LINES,
	  .text = "  indices of DWARF: {} read from disk, {} made, {} written, {} refused, {} late",
	  .when = { C(LINES_index_loaded), C(LINES_index_made), C(LINES_index_refused) },
	  .values = { C(LINES_index_loaded), C(LINES_index_made), C(LINES_index_written), C(LINES_index_refused),
		      C(LINES_index_late) } },
	{ .group = GROUP_DEBUGINFOD,
	  .text = "  debuginfod: {} files fetched, {} bytes, {} kept from before, {} not there, {} too large, "
		  "{} waiting",
	  .values = { C(DEBUGINFOD_fetched), C(DEBUGINFOD_bytes), C(DEBUGINFOD_from_cache),
		      C(DEBUGINFOD_absent), C(DEBUGINFOD_too_large), C(DEBUGINFOD_waiting) } },
	{ .group = GROUP_DEBUGINFOD,
	  .text = "  debuginfod: server not reached {} times, too slow {}, failed {}; the last: {fact}",
	  .when = { C(DEBUGINFOD_unreachable), C(DEBUGINFOD_timed_out), C(DEBUGINFOD_failed) },
	  .fact = FACT_DEBUGINFOD_last_failed,
	  .values = { C(DEBUGINFOD_unreachable), C(DEBUGINFOD_timed_out), C(DEBUGINFOD_failed) } },
	/* of helpers nothing while all is well */
	{ .group = GROUP_HELPER,
	  .text = "  {label}: started {} times, {} crashes, {} killed for not answering, {} of them cannot die yet",
	  .when = { C(HELPER_crashes), C(HELPER_timeouts), C(HELPER_abandoned) },
	  .values = { C(HELPER_starts), C(HELPER_crashes), C(HELPER_timeouts), C(HELPER_abandoned) } },
	{ .group = GROUP_OPENER,
	  .text = "  file systems that do not answer: {} left alone; the last: {fact}",
	  .fact = FACT_OPENER_last_quarantined, .values = { C(OPENER_quarantined) } },
	{ .group = GROUP_PARSER, .text = "  files that are not read any more: {}; the last: {fact}",
	  .when = { C(PARSER_set_apart) }, .fact = FACT_PARSER_last_set_apart,
	  .values = { C(PARSER_set_apart) } },
	{ .group = GROUP_PARSER, .text = "  symbols put off, as reading them took too much time: {}",
	  .when = { C(PARSER_deferred) }, .values = { C(PARSER_deferred) } },
	{ .group = GROUP_RELABEL, .text = "  rule `{label}': matched {} times, left out {} samples",
	  .values = { C(RELABEL_matched), C(RELABEL_samples_left_out) } },
	{ .group = GROUP_UNWIND,
	  .text = "  unwind tables: {}, {} rows, {} bytes; {} compiled in {} ms, {} failed, {} deferred, "
		  "{} evicted, {} refused",
	  .values = { C(UNWIND_tables), C(UNWIND_rows), C(UNWIND_bytes), C(UNWIND_compiled),
		      C(UNWIND_compile_nano), C(UNWIND_failed), C(UNWIND_deferred), C(UNWIND_evicted),
		      C(UNWIND_refused) } },
	{ .group = GROUP_UNWIND, .text = "  last unwind table that failed: {fact}",
	  .fact = FACT_UNWIND_last_failed },
	{ .group = GROUP_UNWIND, .text = STATUS_NO_TABLE "{}; the last: {fact}",
	  .when = { C(UNWIND_refused_files) }, .fact = FACT_UNWIND_last_refused,
	  .values = { C(UNWIND_refused_files) } },
	{ .group = GROUP_UNWIND, .text = "  mapping lists: {} loaded, {} pending, {} refused",
	  .values = { C(UNWIND_lists), C(UNWIND_lists_pending), C(UNWIND_lists_refused) } },
	{ .group = GROUP_UNWIND, .text = "  stacks by frame pointers alone, for want of a list: {}",
	  .values = { C(UNWIND_no_mappings) } },
	{ .group = GROUP_UNWIND,
	  .text = "  stacks by frame pointers that may lack a frame (guessed): {}",
	  .values = { C(UNWIND_guessed) } },
	{ .group = GROUP_UNWIND,
	  .text = "  deferred unwinding: {}, of them complete {}; refused {}, expired {}, failed {}, waiting {}",
	  .when = { C(UNWIND_has_deferred) },
	  .values = { C(UNWIND_deferred_unwound), C(UNWIND_deferred_complete), C(UNWIND_deferred_refused),
		      C(UNWIND_deferred_expired), C(UNWIND_deferred_failed), C(UNWIND_deferred_waiting) } },
	{ .group = GROUP_UNWIND,
	  .text = "  stacks cut by an absent page: {}; {} pages brought in, {} failed, {} refused",
	  .when = { C(UNWIND_pages_wanted) },
	  .values = { C(UNWIND_pages_wanted), C(UNWIND_pages_read), C(UNWIND_pages_failed),
		      C(UNWIND_pages_refused) } },
};

static const struct status_line export_lines[] = {
	{ .group = GROUP_EXPORTER, .text = ": {} payloads sent, {} stored, {} waiting, {} dropped, {} retries",
	  .values = { C(EXPORTER_payloads_sent), C(EXPORTER_payloads_stored), C(EXPORTER_payloads_waiting),
		      C(EXPORTER_payloads_dropped), C(EXPORTER_retries) } },
	{ .group = GROUP_EXPORTER,
	  .text = "  not confirmed, as the response was not OTLP: {} payloads with {} samples, not sent again",
	  .when = { C(EXPORTER_payloads_unconfirmed) },
	  .values = { C(EXPORTER_payloads_unconfirmed), C(EXPORTER_samples_unconfirmed) } },
	{ .group = GROUP_DESTINATION,
	  .text = "  to {label}, {fact}: {} payloads sent, {} waiting, {} dropped, {} retries",
	  .fact = FACT_DESTINATION_endpoint,
	  .values = { C(DESTINATION_payloads_sent), C(DESTINATION_payloads_waiting),
		      C(DESTINATION_payloads_dropped), C(DESTINATION_retries) } },
	{ .group = GROUP_DESTINATION, .text = STATUS_RECEIVER_ERROR "{label}: {fact}",
	  .fact = FACT_DESTINATION_last_error },
	{ .group = GROUP_DESTINATION, .text = "  the spool of {label} takes nothing: {fact}",
	  .fact = FACT_DESTINATION_spool_error },
	{ .group = GROUP_SPOOL,
	  .text = "  spool {fact}: {} payloads with {} samples waiting, {} bytes",
	  .fact = FACT_SPOOL_directory,
	  .values = { C(SPOOL_payloads_waiting), C(SPOOL_samples_waiting), C(SPOOL_bytes) } },
	{ .group = GROUP_SPOOL,
	  .text = "  dropped from the spool: {} payloads as it was full, {} as they were too old",
	  .when = { C(SPOOL_full_payloads), C(SPOOL_old_payloads) },
	  .values = { C(SPOOL_full_payloads), C(SPOOL_old_payloads) } },
	{ .group = GROUP_SPOOL, .text = "  damaged in the spool: {} payloads, {} bytes",
	  .when = { C(SPOOL_damaged_payloads) },
	  .values = { C(SPOOL_damaged_payloads), C(SPOOL_damaged_bytes) } },
	{ .group = GROUP_SPOOL, .text = "  the spool takes nothing: {fact}", .fact = FACT_SPOOL_error },
	{ .group = GROUP_JOURNAL,
	  .text = "  journal: {} parts of windows with {} samples, {} bytes, in {} ms of CPU; {} parts with {} samples not written",
	  .when = { C(JOURNAL_parts), C(JOURNAL_parts_refused) },
	  .values = { C(JOURNAL_parts), C(JOURNAL_samples), C(JOURNAL_bytes), C(JOURNAL_cpu_ns),
		      C(JOURNAL_parts_refused), C(JOURNAL_samples_refused) } },
	{ .group = GROUP_JOURNAL, .text = "  of a daemon that was killed: {} samples recovered from its journal",
	  .when = { C(JOURNAL_recovered) }, .values = { C(JOURNAL_recovered) } },
	{ .group = GROUP_JOURNAL,
	  .text = "  lost from the journal of a daemon that was killed: {} bytes damaged, cut off or too much for memory, {} files of another version",
	  .when = { C(JOURNAL_damaged_bytes), C(JOURNAL_other_version) },
	  .values = { C(JOURNAL_damaged_bytes), C(JOURNAL_other_version) } },
	{ .group = GROUP_JOURNAL,
	  .text = "  journal of a daemon that was killed: {} files not copied to another destination's spool",
	  .when = { C(JOURNAL_copies_failed) }, .values = { C(JOURNAL_copies_failed) } },
	{ .group = GROUP_EXPORTER, .text = STATUS_EXPORT_ERROR "{fact}", .fact = FACT_EXPORTER_last_error },
	{ .group = GROUP_METRICS, .text = "  metrics at {fact}: {} requests, {} refused",
	  .fact = FACT_METRICS_address, .values = { C(METRICS_requests), C(METRICS_requests_refused) } },
	{ .group = GROUP_METRICS, .text = "  metrics are not served: {fact}", .fact = FACT_METRICS_error },
	{ .group = GROUP_PUSH, .text = "  metrics pushed to {fact}: {} requests accepted, {} failed",
	  .fact = FACT_PUSH_endpoint, .values = { C(PUSH_sent), C(PUSH_failed) } },
	{ .group = GROUP_PUSH, .text = "  last error of pushing metrics: {fact}", .fact = FACT_PUSH_last_error },
	{ .group = GROUP_PUSH, .text = "  metrics are not pushed: {fact}", .fact = FACT_PUSH_error },
	{ .group = GROUP_SERVE, .text = "  on-demand profiles at {fact}: {} requests, {} refused",
	  .fact = FACT_SERVE_address, .values = { C(SERVE_requests), C(SERVE_requests_refused) } },
	{ .group = GROUP_SERVE, .text = "  died or took too long: {} requests for the store or for a session of their own",
	  .when = { C(SERVE_views_failed) }, .values = { C(SERVE_views_failed) } },
	{ .group = GROUP_SERVE, .text = "  no on-demand profiles: {fact}", .fact = FACT_SERVE_error },
};

#undef C

static bool is_wanted(const struct status_line *line, const struct snapshot *snapshot, unsigned int instance)
{
	if (line->when[0] == COUNTER_NONE)
		return line->fact == FACT_NONE || snapshot_fact(snapshot, line->fact, instance);
	for (size_t i = 0; i < ARRAY_SIZE(line->when) && line->when[i] != COUNTER_NONE; i++)
		if (snapshot_counter(snapshot, line->when[i], instance))
			return true;
	return false;
}

static void print_value(FILE *stream, const struct snapshot *snapshot, enum counter_id id,
			unsigned int instance, bool is_share)
{
	uint64_t value = snapshot_counter(snapshot, id, instance);

	if (is_share)
		fprintf(stream, "%.1f", 100.0 * (double)value /
			(double)snapshot_counter(snapshot, COUNTER_WINDOWS_samples, 0));
	else
		fprintf(stream, "%" PRIu64, strcmp(counters[id].unit, "ns") ? value :
						(uint64_t)(value / NSEC_PER_MSEC));
}

static void print_line(FILE *stream, const struct status_line *line, const struct snapshot *snapshot,
		       unsigned int instance)
{
	const enum counter_id *id = line->values;
	const char *text = line->text;
	size_t length;

	while (length = strcspn(text, "{"), text[length]) {
		const char *place = text + length;

		fprintf(stream, "%.*s", (int)length, text);
		if (!strncmp(place, "{fact}", strlen("{fact}")))
			fputs(snapshot_fact(snapshot, line->fact, instance) ?: "", stream);
		else if (!strncmp(place, "{label}", strlen("{label}")))
			fputs(snapshot_label(snapshot, line->group, instance), stream);
		else
			print_value(stream, snapshot, *id++, instance, place[1] == '%');
		text = strchr(place, '}') + 1;
	}
	fprintf(stream, "%s\n", text);
}

static void print_lines(FILE *stream, const struct status_line *some, size_t count,
			const struct snapshot *snapshot)
{
	for (size_t i = 0; i < count; i++) {
		if (!snapshot_has(snapshot, some[i].group))
			continue;
		for (unsigned int k = 0; k < snapshot_instances(snapshot, some[i].group); k++)
			if (is_wanted(&some[i], snapshot, k))
				print_line(stream, &some[i], snapshot, k);
	}
}

void status_print_pools(FILE *stream)
{
	fprintf(stream, "  %-10s %12s %12s %12s %8s\n", "POOL", "USED", "PEAK", "LIMIT", "REFUSED");
	for (int id = 0; id < POOL_COUNT; id++) {
		const struct pool *pool = pool_get((enum pool_id)id);

		fprintf(stream, "  %-10s %12zu %12zu %12zu %8" PRIu64 "\n", pool->name, pool->used,
			pool->peak, pool->limit, pool->refused);
	}
}

void status_print_daemon_text(FILE *stream, const struct snapshot *snapshot)
{
	print_lines(stream, lines, ARRAY_SIZE(lines), snapshot);
	if (snapshot->destination_count > 1)
		fprintf(stream, "  export to %zu receivers", snapshot->destination_count);
	else
		fprintf(stream, "  export to %s", snapshot->endpoint ?: snapshot->store ?: "nowhere");
	print_lines(stream, export_lines, ARRAY_SIZE(export_lines), snapshot);
	status_print_pools(stream);
}
