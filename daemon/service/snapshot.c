// SPDX-License-Identifier: Apache-2.0
#include "service/snapshot.h"

#include "base/pool.h"
#include "client/name.h"
#include "export/otlp_signal.h"

#include <stacktap/version.h>

static const struct pipeline_stats no_pipeline;

bool snapshot_has(const struct snapshot *snapshot, enum counter_group group)
{
	switch (group) {
	case GROUP_DAEMON:
	case GROUP_EXPORTER:
	case GROUP_JOURNAL:
	case GROUP_RELABEL:
	case GROUP_POOL:
	case GROUP_COUNT:
		return true;
	case GROUP_DESTINATION:
		return snapshot->destination_count > 1;
	case GROUP_SPOOL:
		return snapshot->spool;
	case GROUP_METRICS:
		return snapshot->metrics || snapshot->metrics_error;
	case GROUP_PUSH:
		return snapshot->push.endpoint || snapshot->push.error;
	case GROUP_SERVE:
		return snapshot->serve.address || snapshot->serve.error;
	case GROUP_UNWIND:
		return snapshot->pipeline && snapshot->pipeline->has_tables;
	case GROUP_MODULE:
		return snapshot->cpu_count;
	case GROUP_DEBUGINFOD:
		return snapshot->pipeline && snapshot->pipeline->symbolizer.fetched.is_on;
	case GROUP_CAPTURE:
	case GROUP_WINDOWS:
	case GROUP_STACKS:
	case GROUP_SYMBOLIZER:
	case GROUP_NAMED_BY:
	case GROUP_LINES:
	case GROUP_JIT:
	case GROUP_HELPER:
	case GROUP_OPENER:
	case GROUP_PARSER:
	case GROUP_THREAD:
		break;
	}
	return snapshot->pipeline;
}

unsigned int snapshot_instances(const struct snapshot *snapshot, enum counter_group group)
{
	switch (group) {
	case GROUP_STACKS:
		return STACKTAP_END_REASONS;
	case GROUP_NAMED_BY:
		return SOURCES;
	case GROUP_HELPER:
		return snapshot_has(snapshot, GROUP_DEBUGINFOD) ? 3 : 2;
	case GROUP_RELABEL:
		return (unsigned int)relabel_rules(snapshot->relabel);
	case GROUP_DESTINATION:
		return (unsigned int)snapshot->destination_count;
	case GROUP_POOL:
		return POOL_COUNT;
	case GROUP_MODULE:
		return (unsigned int)snapshot->cpu_count;
	case GROUP_THREAD:
		return PIPELINE_THREADS;
	default:
		return 1;
	}
}

static const char *const helpers[] = { "opener", "parser", "fetcher" };

const char *snapshot_label(const struct snapshot *snapshot, enum counter_group group, unsigned int instance)
{
	switch (group) {
	case GROUP_STACKS:
		return name_of_end(instance);
	case GROUP_NAMED_BY:
		return source_names[instance];
	case GROUP_HELPER:
		return helpers[instance];
	case GROUP_RELABEL:
		return relabel_text(snapshot->relabel, instance);
	case GROUP_DESTINATION:
		return snapshot->destinations[instance].name;
	case GROUP_POOL:
		return pool_get((enum pool_id)instance)->name;
	case GROUP_MODULE:
		return snapshot->cpus[instance].name;
	case GROUP_THREAD:
		return pipeline_thread_names[instance];
	default:
		return NULL;
	}
}

/* The names that the rows' values are made of. */
uint64_t snapshot_counter(const struct snapshot *snapshot, enum counter_id id, unsigned int i)
{
	const struct pipeline_stats *pipeline = snapshot->pipeline ?: &no_pipeline;
	const struct window_counts *counts = &pipeline->counts;
	const struct symbolizer_stats *symbolizer = &pipeline->symbolizer;
	const struct jit_stats *jit = &symbolizer->jit;
	const struct opener_stats *opener = &symbolizer->opener;
	const struct parser_stats *parser = &symbolizer->parser;
	const struct fetched_stats *fetched = &symbolizer->fetched;
	const struct helper_stats *helper = i == 2 ? &fetched->helper :
					    i ? &parser->helper : &opener->helper;
	const struct loader_stats *loader = &pipeline->loader;
	const struct tables_stats *tables = &loader->tables;
	const struct deferred_stats *deferred = &pipeline->drain.deferred;
	const struct absent_stats *absent = &pipeline->absent;
	const struct destination_stats *exporter = &snapshot->exporter->sum;
	const struct store_stats *spool = &exporter->spool;
	const struct destination_stats *destination = &snapshot->exporter->destinations[i % EXPORTER_DESTINATIONS];

	switch (id) {
#define COUNTER(group, name, kind, unit, value, meaning) \
	case COUNTER_##group##_##name: { \
		const struct pool *pool _unused_ = pool_get(GROUP_##group == GROUP_POOL ? i : 0); \
		const struct module_cpu *cpu _unused_ = \
			GROUP_##group == GROUP_MODULE ? &snapshot->cpus[i] : NULL; \
		return value; \
	}
#include "counter/counters.def"
	case COUNTER_NONE:
	case COUNTER_COUNT:
		break;
	}
	return 0;
}

/* The pipeline counts what it did not write of it, the process what its stores found, the exporter the rest. */
static uint64_t journal_generation(const struct snapshot *snapshot, enum counter_id id)
{
	switch (id) {
	case COUNTER_JOURNAL_parts_refused:
	case COUNTER_JOURNAL_samples_refused:
	case COUNTER_JOURNAL_cpu_ns:
		return snapshot->session_id;
	case COUNTER_JOURNAL_recovered:
	case COUNTER_JOURNAL_damaged_bytes:
	case COUNTER_JOURNAL_other_version:
	case COUNTER_JOURNAL_copies_failed:
		return 0;
	default:
		return snapshot->exporters;
	}
}

uint64_t snapshot_generation(const struct snapshot *snapshot, enum counter_id id)
{
	switch (counters[id].group) {
	case GROUP_DAEMON:
	case GROUP_POOL:
	case GROUP_METRICS:
	case GROUP_SERVE:
		return 0;
	case GROUP_PUSH:
		return snapshot->reloads;
	case GROUP_EXPORTER:
	case GROUP_DESTINATION:
	case GROUP_SPOOL:
		return snapshot->exporters;
	case GROUP_JOURNAL:
		return journal_generation(snapshot, id);
	default:
		return snapshot->session_id;
	}
}

const char *snapshot_fact(const struct snapshot *snapshot, enum fact_id id, unsigned int i)
{
	const struct pipeline_stats *pipeline = snapshot->pipeline ?: &no_pipeline;
	const struct opener_stats *opener = &pipeline->symbolizer.opener;
	const struct parser_stats *parser = &pipeline->symbolizer.parser;
	const struct fetched_stats *fetched = &pipeline->symbolizer.fetched;
	const struct tables_stats *tables = &pipeline->loader.tables;
	const struct destination_stats *exporter = &snapshot->exporter->sum;
	const struct destination_stats *destination = &snapshot->exporter->destinations[i % EXPORTER_DESTINATIONS];
	const char *text = NULL;

	switch (id) {
#define FACT(group, name, value, meaning) \
	case FACT_##group##_##name: \
		text = value; \
		break;
#include "counter/counters.def"
	case FACT_NONE:
	case FACT_COUNT:
		break;
	}
	return text && *text ? text : NULL;
}
