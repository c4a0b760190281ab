// SPDX-License-Identifier: Apache-2.0
/* The journal of open windows, and what a store makes of one that was left. */
#include "fixture.h"
#include "loopback.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "export/cut.h"
#include "export/exporter.h"
#include "export/journal.h"
#include "export/journal_record.h"
#include "export/recover.h"
#include "export/store.h"
#include "synthetic.h"

enum {
	WINDOWS = 3,
	CUTS = 2,		/* of each */
	CUT_SAMPLES = 5,
};

/* Any bytes, where none is read again. */
static const uint8_t some[30] = { 1 };
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

static int add(struct journal *journal, uint64_t window, bool begins)
{
	return journal_add(journal, window, some, sizeof(some), 3, begins);
}

/* Those of a journal that has not done anything. */
static struct journal_stats journal_stats_of_process(void)
{
	struct journal_stats stats;
	struct journal *journal;

	assert_int_equal(journal_new(1, &journal), 0);
	stats = journal_stats(journal);
	journal_free(journal);
	return stats;
}

static void write_at(const char *name, size_t offset, const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = open(fixture_path(name), O_WRONLY);

	assert_int_equal(pwrite(fd, data, size, (off_t)offset), size);
}

static struct store *open_spool(void)
{
	const struct store_options options = { .directory = directory, .max_bytes = 1 << 20,
					       .is_spool = true };
	struct store *store;

	assert_int_equal(store_open(&options, &store), 0);
	return store;
}

static void a_file_stays_while_a_window_needs_it(void **state _unused_)
{
	struct journal *journal;

	assert_int_equal(journal_new(1 << 20, &journal), 0);
	assert_int_equal(journal_room(journal), 0);
	assert_int_equal(add(journal, 1, true), -ENOTDIR);
	assert_int_equal(journal_open(journal, "/nowhere/at/all"), -ENOENT);
	assert_int_equal(journal_open(journal, directory), 0);
	assert_int_equal(journal_room(journal), 256 << 10);
	assert_int_equal(add(journal, 1, false), -ESTALE);
	assert_int_equal(add(journal, 1, true), 0);
	assert_int_equal(add(journal, 2, false), 0);
	assert_int_equal(add(journal, 2, true), 0);
	assert_int_equal(add(journal, 3, false), 0);
	assert_int_equal(files("journal-"), 2);
	journal_done(journal, 1);
	assert_int_equal(files("journal-"), 2);
	journal_done(journal, 2);
	assert_int_equal(files("journal-"), 1);
	/* a part that comes too late has what the next one goes on from, if it does not begin a file */
	assert_int_equal(add(journal, 2, false), 0);
	assert_int_equal(add(journal, 2, true), -EALREADY);
	journal_done(journal, 3);
	assert_int_equal(files("journal-"), 1);
	assert_int_equal(add(journal, 4, false), 0);
	assert_int_equal(add(journal, 5, true), 0);
	assert_int_equal(files("journal-"), 2);
	assert_int_equal(journal_stats(journal).parts, 7);
	assert_int_equal(journal_stats(journal).samples, 21);
	assert_int_equal(journal_stats(journal).refused, 2);
	journal_done(journal, 5);
	assert_int_equal(files("journal-"), 1);
	/* one that is stopped leaves none */
	journal_free(journal);
	assert_int_equal(files("journal-"), 0);
}

/* Its window was done first, when the file had nothing of it. */
static void a_late_part_is_done_as_well(void **state _unused_)
{
	struct journal *journal;

	assert_int_equal(journal_new(1 << 20, &journal), 0);
	assert_int_equal(journal_open(journal, directory), 0);
	assert_int_equal(add(journal, 1, true), 0);
	journal_done(journal, 1);
	journal_done(journal, 2);
	assert_int_equal(add(journal, 2, false), 0);
	fixture_run("test $(cat j/journal-* | wc -c) = %zu",
		    JOURNAL_HEAD + 4 * JOURNAL_FRAME + 2 * sizeof(some) + 2 * sizeof(uint64_t));
	journal_free(journal);
}

static void it_is_bounded(void **state _unused_)
{
	struct journal *journal;
	unsigned int taken = 0;
	int err;

	assert_int_equal(journal_new(1000, &journal), 0);
	assert_int_equal(journal_open(journal, directory), 0);
	while (!(err = add(journal, 1 + taken / 10, !taken)) && taken < 1000)
		taken++;
	assert_int_equal(err, -EFBIG);
	/* of 39 bytes each, behind a head */
	assert_int_equal(taken, (1000 - JOURNAL_HEAD) / (sizeof(some) + JOURNAL_FRAME));
	assert_int_equal(journal_stats(journal).refused, 1);
	journal_done(journal, 4);
	assert_int_equal(add(journal, 5, true), 0);
	assert_int_equal(files("journal-"), 1);
	/* windows that nobody closes */
	for (uint64_t window = 6; window < 60; window++)
		err = journal_add(journal, window, some, 1, 1, true);
	assert_int_equal(err, -EFBIG);
	assert_true(files("journal-") <= 16);
	journal_free(journal);
}

/* A disk that is full in the middle of a record: nothing is behind what was taken back. */
static void what_is_half_written_is_taken_back(void **state _unused_)
{
	const struct rlimit small = { .rlim_cur = JOURNAL_HEAD + 2 * (JOURNAL_FRAME + sizeof(some)) + 10,
				      .rlim_max = RLIM_INFINITY };
	struct rlimit before;
	struct journal *journal;

	assert_int_equal(journal_new(1 << 20, &journal), 0);
	assert_int_equal(journal_open(journal, directory), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(add(journal, 1, true), 0);
	assert_int_equal(add(journal, 1, false), 0);
	assert_true(add(journal, 1, false) < 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	fixture_run("test $(cat j/journal-* | wc -c) = %zu", JOURNAL_HEAD + 2 * (JOURNAL_FRAME + sizeof(some)));
	journal_free(journal);
}

/* What a run left that was killed: @WINDOWS windows of @CUTS cuts in one file, the last window not done. */
struct left {
	size_t ends[2 * WINDOWS * CUTS];	/* bytes up to the end of each record */
	uint64_t samples[2 * WINDOWS * CUTS];	/* that are to be sent of a file that ends there */
	size_t count;
};

static struct left left;

static void leave(struct journal *journal, uint64_t samples)
{
	_cleanup_free_ char *text = strdup(fixture_ask("cat j/journal-* | wc -c"));

	left.ends[left.count] = strtoul(text, NULL, 10);
	left.samples[left.count++] = samples;
	assert_non_null(journal);
}

static void make_left_of(uint64_t windows, uint64_t cut_samples)
{
	const struct encode_options options = { .max_bytes = 1 << 20 };
	struct mapped_file *file = synthetic_file("/usr/bin/program", true);
	struct image *image = synthetic_image(100, "program", NULL);
	struct buffer bytes = { .pool = POOL_QUEUES };
	struct aggregator *aggregator;
	struct journal *journal;
	struct cutter *cutter;
	struct window *window;
	uint64_t waiting = 0;
	struct cut cut;

	left = (struct left){ 0 };
	assert_int_equal(aggregator_new(&aggregator), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	assert_int_equal(cutter_new(&options, &cutter), 0);
	assert_int_equal(journal_new(1 << 20, &journal), 0);
	assert_int_equal(journal_open(journal, directory), 0);
	synthetic_map(image, 0x400000, 1, file);
	for (uint64_t i = 0; i < windows * CUTS; i++) {
		for (uint64_t k = 0; k < cut_samples; k++) {
			const uint64_t address = 0x401000 + (i + k) % 7 * 16;
			const struct synthetic_sample sample = {
				.time = 1000 + 1000000 * i + k, .source = synthetic_clock.source_id, .tid = 101,
				.comm = "program", .image = image, .user = &address, .user_count = 1,
			};

			assert_int_equal(synthetic_add(aggregator, &sample), 0);
		}
		assert_int_equal(cutter_cut(cutter, aggregator_window(aggregator), 1 << 20, 0, &bytes, &cut), 0);
		assert_int_equal(cut.samples, cut_samples);
		assert_int_equal(cut.begins, !i);
		assert_int_equal(journal_add(journal, cut.window, bytes.data, bytes.size, cut.samples, cut.begins), 0);
		buffer_clear(&bytes);
		waiting += cut.samples;
		leave(journal, waiting);
		if (i % CUTS != CUTS - 1)
			continue;
		assert_int_equal(aggregator_close(aggregator, 1000000 * (i + 1), &window), 0);
		window_free(window);
		if (i / CUTS != 1)
			continue;
		/* the first two are done only now */
		journal_done(journal, cut.window);
		waiting = 0;
		leave(journal, waiting);
	}
	journal_free(journal);
	cutter_free(cutter);
	aggregator_free(aggregator);
	buffer_free(&bytes);
	image_unref(image);
	mapped_file_unref(file);
	fixture_run("cp j/journal-* left && rm j/journal-*");
}

static void make_left(void)
{
	make_left_of(WINDOWS, CUT_SAMPLES);
}

static void what_is_left_waits_in_the_spool(void **state _unused_)
{
	const struct journal_stats before = journal_stats_of_process();
	struct store_message got;
	struct store *store;
	uint64_t samples = 0;

	make_left();
	/* what a kill tore, what has nothing in it, and what is none of ours */
	fixture_run("cp left j/journal-0000000000001.bin && cp left j/journal-0000000000002.bin && "
		    "printf '\\4\\0\\0\\0abcdabc' >>j/journal-0000000000002.bin && cd j && "
		    "touch journal-0000000000003.bin journal-1.bin journal-00000000000001.bin && "
		    "mkdir journal-0000000000004.bin && ln -s /etc/passwd journal-0000000000005.bin && "
		    "mkfifo journal-0000000000006.bin && touch profiles-0000000000001.otlp");
	store = open_spool();
	assert_int_equal(files("journal-"), 5);
	assert_int_equal(store_stats(store).messages, 2);
	assert_int_equal(store_stats(store).samples, 2 * CUTS * CUT_SAMPLES);
	assert_int_equal(store_stats(store).damaged_messages, 0);
	assert_int_equal(journal_stats_of_process().recovered_samples - before.recovered_samples,
			 2 * CUTS * CUT_SAMPLES);
	assert_int_equal(journal_stats_of_process().damaged_bytes - before.damaged_bytes, 11);
	while (store_oldest(store, 1 << 20, &got) == 1) {
		assert_non_null(memmem(got.data, got.size, "stacktap.recovered", 18));
		samples += got.samples;
		free(got.data);
		store_take(store);
	}
	assert_int_equal(samples, 2 * CUTS * CUT_SAMPLES);
	store_close(store);
	synthetic_check_pools();
}

static void a_file_of_another_version_is_not_read(void **state _unused_)
{
	const struct journal_stats before = journal_stats_of_process();
	uint8_t head[JOURNAL_HEAD];
	struct store *store;
	uint32_t sum;

	make_left();
	journal_head(head, &sum);
	/* "0.1.0" and its like becomes "x.1.0" */
	head[12] = 'x';
	sum = (uint32_t)crc32(0, head, sizeof(head) - sizeof(sum));
	memcpy(head + sizeof(head) - sizeof(sum), &sum, sizeof(sum));
	fixture_run("cp left j/journal-0000000000001.bin && printf old >j/journal-0000000000002.otlp");
	write_at("j/journal-0000000000001.bin", 0, head, sizeof(head));
	store = open_spool();
	assert_int_equal(store_stats(store).messages, 0);
	assert_int_equal(files("journal"), 0);
	assert_int_equal(journal_stats_of_process().foreign_files - before.foreign_files, 2);
	assert_int_equal(journal_stats_of_process().recovered_samples, before.recovered_samples);
	store_close(store);
}

/* Samples of a file that ends at @size: all of its whole records. */
static uint64_t samples_before(size_t size)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < left.count && left.ends[i] <= size; i++)
		samples = left.samples[i];
	return samples;
}

static struct recovered read_left(const char *name)
{
	_cleanup_close_ int from = open(fixture_path(name), O_RDONLY);
	_cleanup_close_ int to = open(fixture_path("to"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	struct recovered recovered;

	assert_true(from >= 0 && to >= 0);
	assert_int_equal(recover(from, to, NULL, &recovered), 0);
	assert_int_equal(lseek(to, 0, SEEK_END) > 0, recovered.samples > 0);
	return recovered;
}

/* At whichever byte it ends or is damaged: what is before is there, and nothing that was not written. */
static void each_byte_may_be_the_last_or_wrong(void **state _unused_)
{
	struct recovered recovered;
	size_t size, want;
	uint8_t *data, wrong;

	make_left();
	data = fixture_load(fixture_path("left"), &size);
	assert_int_equal(left.ends[left.count - 1], size);
	fixture_run("cp left cut");
	for (size_t at = size; at-- > 0;) {
		assert_int_equal(truncate(fixture_path("cut"), (off_t)at), 0);
		recovered = read_left("cut");
		assert_int_equal(recovered.samples, samples_before(at));
		want = 0;
		for (size_t i = 0; i < left.count && left.ends[i] <= at; i++)
			want = left.ends[i];
		/* a head without records is whole */
		want = max_of(want, at < JOURNAL_HEAD ? (size_t)0 : (size_t)JOURNAL_HEAD);
		assert_int_equal(recovered.damaged_bytes, at - want);
	}
	fixture_run("cp left cut");
	for (size_t at = 0; at < size; at++) {
		wrong = data[at] ^ (uint8_t)(1 << at % 8);
		write_at("cut", at, &wrong, 1);
		recovered = read_left("cut");
		want = 0;
		for (size_t i = 0; i < left.count && left.ends[i] <= at; i++)
			want = left.ends[i];
		assert_int_equal(recovered.samples, samples_before(at));
		assert_int_equal(recovered.damaged_bytes,
				 size - max_of(want, at < JOURNAL_HEAD ? (size_t)0 : (size_t)JOURNAL_HEAD));
		write_at("cut", at, &data[at], 1);
	}
	free(data);
	synthetic_check_pools();
}

/* While others have the memory it waits for the next start, and is whole then. */
static void what_there_is_no_memory_for_stays(void **state _unused_)
{
	struct pool *pool = pool_get(POOL_SYMBOLS);
	const size_t limit = pool->limit;
	struct store *store;

	make_left();
	fixture_run("cp left j/journal-0000000000001.bin");
	pool->limit = 200;
	assert_true(pool_charge(POOL_AGGREGATE, 1));
	store = open_spool();
	pool_uncharge(POOL_AGGREGATE, 1);
	pool->limit = limit;
	assert_int_equal(store_stats(store).messages, 0);
	assert_int_equal(files("journal"), 1);
	store_close(store);
	store = open_spool();
	assert_int_equal(store_stats(store).samples, CUTS * CUT_SAMPLES);
	assert_int_equal(files("journal"), 0);
	store_close(store);
	synthetic_check_pools();
}

static uint64_t take_with_little(enum pool_id id, size_t limit, uint64_t all)
{
	struct pool *pool = pool_get(id);
	const size_t before_limit = pool->limit;
	const struct journal_stats before = journal_stats_of_process();
	struct journal_stats after;
	struct store *store;
	uint64_t samples;

	fixture_run("rm -rf j/* && cp left j/journal-0000000000001.bin");
	pool->limit = limit;
	store = open_spool();
	pool->limit = before_limit;
	after = journal_stats_of_process();
	samples = store_stats(store).samples;
	store_close(store);
	assert_int_equal(files("journal"), 0);
	assert_int_equal(samples, after.recovered_samples - before.recovered_samples);
	assert_int_equal(samples < all, after.damaged_bytes > before.damaged_bytes);
	return samples;
}

/* Of what all memory is not enough for, what fits is kept, the rest is counted, and nothing stays for ever. */
static void what_never_fits_does_not_stay(void **state _unused_)
{
	const uint64_t many = 10000;
	bool has_part = false;
	uint64_t samples;

	make_left();
	for (size_t limit = 200; limit < 300000; limit += limit / 3) {
		take_with_little(POOL_SYMBOLS, limit, CUTS * CUT_SAMPLES);
		take_with_little(POOL_ENCODE, limit, CUTS * CUT_SAMPLES);
	}
	make_left_of(1, many);
	for (size_t limit = 100000; limit < 2000000; limit += limit / 5) {
		samples = take_with_little(POOL_AGGREGATE, limit, CUTS * many);
		has_part |= samples && samples < CUTS * many;
	}
	assert_int_equal(samples, CUTS * many);
	assert_true(has_part);
	synthetic_check_pools();
}

/* Who has the store open writes the journal beside it: it is not taken away. */
static void a_journal_in_use_stays(void **state _unused_)
{
	const struct store_options options = { .directory = directory, .max_bytes = 1 << 20 };
	struct store *store = open_spool(), *other;
	struct journal *journal;

	assert_int_equal(journal_new(1 << 20, &journal), 0);
	assert_int_equal(journal_open(journal, directory), 0);
	assert_int_equal(add(journal, 1, true), 0);
	assert_int_equal(store_open(&options, &other), -EBUSY);
	assert_int_equal(files("journal-"), 1);
	journal_done(journal, 1);
	journal_free(journal);
	store_close(store);
}

/* Rules may leave out all that comes behind a payload, which then was the last one without saying so. */
static void a_window_may_end_without_a_last_payload(void **state _unused_)
{
	const struct exporter_options options = {
		.store_directory = directory, .store_max_bytes = 1 << 20, .with_journal = true,
	};
	const struct cut cut = { .window = 7, .samples = 3, .begins = true };
	struct payload payload = { .data = calloc(1, 4), .size = 4, .samples = 3, .window = 7 };
	struct exporter *exporter;

	assert_non_null(payload.data);
	assert_int_equal(exporter_new(&options, &exporter), 0);
	assert_int_equal(exporter_journal_room(exporter), 32 << 10);
	assert_int_equal(exporter_journal(exporter, &cut, some, sizeof(some)), 0);
	assert_int_equal(exporter_send(exporter, &payload), 0);
	assert_int_equal(exporter_journal(exporter, &cut, some, sizeof(some)), 0);
	exporter_window_done(exporter, 7);
	assert_int_equal(exporter_journal(exporter, &cut, some, sizeof(some)), -EALREADY);
	exporter_free(exporter);
	assert_int_equal(files("journal-"), 0);
}

/* Killed with a window open: each of several spools has it afterwards, in its destination's form. */
static void all_spools_get_what_was_left(void **state _unused_)
{
	const char *nobody = "http://127.0.0.1:9/";
	_cleanup_free_ char *second = strdup(fixture_path("j/second")), *third = strdup(fixture_path("j/third"));
	const struct encode_form ranges = { .names_ranges = true };
	const struct encode_form repeats = { .names_ranges = true, .repeats_functions = true };
	const struct destination_options destinations[] = {
		{ .name = "none", .http.endpoint = nobody },
		{ .name = "first", .http.endpoint = nobody, .spool_directory = directory, .spool_max_bytes = 1 << 20 },
		{ .name = "second", .http.endpoint = nobody, .spool_directory = second, .spool_max_bytes = 1 << 20,
		  .recovered_form = &ranges },
		{ .name = "third", .http.endpoint = nobody, .spool_directory = third, .spool_max_bytes = 1 << 20,
		  .recovered_form = &repeats },
	};
	const struct exporter_options options = {
		.destinations = destinations, .destination_count = ARRAY_SIZE(destinations), .with_journal = true,
	};
	struct exporter_stats stats;
	struct exporter *exporter;

	make_left();
	fixture_run("cp left j/journal-0000000000001.bin");
	assert_int_equal(exporter_new(&options, &exporter), 0);
	exporter_stats(exporter, &stats);
	assert_int_equal(stats.destinations[0].payloads_waiting, 0);
	for (size_t i = 1; i < ARRAY_SIZE(destinations); i++)
		assert_int_equal(stats.destinations[i].payloads_waiting, 1);
	assert_int_equal(files("journal-"), 0);
	exporter_free(exporter);
	fixture_run("! grep -qF '[program]' j/profiles-* && grep -qF '[program]' j/second/profiles-* && "
		    "test $(cat j/third/profiles-* | wc -c) -gt $(cat j/second/profiles-* | wc -c)");
}

static uint64_t waiting_in(const struct exporter_options *options, size_t i)
{
	struct exporter_stats stats;
	struct exporter *exporter;

	assert_int_equal(exporter_new(options, &exporter), 0);
	exporter_stats(exporter, &stats);
	exporter_free(exporter);
	return stats.destinations[i].payloads_waiting;
}

/* One that the first spool has no room for stays there, and goes to the others once. */
static void a_spool_gets_it_once(void **state _unused_)
{
	const char *nobody = "http://127.0.0.1:9/";
	_cleanup_free_ char *second = strdup(fixture_path("j/second"));
	const struct destination_options destinations[] = {
		{ .name = "first", .http.endpoint = nobody, .spool_directory = directory, .spool_max_bytes = 1 << 20 },
		{ .name = "second", .http.endpoint = nobody, .spool_directory = second, .spool_max_bytes = 1 << 20 },
	};
	const struct exporter_options options = {
		.destinations = destinations, .destination_count = ARRAY_SIZE(destinations), .with_journal = true,
	};
	struct exporter_stats stats;
	struct exporter *exporter;

	make_left();
	fixture_run("mv left first");
	make_left();
	/* nothing can be written where its messages would go */
	fixture_run("cp first j/journal-0000000000001.bin && mkdir j/journal.partial");
	assert_int_equal(waiting_in(&options, 0), 0);
	assert_int_equal(waiting_in(&options, 1), 1);
	assert_int_equal(files("journal-0000000000001.bin"), 1);
	/* what cannot be known is whether it was sent meanwhile */
	fixture_run("rm j/second/profiles-*");
	assert_int_equal(waiting_in(&options, 1), 0);
	/* another one by the same name */
	fixture_run("cp left j/journal-0000000000001.bin");
	assert_int_equal(waiting_in(&options, 1), 1);
	fixture_run("rmdir j/journal.partial");
	assert_int_equal(waiting_in(&options, 0), 1);
	assert_int_equal(waiting_in(&options, 1), 1);
	assert_int_equal(files("journal-0000000000001.bin"), 0);
	/* that it had it is remembered for a week, for a disk that comes back */
	fixture_run("test -e j/second/journal-0000000000001.taken && touch -d '8 days ago' j/second/journal-*.taken");
	assert_int_equal(waiting_in(&options, 1), 1);
	fixture_run("! test -e j/second/journal-0000000000001.taken");
	/* no room for it in the second one */
	fixture_run("cp left j/journal-0000000000002.bin && mkdir j/second/journal.new");
	assert_int_equal(exporter_new(&options, &exporter), 0);
	exporter_stats(exporter, &stats);
	assert_int_equal(stats.journal.copies_failed, 1);
	assert_int_equal(stats.destinations[0].payloads_waiting, 2);
	assert_int_equal(stats.destinations[1].payloads_waiting, 1);
	exporter_free(exporter);
}

/* Takes one request, and looks at what a kill would leave meanwhile. */
static void *take_one(void *ctx)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
	const int *listening = ctx;
	_cleanup_close_ int fd = accept4(*listening, NULL, NULL, SOCK_CLOEXEC);
	char request[4096];

	assert_true(read(fd, request, sizeof(request)) > 0);
	fixture_run("cp j/journal-* left");
	assert_int_equal(write(fd, answer, sizeof(answer) - 1), sizeof(answer) - 1);
	shutdown(fd, SHUT_WR);
	while (read(fd, request, sizeof(request)) > 0)
		;
	return NULL;
}

/* A window in the spool is not in the journal, too, while it is sent. */
static void a_window_is_done_before_it_is_sent(void **state _unused_)
{
	const struct cut cut = { .window = 7, .samples = 3, .begins = true };
	char url[64];
	int fd = loopback_listen(url, sizeof(url));
	const struct destination_options destination = { .name = "", .http.endpoint = url, .timeout_ms = 60000,
							 .spool_directory = directory, .spool_max_bytes = 1 << 20 };
	const struct exporter_options options = { .destinations = &destination, .destination_count = 1,
						  .with_journal = true };
	struct payload payload = { .data = calloc(1, 4), .size = 4, .samples = 3, .window = 7, .is_last = true };
	struct exporter *exporter;
	pthread_t thread;

	assert_non_null(payload.data);
	assert_int_equal(exporter_new(&options, &exporter), 0);
	assert_int_equal(exporter_journal(exporter, &cut, some, sizeof(some)), 0);
	assert_int_equal(pthread_create(&thread, NULL, take_one, &fd), 0);
	assert_int_equal(exporter_send(exporter, &payload), 0);
	pthread_join(thread, NULL);
	close(fd);
	fixture_run("test $(cat left | wc -c) = %zu",
		    JOURNAL_HEAD + 2 * JOURNAL_FRAME + sizeof(some) + sizeof(uint64_t));
	exporter_free(exporter);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		T(a_file_stays_while_a_window_needs_it),
		T(a_late_part_is_done_as_well),
		T(it_is_bounded),
		T(what_is_half_written_is_taken_back),
		T(what_is_left_waits_in_the_spool),
		T(a_file_of_another_version_is_not_read),
		T(each_byte_may_be_the_last_or_wrong),
		T(what_there_is_no_memory_for_stays),
		T(what_never_fits_does_not_stay),
		T(a_journal_in_use_stays),
		T(a_window_may_end_without_a_last_payload), T(all_spools_get_what_was_left),
		T(a_spool_gets_it_once),
		T(a_window_is_done_before_it_is_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
