// SPDX-License-Identifier: Apache-2.0
#include "view/areas.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"

enum {
	ID_DIGITS = 40,
	LINE_BYTES = 8192,
	LOOKED_MAX = 4096,	/* of what a process mapped last: a frame costs no more, whatever the file says */
};

struct process {
	uint32_t pid, newest;		/* as `older` */
};

struct id {
	uint64_t hash;
	uint32_t path, build_id;
};

void areas_init(struct areas *areas)
{
	rows_init(&areas->processes);
	rows_init(&areas->ids);
	buffer_init(&areas->areas, POOL_REPORT);
	buffer_init(&areas->texts, POOL_REPORT);
}

void areas_free(struct areas *areas)
{
	rows_free(&areas->processes);
	rows_free(&areas->ids);
	buffer_free(&areas->areas);
	buffer_free(&areas->texts);
}

static const char *text_at(const struct areas *areas, uint32_t offset)
{
	return (const char *)areas->texts.data + offset;
}

static int add_text(struct areas *areas, const char *text, size_t length, uint32_t *ret_offset)
{
	const size_t offset = areas->texts.size;

	if (offset > UINT32_MAX || buffer_append(&areas->texts, text, length) ||
	    buffer_append(&areas->texts, "", 1))
		return -E2BIG;
	*ret_offset = (uint32_t)offset;
	return 0;
}

static size_t id_length(const char *text)
{
	const size_t length = strspn(text, "0123456789abcdef");

	return length % 2 || length > ID_DIGITS ? 0 : length;
}

static uint64_t id_hash_of(const void *ctx, uint32_t position)
{
	return ((const struct id *)ctx + position)->hash;
}

static const struct id *find_id(const struct areas *areas, const char *path)
{
	struct index_probe probe = index_first(&areas->ids.index, hash_bytes(path, strlen(path)));
	const struct id *id;
	uint32_t i;

	while ((i = index_next(&areas->ids.index, &probe)) != INDEX_NONE) {
		id = (const struct id *)(const void *)areas->ids.data.data + i;
		if (!strcmp(text_at(areas, id->path), path))
			return id;
	}
	return NULL;
}

/* "93ac61ec5a8eb1396f9fbd350e3169a558528a40 /usr/lib/x86_64-linux-gnu/libc.so.6" */
static int take_id(struct areas *areas, char *line)
{
	const size_t length = id_length(line);
	const char *path = line + length + 1;
	struct id id;
	uint32_t i;
	int err;

	line[strcspn(line, "\n")] = '\0';
	if (!length || line[length] != ' ' || !*path || find_id(areas, path))
		return 0;
	id.hash = hash_bytes(path, strlen(path));
	err = add_text(areas, line, length, &id.build_id) ?: add_text(areas, path, strlen(path), &id.path);
	return err ?: rows_add(&areas->ids, id.hash, id_hash_of, &id, sizeof(id), &i);
}

int areas_read_ids(struct areas *areas, FILE *file)
{
	char line[LINE_BYTES];
	int err = 0;

	while (!err && fgets(line, sizeof(line), file))
		err = take_id(areas, line);
	return err;
}

static uint64_t process_hash(uint32_t pid)
{
	return hash_words((const uint64_t[]){ pid }, 1);
}

static uint64_t process_hash_of(const void *ctx, uint32_t position)
{
	return process_hash(((const struct process *)ctx + position)->pid);
}

static struct process *find_process(struct areas *areas, uint32_t pid)
{
	struct index_probe probe = index_first(&areas->processes.index, process_hash(pid));
	struct process *process;
	uint32_t i;

	while ((i = index_next(&areas->processes.index, &probe)) != INDEX_NONE) {
		process = (struct process *)(void *)areas->processes.data.data + i;
		if (process->pid == pid)
			return process;
	}
	return NULL;
}

static int set_newest(struct areas *areas, uint32_t pid, uint32_t newest)
{
	const struct process process = { .pid = pid, .newest = newest };
	struct process *known = find_process(areas, pid);
	uint32_t i;

	if (!known)
		return rows_add(&areas->processes, process_hash(pid), process_hash_of, &process, sizeof(process), &i);
	known->newest = newest;
	return 0;
}

static uint32_t newest_of(struct areas *areas, uint32_t pid)
{
	const struct process *process = find_process(areas, pid);

	return process ? process->newest : 0;
}

/* "123/123: [0x7f3bad1a6000(0x156000) @ 0x26000 fe:00 326269 0]: r-xp /usr/lib/libc.so.6", or "<BUILD-ID>" for the numbers */
static int take_mapping(struct areas *areas, const char *rest)
{
	const char *end = strstr(rest, "]: "), *id = strchr(rest, '<'), *path = end ? strchr(end + 3, ' ') : NULL;
	struct area area = { 0 };
	uint32_t pid;
	int err;

	/* the kernel has -1 */
	if (!path || !isdigit((unsigned char)rest[0]) ||
	    sscanf(rest, "%" SCNu32 "/%*u: [%" SCNx64 "(%" SCNx64 ") @ %" SCNx64, &pid, &area.start, &area.size, &area.offset) != 4)
		return 0;
	path++;
	err = add_text(areas, path, strlen(path), &area.path);
	if (!err && id && id < end)
		err = add_text(areas, id + 1, id_length(id + 1), &area.build_id);
	else if (!err)
		area.build_id = area.path + (uint32_t)strlen(path);
	area.older = newest_of(areas, pid);
	if (err || buffer_append(&areas->areas, &area, sizeof(area)))
		return -E2BIG;
	return set_newest(areas, pid, (uint32_t)(areas->areas.size / sizeof(area)));
}

int areas_take(struct areas *areas, const char *event, const char *rest)
{
	uint32_t pid, parent;
	const char *ids;

	if (!strcmp(event, "PERF_RECORD_MMAP2") || !strcmp(event, "PERF_RECORD_MMAP"))
		return take_mapping(areas, rest);
	/* threads share what their process has */
	if (sscanf(event, "PERF_RECORD_FORK(%" SCNu32 ":%*u):(%" SCNu32 ":", &pid, &parent) == 2)
		return pid == parent ? 0 : set_newest(areas, pid, newest_of(areas, parent));
	if (!strcmp(event, "PERF_RECORD_COMM") && !strncmp(rest, "exec: ", strlen("exec: "))) {
		ids = strrchr(rest, ':');
		if (sscanf(ids + 1, "%" SCNu32 "/", &pid) == 1)
			return set_newest(areas, pid, 0);
	}
	return 0;
}

struct area *areas_find(struct areas *areas, uint32_t pid, const char *path, uint64_t address, enum area_kind *ret_kind)
{
	struct area *all = (struct area *)(void *)areas->areas.data, *area;
	const uint32_t newest = newest_of(areas, pid);
	uint32_t i, looked;

	for (*ret_kind = AREA_AT_RUN_TIME; *ret_kind < AREA_KINDS; (*ret_kind)++)
		for (i = newest, looked = 0; i && looked < LOOKED_MAX; i = area->older, looked++) {
			area = &all[i - 1];
			if (address - (*ret_kind == AREA_IN_FILE ? area->offset : area->start) < area->size &&
			    !strcmp(text_at(areas, area->path), path))
				return area;
		}
	return NULL;
}

const char *areas_build_id(const struct areas *areas, const struct area *area, const char *path)
{
	const char *build_id = area ? text_at(areas, area->build_id) : "";
	const struct id *id = build_id[0] ? NULL : find_id(areas, path);

	return id ? text_at(areas, id->build_id) : build_id;
}
