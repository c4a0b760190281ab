// SPDX-License-Identifier: Apache-2.0
#include "export/header_file.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "broker/broker.h"

enum { TEXT_MAX = 64 << 10 };

int header_file_read(const char *path, char **ret_text)
{
	_cleanup_close_ int fd = file_open_regular(path);
	_cleanup_free_ char *text = NULL;
	size_t size;
	int err;

	if (fd == -EACCES && broker_is_there())
		fd = broker_read_secret(path);
	if (fd < 0)
		return fd;
	/* the broker's copy stands where its writer left it */
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	err = file_read_fd(fd, TEXT_MAX, &text, &size);
	if (err)
		return err;
	if (strlen(text) != size)
		return -EINVAL;
	*ret_text = steal_ptr(text);
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Without the blanks around it; NULL: it holds what could end a header and begin another. */
static char *trim(char *text)
{
	size_t length;

	while (is_blank(*text))
		text++;
	length = strlen(text);
	while (length && is_blank(text[length - 1]))
		length--;
	text[length] = '\0';
	for (const char *c = text; *c; c++)
		if (((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7f)
			return NULL;
	return text;
}

int header_file_each(char *text, int (*each)(void *ctx, const char *name, const char *value), void *ctx)
{
	char *line, *name, *value;
	int err;

	while ((line = strsep(&text, "\n"))) {
		line = trim(line);
		if (!line)
			return -EINVAL;
		if (!*line || *line == '#')
			continue;
		value = strchr(line, ':');
		if (!value || value == line)
			return -EINVAL;
		*value++ = '\0';
		name = trim(line);
		value = trim(value);
		err = name && value ? each(ctx, name, value) : -EINVAL;
		if (err)
			return err;
	}
	return 0;
}
