// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "view/report.h"

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static size_t limit_of(uint64_t limit, size_t count)
{
	return limit && limit < count ? (size_t)limit : count;
}

/* A share: its members' names begin with @of. */
static void put_share(struct json *json, const char *of, double percent, const struct report_error *error)
{
	char name[32];

	snprintf(name, sizeof(name), "%spercent", of);
	json_double(json, name, percent);
	if (error->error95 < 0)
		return;
	snprintf(name, sizeof(name), "%serror95", of);
	json_double(json, name, 100 * (double)error->error95);
	snprintf(name, sizeof(name), "%sphi", of);
	json_double(json, name, (double)error->phi);
}

static void put_process(struct json *json, uint64_t limit, const struct report_event *event,
			const struct report_process *process)
{
	json_object(json, NULL);
	json_u64(json, "pid", process->pid);
	json_string(json, "name", process->name);
	json_string(json, "container_id", process->container_id);
	json_string(json, "service_name", process->service_name);
	json_string(json, "cgroup", process->cgroup);
	json_u64(json, "samples", process->samples);
	json_u64(json, "weight", process->weight);
	put_share(json, "", percent(process->weight, event->weight), &process->error);
	json_array(json, "functions");
	for (size_t i = 0; i < limit_of(limit, process->function_count); i++) {
		const struct report_function *function = &process->functions[i];

		json_object(json, NULL);
		json_string(json, "name", function->name);
		json_string(json, "file", function->file);
		json_bool(json, "kernel", function->is_kernel);
		json_bool(json, "named", function->is_named);
		if (function->source) {
			json_string(json, "source", *function->source ? function->source : NULL);
			json_u64(json, "line", function->line);
		}
		json_u64(json, "self", function->self);
		json_u64(json, "total", function->total);
		json_u64(json, "self_samples", function->self_samples);
		put_share(json, "self_", percent(function->self, process->weight), &function->self_error);
		put_share(json, "total_", percent(function->total, process->weight), &function->total_error);
		json_end(json);
	}
	json_end(json);
	json_end(json);
}

void report_json(const struct report *report, const char *path, uint64_t limit, FILE *file)
{
	struct json json;

	json_init(&json, file);
	json_object(&json, NULL);
	json_string(&json, "file", path);
	json_u64(&json, "bytes", report->bytes);
	json_u64(&json, "messages", report->messages);
	json_bool(&json, "cut", report->is_cut);
	json_u64(&json, "start_unix_nano", report->start);
	json_u64(&json, "end_unix_nano", report->end);
	json_array(&json, "events");
	for (size_t i = 0; i < report->event_count; i++) {
		const struct report_event *event = &report->events[i];

		json_object(&json, NULL);
		json_string(&json, "source", event->source);
		json_string(&json, "event", event->event);
		json_string(&json, "unit", event->unit);
		json_u64(&json, "fallback_errno", event->fallback_errno);
		json_u64(&json, "samples", event->samples);
		json_u64(&json, "weight", event->weight);
		if (event->has_quality) {
			json_object(&json, "quality");
			quality_json(&event->quality, &json);
			json_end(&json);
		}
		json_array(&json, "processes");
		for (size_t j = 0; j < event->process_count; j++)
			put_process(&json, limit, event, &event->processes[j]);
		json_end(&json);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
}
