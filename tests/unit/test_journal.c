// SPDX-License-Identifier: Apache-2.0
/* The journal of open windows, and what a store makes of one that was left. */
#include "fixture.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/exporter.h"
#include "export/journal.h"
#include "export/store.h"

static const uint8_t message[] = { 0x12, 0x02, 0x22, 0x00 };
static const char *directory;

static int setup(void **state _unused_)
{
	fixture_run("rm -rf j && mkdir j");
	directory = fixture_path("j");
	return 0;
}

static size_t files(const char *prefix)
{
	struct dirent *dirent;
	DIR *dir = opendir(directory);
	size_t count = 0;

	assert_non_null(dir);
	while ((dirent = readdir(dir)))
		count += !strncmp(dirent->d_name, prefix, strlen(prefix));
	closedir(dir);
	return count;
}

static int add(struct journal *journal, uint64_t window)
{
	return journal_add(journal, window, message, sizeof(message), 3, false);
}

static struct store *open_spool(void)
{
	const struct store_options options = { .directory = directory, .max_bytes = 1 << 20,
					       .is_spool = true };
	struct store *store;

	assert_int_equal(store_open(&options, &store), 0);
	return store;
}

static void a_window_has_a_file_until_it_is_done(void **state _unused_)
{
	struct journal *journal;

	assert_int_equal(journal_new(1 << 20, &journal), 0);
	assert_int_equal(add(journal, 1), -ENOTDIR);
	assert_int_equal(journal_open(journal, "/nowhere/at/all"), -ENOENT);
	assert_int_equal(journal_open(journal, directory), 0);
	assert_int_equal(add(journal, 1), 0);
	assert_int_equal(add(journal, 2), 0);
	assert_int_equal(add(journal, 2), 0);
	assert_int_equal(add(journal, 3), 0);
	assert_int_equal(files("journal-"), 3);
	journal_done(journal, 2);
	assert_int_equal(files("journal-"), 1);
	/* a part that comes too late */
	assert_int_equal(add(journal, 2), -EALREADY);
	assert_int_equal(add(journal, 3), 0);
	assert_int_equal(journal_stats(journal).parts, 5);
	assert_int_equal(journal_stats(journal).samples, 15);
	assert_int_equal(journal_stats(journal).refused, 1);
	journal_done(journal, 3);
	assert_int_equal(files("journal-"), 0);
	journal_free(journal);
}

static void it_is_bounded(void **state _unused_)
{
	struct journal *journal;
	unsigned int taken = 0;
	int err;

	assert_int_equal(journal_new(1000, &journal), 0);
	assert_int_equal(journal_open(journal, directory), 0);
	while (!(err = add(journal, 1 + taken / 10)) && taken < 1000)
		taken++;
	assert_int_equal(err, -EFBIG);
	/* of 30 bytes each */
	assert_int_equal(taken, 33);
	assert_int_equal(journal_stats(journal).refused, 1);
	journal_done(journal, 1);
	assert_int_equal(add(journal, 4), 0);
	/* windows that nobody closes */
	for (uint64_t window = 5; window < 60; window++)
		err = journal_add(journal, window, message, 1, 1, false);
	assert_int_equal(err, -EFBIG);
	assert_true(files("journal-") <= 16);
	journal_free(journal);
}

static void what_is_left_waits_in_the_spool(void **state _unused_)
{
	struct store_message got;
	struct journal *journal;
	struct store *store;
	unsigned int count = 0;

	assert_int_equal(journal_new(1 << 20, &journal), 0);
	assert_int_equal(journal_open(journal, directory), 0);
	for (uint64_t window = 1; window <= 3; window++)
		assert_int_equal(add(journal, window) ?: add(journal, window), 0);
	journal_free(journal);
	assert_int_equal(files("journal-"), 3);
	/* what a kill tore, what has nothing in it, and what is none of ours */
	fixture_run("cd j && f=$(ls journal-* | head -n 1) && printf '\\0\\0\\0\\144abc' >>$f && "
		    "touch journal-0000000000001.otlp journal-1.otlp journal-00000000000001.otlp && "
		    "mkdir journal-0000000000002.otlp && ln -s /etc/passwd journal-0000000000003.otlp && "
		    "n=${f#journal-} && printf '\\0\\0\\0\\4\\22\\2\\42\\0' >profiles-$n");
	store = open_spool();
	assert_int_equal(files("journal-0000000000001"), 0);
	assert_int_equal(files("journal-"), 4);
	assert_int_equal(store_stats(store).messages, 7);
	assert_int_equal(store_stats(store).samples, 18);
	assert_int_equal(store_stats(store).damaged_messages, 1);
	while (store_oldest(store, 1 << 20, &got) == 1) {
		assert_int_equal(got.size, sizeof(message));
		assert_memory_equal(got.data, message, sizeof(message));
		free(got.data);
		store_take(store);
		count++;
	}
	assert_int_equal(count, 7);
	store_close(store);
	assert_int_equal(files("profiles-"), 0);
}

/* Who has the store open writes the journal beside it: it is not taken away. */
static void a_journal_in_use_stays(void **state _unused_)
{
	const struct store_options options = { .directory = directory, .max_bytes = 1 << 20 };
	struct store *store = open_spool(), *other;
	struct journal *journal;

	assert_int_equal(journal_new(1 << 20, &journal), 0);
	assert_int_equal(journal_open(journal, directory), 0);
	assert_int_equal(add(journal, 1), 0);
	assert_int_equal(store_open(&options, &other), -EBUSY);
	assert_int_equal(files("journal-"), 1);
	journal_done(journal, 1);
	journal_free(journal);
	store_close(store);
}

static struct payload payload_of(uint64_t window)
{
	struct payload payload = { .size = sizeof(message), .samples = 3, .window = window };

	payload.data = malloc(sizeof(message));
	assert_non_null(payload.data);
	memcpy(payload.data, message, sizeof(message));
	return payload;
}

/* Rules may leave out all that comes behind a payload, which then was the last one without saying so. */
static void a_window_may_end_without_a_last_payload(void **state _unused_)
{
	const struct exporter_options options = {
		.store_directory = directory, .store_max_bytes = 1 << 20, .with_journal = true,
	};
	struct payload part = payload_of(7), late = payload_of(7), payload = payload_of(7);
	struct exporter *exporter;

	assert_int_equal(exporter_new(&options, &exporter), 0);
	assert_int_equal(exporter_journal(exporter, &part), 0);
	assert_int_equal(exporter_send(exporter, &payload), 0);
	assert_int_equal(files("journal-"), 1);
	exporter_window_done(exporter, 7);
	assert_int_equal(files("journal-"), 0);
	assert_int_equal(exporter_journal(exporter, &late), -EALREADY);
	exporter_free(exporter);
}

/* Killed with a window open: each of several spools has it afterwards. */
static void all_spools_get_what_was_left(void **state _unused_)
{
	const char *nobody = "http://127.0.0.1:9/";
	_cleanup_free_ char *second = strdup(fixture_path("j/second")), *third = strdup(fixture_path("j/third"));
	const struct destination_options destinations[] = {
		{ .name = "none", .http.endpoint = nobody },
		{ .name = "first", .http.endpoint = nobody, .spool_directory = directory, .spool_max_bytes = 1 << 20 },
		{ .name = "second", .http.endpoint = nobody, .spool_directory = second, .spool_max_bytes = 1 << 20 },
		{ .name = "third", .http.endpoint = nobody, .spool_directory = third, .spool_max_bytes = 1 << 20 },
	};
	const struct exporter_options options = {
		.destinations = destinations, .destination_count = ARRAY_SIZE(destinations), .with_journal = true,
	};
	struct payload part = payload_of(7);
	struct exporter_stats stats;
	struct exporter *exporter;

	assert_int_equal(exporter_new(&options, &exporter), 0);
	assert_int_equal(exporter_journal(exporter, &part), 0);
	/* its window is not done: as a kill would */
	exporter_free(exporter);
	assert_int_equal(files("journal-"), 1);
	assert_int_equal(exporter_new(&options, &exporter), 0);
	exporter_stats(exporter, &stats);
	assert_int_equal(stats.destinations[0].payloads_waiting, 0);
	for (size_t i = 1; i < ARRAY_SIZE(destinations); i++)
		assert_int_equal(stats.destinations[i].payloads_waiting, 1);
	assert_int_equal(files("journal-"), 0);
	exporter_free(exporter);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		T(a_window_has_a_file_until_it_is_done),
		T(it_is_bounded),
		T(what_is_left_waits_in_the_spool),
		T(a_journal_in_use_stays),
		T(a_window_may_end_without_a_last_payload), T(all_spools_get_what_was_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
