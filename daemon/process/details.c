// SPDX-License-Identifier: Apache-2.0
#include "process/details.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "process/cgroup.h"

enum {
	ENVIRONMENT_MAX = 64 * 1024,
	ENVIRONMENT_TRIES = 10,
	CGROUP_MAX = 16 * 1024,
	STATUS_MAX = 8 * 1024,
	NAMESPACE_NAME_BYTES = 64,
	COMMAND_LINE_MAX = 1024,
	SERVICE_NAME_MAX = 255,
	EXECUTABLE_MAX = 1024,
	ATTRIBUTES_MAX = 1024,
	ATTRIBUTES_COUNT_MAX = DETAILS_MAX_ATTRIBUTES,
};

/* A value of OTEL_RESOURCE_ATTRIBUTES: percent-encoded, without the spaces around it. */
static char *decode_value(const char *value, size_t length)
{
	char text[SERVICE_NAME_MAX + 1];
	size_t used = 0;

	while (length && *value == ' ') {
		value++;
		length--;
	}
	while (length && value[length - 1] == ' ')
		length--;
	for (size_t i = 0; i < length && used < SERVICE_NAME_MAX; i++) {
		const int byte = hex_percent(value + i, value + length);

		text[used++] = byte >= 0 ? (char)byte : value[i];
		i += byte >= 0 ? 2 : 0;
	}
	text[used] = '\0';
	return used ? utf8_dup(text, SERVICE_NAME_MAX) : NULL;
}

static char *service_of_attributes(const char *attributes)
{
	static const char key[] = "service.name";

	while (*attributes) {
		size_t length = strcspn(attributes, ",");
		const char *equals = memchr(attributes, '=', length);

		while (length && *attributes == ' ') {
			attributes++;
			length--;
		}
		if (equals && !strncmp(attributes, key, sizeof(key) - 1) &&
		    strspn(attributes + sizeof(key) - 1, " ") ==
			    (size_t)(equals - attributes) - (sizeof(key) - 1))
			return decode_value(equals + 1,
					    length - (size_t)(equals + 1 - attributes));
		attributes += length;
		attributes += *attributes == ',';
	}
	return NULL;
}

static const char *variable_of(const char *environment, size_t size, const char *name)
{
	size_t length = strlen(name);

	for (size_t at = 0; at < size; at += strlen(environment + at) + 1)
		if (!strncmp(environment + at, name, length) && environment[at + length] == '=')
			return environment + at + length + 1;
	return NULL;
}

bool details_may_be_told(const char *key)
{
	static const char *const prefixes[] = { "deployment.", "service.", "k8s." };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(key, prefixes[i], strlen(prefixes[i])))
			return strncmp(key, "service.name", 12) != 0 || key[12] == 's';
	return false;
}

static bool is_percent_encoded(const char *value, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (value[i] == '%' && hex_percent(value + i, value + length) < 0)
			return false;
	return true;
}

char *details_attributes(const char *environment, size_t size)
{
	const char *text = variable_of(environment, size, "OTEL_RESOURCE_ATTRIBUTES");
	char kept[ATTRIBUTES_MAX + 1];
	size_t used = 0, count = 0;

	for (; text && *text; text += strcspn(text, ","), text += *text == ',') {
		const char *equals;
		size_t length;

		text += strspn(text, " ");
		length = strcspn(text, ",");
		equals = memchr(text, '=', length);
		if (!equals || !details_may_be_told(text) || used + length + 1 > ATTRIBUTES_MAX ||
		    count == ATTRIBUTES_COUNT_MAX || !is_percent_encoded(text, length))
			continue;
		if (count++)
			kept[used++] = ',';
		memcpy(kept + used, text, length);
		used += length;
	}
	kept[used] = '\0';
	return used ? utf8_dup(kept, ATTRIBUTES_MAX) : NULL;
}

char *details_service_name(const char *environment, size_t size)
{
	static const char service[] = "OTEL_SERVICE_NAME=", all[] = "OTEL_RESOURCE_ATTRIBUTES=";
	const char *attributes = NULL;

	for (size_t at = 0; at < size; at += strlen(environment + at) + 1) {
		const char *variable = environment + at;

		if (!strncmp(variable, service, sizeof(service) - 1) &&
		    variable[sizeof(service) - 1])
			return utf8_dup(variable + sizeof(service) - 1, SERVICE_NAME_MAX);
		if (!attributes && !strncmp(variable, all, sizeof(all) - 1))
			attributes = variable + sizeof(all) - 1;
	}
	return attributes ? service_of_attributes(attributes) : NULL;
}

int details_set_executable(struct image_details *details, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *whole = utf8_dup(path, EXECUTABLE_MAX);
	char *name = utf8_dup(slash && slash[1] ? slash + 1 : path, NAME_MAX);

	if (!whole || !name) {
		free(whole);
		free(name);
		return -ENOMEM;
	}
	free(details->executable_path);
	free(details->executable_name);
	details->executable_path = whole;
	details->executable_name = name;
	return 0;
}

int details_read_executable(int proc, struct image_details *details)
{
	static const char deleted[] = " (deleted)";
	char path[PATH_MAX];
	ssize_t length = readlinkat(proc, "exe", path, sizeof(path) - 1);

	if (length <= 0)
		return length < 0 ? -errno : -ENOENT;
	path[length] = '\0';
	if (length > (ssize_t)sizeof(deleted) - 1 &&
	    !strcmp(path + length - (sizeof(deleted) - 1), deleted))
		path[length - (ssize_t)(sizeof(deleted) - 1)] = '\0';
	return details_set_executable(details, path);
}

/* The innermost of "NSpid:\t4711\t17"; *ret_count: how many there are. */
static uint32_t innermost_pid(const char *status, unsigned int *ret_count)
{
	const char *line = strstr(status, "\nNSpid:");
	unsigned long pid = 0;
	char *end;

	*ret_count = 0;
	if (!line)
		return 0;
	line += strlen("\nNSpid:");
	while (*line == '\t' || *line == ' ') {
		pid = strtoul(line, &end, 10);
		if (end == line)
			break;
		line = end;
		++*ret_count;
	}
	return (uint32_t)pid;
}

static int read_pid(int proc, uint32_t *ret_pid, unsigned int *ret_count)
{
	_cleanup_free_ char *buffer = malloc(STATUS_MAX + 1);
	ssize_t size = buffer ? file_read_text(proc, "status", buffer, STATUS_MAX + 1) : -ENOMEM;

	if (size <= 0)
		return size < 0 ? (int)size : -ESRCH;
	*ret_pid = innermost_pid(buffer, ret_count);
	return 0;
}

static bool read_pid_namespace(int proc, char ret_name[static NAMESPACE_NAME_BYTES])
{
	ssize_t length = readlinkat(proc, "ns/pid", ret_name, NAMESPACE_NAME_BYTES - 1);

	ret_name[max_of(length, (ssize_t)0)] = '\0';
	return length > 0;
}

/* Processes of our own namespace have one number, if ours have in this /proc. */
static const char *own_pid_namespace(void)
{
	static char name[NAMESPACE_NAME_BYTES];
	static bool is_known;
	_cleanup_close_ int self = is_known ? -1 : open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	unsigned int count;
	uint32_t pid;

	if (!is_known && (self < 0 || read_pid(self, &pid, &count) < 0 || count != 1 ||
			  !read_pid_namespace(self, name)))
		name[0] = '\0';
	is_known = true;
	return name;
}

int details_identity(int proc, uint32_t tgid, uint32_t *ret_pid, uint32_t *ret_user)
{
	char namespace[NAMESPACE_NAME_BYTES];
	unsigned int count;
	struct stat st;
	int r = 0;

	/* whatever it may be dumped by, this directory is its effective user's; of one that is gone, root's */
	if (fstat(proc, &st) < 0)
		return -errno;
	/* "status" has all of it, and takes the kernel as long as everything else that is read of a process */
	if (!read_pid_namespace(proc, namespace) || strcmp(namespace, own_pid_namespace()) != 0)
		r = read_pid(proc, ret_pid, &count);
	else
		*ret_pid = 0;
	if (r < 0)
		return r;
	if (*ret_pid == tgid)
		*ret_pid = 0;
	*ret_user = st.st_uid;
	return 0;
}

static void read_command_line(int proc, char *buffer, struct image_details *details)
{
	ssize_t size = file_read_text(proc, "cmdline", buffer, COMMAND_LINE_MAX + 1);

	while (size > 0 && buffer[size - 1] == '\0')
		size--;
	if (size <= 0)
		return;
	for (ssize_t i = 0; i < size; i++)
		if (buffer[i] == '\0')
			buffer[i] = ' ';
	details->command_line = utf8_dup(buffer, COMMAND_LINE_MAX);
}

/*
 * An exec is announced before its environment is in place, and reads as empty until then. That is
 * over within a millisecond of the program's own time; a truly empty environment costs the wait.
 */
static ssize_t read_environment(int proc, char *buffer)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	ssize_t size = file_read_text(proc, "environ", buffer, ENVIRONMENT_MAX + 1);

	for (int tries = 0; !size && tries < ENVIRONMENT_TRIES; tries++) {
		nanosleep(&pause, NULL);
		size = file_read_text(proc, "environ", buffer, ENVIRONMENT_MAX + 1);
	}
	return size;
}

static char *dup_some(const char *text)
{
	return text && *text ? utf8_dup(text, strlen(text)) : NULL;
}

static void read_cgroup(int proc, char *buffer, struct image_details *details)
{
	struct cgroup_facts facts;

	if (file_read_text(proc, "cgroup", buffer, CGROUP_MAX + 1) <= 0)
		return;
	cgroup_read(buffer, &facts);
	details->container_id = dup_some(facts.container_id);
	details->container_name = dup_some(facts.container_name);
	details->pod_uid = dup_some(facts.pod_uid);
	details->pod_qos = dup_some(facts.pod_qos);
	details->unit = dup_some(facts.unit);
	details->cgroup = dup_some(facts.line);
}

int details_read(int proc, uint32_t tgid, bool with_command_line,
		 struct image_details **ret_details)
{
	_cleanup_free_ char *buffer = malloc(ENVIRONMENT_MAX + 1);
	struct image_details *details;
	ssize_t size;

	if (!buffer)
		return -ENOMEM;
	/* read before anything is made of it: this is the first to vanish when the process exits */
	size = read_environment(proc, buffer);
	if (size == -ESRCH || size == -ENOENT)
		return -ESRCH;
	details = calloc(1, sizeof(*details));
	if (!details)
		return -ENOMEM;
	if (size > 0) {
		details->service_name = details_service_name(buffer, (size_t)size);
		details->attributes = details_attributes(buffer, (size_t)size);
	}
	if (details_read_executable(proc, details) == -ENOMEM) {
		image_details_free(details);
		return -ENOMEM;
	}
	read_cgroup(proc, buffer, details);
	details->user = DETAILS_NO_USER;
	details_identity(proc, tgid, &details->pid_in_namespace, &details->user);
	if (with_command_line)
		read_command_line(proc, buffer, details);
	*ret_details = details;
	return 0;
}

int details_inherit(const struct image_details *parent, struct image_details **ret_details)
{
	struct image_details *details = calloc(1, sizeof(*details));

	if (!details)
		return -ENOMEM;
	details->user = parent->user;
	details->container_id = dup_some(parent->container_id);
	details->container_name = dup_some(parent->container_name);
	details->pod_uid = dup_some(parent->pod_uid);
	details->pod_qos = dup_some(parent->pod_qos);
	details->unit = dup_some(parent->unit);
	details->cgroup = dup_some(parent->cgroup);
	details->service_name = dup_some(parent->service_name);
	details->attributes = dup_some(parent->attributes);
	*ret_details = details;
	return 0;
}
