// SPDX-License-Identifier: Apache-2.0
#include "target.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "symbol/vdso.h"
#include "unwind/compile.h"

enum {
	MAPS_MAX = 256 << 10,
	MAPPINGS_MAX = 1024,
	FILES_MAX = 512,
};

#define MEMORY_LIMIT ((size_t)1 << 30)

/* a file as /proc/PID/maps names it; the vDSO has the inode 0 */
struct file {
	uint64_t device, inode;
	uint64_t table_id;	/* 0: it has none */
	struct object_segment *segments;
	size_t segment_count;
};

static struct file files[FILES_MAX];
static size_t file_count;

static void load_table(struct file *file, const struct elf *elf, struct capture *capture)
{
	struct stacktap_table_load load = { .size = sizeof(load) };
	_cleanup_free_ void *data = NULL;
	struct compile_stats stats;
	size_t size;

	if (elf_segments(elf, &file->segments, &file->segment_count) < 0 ||
	    compile_elf(elf, MEMORY_LIMIT, &data, &size, &stats) < 0)
		return;
	load.data = (uintptr_t)data;
	load.data_bytes = size;
	if (capture_request(capture, STACKTAP_IOC_TABLE_LOAD, &load) == 0)
		file->table_id = load.table_id;
}

static struct file *find_file(uint64_t device, uint64_t inode, bool *ret_is_new)
{
	*ret_is_new = false;
	for (size_t i = 0; i < file_count; i++)
		if (files[i].inode == inode && files[i].device == device)
			return &files[i];
	if (file_count == FILES_MAX)
		return NULL;
	*ret_is_new = true;
	files[file_count].device = device;
	files[file_count].inode = inode;
	return &files[file_count++];
}

/* An object whose file cannot be read is remembered as well: it has no segments. */
static const struct file *load_file(const char *path, uint64_t device, uint64_t inode,
					struct capture *capture)
{
	bool is_new, is_vdso = !strcmp(path, "[vdso]");
	struct file *file = find_file(device, inode, &is_new);
	struct elf elf = { .fd = -1 };
	_cleanup_close_ int fd = -1;
	const void *image;
	struct stat st;
	size_t size;
	int r;

	if (!is_new)
		return file;
	if (is_vdso) {
		r = vdso_image(&image, &size);
		if (r >= 0)
			r = elf_open_memory(&elf, image, size);
	} else {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		r = fd < 0 || fstat(fd, &st) < 0 ? -errno : elf_open(&elf, fd, (uint64_t)st.st_size, 0);
	}
	if (r >= 0) {
		load_table(file, &elf, capture);
		elf_close(&elf);
	}
	return file;
}

static void find_table(const struct file *file, uint64_t offset,
		       struct stacktap_mapping *mapping)
{
	for (size_t i = 0; file && i < file->segment_count; i++) {
		const struct object_segment *segment = &file->segments[i];

		if (offset + 4096 <= segment->offset || offset >= segment->offset + segment->size)
			continue;
		mapping->table_id = file->table_id;
		mapping->bias = mapping->start - (segment->vaddr - segment->offset + offset);
	}
}

/* *ret_text is of MAPS_MAX bytes. */
static size_t read_maps(uint32_t pid, char *ret_text)
{
	_cleanup_close_ int fd = -1;
	size_t length = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && length < MAPS_MAX - 1) {
		ssize_t got = read(fd, ret_text + length, MAPS_MAX - 1 - length);

		if (got <= 0)
			break;
		length += (size_t)got;
	}
	ret_text[length] = '\0';
	return length;
}

static uint32_t parse_maps(const char *text, struct capture *capture,
			   struct stacktap_mapping *ret_mappings)
{
	uint32_t count = 0;

	for (const char *line = text; line && *line && count < MAPPINGS_MAX;
	     line = strchr(line, '\n'), line += line != NULL) {
		struct stacktap_mapping *mapping = &ret_mappings[count];
		uint64_t start, end, offset, major, minor, inode;
		char flags[8], name[4096] = "";

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %" SCNx64 ":%" SCNx64
			   " %" SCNu64 "%*[ ]%4095[^\n]", &start, &end, flags, &offset, &major,
			   &minor, &inode, name) < 7 ||
		    flags[2] != 'x' || start >> 63)
			continue;
		*mapping = (struct stacktap_mapping){ .start = start, .end = end };
		if (inode || !strcmp(name, "[vdso]"))
			find_table(load_file(name, major << 32 | minor, inode, capture), offset,
				   mapping);
		count++;
	}
	return count;
}

/* What is asked for later, when the process may be gone. */
static int load_module(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr start,
		       void *ctx)
{
	Dwarf_Addr bias;

	(void)userdata;
	(void)name;
	(void)start;
	(void)ctx;
	if (dwfl_module_getelf(module, &bias))
		dwfl_module_eh_cfi(module, &bias);
	return DWARF_CB_OK;
}

static Dwfl *open_dwfl(uint32_t pid, struct slice *slice)
{
	static char *debuginfo_path;
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.debuginfo_path = &debuginfo_path,
	};
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (!dwfl)
		return NULL;
	if (dwfl_linux_proc_report(dwfl, (pid_t)pid) == 0 &&
	    dwfl_report_end(dwfl, NULL, NULL) == 0 &&
	    dwfl_getmodules(dwfl, load_module, NULL, 0) == 0 && frames_attach(dwfl, pid, slice))
		return dwfl;
	dwfl_end(dwfl);
	return NULL;
}

static uint32_t read_mappings(uint32_t pid, struct capture *capture,
			      struct stacktap_mapping *ret_mappings)
{
	static char maps[MAPS_MAX];

	read_maps(pid, maps);
	return parse_maps(maps, capture, ret_mappings);
}

bool target_update(struct target *target, struct capture *capture, struct slice *slice)
{
	static struct stacktap_mapping mappings[MAPPINGS_MAX], again[MAPPINGS_MAX];
	static uint64_t generation;
	struct stacktap_image image = { .size = sizeof(image), .tgid = target->pid };
	struct stacktap_mappings_set set = {
		.size = sizeof(set), .tgid = target->pid, .generation = ++generation,
		.mappings = (uintptr_t)mappings,
	};
	uint64_t hash;

	if (capture_request(capture, STACKTAP_IOC_IMAGE, &image) < 0) {
		target_done(target);
		return false;
	}
	set.start_time = image.start_time;
	set.exec_id = image.exec_id;
	set.count = read_mappings(target->pid, capture, mappings);
	hash = hash_bytes(mappings, set.count * sizeof(mappings[0]));
	if (target->dwfl && target->hash == hash && target->start_time == image.start_time &&
	    target->exec_id == image.exec_id)
		return true;
	target_done(target);
	target->start_time = image.start_time;
	target->exec_id = image.exec_id;
	target->hash = hash;
	target->generation = generation;
	target->dwfl = open_dwfl(target->pid, slice);
	/* libdwfl has read the mappings for itself: both are to know the same */
	if (target->dwfl && read_mappings(target->pid, capture, again) == set.count &&
	    memcmp(again, mappings, set.count * sizeof(mappings[0])) == 0 &&
	    capture_request(capture, STACKTAP_IOC_MAPPINGS_SET, &set) == 0)
		return true;
	target_done(target);
	return false;
}

void target_done(struct target *target)
{
	if (target->dwfl)
		dwfl_end(target->dwfl);
	target->dwfl = NULL;
	target->hash = target->generation = 0;
}

static int print_module(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr start,
			void *ctx)
{
	Dwarf_Addr end;

	(void)userdata;
	(void)ctx;
	dwfl_module_info(module, NULL, NULL, &end, NULL, NULL, NULL, NULL);
	fprintf(stderr, "  %" PRIx64 "-%" PRIx64 " %s\n", (uint64_t)start, (uint64_t)end, name);
	return DWARF_CB_OK;
}

void target_print_maps(const struct target *target)
{
	dwfl_getmodules(target->dwfl, print_module, NULL, 0);
}
