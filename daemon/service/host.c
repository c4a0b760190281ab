// SPDX-License-Identifier: Apache-2.0
#include "service/host.h"

#include <string.h>
#include <sys/utsname.h>

#include "base/file.h"

enum {
	MACHINE_ID_BYTES = 32,
	MAX_MACHINE_ID_FILE = 256,
	MAX_RELEASE_FILE = 16384,
	MAX_RELEASE_VALUE = 256,
};

/* Keeps the first value of a key: the caller begins with what wins. */
static int add(void *ctx, const char *key, const char *value)
{
	struct host_resource *resource = ctx;
	_cleanup_free_ char *key_copy = NULL, *value_copy = NULL;

	for (size_t i = 0; i < resource->count; i++)
		if (!strcmp(resource->attributes[i].key, key))
			return 0;
	if (resource->count == ENCODE_MAX_RESOURCE)
		return -E2BIG;
	if (resource->count == resource->capacity) {
		size_t capacity = resource->capacity ? 2 * resource->capacity : 8;
		struct encode_attribute *grown =
			reallocarray(resource->attributes, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		resource->attributes = grown;
		resource->capacity = capacity;
	}
	key_copy = strdup(key);
	value_copy = strdup(value);
	if (!key_copy || !value_copy)
		return -ENOMEM;
	resource->attributes[resource->count++] = (struct encode_attribute){
		.key = steal_ptr(key_copy),
		.value = steal_ptr(value_copy),
	};
	return 0;
}

/* OpenTelemetry's names of the architectures we run on. */
static const char *architecture(const char *machine)
{
	if (!strcmp(machine, "x86_64"))
		return "amd64";
	if (!strcmp(machine, "aarch64"))
		return "arm64";
	return machine;
}

void host_release_value(const char *text, const char *name, char *ret_value, size_t size)
{
	size_t length = strlen(name), used = 0;
	char quote = '\0';

	while (*text && (strncmp(text, name, length) != 0 || text[length] != '=')) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	text += *text ? length + 1 : 0;
	if (*text == '"' || *text == '\'')
		quote = *text++;
	for (; *text && *text != '\n' && (!quote || *text != quote) && used + 1 < size; text++) {
		if (*text == '\\' && quote != '\'' && text[1] && text[1] != '\n')
			text++;
		ret_value[used++] = *text;
	}
	ret_value[used] = '\0';
}

static int add_release(struct host_resource *resource)
{
	static const char *const names[][2] = {
		{ "os.name", "NAME" }, { "os.version", "VERSION_ID" },
		{ "os.description", "PRETTY_NAME" },
	};
	_cleanup_free_ char *text = NULL;
	char value[MAX_RELEASE_VALUE];
	int ret = 0;

	if (file_read(AT_FDCWD, "/etc/os-release", MAX_RELEASE_FILE, &text, NULL) < 0 &&
	    file_read(AT_FDCWD, "/usr/lib/os-release", MAX_RELEASE_FILE, &text, NULL) < 0)
		return 0;
	for (size_t i = 0; !ret && i < ARRAY_SIZE(names); i++) {
		host_release_value(text, names[i][1], value, sizeof(value));
		if (value[0])
			ret = add(resource, names[i][0], value);
	}
	return ret;
}

static int add_host(struct host_resource *resource)
{
	_cleanup_free_ char *id = NULL;
	struct utsname name;
	int ret;

	if (uname(&name) < 0)
		return -errno;
	ret = add(resource, "host.name", name.nodename);
	if (!ret)
		ret = add(resource, "host.arch", architecture(name.machine));
	if (!ret)
		ret = add(resource, "os.type", "linux");
	if (!ret)
		ret = add_release(resource);
	/* a distribution that has none, as rolling ones, is at least the kernel's */
	if (!ret)
		ret = add(resource, "os.version", name.release);
	if (!ret)
		ret = add(resource, "os.build_id", name.release);
	if (ret < 0)
		return ret;
	/* a container's or an image's file may be empty or say "uninitialized" */
	if (file_read(AT_FDCWD, "/etc/machine-id", MAX_MACHINE_ID_FILE, &id, NULL) < 0 ||
	    strspn(id, "0123456789abcdef") != MACHINE_ID_BYTES)
		return 0;
	id[MACHINE_ID_BYTES] = '\0';
	return add(resource, "host.id", id);
}

int host_resource_load(const struct environment *environment, const char *text,
		       struct host_resource *ret_resource, char *ret_error, size_t error_size)
{
	struct host_resource resource = { 0 };
	int ret = 0;

	for (size_t i = 0; !ret && i < environment->resource_count; i++)
		ret = add(&resource, environment->resource[i].key, environment->resource[i].value);
	if (!ret && text)
		ret = environment_each_pair(text, add, &resource);
	if (!ret)
		ret = add_host(&resource);
	if (ret < 0) {
		if (ret == -E2BIG)
			snprintf(ret_error, error_size,
				 "more than %d resource attributes, including the host's own: set "
				 "fewer in OTEL_RESOURCE_ATTRIBUTES or [resource] attributes",
				 ENCODE_MAX_RESOURCE);
		else
			snprintf(ret_error, error_size, "cannot describe this host: %s",
				 strerror(-ret));
		host_resource_done(&resource);
		return ret;
	}
	*ret_resource = resource;
	return 0;
}

void host_resource_done(struct host_resource *resource)
{
	for (size_t i = 0; i < resource->count; i++) {
		/* ours, though the encoder sees them as constant */
		free((void *)(uintptr_t)resource->attributes[i].key);
		free((void *)(uintptr_t)resource->attributes[i].value);
	}
	free(resource->attributes);
	*resource = (struct host_resource){ 0 };
}
