// SPDX-License-Identifier: Apache-2.0
#include "view/report_tables.h"

#include <string.h>

#include "base/fingerprint.h"

void report_tables_init(struct report_tables *tables)
{
	texts_init(&tables->texts);
	rows_init(&tables->events);
	rows_init(&tables->processes);
	rows_init(&tables->functions);
}

void report_tables_free(struct report_tables *tables)
{
	texts_free(&tables->texts);
	rows_free(&tables->events);
	rows_free(&tables->processes);
	rows_free(&tables->functions);
}

static uint64_t event_hash(const struct report_event *event)
{
	struct fingerprint print = fingerprint_start((uintptr_t)event->source);

	fingerprint_mix(&print, (uintptr_t)event->event, (uintptr_t)event->unit);
	return fingerprint_end(print).lo;
}

static uint64_t event_hash_of(const void *ctx, uint32_t position)
{
	return event_hash((const struct report_event *)ctx + position);
}

int report_event_find(struct report_tables *tables, const struct report_event *key,
		      uint32_t *ret_position)
{
	uint64_t hash = event_hash(key);
	struct index_probe probe = index_first(&tables->events.index, hash);
	const struct report_event *event;
	uint32_t i;

	while ((i = index_next(&tables->events.index, &probe)) != INDEX_NONE) {
		event = report_event_row(tables, i);
		if (event->source != key->source || event->event != key->event ||
		    event->unit != key->unit)
			continue;
		*ret_position = i;
		return 0;
	}
	return rows_add(&tables->events, hash, event_hash_of, key, sizeof(*key), ret_position);
}

static uint64_t process_hash(uint32_t event, const struct report_process *process)
{
	struct fingerprint print = fingerprint_start((uint64_t)event << 32 | process->pid);

	fingerprint_mix(&print, (uintptr_t)process->name, (uintptr_t)process->container_id);
	return fingerprint_end(print).lo;
}

static uint64_t process_hash_of(const void *ctx, uint32_t position)
{
	const struct process_row *row = (const struct process_row *)ctx + position;

	return process_hash(row->event, &row->process);
}

int report_process_find(struct report_tables *tables, uint32_t event,
			const struct report_process *key, uint32_t *ret_position)
{
	uint64_t hash = process_hash(event, key);
	struct index_probe probe = index_first(&tables->processes.index, hash);
	struct process_row row = { .event = event, .process = *key };
	const struct process_row *old;
	uint32_t i;

	while ((i = index_next(&tables->processes.index, &probe)) != INDEX_NONE) {
		old = report_process_row(tables, i);
		if (old->event != event || old->process.pid != key->pid ||
		    old->process.name != key->name ||
		    old->process.container_id != key->container_id)
			continue;
		*ret_position = i;
		return 0;
	}
	return rows_add(&tables->processes, hash, process_hash_of, &row, sizeof(row),
			 ret_position);
}

static uint64_t function_hash(uint32_t process, const struct report_function *function)
{
	struct fingerprint print = fingerprint_start((uint64_t)process << 1 | function->is_kernel);

	fingerprint_mix(&print, (uintptr_t)function->name, (uintptr_t)function->file);
	fingerprint_mix(&print, (uintptr_t)function->source, function->line);
	return fingerprint_end(print).lo;
}

static uint64_t function_hash_of(const void *ctx, uint32_t position)
{
	const struct function_row *row = (const struct function_row *)ctx + position;

	return function_hash(row->process, &row->function);
}

int report_function_find(struct report_tables *tables, uint32_t process,
			 const struct report_function *key, uint32_t *ret_position)
{
	uint64_t hash = function_hash(process, key);
	struct index_probe probe = index_first(&tables->functions.index, hash);
	struct function_row row = { .process = process, .function = *key };
	const struct function_row *old;
	uint32_t i;

	while ((i = index_next(&tables->functions.index, &probe)) != INDEX_NONE) {
		old = report_function_row(tables, i);
		if (old->process != process || old->function.name != key->name ||
		    old->function.file != key->file ||
		    old->function.source != key->source || old->function.line != key->line ||
		    old->function.is_kernel != key->is_kernel)
			continue;
		*ret_position = i;
		return 0;
	}
	return rows_add(&tables->functions, hash, function_hash_of, &row, sizeof(row),
			 ret_position);
}

static int function_order(const void *a, const void *b)
{
	const struct function_row *left = a, *right = b;
	const struct report_function *l = &left->function, *r = &right->function;

	if (left->process != right->process)
		return left->process < right->process ? -1 : 1;
	if (l->self != r->self)
		return l->self > r->self ? -1 : 1;
	if (l->total != r->total)
		return l->total > r->total ? -1 : 1;
	return strcmp(l->name, r->name) ?: (l->line > r->line) - (l->line < r->line);
}

static int process_order(const void *a, const void *b)
{
	const struct process_row *left = a, *right = b;

	if (left->event != right->event)
		return left->event < right->event ? -1 : 1;
	if (left->process.weight != right->process.weight)
		return left->process.weight > right->process.weight ? -1 : 1;
	return (left->process.pid > right->process.pid) - (left->process.pid < right->process.pid);
}

static int event_order(const void *a, const void *b)
{
	const struct report_event *left = a, *right = b;

	return (left->samples < right->samples) - (left->samples > right->samples);
}

int report_tables_finish(struct report_tables *tables, struct report *report)
{
	struct report_function *functions;
	struct report_process *processes;
	struct report_event *events;

	functions = arena_alloc(&tables->texts.arena,
				(tables->functions.count + 1) * sizeof(*functions));
	processes = arena_alloc(&tables->texts.arena,
				(tables->processes.count + 1) * sizeof(*processes));
	events = arena_alloc(&tables->texts.arena, (tables->events.count + 1) * sizeof(*events));
	if (!functions || !processes || !events)
		return -E2BIG;
	if (tables->functions.count)
		qsort(tables->functions.data.data, tables->functions.count,
		      sizeof(struct function_row), function_order);
	for (uint32_t i = 0; i < tables->functions.count; i++) {
		const struct function_row *row = report_function_row(tables, i);
		struct report_process *process = &report_process_row(tables, row->process)->process;

		if (!process->function_count++)
			process->functions = &functions[i];
		functions[i] = row->function;
	}
	if (tables->processes.count)
		qsort(tables->processes.data.data, tables->processes.count,
		      sizeof(struct process_row), process_order);
	for (uint32_t i = 0; i < tables->processes.count; i++) {
		const struct process_row *row = report_process_row(tables, i);
		struct report_event *event = report_event_row(tables, row->event);

		if (!event->process_count++)
			event->processes = &processes[i];
		processes[i] = row->process;
	}
	if (tables->events.count) {
		qsort(tables->events.data.data, tables->events.count, sizeof(*events), event_order);
		memcpy(events, tables->events.data.data, tables->events.count * sizeof(*events));
	}
	report->events = events;
	report->event_count = tables->events.count;
	return 0;
}
