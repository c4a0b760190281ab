// SPDX-License-Identifier: Apache-2.0
#include "export/profile.h"

#include <string.h>

#include "base/clock.h"
#include "base/fingerprint.h"
#include "export/entry.h"
#include "export/frames.h"
#include "export/otlp.h"

#define SAMPLE_OVERHEAD 64u	/* of one Sample beside times and values, at most */
#define PROFILE_OVERHEAD 1024u	/* of one Profile beside its samples, attributes included */
#define TIME_BYTES 8u
#define VALUE_BYTES 9u
#define ATTRIBUTES_MAX ENTRY_ATTRIBUTES
#define TIME_PARTS 1024u	/* of the mean time between samples; none stands for a smaller one */

/* What makes a Sample: parts of equal identity become one. */
struct identity {
	int32_t stack;
	int32_t attributes[ATTRIBUTES_MAX];	/* the unused ones are 0 */
	uint32_t part;
	enum naming naming;
};

struct event {
	uint64_t time;
	int64_t value;
};

static const char *const end_names[STACKTAP_END_REASONS] = {
	[STACKTAP_END_DEPTH] = "depth",
	[STACKTAP_END_TIME] = "time",
	[STACKTAP_END_UNREADABLE] = "unreadable",
	[STACKTAP_END_NO_RULE] = "no_rule",
	[STACKTAP_END_BAD_FRAME] = "bad_frame",
	[STACKTAP_END_STALE] = "stale",
	[STACKTAP_END_NO_MAPPINGS] = "no_mappings",
	[STACKTAP_END_COMPAT] = "compat",
	[STACKTAP_END_BUDGET] = "budget",
	[STACKTAP_END_GUESSED] = "guessed",
	[STACKTAP_END_HOOK] = "hook",
};

void profile_writer_init(struct profile_writer *writer)
{
	memset(writer, 0, sizeof(*writer));
	writer->one_in = 1;
	buffer_init(&writer->identities, POOL_ENCODE);
	buffer_init(&writer->samples, POOL_ENCODE);
	buffer_init(&writer->scratch, POOL_ENCODE);
}

void profile_writer_free(struct profile_writer *writer)
{
	buffer_free(&writer->identities);
	buffer_free(&writer->samples);
	buffer_free(&writer->scratch);
}

static const char *end_name(uint16_t end)
{
	return end < ARRAY_SIZE(end_names) ? end_names[end] : NULL;
}

/* Attributes of which many samples share a few values. */
static int common_attribute(struct profile_writer *writer, enum profile_cache cache,
			    const uint64_t key[2])
{
	struct dictionary *dictionary = writer->dictionary;
	uint64_t hash = fingerprint_fold(key[0] ^ fingerprint_key[0], key[1] ^ fingerprint_key[1]);
	struct profile_cached *slot = &writer->cache[cache][hash % PROFILE_CACHE_SLOTS];
	char comm[sizeof(uint64_t[2]) + 1] = "";

	if (slot->generation == dictionary->generation && slot->key[0] == key[0] &&
	    slot->key[1] == key[1])
		return slot->index;
	slot->generation = dictionary->generation;
	slot->key[0] = key[0];
	slot->key[1] = key[1];
	switch (cache) {
	case CACHE_THREAD_ID:
		slot->index = dictionary_attribute_int(dictionary, "thread.id", (int64_t)key[0]);
		break;
	case CACHE_THREAD_NAME:
		memcpy(comm, key, sizeof(uint64_t[2]));
		slot->index = dictionary_attribute_string(dictionary, "thread.name", comm);
		break;
	default:
		slot->index = dictionary_attribute_int(dictionary, "cpu.logical_number",
						       (int64_t)key[0]);
		break;
	}
	if (slot->index < 0)
		slot->generation = 0;
	return slot->index;
}

static int identity_make(struct profile_writer *writer, const struct window_sample *sample,
			 struct identity *ret_identity)
{
	struct dictionary *dictionary = writer->dictionary;
	struct identity identity = { 0 };
	uint64_t comm[2];
	size_t count = 0;

	_Static_assert(sizeof(comm) == sizeof(sample->comm), "thread name");
	memcpy(comm, sample->comm, sizeof(comm));
	identity.stack = frames_stack(dictionary, sample->stack, &identity.naming);
	if (identity.stack < 0)
		return identity.stack;
	identity.attributes[count++] = common_attribute(writer, CACHE_THREAD_ID,
							(uint64_t[]){ sample->tid, 0 });
	if (sample->comm[0])
		identity.attributes[count++] = common_attribute(writer, CACHE_THREAD_NAME, comm);
	if (writer->with_cpu)
		identity.attributes[count++] = common_attribute(writer, CACHE_CPU,
								(uint64_t[]){ sample->cpu, 0 });
	if (end_name(sample->user_end))
		identity.attributes[count++] =
			dictionary_attribute_string(dictionary, "stacktap.user_stack.end",
						    end_name(sample->user_end));
	if (end_name(sample->kernel_end))
		identity.attributes[count++] =
			dictionary_attribute_string(dictionary, "stacktap.kernel_stack.end",
						    end_name(sample->kernel_end));
	if (sample->marks & SAMPLE_STALE)
		identity.attributes[count++] =
			dictionary_attribute_bool(dictionary, "stacktap.stale", true);
	if (sample->marks & SAMPLE_DOUBTFUL)
		identity.attributes[count++] =
			dictionary_attribute_bool(dictionary, "stacktap.doubtful", true);
	for (size_t i = 0; i < count; i++)
		if (identity.attributes[i] < 0)
			return identity.attributes[i];
	*ret_identity = identity;
	return 0;
}

static int identity_compare(const struct identity *a, const struct identity *b)
{
	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	for (size_t i = 0; i < ATTRIBUTES_MAX; i++)
		if (a->attributes[i] != b->attributes[i])
			return a->attributes[i] < b->attributes[i] ? -1 : 1;
	return 0;
}

static int identity_sort(const void *a, const void *b)
{
	const struct identity *left = a, *right = b;
	int order = identity_compare(left, right);

	return order ? order : (left->part > right->part) - (left->part < right->part);
}

/*
 * Times are rounded down to a multiple of this: bits that are 0 take no bytes once they are compressed, and random ones
 * are a quarter of a large payload. 1: nobody knows how far samples are apart.
 */
static uint64_t time_grain(const struct profile_config *config)
{
	uint64_t apart = config->rate_hz ? NSEC_PER_SEC / config->rate_hz : config->is_clock ? config->period : 0;
	uint64_t grain = 1;

	while (grain <= apart / TIME_PARTS / 2)
		grain *= 2;
	return grain;
}

static int event_sort(const void *a, const void *b)
{
	const struct event *left = a, *right = b;

	return (left->time > right->time) - (left->time < right->time);
}

/* Samples of one thread come in order; those of several CPUs or windows' edges may not. */
static int sort_events(uint64_t *times, int64_t *values, size_t count)
{
	struct buffer scratch = { .pool = POOL_ENCODE };
	struct event *events;
	size_t i;

	for (i = 1; i < count; i++)
		if (times[i] < times[i - 1])
			break;
	if (i >= count)
		return 0;
	events = (struct event *)(void *)buffer_reserve(&scratch, count * sizeof(*events));
	if (!events)
		return -ENOBUFS;
	for (i = 0; i < count; i++)
		events[i] = (struct event){ .time = times[i], .value = values ? values[i] : 0 };
	qsort(events, count, sizeof(*events), event_sort);
	for (i = 0; i < count; i++) {
		times[i] = events[i].time;
		if (values)
			values[i] = events[i].value;
	}
	buffer_free(&scratch);
	return 0;
}

static int sample_pack(struct profile_writer *writer, const OtlpSample *message)
{
	const size_t size = entry_sample_size(message);
	struct buffer *samples = &writer->samples;
	uint8_t *at;

	if (buffer_field(samples, OTLP_PROFILE_SAMPLES, size))
		return -ENOBUFS;
	/* in its place: a copy of one that fills a payload would be a quarter of the pool */
	at = buffer_reserve(samples, size);
	if (!at)
		return -ENOBUFS;
	samples->size += entry_sample(message, at);
	return 0;
}

/*
 * Values of a period, one Sample for each: receivers that know a period refuse several in one, and with them
 * the whole request.
 */
static int sample_pack_each(struct profile_writer *writer, OtlpSample *message, uint64_t *times,
			    int64_t *values, size_t count)
{
	int err = 0;

	message->n_timestamps_unix_nano = message->n_values = 1;
	for (size_t i = 0; !err && i < count; i++) {
		message->timestamps_unix_nano = &times[i];
		message->values = &values[i];
		err = sample_pack(writer, message);
	}
	return err;
}

/* All events of the parts in a run of equal identities: one packed Sample, or one for each value. */
static int sample_write(struct profile_writer *writer, const struct profile_part *parts,
			const struct identity *run, size_t run_count)
{
	const struct window *window = writer->window;
	const uint64_t offset = (uint64_t)window->realtime_offset, start = window->start + offset;
	const uint64_t grain = writer->rounds_times ? time_grain(&window->profiles[parts->sample->profile]) : 1;
	bool has_values = parts[run->part].sample->values;
	int32_t attributes[ATTRIBUTES_MAX];
	size_t count = 0, filled = 0;
	OtlpSample message;
	uint64_t *times;
	int64_t *values;
	int err;

	for (size_t i = 0; i < run_count; i++)
		count += parts[run[i].part].count;
	writer->scratch.size = 0;
	times = (uint64_t *)(void *)buffer_reserve(&writer->scratch,
						   count * sizeof(*times) * (1 + has_values));
	if (!times)
		return -ENOBUFS;
	values = has_values ? (int64_t *)times + count : NULL;
	for (size_t i = 0; i < run_count; i++) {
		const struct profile_part *part = &parts[run[i].part];

		for (uint32_t k = 0; k < part->count; k++, filled++) {
			const uint64_t at = part->sample->times[part->first + k] + offset;

			times[filled] = max_of(at & ~(grain - 1), start);
			if (values)
				values[filled] = (int64_t)(part->sample->values[part->first + k] &
							   INT64_MAX);
		}
	}
	err = sort_events(times, values, count);
	if (err)
		return err;

	otlp_init(sample, &message);
	message.timestamps_unix_nano = times;
	message.n_timestamps_unix_nano = count;
	message.stack_index = run->stack;
	message.attribute_indices = attributes;
	while (message.n_attribute_indices < ATTRIBUTES_MAX &&
	       run->attributes[message.n_attribute_indices]) {
		attributes[message.n_attribute_indices] =
			run->attributes[message.n_attribute_indices];
		message.n_attribute_indices++;
	}
	return values ? sample_pack_each(writer, &message, times, values, count) : sample_pack(writer, &message);
}

static int value_type(struct profile_writer *writer, OtlpValueType *ret_type, const char *type,
		      const char *unit)
{
	otlp_init(value_type, ret_type);
	ret_type->type_strindex = dictionary_string(writer->dictionary, type);
	ret_type->unit_strindex = dictionary_string(writer->dictionary, unit);
	return min_of(ret_type->type_strindex, ret_type->unit_strindex);
}

static int profile_types(struct profile_writer *writer, const struct profile_config *config,
			 OtlpProfile *profile)
{
	const char *event = config->event[0] ? config->event : "events";
	bool is_time = config->is_clock || (config->is_cpu_time && config->rate_hz);
	uint64_t period = config->period;
	int err;

	if (config->mode == STACKTAP_MODE_FREQ) {
		const char *type = config->is_clock ? "cpu" : event;
		const char *unit = config->is_clock ? "nanoseconds" : "count";

		/* a value is what it says, of the same: without a type of period it has no name to receivers */
		profile->period = 1;
		err = value_type(writer, profile->sample_type, type, unit);
		return err < 0 ? err : value_type(writer, profile->period_type, type, unit);
	}
	if (is_time && (!config->is_clock || !period))
		period = config->rate_hz ? UINT64_C(1000000000) / config->rate_hz : 0;
	if (__builtin_mul_overflow(max_of(period, (uint64_t)1), writer->one_in, &period))
		period = INT64_MAX;
	profile->period = (int64_t)min_of(period, (uint64_t)INT64_MAX);
	err = value_type(writer, profile->sample_type, "samples", "count");
	if (err < 0)
		return err;
	return is_time ? value_type(writer, profile->period_type, "cpu", "nanoseconds") :
			 value_type(writer, profile->period_type, event, "count");
}

struct profile_attributes {
	struct dictionary *dictionary;
	int32_t indices[32];
	size_t count;
	int err;
};

static void add_attribute(struct profile_attributes *list, int index)
{
	if (index < 0)
		list->err = index;
	else
		list->indices[list->count++] = index;
}

static void add_string(struct profile_attributes *list, const char *key, const char *value)
{
	if (value[0])
		add_attribute(list, dictionary_attribute_string(list->dictionary, key, value));
}

static void add_count(struct profile_attributes *list, const char *key, uint64_t value)
{
	add_attribute(list, dictionary_attribute_int(list->dictionary, key,
						     (int64_t)min_of(value, (uint64_t)INT64_MAX)));
}

/* What most Profiles have none of. */
static void add_some(struct profile_attributes *list, const char *key, uint64_t value)
{
	if (value)
		add_count(list, key, value);
}

/*
 * All counts add up over the Profiles of a window: those of samples are this Profile's own, losses
 * belong to no process and stand in the first Profile that has a chance to tell them.
 */
static int profile_attributes(struct profile_writer *writer, struct profile_attributes *list,
			      uint16_t number, const struct window_counts *own)
{
	const struct profile_config *config = &writer->window->profiles[number];
	const struct window_counts *all = &writer->window->counts[number];
	/* what was lost until the kill is not known */
	const bool with_losses = !writer->has_losses[number] && !writer->window->is_recovered;

	add_string(list, "stacktap.source", config->source);
	add_string(list, "stacktap.event", config->event);
	add_string(list, "stacktap.mode",
		   config->mode == STACKTAP_MODE_FREQ ? "frequency" : "period");
	if (config->rate_hz)
		add_count(list, "stacktap.rate_hz", config->rate_hz);
	if (config->fallback_errno)
		add_count(list, "stacktap.fallback_errno", config->fallback_errno);
	if (writer->one_in > 1)
		add_count(list, "stacktap.downsampled", writer->one_in);
	add_some(list, "stacktap.recovered", writer->window->is_recovered);
#define ALWAYS(key, value) add_count(list, key, value);
#define SOME(key, value) add_some(list, key, value);
#define LOSS(key, value) if (with_losses) add_count(list, key, value);
#define SOME_LOSS(key, value) if (with_losses) add_some(list, key, value);
#define SHARED(group, name, kind, unit, rule, own, value, meaning) rule("stacktap." #name, own)
#include "counter/counters.def"
#undef ALWAYS
#undef SOME
#undef LOSS
#undef SOME_LOSS
	return list->err;
}

static void count_part(const struct window *window, struct window_counts *counts, const struct profile_part *part,
		       enum naming naming)
{
	const struct window_sample *sample = part->sample;

	window_counts_add(counts, sample, part->count);
	window_counts_add_named(counts, naming, part->count);
	/* hardly a window has any */
	if (window->counts[sample->profile].names_late && stack_is_late(sample->stack))
		counts->names_late += part->count;
}

size_t profile_part_room(const struct profile_part *part)
{
	return part->sample->values ? part->count * (SAMPLE_OVERHEAD + TIME_BYTES + VALUE_BYTES) :
				      SAMPLE_OVERHEAD + part->count * TIME_BYTES;
}

/* Put as many parts into the dictionary as there is room for. */
static int identities_fill(struct profile_writer *writer, bool forced,
			   const struct profile_part *parts, size_t count, size_t room,
			   size_t *ret_count, struct window_counts *ret_counts)
{
	size_t start = dictionary_size(writer->dictionary), estimate = PROFILE_OVERHEAD, i;
	struct dictionary_mark mark;
	struct identity identity;
	int err = 0;

	writer->identities.size = 0;
	for (i = 0; i < count; i++) {
		size_t bytes = profile_part_room(&parts[i]);

		dictionary_mark(writer->dictionary, &mark);
		err = identity_make(writer, parts[i].sample, &identity);
		if (err) {
			dictionary_take_back(writer->dictionary, &mark);
			break;
		}
		if (dictionary_size(writer->dictionary) - start + estimate + bytes > room &&
		    (i || !forced)) {
			dictionary_take_back(writer->dictionary, &mark);
			break;
		}
		identity.part = (uint32_t)i;
		err = buffer_append(&writer->identities, &identity, sizeof(identity));
		if (err) {
			dictionary_take_back(writer->dictionary, &mark);
			break;
		}
		estimate += bytes;
		count_part(writer->window, ret_counts, &parts[i], identity.naming);
	}
	*ret_count = i;
	/* no memory for more is the same as no room for more, unless there is nothing to give up */
	return i || !forced ? 0 : err;
}

static int profile_assemble(struct profile_writer *writer, struct buffer *buffer,
			    OtlpProfile *profile)
{
	OtlpProfile head;
	size_t head_size, tail_size;
	OtlpValueType *sample_type = profile->sample_type;

	otlp_init(profile, &head);
	head.sample_type = sample_type;
	profile->sample_type = NULL;
	head_size = protobuf_c_message_get_packed_size(&head.base);
	tail_size = protobuf_c_message_get_packed_size(&profile->base);
	if (buffer_field(buffer, OTLP_SCOPE_PROFILES_PROFILES,
			 head_size + writer->samples.size + tail_size) ||
	    !buffer_reserve(buffer, head_size + writer->samples.size + tail_size))
		return -ENOBUFS;
	buffer->size += protobuf_c_message_pack(&head.base, buffer->data + buffer->size);
	memcpy(buffer->data + buffer->size, writer->samples.data, writer->samples.size);
	buffer->size += writer->samples.size;
	buffer->size += protobuf_c_message_pack(&profile->base, buffer->data + buffer->size);
	return 0;
}

/* Write all of @used parts, whose identities are in the dictionary. */
static int write_parts(struct profile_writer *writer, struct buffer *buffer,
		       const struct profile_part *parts, size_t used,
		       const struct window_counts *counts)
{
	const struct window *window = writer->window;
	uint16_t number = parts->sample->profile;
	struct profile_attributes attributes = { .dictionary = writer->dictionary };
	struct identity *identities = (struct identity *)(void *)writer->identities.data;
	OtlpValueType sample_type, period_type;
	uint8_t id[sizeof(window->id)];
	OtlpProfile profile;
	size_t next;
	int err;

	qsort(identities, used, sizeof(*identities), identity_sort);
	buffer_clear(&writer->samples);
	for (size_t i = 0; i < used; i = next) {
		for (next = i + 1; next < used; next++)
			if (identity_compare(&identities[i], &identities[next]))
				break;
		err = sample_write(writer, parts, &identities[i], next - i);
		if (err)
			return err;
	}
	buffer_clear(&writer->scratch);

	otlp_init(profile, &profile);
	profile.sample_type = &sample_type;
	profile.period_type = &period_type;
	err = profile_types(writer, &window->profiles[number], &profile);
	if (err < 0)
		return err;
	profile.time_unix_nano = window->start + (uint64_t)window->realtime_offset;
	profile.duration_nano = window->end - window->start;
	/* unique in the window, and the window's half is random */
	memcpy(id, window->id, sizeof(id));
	writer->ordinal++;
	for (size_t i = 0; i < sizeof(writer->ordinal); i++)
		id[sizeof(id) - 1 - i] ^= (uint8_t)(writer->ordinal >> 8 * i);
	profile.profile_id.data = id;
	profile.profile_id.len = sizeof(id);
	err = profile_attributes(writer, &attributes, number, counts);
	if (err)
		return err;
	profile.attribute_indices = attributes.indices;
	profile.n_attribute_indices = attributes.count;
	err = profile_assemble(writer, buffer, &profile);
	buffer_clear(&writer->samples);
	return err;
}

int profile_write(struct profile_writer *writer, struct buffer *buffer, bool forced,
		  const struct profile_part *parts, size_t count, size_t room, size_t *ret_count,
		  uint64_t *ret_samples)
{
	size_t used, before = buffer->size;
	struct window_counts counts;
	struct dictionary_mark mark;
	int err;

	dictionary_mark(writer->dictionary, &mark);
	for (;;) {
		*ret_count = 0;
		counts = (struct window_counts){ 0 };
		err = identities_fill(writer, forced, parts, count, room, &used, &counts);
		if (err || !used)
			return err;
		err = write_parts(writer, buffer, parts, used, &counts);
		if (!err)
			break;
		buffer->size = before;
		dictionary_take_back(writer->dictionary, &mark);
		buffer_clear(&writer->samples);
		buffer_clear(&writer->scratch);
		/* the pool is nearly used up: less at a time, down to nothing in this payload */
		if (err != -ENOBUFS || (used == 1 && forced))
			return err;
		if (used == 1)
			return 0;
		count = used / 2;
	}
	writer->has_losses[parts->sample->profile] = true;
	*ret_count = used;
	*ret_samples = counts.samples;
	return 0;
}
