// SPDX-License-Identifier: Apache-2.0
/* Ring images and side-band events in, windows out. */
#include "unit.h"

#include <linux/perf_event.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "capture/replay.h"
#include "pipeline/drain.h"
#include "records.h"

#define S NSEC_PER_SEC

static struct window *windows[64];
static size_t window_count;
static bool at_once;		/* thread C is done with a window before A goes on */
static uint64_t placed;
static unsigned int waits;

static void take_window(void *ctx _unused_, struct window *window)
{
	if (at_once) {
		placed += window->counts[0].samples;
		window_count++;
		window_free(window);
		return;
	}
	assert_true(window_count < ARRAY_SIZE(windows));
	windows[window_count++] = window;
}

/* The oldest window leaves the pipeline. */
static bool wait_for_room(void *ctx _unused_)
{
	waits++;
	for (size_t i = 0; i < window_count; i++) {
		if (!windows[i])
			continue;
		window_free(windows[i]);
		windows[i] = NULL;
		return true;
	}
	return false;
}

static struct drain *drain;
static struct capture_stats stats;

static const struct control_source sources[] = {
	{ .id = 0, .name = "cycles:u" },
	{ .id = 1, .name = "page-faults" },
};

static int setup(void **state _unused_)
{
	const struct drain_options options = { .sources = sources, .source_count = 2 };
	const struct drain_output output = { .window = take_window, .wait = wait_for_room };

	waits = 0;
	window_count = 0;
	at_once = false;
	placed = 0;
	memset(&stats, 0, sizeof(stats));
	return drain_new(&options, &output, &drain);
}

static int teardown(void **state _unused_)
{
	for (size_t i = 0; i < window_count && !at_once; i++)
		window_free(windows[i]);
	drain_free(drain);
	return pool_get(POOL_PROCESSES)->used || pool_get(POOL_AGGREGATE)->used;
}

static void feed(struct records *records, uint32_t cpu)
{
	assert_int_equal(ring_parse(records->data, records->bytes, cpu, &drain_ops, drain, &stats),
			 0);
	records_free(records);
}

static void run_program(uint32_t pid, const char *path)
{
	drain_ops.comm(drain, &(struct sideband_task){ .time = 1, .pid = pid, .tid = pid,
						       .comm = "program", .is_exec = true });
	drain_ops.mmap(drain, &(struct sideband_mmap){ .time = 2, .pid = pid, .address = 0x1000,
						       .length = 0x10000, .inode = pid,
						       .path = path });
}

static uint32_t sample_cpu;

static size_t sample(struct records *records, uint64_t time, uint32_t tgid, uint64_t ip,
		     uint64_t period)
{
	return records_sample(records, &(struct sample_spec){ .time = time, .tgid = tgid,
							      .cpu = sample_cpu, .start_time = 5, .exec_id = 1,
							      .period = period,
							      .user_ips = &ip, .user_count = 1 });
}

static void test_window_policy(void **state _unused_)
{
	const struct drain_options options = { .window_ms = 15000, .window_max_ms = 60000 };

	assert_int_equal(drain_window_ns(&options, 1000000, false), 15 * S);
	assert_int_equal(drain_window_ns(&options, 2000, false), 15 * S);
	assert_int_equal(drain_window_ns(&options, 1999, false), 60 * S);
	assert_int_equal(drain_window_ns(&options, 1000000, true), 60 * S);
}

static uint64_t in_parts;
static bool writer_is_busy;

static bool wants_part(void *ctx _unused_, uint64_t time)
{
	/* as the journal's: not again within a second and a half of the first */
	return !writer_is_busy && (!in_parts || time == UINT64_MAX);
}

static void take_part(void *ctx _unused_, struct window *window)
{
	for (size_t i = 0; i < window->news_count; i++) {
		struct window_sample *sample = &window->samples[window->news[i]];

		in_parts += sample->count - sample->in_cuts;
		sample->in_cuts = sample->count;
	}
	window->news_count = 0;
}

/* A window is in the journal to its last sample when it closes, however long it is on its way then. */
static void test_parts_cover_the_window(void **state)
{
	const struct drain_options options = { .sources = sources, .source_count = 2 };
	const struct drain_output output = { .window = take_window, .wait = wait_for_room, .part = take_part,
					     .wants_part = wants_part };
	const uint64_t start = clock_monotonic();
	struct records records = { 0 };

	teardown(state);
	in_parts = 0;
	writer_is_busy = false;
	assert_int_equal(drain_new(&options, &output, &drain), 0);
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 1000, PERF_TYPE_HARDWARE,
		       PERF_COUNT_HW_CPU_CYCLES, "cycles");
	for (uint64_t i = 0; i < 30; i++)
		sample(&records, start + i, 10, 0x1000 + i % 7, 1000);
	feed(&records, 0);
	drain_round(drain, start + S);
	assert_int_equal(in_parts, 30);
	for (uint64_t i = 0; i < 20; i++)
		sample(&records, start + S + i, 10, 0x1000 + i % 11, 1000);
	feed(&records, 0);
	drain_want_close(drain);
	drain_round(drain, start + S + S / 2);
	assert_int_equal(window_count, 1);
	assert_int_equal(windows[0]->counts[0].samples, 50);
	assert_int_equal(in_parts, 50);
	/* a writer that is at the one before is not waited for */
	writer_is_busy = true;
	sample(&records, start + 2 * S, 10, 0x1000, 1000);
	feed(&records, 0);
	drain_finish(drain);
	assert_int_equal(window_count, 2);
	assert_int_equal(in_parts, 50);
}

static bool receiver_is_behind;

static bool is_behind(void *ctx _unused_)
{
	return receiver_is_behind;
}

static void feed_samples(uint64_t start)
{
	struct records records = { 0 };

	for (uint64_t i = 0; i < DRAIN_WINDOW_SAMPLES; i++)
		sample(&records, start + i, 10, 0x1800, 1000);
	feed(&records, 0);
}

/* Where payloads wait the window goes on to its full length, or until they are gone. */
static void test_windows_are_longer_behind(void **state)
{
	const struct drain_options options = { .sources = sources, .source_count = 2 };
	const struct drain_output output = { .window = take_window, .wait = wait_for_room, .is_behind = is_behind };
	const uint64_t start = clock_monotonic();
	struct records records = { 0 };

	teardown(state);
	receiver_is_behind = true;
	assert_int_equal(drain_new(&options, &output, &drain), 0);
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 1000, PERF_TYPE_HARDWARE,
		       PERF_COUNT_HW_CPU_CYCLES, "cycles");
	feed(&records, 0);
	feed_samples(start);
	drain_round(drain, start + 20 * S);
	assert_int_equal(window_count, 0);
	receiver_is_behind = false;
	drain_round(drain, start + 21 * S);
	assert_int_equal(window_count, 1);
	receiver_is_behind = true;
	feed_samples(start + 22 * S);
	drain_round(drain, start + 80 * S);
	assert_int_equal(window_count, 1);
	drain_round(drain, start + 82 * S);
	assert_int_equal(window_count, 2);
}

/* The first window of a daemon is as long as chance has it, the others as configured. */
static void test_first_window_is_early(void **state)
{
	const struct drain_options options = { .sources = sources, .source_count = 2,
					       .early_ms = 10000 };
	const struct drain_output output = { .window = take_window, .wait = wait_for_room };
	struct records records = { 0 };
	uint64_t start = clock_monotonic();

	teardown(state);
	assert_int_equal(drain_new(&options, &output, &drain), 0);
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 1000, PERF_TYPE_HARDWARE,
		       PERF_COUNT_HW_CPU_CYCLES, "cycles");
	for (uint64_t i = 0; i < 5000; i++)
		sample(&records, start + i, 10, 0x1800, 1000);
	feed(&records, 0);
	drain_round(drain, start + 4 * S);
	assert_int_equal(window_count, 0);
	drain_round(drain, start + 6 * S);
	assert_int_equal(window_count, 1);
	for (uint64_t i = 0; i < 5000; i++)
		sample(&records, start + 7 * S + i, 10, 0x1800, 1000);
	feed(&records, 0);
	drain_round(drain, start + 20 * S);
	assert_int_equal(window_count, 1);
	drain_round(drain, start + 22 * S);
	assert_int_equal(window_count, 2);
}

/* Of hosts that begin at the same time, each with its share of the longest window, few close their first in the same second. */
static void first_windows_in_a_second(unsigned int hosts, uint64_t samples, unsigned int seconds)
{
	unsigned int closed[DRAIN_WINDOW_MAX_MS / 1000 + 2] = { 0 };
	struct records records = { 0 };
	unsigned int second;

	for (unsigned int host = 0; host < hosts; host++) {
		const struct drain_options options = { .sources = sources, .source_count = 2,
						       .early_ms = host * DRAIN_WINDOW_MAX_MS / hosts };
		const struct drain_output output = { .window = take_window, .wait = wait_for_room };
		const uint64_t start = clock_monotonic();

		drain_free(drain);
		window_count = 0;
		assert_int_equal(drain_new(&options, &output, &drain), 0);
		records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 1000, PERF_TYPE_HARDWARE,
			       PERF_COUNT_HW_CPU_CYCLES, "cycles");
		for (uint64_t i = 0; i < samples; i++)
			sample(&records, start + i, 10, 0x1800, 1000);
		feed(&records, 0);
		for (second = 0; !window_count && second < ARRAY_SIZE(closed); second++)
			drain_round(drain, start + second * S + S / 2);
		assert_int_equal(window_count, 1);
		closed[second - 1]++;
		window_free(windows[0]);
		window_count = 0;
	}
	for (second = 0; second < ARRAY_SIZE(closed); second++)
		assert_in_range(closed[second], 0, (hosts + seconds - 1) / seconds + 1);
}

static void test_hosts_fall_out_of_step(void **state)
{
	teardown(state);
	drain = NULL;
	window_count = 0;
	first_windows_in_a_second(60, DRAIN_WINDOW_SAMPLES, DRAIN_WINDOW_MS / 1000);
	first_windows_in_a_second(60, 10, DRAIN_WINDOW_MAX_MS / 1000);
}

/* A host that has just booted has run for less time than the first window is early. */
static void test_first_window_after_boot(void **state)
{
	const struct drain_options options = { .sources = sources, .source_count = 2,
					       .early_ms = UINT_MAX / DRAIN_WINDOW_MAX_MS * DRAIN_WINDOW_MAX_MS - 500 };
	const struct drain_output output = { .window = take_window, .wait = wait_for_room };
	struct records records = { 0 };
	uint64_t start = clock_monotonic();

	teardown(state);
	assert_int_equal(drain_new(&options, &output, &drain), 0);
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 1000, PERF_TYPE_HARDWARE,
		       PERF_COUNT_HW_CPU_CYCLES, "cycles");
	sample(&records, start, 10, 0x1800, 1000);
	feed(&records, 0);
	drain_round(drain, start + S);
	assert_int_equal(window_count, 1);
}

static void test_rounds_close_windows(void **state _unused_)
{
	struct records records = { 0 };
	uint64_t start = clock_monotonic();

	run_program(10, "/bin/a");
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 1000, PERF_TYPE_HARDWARE,
		       PERF_COUNT_HW_CPU_CYCLES, "cycles");
	for (uint64_t i = 0; i < 3000; i++)
		sample(&records, start + i, 10, 0x1800, 1000);
	feed(&records, 0);
	drain_round(drain, start + 14 * S);
	assert_int_equal(window_count, 0);
	drain_round(drain, start + 16 * S);
	assert_int_equal(window_count, 1);
	assert_int_equal(windows[0]->counts[0].samples, 3000);
	sample(&records, start + 17 * S, 10, 0x1800, 1000);
	feed(&records, 0);
	/* the next one begins where this one ended */
	drain_round(drain, start + 40 * S);
	assert_int_equal(window_count, 1);
	drain_round(drain, start + 77 * S);
	assert_int_equal(window_count, 2);
	assert_int_equal(windows[1]->counts[0].samples, 1);
	drain_round(drain, start + 300 * S);
	assert_int_equal(window_count, 2);
}

static void test_config_names_the_profile(void **state _unused_)
{
	struct records records = { 0 };
	const struct profile_config *profile;

	run_program(10, "/bin/a");
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 24000000, PERF_TYPE_HARDWARE,
		       PERF_COUNT_HW_CPU_CYCLES, "cycles");
	sample(&records, 10, 10, 0x1800, 24000000);
	/* live change of rate: another Profile */
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 199, 12000000, PERF_TYPE_HARDWARE,
		       PERF_COUNT_HW_CPU_CYCLES, "cycles");
	sample(&records, 20, 10, 0x1800, 12000000);
	sample(&records, 21, 10, 0x1800, 12000000);
	feed(&records, 0);
	/* another CPU, whose counter is a stand-in */
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 199, 5025125, PERF_TYPE_SOFTWARE,
		       PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	((struct stacktap_config *)(void *)records.data)->fallback_errno = ENOENT;
	sample_cpu = 1;
	for (uint64_t i = 0; i < 4; i++)
		sample(&records, 30 + i, 10, 0x1800, 5025125);
	feed(&records, 1);
	sample_cpu = 0;
	/* back on the first one, whose configuration has not changed */
	sample(&records, 40, 10, 0x1800, 12000000);
	feed(&records, 0);
	drain_flush(drain, 100);
	assert_int_equal(window_count, 1);
	assert_int_equal(windows[0]->profile_count, 3);
	profile = &windows[0]->profiles[0];
	assert_string_equal(profile->source, "cycles:u");
	assert_string_equal(profile->event, "cycles");
	assert_int_equal(profile->period, 24000000);
	assert_false(profile->is_clock);
	assert_true(profile->is_cpu_time);
	assert_int_equal(windows[0]->counts[0].samples, 1);
	assert_int_equal(windows[0]->counts[1].samples, 3);
	profile = &windows[0]->profiles[2];
	assert_string_equal(profile->source, "cycles:u");
	assert_string_equal(profile->event, "cpu-clock");
	assert_int_equal(profile->fallback_errno, ENOENT);
	assert_true(profile->is_clock);
	assert_int_equal(windows[0]->counts[2].samples, 4);
}

static void config_step(struct records *records, unsigned int step, uint64_t generation,
			uint32_t rate_hz)
{
	size_t offset = records->bytes;
	struct stacktap_config *config;

	records_config(records, 0, STACKTAP_MODE_PERIOD, rate_hz, 1000000000 / rate_hz,
		       PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	config = (struct stacktap_config *)(void *)(records->data + offset);
	config->generation = generation;
	if (step)
		config->header.flags = (uint16_t)(STACKTAP_CONFIG_DEGRADED |
						  step << STACKTAP_CONFIG_STEP_SHIFT);
}

/* Each step is a Profile of its own, one of depth too. It counts once for all CPUs. */
static void test_degradation(void **state _unused_)
{
	struct records records = { 0 };
	struct drain_stats drained;

	run_program(10, "/bin/a");
	config_step(&records, 0, 1, 100);
	sample(&records, 10, 10, 0x1800, 10000000);
	config_step(&records, 1, 2, 100);
	sample(&records, 11, 10, 0x1800, 10000000);
	config_step(&records, 4, 5, 50);
	sample(&records, 12, 10, 0x1800, 20000000);
	feed(&records, 0);
	drain_stats(drain, &drained);
	assert_int_equal(drained.degradations, 4);
	assert_int_equal(drained.degraded, 4);
	/* another CPU's ring is behind */
	config_step(&records, 1, 2, 100);
	sample_cpu = 1;
	sample(&records, 11, 10, 0x1800, 10000000);
	config_step(&records, 4, 5, 50);
	feed(&records, 1);
	sample_cpu = 0;
	drain_stats(drain, &drained);
	assert_int_equal(drained.degradations, 4);
	assert_int_equal(drained.degraded, 4);
	config_step(&records, 0, 6, 100);
	feed(&records, 0);
	drain_stats(drain, &drained);
	assert_int_equal(drained.degraded, 0);
	drain_flush(drain, 100);
	assert_int_equal(windows[0]->profile_count, 3);
	assert_int_equal(windows[0]->profiles[0].degraded, 0);
	assert_int_equal(windows[0]->profiles[1].degraded, 1);
	assert_int_equal(windows[0]->counts[1].samples, 2);
	assert_int_equal(windows[0]->profiles[2].degraded, 4);
	assert_int_equal(windows[0]->profiles[2].period, 20000000);
}

static void config_flags(struct records *records, unsigned int flags)
{
	size_t offset = records->bytes;

	records_config(records, 0, STACKTAP_MODE_PERIOD, 100, 10000000, PERF_TYPE_HARDWARE,
		       PERF_COUNT_HW_CPU_CYCLES, "cycles");
	((struct stacktap_record *)(void *)(records->data + offset))->flags = (uint16_t)flags;
}

/* Each CPU by itself: samples before, meanwhile and afterwards. It ends with the counter, too. */
static void test_multiplexing(void **state _unused_)
{
	struct records records = { 0 };
	struct drain_stats drained;

	run_program(10, "/bin/a");
	config_flags(&records, 0);
	sample(&records, 10, 10, 0x1800, 10000000);
	config_flags(&records, STACKTAP_CONFIG_MULTIPLEXED);
	sample(&records, 11, 10, 0x1800, 10000000);
	config_flags(&records, STACKTAP_CONFIG_MULTIPLEXED);
	feed(&records, 0);
	config_flags(&records, STACKTAP_CONFIG_MULTIPLEXED);
	feed(&records, 1);
	drain_stats(drain, &drained);
	assert_int_equal(drained.multiplexings, 2);
	assert_int_equal(drained.multiplexed, 2);
	config_flags(&records, 0);
	sample(&records, 12, 10, 0x1800, 10000000);
	feed(&records, 0);
	records_cpu(&records, STACKTAP_CPU_OFFLINE);
	feed(&records, 1);
	drain_stats(drain, &drained);
	assert_int_equal(drained.multiplexings, 2);
	assert_int_equal(drained.multiplexed, 0);
	drain_flush(drain, 100);
	assert_int_equal(windows[0]->profile_count, 2);
	assert_false(windows[0]->profiles[0].is_multiplexed);
	assert_int_equal(windows[0]->counts[0].samples, 2);
	assert_true(windows[0]->profiles[1].is_multiplexed);
	assert_int_equal(windows[0]->counts[1].samples, 1);
}

static void test_lost_and_throttled(void **state _unused_)
{
	struct records records = { 0 };
	struct drain_stats drained;

	run_program(10, "/bin/a");
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 1000, PERF_TYPE_HARDWARE,
		       PERF_COUNT_HW_CPU_CYCLES, "cycles");
	sample(&records, 10, 10, 0x1800, 1000);
	records_lost(&records, 0, STACKTAP_LOST_RING_FULL, 7);
	records_lost(&records, 0, STACKTAP_LOST_STASH_FULL, 3);
	records_lost(&records, 900, STACKTAP_LOST_STASH_FULL, 3);	/* no such source */
	/* cumulative, by CPU */
	records_throttle(&records, 0, 5);
	records_throttle(&records, 0, 9);
	records_stall(&records, 0, 1);
	records_stall(&records, 0, 3);
	records_missed(&records, 0, 20);
	records_missed(&records, 0, 50);
	feed(&records, 0);
	records_throttle(&records, 0, 2);
	records_stall(&records, 0, 1);
	records_missed(&records, 0, 8);
	feed(&records, 40);
	drain_flush(drain, 100);
	assert_int_equal(windows[0]->counts[0].lost, 10);
	assert_int_equal(windows[0]->counts[0].throttled, 11);
	assert_int_equal(windows[0]->counts[0].stalled, 4);
	assert_int_equal(windows[0]->counts[0].missed, 58);
	/* a sum that falls as its window closes would look as if it began anew */
	drain_stats(drain, &drained);
	assert_int_equal(drained.losses.lost, 10);

	/* behind the last sample: no window takes them, and they are known all the same */
	records_lost(&records, 0, STACKTAP_LOST_OFFLINE, 4);
	records_throttle(&records, 0, 12);
	records_stall(&records, 0, 5);
	records_missed(&records, 0, 57);
	feed(&records, 0);
	drain_flush(drain, 200);
	assert_int_equal(window_count, 1);
	drain_stats(drain, &drained);
	assert_int_equal(drained.losses.lost, 14);
	assert_int_equal(drained.losses.throttled, 14);
	assert_int_equal(drained.losses.stalled, 6);
	assert_int_equal(drained.losses.missed, 65);
}

static void test_gap_marks_samples(void **state _unused_)
{
	struct records records = { 0 };
	struct drain_stats drained;
	uint32_t tgid;

	run_program(10, "/bin/a");
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 1000, PERF_TYPE_HARDWARE,
		       PERF_COUNT_HW_CPU_CYCLES, "cycles");
	sample(&records, 1000, 10, 0x1800, 1000);
	feed(&records, 0);
	drain_ops.gap(drain, CAPTURE_GAP_SIDEBAND_LOST, 2000, 0);
	sample(&records, 1500, 10, 0x1800, 1000);
	feed(&records, 0);
	drain_flush(drain, 3000);
	assert_int_equal(windows[0]->counts[0].samples, 2);
	assert_int_equal(windows[0]->counts[0].stale, 1);
	assert_true(process_table_wants_scan(drain_processes(drain), &tgid));
	assert_int_equal(tgid, 0);
	drain_stats(drain, &drained);
	assert_int_equal(drained.doubts, 1);
}

static bool proven;

static void on_kept(void *ctx, const struct stacktap_sample *kept_sample, const struct sample_sections *sections)
{
	drain_ops.kept_sample(ctx, kept_sample, sections, proven);
}

static void feed_kept(struct records *records, bool is_proven)
{
	const struct capture_ops ops = { .sample = on_kept, .record = drain_ops.record };

	proven = is_proven;
	assert_int_equal(ring_parse(records->data, records->bytes, 0, &ops, drain, &stats), 0);
	records_free(records);
}

/* Of process 10 after so many execs. */
static void image_sample(struct records *records, uint64_t time, uint64_t exec_id)
{
	static const uint64_t ips[] = { 0x1800 };

	records_sample(records, &(struct sample_spec){ .time = time, .tgid = 10, .tid = 10, .exec_id = exec_id,
						       .flags = STACKTAP_SAMPLE_USER_MODE, .period = 1000,
						       .user_ips = ips, .user_count = 1, .comm = "program" });
}

static void test_a_kept_session_comes_first(void **state _unused_)
{
	struct records records = { 0 };
	struct drain_stats drained;

	run_program(10, "/bin/a");
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 1000, PERF_TYPE_HARDWARE,
		       PERF_COUNT_HW_CPU_CYCLES, "cycles");
	image_sample(&records, 1000, 1);
	records_throttle(&records, 0, 5);
	feed_kept(&records, false);
	image_sample(&records, 1001, 2);
	feed_kept(&records, true);
	drain_ops.kept_end(drain);
	/* counts from 0 on */
	records_throttle(&records, 0, 3);
	image_sample(&records, 2000, 2);
	feed(&records, 0);
	drain_flush(drain, 3000);
	assert_int_equal(windows[0]->counts[0].samples, 3);
	assert_int_equal(windows[0]->counts[0].stale, 2);
	drain_stats(drain, &drained);
	assert_int_equal(drained.losses.throttled, 8);
	/* nothing proves that the first is of the program that is known */
	assert_ptr_not_equal(windows[0]->samples[0].image, windows[0]->samples[1].image);
	assert_null(image_find_mapping(windows[0]->samples[0].image, 0x1800));
	assert_non_null(image_find_mapping(windows[0]->samples[1].image, 0x1800));
	assert_ptr_equal(windows[0]->samples[1].image, windows[0]->samples[2].image);
}

static void test_leaf_in_no_mapping_asks_for_a_scan(void **state _unused_)
{
	struct records records = { 0 };
	uint32_t tgid;

	run_program(10, "/bin/a");
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 1000, PERF_TYPE_HARDWARE,
		       PERF_COUNT_HW_CPU_CYCLES, "cycles");
	sample(&records, 10, 10, 0x1800, 1000);
	feed(&records, 0);
	assert_false(process_table_wants_scan(drain_processes(drain), &tgid));
	sample(&records, 10, 10, 0x99991800, 1000);
	feed(&records, 0);
	assert_true(process_table_wants_scan(drain_processes(drain), &tgid));
	assert_int_equal(tgid, 10);
}

/* More distinct stacks than the pool holds: windows close early, nothing is dropped. */
static void test_full_pool_closes_windows_early(void **state _unused_)
{
	enum { BATCHES = 60, BATCH = 5000 };
	struct records records = { 0 };
	struct drain_stats drained;
	uint64_t stack[24];

	at_once = true;
	run_program(10, "/bin/a");
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 1000, PERF_TYPE_HARDWARE,
		       PERF_COUNT_HW_CPU_CYCLES, "cycles");
	for (uint64_t batch = 0; batch < BATCHES; batch++) {
		for (uint64_t i = 0; i < BATCH; i++) {
			for (size_t k = 0; k < ARRAY_SIZE(stack); k++)
				stack[k] = 0x1000 + (batch * BATCH + i + k * 77) % 0x8000;
			stack[0] = 0x1000 + batch;
			stack[1] = 0x2000 + i;
			records_sample(&records,
				       &(struct sample_spec){ .time = 100 + i, .tgid = 10,
							      .start_time = 5, .exec_id = 1,
							      .period = 1000, .user_ips = stack,
							      .user_count = ARRAY_SIZE(stack) });
		}
		feed(&records, 0);
		assert_true(pool_get(POOL_AGGREGATE)->peak <= pool_get(POOL_AGGREGATE)->limit);
	}
	drain_flush(drain, 1000000);
	assert_true(window_count > 3);
	drain_stats(drain, &drained);
	assert_int_equal(drained.unplaced, 0);
	assert_in_range(drained.windows_early, 3, window_count);
	assert_int_equal(waits, 0);
	assert_int_equal(placed, BATCHES * BATCH);
}

/* When nothing leaves, the drain waits for it; what no wait can place is counted as lost. */
static void test_unplaced_is_counted(void **state _unused_)
{
	struct records records = { 0 };
	struct drain_stats drained;
	size_t limit = pool_get(POOL_AGGREGATE)->limit - pool_get(POOL_AGGREGATE)->used;

	run_program(10, "/bin/a");
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 1000, PERF_TYPE_HARDWARE,
		       PERF_COUNT_HW_CPU_CYCLES, "cycles");
	feed(&records, 0);
	pool_charge_always(POOL_AGGREGATE, limit);
	sample(&records, 10, 10, 0x1800, 1000);
	feed(&records, 0);
	pool_uncharge(POOL_AGGREGATE, limit);
	drain_stats(drain, &drained);
	assert_int_equal(drained.unplaced, 1);
	assert_true(waits > 0);
	/* there was none that could have closed */
	assert_int_equal(drained.windows + drained.windows_early, 0);
	sample(&records, 20, 10, 0x1800, 1000);
	feed(&records, 0);
	drain_flush(drain, 100);
	assert_int_equal(windows[0]->counts[0].samples, 1);
	assert_int_equal(windows[0]->counts[0].lost, 1);
}

static char *logged;

/* What goes to standard error while @records are taken. */
static const char *log_of(struct records *records, uint32_t cpu)
{
	int saved = dup(STDERR_FILENO), fd = memfd_create("log", MFD_CLOEXEC);
	off_t size;

	assert_true(saved >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	feed(records, cpu);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	size = lseek(fd, 0, SEEK_END);
	free(logged);
	logged = calloc(1, (size_t)size + 1);
	assert_int_equal(pread(fd, logged, (size_t)size, 0), size);
	close(fd);
	return logged;
}

static const char *log_of_config(uint32_t cpu, unsigned int fallback_errno)
{
	struct records records = { 0 };

	if (fallback_errno)
		records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 1000, PERF_TYPE_SOFTWARE,
			       PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	else
		records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 1000, PERF_TYPE_HARDWARE,
			       PERF_COUNT_HW_CPU_CYCLES, "cycles");
	((struct stacktap_config *)(void *)records.data)->fallback_errno = fallback_errno;
	return log_of(&records, cpu);
}

/* The log names what counts, not only what was asked for. */
static void test_a_fallback_is_told_once(void **state _unused_)
{
	log_setup("test", LOG_LEVEL_INFO);
	for (unsigned int round = 0; round < 2; round++) {
		log_of_config(0, ENOENT);
		assert_non_null(strstr(logged, "cycles:u: using cpu-clock on CPU 0 "));
		assert_non_null(strstr(logged, strerror(ENOENT)));
		assert_string_equal(log_of_config(1, ENOENT), "");
		/* as it is told anew with a degraded rate */
		assert_string_equal(log_of_config(1, ENOENT), "");
		assert_string_equal(log_of_config(0, 0), "");
		assert_non_null(strstr(log_of_config(1, 0), "cycles:u: using cycles again on all CPUs (CPU 1 was the last)"));
		assert_string_equal(log_of_config(1, 0), "");
	}
	log_setup("test", LOG_LEVEL_WARNING);
	free(steal_ptr(logged));
}

static uint64_t share(const struct window *window, uint32_t cpu, bool weighted)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < window->sample_count; i++) {
		const struct window_sample *entry = &window->samples[i];

		if (entry->cpu != cpu)
			continue;
		for (uint32_t k = 0; k < entry->count; k++)
			sum += weighted ? entry->values[k] : 1;
	}
	return sum;
}

/* One CPU busy all the time, the other a tenth of it: 1000 samples of the same period to 100. */
static void test_weights_of_a_fixed_period(void **state _unused_)
{
	static const uint64_t busy[] = { 1000, 100 };

	run_program(10, "/bin/a");
	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		struct records records = { 0 };
		uint64_t ip = 0x1800;

		records_config(&records, 0, STACKTAP_MODE_PERIOD, 100, 1000, PERF_TYPE_HARDWARE,
			       PERF_COUNT_HW_CPU_CYCLES, "cycles");
		for (uint64_t i = 0; i < busy[cpu]; i++)
			records_sample(&records,
				       &(struct sample_spec){ .time = 10 + i, .tgid = 10,
							      .start_time = 5, .exec_id = 1,
							      .cpu = cpu, .period = 1000,
							      .user_ips = &ip, .user_count = 1 });
		feed(&records, cpu);
	}
	drain_flush(drain, 100000);
	assert_int_equal(share(windows[0], 0, false), 1000);
	assert_int_equal(share(windows[0], 1, false), 100);
}

/* In frequency mode both CPUs give 1000 samples, the idle one's standing for a tenth each. */
static void test_weights_of_a_frequency(void **state _unused_)
{
	static const uint64_t period[] = { 10000, 1000 };

	run_program(10, "/bin/a");
	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		struct records records = { 0 };
		uint64_t ip = 0x1800;

		records_config(&records, 0, STACKTAP_MODE_FREQ, 100, 0, PERF_TYPE_HARDWARE,
			       PERF_COUNT_HW_CPU_CYCLES, "cycles");
		for (uint64_t i = 0; i < 1000; i++)
			records_sample(&records,
				       &(struct sample_spec){ .time = 10 + i, .tgid = 10,
							      .start_time = 5, .exec_id = 1,
							      .cpu = cpu, .period = period[cpu],
							      .user_ips = &ip, .user_count = 1 });
		feed(&records, cpu);
	}
	drain_flush(drain, 100000);
	assert_int_equal(windows[0]->profile_count, 1);
	assert_int_equal(share(windows[0], 0, true), 10000000);
	assert_int_equal(share(windows[0], 1, true), 1000000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_window_policy),
		TEST(test_first_window_is_early),
		TEST(test_windows_are_longer_behind),
		TEST(test_parts_cover_the_window),
		TEST(test_hosts_fall_out_of_step),
		TEST(test_first_window_after_boot),
		TEST(test_rounds_close_windows),
		TEST(test_config_names_the_profile),
		TEST(test_degradation),
		TEST(test_multiplexing),
		TEST(test_lost_and_throttled),
		TEST(test_gap_marks_samples),
		TEST(test_a_kept_session_comes_first),
		TEST(test_leaf_in_no_mapping_asks_for_a_scan),
		TEST(test_full_pool_closes_windows_early),
		TEST(test_unplaced_is_counted),
		TEST(test_a_fallback_is_told_once),
		TEST(test_weights_of_a_fixed_period),
		TEST(test_weights_of_a_frequency),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
