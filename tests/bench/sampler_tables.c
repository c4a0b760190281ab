// SPDX-License-Identifier: Apache-2.0
/* Unwind tables and the mapping list of one process, as the daemon would load them. */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/stacktap.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "sampler.h"
#include "symbol/elf.h"
#include "unwind/compile.h"

enum {
	RANGES_MAX = 64,
	MEMORY_LIMIT = 64 << 20,
};

static void load_table(int session, const char *path, uint64_t offset,
		       struct stacktap_mapping *range)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stacktap_table_load request = { .size = sizeof(request) };
	_cleanup_free_ struct object_segment *segments = NULL;
	_cleanup_free_ void *data = NULL;
	struct compile_stats stats;
	size_t count = 0, size;
	struct stat st;
	struct elf elf;

	if (fd < 0 || fstat(fd, &st) || elf_open(&elf, fd, (uint64_t)st.st_size, 0) ||
	    elf_segments(&elf, &segments, &count) ||
	    compile_elf(&elf, MEMORY_LIMIT, &data, &size, &stats))
		sampler_die(path);
	elf_close(&elf);
	for (size_t i = 0; i < count; i++)
		if (offset + 4096 > segments[i].offset &&
		    offset < segments[i].offset + segments[i].size)
			range->bias = range->start - (segments[i].vaddr - segments[i].offset + offset);
	request.data = (uintptr_t)data;
	request.data_bytes = size;
	if (ioctl(session, STACKTAP_IOC_TABLE_LOAD, &request))
		sampler_die("STACKTAP_IOC_TABLE_LOAD");
	range->table_id = request.table_id;
}

void sampler_tables_load(int session, pid_t pid)
{
	struct stacktap_image image = { .size = sizeof(image), .tgid = (uint32_t)pid };
	struct stacktap_mapping ranges[RANGES_MAX];
	struct stacktap_mappings_set set = {
		.size = sizeof(set),
		.tgid = (uint32_t)pid,
		.generation = 1,
		.mappings = (uintptr_t)ranges,
	};
	_cleanup_fclose_ FILE *maps = NULL;
	char path[64], line[4500];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps)
		sampler_die(path);
	while (set.count < RANGES_MAX && fgets(line, sizeof(line), maps)) {
		struct stacktap_mapping range = { 0 };
		uint64_t start, end, offset;
		char flags[8], name[4096] = "";

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4095s", &start,
			   &end, flags, &offset, name) < 4 || flags[2] != 'x' || end > INT64_MAX)
			continue;
		range.start = start;
		range.end = end;
		if (name[0] == '/')
			load_table(session, name, offset, &range);
		ranges[set.count++] = range;
	}
	if (ioctl(session, STACKTAP_IOC_IMAGE, &image))
		sampler_die("STACKTAP_IOC_IMAGE");
	set.start_time = image.start_time;
	set.exec_id = image.exec_id;
	if (ioctl(session, STACKTAP_IOC_MAPPINGS_SET, &set))
		sampler_die("STACKTAP_IOC_MAPPINGS_SET");
}
