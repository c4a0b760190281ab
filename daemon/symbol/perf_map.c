// SPDX-License-Identifier: Apache-2.0
#include "symbol/perf_map.h"

#include <string.h>

#include "base/clock.h"

enum {
	CHUNK_BYTES = 512 << 10,
	END_BYTES = 16 << 20,	/* more functions than are kept, in lines of up to 256 bytes */
};

_Static_assert((int)PERF_MAP_LINE_MAX < (int)CHUNK_BYTES, "a line fits");

/* The hexadecimal number at *@at, and the one space or tab behind it, which it then is behind. */
static bool take_number(const char **at, const char *end, uint64_t *ret_number)
{
	const char *p = *at, *first;
	uint64_t number = 0;

	if (end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
		p += 2;
	for (first = p; p < end; p++) {
		unsigned int digit = (unsigned char)*p - '0';

		if (digit > 9) {
			digit = ((unsigned char)*p | 0x20) - 'a';
			if (digit > 5)
				break;
			digit += 10;
		}
		if (number >> 60)
			return false;
		number = number << 4 | digit;
	}
	if (p == first || p == end || (*p != ' ' && *p != '\t'))
		return false;
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	*at = p;
	*ret_number = number;
	return true;
}

/* -EINVAL: it is none. @offset: in the file, of @line. */
static int take_line(struct code_batch *batch, const char *line, const char *end, uint64_t offset)
{
	const char *name = line;
	uint64_t start, size;

	if (!take_number(&name, end, &start) || !take_number(&name, end, &size) || name == end ||
	    *name == '\r')
		return -EINVAL;
	return code_batch_add(batch, start, size, offset + (uint64_t)(name - line));
}

/* All lines of @chunk. *ret_used: bytes of it that are done with. */
static int take_lines(struct code_batch *batch, const char *chunk, size_t length, uint64_t offset,
		      struct code_read *read, size_t *ret_used)
{
	size_t used = 0;
	int r = 0;

	while (used < length && r != -ENOMEM) {
		const char *line = chunk + used, *end = memchr(line, '\n', length - used);

		if (!end)
			break;
		r = take_line(batch, line, end, offset + used);
		read->bad += r == -EINVAL;
		used += (size_t)(end - line) + 1;
	}
	/* its end may come in megabytes, or never */
	if (length - used > PERF_MAP_LINE_MAX) {
		read->bad++;
		used = length;
	}
	*ret_used = used;
	return r == -ENOMEM ? r : 0;
}

/* Whole lines of [@offset, @size). */
static int read_lines(int fd, uint64_t offset, uint64_t size, uint64_t deadline, struct code_read *ret_read)
{
	_cleanup_free_ char *chunk = malloc(CHUNK_BYTES);
	struct code_batch batch = { .table = &ret_read->table };
	size_t used = 1;
	int r = chunk ? 0 : -ENOMEM;

	*ret_read = (struct code_read){ .end = offset };
	while (!r && used && ret_read->end < size && clock_monotonic() < deadline) {
		const size_t room = (size_t)min_of(size - ret_read->end, (uint64_t)CHUNK_BYTES);
		ssize_t n = pread(fd, chunk, room, (off_t)ret_read->end);

		if (n <= 0) {
			r = n < 0 ? -errno : 0;
			break;
		}
		r = take_lines(&batch, chunk, (size_t)n, ret_read->end, ret_read, &used);
		ret_read->end += used;
	}
	if (!r)
		r = code_batch_flush(&batch);
	code_batch_free(&batch);
	if (r < 0)
		code_table_free(&ret_read->table);
	return r;
}

/* Where the first line begins that is whole in the last END_BYTES; 0: in front of them, or none does */
static uint64_t find_end(int fd, uint64_t size)
{
	const uint64_t at = size > END_BYTES ? size - END_BYTES : 0;
	char bytes[4096];
	ssize_t n = at ? pread(fd, bytes, sizeof(bytes), (off_t)at) : 0;
	const char *newline = n > 0 ? memchr(bytes, '\n', (size_t)n) : NULL;

	return newline ? at + (uint64_t)(newline - bytes) + 1 : 0;
}

/*
 * Of a large file the end comes first. If that has more functions than are kept, those in front of it would all go: what is
 * kept is the latest of them either way. Half of the time is for this, so that a file whose end has fewer is read on all the same.
 */
int perf_map_read(int fd, uint64_t offset, uint64_t size, uint64_t deadline,
		  struct code_read *ret_read)
{
	const uint64_t now = clock_monotonic();
	uint64_t end;
	int r;

	size = min_of(size, CODE_FILE_MAX);
	end = offset || now >= deadline ? 0 : find_end(fd, size);
	if (end) {
		r = read_lines(fd, end, size, now + (deadline - now) / 2, ret_read);
		if (r < 0 || ret_read->table.dropped)
			return r;
		code_table_free(&ret_read->table);
	}
	return read_lines(fd, offset, size, deadline, ret_read);
}
