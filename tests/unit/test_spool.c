// SPDX-License-Identifier: Apache-2.0
/* What waits in a spool comes out again: in order, once, whatever happened to its files. */
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "export/record.h"
#include "export/store.h"

#define MAX_BYTES ((uint64_t)1600000)
#define LARGEST ((size_t)8000)

static int write_error;		/* of the next write, which stops halfway */
static bool cannot_unlink;

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	if (write_error) {
		errno = write_error;
		/* the first part goes out, so that there is something to take back */
		if (syscall(SYS_write, fd, parts[0].iov_base, parts[0].iov_len / 2) > 0)
			errno = write_error;
		write_error = 0;
		return -1;
	}
	return syscall(SYS_writev, fd, parts, count);
}

static int truncate_errors, read_errors;	/* of the next calls */

int ftruncate(int fd, off_t size)
{
	if (truncate_errors) {
		truncate_errors--;
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_ftruncate, fd, size);
}

ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
	if (read_errors) {
		read_errors--;
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, data, size, offset);
}

static int64_t wall_offset, boot_offset;	/* seconds */

int clock_gettime(clockid_t id, struct timespec *time)
{
	int ret = (int)syscall(SYS_clock_gettime, id, time);

	time->tv_sec += id == CLOCK_REALTIME ? wall_offset : id == CLOCK_BOOTTIME ? boot_offset : 0;
	return ret;
}

int unlinkat(int directory, const char *name, int flags)
{
	if (cannot_unlink) {
		errno = EROFS;
		return -1;
	}
	return (int)syscall(SYS_unlinkat, directory, name, flags);
}

static struct store *open_spool(const char *name, uint64_t max_bytes)
{
	struct store *store;

	assert_int_equal(store_open(&(struct store_options){ .directory = fixture_path(name),
							     .max_bytes = max_bytes,
							     .is_spool = true }, &store), 0);
	return store;
}

/* A message that says its number. */
static size_t message_of(uint32_t number, uint8_t data[LARGEST])
{
	size_t size = 4000 + number * 7919u % 3000;

	memset(data, (int)number, size);
	data[0] = 0x12;
	memcpy(data + 4, &number, sizeof(number));
	return size;
}

static int append(struct store *store, uint32_t number)
{
	uint8_t data[LARGEST];

	return store_append(store, data, message_of(number, data), number);
}

/* The oldest one's number, UINT32_MAX: none waits. */
static uint32_t oldest(struct store *store)
{
	struct store_message message;
	uint8_t data[LARGEST];
	uint32_t number;
	int ret = store_oldest(store, 1 << 20, &message);

	if (!ret)
		return UINT32_MAX;
	assert_int_equal(ret, 1);
	assert_true(message.size >= 8);
	memcpy(&number, message.data + 4, sizeof(number));
	assert_int_equal(message.size, message_of(number, data));
	assert_memory_equal(message.data, data, message.size);
	assert_int_equal(message.samples, number);
	free(message.data);
	return number;
}

static unsigned int files_of(const char *name)
{
	DIR *dir = opendir(fixture_path(name));
	struct dirent *dirent;
	unsigned int count = 0;

	assert_non_null(dir);
	while ((dirent = readdir(dir)))
		count += dirent->d_name[0] != '.';
	closedir(dir);
	return count;
}

/* The only file of a spool; the caller frees it. */
static char *only_file(const char *name)
{
	DIR *dir = opendir(fixture_path(name));
	struct dirent *dirent;
	char *path = NULL;

	assert_non_null(dir);
	while ((dirent = readdir(dir)))
		if (dirent->d_name[0] != '.') {
			assert_null(path);
			assert_true(asprintf(&path, "%s/%s", fixture_path(name), dirent->d_name) > 0);
		}
	closedir(dir);
	assert_non_null(path);
	return path;
}

static size_t read_file(const char *path, uint8_t *data, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t got;

	assert_non_null(file);
	got = fread(data, 1, size, file);
	fclose(file);
	return got;
}

static void write_file(const char *path, const uint8_t *data, size_t size)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void what_waits_outlives_the_process(void **state)
{
	struct store *store = open_spool("order", MAX_BYTES);
	struct store_stats stats;

	(void)state;
	assert_int_equal(oldest(store), UINT32_MAX);
	for (uint32_t i = 1; i <= 40; i++)
		assert_int_equal(append(store, i), 0);
	for (uint32_t i = 1; i <= 11; i++) {
		assert_int_equal(oldest(store), i);
		store_take(store);
	}
	store_close(store);

	store = open_spool("order", MAX_BYTES);
	stats = store_stats(store);
	assert_int_equal(stats.messages, 29);
	assert_int_equal(stats.samples, 40 * 41 / 2 - 11 * 12 / 2);
	assert_int_equal(append(store, 41), 0);
	for (uint32_t i = 12; i <= 41; i++) {
		assert_int_equal(oldest(store), i);
		/* asking does not take */
		assert_int_equal(oldest(store), i);
		store_take(store);
	}
	assert_int_equal(oldest(store), UINT32_MAX);
	stats = store_stats(store);
	assert_int_equal(stats.messages, 0);
	assert_int_equal(stats.samples, 0);
	assert_int_equal(stats.bytes, 0);
	assert_int_equal(stats.damaged_messages + stats.full_messages + stats.old_messages, 0);
	store_close(store);
	assert_int_equal(files_of("order"), 0);
}

/* While the receiver takes all, one file is filled and emptied. */
static void what_is_taken_at_once_needs_no_room(void **state)
{
	struct store *store = open_spool("calm", MAX_BYTES);

	(void)state;
	for (uint32_t i = 1; i <= 500; i++) {
		assert_int_equal(append(store, i), 0);
		store_take(store);
		assert_int_equal(store_stats(store).bytes, 0);
	}
	assert_int_equal(files_of("calm"), 1);
	store_close(store);
}

static void a_full_spool_gives_up_the_oldest(void **state)
{
	struct store *store = open_spool("full", MAX_BYTES);
	uint64_t samples = 0, waiting = 0;
	struct store_stats stats;
	uint32_t number, last = 0;

	(void)state;
	for (uint32_t i = 1; i <= 600; i++) {
		assert_int_equal(append(store, i), 0);
		samples += i;
		stats = store_stats(store);
		assert_true(stats.bytes <= MAX_BYTES);
		assert_int_equal(stats.messages + stats.full_messages, i);
		assert_int_equal(stats.samples + stats.full_samples, samples);
	}
	assert_true(stats.full_messages > 100);
	while ((number = oldest(store)) != UINT32_MAX) {
		assert_int_equal(number, last ? last + 1 : stats.full_messages + 1);
		last = number;
		waiting++;
		store_take(store);
	}
	assert_int_equal(last, 600);
	assert_int_equal(waiting, stats.messages);
	/* one that could never fit drives nothing out */
	assert_int_equal(store_append(store, (uint8_t[]){ 0x12 }, MAX_BYTES, 1), -EFBIG);
	store_close(store);
}

static struct store *open_aged(const char *name, uint64_t max_age_s)
{
	const struct store_options options = { .directory = fixture_path(name), .max_bytes = MAX_BYTES,
					       .max_age_ms = max_age_s * 1000, .is_spool = true };
	struct store *store;

	assert_int_equal(store_open(&options, &store), 0);
	return store;
}

/* By the clock that nobody sets for what this run wrote, by the wall clock for what another one left. */
static void what_is_too_old_goes_and_is_counted(void **state)
{
	const int64_t hour = 3600;
	struct store *store = open_aged("old", 24 * hour);

	(void)state;
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(append(store, i), 0);
	/* the wall clock steps forward by years, as NTP has it step on a board without one */
	wall_offset += 10000 * hour;
	assert_int_equal(oldest(store), 1);
	boot_offset += 23 * hour;
	wall_offset += 23 * hour;
	assert_int_equal(oldest(store), 1);
	boot_offset += 2 * hour;
	wall_offset += 2 * hour;
	assert_int_equal(oldest(store), UINT32_MAX);
	assert_int_equal(store_stats(store).old_messages, 3);
	assert_int_equal(store_stats(store).old_samples, 6);

	/* of an earlier run: not in the first minutes, in which the clock may be wrong */
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(append(store, i), 0);
	assert_int_equal(oldest(store), 1);
	store_take(store);
	store_close(store);
	wall_offset += 30 * hour;
	boot_offset = 0;
	store = open_aged("old", 24 * hour);
	assert_int_equal(oldest(store), 2);
	boot_offset += 601;
	assert_int_equal(oldest(store), UINT32_MAX);
	assert_int_equal(store_stats(store).old_messages, 2);
	assert_int_equal(append(store, 9), 0);
	store_close(store);

	/* what comes from the future is as old as this run */
	wall_offset -= 1000 * hour;
	store = open_aged("old", 24 * hour);
	assert_int_equal(oldest(store), 9);
	boot_offset += 25 * hour;
	assert_int_equal(oldest(store), UINT32_MAX);
	store_close(store);
	wall_offset = boot_offset = 0;
}

/* Nobody but the disk says that a message is damaged: what cannot be read now stays where it is. */
static void what_cannot_be_read_is_not_lost(void **state)
{
	struct store *store = open_spool("unreadable", MAX_BYTES);
	struct store_message message;
	char *path;

	(void)state;
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(append(store, i), 0);
	store_close(store);
	path = only_file("unreadable");
	store = open_spool("unreadable", MAX_BYTES);
	/* passing errors cost a pause */
	read_errors = 3;
	for (int i = 0; i < 3; i++)
		assert_int_equal(store_oldest(store, 1 << 20, &message), -EAGAIN);
	assert_int_equal(oldest(store), 1);
	/* lasting ones the others of this run, and no file */
	read_errors = 1000;
	for (int i = 0; i < 10; i++)
		store_oldest(store, 1 << 20, &message);
	assert_int_equal(store_stats(store).messages, 0);
	assert_int_equal(store_stats(store).damaged_messages, 3);
	store_close(store);
	assert_int_equal(access(path, F_OK), 0);
	/* one that cannot even be looked at is left alone, too */
	store = open_spool("unreadable", MAX_BYTES);
	assert_int_equal(store_oldest(store, 1 << 20, &message), 0);
	store_close(store);
	assert_int_equal(access(path, F_OK), 0);
	read_errors = 0;
	store = open_spool("unreadable", MAX_BYTES);
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(oldest(store), i);
		store_take(store);
	}
	store_close(store);
	free(path);
}

/* Somebody removes the open file, then all of the directory. */
static void what_is_removed_is_noticed(void **state)
{
	struct store *store = open_spool("removed", MAX_BYTES);

	(void)state;
	assert_int_equal(append(store, 1), 0);
	fixture_run("rm removed/*");
	assert_int_equal(append(store, 2), 0);
	assert_int_equal(files_of("removed"), 1);
	assert_int_equal(store_stats(store).messages, 1);
	assert_int_equal(store_stats(store).damaged_messages, 1);
	assert_int_equal(oldest(store), 2);
	fixture_run("rm -r removed");
	assert_int_equal(append(store, 3), -ESTALE);
	store_close(store);
}

/* A part of a message that could not be taken back does not shift those behind it. */
static void a_part_that_stays_is_overwritten(void **state)
{
	struct store *store = open_spool("part", MAX_BYTES);

	(void)state;
	assert_int_equal(append(store, 1), 0);
	write_error = EIO;
	truncate_errors = 1;
	assert_int_equal(append(store, 2), -EIO);
	for (uint32_t i = 3; i <= 5; i++)
		assert_int_equal(append(store, i), 0);
	store_retract(store, 4000 + 5 * 7919u % 3000, 5);
	assert_int_equal(oldest(store), 1);
	store_take(store);
	assert_int_equal(oldest(store), 3);
	store_take(store);
	assert_int_equal(oldest(store), 4);
	store_take(store);
	assert_int_equal(oldest(store), UINT32_MAX);
	assert_int_equal(store_stats(store).damaged_messages, 0);
	store_close(store);
}

enum { MESSAGES = 3 };

/* A file of three messages: its bytes, and where each ends. */
static size_t make_file(const char *name, char **ret_path, uint8_t *bytes, size_t ends[MESSAGES])
{
	struct store *store = open_spool(name, MAX_BYTES);
	size_t size = 0;

	for (uint32_t i = 0; i < MESSAGES; i++) {
		uint8_t data[32] = { 0x12 };
		uint32_t number = i + 1;

		memcpy(data + 4, &number, sizeof(number));
		assert_int_equal(store_append(store, data, 20 + i, number), 0);
		size += RECORD_LENGTH + 20 + i + RECORD_SEAL;
		ends[i] = size;
	}
	store_close(store);
	*ret_path = only_file(name);
	assert_int_equal(read_file(*ret_path, bytes, 1000), size);
	return size;
}

/* Bit i: message i + 1 came out; those that do are whole and in order. */
static unsigned int come_out(const char *name, struct store_stats *ret_stats)
{
	struct store *store = open_spool(name, MAX_BYTES);
	struct store_message message;
	unsigned int out = 0;
	uint32_t number;
	int ret;

	while ((ret = store_oldest(store, 1 << 20, &message)) == 1) {
		memcpy(&number, message.data + 4, sizeof(number));
		assert_in_range(number, 1, MESSAGES);
		assert_int_equal(message.size, 20 + number - 1);
		assert_int_equal(message.samples, number);
		assert_true(out < 1u << (number - 1));
		out |= 1u << (number - 1);
		free(message.data);
		store_take(store);
	}
	assert_int_equal(ret, 0);
	*ret_stats = store_stats(store);
	assert_int_equal(ret_stats->messages, 0);
	assert_int_equal(ret_stats->samples, 0);
	store_close(store);
	return out;
}

/* Cut at every byte, with and without zeros up to the old size, as some file systems leave them. */
static void a_torn_end_costs_what_is_torn(void **state)
{
	uint8_t bytes[1000], torn[1000];
	struct store_stats stats;
	size_t ends[MESSAGES];
	unsigned int whole;
	char *path;
	size_t size = make_file("torn", &path, bytes, ends);

	(void)state;
	for (size_t cut = 0; cut <= size; cut++)
		for (int with_zeros = 0; with_zeros < 2; with_zeros++) {
			memset(torn, 0, sizeof(torn));
			memcpy(torn, bytes, cut);
			write_file(path, torn, with_zeros ? size : cut);
			whole = 0;
			for (int i = 0; i < MESSAGES; i++)
				whole |= cut >= ends[i] ? 1u << i : 0;
			assert_int_equal(come_out("torn", &stats), whole);
			/* a cut at the end of a message cannot be seen, unless something follows */
			if (cut == size || (!with_zeros && (!cut || cut == ends[0] || cut == ends[1])))
				assert_int_equal(stats.damaged_messages, 0);
			else
				assert_true(stats.damaged_messages > 0 && stats.damaged_bytes > 0);
			assert_int_equal(files_of("torn"), 0);
		}
	free(path);
}

/* A bit that tips over costs its message; only in a length those behind it, too. */
static void damage_is_found(void **state)
{
	uint8_t bytes[1000];
	struct store_stats stats;
	size_t ends[MESSAGES];
	unsigned int out;
	char *path;
	size_t size = make_file("damaged", &path, bytes, ends);

	(void)state;
	for (size_t at = 0; at < size; at++)
		for (unsigned int bit = 0; bit < 8; bit++) {
			unsigned int i = at < ends[0] ? 0 : at < ends[1] ? 1 : 2;
			size_t begin = i ? ends[i - 1] : 0;
			bool is_state = at == ends[i] - RECORD_SEAL + RECORD_STATE;

			bytes[at] ^= (uint8_t)(1u << bit);
			write_file(path, bytes, size);
			bytes[at] ^= (uint8_t)(1u << bit);
			out = come_out("damaged", &stats);
			/* the state is no part of the checksum: taken, or waiting still */
			if (is_state) {
				assert_int_equal(out | 1u << i, 7);
				assert_int_equal(stats.damaged_messages, 0);
				continue;
			}
			assert_int_equal(out & 1u << i, 0);
			assert_true(stats.damaged_messages > 0);
			assert_int_equal(out & ((1u << i) - 1), (1u << i) - 1);
			if (at >= begin + RECORD_LENGTH)
				assert_int_equal(out | 1u << i, 7);
		}
	free(path);
}

/* Of a version that knew no seals: the local store's files before there was a spool. */
static void messages_without_seals_are_sent(void **state)
{
	static const uint8_t old[] = { 0, 0, 0, 4, 0x12, 2, 0x22, 0, 0, 0, 0, 4, 0x12, 2, 0x22, 0 };
	struct store_message message;
	struct store *store;

	(void)state;
	assert_int_equal(mkdir(fixture_path("unsealed"), 0700), 0);
	write_file(fixture_path("unsealed/profiles-1700000000000.otlp"), old, sizeof(old));
	store = open_spool("unsealed", MAX_BYTES);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(store_oldest(store, 1 << 20, &message), 1);
		assert_int_equal(message.size, 4);
		assert_memory_equal(message.data, old + 4, 4);
		free(message.data);
		store_take(store);
	}
	assert_int_equal(store_oldest(store, 1 << 20, &message), 0);
	assert_int_equal(store_stats(store).damaged_messages, 0);
	store_close(store);
}

static void a_disk_that_fails_costs_nothing_that_is_there(void **state)
{
	struct store *store = open_spool("failing", MAX_BYTES);

	(void)state;
	assert_int_equal(append(store, 1), 0);
	write_error = ENOSPC;
	assert_int_equal(append(store, 2), -ENOSPC);
	assert_int_equal(store_stats(store).messages, 1);
	assert_int_equal(append(store, 3), 0);
	assert_int_equal(oldest(store), 1);
	store_take(store);
	assert_int_equal(oldest(store), 3);
	/* finished files that cannot be removed do not stop those behind them */
	for (uint32_t i = 4; i <= 40; i++)
		assert_int_equal(append(store, i), 0);
	cannot_unlink = true;
	for (uint32_t i = 3; i <= 40; i++) {
		assert_int_equal(oldest(store), i);
		store_take(store);
	}
	assert_int_equal(oldest(store), UINT32_MAX);
	cannot_unlink = false;
	store_close(store);
}

/* A message that nobody could have encoded is no reason to stop either. */
static void one_that_is_too_large_is_passed_over(void **state)
{
	struct store *store = open_spool("large", MAX_BYTES);
	struct store_message message;
	uint8_t data[LARGEST] = { 0x12 };

	(void)state;
	assert_int_equal(store_append(store, data, 5000, 7), 0);
	assert_int_equal(store_append(store, data, 50, 1), 0);
	assert_int_equal(store_oldest(store, 1000, &message), 1);
	assert_int_equal(message.size, 50);
	free(message.data);
	assert_int_equal(store_stats(store).damaged_messages, 1);
	assert_int_equal(store_stats(store).damaged_samples, 7);
	store_take(store);
	store_close(store);
}

/*
 * Appends and takes in a random order, by processes that end without a word (killed ones, at any point, are
 * tests/oracle/exporter_cases.py's): each number comes out in order, at most one of a process again.
 */
static void nothing_is_lost_without_a_close(void **state)
{
	enum { ROUNDS = 100, RUN = 40 };
	struct store *store;
	uint32_t number;
	uint32_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t seed = 1;
	int status;

	(void)state;
	assert_ptr_not_equal(shared, MAP_FAILED);
	/* [0]: appended so far, [1]: taken so far, [2]: taken again */
	for (int round = 0; round < ROUNDS; round++) {
		pid_t child = fork();

		if (!child) {
			store = open_spool("killed", 16 << 20);
			for (int i = 0; i < RUN; i++) {
				seed = seed * 1103515245 + 12345 + (uint32_t)round;
				if (seed >> 16 & 1) {
					number = oldest(store);
					if (number == UINT32_MAX)
						continue;
					/* sent again is allowed, left out is not */
					if (number != shared[1] + 1 && number > shared[1])
						_exit(1);
					shared[2] += number <= shared[1];
					shared[1] = max_of(shared[1], number);
					store_take(store);
				} else if (!append(store, shared[0] + 1)) {
					shared[0]++;
				}
			}
			/* no store_close(): that is what a kill leaves out */
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	store = open_spool("killed", 16 << 20);
	while ((number = oldest(store)) != UINT32_MAX) {
		assert_int_equal(number, shared[1] + 1);
		shared[1] = number;
		store_take(store);
	}
	store_close(store);
	assert_int_equal(shared[1], shared[0]);
	assert_true(shared[0] > ROUNDS * RUN / 4);
	/* each take is marked before it returns */
	assert_int_equal(shared[2], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_waits_outlives_the_process),
		cmocka_unit_test(what_is_taken_at_once_needs_no_room),
		cmocka_unit_test(a_full_spool_gives_up_the_oldest),
		cmocka_unit_test(what_is_too_old_goes_and_is_counted),
		cmocka_unit_test(what_cannot_be_read_is_not_lost),
		cmocka_unit_test(what_is_removed_is_noticed),
		cmocka_unit_test(a_part_that_stays_is_overwritten),
		cmocka_unit_test(a_torn_end_costs_what_is_torn),
		cmocka_unit_test(damage_is_found),
		cmocka_unit_test(messages_without_seals_are_sent),
		cmocka_unit_test(a_disk_that_fails_costs_nothing_that_is_there),
		cmocka_unit_test(one_that_is_too_large_is_passed_over),
		cmocka_unit_test(nothing_is_lost_without_a_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
