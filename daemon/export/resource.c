// SPDX-License-Identifier: Apache-2.0
#include "export/resource.h"

#include <string.h>

#include "base/utf8.h"
#include "export/environment.h"
#include "export/otlp.h"
#include "process/cgroup.h"
#include "process/details.h"

#define OF_IMAGE_MAX (12u + DETAILS_MAX_ATTRIBUTES) /* what resource_image() and service.name come to at most */
#define RESOURCE_MAX (ENCODE_MAX_RESOURCE + OF_IMAGE_MAX)
#define VALUE_MAX 4096u

struct resource {
	OtlpResource message;
	OtlpKeyValue *pointers[RESOURCE_MAX];
	OtlpKeyValue attributes[RESOURCE_MAX];	/* each owns its key */
	OtlpAnyValue values[RESOURCE_MAX];	/* and its value, if that is a string */
	int error;
};

static void resource_free(struct resource *resource)
{
	for (size_t i = 0; i < resource->message.n_attributes; i++) {
		free(resource->attributes[i].key);
		if (resource->values[i].value_case == OTLP_VALUE_STRING)
			free(resource->values[i].string_value);
	}
	free(resource);
}

static void resource_freep(struct resource **resource)
{
	if (*resource)
		resource_free(*resource);
}

/* The first attribute of a key stays: what is known of the image comes before what is configured. */
static OtlpAnyValue *resource_add(struct resource *resource, const char *key)
{
	size_t i = resource->message.n_attributes;
	char *clean;

	for (size_t k = 0; k < i; k++)
		if (!strcmp(resource->attributes[k].key, key))
			return NULL;
	if (!key[0])
		return NULL;
	if (i == RESOURCE_MAX) {
		resource->error = -E2BIG;
		return NULL;
	}
	clean = utf8_dup(key, VALUE_MAX);
	if (!clean) {
		resource->error = -ENOMEM;
		return NULL;
	}
	otlp_common_init(key_value, &resource->attributes[i]);
	otlp_common_init(any_value, &resource->values[i]);
	resource->attributes[i].key = clean;
	resource->attributes[i].value = &resource->values[i];
	resource->pointers[i] = &resource->attributes[i];
	resource->message.n_attributes++;
	return &resource->values[i];
}

static void resource_string(struct resource *resource, const char *key, const char *value)
{
	OtlpAnyValue *any = value && value[0] ? resource_add(resource, key) : NULL;

	if (!any)
		return;
	any->string_value = utf8_dup(value, VALUE_MAX);
	if (any->string_value)
		any->value_case = OTLP_VALUE_STRING;
	else
		resource->error = -ENOMEM;
}

static void resource_int(struct resource *resource, const char *key, int64_t value)
{
	OtlpAnyValue *any = resource_add(resource, key);

	if (!any)
		return;
	any->value_case = OTLP_VALUE_INT;
	any->int_value = value;
}

static int resource_own(void *ctx, const char *key, const char *value)
{
	resource_string(ctx, key, value);
	return 0;
}

static void resource_image(struct resource *resource, const struct image *image)
{
	const struct image_details *details = image_details(image);

	resource_int(resource, "process.pid", image->tgid);
	if (details) {
		resource_string(resource, "process.executable.name", details->executable_name);
		resource_string(resource, "process.executable.path", details->executable_path);
		resource_string(resource, "process.command_line", details->command_line);
		resource_string(resource, "container.id", details->container_id);
		resource_string(resource, "container.name", details->container_name);
		resource_string(resource, "k8s.pod.uid", details->pod_uid);
		resource_string(resource, "k8s.pod.qos_class", details->pod_qos);
		resource_string(resource, "systemd.unit", details->unit);
		if (details->pid_in_namespace)
			resource_int(resource, "process.vpid", details->pid_in_namespace);
	}
	/* a process that was gone before anybody could look */
	resource_string(resource, "process.executable.name", image->comm);
}

/*
 * From what was said on purpose to what can be seen: the configuration, the process' own word, the unit that it
 * runs in, the machine, the program.
 */
static void resource_service(struct resource *resource, const struct encode_options *options,
			     const struct image *image)
{
	const struct image_details *details = image ? image_details(image) : NULL;
	char service[CGROUP_UNIT_BYTES];

	resource_string(resource, "service.name", options->service_name);
	for (size_t i = 0; i < options->resource_count; i++)
		if (!strcmp(options->resource[i].key, "service.name"))
			resource_string(resource, "service.name", options->resource[i].value);
	if (details) {
		resource_string(resource, "service.name", details->service_name);
		if (details->unit && cgroup_unit_service(details->unit, service, sizeof(service)))
			resource_string(resource, "service.name", service);
		resource_string(resource, "service.name", details->container_name);
		resource_string(resource, "service.name", details->executable_name);
	}
	resource_string(resource, "service.name", image ? image->comm : "[kernel]");
}

/* Attributes of one process cannot be configured for all. */
static bool is_of_process(const char *key)
{
	return !strncmp(key, "process.", 8) || !strncmp(key, "container.", 10);
}

int resource_write(struct buffer *buffer, const struct encode_options *options,
		   const struct image *image)
{
	_cleanup_(resource_freep) struct resource *resource = calloc(1, sizeof(*resource));
	size_t size;

	if (!resource)
		return -ENOMEM;
	if (options->resource_count > ENCODE_MAX_RESOURCE)
		return -E2BIG;
	opentelemetry__proto__resource__v1__resource__init(&resource->message);
	resource->message.attributes = resource->pointers;
	if (image)
		resource_image(resource, image);
	else
		resource_string(resource, "process.executable.name", "[kernel]");
	resource_service(resource, options, image);
	for (size_t i = 0; i < options->resource_count; i++)
		if (!is_of_process(options->resource[i].key))
			resource_string(resource, options->resource[i].key,
					options->resource[i].value);
	/* the process says so: what is malformed in it is left out */
	if (image && image_details(image) && image_details(image)->attributes)
		environment_each_pair(image_details(image)->attributes, resource_own, resource);
	if (resource->error)
		return resource->error;

	size = protobuf_c_message_get_packed_size(&resource->message.base);
	if (buffer_field(buffer, OTLP_RESOURCE_PROFILES_RESOURCE, size) ||
	    !buffer_reserve(buffer, size))
		return -ENOBUFS;
	protobuf_c_message_pack(&resource->message.base, buffer->data + buffer->size);
	buffer->size += size;
	return 0;
}
