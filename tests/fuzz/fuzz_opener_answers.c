// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as the opener's answers to each of its questions, and the fetcher's. No crash, what is taken holds what others
 * rely on, all memory back, no descriptor kept, and no file of a debug file that there is not.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "answers.h"
#include "base/pool.h"
#include "fds.h"

/* as where a broker has the rights, and this process may not look */
#define broker_is_there fuzz_broker_is_there
#define mount_namespace_identify fuzz_identify
#include "helper/opener.c"
#include "helper/opener_process.c"

#include "helper/debuginfod.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TGID = 7, PAGES = 16 };

bool broker_is_there(void)
{
	return true;
}

int mount_namespace_identify(uint32_t tgid, struct mount_namespace_id *ret_id)
{
	*ret_id = (struct mount_namespace_id){ .dev = 1, .inode = tgid };
	return take_byte() % 2 ? -EACCES : 0;
}

static void check_space(struct mount_namespace *space)
{
	if (space && space->root < 0)
		abort();
	mount_namespace_unref(space);
}

static void ask_for_image(struct opener *opener, struct mount_namespace_table *spaces)
{
	struct image_details *details;
	struct mount_namespace *space;

	opener_image(opener, spaces, TGID, true, &space, &details);
	check_space(space);
	if (details && details->executable_path && strlen(details->executable_path) > 1024)
		abort();
	image_details_free(details);
}

static void ask_for_space(struct opener *opener, struct mount_namespace_table *spaces)
{
	struct mount_namespace *space;
	int r = opener_space(opener, spaces, TGID, &space);

	if (r > 0 || (r == 0) != !!space)
		abort();
	check_space(space);
}

static void ask_for_scan(struct opener *opener, struct mount_namespace_table *spaces)
{
	struct process_snapshot *snapshot;

	(void)spaces;
	if (opener_scan(opener, TGID, &snapshot) < 0)
		return;
	for (size_t i = 0; i < snapshot->mapping_count; i++)
		if (!snapshot->mappings[i].path || snapshot->mappings[i].start >= snapshot->mappings[i].end)
			abort();
	if (snapshot->tgid != TGID || strnlen(snapshot->comm, sizeof(snapshot->comm)) == sizeof(snapshot->comm))
		abort();
	process_snapshot_free(snapshot);
}

static void check_file(int r, int fd, bool may_lack)
{
	if (r > 0 || (!r && fd < 0 && !may_lack))
		abort();
	if (!r && fd >= 0)
		close(fd);
}

static void ask_for_file(struct opener *opener, struct mount_namespace_table *spaces)
{
	const uint8_t how = take_byte();
	const struct stat known = { .st_ino = 17 };
	const struct opener_wanted wanted = {
		.major = 8, .inode = how & 1 ? 17 : 0, .path = "/bin/x", .known = how & 2 ? &known : NULL,
	};
	struct mount_namespace *space = how & 4 ? mount_namespace_table_guess(spaces) : NULL;
	struct stat st;
	int fd = -1, r;

	r = opener_open(opener, spaces, space, how & 8 ? TGID : 0, &wanted, &fd, &st);
	check_file(r, fd, wanted.known);
	mount_namespace_unref(space);
}

static void ask_for_path(struct opener *opener, struct mount_namespace_table *spaces)
{
	const struct opener_program beside = { .dev = 2049, .user = 33 };
	struct mount_namespace *space = mount_namespace_table_guess(spaces);
	struct stat st;
	int fd = -1, r;

	if (!space)
		abort();
	r = opener_open_path(opener, spaces, space, "/bin/x.debug", take_byte() % 2 ? &beside : NULL, &fd, &st);
	check_file(r, fd, false);
	mount_namespace_unref(space);
}

static void ask_for_perf_map(struct opener *opener, struct mount_namespace_table *spaces)
{
	const struct opener_process process = { .start_time = 1, .tgid = TGID, .pid_in_namespace = 1, .user = 33 };
	struct stat st;
	int fd = -1, r;

	r = opener_perf_map(opener, spaces, NULL, &process, &fd, &st);
	check_file(r, fd, false);
}

static void ask_for_links(struct opener *opener, struct mount_namespace_table *spaces)
{
	(void)spaces;
	opener_is_deleted(opener, 2049, STDERR_FILENO);
}

static void ask_for_context(struct opener *opener, struct mount_namespace_table *spaces)
{
	const struct open_context question = { .tgid = TGID, .executable_path = "/bin/x" };
	struct open_context_answer answer;
	uint64_t size = 0;
	int fd = -1;

	(void)spaces;
	if (opener_context(opener, &question, &answer, &fd, &size) < 0 || fd < 0)
		return;
	if (size > CONTEXT_MAX_BYTES || lseek(fd, 0, SEEK_END) != (off_t)size)
		abort();
	close(fd);
}

static void ask_for_touch(struct opener *opener, struct mount_namespace_table *spaces)
{
	(void)spaces;
	if (opener_touch(opener, TGID, 4096, PAGES) > PAGES)
		abort();
}

static int count(void *ctx, uint32_t tgid)
{
	++*(uint32_t *)ctx;
	return tgid == UINT32_MAX;
}

static void ask_for_processes(struct opener *opener, struct mount_namespace_table *spaces)
{
	uint32_t found = 0;
	int r = opener_processes(opener, count, &found);

	(void)spaces;
	if (r > 0 ? !found : r < 0 && found)
		abort();
}

static char directory[] = "/tmp/fuzz-opener-answers-XXXXXX";

static void at_exit(void)
{
	rmdir(directory);
}

/* Removes what is there, and is true if that was a debug file. */
static bool sweep(void)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;
	bool has_debug = false;

	if (!stream)
		abort();
	while ((entry = readdir(stream))) {
		if (entry->d_name[0] == '.' && entry->d_name[1 + (entry->d_name[1] == '.')] == '\0')
			continue;
		has_debug |= !!strstr(entry->d_name, ".debug");
		if (unlinkat(dirfd(stream), entry->d_name, 0))
			abort();
	}
	closedir(stream);
	return has_debug;
}

static void ask_fetcher(struct opener *opener, struct mount_namespace_table *spaces)
{
	const struct debuginfod_options options = { .url = "http://localhost:1", .directory = directory };
	static char path[PATH_MAX], note[DEBUGINFOD_NOTE_MAX];
	struct debuginfod *debuginfod;
	int r;

	(void)opener;
	(void)spaces;
	if (debuginfod_new(&options, &debuginfod) < 0)
		abort();
	r = debuginfod_get(debuginfod, "00112233", path, note);
	if (r > 0 || strnlen(note, sizeof(note)) == sizeof(note) || (r < 0) != !!note[0] || sweep() != (r == 0))
		abort();
	debuginfod_free(debuginfod);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const questions[])(struct opener *opener, struct mount_namespace_table *spaces) = {
		ask_for_image, ask_for_space, ask_for_scan, ask_for_file, ask_for_path, ask_for_perf_map, ask_for_links,
		ask_for_context, ask_for_touch, ask_for_processes, ask_fetcher,
	};
	struct mount_namespace_table *spaces;
	struct opener *opener;
	struct fds before;

	if (strstr(directory, "XXXXXX") && (!mkdtemp(directory) || atexit(at_exit)))
		abort();
	before = fds_free();
	input = data;
	left = size;
	if (mount_namespace_table_new("", &spaces) < 0 || opener_new(&opener) < 0)
		abort();
	questions[take_byte() % ARRAY_SIZE(questions)](opener, spaces);
	opener_free(opener);
	mount_namespace_table_free(spaces);
	if (pool_get(POOL_PROCESSES)->used)
		abort();
	fds_check(&before);
	return 0;
}
