// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/cpulist.h"
#include "base/json.h"
#include "cli/status.h"
#include "client/event.h"
#include "client/name.h"

static void print_module(struct json *json, const struct control_module *module)
{
	json_object(json, "module");
	json_string(json, "version", module->version);
	json_u64(json, "abi_major", module->abi_major);
	json_u64(json, "abi_minor", module->abi_minor);
	json_u64(json, "session_count", module->sessions);
	if (module->has_ceiling)
		json_u64(json, "ceiling_permille", module->ceiling_permille);
	json_object(json, "unwind");
	json_u64(json, "tables", module->tables);
	json_u64(json, "table_rows", module->table_rows);
	json_u64(json, "table_bytes", module->table_bytes);
	json_u64(json, "lists", module->lists);
	json_u64(json, "list_bytes", module->list_bytes);
	json_u64(json, "limit_bytes", module->table_limit);
	json_end(json);
	json_array(json, "features");
	for (unsigned int bit = 0; bit < 64; bit++)
		if (module->features >> bit & 1 && name_of_feature(bit))
			json_string(json, NULL, name_of_feature(bit));
	json_end(json);
	json_end(json);
}

static void print_source(struct json *json, const struct control_source *source)
{
	json_object(json, NULL);
	json_u64(json, "id", source->id);
	json_string(json, "name", source->name);
	json_u64(json, "type", source->type);
	json_u64(json, "config", source->config);
	json_u64(json, "config1", source->config1);
	json_u64(json, "config2", source->config2);
	json_string(json, "mode", name_of_mode(source->mode));
	json_u64(json, "rate_hz", source->rate_hz);
	json_u64(json, "period", source->period);
	json_u64(json, "nominal_hz", source->nominal_hz);
	json_bool(json, "exclude_user", source->flags & STACKTAP_SRC_EXCLUDE_USER);
	json_bool(json, "exclude_kernel", source->flags & STACKTAP_SRC_EXCLUDE_KERNEL);
	json_bool(json, "jitter", !(source->flags & STACKTAP_SRC_NO_JITTER) &&
		  (source->mode == STACKTAP_MODE_PERIOD || event_is_clock(source->type, source->config)));
	json_u64(json, "fallback_errno", source->fallback_errno);
	json_string(json, "fallback_errno_name",
		    source->fallback_errno ? name_of_errno(source->fallback_errno) : NULL);
	json_u64(json, "fallback_cpus", source->fallback_cpus);
	json_end(json);
}

static void print_ids(struct json *json, const char *name, const uint32_t *ids, size_t count)
{
	if (!count)
		return;
	json_array(json, name);
	for (size_t i = 0; i < count; i++)
		json_u64(json, NULL, ids[i]);
	json_end(json);
}

static void print_cgroup(struct json *json, uint64_t id)
{
	char path[PATH_MAX];
	bool is_seen = !control_cgroup_path(id, path, sizeof(path));

	json_object(json, NULL);
	json_u64(json, "id", id);
	json_string(json, "path", is_seen ? path : NULL);
	json_end(json);
}

static void print_filter(struct json *json, const struct control_filter *filter)
{
	json_object(json, "filter");
	if (filter->cpus) {
		struct cpulist list = { filter->cpus, filter->cpu_words };

		json_array(json, "cpus");
		for (uint32_t cpu = 0; cpu < cpulist_limit(&list); cpu++)
			if (cpulist_has(&list, cpu))
				json_u64(json, NULL, cpu);
		json_end(json);
	}
	/* ids that there was no memory for in one piece */
	if (filter->is_partial)
		json_bool(json, "is_partial", true);
	print_ids(json, "pids", filter->tgids, filter->tgid_count);
	print_ids(json, "tids", filter->tids, filter->tid_count);
	print_ids(json, "uids", filter->uids, filter->uid_count);
	if (filter->comm_count) {
		json_array(json, "comms");
		for (size_t i = 0; i < filter->comm_count; i++)
			json_string(json, NULL, filter->comms[i]);
		json_end(json);
	}
	if (filter->cgroup_count) {
		json_array(json, "cgroups");
		for (size_t i = 0; i < filter->cgroup_count; i++)
			print_cgroup(json, filter->cgroups[i]);
		json_end(json);
	}
	json_bool(json, "user_only", filter->flags & STACKTAP_FILTER_USER_ONLY);
	json_bool(json, "kernel_only", filter->flags & STACKTAP_FILTER_KERNEL_ONLY);
	json_bool(json, "exclude_idle", filter->flags & STACKTAP_FILTER_EXCLUDE_IDLE);
	json_u64(json, "bytes", filter->bytes);
	json_end(json);
}

static void print_indexed(struct json *json, const char *name, const uint64_t *values,
			  unsigned int count, const char *(*name_of)(unsigned int index))
{
	json_object(json, name);
	for (unsigned int i = 0; i < count; i++)
		json_u64(json, name_of(i), values[i]);
	json_end(json);
}

static void print_counts(struct json *json, const struct control_counts *counts)
{
	json_object(json, NULL);
	json_u64(json, "source", counts->source_id);
	json_string(json, "event", event_name(counts->type, counts->config));
	json_u64(json, "type", counts->type);
	json_u64(json, "config", counts->config);
	json_u64(json, "period", counts->period);
	json_u64(json, "fallback_errno", counts->fallback_errno);
	json_u64(json, "calls", counts->calls);
	json_u64(json, "recorded", counts->recorded);
	json_u64(json, "filtered", counts->filtered);
	json_u64(json, "throttled", counts->throttled);
	json_u64(json, "lost_total", status_lost(counts));
	print_indexed(json, "lost", counts->lost, STACKTAP_LOST_REASONS, name_of_lost);
	json_u64(json, "enabled_ns", counts->enabled_ns);
	json_u64(json, "running_ns", counts->running_ns);
	if (counts->has_times_at)
		json_u64(json, "times_at", counts->times_at);
	json_u64(json, "moved", counts->moved);
	json_u64(json, "stale", counts->stale);
	json_u64(json, "stalled", counts->stalled);
	json_u64(json, "share_percent", counts->share_percent);
	json_bool(json, "is_multiplexed", counts->share_percent < STACKTAP_MULTIPLEX_PERCENT);
	json_u64(json, "multiplexed", counts->multiplexed);
	json_u64(json, "raises", counts->raises);
	json_u64(json, "missed", counts->missed);
	json_u64(json, "in_place", counts->in_place);
	json_u64(json, "put_off", counts->put_off);
	json_u64(json, "fallback_recorded", counts->fallback_recorded);
	print_indexed(json, "kernel_end", counts->kernel_end, STACKTAP_END_REASONS, name_of_end);
	print_indexed(json, "user_end", counts->user_end, STACKTAP_END_REASONS, name_of_end);
	json_end(json);
}

/* By what each time is below in ns; the last has no such bound. */
static void print_cost(struct json *json, const char *name, const struct control_cost *cost)
{
	json_object(json, name);
	json_u64(json, "count", status_cost_count(cost));
	json_u64(json, "ns", cost->ns);
	json_object(json, "times_below_ns");
	for (unsigned int i = 0; i + 1 < STACKTAP_TIME_BUCKETS; i++) {
		char bound[24];

		snprintf(bound, sizeof(bound), "%" PRIu64, status_cost_bound(i));
		json_u64(json, bound, cost->times[i]);
	}
	json_end(json);
	json_u64(json, "more", cost->times[STACKTAP_TIME_BUCKETS - 1]);
	json_end(json);
}

static void print_session(struct json *json, const struct status_session *status)
{
	const struct control_session *session = &status->session;

	json_object(json, NULL);
	json_u64(json, "id", session->id);
	json_string(json, "state", name_of_state(session->state));
	json_object(json, "owner");
	json_u64(json, "pid", session->owner_tgid);
	json_string(json, "comm", session->owner_comm);
	json_end(json);
	json_u64(json, "generation", session->generation);
	json_u64(json, "created_monotonic_nano", session->created);
	json_u64(json, "user_frames", session->user_frames);
	json_u64(json, "walk_limit_ns", session->walk_limit_ns);
	json_u64(json, "slice_bytes", session->slice_bytes);
	json_u64(json, "slice_every", session->slice_every);
	json_u64(json, "slice_max_bytes", session->slice_max_bytes);
	if (session->has_budget) {
		json_u64(json, "budget_ns", session->budget_ns);
		json_u64(json, "degraded", session->degraded);
		json_u64(json, "degradations", session->degradations);
		json_u64(json, "rates_refused", session->rates_refused);
		json_u64(json, "kernel_frames", session->kernel_frames);
		json_u64(json, "rate_divisor", session->rate_divisor);
	}
	if (session->has_ceiling)
		json_u64(json, "ceiling_permille", session->ceiling_permille);
	json_u64(json, "ring_bytes", session->ring_bytes);
	json_u64(json, "stash_bytes", session->stash_bytes);
	json_u64(json, "tables", session->tables);
	json_u64(json, "table_bytes", session->table_bytes);
	json_u64(json, "lists", session->lists);
	json_u64(json, "list_bytes", session->list_bytes);
	json_u64(json, "lists_refused", session->lists_refused);
	json_array(json, "sources");
	for (size_t i = 0; i < session->source_count; i++)
		print_source(json, &session->sources[i]);
	json_end(json);
	print_filter(json, &session->filter);
	json_array(json, "cpus");
	for (size_t i = 0; i < status->cpu_count; i++) {
		const struct control_cpu *cpu = &status->cpus[i];

		json_object(json, NULL);
		json_u64(json, "cpu", cpu->cpu);
		json_string(json, "state", name_of_cpu_state(cpu->state));
		json_u64(json, "errno", cpu->error);
		json_string(json, "errno_name", cpu->error ? name_of_errno(cpu->error) : NULL);
		if (cpu->has_offlines)
			json_u64(json, "offlines", cpu->offlines);
		json_u64(json, "ring_bytes", cpu->ring_bytes);
		json_u64(json, "ring_used", cpu->ring_used);
		json_u64(json, "table_hits", cpu->table_hits);
		json_u64(json, "table_misses", cpu->table_misses);
		json_u64(json, "table_frames", cpu->table_frames);
		json_u64(json, "table_fp_frames", cpu->table_fp_frames);
		json_u64(json, "table_searches", cpu->table_searches);
		json_u64(json, "slices", cpu->slices);
		json_u64(json, "slices_refused", cpu->slices_refused);
		if (cpu->has_costs) {
			print_cost(json, "handler", &cpu->handler);
			print_cost(json, "drain", &cpu->drain);
		}
		json_array(json, "counts");
		for (size_t j = 0; j < cpu->count_count; j++)
			print_counts(json, &cpu->counts[j]);
		json_end(json);
		json_end(json);
	}
	json_end(json);
	json_end(json);
}

void status_print_json(const struct status *status)
{
	struct json json;

	json_init(&json, stdout);
	json_object(&json, NULL);
	print_module(&json, &status->module);
	json_array(&json, "sessions");
	for (size_t i = 0; i < status->session_count; i++)
		print_session(&json, &status->sessions[i]);
	json_end(&json);
	if (status->daemon_json)
		json_raw(&json, "daemon", status->daemon_json, status->daemon_json_size);
	else
		json_string(&json, "daemon", NULL);
	json_end(&json);
}
