// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a file with debugging information: lines of addresses all over it, by the index that it has and by that
 * of its units, and by one that was kept and damaged. No crash, and what is answered is what helper/parser_lines.c lets through.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

#include "base/clock.h"
#include "symbol/lines.h"
#include "symbol/lines_file.h"

#include "code.h"

enum { ADDRESSES = 128 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of all code, and some that is nowhere. */
static uint32_t choose(const uint8_t *data, size_t size, uint64_t addresses[static ADDRESSES])
{
	uint32_t count = code_addresses(data, size, 32, ADDRESSES - 2, addresses);

	if (!count)
		return 0;
	addresses[count++] = 1;
	addresses[count++] = UINT64_MAX;
	qsort(addresses, count, sizeof(*addresses), code_by_number);
	return count;
}

static void look_at(const struct lines_answer *answer, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (answer->counts[i] > LINES_FRAMES_MAX)
			abort();
		sum += answer->counts[i];
	}
	if (sum != answer->frame_count || answer->strings[0] || answer->strings[answer->string_bytes - 1])
		abort();
	for (uint32_t i = 0; i < answer->frame_count; i++)
		if (answer->frames[i].name >= answer->string_bytes ||
		    answer->frames[i].file >= answer->string_bytes)
			abort();
}

static void ask(struct lines *lines, const uint64_t *addresses, uint32_t count, uint64_t deadline)
{
	static struct lines_answer answer;

	if (lines_find(lines, addresses, count, deadline, &answer))
		return;
	look_at(&answer, count);
	lines_answer_free(&answer);
}

/* An index whose checksum is right, and anything else may be wrong. */
static void change(uint8_t *index, size_t index_size, const uint8_t *data, size_t size)
{
	uint32_t crc;

	for (size_t i = 0; i + 4 < min_of(size, (size_t)32); i += 4)
		index[(data[i] | data[i + 1] << 8) % index_size] ^= data[i + 2];
	crc = (uint32_t)crc32(0, index + 16, (uInt)(index_size - 16));
	memcpy(index + 12, &crc, sizeof(crc));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t addresses[ADDRESSES];
	const uint32_t count = choose(data, size, addresses);
	const uint64_t deadline = clock_monotonic() + NSEC_PER_SEC;
	int fd = count ? memfd_create("file", MFD_CLOEXEC) : -1;
	size_t index_size = 0;
	void *index = NULL;
	struct lines *lines;

	if (fd < 0)
		return 0;
	if (write(fd, data, size) != (ssize_t)size)
		abort();
	if (!lines_open(fd, size, true, deadline, &lines)) {
		/* as if dwz had moved its own strings and functions into it */
		if (data[size - 1] & 1)
			lines_set_alt(lines, fd, size, deadline);
		/* and as if it were the package of its split DWARF, too */
		if (data[size - 1] & 2)
			lines_set_split(lines, fd, size, deadline);
		ask(lines, addresses, count, deadline);
		if (lines_save_index(lines, &index, &index_size))
			index = NULL;
		lines_free(lines);
	}
	if (index && !lines_open(fd, size, true, deadline, &lines)) {
		change(index, index_size, data + size - min_of(size, (size_t)32), min_of(size, (size_t)32));
		lines_load_index(lines, index, index_size);
		ask(lines, addresses, count, deadline);
		lines_free(lines);
	}
	free(index);
	close(fd);
	return 0;
}
