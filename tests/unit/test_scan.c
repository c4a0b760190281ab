// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "helper/opener.h"
#include "process/scan.h"

static const struct process_snapshot_mapping *find(const struct process_snapshot *snapshot,
						   uintptr_t address)
{
	for (size_t i = 0; i < snapshot->mapping_count; i++)
		if (snapshot->mappings[i].start <= address && address < snapshot->mappings[i].end)
			return &snapshot->mappings[i];
	return NULL;
}

static int read_maps(const char *text, struct process_snapshot *snapshot)
{
	_cleanup_fclose_ FILE *maps = fmemopen((void *)(uintptr_t)text, strlen(text), "r");

	assert_non_null(maps);
	return process_maps_read(maps, snapshot);
}

static void test_maps(void **state _unused_)
{
	static const char text[] =
		"00400000-00401000 r--p 00000000 08:01 100    /bin/a\n"
		"00401000-00403000 r-xp 00001000 fd:1f 100    /bin/a b (deleted)\n"
		"7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
		"7f0000002000-7f0000003000 r-xs 00000000 00:05 7          /odd\\012name\n"
		"7ffd1000-7ffd3000 r-xp 00000000 00:00 0                  [vdso]\n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]\n";
	struct process_snapshot *snapshot = calloc(1, sizeof(*snapshot));

	assert_int_equal(read_maps(text, snapshot), 0);
	assert_int_equal(snapshot->mapping_count, 4);
	assert_false(snapshot->is_cut);
	assert_int_equal(snapshot->mappings[0].start, 0x401000);
	assert_int_equal(snapshot->mappings[0].end, 0x403000);
	assert_int_equal(snapshot->mappings[0].file_offset, 0x1000);
	assert_int_equal(snapshot->mappings[0].major, 0xfd);
	assert_int_equal(snapshot->mappings[0].minor, 0x1f);
	assert_int_equal(snapshot->mappings[0].inode, 100);
	assert_string_equal(snapshot->mappings[0].path, "/bin/a b (deleted)");
	assert_string_equal(snapshot->mappings[1].path, "");
	assert_string_equal(snapshot->mappings[2].path, "/odd\nname");
	assert_string_equal(snapshot->mappings[3].path, "[vdso]");
	process_snapshot_free(snapshot);
}

static void test_bad_maps(void **state _unused_)
{
	static const char *const bad[] = {
		"x", "00400000-00401000", "00400000-00401000 r-xp", "00401000-00400000 r-xp 0 0:0 0 a",
		"00400000-00401000 r-xp 0 0:0 /a", "-5 r-xp 0 0:0 0",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct process_snapshot *snapshot = calloc(1, sizeof(*snapshot));

		assert_int_equal(read_maps(bad[i], snapshot), -EBADMSG);
		process_snapshot_free(snapshot);
	}
}

/* The first @count of ever more mappings, each with a path of @path_length bytes. */
static struct process_snapshot *scan_many(unsigned int count, int path_length)
{
	struct process_snapshot *snapshot = calloc(1, sizeof(*snapshot));
	_cleanup_free_ char *text = NULL;
	_cleanup_fclose_ FILE *stream = NULL;
	size_t size;

	stream = open_memstream(&text, &size);
	for (unsigned int i = 0; i < count; i++) {
		fprintf(stream, "%x000-%x000 r--p 0 08:01 1 /data\n", 2 * i, 2 * i + 1);
		fprintf(stream, "%x000-%x000 r-xp 0 08:01 1 /%0*u\n", 2 * i + 1, 2 * i + 2,
			path_length - 1, i);
	}
	fclose(steal_ptr(stream));
	assert_int_equal(read_maps(text, snapshot), 0);
	for (size_t i = 0; i < snapshot->mapping_count; i++) {
		assert_int_equal(snapshot->mappings[i].start, (2 * i + 1) << 12);
		assert_int_equal(strlen(snapshot->mappings[i].path), path_length);
	}
	return snapshot;
}

/* A process has as many mappings as it likes, and names them as it likes. */
static void test_many_mappings(void **state _unused_)
{
	struct process_snapshot *snapshot = scan_many(16382, 20);

	assert_int_equal(snapshot->mapping_count, 16382);
	assert_false(snapshot->is_cut);
	process_snapshot_free(snapshot);

	snapshot = scan_many(16383, 20);
	assert_int_equal(snapshot->mapping_count, 16382);
	assert_true(snapshot->is_cut);
	process_snapshot_free(snapshot);

	snapshot = scan_many(2000, 4095);
	assert_int_equal(snapshot->mapping_count, (2 << 20) / 4096);
	assert_true(snapshot->is_cut);
	process_snapshot_free(snapshot);
}

static void test_self(void **state _unused_)
{
	uint64_t before = clock_monotonic();
	const struct process_snapshot_mapping *own, *libc;
	struct process_snapshot *snapshot;
	struct stat st;
	Dl_info info;

	assert_int_equal(process_scan((uint32_t)getpid(), &snapshot), 0);
	assert_true(snapshot->time >= before && snapshot->time <= clock_monotonic());
	assert_int_equal(snapshot->tgid, getpid());
	assert_int_equal(snapshot->parent_tgid, getppid());
	own = find(snapshot, (uintptr_t)&test_self);
	assert_non_null(own);
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	assert_int_equal(own->inode, st.st_ino);
	assert_true(strstr(own->path, "/test_scan") != NULL);
	assert_true(dladdr((void *)(uintptr_t)dlsym(RTLD_NEXT, "waitid"), &info) != 0);
	libc = find(snapshot, (uintptr_t)dlsym(RTLD_NEXT, "waitid"));
	assert_non_null(libc);
	assert_int_equal(stat(info.dli_fname, &st), 0);
	assert_int_equal(libc->inode, st.st_ino);
	assert_int_equal(makedev(libc->major, libc->minor), st.st_dev);
	/* data is left out */
	assert_null(find(snapshot, (uintptr_t)snapshot));
	/* in the clock of samples: the boot clock, ticks rounded down */
	assert_true(snapshot->start_time <= clock_read(CLOCK_BOOTTIME));
	assert_true(snapshot->start_time + 120 * NSEC_PER_SEC > clock_read(CLOCK_BOOTTIME));
	for (size_t i = 1; i < snapshot->mapping_count; i++)
		assert_true(snapshot->mappings[i - 1].end <= snapshot->mappings[i].start);
	process_snapshot_free(snapshot);
}

/* A name can hold what separates the fields of /proc/PID/stat. */
static void test_odd_name(void **state _unused_)
{
	static const char name[] = ") 1 (2 3) R";
	struct process_snapshot *snapshot;
	int ready[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		_cleanup_fclose_ FILE *comm = fopen("/proc/self/comm", "w");

		fputs(name, comm);
		fclose(steal_ptr(comm));
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(process_scan((uint32_t)child, &snapshot), 0);
	assert_string_equal(snapshot->comm, name);
	assert_int_equal(snapshot->parent_tgid, getpid());
	process_snapshot_free(snapshot);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(process_scan((uint32_t)child, &snapshot), -ESRCH);
	close(ready[0]);
	close(ready[1]);
}

struct count {
	unsigned int all, self;
	int stop_at;
};

static int count_each(void *ctx, uint32_t tgid)
{
	struct count *count = ctx;

	count->all++;
	count->self += tgid == (uint32_t)getpid();
	return count->stop_at && (int)count->all == count->stop_at ? -ENOBUFS : 0;
}

/* Through the opener it is what it is without. */
static void test_opener(void **state _unused_)
{
	struct process_snapshot *here, *there;
	struct opener *opener;

	assert_int_equal(opener_new(&opener), 0);
	assert_int_equal(process_scan((uint32_t)getppid(), &here), 0);
	assert_int_equal(opener_scan(opener, (uint32_t)getppid(), &there), 0);
	assert_int_equal(there->mapping_count, here->mapping_count);
	assert_int_equal(there->start_time, here->start_time);
	assert_int_equal(there->parent_tgid, here->parent_tgid);
	assert_int_equal(there->tgid, getppid());
	assert_true(there->time >= here->time);
	assert_string_equal(there->comm, here->comm);
	for (size_t i = 0; i < here->mapping_count; i++) {
		assert_string_equal(there->mappings[i].path, here->mappings[i].path);
		assert_int_equal(there->mappings[i].start, here->mappings[i].start);
		assert_int_equal(there->mappings[i].end, here->mappings[i].end);
		assert_int_equal(there->mappings[i].inode, here->mappings[i].inode);
		assert_int_equal(there->mappings[i].minor, here->mappings[i].minor);
	}
	process_snapshot_free(here);
	process_snapshot_free(there);
	assert_int_equal(opener_scan(opener, 4194400, &there), -ESRCH);
	opener_free(opener);
}

static void test_all(void **state _unused_)
{
	struct count count = { 0 }, stopped = { .stop_at = 1 };

	assert_int_equal(process_each(count_each, &count), 0);
	assert_int_equal(count.self, 1);
	assert_true(count.all > 1);
	assert_int_equal(process_each(count_each, &stopped), -ENOBUFS);
	assert_int_equal(stopped.all, 1);
}

static void test_file_read(void **state _unused_)
{
	char path[] = "/tmp/stacktap-scan-XXXXXX", *data;
	static char big[100000];
	int fd = mkstemp(path);
	size_t size;

	memset(big, 'x', sizeof(big));
	assert_int_equal(write(fd, big, sizeof(big)), sizeof(big));
	close(fd);
	assert_int_equal(file_read(AT_FDCWD, path, sizeof(big), &data, &size), 0);
	assert_int_equal(size, sizeof(big));
	assert_int_equal(strlen(data), sizeof(big));
	free(data);
	assert_int_equal(file_read(AT_FDCWD, path, sizeof(big) - 1, &data, &size), -EFBIG);
	unlink(path);
	assert_int_equal(file_read(AT_FDCWD, path, 10, &data, &size), -ENOENT);
	assert_int_equal(file_read(AT_FDCWD, "/proc/self/comm", 100, &data, &size), 0);
	assert_string_equal(data, "test_scan\n");
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_bad_maps),
		cmocka_unit_test(test_many_mappings),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_odd_name),
		cmocka_unit_test(test_opener),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_file_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
