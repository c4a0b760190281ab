// SPDX-License-Identifier: Apache-2.0
#include "doctor/look.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <string.h>

#include "base/file.h"

/* modules.dep and cpuinfo are the largest; what is larger is not what it claims to be */
#define LOOK_MAX ((size_t)16 << 20)

static int join(const char *root, const char *path, char *buffer, size_t size)
{
	int length = snprintf(buffer, size, "%s/%s", root, path);

	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

int look_text(const char *root, const char *path, char **ret_text)
{
	char buffer[PATH_MAX];
	size_t size;
	int ret;

	ret = join(root, path, buffer, sizeof(buffer));
	if (!ret)
		ret = file_read(AT_FDCWD, buffer, LOOK_MAX, ret_text, &size);
	if (ret < 0)
		return ret;
	while (size && isspace((unsigned char)(*ret_text)[size - 1]))
		(*ret_text)[--size] = '\0';
	return 0;
}

ssize_t look_bytes(const char *root, const char *path, void *buffer, size_t size)
{
	_cleanup_close_ int fd = -1;
	char joined[PATH_MAX];
	ssize_t got;
	int ret;

	ret = join(root, path, joined, sizeof(joined));
	if (ret < 0)
		return ret;
	fd = open(joined, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	got = read(fd, buffer, size);
	return got < 0 ? -errno : got;
}

int look_for(const char *root, const char *path)
{
	char buffer[PATH_MAX];
	int ret;

	ret = join(root, path, buffer, sizeof(buffer));
	if (ret < 0)
		return ret;
	return access(buffer, F_OK) < 0 ? -errno : 0;
}

int look_number(const char *root, const char *path, int64_t *ret_number)
{
	_cleanup_free_ char *text = NULL;
	char *end;
	int ret;

	ret = look_text(root, path, &text);
	if (ret < 0)
		return ret;
	errno = 0;
	*ret_number = strtoll(text, &end, 10);
	return errno || end == text || *end ? -EINVAL : 0;
}

int look_into(const char *root, const char *path, bool (*each)(void *ctx, const char *name),
	      void *ctx)
{
	char buffer[PATH_MAX];
	struct dirent *entry;
	DIR *dir;
	int ret;

	ret = join(root, path, buffer, sizeof(buffer));
	if (ret < 0)
		return ret;
	dir = opendir(buffer);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && !each(ctx, entry->d_name))
			break;
	closedir(dir);
	return 0;
}

int look_field(const char *text, const char *key, char separator, char **ret_value)
{
	size_t length = strlen(key);

	for (const char *line = text; *line;) {
		size_t bytes = strcspn(line, "\n");

		if (bytes > length && !strncmp(line, key, length)) {
			const char *value = line + length, *end = line + bytes;

			while (value < end && isblank((unsigned char)*value))
				value++;
			if (value < end && *value == separator) {
				value++;
				while (value < end && isblank((unsigned char)*value))
					value++;
				*ret_value = strndup(value, (size_t)(end - value));
				return *ret_value ? 0 : -ENOMEM;
			}
		}
		line += bytes + (line[bytes] == '\n');
	}
	return -ENOENT;
}

bool look_has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += length)
		if ((at == text || isspace((unsigned char)at[-1])) &&
		    (!at[length] || isspace((unsigned char)at[length])))
			return true;
	return false;
}
