// SPDX-License-Identifier: Apache-2.0
#include "service/status.h"

#include "base/json.h"

static void print_counter(struct json *json, const struct snapshot *snapshot, enum counter_id id,
			  unsigned int instance)
{
	uint64_t value = snapshot_counter(snapshot, id, instance);

	if (counters[id].kind == KIND_FLAG)
		json_bool(json, counters[id].name, value);
	else
		json_u64(json, counters[id].name, value);
}

static void print_members(struct json *json, const struct snapshot *snapshot, enum counter_group group,
			  unsigned int instance)
{
	for (unsigned int id = FACT_NONE + 1; id < FACT_COUNT; id++)
		if (counter_facts[id].group == group)
			json_string(json, counter_facts[id].name, snapshot_fact(snapshot, id, instance));
	for (unsigned int id = COUNTER_NONE + 1; id < COUNTER_COUNT; id++)
		if (counters[id].group == group)
			print_counter(json, snapshot, id, instance);
}

static void print_object(struct json *json, const struct snapshot *snapshot, enum counter_group group)
{
	if (!snapshot_has(snapshot, group))
		return;
	json_object(json, counter_objects[group].key);
	print_members(json, snapshot, group, 0);
	if (group == GROUP_OPENER || group == GROUP_PARSER)
		print_members(json, snapshot, GROUP_HELPER, group == GROUP_PARSER);
	if (group == GROUP_DEBUGINFOD)
		print_members(json, snapshot, GROUP_HELPER, 2);
	if (group == GROUP_SYMBOLIZER) {
		print_object(json, snapshot, GROUP_LINES);
		print_object(json, snapshot, GROUP_DEBUGINFOD);
		print_object(json, snapshot, GROUP_JIT);
	}
	if (group == GROUP_EXPORTER) {
		print_object(json, snapshot, GROUP_SPOOL);
		print_object(json, snapshot, GROUP_JOURNAL);
	}
	json_end(json);
}

/* One counter, whose instances are the members. */
static void print_by_label(struct json *json, const struct snapshot *snapshot, enum counter_group group,
			   enum counter_id id)
{
	if (!snapshot_has(snapshot, group))
		return;
	json_object(json, counter_objects[group].key);
	for (unsigned int i = 0; i < snapshot_instances(snapshot, group); i++)
		json_u64(json, snapshot_label(snapshot, group, i), snapshot_counter(snapshot, id, i));
	json_end(json);
}

static void print_array(struct json *json, const struct snapshot *snapshot, enum counter_group group,
			const char *label)
{
	if (!snapshot_has(snapshot, group))
		return;
	json_array(json, counter_objects[group].key);
	for (unsigned int i = 0; i < snapshot_instances(snapshot, group); i++) {
		json_object(json, NULL);
		json_string(json, label, snapshot_label(snapshot, group, i));
		print_members(json, snapshot, group, i);
		json_end(json);
	}
	json_end(json);
}

void status_print_daemon_json(FILE *stream, const struct snapshot *snapshot)
{
	static const enum counter_group objects[] = { GROUP_CAPTURE, GROUP_WINDOWS, GROUP_SYMBOLIZER,
		GROUP_OPENER, GROUP_PARSER, GROUP_UNWIND, GROUP_EXPORTER, GROUP_METRICS, GROUP_PUSH,
		GROUP_SERVE };
	struct json json;

	json_init(&json, stream);
	json_object(&json, NULL);
	print_members(&json, snapshot, GROUP_DAEMON, 0);
	for (size_t i = 0; i < ARRAY_SIZE(objects); i++)
		print_object(&json, snapshot, objects[i]);
	print_by_label(&json, snapshot, GROUP_STACKS, COUNTER_STACKS_stacks);
	print_by_label(&json, snapshot, GROUP_NAMED_BY, COUNTER_NAMED_BY_frames);
	print_array(&json, snapshot, GROUP_DESTINATION, "name");
	print_array(&json, snapshot, GROUP_RELABEL, "rule");
	if (snapshot_has(snapshot, GROUP_THREAD))
		print_array(&json, snapshot, GROUP_THREAD, "name");
	print_array(&json, snapshot, GROUP_POOL, "name");
	json_end(&json);
}
