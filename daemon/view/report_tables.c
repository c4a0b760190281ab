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
	return event_hash(&((const struct event_row *)ctx + position)->event);
}

uint32_t report_event_look_up(const struct report_tables *tables, const struct report_event *key)
{
	struct index_probe probe = index_first(&tables->events.index, event_hash(key));
	const struct report_event *event;
	uint32_t i;

	while ((i = index_next(&tables->events.index, &probe)) != INDEX_NONE) {
		event = &report_event_row(tables, i)->event;
		if (event->source == key->source && event->event == key->event &&
		    event->unit == key->unit)
			break;
	}
	return i;
}

int report_event_find(struct report_tables *tables, const struct report_event *key,
		      uint32_t *ret_position)
{
	const struct event_row row = { .event = *key, .whole.first = UINT64_MAX };

	*ret_position = report_event_look_up(tables, key);
	if (*ret_position != INDEX_NONE)
		return 0;
	return rows_add(&tables->events, event_hash(key), event_hash_of, &row, sizeof(row), ret_position);
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

uint32_t report_process_look_up(const struct report_tables *tables, uint32_t event,
				const struct report_process *key)
{
	struct index_probe probe = index_first(&tables->processes.index, process_hash(event, key));
	const struct process_row *row;
	uint32_t i;

	while ((i = index_next(&tables->processes.index, &probe)) != INDEX_NONE) {
		row = report_process_row(tables, i);
		if (row->event == event && row->process.pid == key->pid &&
		    row->process.name == key->name &&
		    row->process.container_id == key->container_id)
			break;
	}
	return i;
}

int report_process_find(struct report_tables *tables, uint32_t event,
			const struct report_process *key, uint32_t *ret_position)
{
	const struct process_row row = { .event = event, .process = *key, .whole.first = UINT64_MAX };

	*ret_position = report_process_look_up(tables, event, key);
	if (*ret_position != INDEX_NONE)
		return 0;
	return rows_add(&tables->processes, process_hash(event, key), process_hash_of, &row, sizeof(row),
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

uint32_t report_function_look_up(const struct report_tables *tables, uint32_t process,
				 const struct report_function *key)
{
	struct index_probe probe = index_first(&tables->functions.index, function_hash(process, key));
	const struct function_row *row;
	uint32_t i;

	while ((i = index_next(&tables->functions.index, &probe)) != INDEX_NONE) {
		row = report_function_row(tables, i);
		if (row->process == process && row->function.name == key->name &&
		    row->function.file == key->file && row->function.source == key->source &&
		    row->function.line == key->line && row->function.is_kernel == key->is_kernel)
			break;
	}
	return i;
}

int report_function_find(struct report_tables *tables, uint32_t process,
			 const struct report_function *key, uint32_t *ret_position)
{
	const struct function_row row = { .process = process, .function = *key };

	*ret_position = report_function_look_up(tables, process, key);
	if (*ret_position != INDEX_NONE)
		return 0;
	return rows_add(&tables->functions, function_hash(process, key), function_hash_of, &row,
			sizeof(row), ret_position);
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
	const struct event_row *left = a, *right = b;
	uint64_t l = left->event.samples, r = right->event.samples;

	return right->event.is_default - left->event.is_default ?: (l < r) - (l > r);
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
		struct report_event *event = &report_event_row(tables, row->event)->event;

		if (!event->process_count++)
			event->processes = &processes[i];
		processes[i] = row->process;
	}
	if (tables->events.count)
		qsort(tables->events.data.data, tables->events.count, sizeof(struct event_row),
		      event_order);
	for (uint32_t i = 0; i < tables->events.count; i++)
		events[i] = report_event_row(tables, i)->event;
	report->events = events;
	report->event_count = tables->events.count;
	return 0;
}
