// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a file that is compressed as a whole, cut off while it is read: no crash, what is written is as long as it says and
 * within the limit, and all memory back.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbol/packed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try(int fd, uint64_t size)
{
	int to = memfd_create("plain", MFD_CLOEXEC), r;
	uint64_t plain = 0;
	struct stat st;

	if (to < 0)
		abort();
	r = packed_unpack(fd, size, clock_monotonic() + NSEC_PER_SEC, to, &plain);
	if (r > 0 || fstat(to, &st) || st.st_size > PACKED_BYTES_MAX || (!r && (uint64_t)st.st_size != plain))
		abort();
	close(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("packed", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	try(fd, size);
	/* it was larger when its size was asked for */
	try(fd, size + 1);
	close(fd);
	return 0;
}
