// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "export/record.h"
#include "export/store.h"
#include "export/store_file.h"
#include "view/store_reader.h"

static unsigned int data_syncs;
static ino_t synced_directories[64];
static size_t synced_count;

/* Instead of the C library's: what is synced in which order decides what a power cut leaves. */
int fsync(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	if (S_ISDIR(st.st_mode) && synced_count < ARRAY_SIZE(synced_directories))
		synced_directories[synced_count++] = st.st_ino;
	return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	data_syncs++;
	return (int)syscall(SYS_fdatasync, fd);
}

static size_t syncs_of(const char *path)
{
	size_t count = 0;
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	for (size_t i = 0; i < synced_count; i++)
		count += synced_directories[i] == st.st_ino;
	return count;
}

static const uint8_t message[] = { 0x12, 0x02, 0x22, 0x00 };

static void write_bytes(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* Number of whole messages; *ret_end: what came after them. */
static int count_messages(const char *path, int *ret_end)
{
	struct store_reader *reader;
	const uint8_t *data;
	int count = 0, ret, fd;
	size_t size;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(store_reader_open(fd, &reader), 0);
	while ((ret = store_reader_next(reader, &data, &size)) == 1) {
		assert_true(size >= sizeof(message));
		assert_memory_equal(data, message, sizeof(message));
		count++;
	}
	*ret_end = ret;
	store_reader_close(reader);
	close(fd);
	return count;
}

static void a_file_appears_with_its_first_message(void **state)
{
	const char *path = fixture_path("record.otlp");
	struct store_file *file, *second;
	struct stat st;
	uint64_t bytes;
	int end;

	(void)state;
	write_bytes(path, "old", 3);
	assert_int_equal(store_file_create(path, &file), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 3);
	/* nobody else may write to it meanwhile */
	assert_int_equal(store_file_create(path, &second), -EBUSY);
	assert_int_equal(store_file_append(file, message, sizeof(message)), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 4 + sizeof(message));
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(store_file_append(file, message, sizeof(message)), 0);
	assert_int_equal(store_file_close(file, &bytes), 0);
	assert_int_equal(bytes, 2 * (4 + sizeof(message)));
	assert_int_equal(count_messages(path, &end), 2);
	assert_int_equal(end, 0);
	assert_int_equal(access(fixture_path("record.otlp.partial"), F_OK), -1);
}

static void nothing_recorded_leaves_the_old_file(void **state)
{
	const char *path = fixture_path("kept.otlp");
	struct store_file *file;
	struct stat st;

	(void)state;
	write_bytes(path, "old", 3);
	assert_int_equal(store_file_create(path, &file), 0);
	assert_int_equal(store_file_close(file, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 3);
	assert_int_equal(access(fixture_path("kept.otlp.partial"), F_OK), -1);
}

static void errors_of_the_disk_are_told(void **state)
{
	struct store_file *file;

	(void)state;
	assert_int_equal(store_file_create("/dev/full", &file), 0);
	assert_int_equal(store_file_append(file, message, sizeof(message)), -ENOSPC);
	assert_int_equal(store_file_append(file, message, 0), -EMSGSIZE);
	store_file_close(file, NULL);
	assert_int_equal(store_file_create("/nowhere/x", &file), -ENOENT);
	assert_int_equal(store_file_create(fixture_directory(), &file), -EISDIR);
}

static void a_cut_file_gives_its_whole_messages(void **state)
{
	const char *path = fixture_path("cut.otlp");
	uint8_t bytes[2 * (4 + sizeof(message))] = { 0 };
	int end, count;

	(void)state;
	for (int i = 0; i < 2; i++) {
		bytes[i * (4 + sizeof(message)) + 3] = sizeof(message);
		memcpy(bytes + i * (4 + sizeof(message)) + 4, message, sizeof(message));
	}
	for (size_t size = 0; size <= sizeof(bytes); size++) {
		write_bytes(path, bytes, size);
		count = count_messages(path, &end);
		assert_int_equal(count, size / (4 + sizeof(message)));
		assert_int_equal(end, size % (4 + sizeof(message)) ? -ENODATA : 0);
	}
}

static void lengths_are_not_believed(void **state)
{
	static const uint8_t huge[] = { 0x7f, 0xff, 0xff, 0xff, 0 };
	static const uint8_t large[] = { 0x03, 0xff, 0xff, 0xff, 0 };
	static const uint8_t zero[64];
	const char *path = fixture_path("length.otlp");
	int end;

	(void)state;
	write_bytes(path, huge, sizeof(huge));
	assert_int_equal(count_messages(path, &end), 0);
	assert_int_equal(end, -EBADMSG);
	write_bytes(path, large, sizeof(large));
	assert_int_equal(count_messages(path, &end), 0);
	assert_int_equal(end, -ENODATA);
	write_bytes(path, zero, sizeof(zero));
	assert_int_equal(count_messages(path, &end), 0);
	assert_int_equal(end, -EBADMSG);
}

static void a_bare_message_is_read(void **state)
{
	const char *path = fixture_path("bare.otlp");
	uint8_t *bytes = calloc(1, 3000000);
	struct store_reader *reader;
	const uint8_t *data;
	size_t size;
	int end, fd;

	(void)state;
	assert_non_null(bytes);
	memcpy(bytes, message, sizeof(message));
	write_bytes(path, message, sizeof(message));
	assert_int_equal(count_messages(path, &end), 1);
	assert_int_equal(end, 0);
	/* a large one comes whole and in order */
	for (size_t i = sizeof(message); i < 3000000; i++)
		bytes[i] = (uint8_t)(i * 31);
	write_bytes(path, bytes, 3000000);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(store_reader_open(fd, &reader), 0);
	assert_int_equal(store_reader_next(reader, &data, &size), 1);
	assert_int_equal(size, 3000000);
	assert_memory_equal(data, bytes, size);
	assert_int_equal(store_reader_next(reader, &data, &size), 0);
	store_reader_close(reader);
	close(fd);
	free(bytes);
	fd = open(fixture_directory(), O_RDONLY | O_CLOEXEC);
	assert_int_equal(store_reader_open(fd, &reader), -EISDIR);
	close(fd);
	assert_int_equal(store_reader_open(-1, &reader), -EBADF);
}

/* Files of the store, and their bytes together. */
static int store_files(const char *directory, uint64_t *ret_bytes)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	struct stat st;
	int count = 0;

	assert_non_null(dir);
	*ret_bytes = 0;
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, "profiles-", 9))
			continue;
		assert_int_equal(fstatat(dirfd(dir), entry->d_name, &st, 0), 0);
		*ret_bytes += (uint64_t)st.st_size;
		count++;
	}
	closedir(dir);
	return count;
}

static int open_store(const char *directory, uint64_t max_bytes, struct store **ret_store)
{
	const struct store_options options = { .directory = directory, .max_bytes = max_bytes };

	return store_open(&options, ret_store);
}

static void a_store_keeps_below_its_limit(void **state)
{
	const char *directory = fixture_path("store");
	const uint64_t limit = 160000;
	uint8_t data[3000] = { 0 };
	struct store *store, *second;
	uint64_t bytes;
	int count;

	(void)state;
	assert_int_equal(open_store(directory, limit, &store), 0);
	assert_int_equal(open_store(directory, limit, &second), -EBUSY);
	/* what is not ours is not counted and not removed */
	fixture_run("head -c 300000 /dev/zero > store/other.otlp");
	fixture_run("head -c 300000 /dev/zero > store/profiles-1.otlp");
	memcpy(data, message, sizeof(message));
	for (int i = 0; i < 200; i++) {
		assert_int_equal(store_append(store, data, sizeof(data), 1), 0);
		fixture_run("rm -f store/profiles-1.otlp");
		store_files(directory, &bytes);
		assert_true(bytes <= limit);
	}
	count = store_files(directory, &bytes);
	/* a file is a 16th of the store, and what is kept is most of the limit */
	assert_true(count > 8 && count < 25);
	assert_true(bytes > limit * 3 / 4);
	assert_int_equal(store_append(store, data, limit, 1), -EFBIG);
	store_close(store);
	assert_int_equal(access(fixture_path("store/other.otlp"), F_OK), 0);

	/* after a restart the old files still count and go first */
	assert_int_equal(open_store(directory, limit / 2, &store), 0);
	assert_int_equal(store_append(store, data, sizeof(data), 1), 0);
	store_files(directory, &bytes);
	assert_true(bytes <= limit / 2);
	store_close(store);
}

static void every_stored_file_reads_back(void **state)
{
	int end, count = 0;
	char path[4200];
	DIR *dir = opendir(fixture_path("store"));
	struct dirent *entry;

	(void)state;
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, "profiles-", 9))
			continue;
		snprintf(path, sizeof(path), "%.3000s/%.255s", fixture_path("store"),
			 entry->d_name);
		count += count_messages(path, &end);
		assert_int_equal(end, 0);
	}
	closedir(dir);
	assert_true(count > 10);
}

/* A name that no power cut takes away: of the store, of each file in it, of a recording. */
static void directories_are_synced_with_their_files(void **state)
{
	const char *path = fixture_path("synced.otlp"), *directory = fixture_path("new-store");
	struct store_file *file;
	struct store *store;
	unsigned int before;

	(void)state;
	synced_count = 0;
	assert_int_equal(open_store(directory, 1 << 20, &store), 0);
	assert_int_equal(syncs_of(fixture_directory()), 1);
	assert_int_equal(syncs_of(directory), 0);
	assert_int_equal(store_append(store, message, sizeof(message), 1), 0);
	assert_int_equal(syncs_of(directory), 1);
	assert_int_equal(store_append(store, message, sizeof(message), 1), 0);
	assert_int_equal(syncs_of(directory), 1);
	store_close(store);
	/* it is there already, and so is its name */
	assert_int_equal(open_store(directory, 1 << 20, &store), 0);
	store_close(store);
	assert_int_equal(syncs_of(fixture_directory()), 1);

	synced_count = 0;
	assert_int_equal(store_file_create(path, &file), 0);
	assert_int_equal(store_file_append(file, message, sizeof(message)), 0);
	before = data_syncs;
	assert_int_equal(store_file_close(file, NULL), 0);
	assert_int_equal(data_syncs, before + 1);
	assert_int_equal(syncs_of(fixture_directory()), 1);
	/* a device's is not ours to sync */
	synced_count = 0;
	assert_int_equal(store_file_create("/dev/null", &file), 0);
	assert_int_equal(store_file_append(file, message, sizeof(message)), 0);
	assert_int_equal(store_file_close(file, NULL), 0);
	assert_int_equal(synced_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_appears_with_its_first_message),
		cmocka_unit_test(nothing_recorded_leaves_the_old_file),
		cmocka_unit_test(errors_of_the_disk_are_told),
		cmocka_unit_test(a_cut_file_gives_its_whole_messages),
		cmocka_unit_test(lengths_are_not_believed),
		cmocka_unit_test(a_bare_message_is_read),
		cmocka_unit_test(a_store_keeps_below_its_limit),
		cmocka_unit_test(every_stored_file_reads_back),
		cmocka_unit_test(directories_are_synced_with_their_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
