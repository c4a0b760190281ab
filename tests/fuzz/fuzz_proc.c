// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as /proc/PID/maps, cgroup, environ, and as kallsyms, whose paths, names and values programs choose.
 * No crash, mappings in order and within their limits, all memory back.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/pool.h"
#include "process/cgroup.h"
#include "process/details.h"
#include "process/scan.h"
#include "symbol/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_maps(const uint8_t *data, size_t size)
{
	struct process_snapshot *snapshot = calloc(1, sizeof(*snapshot));
	FILE *file = fmemopen((void *)(uintptr_t)data, size, "r");

	if (!snapshot || !file)
		abort();
	if (!process_maps_read(file, snapshot))
		for (size_t i = 0; i < snapshot->mapping_count; i++)
			if (snapshot->mappings[i].end <= snapshot->mappings[i].start ||
			    strlen(snapshot->mappings[i].path) > size)
				abort();
	fclose(file);
	process_snapshot_free(snapshot);
}

static void read_texts(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *name, service[CGROUP_UNIT_BYTES];
	struct cgroup_facts facts;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	cgroup_read(text, &facts);
	if (strnlen(facts.container_id, sizeof(facts.container_id)) == sizeof(facts.container_id) ||
	    strnlen(facts.container_name, sizeof(facts.container_name)) == sizeof(facts.container_name) ||
	    strnlen(facts.pod_uid, sizeof(facts.pod_uid)) == sizeof(facts.pod_uid) ||
	    strnlen(facts.unit, sizeof(facts.unit)) == sizeof(facts.unit))
		abort();
	cgroup_unit_service(facts.unit, service, sizeof(service));
	name = details_service_name(text, size);
	if (name && strlen(name) > size)
		abort();
	free(name);
	free(text);
}

static void read_kallsyms(const uint8_t *data, size_t size)
{
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	struct kallsyms *kallsyms;
	char path[32];
	uint64_t start;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!kallsyms_read(path, &kallsyms)) {
		for (uint32_t i = 0; i < kallsyms->count; i++)
			if (!kallsyms_find(kallsyms, kallsyms->base + kallsyms->symbols[i].start, &start) ||
			    (i && kallsyms->symbols[i].start <= kallsyms->symbols[i - 1].start))
				abort();
		kallsyms_free(kallsyms);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] % 3) {
	case 0:
		read_maps(data, size);
		break;
	case 1:
		read_texts(data, size);
		break;
	default:
		read_kallsyms(data, size);
	}
	if (pool_get(POOL_SYMBOLS)->used || pool_get(POOL_PROCESSES)->used)
		abort();
	return 0;
}
