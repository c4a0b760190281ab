// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <string.h>

#include "capture/hotplug.h"
#include "capture/sideband.h"
#include "records.h"

enum { SEEN_MAX = 4096 };

struct seen {
	char order[SEEN_MAX];	/* one letter an event */
	uint64_t times[SEEN_MAX];
	uint32_t pids[SEEN_MAX];
	size_t count;
	char path[512];
	struct sideband_mmap mmap;
	struct sideband_task task;
	unsigned int gaps;
	size_t gap_at;
};

static struct seen seen;

static void note(char letter, uint64_t time, uint32_t pid)
{
	assert_true(seen.count < SEEN_MAX - 1);
	seen.order[seen.count] = letter;
	seen.times[seen.count] = time;
	seen.pids[seen.count++] = pid;
}

static void on_mmap(void *ctx _unused_, const struct sideband_mmap *event)
{
	note('m', event->time, event->pid);
	seen.mmap = *event;
	snprintf(seen.path, sizeof(seen.path), "%s", event->path);
}

static void on_comm(void *ctx _unused_, const struct sideband_task *event)
{
	note(event->is_exec ? 'x' : 'c', event->time, event->pid);
	seen.task = *event;
	snprintf(seen.path, sizeof(seen.path), "%s", event->comm);
}

static void on_fork(void *ctx _unused_, const struct sideband_task *event)
{
	note('f', event->time, event->pid);
	seen.task = *event;
}

static void on_exit_event(void *ctx _unused_, const struct sideband_task *event)
{
	note('e', event->time, event->pid);
}

static void on_gap(void *ctx _unused_, enum capture_gap reason _unused_, uint64_t time _unused_,
		   uint32_t cpu _unused_)
{
	seen.gaps++;
	seen.gap_at = seen.count;
}

static const struct capture_ops ops = {
	.mmap = on_mmap,
	.comm = on_comm,
	.fork = on_fork,
	.exit = on_exit_event,
	.gap = on_gap,
};

static uint64_t buffer[SIDEBAND_MAX_RECORD / 8];
static struct capture_stats stats;

static void merge(struct sideband *const *sidebands, size_t count, uint64_t until)
{
	for (size_t i = 0; i < count; i++)
		if (sidebands[i])
			sideband_snapshot(sidebands[i]);
	sideband_merge(sidebands, count, until, buffer, &ops, NULL, &stats);
}

static int reset(void **state _unused_)
{
	memset(&seen, 0, sizeof(seen));
	memset(&stats, 0, sizeof(stats));
	return 0;
}

static void test_fields(void **state _unused_)
{
	struct sideband *sideband = fake_sideband_new(2, 4096);

	fake_mmap(sideband, 100, 7, 0x1000, 0x2000, 0x3000, 99, "/usr/lib/libx.so");
	merge(&sideband, 1, 1000);
	assert_string_equal(seen.order, "m");
	assert_string_equal(seen.path, "/usr/lib/libx.so");
	assert_int_equal(seen.mmap.time, 100);
	assert_int_equal(seen.mmap.pid, 7);
	assert_int_equal(seen.mmap.address, 0x1000);
	assert_int_equal(seen.mmap.length, 0x2000);
	assert_int_equal(seen.mmap.file_offset, 0x3000);
	assert_int_equal(seen.mmap.major, 8);
	assert_int_equal(seen.mmap.minor, 1);
	assert_int_equal(seen.mmap.inode, 99);
	assert_int_equal(seen.mmap.inode_generation, 5);
	assert_null(seen.mmap.build_id);
	fake_task(sideband, PERF_RECORD_FORK, 200, 8, 9, 7);
	merge(&sideband, 1, 1000);
	assert_int_equal(seen.task.pid, 8);
	assert_int_equal(seen.task.tid, 9);
	assert_int_equal(seen.task.parent_pid, 7);
	fake_comm(sideband, 300, 8, "new name", true);
	merge(&sideband, 1, 1000);
	assert_string_equal(seen.order, "mfx");
	assert_string_equal(seen.path, "new name");
	assert_true(seen.task.is_exec);
	assert_int_equal(sideband->page->data_tail, sideband->page->data_head);
	fake_sideband_free(sideband);
}

static void test_cpus_are_merged_by_time(void **state _unused_)
{
	/* a child is forked on one CPU, runs a program on the next and ends on the third */
	struct sideband *cpus[4] = { fake_sideband_new(0, 4096), NULL, fake_sideband_new(2, 4096),
				     fake_sideband_new(3, 4096) };

	fake_task(cpus[3], PERF_RECORD_FORK, 10, 50, 50, 1);
	fake_comm(cpus[0], 20, 50, "prog", true);
	fake_mmap(cpus[0], 30, 50, 0x1000, 0x1000, 0, 1, "/prog");
	fake_mmap(cpus[2], 25, 60, 0x1000, 0x1000, 0, 1, "/other");
	fake_task(cpus[2], PERF_RECORD_EXIT, 40, 50, 50, 1);
	fake_comm(cpus[3], 35, 50, "renamed", false);
	merge(cpus, 4, 1000);
	assert_string_equal(seen.order, "fxmmce");
	for (size_t i = 1; i < seen.count; i++)
		assert_true(seen.times[i - 1] < seen.times[i]);
	for (size_t i = 0; i < 4; i++)
		if (cpus[i])
			fake_sideband_free(cpus[i]);
}

static void test_later_events_wait_for_the_next_round(void **state _unused_)
{
	struct sideband *cpus[2] = { fake_sideband_new(0, 4096), fake_sideband_new(1, 4096) };

	fake_task(cpus[0], PERF_RECORD_EXIT, 10, 1, 1, 0);
	fake_task(cpus[1], PERF_RECORD_EXIT, 101, 2, 2, 0);
	merge(cpus, 2, 100);
	assert_int_equal(seen.count, 1);
	/* older than what waited, but its ring was read too early */
	fake_task(cpus[0], PERF_RECORD_EXIT, 99, 3, 3, 0);
	merge(cpus, 2, 200);
	assert_int_equal(seen.count, 3);
	assert_int_equal(seen.pids[1], 3);
	assert_int_equal(seen.pids[2], 2);
	fake_sideband_free(cpus[0]);
	fake_sideband_free(cpus[1]);
}

static void test_records_wrap(void **state _unused_)
{
	struct sideband *sideband = fake_sideband_new(0, 1024);
	char path[300];

	for (unsigned int i = 1; i <= 500; i++) {
		snprintf(path, sizeof(path), "/%0*u", (int)(i % 250) + 1, i);
		fake_mmap(sideband, i, i, i * 0x1000, 0x1000, 0, i, path);
		merge(&sideband, 1, 1000);
		assert_int_equal(seen.count, i);
		assert_int_equal(seen.mmap.inode, i);
		assert_int_equal(seen.times[i - 1], i);
		assert_string_equal(seen.path, path);
	}
	assert_int_equal(stats.bad_records, 0);
	fake_sideband_free(sideband);
}

static void test_lost_is_told_after_the_events(void **state _unused_)
{
	struct sideband *sideband = fake_sideband_new(0, 16384);

	fake_task(sideband, PERF_RECORD_EXIT, 10, 1, 1, 0);
	merge(&sideband, 1, 100);
	assert_int_equal(seen.gaps, 0);
	fake_lost(sideband, 11, 17);
	fake_task(sideband, PERF_RECORD_EXIT, 12, 2, 2, 0);
	merge(&sideband, 1, 100);
	assert_int_equal(seen.gaps, 1);
	assert_int_equal(seen.gap_at, 2);
	assert_int_equal(stats.sideband_lost, 17);
	merge(&sideband, 1, 100);
	assert_int_equal(seen.gaps, 1);
	fake_sideband_free(sideband);
}

/* perf writes LOST with the next event that fits: before that only the fill level tells. */
static void test_full_ring_is_suspect(void **state _unused_)
{
	struct sideband *sideband = fake_sideband_new(0, 16384);

	while (sideband->page->data_head < 16384 - 4096)
		fake_task(sideband, PERF_RECORD_EXIT, 10, 1, 1, 0);
	merge(&sideband, 1, 100);
	assert_int_equal(seen.gaps, 1);
	fake_task(sideband, PERF_RECORD_EXIT, 10, 1, 1, 0);
	merge(&sideband, 1, 100);
	assert_int_equal(seen.gaps, 1);
	fake_sideband_free(sideband);
}

static void test_what_is_not_code_is_left_out(void **state _unused_)
{
	struct sideband *sideband = fake_sideband_new(0, 4096);

	fake_mmap(sideband, 1, 7, 0x1000, 0, 0, 9, "/empty");
	fake_mmap(sideband, 1, 7, UINT64_MAX - 10, 4096, 0, 9, "/wraps");
	fake_mmap(sideband, 1, UINT32_MAX, 0x1000, 4096, 0, 9, "/kernel");
	fake_mmap(sideband, 1, 0, 0x1000, 4096, 0, 9, "/idle");
	merge(&sideband, 1, 100);
	assert_int_equal(seen.count, 0);
	assert_int_equal(stats.bad_records, 0);
	fake_sideband_free(sideband);
}

static void test_malformed_records(void **state _unused_)
{
	uint64_t body[8];
	const struct {
		uint16_t type, claimed;
		size_t bytes;
	} cases[] = {
		{ PERF_RECORD_MMAP2, 0, 64 },
		{ PERF_RECORD_MMAP2, 8, 64 },		/* no trailer */
		{ PERF_RECORD_MMAP2, 39, 64 },
		{ PERF_RECORD_MMAP2, 80, 64 },		/* longer than what is there */
		{ PERF_RECORD_MMAP2, 65528, 64 },
		{ PERF_RECORD_MMAP2, 72, 64 },		/* a body too short */
		{ PERF_RECORD_COMM, 72, 64 },		/* no end of the string */
		{ PERF_RECORD_FORK, 40, 32 },
		{ PERF_RECORD_LOST, 40, 32 },
		{ PERF_RECORD_KSYMBOL, 40, 32 },
	};

	memset(body, 'a', sizeof(body));
	/* the trailer's time, which must not put the record off */
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sideband *sideband = fake_sideband_new(0, 4096);

		reset(NULL);
		fake_raw(sideband, cases[i].type, cases[i].claimed, body, cases[i].bytes);
		fake_task(sideband, PERF_RECORD_EXIT, 1, 1, 1, 0);
		merge(&sideband, 1, UINT64_MAX);
		assert_int_equal(seen.count, 0);
		assert_int_equal(stats.bad_records, 1);
		/* what was skipped may have mattered */
		assert_int_equal(seen.gaps, 1);
		fake_task(sideband, PERF_RECORD_EXIT, 1, 2, 2, 0);
		merge(&sideband, 1, UINT64_MAX);
		assert_int_equal(seen.count, 1);
		fake_sideband_free(sideband);
	}
}

static void test_hotplug_messages(void **state _unused_)
{
	uint32_t cpu = 0;
	bool online = false;

	assert_true(hotplug_parse("online@/devices/system/cpu/cpu12", &cpu, &online));
	assert_int_equal(cpu, 12);
	assert_true(online);
	assert_true(hotplug_parse("offline@/devices/system/cpu/cpu3", &cpu, &online));
	assert_int_equal(cpu, 3);
	assert_false(online);
	assert_false(hotplug_parse("online@/devices/system/memory/memory3", &cpu, &online));
	assert_false(hotplug_parse("online@/devices/system/cpu/cpu3/cache", &cpu, &online));
	assert_false(hotplug_parse("change@/devices/system/cpu/cpu3", &cpu, &online));
	assert_false(hotplug_parse("online@", &cpu, &online));
	assert_false(hotplug_parse("", &cpu, &online));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_fields, reset),
		cmocka_unit_test_setup(test_cpus_are_merged_by_time, reset),
		cmocka_unit_test_setup(test_later_events_wait_for_the_next_round, reset),
		cmocka_unit_test_setup(test_records_wrap, reset),
		cmocka_unit_test_setup(test_lost_is_told_after_the_events, reset),
		cmocka_unit_test_setup(test_full_ring_is_suspect, reset),
		cmocka_unit_test_setup(test_what_is_not_code_is_left_out, reset),
		cmocka_unit_test_setup(test_malformed_records, reset),
		cmocka_unit_test_setup(test_hotplug_messages, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
