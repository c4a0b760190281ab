// SPDX-License-Identifier: Apache-2.0
#include "process/scan.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "base/file.h"

enum {
	SCAN_ATTEMPTS = 3,
	SCAN_MAX_STAT_BYTES = 65536,
	/* an image takes two more; what lies above in a larger address space gets no names */
	SCAN_MAX_MAPPINGS = 16382,
	SCAN_MAX_PATH_BYTES = 2 << 20,
};

/* What tells one program from the next in the same process. */
struct stat_fields {
	char comm[16];
	uint32_t parent;
	uint64_t start_ticks;
	uint64_t start_code, start_stack;
};

/* Field numbers as in proc(5). */
enum {
	FIELD_PPID = 4,
	FIELD_STARTTIME = 22,
	FIELD_STARTCODE = 26,
	FIELD_STARTSTACK = 28,
};

static int stat_parse(const char *text, struct stat_fields *ret_fields)
{
	const char *open = strchr(text, '('), *p = strrchr(text, ')');
	struct stat_fields fields = { 0 };
	int field = 3;

	/* the name may hold anything, parentheses and spaces too: the last one closes it */
	if (!open || !p || p < open)
		return -EBADMSG;
	snprintf(fields.comm, sizeof(fields.comm), "%.*s", (int)(p - open - 1), open + 1);
	for (p++; *p == ' '; field++) {
		uint64_t value;
		char *end;

		p++;
		value = strtoull(p, &end, 10);
		if (field == FIELD_PPID)
			fields.parent = (uint32_t)value;
		else if (field == FIELD_STARTTIME)
			fields.start_ticks = value;
		else if (field == FIELD_STARTCODE)
			fields.start_code = value;
		else if (field == FIELD_STARTSTACK)
			fields.start_stack = value;
		p = field == 3 ? p + (*p != '\0') : end;
	}
	if (field <= FIELD_STARTSTACK)
		return -EBADMSG;
	*ret_fields = fields;
	return 0;
}

static int stat_read(int proc, struct stat_fields *ret_fields)
{
	_cleanup_free_ char *text = NULL;
	int r = file_read(proc, "stat", SCAN_MAX_STAT_BYTES, &text, NULL);

	return r < 0 ? r : stat_parse(text, ret_fields);
}

/* /proc escapes newlines in paths as octal; nothing else. */
static char *path_unescape(const char *path)
{
	char *copy = strdup(path), *to = copy;

	if (!copy)
		return NULL;
	for (const char *from = path; *from; to++) {
		if (!strncmp(from, "\\012", 4)) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
	return copy;
}

/* A number in @base, and @end behind it; both are passed. */
static bool take_number(const char **text, unsigned int base, char end, uint64_t *ret_value)
{
	const char *p = *text;
	uint64_t value = 0;

	for (;; p++) {
		unsigned int digit = (unsigned int)(*p - '0');

		if (digit > 9)
			digit = *p >= 'a' && *p <= 'f' ? (unsigned int)(*p - 'a') + 10 : base;
		if (digit >= base)
			break;
		if (value > (UINT64_MAX - digit) / base)
			return false;
		value = value * base + digit;
	}
	if (p == *text || *p != end)
		return false;
	*text = p + 1;
	*ret_value = value;
	return true;
}

/* 1: an executable mapping, 0: another one. Most lines are of others, and there are thousands. */
static int maps_parse_line(const char *line, struct process_snapshot_mapping *ret_mapping)
{
	struct process_snapshot_mapping mapping = { 0 };
	uint64_t major, minor;
	const char *permissions;

	if (!take_number(&line, 16, '-', &mapping.start) || !take_number(&line, 16, ' ', &mapping.end) ||
	    mapping.start >= mapping.end || strnlen(line, 5) < 5 || line[4] != ' ')
		return -EBADMSG;
	permissions = line;
	if (permissions[2] != 'x')
		return 0;
	line += 5;
	if (!take_number(&line, 16, ' ', &mapping.file_offset) || !take_number(&line, 16, ':', &major) ||
	    !take_number(&line, 16, ' ', &minor) || major > UINT32_MAX || minor > UINT32_MAX ||
	    (!take_number(&line, 10, ' ', &mapping.inode) && !take_number(&line, 10, '\0', &mapping.inode)))
		return -EBADMSG;
	mapping.major = (unsigned int)major;
	mapping.minor = (unsigned int)minor;
	/* what was passed last is the line's end, or a space before the path */
	if (!line[-1])
		line--;
	while (*line == ' ')
		line++;
	mapping.path = path_unescape(line);
	if (!mapping.path)
		return -ENOMEM;
	*ret_mapping = mapping;
	return 1;
}

static int snapshot_add(struct process_snapshot *snapshot, size_t *capacity,
			const struct process_snapshot_mapping *mapping)
{
	if (snapshot->mapping_count == *capacity) {
		size_t larger = *capacity ? 2 * *capacity : 16;
		void *mappings = realloc(snapshot->mappings, larger * sizeof(*mapping));

		if (!mappings)
			return -ENOMEM;
		snapshot->mappings = mappings;
		*capacity = larger;
	}
	snapshot->mappings[snapshot->mapping_count++] = *mapping;
	return 0;
}

/* At the end of @maps, with what errno is since: ESRCH when the process has gone meanwhile. */
static int read_error(FILE *maps)
{
	if (!ferror(maps))
		return 0;
	return errno ? -errno : -EIO;
}

int process_maps_read(FILE *maps, struct process_snapshot *snapshot)
{
	size_t capacity = snapshot->mapping_count, path_bytes = 0, size = 0;
	_cleanup_free_ char *line = NULL;
	ssize_t length;

	errno = 0;
	/* a line at a time: the whole text may have a hundred megabytes */
	while ((length = getline(&line, &size, maps)) > 0) {
		struct process_snapshot_mapping mapping;
		int r;

		if (line[length - 1] == '\n')
			line[length - 1] = '\0';
		r = maps_parse_line(line, &mapping);
		if (r < 0)
			return r;
		if (!r)
			continue;
		path_bytes += strlen(mapping.path) + 1;
		/* the kernel's own page, above user space and not in the side band either */
		if (!strcmp(mapping.path, "[vsyscall]")) {
			free(mapping.path);
			continue;
		}
		snapshot->is_cut = snapshot->mapping_count == SCAN_MAX_MAPPINGS ||
				   path_bytes > SCAN_MAX_PATH_BYTES;
		r = snapshot->is_cut ? -E2BIG : snapshot_add(snapshot, &capacity, &mapping);
		if (r < 0) {
			free(mapping.path);
			return snapshot->is_cut ? 0 : r;
		}
	}
	return read_error(maps);
}

/* *ret_is_empty: a thread that has exited, or a kernel thread */
static int maps_read_of(int directory, const char *path, struct process_snapshot *snapshot,
			bool *ret_is_empty)
{
	int fd = openat(directory, path, O_RDONLY | O_CLOEXEC), c;
	_cleanup_fclose_ FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");

	if (!maps) {
		int err = -errno;

		if (fd >= 0)
			close(fd);
		return err;
	}
	errno = 0;
	c = getc(maps);
	*ret_is_empty = c == EOF;
	if (c == EOF)
		return read_error(maps);
	ungetc(c, maps);
	return process_maps_read(maps, snapshot);
}

/* The leader's list; any other thread's when the leader has exited before them. */
static int maps_read(int proc, struct process_snapshot *snapshot)
{
	bool is_empty;
	int r = maps_read_of(proc, "maps", snapshot, &is_empty);
	struct dirent *entry;
	DIR *tasks;
	int fd;

	if (r < 0 || !is_empty)
		return r;
	fd = openat(proc, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tasks = fd < 0 ? NULL : fdopendir(fd);
	if (!tasks) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while (is_empty && (entry = readdir(tasks))) {
		char path[300];

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "%s/maps", entry->d_name);
		/* this one may have just exited; there may be more */
		r = maps_read_of(dirfd(tasks), path, snapshot, &is_empty);
		is_empty |= r < 0 && !snapshot->mapping_count;
	}
	closedir(tasks);
	return is_empty ? 0 : r;
}

static void snapshot_clear(struct process_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->mapping_count; i++)
		free(snapshot->mappings[i].path);
	free(snapshot->mappings);
	snapshot->mappings = NULL;
	snapshot->mapping_count = 0;
	snapshot->is_cut = false;
}

void process_snapshot_free(struct process_snapshot *snapshot)
{
	if (!snapshot)
		return;
	snapshot_clear(snapshot);
	free(snapshot);
}

static uint64_t ticks_to_ns(uint64_t ticks)
{
	return ticks * (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

bool process_has_gone(uint32_t tgid)
{
	char path[32];

	if (!kill((pid_t)tgid, 0) || errno != ESRCH)
		return false;
	/* /proc may be another pid namespace's, and have its numbers */
	snprintf(path, sizeof(path), "/proc/%" PRIu32, tgid);
	return access(path, F_OK) < 0;
}

int process_start_time(int proc, uint64_t *ret_start_time)
{
	struct stat_fields fields;
	int r = stat_read(proc, &fields);

	if (!r)
		*ret_start_time = ticks_to_ns(fields.start_ticks);
	return r;
}

static int scan_once(int proc, struct process_snapshot *snapshot)
{
	struct stat_fields before, after;
	int r;

	snapshot->time = clock_monotonic();
	r = stat_read(proc, &before);
	if (r < 0)
		return r;
	r = maps_read(proc, snapshot);
	if (r < 0)
		return r;
	r = stat_read(proc, &after);
	if (r < 0)
		return r;
	if (before.start_code != after.start_code || before.start_stack != after.start_stack)
		return -EAGAIN;
	snapshot->parent_tgid = after.parent;
	snapshot->start_time = ticks_to_ns(after.start_ticks);
	memcpy(snapshot->comm, after.comm, sizeof(snapshot->comm));
	return 0;
}

int process_scan(uint32_t tgid, struct process_snapshot **ret_snapshot)
{
	struct process_snapshot *snapshot = calloc(1, sizeof(*snapshot));
	_cleanup_close_ int proc = -1;
	char path[32];
	int r = 0;

	if (!snapshot)
		return -ENOMEM;
	snapshot->tgid = tgid;
	/* all files are read through one descriptor: a process that takes over the number fails */
	snprintf(path, sizeof(path), "/proc/%u", tgid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		r = -errno;
	for (int i = 0; i < SCAN_ATTEMPTS && !r; i++) {
		r = scan_once(proc, snapshot);
		if (r != -EAGAIN)
			break;
		snapshot_clear(snapshot);
		r = i + 1 < SCAN_ATTEMPTS ? 0 : -EAGAIN;
	}
	if (r < 0) {
		process_snapshot_free(snapshot);
		return r == -ENOENT ? -ESRCH : r;
	}
	*ret_snapshot = snapshot;
	return 0;
}

int process_each(int (*each)(void *ctx, uint32_t tgid), void *ctx)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int r = 0;

	if (!proc)
		return -errno;
	while (!r && (entry = readdir(proc))) {
		char *end;
		unsigned long tgid;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		tgid = strtoul(entry->d_name, &end, 10);
		if (!*end && tgid <= UINT32_MAX)
			r = each(ctx, (uint32_t)tgid);
	}
	closedir(proc);
	return r;
}
