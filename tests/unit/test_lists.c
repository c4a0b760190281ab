// SPDX-License-Identifier: Apache-2.0
/* When mapping lists are made, what they hold, and which samples they are too old for. */
#include "unit.h"

#include <string.h>

#include "base/clock.h"
#include "process/lists.h"
#include "process/process.h"
#include "process/scan.h"
#include "profile/window.h"

#define MS NSEC_PER_MSEC
#define DELAY (LISTS_DELAY_MS * MS)

static struct process_table *table;
static struct mapping_list *last;	/* the newest one */
static unsigned int lists_seen;
static bool is_full;

static bool take(void *ctx _unused_, struct mapping_list *list)
{
	if (is_full) {
		mapping_list_free(list);
		return false;
	}
	mapping_list_free(last);
	last = list;
	lists_seen++;
	return true;
}

static int setup(void **state _unused_)
{
	lists_seen = 0;
	is_full = false;
	return process_table_new(NULL, &table) ?:
	       process_table_use_lists(table, take, NULL, NULL, 0);
}

static int teardown(void **state _unused_)
{
	mapping_list_free(last);
	last = NULL;
	process_table_free(table);
	return pool_get(POOL_PROCESSES)->used != 0;
}

static void map(uint64_t time, uint32_t pid, uint64_t address, uint64_t length, const char *path)
{
	process_table_mmap(table, &(struct sideband_mmap){
					  .time = time,
					  .pid = pid,
					  .tid = pid,
					  .address = address,
					  .length = length,
					  .major = 8,
					  .inode = address,
					  .path = path,
				  });
}

static void exec_(uint64_t time, uint32_t pid)
{
	process_table_comm(table, &(struct sideband_task){ .time = time, .pid = pid, .tid = pid,
							   .comm = "program", .is_exec = true });
}

static void fork_(uint64_t time, uint32_t pid, uint32_t parent)
{
	process_table_fork(table, &(struct sideband_task){ .time = time, .pid = pid, .tid = pid,
							   .parent_pid = parent,
							   .parent_tid = parent });
}

/* Marks of a sample in user mode that was walked with a list of @generation. */
static uint16_t sample(uint64_t time, uint32_t tgid, uint64_t exec_id, uint64_t generation)
{
	const struct stacktap_sample record = {
		.header = { .time = time, .flags = STACKTAP_SAMPLE_USER_MODE },
		.tgid = tgid,
		.tid = tgid,
		.start_time = 77,
		.exec_id = exec_id,
		.generation = generation,
		.comm = "program",
	};
	uint16_t marks;
	struct image *image = process_table_image(table, &record, &marks);

	assert_non_null(image);
	return marks | process_table_check_list(table, image, &record);
}

static void test_changes_gather(void **state _unused_)
{
	exec_(10 * MS, 5);
	map(11 * MS, 5, 0x400000, 0x1000, "/bin/program");
	map(11 * MS, 5, 0x700000, 0x1000, "/lib/ld.so");
	/* its libraries are still to come, however long that takes */
	assert_true(process_table_send_lists(table, 11 * MS + DELAY, false));
	assert_int_equal(lists_seen, 0);
	map(12 * MS, 5, 0x500000, 0x2000, "/lib/libone.so");
	assert_true(process_table_send_lists(table, 11 * MS + DELAY, false));
	assert_int_equal(lists_seen, 0);
	assert_false(process_table_send_lists(table, 12 * MS + DELAY, false));
	assert_int_equal(lists_seen, 1);
	assert_int_equal(last->tgid, 5);
	assert_int_equal(last->count, 3);
	assert_int_equal(last->mappings[1].start, 0x500000);
	assert_int_equal(last->mappings[1].end, 0x502000);
	assert_int_equal(last->generation, 12 * MS + DELAY);
	assert_false(last->is_bound);
	/* nothing has changed since */
	assert_false(process_table_send_lists(table, NSEC_PER_SEC, true));
	assert_int_equal(lists_seen, 1);

	sample(100 * MS, 5, 3, last->generation);
	map(200 * MS, 5, 0x600000, 0x1000, "/lib/libtwo.so");
	assert_false(process_table_send_lists(table, 200 * MS + DELAY, false));
	assert_int_equal(lists_seen, 2);
	assert_int_equal(last->count, 4);
	/* by now a sample has told who it is */
	assert_true(last->is_bound);
	assert_int_equal(last->exec_id, 3);
	assert_int_equal(last->start_time, 77);
}

/* On a host on which libraries come slowly the next one may take as long as the first. */
static void test_slow_programs(void **state _unused_)
{
	exec_(10 * MS, 5);
	map(11 * MS, 5, 0x400000, 0x1000, "/bin/program");
	map(12 * MS, 5, 0x700000, 0x1000, "/lib/ld.so");
	/* another one is not held up by it */
	exec_(13 * MS, 6);
	map(14 * MS, 6, 0x400000, 0x1000, "/bin/static");
	assert_true(process_table_send_lists(table, 20 * MS + DELAY, false));
	assert_int_equal(lists_seen, 1);
	assert_int_equal(last->tgid, 6);
	map(110 * MS, 5, 0x500000, 0x1000, "/lib/libone.so");
	assert_true(process_table_send_lists(table, 200 * MS, false));
	map(201 * MS, 5, 0x600000, 0x1000, "/lib/libtwo.so");
	assert_true(process_table_send_lists(table, 390 * MS, false));
	assert_int_equal(lists_seen, 1);
	assert_false(process_table_send_lists(table, 392 * MS, false));
	assert_int_equal(lists_seen, 2);
	assert_int_equal(last->count, 4);
	/* nothing but itself and the linker: that is all, then */
	exec_(1000 * MS, 7);
	map(1001 * MS, 7, 0x400000, 0x1000, "/bin/program");
	map(1002 * MS, 7, 0x700000, 0x1000, "/lib/ld.so");
	assert_true(process_table_send_lists(table, 1900 * MS, false));
	assert_false(process_table_send_lists(table, 2010 * MS, false));
	assert_int_equal(lists_seen, 3);
}

/* A program whose mappings change all the time gets its list all the same. */
static void test_changes_do_not_gather_for_ever(void **state _unused_)
{
	uint64_t at = 10 * MS, first = 0;

	exec_(at, 5);
	for (uint64_t i = 0; lists_seen < 2 && i < 1000; i++, at += DELAY / 2) {
		map(at, 5, 0x400000 + i * 0x1000, 0x1000, "/bin/program");
		process_table_send_lists(table, at, false);
		if (!lists_seen)
			first = at;
	}
	assert_int_equal(lists_seen, 2);
	assert_in_range(first, 9 * NSEC_PER_SEC / 10, 11 * NSEC_PER_SEC / 10);
	assert_in_range(at, first + 9 * DELAY, first + 12 * DELAY);
}

static void test_generation_holds_all_events(void **state _unused_)
{
	exec_(10 * MS, 5);
	map(11 * MS, 5, 0x400000, 0x1000, "/bin/program");
	/* a round may deliver events a little younger than itself */
	assert_false(process_table_send_lists(table, 10 * MS, true));
	assert_int_equal(last->generation, 11 * MS);
}

static void test_fork_inherits(void **state _unused_)
{
	exec_(10 * MS, 5);
	map(11 * MS, 5, 0x400000, 0x1000, "/bin/program");
	process_table_send_lists(table, 50 * MS, false);
	assert_int_equal(lists_seen, 1);
	fork_(100 * MS, 6, 5);
	assert_false(process_table_send_lists(table, 200 * MS, false));
	assert_int_equal(lists_seen, 1);
	/* the parent's generation is as good for the child */
	assert_int_equal(sample(150 * MS, 6, 3, 50 * MS), 0);
	assert_false(process_table_send_lists(table, 300 * MS, true));
	assert_int_equal(lists_seen, 1);

	/* not when the parent's list was not there yet */
	map(400 * MS, 5, 0x600000, 0x1000, "/lib/libtwo.so");
	fork_(401 * MS, 7, 5);
	assert_false(process_table_send_lists(table, 500 * MS, false));
	assert_int_equal(lists_seen, 3);
	exec_(600 * MS, 6);
	map(601 * MS, 6, 0x700000, 0x1000, "/bin/other");
	assert_false(process_table_send_lists(table, 700 * MS, false));
	assert_int_equal(lists_seen, 4);
	assert_int_equal(last->tgid, 6);
	assert_int_equal(last->count, 1);
}

static void test_old_lists_mark_samples(void **state _unused_)
{
	exec_(10 * MS, 5);
	map(11 * MS, 5, 0x400000, 0x4000, "/bin/program");
	process_table_send_lists(table, 50 * MS, false);
	assert_int_equal(sample(100 * MS, 5, 3, 50 * MS), 0);
	/* new code beside the old: a stack without it is right all the same */
	map(200 * MS, 5, 0x600000, 0x1000, "/lib/libtwo.so");
	assert_int_equal(sample(201 * MS, 5, 3, 50 * MS), 0);
	/* code in the place of other code */
	map(300 * MS, 5, 0x402000, 0x1000, "/lib/libthree.so");
	assert_int_equal(sample(299 * MS, 5, 3, 50 * MS), SAMPLE_DOUBTFUL);
	assert_int_equal(sample(301 * MS, 5, 3, 50 * MS), SAMPLE_DOUBTFUL);
	assert_int_equal(sample(301 * MS, 5, 3, 0), 0);
	assert_int_equal(sample(302 * MS, 5, 3, 301 * MS), 0);
	/* events of the same round that are newer than the sample take nothing away from that */
	map(310 * MS, 5, 0x700000, 0x1000, "/lib/libfour.so");
	assert_int_equal(sample(305 * MS, 5, 3, 50 * MS), SAMPLE_DOUBTFUL);
	assert_int_equal(sample(305 * MS, 5, 3, 301 * MS), 0);
	/* and a child inherits the old list from its parent */
	fork_(320 * MS, 6, 5);
	assert_int_equal(sample(330 * MS, 6, 3, 50 * MS), SAMPLE_DOUBTFUL);
	assert_int_equal(sample(330 * MS, 6, 3, 315 * MS), 0);
	/* a list that was meant for the program before */
	exec_(400 * MS, 5);
	map(401 * MS, 5, 0x800000, 0x1000, "/bin/other");
	assert_int_equal(sample(500 * MS, 5, 4, 399 * MS), SAMPLE_DOUBTFUL);
	assert_int_equal(sample(500 * MS, 5, 4, 450 * MS), 0);
	exec_(600 * MS, 5);
	map(601 * MS, 5, 0x900000, 0x1000, "/bin/third");
	map(603 * MS, 5, 0xa00000, 0x1000, "/lib/libone.so");
	assert_int_equal(sample(602 * MS, 5, 5, 599 * MS), SAMPLE_DOUBTFUL);
}

static void test_same_mapping_again(void **state _unused_)
{
	exec_(10 * MS, 5);
	map(11 * MS, 5, 0x400000, 0x4000, "/bin/program");
	map(12 * MS, 5, 0x500000, 0x4000, "//anon");
	process_table_send_lists(table, 50 * MS, false);
	/* a change of protection: nothing is new, nothing becomes doubtful */
	map(200 * MS, 5, 0x500000, 0x4000, "//anon");
	assert_int_equal(sample(201 * MS, 5, 3, 50 * MS), 0);
	process_table_send_lists(table, 300 * MS, true);
	assert_int_equal(lists_seen, 1);
	/* another part of the file, or more of it */
	map(400 * MS, 5, 0x500000, 0x5000, "//anon");
	process_table_send_lists(table, 500 * MS, true);
	assert_int_equal(lists_seen, 2);
}

static void test_samples_without_list_ask(void **state _unused_)
{
	exec_(10 * MS, 5);
	map(11 * MS, 5, 0x400000, 0x4000, "/bin/program");
	process_table_send_lists(table, 50 * MS, false);
	assert_int_equal(lists_seen, 1);
	/* it may be under way */
	sample(60 * MS, 5, 3, 0);
	process_table_send_lists(table, 100 * MS, true);
	assert_int_equal(lists_seen, 1);
	sample(1000 * MS, 5, 3, 0);
	process_table_send_lists(table, 1100 * MS, false);
	assert_int_equal(lists_seen, 2);
	/* and more and more seldom */
	for (uint64_t time = 1100; time < 11100; time += 10) {
		sample(time * MS, 5, 3, 0);
		process_table_send_lists(table, time * MS, false);
	}
	assert_in_range(lists_seen, 4, 8);
}

static void test_no_room(void **state _unused_)
{
	exec_(10 * MS, 5);
	map(11 * MS, 5, 0x400000, 0x4000, "/bin/program");
	is_full = true;
	assert_true(process_table_send_lists(table, 50 * MS, false));
	is_full = false;
	assert_false(process_table_send_lists(table, 50 * MS + DELAY, false));
	assert_int_equal(lists_seen, 1);
	process_table_relist(table, 100 * MS);
	assert_false(process_table_send_lists(table, 100 * MS + DELAY, false));
	assert_int_equal(lists_seen, 2);
}

static void test_scans_ask(void **state _unused_)
{
	char program[] = "/bin/found", library[] = "/lib/libfound.so";
	struct process_snapshot_mapping mappings[] = {
		{ .start = 0x1000, .end = 0x2000, .inode = 9, .path = program },
		{ .start = 0x8000, .end = 0x9000, .inode = 8, .path = library },
	};
	struct process_snapshot snapshot = { .time = 5 * MS, .tgid = 5, .start_time = 10 * MS,
					     .comm = "found", .mappings = mappings,
					     .mapping_count = 1 };

	process_table_merge(table, &snapshot);
	process_table_send_lists(table, 6 * MS, true);
	assert_int_equal(lists_seen, 1);
	snapshot.time = 10 * MS;
	process_table_merge(table, &snapshot);
	process_table_send_lists(table, 11 * MS, true);
	assert_int_equal(lists_seen, 1);
	snapshot.time = 20 * MS;
	snapshot.mapping_count = 2;
	process_table_merge(table, &snapshot);
	process_table_send_lists(table, 21 * MS, true);
	assert_int_equal(lists_seen, 2);
	assert_int_equal(last->count, 2);
	/* a kernel thread has nothing to list */
	snapshot.tgid = 2;
	snapshot.mapping_count = 0;
	process_table_merge(table, &snapshot);
	process_table_send_lists(table, 31 * MS, true);
	assert_int_equal(lists_seen, 2);
}

/* A process with more mappings than anybody keeps: its first look counts, and no later one. */
static void test_cut_scans(void **state _unused_)
{
	enum { MOST = 16382 };
	static struct process_snapshot_mapping mappings[MOST];
	char path[] = "/lib/libmany.so";
	struct process_snapshot snapshot = { .time = 5 * MS, .tgid = 5, .start_time = 10 * MS,
					     .comm = "many", .mappings = mappings,
					     .mapping_count = MOST, .is_cut = true };

	for (uint64_t i = 0; i < MOST; i++)
		mappings[i] = (struct process_snapshot_mapping){ .start = (2 * i + 1) << 12,
								 .end = (2 * i + 2) << 12,
								 .inode = 9, .path = path };
	process_table_merge(table, &snapshot);
	process_table_send_lists(table, 6 * MS, true);
	assert_int_equal(lists_seen, 1);
	assert_int_equal(last->count, MOST);
	map(11 * MS, 5, 0x7f0000000000, 0x4000, "/lib/libabove.so");
	process_table_send_lists(table, 12 * MS, true);
	assert_int_equal(last->count, MOST + 1);
	snapshot.time = 20 * MS;
	process_table_merge(table, &snapshot);
	process_table_send_lists(table, 21 * MS, true);
	assert_int_equal(lists_seen, 2);
	assert_int_equal(last->count, MOST + 1);
}

static void test_others_are_left_alone(void **state _unused_)
{
	const uint32_t wanted = 6;

	process_table_free(table);
	assert_int_equal(process_table_new(NULL, &table), 0);
	assert_int_equal(process_table_use_lists(table, take, NULL, &wanted, 1), 0);
	exec_(10 * MS, 5);
	map(11 * MS, 5, 0x400000, 0x1000, "/bin/program");
	exec_(10 * MS, 6);
	map(11 * MS, 6, 0x400000, 0x1000, "/bin/program");
	process_table_send_lists(table, 50 * MS, false);
	assert_int_equal(lists_seen, 1);
	assert_int_equal(last->tgid, 6);
	/* but a process that has samples after all */
	sample(1000 * MS, 5, 3, 0);
	process_table_send_lists(table, 1100 * MS, false);
	assert_int_equal(lists_seen, 2);
	assert_int_equal(last->tgid, 5);
}

static void test_our_own_waits(void **state _unused_)
{
	const uint32_t own = (uint32_t)getpid();

	exec_(10 * MS, own);
	map(11 * MS, own, 0x400000, 0x1000, "/bin/stacktap");
	process_table_send_lists(table, 50 * MS, true);
	sample(1000 * MS, own, 3, 0);
	process_table_send_lists(table, 2000 * MS, true);
	assert_int_equal(lists_seen, 0);
	sample(20000 * MS, own, 3, 0);
	process_table_send_lists(table, 20100 * MS, true);
	assert_int_equal(lists_seen, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_changes_gather, setup, teardown),
		cmocka_unit_test_setup_teardown(test_changes_do_not_gather_for_ever, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_programs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_generation_holds_all_events, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork_inherits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_old_lists_mark_samples, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_mapping_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_samples_without_list_ask, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scans_ask, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_scans, setup, teardown),
		cmocka_unit_test_setup_teardown(test_our_own_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others_are_left_alone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
