// SPDX-License-Identifier: Apache-2.0
#include "process/texts.h"

#include <string.h>

#include "base/utf8.h"

static const struct {
	size_t offset;		/* of a char *, NULL: none */
	size_t max;
} texts[] = {
	{ offsetof(struct image_details, executable_path), 1024 },
	{ offsetof(struct image_details, executable_name), 255 },
	{ offsetof(struct image_details, container_id), 64 },
	{ offsetof(struct image_details, container_name), 64 },
	{ offsetof(struct image_details, pod_uid), 36 },
	{ offsetof(struct image_details, pod_qos), 15 },
	{ offsetof(struct image_details, unit), 255 },
	{ offsetof(struct image_details, cgroup), 512 },
	{ offsetof(struct image_details, service_name), 255 },
	{ offsetof(struct image_details, attributes), 1024 },
	{ offsetof(struct image_details, command_line), 1024 },
};

size_t texts_put(const struct image_details *details, char ret_bytes[static TEXTS_MAX_BYTES])
{
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *text = *(char *const *)(const void *)((const char *)details + texts[i].offset);
		size_t length = text ? strnlen(text, texts[i].max) : 0;

		if (length)
			memcpy(ret_bytes + used, text, length);
		used += length;
		ret_bytes[used++] = '\0';
	}
	return used;
}

int texts_take(const char *bytes, size_t size, struct image_details *details)
{
	const char *end = bytes + size;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		char **text = (void *)((char *)details + texts[i].offset);
		const char *stop = memchr(bytes, '\0', (size_t)(end - bytes));

		if (!stop)
			return -EBADMSG;
		if (stop > bytes) {
			*text = utf8_dup(bytes, texts[i].max);
			if (!*text)
				return -ENOMEM;
		}
		bytes = stop + 1;
	}
	return bytes == end ? 0 : -EBADMSG;
}
