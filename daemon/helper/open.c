// SPDX-License-Identifier: Apache-2.0
#include "helper/open.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/clock.h"
#include "base/file.h"
#include "helper/memfd.h"
#include "helper/open_process.h"
#include "helper/owner.h"
#include "helper/told.h"
#include "process/context.h"
#include "process/details.h"
#include "process/namespace.h"
#include "process/scan.h"

enum { MAP_FILES_MAX = 4096 };	/* mappings looked through for a deleted file */

#define START_SLACK_NS (20 * NSEC_PER_MSEC)		/* start times are told in ticks of 10 ms */
enum { WRITTEN_SLACK_S = 2 };	/* file systems round times, and clocks are set */

/* A mapping as a line of /proc/PID/maps tells of it. */
struct seen_mapping {
	uint64_t start, end, inode;
	unsigned int major, minor;
};

static bool is_wanted(const struct open_wanted *wanted, const struct stat *st)
{
	if (!S_ISREG(st->st_mode) || (wanted->inode && wanted->inode != st->st_ino))
		return false;
	if (!wanted->major || !major(st->st_dev))
		return true;
	return wanted->major == major(st->st_dev) && wanted->minor == minor(st->st_dev);
}

/*
 * The first mapping that @proc's process, a directory of /proc, has at @start, or anywhere if that is 0, of
 * the file that is @wanted: the kernel shows the numbers here that the side band carries. -ESRCH: none.
 */
static int find_mapping(int proc, uint64_t start, const struct open_wanted *wanted,
			struct seen_mapping *ret_mapping)
{
	int fd = openat(proc, "maps", O_RDONLY | O_CLOEXEC);
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;
	int r = -ESRCH;

	if (!maps) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	for (int i = 0; r < 0 && i < MAP_FILES_MAX && getline(&line, &capacity, maps) > 0; i++) {
		struct seen_mapping mapping = { 0 };

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*x %x:%x %" SCNu64, &mapping.start,
			   &mapping.end, &mapping.major, &mapping.minor, &mapping.inode) == 5 &&
		    (!start || mapping.start == start) && mapping.inode == wanted->inode &&
		    mapping.major == wanted->major && mapping.minor == wanted->minor) {
			*ret_mapping = mapping;
			r = 0;
		}
	}
	fclose(maps);
	return r;
}

/* Only these numbers can be compared that come with a device. */
static bool is_provable(const struct open_wanted *wanted)
{
	return wanted->inode && (wanted->major || wanted->minor);
}

/*
 * overlayfs maps a file of one of its layers, and kernels without file_user_inode() show that one's
 * numbers, later ones those of overlayfs' own inode. stat() may show a third, as a file that is copied up
 * keeps the number that it had. So only a mapping of the file can be compared with another. The page is
 * never read, which could block or raise SIGBUS.
 */
static bool is_mapped_as(const struct open_wanted *wanted, int fd)
{
	_cleanup_close_ int self = -1;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct seen_mapping mapping;
	struct statfs fs;
	void *map;
	int r;

	if (!is_provable(wanted) || fstatfs(fd, &fs) < 0 || fs.f_type != OVERLAYFS_SUPER_MAGIC)
		return false;
	self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	map = self < 0 ? MAP_FAILED : mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return false;
	r = find_mapping(self, (uintptr_t)map, wanted, &mapping);
	munmap(map, page);
	return r == 0;
}

/*
 * @path_fd, from O_PATH, for reading, without ever opening a FIFO or a device. -ENXIO: not a regular file.
 * -EREMOTE: served by FUSE, whose server could block its readers; only a host whose own root is of that kind
 * (virtiofs) is read.
 */
static int reopen(int path_fd, uint64_t host_dev, int *ret_fd, struct stat *ret_stat)
{
	char self[64];
	struct statfs fs;
	int fd;

	if (fstat(path_fd, ret_stat) < 0)
		return -errno;
	if (!S_ISREG(ret_stat->st_mode))
		return -ENXIO;
	if (fstatfs(path_fd, &fs) < 0)
		return -errno;
	if (fs.f_type == FUSE_SUPER_MAGIC && ret_stat->st_dev != host_dev)
		return -EREMOTE;
	if (owner_is_kernels(&fs))
		return -EACCES;
	/* the very inode just checked, whatever its path leads to by now */
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int reopen_code(int path_fd, uint64_t host_dev, int *ret_fd, struct stat *ret_stat)
{
	_cleanup_close_ int fd = -1;
	int r = reopen(path_fd, host_dev, &fd, ret_stat);

	if (r < 0)
		return r;
	if (!owner_may_read(fd, ret_stat))
		return -EACCES;
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int64_t ctime_of(const struct stat *st)
{
	return (int64_t)st->st_ctim.tv_sec * (int64_t)NSEC_PER_SEC + st->st_ctim.tv_nsec;
}

/* What is known has been opened before: it is a regular file that nobody's server is behind. */
static bool is_known(const struct open_file *file, const struct stat *st)
{
	const struct open_stat *known = &file->known;

	return known->inode && known->inode == st->st_ino && known->dev == st->st_dev &&
	       known->size == (uint64_t)st->st_size && known->ctime_ns == ctime_of(st) &&
	       is_wanted(&file->wanted, st);
}

/* *ret_fd -1: it is the one that is known. */
static int open_in(int root, const struct open_file *file, int *ret_fd, struct stat *ret_stat)
{
	/* "..", absolute symbolic links and magic links of a container's making stay inside its root */
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_close_ int path_fd = -1, fd = -1;
	int r;

	/* the same path on another root proves nothing */
	if (file->needs_inode && !file->wanted.inode)
		return -ESTALE;
	if (file->path[0] != '/')
		return -EINVAL;
	if (file->is_told) {
		path_fd = told_walk_in(root, file->path);
		if (path_fd < 0)
			return path_fd;
	} else {
		path_fd = (int)syscall(SYS_openat2, root, file->path, &how, sizeof(how));
		if (path_fd < 0)
			return -errno;
	}
	if (fstat(path_fd, ret_stat) < 0)
		return -errno;
	if (is_known(file, ret_stat))
		return 0;
	r = reopen_code(path_fd, file->host_dev, &fd, ret_stat);
	if (r < 0)
		return r;
	if (!is_wanted(&file->wanted, ret_stat) && !is_mapped_as(&file->wanted, fd))
		return -ESTALE;
	r = file->is_told ? told_check(fd, ret_stat) : 0;
	if (r < 0)
		return r;
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int open_link(int directory, const char *name, const struct open_file *file, bool may_map,
		     int *ret_fd, struct stat *ret_stat)
{
	_cleanup_close_ int path_fd = -1, fd = -1;
	struct stat st;
	int r;

	/* a magic link leads to the inode itself: no path is walked */
	if (fstatat(directory, name, &st, 0) < 0)
		return -errno;
	if (!is_wanted(&file->wanted, &st) && !may_map)
		return -ESTALE;
	path_fd = openat(directory, name, O_PATH | O_CLOEXEC);
	if (path_fd < 0)
		return -errno;
	r = reopen_code(path_fd, file->host_dev, &fd, ret_stat);
	if (r < 0)
		return r;
	if (!is_wanted(&file->wanted, ret_stat) && !(may_map && is_mapped_as(&file->wanted, fd)))
		return -ESTALE;
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int open_mapped(int proc, const struct open_file *file, int *ret_fd, struct stat *ret_stat)
{
	int fd = openat(proc, "map_files", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	struct seen_mapping mapping;
	char name[2 * 16 + 2];
	int r = -ENOENT;
	DIR *directory;

	if (fd < 0)
		return -errno;
	directory = fdopendir(fd);
	if (!directory) {
		r = -errno;
		close(fd);
		return r;
	}
	for (int i = 0; i < MAP_FILES_MAX && (entry = readdir(directory)); i++) {
		if (entry->d_name[0] == '.')
			continue;
		r = open_link(fd, entry->d_name, file, false, ret_fd, ret_stat);
		if (r == 0)
			break;
	}
	/* by what its own mappings say, which is to be proven: it may map another file there meanwhile */
	if (r < 0 && is_provable(&file->wanted) &&
	    find_mapping(proc, 0, &file->wanted, &mapping) == 0) {
		snprintf(name, sizeof(name), "%" PRIx64 "-%" PRIx64, mapping.start, mapping.end);
		r = open_link(fd, name, file, true, ret_fd, ret_stat);
	}
	closedir(directory);
	return r;
}

static int open_through_process(const struct open_file *file, int *ret_fd, struct stat *ret_stat)
{
	_cleanup_close_ int proc = -1, root = -1;
	int r;

	/* should the pid be another process' by now, its files still have to have our inode */
	if (!file->wanted.inode)
		return -ESRCH;
	proc = open_proc(file->tgid);
	if (proc < 0)
		return proc;
	root = file->with_root ? openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (root >= 0 && open_in(root, file, ret_fd, ret_stat) == 0)
		return 0;
	r = open_link(proc, "exe", file, false, ret_fd, ret_stat);
	if (r < 0)
		r = open_mapped(proc, file, ret_fd, ret_stat);
	return r;
}

static void answer_stat(struct serve_answer *answer, const struct stat *st)
{
	*(struct open_stat *)(void *)answer->payload = (struct open_stat){
		.dev = st->st_dev, .inode = st->st_ino, .size = (uint64_t)st->st_size,
		.links = st->st_nlink, .ctime_ns = ctime_of(st), .user = st->st_uid,
		.mode = st->st_mode,
	};
	answer->bytes = sizeof(struct open_stat);
}

static int answer_in(const struct serve_request *request, struct serve_answer *answer)
{
	struct stat st;
	int r = open_in(request->fd, request->payload, &answer->fd, &st);

	if (!r)
		answer_stat(answer, &st);
	return r;
}

static int answer_process(const struct serve_request *request, struct serve_answer *answer)
{
	struct stat st;
	int r = open_through_process(request->payload, &answer->fd, &st);

	if (!r)
		answer_stat(answer, &st);
	return r;
}

static int answer_links(const struct serve_request *request, struct serve_answer *answer)
{
	struct stat st;

	if (fstat(request->fd, &st) < 0)
		return -errno;
	answer_stat(answer, &st);
	return 0;
}

/* What the process says of itself as long as it is there; then what was known of it. */
static int identify(const struct open_perf_map *map, int *ret_proc, struct open_perf_map *ret_process)
{
	_cleanup_close_ int proc = open_proc(map->tgid);
	uint64_t start;
	int r = proc < 0 ? proc : process_start_time(proc, &start);

	*ret_process = *map;
	/* the number may be another process' by now */
	if (!r && map->start_time && map->start_time - start >= START_SLACK_NS)
		r = -ESRCH;
	if (r < 0)
		return map->start_time ? 0 : -ESRCH;
	r = details_identity(proc, map->tgid, &ret_process->pid, &ret_process->user);
	if (r < 0)
		return r;
	ret_process->start_time = start;
	*ret_proc = steal_fd(&proc);
	return 0;
}

/* Of an earlier process with this number, as they stay behind in /tmp? */
static bool is_older(const struct stat *st, uint64_t start_time)
{
	const int64_t since_boot = (int64_t)clock_read(CLOCK_REALTIME) - (int64_t)clock_read(CLOCK_BOOTTIME);
	/* in seconds no time that a file may have is too large */
	const int64_t started = (int64_t)(start_time / NSEC_PER_SEC) + since_boot / (int64_t)NSEC_PER_SEC;

	return st->st_mtim.tv_sec < started - WRITTEN_SLACK_S;
}

static int open_perf_map(int root, const struct open_perf_map *map, int *ret_fd, struct stat *ret_stat)
{
	struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_close_ int proc = -1, own_root = -1, path_fd = -1, fd = -1;
	struct open_perf_map process;
	char path[64];
	int r = identify(map, &proc, &process);

	if (r < 0)
		return r;
	if (root < 0 && proc >= 0)
		root = own_root = openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -ESRCH;
	snprintf(path, sizeof(path), "tmp/perf-%u.map", process.pid ? process.pid : process.tgid);
	path_fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (path_fd < 0)
		return -errno;
	r = reopen(path_fd, map->host_dev, &fd, ret_stat);
	if (r < 0)
		return r;
	/* anybody may write to /tmp */
	if (ret_stat->st_uid != process.user || process.user == DETAILS_NO_USER)
		return -EPERM;
	if (is_older(ret_stat, process.start_time))
		return -ESTALE;
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int answer_perf_map(const struct serve_request *request, struct serve_answer *answer)
{
	struct stat st;
	int r = open_perf_map(request->fd, request->payload, &answer->fd, &st);

	if (!r)
		answer_stat(answer, &st);
	return r;
}

/* Opened first: they are of the program that the process runs now, whatever it executes next. */
static int open_memory(int proc, int *ret_memory, FILE **ret_maps)
{
	_cleanup_close_ int maps = openat(proc, "maps", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int memory = openat(proc, "mem", O_RDONLY | O_CLOEXEC);

	*ret_maps = maps < 0 || memory < 0 ? NULL : fdopen(maps, "r");
	if (!*ret_maps)
		return -errno;
	steal_fd(&maps);
	*ret_memory = steal_fd(&memory);
	return 0;
}

static bool runs(int proc, const struct open_context *question)
{
	struct image_details *details = calloc(1, sizeof(*details));
	uint64_t start;
	bool is_same = details && !details_read_executable(proc, details) &&
		       !strncmp(details->executable_path, question->executable_path,
				sizeof(question->executable_path)) &&
		       !process_start_time(proc, &start);

	image_details_free(details);
	return is_same && (!question->start_time || question->start_time - start < START_SLACK_NS);
}

static int write_payload(const struct context *context)
{
	_cleanup_close_ int fd = memfd_new();
	int r = fd < 0 ? fd : file_write(fd, context->payload, context->size);

	return r < 0 ? r : memfd_seal(&fd);
}

static int answer_context(const struct serve_request *request, struct serve_answer *answer)
{
	const struct open_context *question = request->payload;
	const struct context known = { .address = question->address, .published = question->published };
	_cleanup_close_ int proc = open_proc(question->tgid), memory = -1;
	_cleanup_fclose_ FILE *maps = NULL;
	struct context context;
	int r = proc < 0 ? -ESRCH : open_memory(proc, &memory, &maps);

	if (r < 0)
		return r;
	if (!runs(proc, question))
		return -ESRCH;
	r = context_read(memory, maps, &known, &context);
	if (r < 0)
		return r;
	*(struct open_context_answer *)(void *)answer->payload = (struct open_context_answer){
		.address = context.address, .published = context.published,
	};
	answer->bytes = sizeof(struct open_context_answer);
	if (context.payload)
		answer->fd = write_payload(&context);
	free(context.payload);
	return context.payload ? min_of(answer->fd, 0) : 0;
}

static int answer_namespace(const struct serve_request *request, struct serve_answer *answer)
{
	const struct open_process *process = request->payload;
	struct mount_namespace_id id;
	int r = mount_namespace_identify(process->tgid, &id);

	if (r < 0)
		return r;
	*(struct open_namespace *)(void *)answer->payload = (struct open_namespace){ .dev = id.dev, .inode = id.inode };
	answer->bytes = sizeof(struct open_namespace);
	return 0;
}

static int answer_touch(const struct serve_request *request, struct serve_answer *answer)
{
	const struct open_touch *touch = request->payload;
	_cleanup_close_ int proc = open_proc(touch->tgid);
	_cleanup_close_ int memory = proc < 0 ? -1 : openat(proc, "mem", O_RDONLY | O_CLOEXEC);
	uint32_t count = 0;
	char byte;

	if (touch->pages > OPEN_PAGES_MAX)
		return -EINVAL;
	if (memory < 0)
		return -ESRCH;
	while (count < touch->pages &&
	       pread(memory, &byte, 1, (off_t)(touch->address + (uint64_t)count * touch->page_bytes)) == 1)
		count++;
	*(struct open_count *)(void *)answer->payload = (struct open_count){ .count = count };
	answer->bytes = sizeof(struct open_count);
	return 0;
}

struct processes {
	int fd;
	uint32_t count;
};

static int write_process(void *ctx, uint32_t tgid)
{
	struct processes *processes = ctx;

	processes->count++;
	return file_write(processes->fd, &tgid, sizeof(tgid));
}

static int answer_processes(const struct serve_request *request _unused_, struct serve_answer *answer)
{
	_cleanup_close_ int fd = memfd_new();
	struct processes processes = { .fd = fd };
	int r = fd < 0 ? fd : process_each(write_process, &processes);

	if (r < 0)
		return r;
	*(struct open_count *)(void *)answer->payload = (struct open_count){ .count = processes.count };
	answer->bytes = sizeof(struct open_count);
	answer->fd = memfd_seal(&fd);
	return min_of(answer->fd, 0);
}

static const struct {
	int (*answer)(const struct serve_request *request, struct serve_answer *answer);
	size_t bytes;		/* of the request, */
	bool needs_fd;
	bool has_path;		/* and a path in what is left of it */
} operations[] = {
	[OPEN_IN] = { answer_in, offsetof(struct open_file, path), true, true },
	[OPEN_PROCESS] = { answer_process, offsetof(struct open_file, path), false, true },
	[OPEN_IMAGE] = { open_answer_image, sizeof(struct open_image), false, false },
	[OPEN_LINKS] = { answer_links, 0, true, false },
	[OPEN_SCAN] = { open_answer_scan, sizeof(struct open_process), false, false },
	[OPEN_PERF_MAP] = { answer_perf_map, sizeof(struct open_perf_map), false, false },
	[OPEN_CONTEXT] = { answer_context, sizeof(struct open_context), false, false },
	[OPEN_NAMESPACE] = { answer_namespace, sizeof(struct open_process), false, false },
	[OPEN_TOUCH] = { answer_touch, sizeof(struct open_touch), false, false },
	[OPEN_PROCESSES] = { answer_processes, 0, false, false },
};

static bool is_request(const struct serve_request *request)
{
	const char *bytes = request->payload;
	size_t fixed;

	if (request->op >= ARRAY_SIZE(operations) || !operations[request->op].answer ||
	    (operations[request->op].needs_fd && request->fd < 0))
		return false;
	fixed = operations[request->op].bytes;
	if (!operations[request->op].has_path)
		return request->bytes == fixed;
	return request->bytes > fixed && request->bytes <= fixed + PATH_MAX &&
	       !bytes[request->bytes - 1];
}

void open_answer(struct serve_request *request, struct serve_answer *answer)
{
	answer->result = is_request(request) ? operations[request->op].answer(request, answer) : -EINVAL;
}
