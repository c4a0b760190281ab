// SPDX-License-Identifier: Apache-2.0
#include "service/statusfile.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/pool.h"

#include <stacktap/version.h>

enum { MAX_FILE_BYTES = 1 << 20 };

struct statusfile {
	int directory;
	int lock;
	uint64_t started;	/* CLOCK_MONOTONIC ns */
};

/* Locks of the open file: they end with the daemon, however it ends. */
static struct flock whole_file(void)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET };
}

int statusfile_open(const char *directory, struct statusfile **ret_file)
{
	_cleanup_close_ int directory_fd = -1, lock = -1;
	struct flock whole = whole_file();
	struct statusfile *file;

	if (mkdir(directory, 0755) < 0 && errno != EEXIST)
		return -errno;
	directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory_fd < 0)
		return -errno;
	/* for root alone: whoever can open it could lock it, and so keep the daemon from starting */
	lock = openat(directory_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (lock < 0)
		return -errno;
	if (fcntl(lock, F_OFD_SETLK, &whole) < 0)
		return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
	file = malloc(sizeof(*file));
	if (!file)
		return -ENOMEM;
	*file = (struct statusfile){
		.directory = steal_fd(&directory_fd),
		.lock = steal_fd(&lock),
		.started = clock_monotonic(),
	};
	*ret_file = file;
	return 0;
}

void statusfile_close(struct statusfile *file)
{
	if (!file)
		return;
	unlinkat(file->directory, "status", 0);
	unlinkat(file->directory, "status.json", 0);
	/* the lock file stays: removing it would let two daemons lock two files of one name */
	close(file->lock);
	close(file->directory);
	free(file);
}

void statusfile_print_pools(FILE *stream)
{
	fprintf(stream, "  %-10s %12s %12s %12s %8s\n", "POOL", "USED", "PEAK", "LIMIT", "REFUSED");
	for (int id = 0; id < POOL_COUNT; id++) {
		const struct pool *pool = pool_get((enum pool_id)id);

		fprintf(stream, "  %-10s %12zu %12zu %12zu %8" PRIu64 "\n", pool->name, pool->used,
			pool->peak, pool->limit, pool->refused);
	}
}

static void print_deferred(FILE *stream, const struct pipeline_stats *pipeline)
{
	const struct deferred_stats *deferred = &pipeline->deferred;

	fprintf(stream, "  stacks by frame pointers alone, for want of a list: %" PRIu64 "\n",
		pipeline->counts.user_end[STACKTAP_END_NO_MAPPINGS]);
	fprintf(stream, "  stacks by frame pointers that may lack a frame (guessed): %" PRIu64 "\n",
		pipeline->counts.user_end[STACKTAP_END_GUESSED]);
	if (pipeline->has_deferred)
		fprintf(stream, "  deferred unwinding: %" PRIu64 ", of them complete %" PRIu64 "; refused %"
			PRIu64 ", expired %" PRIu64 ", failed %" PRIu64 ", waiting %" PRIu64 "\n",
			deferred->unwound, deferred->complete, deferred->refused,
			deferred->expired, deferred->failed, deferred->waiting);
}

static void print_absent(FILE *stream, const struct pipeline_stats *pipeline)
{
	const struct absent_stats *absent = &pipeline->absent;

	if (absent->wanted)
		fprintf(stream, "  stacks cut by an absent page: %" PRIu64 "; %" PRIu64
			" pages brought in, %" PRIu64 " failed, %" PRIu64 " refused\n",
			absent->wanted, absent->pages, absent->failed, absent->refused);
}

static void print_helper(FILE *stream, const char *name, const struct helper_stats *helper)
{
	if (!helper->deaths && !helper->timeouts && !helper->abandoned)
		return;
	fprintf(stream, "  %s: started %" PRIu64 " times, %" PRIu64 " crashes, %" PRIu64
		" killed for not answering, %u of them cannot die yet\n", name, helper->starts,
		helper->deaths, helper->timeouts, helper->abandoned);
}

static void print_lines(FILE *stream, const struct lines_stats *lines)
{
	if (lines->with_lines || lines->put_off || lines->without)
		fprintf(stream, "  source lines: %" PRIu64 " frames, %" PRIu64 " put off, %" PRIu64
			" files have none\n", lines->with_lines, lines->put_off, lines->without);
}

static void print_jit(FILE *stream, const struct jit_stats *jit)
{
	if (jit->processes)
		fprintf(stream, "  perf maps and jitdumps: of %" PRIu64 " processes, %" PRIu64
			" functions in %" PRIu64 " bytes, %" PRIu64 " dropped for want of memory, %" PRIu64
			" bad lines\n",
			jit->processes, jit->functions, jit->bytes, jit->dropped, jit->bad_entries);
	if (jit->refused_files)
		fprintf(stream, "  perf maps and jitdumps that are refused: %" PRIu64 "\n",
			jit->refused_files);
}

/* Nothing while all is well. */
static void print_helpers(FILE *stream, const struct symbolizer_stats *symbolizer)
{
	const struct opener_stats *opener = &symbolizer->opener;
	const struct parser_stats *parser = &symbolizer->parser;

	print_helper(stream, "opener", &opener->helper);
	if (opener->last_quarantined[0])
		fprintf(stream, "  file systems that do not answer: %" PRIu64
			" left alone; the last: %s\n", opener->quarantined,
			opener->last_quarantined);
	print_helper(stream, "parser", &parser->helper);
	if (parser->set_apart)
		fprintf(stream, "  files that are not read any more: %" PRIu64 "; the last: %s\n",
			parser->set_apart, parser->last_set_apart);
	if (parser->deferred)
		fprintf(stream, "  symbols put off, as reading them took too much time: %" PRIu64 "\n",
			parser->deferred);
}

static void print_spool(FILE *stream, const char *directory, const struct exporter_stats *exporter)
{
	const struct store_stats *spool = &exporter->spool;

	fprintf(stream, "  spool %s: %" PRIu64 " payloads with %" PRIu64 " samples waiting, %" PRIu64
		" bytes\n", directory, spool->messages, spool->samples, spool->bytes);
	if (spool->full_messages || spool->old_messages)
		fprintf(stream, "  dropped from the spool: %" PRIu64 " payloads as it was full, %" PRIu64
			" as they were too old\n", spool->full_messages, spool->old_messages);
	if (spool->damaged_messages)
		fprintf(stream, "  damaged in the spool: %" PRIu64 " payloads, %" PRIu64 " bytes\n",
			spool->damaged_messages, spool->damaged_bytes);
	if (exporter->spool_error[0])
		fprintf(stream, "  the spool takes nothing: %s\n", exporter->spool_error);
}

static void print_relabel(FILE *stream, const struct relabel *relabel)
{
	for (size_t i = 0; i < relabel_rules(relabel); i++) {
		const struct relabel_count count = relabel_count(relabel, i);

		fprintf(stream, "  rule `%s': matched %" PRIu64 " times, left out %" PRIu64
			" samples\n", relabel_text(relabel, i), count.matched, count.samples);
	}
}

static void json_relabel(struct json *json, const struct relabel *relabel)
{
	json_array(json, "relabel");
	for (size_t i = 0; i < relabel_rules(relabel); i++) {
		const struct relabel_count count = relabel_count(relabel, i);

		json_object(json, NULL);
		json_string(json, "rule", relabel_text(relabel, i));
		json_u64(json, "matched", count.matched);
		json_u64(json, "samples_left_out", count.samples);
		json_end(json);
	}
	json_end(json);
}

static void print_journal(FILE *stream, const struct pipeline_stats *pipeline,
			  const struct journal_stats *journal)
{
	if (!pipeline->parts)
		return;
	fprintf(stream, "  journal: %" PRIu64 " parts of windows with %" PRIu64 " samples, %" PRIu64 " bytes, in %"
		PRIu64 " ms of CPU; %" PRIu64 " parts not written\n", journal->parts, journal->samples,
		journal->bytes, (uint64_t)(pipeline->parts_cpu_ns / NSEC_PER_MSEC),
		pipeline->parts_refused);
}

static void print_text(FILE *stream, const struct statusfile_input *input, uint64_t uptime_s)
{
	const struct pipeline_stats *pipeline = input->pipeline;
	const struct exporter_stats *exporter = input->exporter;

	fprintf(stream, "daemon: stacktapd %s, pid %d, up %" PRIu64 " s\n", STACKTAP_VERSION,
		(int)getpid(), uptime_s);
	if (input->error)
		fprintf(stream, "  not sampling: %s\n", input->error);
	if (pipeline) {
		const struct window_counts *counts = &pipeline->counts;

		fprintf(stream, "  session %" PRIu64 ": %" PRIu64 " samples, %" PRIu64
			" lost, %" PRIu64 " windows, %" PRIu64 " side-band records lost\n",
			input->session_id, counts->samples, counts->lost + pipeline->pending_lost,
			pipeline->windows,
			pipeline->capture.sideband_lost);
		if (pipeline->samples_dropped || pipeline->windows_dropped)
			fprintf(stream, "  not exported for want of memory or disk: %" PRIu64
				" samples, %" PRIu64 " whole windows\n", pipeline->samples_dropped,
				pipeline->windows_dropped);
		if (pipeline->degradations)
			fprintf(stream, "  degraded by a step %" PRIu64 " times, now by %u\n",
				pipeline->degradations, pipeline->degraded);
		if (pipeline->multiplexings)
			fprintf(stream, "  counters multiplexed %" PRIu64 " times, now %u\n",
				pipeline->multiplexings, pipeline->multiplexed);
		if (counts->samples)
			fprintf(stream, "  quality: %.1f %% complete, %.1f %% named, %.1f %% by function "
				"range, %.1f %% stale\n",
				100.0 * (double)counts->complete / (double)counts->samples,
				100.0 * (double)counts->named / (double)counts->samples,
				100.0 * (double)counts->by_range / (double)counts->samples,
				100.0 * (double)counts->stale / (double)counts->samples);
		if (pipeline->symbolizer.names_refused)
			fprintf(stream, "  frames without a name for want of memory: %" PRIu64 "\n",
				pipeline->symbolizer.names_refused);
		if (pipeline->symbolizer.put_off)
			fprintf(stream, "  frames put off to the next window: %" PRIu64 "\n",
				pipeline->symbolizer.put_off);
		print_jit(stream, &pipeline->symbolizer.jit);
		print_lines(stream, &pipeline->symbolizer.lines);
		print_helpers(stream, &pipeline->symbolizer);
	}
	print_relabel(stream, input->relabel);
	if (pipeline && pipeline->has_tables) {
		const struct loader_stats *loader = &pipeline->loader;

		fprintf(stream, "  unwind tables: %" PRIu64 ", %" PRIu64 " rows, %" PRIu64 " bytes; %"
			PRIu64 " compiled in %" PRIu64 " ms, %" PRIu64 " failed, %" PRIu64
			" deferred, %" PRIu64 " evicted, %" PRIu64 " refused\n",
			loader->tables.tables,
			loader->tables.rows, loader->tables.bytes, loader->tables.compiled,
			(uint64_t)(loader->tables.compile_ns / NSEC_PER_MSEC), loader->tables.failed,
			loader->tables.deferred, loader->tables.evicted, loader->tables.refused);
		if (loader->tables.last_failed[0])
			fprintf(stream, "  last unwind table that failed: %s\n",
				loader->tables.last_failed);
		fprintf(stream, "  mapping lists: %" PRIu64 " loaded, %" PRIu64 " pending, %" PRIu64
			" refused\n", loader->lists, loader->pending, loader->lists_refused);
		print_deferred(stream, pipeline);
		print_absent(stream, pipeline);
	}
	fprintf(stream, "  export to %s: %" PRIu64 " payloads sent, %" PRIu64 " stored, %" PRIu64
		" waiting, %" PRIu64 " dropped, %" PRIu64 " retries\n",
		input->endpoint ? input->endpoint : input->store ? input->store : "nowhere",
		exporter->payloads_sent, exporter->payloads_stored, exporter->payloads_waiting,
		exporter->payloads_dropped, exporter->retries);
	if (input->spool)
		print_spool(stream, input->spool, exporter);
	print_journal(stream, pipeline, &exporter->journal);
	if (exporter->last_error[0])
		fprintf(stream, "  last export error: %s\n", exporter->last_error);
	statusfile_print_pools(stream);
}

static void json_helper(struct json *json, const struct helper_stats *helper)
{
	json_u64(json, "pid", (uint64_t)helper->pid);
	json_bool(json, "confined", helper->is_confined);
	json_u64(json, "resident_bytes", helper->resident);
	json_u64(json, "questions", helper->calls);
	json_u64(json, "starts", helper->starts);
	json_u64(json, "crashes", helper->deaths);
	json_u64(json, "timeouts", helper->timeouts);
	json_u64(json, "abandoned", helper->abandoned);
}

static void print_json_helpers(struct json *json, const struct symbolizer_stats *symbolizer)
{
	const struct opener_stats *opener = &symbolizer->opener;
	const struct parser_stats *parser = &symbolizer->parser;

	json_object(json, "opener");
	json_helper(json, &opener->helper);
	json_u64(json, "quarantined", opener->quarantined);
	json_u64(json, "left_alone", opener->left_alone);
	json_string(json, "last_quarantined",
		    opener->last_quarantined[0] ? opener->last_quarantined : NULL);
	json_end(json);
	json_object(json, "parser");
	json_helper(json, &parser->helper);
	json_u64(json, "set_apart", parser->set_apart);
	json_u64(json, "deferred", parser->deferred);
	json_string(json, "last_set_apart",
		    parser->last_set_apart[0] ? parser->last_set_apart : NULL);
	json_end(json);
}

static void print_capture(struct json *json, const struct pipeline_stats *pipeline)
{
	const struct capture_stats *capture = &pipeline->capture;
	const struct symbolizer_stats *symbolizer = &pipeline->symbolizer;
	const struct window_counts *counts = &pipeline->counts;

	json_object(json, "capture");
	json_u64(json, "records", capture->records);
	json_u64(json, "samples", capture->samples);
	json_u64(json, "bytes", capture->bytes);
	json_u64(json, "bad_records", capture->bad_records);
	json_u64(json, "sideband_records", capture->sideband_records);
	json_u64(json, "sideband_lost", capture->sideband_lost);
	json_u64(json, "cpus", capture->cpus);
	json_end(json);

	json_object(json, "windows");
	json_u64(json, "windows", pipeline->windows);
	json_u64(json, "windows_dropped", pipeline->windows_dropped);
	json_u64(json, "samples_dropped", pipeline->samples_dropped);
	json_u64(json, "payloads", pipeline->payloads);
	json_u64(json, "scans", pipeline->scans);
	json_u64(json, "doubts", pipeline->doubts);
	json_u64(json, "degradations", pipeline->degradations);
	json_u64(json, "degraded", pipeline->degraded);
	json_u64(json, "multiplexings", pipeline->multiplexings);
	json_u64(json, "multiplexed", pipeline->multiplexed);
	json_u64(json, "samples", counts->samples);
	json_u64(json, "complete", counts->complete);
	json_u64(json, "named", counts->named);
	json_u64(json, "by_range", counts->by_range);
	json_u64(json, "lost", counts->lost + pipeline->pending_lost);
	json_u64(json, "stale", counts->stale);
	json_u64(json, "moved", counts->moved);
	json_u64(json, "throttled", counts->throttled + pipeline->pending_throttled);
	json_u64(json, "stalled", counts->stalled + pipeline->pending_stalled);
	json_u64(json, "missed", counts->missed + pipeline->pending_missed);
	json_end(json);

	json_object(json, "symbolizer");
	json_u64(json, "objects", symbolizer->objects);
	json_u64(json, "objects_gone", symbolizer->objects_gone);
	json_u64(json, "objects_not_elf", symbolizer->objects_not_elf);
	json_u64(json, "debug_files", symbolizer->debug_files);
	json_u64(json, "lookups", symbolizer->lookups);
	json_u64(json, "named", symbolizer->named);
	json_u64(json, "evicted", symbolizer->evicted);
	json_u64(json, "names_refused", symbolizer->names_refused);
	json_u64(json, "put_off", symbolizer->put_off);
	json_object(json, "lines");
	json_u64(json, "frames", symbolizer->lines.with_lines);
	json_u64(json, "put_off", symbolizer->lines.put_off);
	json_u64(json, "files_without", symbolizer->lines.without);
	json_end(json);
	json_object(json, "jit");
	json_u64(json, "processes", symbolizer->jit.processes);
	json_u64(json, "functions", symbolizer->jit.functions);
	json_u64(json, "bytes", symbolizer->jit.bytes);
	json_u64(json, "dropped", symbolizer->jit.dropped);
	json_u64(json, "bad_entries", symbolizer->jit.bad_entries);
	json_u64(json, "refused_files", symbolizer->jit.refused_files);
	json_end(json);
	json_u64(json, "busy_nano", pipeline->names_busy_ns);
	json_end(json);
	print_json_helpers(json, symbolizer);
}

static void print_unwind(struct json *json, const struct pipeline_stats *pipeline)
{
	const struct loader_stats *loader = &pipeline->loader;
	const struct tables_stats *tables = &loader->tables;
	const struct deferred_stats *deferred = &pipeline->deferred;
	const struct absent_stats *absent = &pipeline->absent;

	json_object(json, "unwind");
	json_u64(json, "tables", tables->tables);
	json_u64(json, "rows", tables->rows);
	json_u64(json, "bytes", tables->bytes);
	json_u64(json, "compiled", tables->compiled);
	json_u64(json, "compile_nano", tables->compile_ns);
	json_u64(json, "failed", tables->failed);
	json_string(json, "last_failed", tables->last_failed[0] ? tables->last_failed : NULL);
	json_u64(json, "deferred", tables->deferred);
	json_u64(json, "evicted", tables->evicted);
	json_u64(json, "refused", tables->refused);
	json_u64(json, "lists", loader->lists);
	json_u64(json, "lists_gone", loader->lists_gone);
	json_u64(json, "lists_refused", loader->lists_refused);
	json_u64(json, "lists_pending", loader->pending);
	json_u64(json, "kept", tables->kept);
	json_u64(json, "kept_bytes", tables->kept_bytes);
	json_u64(json, "guessed", pipeline->counts.user_end[STACKTAP_END_GUESSED]);
	json_u64(json, "no_mappings", pipeline->counts.user_end[STACKTAP_END_NO_MAPPINGS]);
	json_bool(json, "has_deferred", pipeline->has_deferred);
	json_u64(json, "deferred_taken", deferred->taken);
	json_u64(json, "deferred_unwound", deferred->unwound);
	json_u64(json, "deferred_complete", deferred->complete);
	json_u64(json, "deferred_refused", deferred->refused);
	json_u64(json, "deferred_expired", deferred->expired);
	json_u64(json, "deferred_failed", deferred->failed);
	json_u64(json, "deferred_waiting", deferred->waiting);
	json_u64(json, "unreadable", pipeline->counts.user_end[STACKTAP_END_UNREADABLE]);
	json_u64(json, "pages_wanted", absent->wanted);
	json_u64(json, "pages_read", absent->pages);
	json_u64(json, "pages_failed", absent->failed);
	json_u64(json, "pages_refused", absent->refused);
	json_end(json);
}

static void json_spool(struct json *json, const char *directory,
		       const struct exporter_stats *exporter)
{
	const struct store_stats *spool = &exporter->spool;

	json_object(json, "spool");
	json_string(json, "directory", directory);
	json_u64(json, "payloads_waiting", spool->messages);
	json_u64(json, "samples_waiting", spool->samples);
	json_u64(json, "bytes", spool->bytes);
	json_u64(json, "files", spool->files);
	json_u64(json, "full_payloads", spool->full_messages);
	json_u64(json, "full_samples", spool->full_samples);
	json_u64(json, "old_payloads", spool->old_messages);
	json_u64(json, "old_samples", spool->old_samples);
	json_u64(json, "damaged_payloads", spool->damaged_messages);
	json_u64(json, "damaged_samples", spool->damaged_samples);
	json_u64(json, "damaged_bytes", spool->damaged_bytes);
	json_string(json, "error", exporter->spool_error[0] ? exporter->spool_error : NULL);
	json_end(json);
}

static void json_journal(struct json *json, const struct pipeline_stats *pipeline,
			 const struct journal_stats *journal)
{
	json_object(json, "journal");
	json_u64(json, "parts", journal->parts);
	json_u64(json, "samples", journal->samples);
	json_u64(json, "bytes", journal->bytes);
	json_u64(json, "parts_refused", pipeline->parts_refused);
	json_u64(json, "cpu_ns", pipeline->parts_cpu_ns);
	json_end(json);
}

static void print_exporter(struct json *json, const struct statusfile_input *input)
{
	const struct exporter_stats *exporter = input->exporter;

	json_object(json, "exporter");
	json_string(json, "endpoint", input->endpoint);
	json_string(json, "store", input->store);
	json_u64(json, "payloads_sent", exporter->payloads_sent);
	json_u64(json, "payloads_dropped", exporter->payloads_dropped);
	json_u64(json, "payloads_stored", exporter->payloads_stored);
	json_u64(json, "payloads_waiting", exporter->payloads_waiting);
	json_u64(json, "samples_sent", exporter->samples_sent);
	json_u64(json, "samples_dropped", exporter->samples_dropped);
	json_u64(json, "samples_waiting", exporter->samples_waiting);
	json_u64(json, "bytes_raw", exporter->bytes_raw);
	json_u64(json, "bytes_sent", exporter->bytes_sent);
	json_u64(json, "retries", exporter->retries);
	json_u64(json, "throttled", exporter->throttled);
	json_u64(json, "partial_rejected", exporter->partial_rejected);
	json_u64(json, "partial_warnings", exporter->partial_warnings);
	json_u64(json, "bad_responses", exporter->bad_responses);
	json_u64(json, "connections", exporter->connections);
	json_string(json, "last_error", exporter->last_error[0] ? exporter->last_error : NULL);
	if (input->spool)
		json_spool(json, input->spool, exporter);
	json_journal(json, input->pipeline, &exporter->journal);
	json_end(json);
}

static void print_json(FILE *stream, const struct statusfile_input *input, uint64_t uptime_s)
{
	struct json json;

	json_init(&json, stream);
	json_object(&json, NULL);
	json_string(&json, "version", STACKTAP_VERSION);
	json_u64(&json, "pid", (uint64_t)getpid());
	json_u64(&json, "uptime_seconds", uptime_s);
	json_u64(&json, "session", input->session_id);
	json_string(&json, "error", input->error);
	if (input->pipeline)
		print_capture(&json, input->pipeline);
	if (input->pipeline && input->pipeline->has_tables)
		print_unwind(&json, input->pipeline);
	json_relabel(&json, input->relabel);
	print_exporter(&json, input);
	json_array(&json, "pools");
	for (int id = 0; id < POOL_COUNT; id++) {
		const struct pool *pool = pool_get((enum pool_id)id);

		json_object(&json, NULL);
		json_string(&json, "name", pool->name);
		json_u64(&json, "used", pool->used);
		json_u64(&json, "peak", pool->peak);
		json_u64(&json, "limit", pool->limit);
		json_u64(&json, "refused", pool->refused);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
}

/* Readers see the old file or the new one, never half of it. */
static int replace(struct statusfile *file, const char *name, const struct statusfile_input *input,
		   void (*print)(FILE *stream, const struct statusfile_input *input,
				 uint64_t uptime_s))
{
	_cleanup_fclose_ FILE *stream = NULL;
	char temporary[32];
	int fd;

	snprintf(temporary, sizeof(temporary), ".%s.new", name);
	fd = openat(file->directory, temporary,
		    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	stream = fdopen(fd, "w");
	if (!stream) {
		close(fd);
		return -ENOMEM;
	}
	print(stream, input, (clock_monotonic() - file->started) / NSEC_PER_SEC);
	if (fflush(stream) == EOF || ferror(stream)) {
		int error = errno;

		unlinkat(file->directory, temporary, 0);
		return -error;
	}
	return renameat(file->directory, temporary, file->directory, name) < 0 ? -errno : 0;
}

int statusfile_write(struct statusfile *file, const struct statusfile_input *input)
{
	int ret = replace(file, "status", input, print_text);

	return ret < 0 ? ret : replace(file, "status.json", input, print_json);
}

int statusfile_read(const char *directory, char **ret_text, char **ret_json, size_t *ret_json_size)
{
	_cleanup_free_ char *text = NULL, *json = NULL;
	_cleanup_close_ int directory_fd = -1, lock = -1;
	struct flock whole = whole_file();
	struct stat stat;
	size_t size = 0;
	int ret;

	*ret_text = *ret_json = NULL;
	*ret_json_size = 0;
	directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (directory_fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(directory_fd, &stat) < 0)
		return -errno;
	if (stat.st_uid != 0 && stat.st_uid != geteuid())
		return -EPERM;
	lock = openat(directory_fd, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (lock < 0)
		return errno == ENOENT ? 0 : -errno;
	/* asks without locking, so that a daemon that starts right now is not refused */
	if (fcntl(lock, F_OFD_GETLK, &whole) < 0)
		return -errno;
	if (whole.l_type == F_UNLCK)
		return 0;
	ret = file_read(directory_fd, "status", MAX_FILE_BYTES, &text, NULL);
	if (!ret)
		ret = file_read(directory_fd, "status.json", MAX_FILE_BYTES, &json, &size);
	/* it has started and not written yet */
	if (ret == -ENOENT)
		return 0;
	if (ret)
		return ret;
	*ret_text = steal_ptr(text);
	*ret_json_size = strcspn(json, "\n");
	*ret_json = steal_ptr(json);
	return 0;
}
