// SPDX-License-Identifier: Apache-2.0
#include "view/report_build.h"

#include <inttypes.h>
#include <string.h>

#include "export/otlp.h"
#include "view/report_tables.h"
#include "export/unpack.h"

#define UNPACK_MAX ((size_t)512 << 20)
#define NO_STACK "[no stack]"
#define NO_SYMBOL "[no symbol]"
#define NO_MAPPING "[no mapping]"

/* A frame of a Location, known after its first use in a message. */
struct frame {
	const char *name, *file;
	bool is_kernel, is_named;
};

struct location_state {
	uint32_t first, count;		/* in frames; count 0: not looked at */
};

struct report_builder {
	struct report_tables tables;
	struct report report;
	uint64_t stamp;
	bool with_addresses;

	/* the message being added */
	const OtlpDictionary *dictionary;
	const char **strings;		/* interned, NULL: not yet */
	struct location_state *locations;
	struct buffer frames;
	uint64_t work_left;		/* frames that may still be visited */
};

/* What the attributes of one Profile say. */
struct profile_facts {
	struct report_event event;	/* key and counts */
	bool is_scaled;			/* weight is samples times period */
	uint64_t period;
};

int report_builder_new(bool with_addresses, struct report_builder **ret_builder)
{
	struct report_builder *builder = calloc(1, sizeof(*builder));

	if (!builder)
		return -ENOMEM;
	report_tables_init(&builder->tables);
	buffer_init(&builder->frames, POOL_REPORT);
	builder->report.start = UINT64_MAX;
	builder->with_addresses = with_addresses;
	*ret_builder = builder;
	return 0;
}

void report_builder_free(struct report_builder *builder)
{
	if (!builder)
		return;
	report_tables_free(&builder->tables);
	arena_free(&builder->tables.arena);
	buffer_free(&builder->frames);
	free(builder);
}

/* NULL: *ret_err is -EBADMSG for an index out of range, -E2BIG */
static const char *string_at(struct report_builder *builder, int32_t index, int *ret_err)
{
	if (index < 0 || (size_t)index >= builder->dictionary->n_string_table) {
		*ret_err = -EBADMSG;
		return NULL;
	}
	if (!builder->strings[index]) {
		builder->strings[index] = report_name(&builder->tables,
						      builder->dictionary->string_table[index]);
		if (!builder->strings[index])
			*ret_err = -E2BIG;
	}
	return builder->strings[index];
}

static int string_value(struct report_builder *builder, const OtlpAnyValue *value,
			const char **ret_text)
{
	int err = 0;

	*ret_text = "";
	if (!value)
		return 0;
	if (value->value_case == OTLP_VALUE_STRING) {
		*ret_text = report_name(&builder->tables, value->string_value);
		return *ret_text ? 0 : -E2BIG;
	}
	if (value->value_case == OTLP_VALUE_STRINDEX)
		*ret_text = string_at(builder, value->string_value_strindex, &err);
	return err;
}

static uint64_t count_value(const OtlpAnyValue *value)
{
	if (!value || value->value_case != OTLP_VALUE_INT || value->int_value < 0)
		return 0;
	return (uint64_t)value->int_value;
}

static int read_process(struct report_builder *builder, const OtlpResource *resource,
			struct report_process *ret_process)
{
	const char *key, *empty = report_name(&builder->tables, "");
	const OtlpKeyValue *attribute;
	int err = 0;

	if (!empty)
		return -E2BIG;
	*ret_process = (struct report_process){ .name = empty, .container_id = empty,
						.service_name = empty };
	for (size_t i = 0; resource && i < resource->n_attributes && !err; i++) {
		attribute = resource->attributes[i];
		key = attribute->key;
		if (!key[0] && attribute->key_strindex)
			key = string_at(builder, attribute->key_strindex, &err);
		if (err)
			break;
		if (!strcmp(key, "process.pid"))
			ret_process->pid = (uint32_t)count_value(attribute->value);
		else if (!strcmp(key, "process.executable.name"))
			err = string_value(builder, attribute->value, &ret_process->name);
		else if (!strcmp(key, "container.id"))
			err = string_value(builder, attribute->value, &ret_process->container_id);
		else if (!strcmp(key, "service.name"))
			err = string_value(builder, attribute->value, &ret_process->service_name);
	}
	return err;
}

/* The value of attribute @index when its key is @key's, and the key. */
static int attribute_at(struct report_builder *builder, int32_t index, const char **ret_key,
			const OtlpAnyValue **ret_value)
{
	const OtlpDictionary *dictionary = builder->dictionary;
	int err = 0;

	if (index < 0 || (size_t)index >= dictionary->n_attribute_table)
		return -EBADMSG;
	*ret_key = string_at(builder, dictionary->attribute_table[index]->key_strindex, &err);
	*ret_value = dictionary->attribute_table[index]->value;
	return err;
}

static int read_facts(struct report_builder *builder, const OtlpProfile *profile,
		      struct profile_facts *ret_facts)
{
	struct report_event *event = &ret_facts->event;
	const struct { const char *key; uint64_t *count; } counts[] = {
		{ "stacktap.complete", &event->complete }, { "stacktap.named", &event->named },
		{ "stacktap.lost", &event->lost }, { "stacktap.stale", &event->stale },
		{ "stacktap.moved", &event->moved }, { "stacktap.throttled", &event->throttled },
		{ "stacktap.missed", &event->missed }, { "stacktap.guessed", &event->guessed },
		{ "stacktap.no_mappings", &event->no_mappings },
		{ "stacktap.late_unwound", &event->late_unwound },
		{ "stacktap.late_refused", &event->late_refused },
		{ "stacktap.late_expired", &event->late_expired },
		{ "stacktap.late_failed", &event->late_failed },
	};
	const char *type, *unit, *period_type, *period_unit, *key;
	const OtlpAnyValue *value;
	int err = 0;

	*ret_facts = (struct profile_facts){ 0 };
	type = string_at(builder, profile->sample_type ? profile->sample_type->type_strindex : 0,
			 &err);
	unit = string_at(builder, profile->sample_type ? profile->sample_type->unit_strindex : 0,
			 &err);
	period_type = string_at(builder, profile->period_type ?
				profile->period_type->type_strindex : 0, &err);
	period_unit = string_at(builder, profile->period_type ?
				profile->period_type->unit_strindex : 0, &err);
	if (!type || !unit || !period_type || !period_unit)
		return err;
	event->source = event->event = type;
	event->unit = unit;
	/* what is counted are samples, each of which stands for a period of something else */
	if (profile->period > 0 && !strcmp(type, "samples")) {
		ret_facts->is_scaled = true;
		ret_facts->period = (uint64_t)profile->period;
		event->source = event->event = period_type;
		event->unit = period_unit;
	}
	for (size_t i = 0; i < profile->n_attribute_indices && !err; i++) {
		err = attribute_at(builder, profile->attribute_indices[i], &key, &value);
		if (err)
			break;
		if (!strcmp(key, "stacktap.source"))
			err = string_value(builder, value, &event->source);
		else if (!strcmp(key, "stacktap.event"))
			err = string_value(builder, value, &event->event);
		else if (!strcmp(key, "stacktap.fallback_errno"))
			event->fallback_errno = (uint32_t)count_value(value);
		else if (!strcmp(key, "stacktap.samples"))
			event->has_quality = true;
		for (size_t k = 0; !err && k < ARRAY_SIZE(counts); k++)
			if (!strcmp(key, counts[k].key))
				*counts[k].count = count_value(value);
	}
	return err;
}

static int location_file(struct report_builder *builder, const OtlpLocation *location,
			 const char **ret_file)
{
	const OtlpDictionary *dictionary = builder->dictionary;
	int err = 0;

	if (location->mapping_index < 0 ||
	    (size_t)location->mapping_index >= max_of(dictionary->n_mapping_table, (size_t)1))
		return -EBADMSG;
	*ret_file = report_name(&builder->tables, "");
	if (!*ret_file)
		return -E2BIG;
	if (location->mapping_index)
		*ret_file = string_at(builder, dictionary->mapping_table[location->mapping_index]->
				      filename_strindex, &err);
	return err;
}

static int location_type(struct report_builder *builder, const OtlpLocation *location,
			 bool *ret_is_kernel)
{
	const OtlpAnyValue *value;
	const char *key, *type;
	int err;

	*ret_is_kernel = false;
	for (size_t i = 0; i < location->n_attribute_indices; i++) {
		err = attribute_at(builder, location->attribute_indices[i], &key, &value);
		if (err)
			return err;
		if (strcmp(key, "profile.frame.type"))
			continue;
		err = string_value(builder, value, &type);
		if (err)
			return err;
		*ret_is_kernel = !strcmp(type, "kernel");
	}
	return 0;
}

static int function_name(struct report_builder *builder, int32_t index, const char **ret_name)
{
	const OtlpDictionary *dictionary = builder->dictionary;
	const OtlpFunction *function;
	int err = 0;

	if (index < 0 || (size_t)index >= dictionary->n_function_table)
		return -EBADMSG;
	function = dictionary->function_table[index];
	*ret_name = string_at(builder, function->name_strindex ? function->name_strindex :
			      function->system_name_strindex, &err);
	return err;
}

/* The frames of a Location, innermost first: one per Line, or one without a name. */
static int location_frames(struct report_builder *builder, int32_t index,
			   const struct location_state **ret_state)
{
	const OtlpLocation *location;
	struct location_state *state;
	struct frame frame = { 0 };
	char hex[24];
	int err;

	if (index < 0 || (size_t)index >= builder->dictionary->n_location_table)
		return -EBADMSG;
	state = &builder->locations[index];
	*ret_state = state;
	if (state->count)
		return 0;
	location = builder->dictionary->location_table[index];
	err = location_file(builder, location, &frame.file) ?:
	      location_type(builder, location, &frame.is_kernel);
	if (err)
		return err;
	state->first = (uint32_t)(builder->frames.size / sizeof(frame));
	for (size_t i = 0; i < location->n_lines; i++) {
		err = function_name(builder, location->lines[i]->function_index, &frame.name);
		if (err)
			return err;
		frame.is_named = frame.name[0];
		if (!frame.is_named)
			continue;
		if (buffer_append(&builder->frames, &frame, sizeof(frame)))
			return -E2BIG;
		state->count++;
	}
	if (state->count)
		return 0;
	snprintf(hex, sizeof(hex), "%#" PRIx64, location->address);
	frame.name = report_name(&builder->tables, builder->with_addresses ? hex :
				 location->mapping_index ? NO_SYMBOL : NO_MAPPING);
	if (!frame.name || buffer_append(&builder->frames, &frame, sizeof(frame)))
		return -E2BIG;
	state->count = 1;
	return 0;
}

/* Count one frame of a stack: a recursive function counts once in the total. */
static int add_frame(struct report_builder *builder, uint32_t process, const struct frame *frame,
		     bool is_leaf, uint64_t samples, uint64_t weight)
{
	struct report_function key = { .name = frame->name, .file = frame->file,
				       .is_kernel = frame->is_kernel,
				       .is_named = frame->is_named };
	struct function_row *row;
	uint32_t position;
	int err;

	if (!builder->work_left)
		return -EBADMSG;
	builder->work_left--;
	err = report_function_find(&builder->tables, process, &key, &position);
	if (err)
		return err;
	row = report_function_row(&builder->tables, position);
	if (is_leaf) {
		report_add(&row->function.self, weight);
		report_add(&row->function.self_samples, samples);
	}
	if (row->stamp != builder->stamp)
		report_add(&row->function.total, weight);
	row->stamp = builder->stamp;
	return 0;
}

static int add_stack(struct report_builder *builder, uint32_t process, int32_t index,
		     uint64_t samples, uint64_t weight)
{
	const OtlpDictionary *dictionary = builder->dictionary;
	const struct location_state *state;
	struct frame none = { .file = "" };
	const OtlpStack *stack;
	bool is_leaf = true;
	int err;

	if (index < 0 || (size_t)index >= max_of(dictionary->n_stack_table, (size_t)1))
		return -EBADMSG;
	builder->stamp++;
	stack = dictionary->n_stack_table ? dictionary->stack_table[index] : NULL;
	if (!stack || !stack->n_location_indices) {
		none.name = report_name(&builder->tables, NO_STACK);
		none.file = report_name(&builder->tables, "");
		return none.name && none.file ?
			add_frame(builder, process, &none, true, samples, weight) : -E2BIG;
	}
	for (size_t i = 0; i < stack->n_location_indices; i++) {
		err = location_frames(builder, stack->location_indices[i], &state);
		for (uint32_t k = 0; !err && k < state->count; k++, is_leaf = false)
			err = add_frame(builder, process,
					(const struct frame *)(const void *)builder->frames.data +
					state->first + k, is_leaf, samples, weight);
		if (err)
			return err;
	}
	return 0;
}

static void weigh(const struct profile_facts *facts, const OtlpSample *sample,
		  uint64_t *ret_samples, uint64_t *ret_weight)
{
	uint64_t sum = 0, samples = sample->n_timestamps_unix_nano;

	for (size_t i = 0; i < sample->n_values; i++)
		report_add(&sum, (uint64_t)max_of(sample->values[i], (int64_t)0));
	if (!sample->n_values)
		sum = samples;
	/* one value for all, without times: a count of samples, or of something else */
	if (!samples)
		samples = facts->is_scaled ? sum : 1;
	if (facts->is_scaled && __builtin_mul_overflow(sum, facts->period, &sum))
		sum = UINT64_MAX;
	*ret_samples = samples;
	*ret_weight = sum;
}

static int add_profile(struct report_builder *builder, const struct report_process *process,
		       const OtlpProfile *profile)
{
	struct report_tables *tables = &builder->tables;
	uint64_t all_samples = 0, all_weight = 0, samples, weight, end;
	struct profile_facts facts;
	struct report_event *event;
	struct process_row *row;
	uint32_t event_position, position;
	int err;

	if (!profile->n_samples)
		return 0;
	err = read_facts(builder, profile, &facts);
	if (err)
		return err;
	err = report_event_find(tables, &(struct report_event){
		.source = facts.event.source,
		.event = facts.event.event,
		.unit = facts.event.unit,
	}, &event_position) ?: report_process_find(tables, event_position, process, &position);
	if (err)
		return err;
	for (size_t i = 0; i < profile->n_samples; i++) {
		weigh(&facts, profile->samples[i], &samples, &weight);
		err = add_stack(builder, position, profile->samples[i]->stack_index, samples,
				weight);
		if (err)
			return err;
		report_add(&all_samples, samples);
		report_add(&all_weight, weight);
	}

	row = report_process_row(tables, position);
	report_add(&row->process.samples, all_samples);
	report_add(&row->process.weight, all_weight);
	if (!row->process.service_name[0])
		row->process.service_name = process->service_name;
	event = report_event_row(tables, event_position);
	report_add(&event->samples, all_samples);
	report_add(&event->weight, all_weight);
	report_add(&event->complete, facts.event.complete);
	report_add(&event->named, facts.event.named);
	report_add(&event->lost, facts.event.lost);
	report_add(&event->stale, facts.event.stale);
	report_add(&event->moved, facts.event.moved);
	report_add(&event->throttled, facts.event.throttled);
	report_add(&event->missed, facts.event.missed);
	report_add(&event->guessed, facts.event.guessed);
	report_add(&event->no_mappings, facts.event.no_mappings);
	report_add(&event->late_unwound, facts.event.late_unwound);
	report_add(&event->late_refused, facts.event.late_refused);
	report_add(&event->late_expired, facts.event.late_expired);
	report_add(&event->late_failed, facts.event.late_failed);
	event->has_quality |= facts.event.has_quality;
	if (facts.event.fallback_errno)
		event->fallback_errno = facts.event.fallback_errno;

	if (__builtin_add_overflow(profile->time_unix_nano, profile->duration_nano, &end))
		end = UINT64_MAX;
	builder->report.start = min_of(builder->report.start, (uint64_t)profile->time_unix_nano);
	builder->report.end = max_of(builder->report.end, end);
	return 0;
}

static int add_message(struct report_builder *builder, const OtlpProfilesData *data)
{
	struct report_process process;
	int err;

	for (size_t i = 0; i < data->n_resource_profiles; i++) {
		const OtlpResourceProfiles *group = data->resource_profiles[i];

		err = read_process(builder, group->resource, &process);
		if (err)
			return err;
		for (size_t k = 0; k < group->n_scope_profiles; k++) {
			const OtlpScopeProfiles *scope = group->scope_profiles[k];

			for (size_t m = 0; m < scope->n_profiles; m++) {
				err = add_profile(builder, &process, scope->profiles[m]);
				if (err)
					return err;
			}
		}
	}
	return 0;
}

int report_builder_add(struct report_builder *builder, const uint8_t *data, size_t size)
{
	_cleanup_(unpack_free) struct unpacked unpacked = { 0 };
	_cleanup_free_ struct location_state *locations = NULL;
	_cleanup_free_ const char **strings = NULL;
	const OtlpProfilesData *message;

	if (!unpack(&unpacked, OTLP_DATA_DESCRIPTOR, data, size, UNPACK_MAX))
		return unpacked.is_exhausted ? -E2BIG : -EBADMSG;
	message = (const OtlpProfilesData *)unpacked.message;
	/* any bytes may parse as unknown fields; a message of ours has one of these */
	if (!message->dictionary)
		return -EBADMSG;
	builder->dictionary = message->dictionary;
	builder->frames.size = 0;
	/* an honest Sample has a few bytes for each of its frames, even if its stack is shared */
	builder->work_left = (uint64_t)64 * size + (1 << 20);
	locations = calloc(message->dictionary->n_location_table + 1, sizeof(*locations));
	strings = calloc(message->dictionary->n_string_table + 1, sizeof(*strings));
	if (!locations || !strings)
		return -E2BIG;
	builder->locations = locations;
	builder->strings = strings;
	builder->report.messages++;
	builder->report.bytes += size;
	return add_message(builder, message);
}

struct report_owner {
	struct report report;
	struct arena arena;
};

int report_builder_finish(struct report_builder *builder, bool is_cut, struct report **ret_report)
{
	struct report_owner *owner = calloc(1, sizeof(*owner));

	if (!owner)
		return -ENOMEM;
	owner->report = builder->report;
	owner->report.is_cut = is_cut;
	if (report_tables_finish(&builder->tables, &owner->report)) {
		free(owner);
		return -E2BIG;
	}
	if (!owner->report.event_count)
		owner->report.start = 0;
	owner->arena = builder->tables.arena;
	arena_init(&builder->tables.arena, POOL_REPORT);
	*ret_report = &owner->report;
	return 0;
}

void report_free(struct report *report)
{
	struct report_owner *owner;

	if (!report)
		return;
	owner = container_of(report, struct report_owner, report);
	arena_free(&owner->arena);
	free(owner);
}
