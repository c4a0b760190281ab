// SPDX-License-Identifier: Apache-2.0
#include "view/reader.h"

#include <inttypes.h>
#include <string.h>

#include "view/pprof_names.h"
#include "view/reader_message.h"

#define NO_STACK "[no stack]"
#define NO_SYMBOL "[no symbol]"
#define NO_MAPPING "[no mapping]"

int reader_new(struct texts *texts, const struct selection *selection, bool with_addresses,
	       const struct reader_sink *sink, struct reader **ret_reader)
{
	struct reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	if (selection)
		reader->selection = *selection;
	reader->span = selection_span(&reader->selection, 0, UINT64_MAX);
	reader->texts = texts;
	reader->with_addresses = with_addresses;
	reader->sink = *sink;
	arena_init(&reader->arena, POOL_REPORT);
	buffer_init(&reader->stack, POOL_REPORT);
	buffer_init(&reader->times, POOL_REPORT);
	buffer_init(&reader->weights, POOL_REPORT);
	buffer_init(&reader->labels, POOL_REPORT);
	buffer_init(&reader->comments, POOL_REPORT);
	reader->totals.start = UINT64_MAX;
	*ret_reader = reader;
	return 0;
}

void reader_free(struct reader *reader)
{
	if (!reader)
		return;
	arena_free(&reader->arena);
	buffer_free(&reader->stack);
	buffer_free(&reader->times);
	buffer_free(&reader->weights);
	buffer_free(&reader->labels);
	buffer_free(&reader->comments);
	free(reader);
}

const struct reader_totals *reader_totals(const struct reader *reader)
{
	return &reader->totals;
}

struct time_span reader_span(const struct reader *reader)
{
	return reader->span;
}

void reader_set_bounds(struct reader *reader, uint64_t start, uint64_t end)
{
	reader->span = selection_span(&reader->selection, start, end);
}

static uint8_t lack_of(const char *key, const OtlpAnyValue *value)
{
	if (value && value->value_case == OTLP_VALUE_BOOL && !value->bool_value)
		for (unsigned int i = 0; i < PPROF_MAPPING_FLAGS; i++)
			if (!strcmp(key, pprof_mapping_flags[i]))
				return (uint8_t)(1 << i);
	return 0;
}

/* Than pprof has. */
static bool is_other_build_id(const char *key)
{
	static const char begin[] = "process.executable.build_id.";

	return !strncmp(key, begin, strlen(begin)) && strcmp(key + strlen(begin), "gnu");
}

static int read_mapping(struct reader *reader, int32_t index,
			const struct view_mapping **ret_mapping)
{
	const OtlpDictionary *dictionary = reader->dictionary;
	struct view_mapping *mapping;
	const OtlpMapping *message;
	const OtlpAnyValue *value;
	const char *key;
	int err = 0;

	if (index < 0 || (size_t)index >= max_of(dictionary->n_mapping_table, (size_t)1))
		return -EBADMSG;
	*ret_mapping = reader->mappings[index];
	if (*ret_mapping)
		return 0;
	mapping = arena_alloc(&reader->arena, sizeof(*mapping));
	if (!mapping)
		return -E2BIG;
	mapping->lacks = 0;
	mapping->file = mapping->build_id = mapping->htlhash = texts_intern(reader->texts, "");
	if (!mapping->file)
		return -E2BIG;
	/* the first stands for none */
	if (index) {
		message = dictionary->mapping_table[index];
		mapping->file = reader_string(reader, message->filename_strindex, &err);
		mapping->start = message->memory_start;
		mapping->limit = message->memory_limit;
		mapping->offset = message->file_offset;
		for (size_t i = 0; !err && i < message->n_attribute_indices; i++) {
			err = reader_attribute(reader, message->attribute_indices[i], &key, &value);
			if (!err && !strcmp(key, "process.executable.build_id.gnu"))
				err = reader_text(reader, value, &mapping->build_id);
			else if (!err && !strcmp(key, "process.executable.build_id.htlhash"))
				err = reader_text(reader, value, &mapping->htlhash);
			else if (!err)
				mapping->lacks |= lack_of(key, value);
			if (!err && is_other_build_id(key))
				reader->losses |= 1u << VIEW_LOSS_BUILD_IDS;
		}
	}
	if (err)
		return err;
	reader->mappings[index] = *ret_mapping = mapping;
	return 0;
}

static enum frame_kind kind_of(const char *type)
{
	static const char *const compiled[] = { "", "native", "go", "rust", "swift" };

	if (!strcmp(type, "kernel"))
		return FRAME_KIND_KERNEL;
	for (size_t i = 0; i < ARRAY_SIZE(compiled); i++)
		if (!strcmp(type, compiled[i]))
			return FRAME_KIND_NATIVE;
	return FRAME_KIND_MANAGED;
}

/* Memory that no file is behind has code that somebody made while running. */
static bool is_anonymous(const char *file)
{
	static const char *const begins[] = { "[anon", "[//anon", "//anon", "/memfd:", "[/memfd:" };

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (!strncmp(file, begins[i], strlen(begins[i])))
			return true;
	return false;
}

/* Its kind, and where its function begins. */
struct location_facts {
	enum frame_kind kind;
	bool has_function, is_folded;
	uint64_t function_start;
};

static int location_facts(struct reader *reader, const OtlpLocation *location, const char *file,
			  struct location_facts *ret_facts)
{
	const OtlpAnyValue *value;
	const char *key, *type;
	int err;

	*ret_facts = (struct location_facts){
		.kind = is_anonymous(file) ? FRAME_KIND_MANAGED : FRAME_KIND_NATIVE,
	};
	for (size_t i = 0; i < location->n_attribute_indices; i++) {
		err = reader_attribute(reader, location->attribute_indices[i], &key, &value);
		if (err)
			return err;
		if (!strcmp(key, "stacktap.function.start") && value &&
		    value->value_case == OTLP_VALUE_INT) {
			ret_facts->has_function = true;
			ret_facts->function_start = (uint64_t)value->int_value;
		}
		if (!strcmp(key, PPROF_IS_FOLDED))
			ret_facts->is_folded = value && value->value_case == OTLP_VALUE_BOOL && value->bool_value;
		if (strcmp(key, "profile.frame.type"))
			continue;
		err = reader_text(reader, value, &type);
		if (err)
			return err;
		if (kind_of(type) != FRAME_KIND_NATIVE)
			ret_facts->kind = kind_of(type);
	}
	return 0;
}

static int read_function(struct reader *reader, int32_t index, struct view_frame *frame)
{
	const OtlpDictionary *dictionary = reader->dictionary;
	const OtlpFunction *function;
	int err = 0;

	if (index < 0 || (size_t)index >= dictionary->n_function_table)
		return -EBADMSG;
	function = dictionary->function_table[index];
	frame->name = reader_string(reader, function->name_strindex ? function->name_strindex :
				function->system_name_strindex, &err);
	if (!err)
		frame->source = reader_string(reader, function->filename_strindex, &err);
	if (!err && reader->sink.with_remarks)
		frame->system_name = reader_string(reader, function->system_name_strindex, &err);
	frame->start_line = (uint64_t)max_of(function->start_line, (int64_t)0);
	return err;
}

static int name_unnamed(struct reader *reader, struct view_frame *frame,
			const struct location_facts *facts)
{
	const char *file = frame->mapping->file, *slash = strrchr(file, '/');
	char name[NAME_MAX + 24];

	if (reader->with_addresses)
		snprintf(name, sizeof(name), "%#" PRIx64, frame->address);
	else if (frame->is_range)
		snprintf(name, sizeof(name), "%.*s+%#" PRIx64, NAME_MAX, slash ? slash + 1 : file,
			 facts->function_start);
	else
		snprintf(name, sizeof(name), "%s", file[0] ? NO_SYMBOL : NO_MAPPING);
	frame->name = texts_intern(reader->texts, name);
	frame->source = texts_intern(reader->texts, "");
	frame->start_line = 0;
	return frame->name && frame->source ? 0 : -E2BIG;
}

/* The frames of a Location, innermost first: one per Line with a name, or one without. */
static int resolve_location(struct reader *reader, const OtlpLocation *location, struct view_frame **ret_frames,
			    uint32_t *ret_count)
{
	struct view_frame frame = { 0 }, *frames;
	struct location_facts facts = { 0 };
	uint32_t count = 0;
	int err;

	err = read_mapping(reader, location->mapping_index, &frame.mapping) ?:
	      location_facts(reader, location, frame.mapping->file, &facts);
	if (err)
		return err;
	frame.kind = facts.kind;
	frame.is_folded = facts.is_folded;
	frame.is_range = facts.has_function && frame.mapping->file[0];
	frame.address = location->address;
	frames = arena_alloc(&reader->arena,
			     max_of(location->n_lines, (size_t)1) * sizeof(*frames));
	if (!frames || location->n_lines > UINT32_MAX)
		return -E2BIG;
	for (size_t i = 0; i < location->n_lines; i++) {
		err = read_function(reader, location->lines[i]->function_index, &frame);
		if (err)
			return err;
		if (!frame.name[0])
			continue;
		frame.is_named = true;
		frame.is_range = false;
		frame.line = (uint64_t)max_of(location->lines[i]->line, (int64_t)0);
		frame.column = (uint64_t)max_of(location->lines[i]->column, (int64_t)0);
		frame.is_inlined = true;
		frames[count++] = frame;
	}
	if (count) {
		frames[count - 1].is_inlined = false;
		if (reader->selection.without_inlined) {
			frames[0] = frames[count - 1];
			count = 1;
		}
	} else {
		err = name_unnamed(reader, &frame, &facts);
		frames[count++] = frame;
	}
	*ret_frames = frames;
	*ret_count = count;
	return err;
}

static int number_frames(struct reader *reader, struct view_frame *frames, uint32_t count)
{
	int err = 0;

	for (uint32_t i = 0; reader->sink.frame && i < count && !err; i++)
		err = reader->sink.frame(reader->sink.ctx, &frames[i]);
	return err;
}

static int read_location(struct reader *reader, int32_t index, const struct location_state **ret_state)
{
	struct location_state *state;
	struct view_frame *frames;
	uint32_t count;
	int err;

	if (index < 0 || (size_t)index >= reader->dictionary->n_location_table)
		return -EBADMSG;
	state = &reader->locations[index];
	*ret_state = state;
	if (state->count)
		return 0;
	err = resolve_location(reader, reader->dictionary->location_table[index], &frames, &count) ?:
	      number_frames(reader, frames, count);
	if (err)
		return err;
	*state = (struct location_state){ .frames = frames, .count = count };
	return 0;
}

static int push_frame(struct reader *reader, const struct view_frame *frame)
{
	if (!reader->work_left)
		return -EBADMSG;
	reader->work_left--;
	return buffer_append(&reader->stack, &frame, sizeof(frame)) ? -E2BIG : 0;
}

static int read_stack(struct reader *reader, int32_t index)
{
	const OtlpDictionary *dictionary = reader->dictionary;
	const struct location_state *state;
	const OtlpStack *stack;
	struct view_frame *none;
	int err = 0;

	if (index < 0 || (size_t)index >= max_of(dictionary->n_stack_table, (size_t)1))
		return -EBADMSG;
	reader->stack.size = 0;
	stack = dictionary->n_stack_table ? dictionary->stack_table[index] : NULL;
	for (size_t i = 0; stack && i < stack->n_location_indices && !err; i++) {
		err = read_location(reader, stack->location_indices[i], &state);
		for (uint32_t k = 0; !err && k < state->count; k++)
			err = push_frame(reader, &state->frames[k]);
	}
	if (err || reader->stack.size)
		return err;
	none = arena_alloc(&reader->arena, sizeof(*none));
	if (!none)
		return -E2BIG;
	none->name = texts_intern(reader->texts, NO_STACK);
	none->source = texts_intern(reader->texts, "");
	if (!none->name || !none->source)
		return -E2BIG;
	return read_mapping(reader, 0, &none->mapping) ?: number_frames(reader, none, 1) ?: push_frame(reader, none);
}

/* A stack that the sink has numbered in this message needs no second look. */
static int number_stack(struct reader *reader, int32_t index, struct view_sample *sample)
{
	const bool is_known = reader->sink.stack && index >= 0 &&
			      (size_t)index < reader->dictionary->n_stack_table && reader->stacks[index];
	const struct view_frame *const *frames;
	int err = is_known ? 0 : read_stack(reader, index);
	size_t count;

	if (err)
		return err;
	frames = (const struct view_frame *const *)(const void *)reader->stack.data;
	count = reader->stack.size / sizeof(*frames);
	if (!reader->sink.stack) {
		sample->frames = frames;
		sample->frame_count = count;
		return 0;
	}
	if (is_known)
		sample->stack = reader->stacks[index] - 1;
	else
		err = reader->sink.stack(reader->sink.ctx, frames, count, &sample->stack);
	if (!err)
		reader->stacks[index] = sample->stack + 1;
	return err;
}

static uint64_t scaled(const struct view_profile *profile, int64_t value)
{
	uint64_t weight = (uint64_t)max_of(value, (int64_t)0);

	if (profile->period && __builtin_mul_overflow(weight, profile->period, &weight))
		weight = UINT64_MAX;
	return weight;
}

static bool is_in_span(const struct reader *reader, uint64_t time)
{
	return time >= reader->span.from && time < reader->span.to;
}

/* The moments of a Sample that are selected, and what they weigh. */
static int read_moments(struct reader *reader, const struct view_profile *profile,
			const OtlpSample *message, struct view_sample *sample)
{
	bool has_own = message->n_values == message->n_timestamps_unix_nano;
	uint64_t weight;

	reader->times.size = reader->weights.size = 0;
	for (size_t i = 0; i < message->n_timestamps_unix_nano; i++) {
		if (!is_in_span(reader, message->timestamps_unix_nano[i]))
			continue;
		if (buffer_append(&reader->times, &message->timestamps_unix_nano[i],
				  sizeof(uint64_t)))
			return -E2BIG;
		if (!has_own)
			continue;
		weight = scaled(profile, message->values[i]);
		if (buffer_append(&reader->weights, &weight, sizeof(weight)))
			return -E2BIG;
	}
	sample->times = (const uint64_t *)(const void *)reader->times.data;
	sample->time_count = reader->times.size / sizeof(uint64_t);
	sample->weights = has_own ? (const uint64_t *)(const void *)reader->weights.data : NULL;
	return 0;
}

static int weigh(struct reader *reader, const struct view_profile *profile,
		 const OtlpSample *message, struct view_sample *sample)
{
	size_t all = message->n_timestamps_unix_nano;
	uint64_t sum = 0;
	int err;

	for (size_t i = 0; i < message->n_values; i++) {
		rows_sum(&sum, (uint64_t)max_of(message->values[i], (int64_t)0));
		if (message->values[i] < 0)
			reader->losses |= 1u << VIEW_LOSS_NEGATIVE;
	}
	if (!message->n_values)
		sum = all;
	/* one value for all, without times: a count of samples, or of something else */
	sample->samples = all ? all : profile->is_count ? sum : 1;
	if (profile->period && __builtin_mul_overflow(sum, profile->period, &sum))
		sum = UINT64_MAX;
	sample->weight = sum;
	if (!all) {
		/* known to be of this window, and no more */
		if (!is_in_span(reader, profile->start))
			sample->samples = 0;
		return 0;
	}
	err = read_moments(reader, profile, message, sample);
	if (err || sample->time_count == all)
		return err;
	sample->samples = sample->time_count;
	sample->weight = sum / all * sample->time_count + sum % all * sample->time_count / all;
	if (!sample->weights)
		return 0;
	sample->weight = 0;
	for (size_t i = 0; i < sample->time_count; i++)
		rows_sum(&sample->weight, sample->weights[i]);
	return 0;
}

/* Of a Profile whose samples have times what is selected is a part; of one without them it is the whole. */
static void widen_totals(struct reader *reader, const struct view_profile *profile, bool has_times)
{
	uint64_t start = profile->start, end = profile->end;

	if (has_times) {
		start = max_of(start, reader->span.from);
		end = min_of(end, reader->span.to);
	}
	reader->totals.start = min_of(reader->totals.start, start);
	reader->totals.end = max_of(reader->totals.end, end);
}

static int read_sample(struct reader *reader, const struct view_profile *profile,
		       const OtlpSample *message, bool *is_begun)
{
	struct view_sample sample = { 0 };
	int err;

	reader->losses = message->link_index ? 1u << VIEW_LOSS_LINKS : 0;
	err = reader_thread(reader, message, &sample);
	if (err || !selection_has_thread(&reader->selection, sample.tid, sample.thread))
		return err;
	err = weigh(reader, profile, message, &sample);
	if (!err && !sample.samples && is_in_span(reader, profile->start))
		reader->totals.losses |= reader->losses & 1u << VIEW_LOSS_NEGATIVE;
	if (err || !sample.samples)
		return err;
	err = reader->sink.without_stacks ? 0 : number_stack(reader, message->stack_index, &sample);
	if (err)
		return err;
	reader->totals.losses |= reader->losses | reader->resource_losses;
	if (!*is_begun) {
		*is_begun = true;
		widen_totals(reader, profile, sample.time_count);
		err = reader->sink.profile ? reader->sink.profile(reader->sink.ctx, profile) : 0;
	}
	return err ?: reader->sink.sample(reader->sink.ctx, profile, &sample);
}

static int read_samples(struct reader *reader, const struct view_process *process,
			const OtlpProfile *message)
{
	struct view_profile profile = { .process = *process };
	bool is_begun = false;
	int err;

	if (!message->n_samples)
		return 0;
	err = reader_profile(reader, message, &profile);
	if (err || !selection_has_event(&reader->selection, profile.source, profile.event))
		return err;
	for (size_t i = 0; i < message->n_samples && !err; i++)
		err = read_sample(reader, &profile, message->samples[i], &is_begun);
	return err;
}

static int read_message(struct reader *reader, const OtlpProfilesData *data)
{
	struct view_process process;
	int err;

	for (size_t i = 0; i < data->n_resource_profiles; i++) {
		const OtlpResourceProfiles *group = data->resource_profiles[i];

		err = reader_process(reader, group->resource, &process);
		if (err)
			return err;
		if (!selection_has_process(&reader->selection, process.pid, process.name,
					   process.container_id, process.service_name,
					   process.cgroup))
			continue;
		for (size_t k = 0; k < group->n_scope_profiles; k++) {
			const OtlpScopeProfiles *scope = group->scope_profiles[k];

			err = reader_scope(reader, scope->scope);
			if (err)
				return err;
			for (size_t m = 0; m < scope->n_profiles; m++) {
				err = read_samples(reader, &process, scope->profiles[m]);
				if (err)
					return err;
			}
		}
	}
	return 0;
}

int reader_add(struct reader *reader, const uint8_t *data, size_t size)
{
	_cleanup_(unpack_free) struct unpacked unpacked = { 0 };
	_cleanup_free_ const struct view_mapping **mappings = NULL;
	_cleanup_free_ struct location_state *locations = NULL;
	_cleanup_free_ const char **strings = NULL;
	_cleanup_free_ uint32_t *stacks = NULL;
	const OtlpProfilesData *message;
	int err;

	if (!unpack_profiles(&unpacked, data, size, UNPACK_MAX))
		return unpacked.is_exhausted ? -E2BIG : -EBADMSG;
	message = (const OtlpProfilesData *)unpacked.message;
	/* any bytes may parse as unknown fields; a message of ours has one of these */
	if (!message->dictionary)
		return -EBADMSG;
	reader->dictionary = message->dictionary;
	/* an honest Sample has a few bytes for each of its frames, even if its stack is shared */
	reader->work_left = (uint64_t)64 * size + (1 << 20);
	locations = calloc(message->dictionary->n_location_table + 1, sizeof(*locations));
	strings = calloc(message->dictionary->n_string_table + 1, sizeof(*strings));
	mappings = calloc(message->dictionary->n_mapping_table + 1, sizeof(*mappings));
	stacks = calloc(message->dictionary->n_stack_table + 1, sizeof(*stacks));
	if (!locations || !strings || !mappings || !stacks)
		return -E2BIG;
	reader->stacks = stacks;
	reader->locations = locations;
	reader->strings = strings;
	reader->mappings = mappings;
	reader->totals.messages++;
	reader->totals.bytes += size;
	err = read_message(reader, message);
	arena_free(&reader->arena);
	return err;
}
