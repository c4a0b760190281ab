// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a program and as what belongs to it, a package or .dwo files of its split DWARF or what dwz has moved out of it: lines
 * of addresses all over it. No crash, and what is wanted and answered is what helper/parser_dwos.c and parser_lines.c let through.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "symbol/lines.h"
#include "symbol/lines_file.h"

#include "code.h"

enum { ADDRESSES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of all code. */
static uint32_t choose(const uint8_t *data, size_t size, uint64_t addresses[static ADDRESSES])
{
	uint32_t count = code_addresses(data, size, 16, ADDRESSES, addresses);

	qsort(addresses, count, sizeof(*addresses), code_by_number);
	return count;
}

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	return fd;
}

static void give_dwos(struct lines *lines, const uint64_t *addresses, uint32_t count, const uint8_t *data, size_t size,
		      uint64_t deadline)
{
	static struct dwarf_dwo_names names;
	uint32_t dwos, asked;
	int fd;

	if (lines_find_dwos(lines, addresses, count, deadline, &dwos, &asked) < 0)
		return;
	if (dwos > DWARF_DWOS_MAX || !asked || asked > count)
		abort();
	for (uint32_t i = 0; i <= dwos; i++) {
		if (!lines_dwo_names(lines, i, deadline, &names) &&
		    (i == dwos || !memchr(names.name, '\0', sizeof(names.name)) ||
		     !memchr(names.directory, '\0', sizeof(names.directory))))
			abort();
		fd = file_of(data, size);
		if (!lines_set_dwo(lines, i, &fd, size, deadline) && (i == dwos || fd >= 0))
			abort();
		if (fd >= 0)
			close(fd);
	}
}

static void ask(struct lines *lines, const uint64_t *addresses, uint32_t count, uint64_t deadline)
{
	static struct lines_answer answer;
	uint64_t sum = 0;

	if (lines_find(lines, addresses, count, deadline, &answer))
		return;
	for (uint32_t i = 0; i < count; i++) {
		if (answer.counts[i] > LINES_FRAMES_MAX)
			abort();
		sum += answer.counts[i];
	}
	if (sum != answer.frame_count || answer.split > count || answer.strings[0] || answer.strings[answer.string_bytes - 1])
		abort();
	for (uint32_t i = 0; i < answer.frame_count; i++)
		if (answer.frames[i].name >= answer.string_bytes || answer.frames[i].file >= answer.string_bytes)
			abort();
	lines_answer_free(&answer);
}

/* A byte of how, two of how long the program is; the program, and the other file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t length = size < 3 ? 0 : (size_t)data[1] | (size_t)data[2] << 8;
	const uint64_t deadline = clock_monotonic() + NSEC_PER_SEC;
	uint64_t addresses[ADDRESSES];
	struct lines *lines;
	uint32_t count;
	int fd, other;

	if (size < 3 || length > size - 3)
		return 0;
	count = choose(data + 3, length, addresses);
	if (!count)
		return 0;
	fd = file_of(data + 3, length);
	other = file_of(data + 3 + length, size - 3 - length);
	if (!lines_open(fd, length, true, deadline, &lines)) {
		if (data[0] & 4)
			lines_set_alt(lines, other, size - 3 - length, deadline);
		if (data[0] & 1)
			lines_set_split(lines, other, size - 3 - length, deadline);
		if (data[0] & 2)
			give_dwos(lines, addresses, count, data + 3 + length, size - 3 - length, deadline);
		ask(lines, addresses, count, deadline);
		lines_free(lines);
	}
	close(fd);
	close(other);
	return 0;
}
