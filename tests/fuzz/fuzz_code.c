// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a perf map and as a jitdump: no crash, tables that are in order, and a file that is read in two steps, as
 * it grows, says what it says when it is read at once.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/jitdump.h"
#include "symbol/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef int reader(int fd, uint64_t offset, uint64_t size, uint64_t deadline,
		   struct code_read *ret_read);

static int read_checked(reader *read, int fd, uint64_t offset, uint64_t size,
			struct code_read *ret_read)
{
	int r = read(fd, offset, size, UINT64_MAX, ret_read);

	if (r < 0)
		return r;
	if (ret_read->end < offset || (ret_read->end > size && ret_read->end != offset) ||
	    ret_read->table.count > CODE_MAX ||
	    !code_table_is_valid(&ret_read->table, ret_read->end))
		abort();
	return 0;
}

static void compare(const struct code_table *a, const struct code_table *b)
{
	if (a->count != b->count)
		abort();
	for (uint32_t i = 0; i < a->count; i++)
		if (a->codes[i].start != b->codes[i].start || a->codes[i].size != b->codes[i].size ||
		    a->codes[i].name != b->codes[i].name)
			abort();
}

static void try(reader *read, int fd, uint64_t half, uint64_t size)
{
	struct code_read whole, first, second;
	int r;

	if (read_checked(read, fd, 0, size, &whole) < 0)
		return;
	r = read_checked(read, fd, 0, half, &first);
	if (!r && read_checked(read, fd, first.end, size, &second) < 0)
		r = -1;
	if (r < 0)
		abort();
	if (!second.needs_all) {
		if (code_table_lay(&first.table, &second.table) < 0)
			abort();
		compare(&whole.table, &first.table);
	}
	code_table_free(&whole.table);
	code_table_free(&first.table);
	code_table_free(&second.table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("code", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	try(perf_map_read, fd, size / 2, size);
	try(jitdump_read, fd, size / 2, size);
	close(fd);
	return 0;
}
