// SPDX-License-Identifier: Apache-2.0
#include "view/narrow.h"

#include <string.h>

#include "view/reader_message.h"
#include "view/trim.h"

struct narrow {
	struct reader *reader;
	ProtobufCAllocator *allocator;	/* of the message, to free what is left out */
};

/* 1: stays, 0, -errno */
static int keeps_sample(struct narrow *narrow, const OtlpSample *message)
{
	struct view_sample sample = { 0 };

	return reader_thread(narrow->reader, message, &sample) ?:
	       selection_has_thread(&narrow->reader->selection, sample.tid, sample.thread);
}

/* What is a number of all samples says nothing of a part of them. */
static int drop_counts(struct narrow *narrow, OtlpProfile *message)
{
	const OtlpAnyValue *value;
	const char *key;
	size_t kept = 0;

	for (size_t i = 0; i < message->n_attribute_indices; i++) {
		int err = reader_attribute(narrow->reader, message->attribute_indices[i], &key, &value);

		if (err)
			return err;
		if (!reader_is_count(key))
			message->attribute_indices[kept++] = message->attribute_indices[i];
	}
	message->n_attribute_indices = kept;
	return 0;
}

static int keeps_profile(struct narrow *narrow, OtlpProfile *message)
{
	const size_t all = message->n_samples;
	struct view_profile profile = { 0 };
	size_t kept = 0;
	int ret = reader_profile(narrow->reader, message, &profile);

	if (ret || !selection_has_event(&narrow->reader->selection, profile.source, profile.event))
		return ret;
	for (size_t i = 0; i < all; i++) {
		ret = ret < 0 ? ret : keeps_sample(narrow, message->samples[i]);
		/* also behind an error: each is freed once */
		if (ret)
			message->samples[kept++] = message->samples[i];
		else
			protobuf_c_message_free_unpacked(&message->samples[i]->base, narrow->allocator);
	}
	message->n_samples = kept;
	if (ret >= 0 && kept < all)
		ret = drop_counts(narrow, message);
	return ret < 0 ? ret : kept > 0;
}

static int keeps_scope(struct narrow *narrow, OtlpScopeProfiles *scope)
{
	size_t kept = 0;
	int ret = 0;

	for (size_t i = 0; i < scope->n_profiles; i++) {
		ret = ret < 0 ? ret : keeps_profile(narrow, scope->profiles[i]);
		if (ret)
			scope->profiles[kept++] = scope->profiles[i];
		else
			protobuf_c_message_free_unpacked(&scope->profiles[i]->base, narrow->allocator);
	}
	scope->n_profiles = kept;
	return ret < 0 ? ret : kept > 0;
}

static int keeps_group(struct narrow *narrow, OtlpResourceProfiles *group)
{
	struct view_process process;
	size_t kept = 0;
	int ret = reader_process(narrow->reader, group->resource, &process);

	if (ret || !selection_has_process(&narrow->reader->selection, process.pid, process.name,
					  process.container_id, process.service_name, process.cgroup))
		return ret;
	for (size_t i = 0; i < group->n_scope_profiles; i++) {
		ret = ret < 0 ? ret : keeps_scope(narrow, group->scope_profiles[i]);
		if (ret)
			group->scope_profiles[kept++] = group->scope_profiles[i];
		else
			protobuf_c_message_free_unpacked(&group->scope_profiles[i]->base,
							 narrow->allocator);
	}
	group->n_scope_profiles = kept;
	return ret < 0 ? ret : kept > 0;
}

static int narrow_groups(struct narrow *narrow, OtlpProfilesData *message)
{
	size_t kept = 0;
	int ret = 0;

	for (size_t i = 0; i < message->n_resource_profiles; i++) {
		ret = ret < 0 ? ret : keeps_group(narrow, message->resource_profiles[i]);
		if (ret)
			message->resource_profiles[kept++] = message->resource_profiles[i];
		else
			protobuf_c_message_free_unpacked(&message->resource_profiles[i]->base,
							 narrow->allocator);
	}
	message->n_resource_profiles = kept;
	return ret < 0 ? ret : 0;
}

int narrow_message(struct reader *reader, const uint8_t *data, size_t size, struct buffer *ret_message)
{
	_cleanup_(unpack_free) struct unpacked unpacked = { 0 };
	_cleanup_free_ const char **strings = NULL;
	OtlpProfilesData *message;
	size_t packed;
	int err;

	buffer_clear(ret_message);
	if (!unpack_profiles(&unpacked, data, size, UNPACK_MAX))
		return unpacked.is_exhausted ? -E2BIG : -EBADMSG;
	message = (OtlpProfilesData *)unpacked.message;
	if (!message->dictionary)
		return -EBADMSG;
	strings = calloc(message->dictionary->n_string_table + 1, sizeof(*strings));
	if (!strings)
		return -E2BIG;
	reader->dictionary = message->dictionary;
	reader->strings = strings;
	err = narrow_groups(&(struct narrow){ .reader = reader, .allocator = &unpacked.allocator },
			    message);
	if (err || !message->n_resource_profiles)
		return err;
	/* what is left out is nobody's business: neither are its names */
	err = trim_dictionary(message, &unpacked.allocator);
	if (err)
		return err;
	packed = protobuf_c_message_get_packed_size(&message->base);
	if (!buffer_reserve(ret_message, packed))
		return -E2BIG;
	ret_message->size = protobuf_c_message_pack(&message->base, ret_message->data);
	return 0;
}
