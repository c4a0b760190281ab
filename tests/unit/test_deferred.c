// SPDX-License-Identifier: Apache-2.0
/* Deferred samples: through thread B and back, or not. */
#include "unit.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "capture/replay.h"
#include "pipeline/drain.h"
#include "records.h"
#include "unwind/machine.h"

enum {
	PID = 10,
	ROUNDS = 20000,
	EXPIRED_MS = DEFERRED_WAIT_MS + 1,
};

#define S NSEC_PER_SEC
#define STACK 0x70000000ULL
#define EXPIRED_NS (EXPIRED_MS * NSEC_PER_MSEC)

static struct drain *drain;
static struct deferred *deferred;
static struct tables *tables;
static struct unwinder *unwinder;
static struct window *windows[8];
static size_t window_count;
static unsigned int told;
static bool is_deaf;		/* thread B cannot be told */
static struct capture_stats stats;
static uint64_t seed = 1;

/* What the module walked, and what there is to find. */
static const uint64_t by_fp[] = { 0x1800, 0x1234, 0x4321 };
static const uint64_t frames[] = { 0x1800, 0x1900, 0x2000 };

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void take_window(void *ctx _unused_, struct window *window)
{
	assert_true(window_count < ARRAY_SIZE(windows));
	windows[window_count++] = window;
}

static bool wait_for_room(void *ctx _unused_)
{
	return false;
}

static bool tell(void *ctx _unused_)
{
	told += !is_deaf;
	return !is_deaf;
}

static int setup(void **state _unused_)
{
	const struct drain_output output = { .window = take_window, .wait = wait_for_room,
					     .deferred = tell };
	const struct drain_options options = { 0 };
	const struct tables_ops ops = { .now = clock_monotonic };
	int r;

	told = 0;
	is_deaf = false;
	window_count = 0;
	memset(&stats, 0, sizeof(stats));
	r = drain_new(&options, &output, &drain) ?: tables_new(&ops, &tables) ?:
	    unwinder_new(tables, 16, &unwinder);
	if (!r)
		deferred = drain_deferred(drain);
	return r;
}

static int teardown(void **state _unused_)
{
	for (size_t i = 0; i < window_count; i++)
		window_free(windows[i]);
	drain_free(drain);
	unwinder_free(unwinder);
	tables_free(tables);
	for (int id = 0; id < POOL_COUNT; id++)
		if (pool_get((enum pool_id)id)->used)
			return -1;
	return 0;
}

static void exec(uint64_t time, const char *path)
{
	drain_ops.comm(drain, &(struct sideband_task){ .time = time, .pid = PID, .tid = PID,
						       .comm = "program", .is_exec = true });
	drain_ops.mmap(drain, &(struct sideband_mmap){ .time = time + 1, .pid = PID,
						       .address = 0x1000, .length = 0x10000,
						       .inode = PID, .path = path });
}

static void config(struct records *records, uint32_t rate_hz)
{
	records_config(records, 0, STACKTAP_MODE_PERIOD, rate_hz, 1000, PERF_TYPE_HARDWARE,
		       PERF_COUNT_HW_CPU_CYCLES, "cycles");
}

/* A sample with a stack of frame records, from which no table is needed to get out. */
static void add_late(struct records *records, uint64_t time, uint32_t slice_bytes)
{
	union {
		struct stacktap_regs head;
		uint64_t words[sizeof(struct stacktap_regs) / 8 + 17];
	} regs = { .words = { 0 } };
	uint64_t *slice = calloc(1, slice_bytes);

	assert_non_null(slice);
	assert_true(slice_bytes >= 64);
	regs.head.pc = frames[0];
	regs.head.arch = EM_X86_64;
	regs.head.count = 17;
	regs.head.regs[machine_find(EM_X86_64)->sp] = STACK;
	regs.head.regs[machine_find(EM_X86_64)->fp] = STACK + 8;
	slice[1] = STACK + 24;
	slice[2] = frames[1];
	slice[3] = STACK + 40;
	slice[4] = frames[2];
	records_sample(records, &(struct sample_spec){
					.time = time, .tgid = PID, .start_time = 5, .exec_id = 1,
					.period = 1000, .flags = STACKTAP_SAMPLE_USER_MODE,
					.user_ips = by_fp, .user_count = 3,
					.user_end = STACKTAP_END_NO_MAPPINGS,
					.regs = &regs.head, .slice = slice,
					.slice_bytes = slice_bytes, .slice_address = STACK });
	free(slice);
}

static void feed(struct records *records)
{
	assert_int_equal(ring_parse(records->data, records->bytes, 0, &drain_ops, drain, &stats),
			 0);
	records_free(records);
}

static void feed_deferred(uint64_t time, uint32_t slice_bytes)
{
	struct records records = { 0 };

	config(&records, 99);
	add_late(&records, time, slice_bytes);
	feed(&records);
}

/* What thread B does when it is told. */
static bool unwind_one(struct unwinder *with)
{
	struct deferred_sample *sample = deferred_next(deferred);

	if (sample)
		deferred_unwind(deferred, sample, with);
	return sample;
}

static struct deferred_stats counts(void)
{
	struct deferred_stats result;

	deferred_stats(deferred, &result);
	return result;
}

static void check_stack(const struct window_sample *sample, const uint64_t *ips, uint32_t count)
{
	assert_int_equal(sample->stack->count, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct location *location = sample->stack->locations[i];

		assert_int_equal(location->is_return, i > 0);
		if (location->file)
			assert_int_equal(location->offset, ips[i] - 0x1000);
		else
			assert_int_equal(location->offset, ips[i]);
	}
}

static void test_comes_back_in_its_window(void **state _unused_)
{
	uint64_t start = clock_monotonic();
	struct records records = { 0 };

	exec(start, "/bin/a");
	feed_deferred(start + S, 64);
	assert_int_equal(told, 1);
	assert_int_equal(counts().waiting, 1);
	/* the window is due, but one of its samples is still away */
	drain_round(drain, start + 61 * S);
	assert_int_equal(window_count, 0);
	/* later ones do not hold it up */
	add_late(&records, start + 62 * S, 64);
	feed(&records);
	assert_true(unwind_one(unwinder));
	drain_round(drain, start + 63 * S);
	assert_int_equal(window_count, 1);
	assert_int_equal(windows[0]->counts[0].samples, 1);
	/* by frame pointers, of which nothing is proven */
	assert_int_equal(windows[0]->counts[0].complete, 0);
	assert_int_equal(windows[0]->counts[0].deferred, 1);
	assert_int_equal(windows[0]->samples[0].user_end, STACKTAP_END_GUESSED);
	assert_true(windows[0]->start <= start + S && windows[0]->end > start + S);
	check_stack(&windows[0]->samples[0], frames, 3);
	assert_true(unwind_one(unwinder));
	assert_false(unwind_one(unwinder));
	drain_finish(drain);
	assert_int_equal(window_count, 2);
	assert_int_equal(counts().unwound, 2);
	assert_int_equal(counts().complete, 0);
	assert_int_equal(counts().waiting, 0);
}

static void test_cut_is_not_complete(void **state _unused_)
{
	struct records records = { 0 };
	struct stacktap_section *section;
	uint8_t *slice;

	exec(1, "/bin/a");
	config(&records, 99);
	add_late(&records, 10, 64);
	slice = records.data + records.bytes - 64;
	section = (void *)(slice - sizeof(uint64_t) - sizeof(*section));
	assert_int_equal(section->kind, STACKTAP_SECTION_STACK_SLICE);
	section->flags = STACKTAP_END_DEPTH;
	/* the last frame record lies behind the slice */
	((uint64_t *)(void *)slice)[3] = STACK + 4096;
	feed(&records);
	assert_true(unwind_one(unwinder));
	drain_finish(drain);
	assert_int_equal(windows[0]->counts[0].complete, 0);
	assert_int_equal(windows[0]->samples[0].user_end, STACKTAP_END_DEPTH);
	check_stack(&windows[0]->samples[0], frames, 3);
	assert_int_equal(counts().complete, 0);
}

/* A program at its first instruction has nothing on the stack. */
static void feed_without_bytes(uint16_t slice_end, uint8_t want)
{
	union {
		struct stacktap_regs head;
		uint64_t words[sizeof(struct stacktap_regs) / 8 + 17];
	} regs = { .words = { 0 } };
	struct records records = { 0 };

	exec(1, "/bin/a");
	config(&records, 99);
	regs.head.pc = frames[0];
	regs.head.arch = EM_X86_64;
	regs.head.count = 17;
	records_sample(&records, &(struct sample_spec){
					 .time = 10, .tgid = PID, .start_time = 5, .exec_id = 1,
					 .period = 1000, .user_ips = by_fp, .user_count = 3,
					 .user_end = STACKTAP_END_NO_MAPPINGS,
					 .regs = &regs.head, .slice_address = STACK,
					 .slice_end = slice_end });
	feed(&records);
	assert_true(unwind_one(unwinder));
	drain_finish(drain);
	assert_int_equal(windows[0]->samples[0].user_end, want);
	check_stack(&windows[0]->samples[0], frames, 1);
}

static void test_slice_without_bytes(void **state _unused_)
{
	feed_without_bytes(STACKTAP_END_COMPLETE, STACKTAP_END_COMPLETE);
}

static void test_stack_that_is_absent(void **state _unused_)
{
	feed_without_bytes(STACKTAP_END_UNREADABLE, STACKTAP_END_NO_RULE);
}

static void test_mappings_of_its_time(void **state _unused_)
{
	const struct location *location;

	exec(1, "/bin/a");
	feed_deferred(10, 64);
	/* it has executed another program, and that is long ago */
	exec(20, "/bin/b");
	drain_ops.exit(drain, &(struct sideband_task){ .time = 30, .pid = PID, .tid = PID });
	process_table_expire(drain_processes(drain), 1000 * S);
	assert_int_equal(process_table_count(drain_processes(drain)), 0);
	assert_true(unwind_one(unwinder));
	drain_finish(drain);
	location = windows[0]->samples[0].stack->locations[1];
	assert_non_null(location->file);
	assert_string_equal(location->file->path, "/bin/a");
	assert_int_equal(windows[0]->samples[0].marks, SAMPLE_DEFERRED);
}

static void test_rate_of_its_time(void **state _unused_)
{
	struct records records = { 0 };

	exec(1, "/bin/a");
	feed_deferred(10, 64);
	config(&records, 199);
	add_late(&records, 20, 64);
	feed(&records);
	while (unwind_one(unwinder))
		;
	drain_finish(drain);
	assert_int_equal(windows[0]->profile_count, 2);
	assert_int_equal(windows[0]->profiles[0].rate_hz, 99);
	assert_int_equal(windows[0]->counts[0].samples, 1);
	assert_int_equal(windows[0]->profiles[1].rate_hz, 199);
	assert_int_equal(windows[0]->counts[1].samples, 1);
}

static void test_overflow_keeps_the_stack_and_says_so(void **state _unused_)
{
	const struct pool *pool = pool_get(POOL_DEFERRED);
	uint64_t count = pool->limit / 65536 + 40;

	exec(1, "/bin/a");
	for (uint64_t i = 0; i < count; i++)
		feed_deferred(10 + i, 65536);
	assert_true(pool->used <= pool->limit);
	assert_true(counts().taken >= pool->limit / 65536 - 4);
	assert_true(counts().refused >= 40);
	assert_int_equal(counts().taken + counts().refused, count);
	assert_int_equal(told, counts().taken);
	while (unwind_one(unwinder))
		;
	drain_finish(drain);
	assert_int_equal(windows[0]->counts[0].samples, count);
	assert_int_equal(windows[0]->counts[0].deferred, counts().taken);
	assert_int_equal(windows[0]->counts[0].deferred_refused, counts().refused);
	assert_int_equal(windows[0]->counts[0].user_end[STACKTAP_END_GUESSED], counts().taken);
	assert_int_equal(windows[0]->counts[0].user_end[STACKTAP_END_NO_MAPPINGS],
			 counts().refused);
	for (size_t i = 0; i < windows[0]->sample_count; i++) {
		const struct window_sample *sample = &windows[0]->samples[i];

		if (sample->marks & SAMPLE_DEFERRED_REFUSED)
			check_stack(sample, by_fp, 3);
		else
			check_stack(sample, frames, 3);
	}
}

static void test_thread_b_cannot_be_told(void **state _unused_)
{
	exec(1, "/bin/a");
	is_deaf = true;
	feed_deferred(10, 64);
	assert_false(unwind_one(unwinder));
	assert_int_equal(counts().taken, 0);
	assert_int_equal(counts().refused, 1);
	drain_finish(drain);
	assert_int_equal(windows[0]->samples[0].user_end, STACKTAP_END_NO_MAPPINGS);
	assert_int_equal(windows[0]->samples[0].marks & SAMPLE_DEFERRED_REFUSED,
			 SAMPLE_DEFERRED_REFUSED);
	check_stack(&windows[0]->samples[0], by_fp, 3);
}

static void test_expiry(void **state _unused_)
{
	const uint64_t before = clock_monotonic();
	struct deferred_sample *with_b[2], *sample;
	uint64_t expired;
	struct sample_input input;

	exec(1, "/bin/a");
	for (uint64_t i = 0; i < 3; i++)
		feed_deferred(10 + i, 64);
	with_b[0] = deferred_next(deferred);
	with_b[1] = deferred_next(deferred);
	expired = clock_monotonic() + EXPIRED_NS;
	assert_null(deferred_take(deferred, before, &input));

	/* in B's hands, and B ends first */
	sample = deferred_take(deferred, expired, &input);
	assert_ptr_equal(sample, with_b[0]);
	assert_int_equal(input.marks & SAMPLE_DEFERRED_EXPIRED, SAMPLE_DEFERRED_EXPIRED);
	assert_int_equal(input.sample->user_end, STACKTAP_END_NO_MAPPINGS);
	assert_memory_equal(input.user_ips, by_fp, sizeof(by_fp));
	deferred_unwind(deferred, with_b[0], unwinder);
	assert_memory_equal(input.user_ips, by_fp, sizeof(by_fp));
	deferred_release(deferred, sample);

	/* A ends first */
	sample = deferred_take(deferred, expired, &input);
	assert_ptr_equal(sample, with_b[1]);
	deferred_release(deferred, sample);
	deferred_unwind(deferred, with_b[1], unwinder);

	/* nobody has it */
	sample = deferred_take(deferred, expired, &input);
	assert_non_null(sample);
	assert_null(deferred_next(deferred));
	assert_int_equal(input.marks & SAMPLE_DEFERRED_EXPIRED, SAMPLE_DEFERRED_EXPIRED);
	deferred_release(deferred, sample);
	assert_null(deferred_take(deferred, expired, &input));
	assert_int_equal(counts().expired, 3);
	assert_int_equal(counts().unwound, 0);
}

static void test_code_that_nobody_knows(void **state _unused_)
{
	struct window_sample *sample;

	/* no event has told of it, so that there are no mappings */
	feed_deferred(10, 64);
	assert_true(unwind_one(unwinder));
	drain_finish(drain);
	sample = &windows[0]->samples[0];
	assert_int_equal(counts().failed, 1);
	assert_int_equal(windows[0]->counts[0].deferred_failed, 1);
	assert_int_equal(windows[0]->counts[0].complete, 0);
	assert_int_equal(sample->user_end, STACKTAP_END_NO_MAPPINGS);
	check_stack(sample, by_fp, 3);
}

/* A module that calls what it walked by frame pointers complete: nobody vouches for it. */
static void test_by_frame_pointers_is_not_complete(void **state _unused_)
{
	for (int pass = 0; pass < 2; pass++) {
		struct records records = { 0 };

		exec(1, "/bin/a");
		config(&records, 99);
		records_sample(&records, &(struct sample_spec){
						 .time = 10, .tgid = PID, .start_time = 5,
						 .exec_id = 1, .period = 1000, .user_ips = by_fp,
						 .user_count = 3 });
		feed(&records);
		drain_finish(drain);
		assert_int_equal(windows[pass]->counts[0].samples, 1);
		assert_int_equal(windows[pass]->counts[0].complete, !pass);
		assert_int_equal(windows[pass]->counts[0].user_end[STACKTAP_END_NO_MAPPINGS], pass);
		drain_use_tables(drain);
	}
}

/* What a signal interrupted is no return address, whoever walked the stack. */
static void test_exact_addresses(void **state _unused_)
{
	static const uint16_t exact[] = { 2 };
	struct records records = { 0 };
	const struct stack *stacks[2];

	exec(1, "/bin/a");
	config(&records, 99);
	for (uint32_t i = 0; i < 2; i++)
		records_sample(&records, &(struct sample_spec){
						 .time = 10 + i, .tgid = PID, .start_time = 5,
						 .exec_id = 1, .period = 1000, .user_ips = frames,
						 .user_count = 3, .exact = exact,
						 .exact_count = i });
	feed(&records);
	drain_finish(drain);
	assert_int_equal(windows[0]->sample_count, 2);
	for (size_t i = 0; i < 2; i++)
		stacks[i] = windows[0]->samples[i].stack;
	assert_true(stacks[0]->locations[1]->is_return && stacks[1]->locations[1]->is_return);
	assert_true(stacks[0]->locations[2]->is_return);
	assert_false(stacks[1]->locations[2]->is_return);
}

static _Atomic bool has_ended;

static void *thread_b(void *ctx _unused_)
{
	while (!atomic_load(&has_ended))
		if (!unwind_one(unwinder))
			usleep(100);
	while (unwind_one(unwinder))
		;
	return NULL;
}

/* Put, unwound, expired and released by two threads at once: each sample has one fate. */
static void test_threads(void **state _unused_)
{
	uint64_t now = clock_monotonic(), fates = 0;
	struct deferred_sample *held = NULL;
	struct sample_input input;
	struct deferred_stats result;
	pthread_t thread;

	exec(1, "/bin/a");
	atomic_store(&has_ended, false);
	assert_int_equal(pthread_create(&thread, NULL, thread_b, NULL), 0);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct deferred_sample *sample;
		uint64_t then = next_random() % 8 ? now : now + 2 * EXPIRED_NS;

		feed_deferred(10 + i, 64 + 8 * (uint32_t)(next_random() % 64));
		while ((sample = deferred_take(deferred, then, &input))) {
			assert_int_equal(input.user_count, 3);
			if (input.marks & SAMPLE_DEFERRED)
				assert_memory_equal(input.user_ips, frames, sizeof(frames));
			else
				assert_memory_equal(input.user_ips, by_fp, sizeof(by_fp));
			fates++;
			/* for a while beside the next ones */
			if (held)
				deferred_release(deferred, held);
			held = sample;
		}
	}
	atomic_store(&has_ended, true);
	pthread_join(thread, NULL);
	if (held)
		deferred_release(deferred, held);
	while ((held = deferred_take(deferred, now, &input))) {
		fates++;
		deferred_release(deferred, held);
	}
	result = counts();
	assert_int_equal(result.waiting, 0);
	assert_int_equal(result.taken + result.refused, ROUNDS);
	assert_int_equal(fates, result.taken);
	assert_int_equal(result.unwound + result.expired, result.taken);
	assert_true(result.unwound > 0 && result.expired > 0);
	drain_finish(drain);
}

/* The end waits for what is in thread B's hands. */
static void test_finish_waits(void **state _unused_)
{
	pthread_t thread;

	exec(1, "/bin/a");
	for (uint64_t i = 0; i < 100; i++)
		feed_deferred(10 + i, 64);
	atomic_store(&has_ended, false);
	assert_int_equal(pthread_create(&thread, NULL, thread_b, NULL), 0);
	drain_finish(drain);
	atomic_store(&has_ended, true);
	pthread_join(thread, NULL);
	assert_int_equal(windows[0]->counts[0].deferred, 100);
	assert_int_equal(windows[0]->counts[0].user_end[STACKTAP_END_GUESSED], 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_comes_back_in_its_window, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_is_not_complete, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slice_without_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stack_that_is_absent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mappings_of_its_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rate_of_its_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overflow_keeps_the_stack_and_says_so, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_thread_b_cannot_be_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_expiry, setup, teardown),
		cmocka_unit_test_setup_teardown(test_code_that_nobody_knows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by_frame_pointers_is_not_complete, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_exact_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_finish_waits, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
