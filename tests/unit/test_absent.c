// SPDX-License-Identifier: Apache-2.0
/* Pages of this very process that nothing has touched yet are there once they were wanted. */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/work.h"
#include "resolve/absent.h"

enum {
	PAGES = 400,
	PAGES_ABOVE = 64,
	PATIENCE_ROUNDS = 6000,
	ROUND_US = 10000,
};

static char *map(void)
{
	char *memory = mmap(NULL, PAGES * (size_t)getpagesize(), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static bool is_present(const char *address)
{
	uint64_t entry = 0, page = (uintptr_t)address / (uintptr_t)getpagesize();
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &entry, sizeof(entry), (off_t)(page * sizeof(entry))),
			 sizeof(entry));
	close(fd);
	return entry >> 63;
}

static struct absent_stats settle(struct absent *absent, uint64_t asked)
{
	struct absent_stats stats = { 0 };

	for (int i = 0; i < PATIENCE_ROUNDS; i++) {
		absent_stats(absent, &stats);
		if (stats.failed + stats.refused + (stats.pages > 0) >= asked)
			break;
		usleep(ROUND_US);
	}
	return stats;
}

static void what_is_wanted_comes_in(void **state)
{
	size_t page = (size_t)getpagesize();
	char *memory = map();
	struct absent_stats stats;
	struct absent *absent;

	(void)state;
	assert_int_equal(absent_new(&absent), 0);
	assert_false(is_present(memory + page));
	absent_want(absent, (uint32_t)getpid(), (uintptr_t)memory + page + 24);
	stats = settle(absent, 1);
	assert_int_equal(stats.wanted, 1);
	assert_int_equal(stats.pages, PAGES_ABOVE);
	for (size_t i = 1; i <= PAGES_ABOVE; i++)
		assert_true(is_present(memory + i * page));
	assert_false(is_present(memory));
	assert_false(is_present(memory + (PAGES_ABOVE + 1) * page));
	absent_free(absent);
	munmap(memory, PAGES * page);
}

static void what_is_not_there_fails(void **state)
{
	struct absent_stats stats;
	struct absent *absent;

	(void)state;
	assert_int_equal(absent_new(&absent), 0);
	absent_want(absent, (uint32_t)getpid(), 8);	/* nothing is mapped there */
	absent_want(absent, 0x7fffffff, 0x10000);	/* no such process */
	stats = settle(absent, 2);
	assert_int_equal(stats.failed, 2);
	assert_int_equal(stats.pages, 0);
	absent_want(absent, (uint32_t)getpid(), UINT64_MAX);
	stats = settle(absent, 3);
	assert_int_equal(stats.refused, 1);
	absent_free(absent);
}

static void it_is_bounded(void **state)
{
	size_t page = (size_t)getpagesize();
	struct absent_stats stats;
	struct absent *absent;
	char *memory = map();
	uint64_t began;

	(void)state;
	assert_int_equal(absent_new(&absent), 0);
	began = clock_monotonic();
	absent_want(absent, (uint32_t)getpid(), (uintptr_t)memory);
	absent_want(absent, (uint32_t)getpid(), (uintptr_t)memory + 8);
	absent_stats(absent, &stats);
	/* the same page again, unless that took so long that it may */
	assert_true(stats.refused == 1 || clock_monotonic() - began > 50 * NSEC_PER_MSEC);
	for (size_t i = 0; i < PAGES; i++)
		absent_want(absent, (uint32_t)getpid(), (uintptr_t)memory + i * page);
	absent_stats(absent, &stats);
	assert_int_equal(stats.wanted, PAGES + 2);
	/* 200 a second, and no more wait at a time than there is room for */
	assert_true(stats.refused > 1 || clock_monotonic() - began > NSEC_PER_SEC);
	absent_free(absent);
	munmap(memory, PAGES * page);
}

/* Of the only child; 0: there is none. */
static pid_t child(void)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	pid_t found = 0;

	assert_non_null(proc);
	while (!found && (entry = readdir(proc))) {
		char path[300];
		int pid = 0, parent = 0;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fscanf(file, "%d (stacktap-opener) %*c %d", &pid, &parent) == 2 && parent == getpid())
			found = pid;
		fclose(file);
	}
	closedir(proc);
	return found;
}

/* Who reads may hang, as for a page of a server that does not answer: none of this process' threads does. */
static void a_read_that_hangs_is_given_up(void **state)
{
	size_t page = (size_t)getpagesize();
	struct absent_stats stats;
	struct absent *absent;
	char *memory = map();
	pid_t reader;

	(void)state;
	assert_int_equal(absent_new(&absent), 0);
	absent_want(absent, (uint32_t)getpid(), (uintptr_t)memory);
	stats = settle(absent, 1);
	assert_int_equal(stats.pages, PAGES_ABOVE);
	reader = child();
	assert_true(reader > 0);
	assert_int_equal(kill(reader, SIGSTOP), 0);
	absent_want(absent, (uint32_t)getpid(), (uintptr_t)memory + PAGES_ABOVE * page);
	for (int i = 0; i < PATIENCE_ROUNDS && !work_hung(UINT64_MAX, NULL); i++)
		usleep(ROUND_US / 10);
	assert_string_equal(work_hung(UINT64_MAX, NULL), "pages");
	stats = settle(absent, 2);
	assert_int_equal(stats.failed, 1);
	absent_free(absent);
	assert_int_equal(kill(reader, 0), -1);
	munmap(memory, PAGES * page);
}

/* How long it takes to end beside a read by a reader that is stopped, ns. */
static uint64_t end_beside_a_read(char *memory, bool is_started)
{
	size_t page = (size_t)getpagesize();
	struct absent *absent;
	uint64_t began, took;
	pid_t reader = 0;

	assert_int_equal(absent_new(&absent), 0);
	absent_want(absent, (uint32_t)getpid(), (uintptr_t)memory);
	if (is_started)
		settle(absent, 1);
	for (int i = 0; i < PATIENCE_ROUNDS && !(reader = child()); i++)
		usleep(ROUND_US / 100);
	assert_true(reader > 0);
	assert_int_equal(kill(reader, SIGSTOP), 0);
	absent_want(absent, (uint32_t)getpid(), (uintptr_t)memory + PAGES_ABOVE * page);
	for (int i = 0; i < PATIENCE_ROUNDS && !work_hung(UINT64_MAX, NULL); i++)
		usleep(ROUND_US / 10);
	began = clock_monotonic();
	absent_free(absent);
	took = clock_monotonic() - began;
	assert_int_equal(kill(reader, 0), -1);
	return took;
}

/*
 * Who ends has nobody to wait for: neither a read nor a reader that has only been started. To wait for it takes two seconds
 * each time; that the host was busy does so at times.
 */
static void an_end_waits_for_no_read(void **state)
{
	char *memory = map();

	(void)state;
	for (int is_started = 0; is_started < 2; is_started++) {
		uint64_t least = UINT64_MAX;

		for (int tries = 20; least >= NSEC_PER_SEC * 3 / 2 && tries--;)
			least = min_of(least, end_beside_a_read(memory, is_started));
		assert_true(least < NSEC_PER_SEC * 3 / 2);
	}
	munmap(memory, PAGES * (size_t)getpagesize());
}

/* Many a read is under way when it is freed; LeakSanitizer sees what then stays behind. */
static void nothing_stays_behind(void **state)
{
	size_t page = (size_t)getpagesize();
	char *memory = map();
	struct absent *absent;
	uint64_t began;

	(void)state;
	for (size_t i = 0; i < PAGES; i++) {
		assert_int_equal(absent_new(&absent), 0);
		absent_want(absent, (uint32_t)getpid(), (uintptr_t)memory + i * page);
		for (began = clock_monotonic(); clock_monotonic() - began < i * NSEC_PER_USEC;)
			;
		absent_free(absent);
	}
	munmap(memory, PAGES * page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wanted_comes_in),
		cmocka_unit_test(what_is_not_there_fails),
		cmocka_unit_test(it_is_bounded),
		cmocka_unit_test(a_read_that_hangs_is_given_up),
		cmocka_unit_test(an_end_waits_for_no_read),
		cmocka_unit_test(nothing_stays_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
