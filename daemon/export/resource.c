// SPDX-License-Identifier: Apache-2.0
#include "export/resource.h"

#include <string.h>

#include "export/attributes.h"
#include "export/entry.h"
#include "export/environment.h"
#include "process/cgroup.h"

static int resource_own(void *ctx, const char *key, const char *value)
{
	attributes_string(ctx, key, value);
	return 0;
}

static void resource_image(struct attributes *attributes, const struct image *image)
{
	const struct image_details *details = image_details(image);

	attributes_int(attributes, "process.pid", image->tgid);
	if (details) {
		attributes_string(attributes, "process.executable.name", details->executable_name);
		attributes_string(attributes, "process.executable.path", details->executable_path);
		attributes_string(attributes, "process.command_line", details->command_line);
		attributes_string(attributes, "container.id", details->container_id);
		attributes_string(attributes, "container.name", details->container_name);
		attributes_string(attributes, "k8s.pod.uid", details->pod_uid);
		attributes_string(attributes, "k8s.pod.qos_class", details->pod_qos);
		attributes_string(attributes, "systemd.unit", details->unit);
		attributes_string(attributes, "process.linux.cgroup", details->cgroup);
		if (details->pid_in_namespace)
			attributes_int(attributes, "process.vpid", details->pid_in_namespace);
	}
	/* a process that was gone before anybody could look */
	attributes_string(attributes, "process.executable.name", image->comm);
}

/*
 * From what was said on purpose to what can be seen: the configuration, the process' own word, now and when it
 * was started, the unit that it runs in, the machine, the program.
 */
static void resource_service(struct attributes *attributes, const struct encode_options *options,
			     const struct image *image, const struct image_context *context)
{
	const struct image_details *details = image ? image_details(image) : NULL;
	char service[CGROUP_UNIT_BYTES];

	attributes_string(attributes, "service.name", options->service_name);
	for (size_t i = 0; i < options->resource_count; i++)
		if (!strcmp(options->resource[i].key, "service.name"))
			attributes_string(attributes, "service.name", options->resource[i].value);
	if (context)
		attributes_string(attributes, "service.name", context->service_name);
	if (details) {
		attributes_string(attributes, "service.name", details->service_name);
		if (details->unit && cgroup_unit_service(details->unit, service, sizeof(service)))
			attributes_string(attributes, "service.name", service);
		attributes_string(attributes, "service.name", details->container_name);
		attributes_string(attributes, "service.name", details->executable_name);
	}
	attributes_string(attributes, "service.name", image ? image->comm : "[kernel]");
}

/* Attributes of one process cannot be configured for all. */
static bool is_of_process(const char *key)
{
	return !strncmp(key, "process.", 8) || !strncmp(key, "container.", 10);
}

static void attributes_freep(struct attributes **attributes)
{
	attributes_free(*attributes);
}

static int resource_pack(struct buffer *buffer, struct attributes *attributes)
{
	OtlpResource message;
	size_t size;

	opentelemetry__proto__resource__v1__resource__init(&message);
	message.attributes = attributes->pointers;
	message.n_attributes = attributes->count;
	size = entry_resource_size(&message);
	if (buffer_field(buffer, OTLP_RESOURCE_PROFILES_RESOURCE, size) ||
	    !buffer_reserve(buffer, size))
		return -ENOBUFS;
	buffer->size += entry_resource(&message, buffer->data + buffer->size);
	return 0;
}

static int resource_make(struct buffer *buffer, const struct encode_options *options, const struct image *image,
			 const struct image_context *context, struct relabel_result *ret_sent)
{
	_cleanup_(attributes_freep) struct attributes *attributes = attributes_new();

	if (!attributes)
		return -ENOMEM;
	if (options->resource_count > ENCODE_MAX_RESOURCE)
		return -E2BIG;
	if (image)
		resource_image(attributes, image);
	else
		attributes_string(attributes, "process.executable.name", "[kernel]");
	resource_service(attributes, options, image, context);
	for (size_t i = 0; i < options->resource_count; i++)
		if (!is_of_process(options->resource[i].key))
			attributes_string(attributes, options->resource[i].key,
					  options->resource[i].value);
	/* the process says so: what is malformed in it is left out */
	if (context && context->attributes)
		environment_each_pair(context->attributes, resource_own, attributes);
	if (image && image_details(image) && image_details(image)->attributes)
		environment_each_pair(image_details(image)->attributes, resource_own, attributes);
	*ret_sent = relabel_apply(options->relabel, attributes, !options->is_draft && !options->is_again);
	if (attributes->error)
		return attributes->error;
	return ret_sent->one_in ? resource_pack(buffer, attributes) : 0;
}

static const struct image_resource *find_kept(const struct image *image, const struct encode_options *options,
					      const struct image_details *details,
					      const struct image_context *context)
{
	const struct image_resource *kept = atomic_load_explicit(&image->resource, memory_order_acquire);

	while (kept && (kept->by != options->number || kept->details != details || kept->context != context))
		kept = kept->older;
	return kept;
}

/* A process is in many windows and in several files of the journal, and hardly ever does more become known of it. */
static void keep(struct image *image, const struct encode_options *options, const struct image_details *details,
		 const struct image_context *context, uint32_t one_in, const struct buffer *buffer, size_t before)
{
	const size_t size = buffer->size - before;
	struct image_resource *kept = malloc(sizeof(*kept) + size);

	if (!kept)
		return;
	kept->details = details;
	kept->context = context;
	kept->by = options->number;
	kept->one_in = one_in;
	kept->size = size;
	if (size)
		memcpy(kept->data, buffer->data + before, size);
	image_keep_resource(image, kept);
}

int resource_write(struct buffer *buffer, const struct encode_options *options, struct image *image,
		   struct relabel_result *ret_sent)
{
	/* once: thread B may put a newer one in its place at any time. What has details has them for good. */
	const struct image_context *context = image ? image_context(image) : NULL;
	const struct image_details *details = image ? image_details(image) : NULL;
	const bool is_counted = relabel_rules(options->relabel) && !options->is_draft && !options->is_again;
	const bool may_keep = details && options->number && !is_counted;
	const struct image_resource *kept = may_keep ? find_kept(image, options, details, context) : NULL;
	const size_t before = buffer->size;
	int err;

	if (kept) {
		*ret_sent = (struct relabel_result){ .rule = -1, .one_in = kept->one_in };
		return kept->size ? buffer_append(buffer, kept->data, kept->size) : 0;
	}
	err = resource_make(buffer, options, image, context, ret_sent);
	if (!err && may_keep)
		keep(image, options, details, context, ret_sent->one_in, buffer, before);
	return err;
}
