// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "view/pprof_names.h"
#include "view/reader_message.h"

const char *reader_string(struct reader *reader, int32_t index, int *ret_err)
{
	if (index < 0 || (size_t)index >= reader->dictionary->n_string_table) {
		*ret_err = -EBADMSG;
		return NULL;
	}
	if (!reader->strings[index]) {
		reader->strings[index] = texts_intern(reader->texts,
						      reader->dictionary->string_table[index]);
		if (!reader->strings[index])
			*ret_err = -E2BIG;
	}
	return reader->strings[index];
}

int reader_text(struct reader *reader, const OtlpAnyValue *value, const char **ret_text)
{
	int err = 0;

	*ret_text = "";
	if (value && value->value_case == OTLP_VALUE_STRINDEX) {
		*ret_text = reader_string(reader, value->string_value_strindex, &err);
		return err;
	}
	*ret_text = texts_intern(reader->texts, value && value->value_case == OTLP_VALUE_STRING ?
				 value->string_value : "");
	return *ret_text ? 0 : -E2BIG;
}

uint64_t reader_count(const OtlpAnyValue *value)
{
	if (!value || value->value_case != OTLP_VALUE_INT || value->int_value < 0)
		return 0;
	return (uint64_t)value->int_value;
}

/* "0::/path" */
static int cgroup_value(struct reader *reader, const OtlpAnyValue *value, const char **ret_path)
{
	const char *path;
	int err = reader_text(reader, value, ret_path);

	if (err)
		return err;
	path = strchr(*ret_path, ':');
	path = path ? strchr(path + 1, ':') : NULL;
	/* others may write the path alone */
	if (path)
		*ret_path = texts_intern(reader->texts, path + 1);
	return *ret_path ? 0 : -E2BIG;
}

int reader_process(struct reader *reader, const OtlpResource *resource,
			struct view_process *ret_process)
{
	const char *key, *empty = texts_intern(reader->texts, "");
	const OtlpKeyValue *attribute;
	int err = 0;

	if (!empty)
		return -E2BIG;
	*ret_process = (struct view_process){ .name = empty, .container_id = empty,
					      .service_name = empty, .cgroup = empty };
	reader->resource_losses = 0;
	for (size_t i = 0; resource && i < resource->n_attributes && !err; i++) {
		attribute = resource->attributes[i];
		key = attribute->key;
		if (!key[0] && attribute->key_strindex)
			key = reader_string(reader, attribute->key_strindex, &err);
		if (err)
			break;
		if (!strcmp(key, "process.pid"))
			ret_process->pid = (uint32_t)reader_count(attribute->value);
		else if (!strcmp(key, "process.executable.name"))
			err = reader_text(reader, attribute->value, &ret_process->name);
		else if (!strcmp(key, "container.id"))
			err = reader_text(reader, attribute->value, &ret_process->container_id);
		else if (!strcmp(key, "service.name"))
			err = reader_text(reader, attribute->value, &ret_process->service_name);
		else if (!strcmp(key, "process.linux.cgroup"))
			err = cgroup_value(reader, attribute->value, &ret_process->cgroup);
		else
			reader->resource_losses |= 1u << VIEW_LOSS_RESOURCE;
	}
	return err;
}

int reader_scope(struct reader *reader, const OtlpScope *scope)
{
	int err = reader_text(reader, NULL, &reader->default_type);

	for (size_t i = 0; scope && i < scope->n_attributes && !err; i++) {
		const OtlpKeyValue *attribute = scope->attributes[i];
		const char *key = attribute->key;

		if (!key[0] && attribute->key_strindex)
			key = reader_string(reader, attribute->key_strindex, &err);
		if (!err && !strcmp(key, PPROF_DEFAULT_TYPE))
			err = reader_text(reader, attribute->value, &reader->default_type);
	}
	return err;
}

int reader_attribute(struct reader *reader, int32_t index, const char **ret_key,
			const OtlpAnyValue **ret_value)
{
	const OtlpDictionary *dictionary = reader->dictionary;
	int err = 0;

	if (index < 0 || (size_t)index >= dictionary->n_attribute_table)
		return -EBADMSG;
	*ret_key = reader_string(reader, dictionary->attribute_table[index]->key_strindex, &err);
	*ret_value = dictionary->attribute_table[index]->value;
	return err;
}

bool reader_is_count(const char *key)
{
	struct view_quality quality;

	return quality_find(&quality, key);
}

static int read_attributes(struct reader *reader, const OtlpProfile *message,
			   struct view_profile *profile)
{
	const OtlpAnyValue *value;
	uint64_t *number, one_in = 1;
	const char *key;
	int err = 0;

	for (size_t i = 0; i < message->n_attribute_indices && !err; i++) {
		err = reader_attribute(reader, message->attribute_indices[i], &key, &value);
		if (err)
			break;
		if (!strcmp(key, "stacktap.source"))
			err = reader_text(reader, value, &profile->source);
		else if (!strcmp(key, "stacktap.event"))
			err = reader_text(reader, value, &profile->event);
		else if (!strcmp(key, "stacktap.fallback_errno"))
			profile->fallback_errno = (uint32_t)reader_count(value);
		else if (!strcmp(key, "stacktap.downsampled"))
			one_in = reader_count(value);
		else if (!strcmp(key, "stacktap.samples"))
			profile->has_quality = !selection_is_narrow(&reader->selection);
		else if (reader->sink.with_remarks)
			err = reader_remark(reader, key, value, &profile->remarks);
		number = quality_find(&profile->quality, key);
		if (number && !err)
			*number = reader_count(value);
	}
	if (__builtin_mul_overflow(profile->quality.samples, one_in, &profile->drawn))
		profile->drawn = UINT64_MAX;
	return err;
}

int reader_profile(struct reader *reader, const OtlpProfile *message,
			struct view_profile *profile)
{
	const char *type, *unit, *period_type, *period_unit;
	int err = 0;

	reader->comments.size = 0;
	type = reader_string(reader, message->sample_type ? message->sample_type->type_strindex : 0,
			 &err);
	unit = reader_string(reader, message->sample_type ? message->sample_type->unit_strindex : 0,
			 &err);
	period_type = reader_string(reader, message->period_type ?
				message->period_type->type_strindex : 0, &err);
	period_unit = reader_string(reader, message->period_type ?
				message->period_type->unit_strindex : 0, &err);
	if (!type || !unit || !period_type || !period_unit)
		return err;
	profile->source = profile->event = type;
	profile->unit = unit;
	profile->default_type = reader->default_type;
	profile->is_count = !strcmp(type, "samples");
	/* what is counted are samples, each of which stands for a period of something else */
	if (message->period > 0 && profile->is_count) {
		profile->period = (uint64_t)message->period;
		profile->source = profile->event = period_type;
		profile->unit = period_unit;
	} else if (message->period > 0) {
		profile->remarks.period = (uint64_t)message->period;
		profile->remarks.period_type = period_type;
		profile->remarks.period_unit = period_unit;
	}
	profile->start = message->time_unix_nano;
	if (__builtin_add_overflow(message->time_unix_nano, message->duration_nano, &profile->end))
		profile->end = UINT64_MAX;
	err = read_attributes(reader, message, profile);
	profile->remarks.comments = (const char *const *)(const void *)reader->comments.data;
	profile->remarks.comment_count = reader->comments.size / sizeof(const char *);
	return err;
}

int reader_thread(struct reader *reader, const OtlpSample *message, struct view_sample *sample)
{
	const OtlpAnyValue *value;
	const char *key;
	int err = 0;

	reader->labels.size = 0;
	sample->cpu = -1;
	sample->thread = texts_intern(reader->texts, "");
	if (!sample->thread)
		return -E2BIG;
	for (size_t i = 0; i < message->n_attribute_indices && !err; i++) {
		err = reader_attribute(reader, message->attribute_indices[i], &key, &value);
		if (err)
			break;
		if (!strcmp(key, "thread.id") && value && value->value_case == OTLP_VALUE_INT &&
		    reader_count(value) <= UINT32_MAX)
			sample->tid = (uint32_t)reader_count(value);
		else if (!strcmp(key, "thread.name"))
			err = reader_text(reader, value, &sample->thread);
		else if (!strcmp(key, "cpu.logical_number"))
			sample->cpu = (int64_t)reader_count(value);
		else if (reader->sink.with_remarks)
			err = reader_label(reader, message->attribute_indices[i], key, value);
	}
	sample->labels = (const struct view_label *)(const void *)reader->labels.data;
	sample->label_count = reader->labels.size / sizeof(*sample->labels);
	return err;
}
