// SPDX-License-Identifier: Apache-2.0
#include "synthetic.h"

#include <string.h>

#include "base/pool.h"

#define BASE 0x7f0000000000

static struct aggregator *aggregator;
static struct mapped_file *program, *kernel;
static struct image *image;

static int setup(void **state)
{
	(void)state;
	assert_int_equal(aggregator_new(&aggregator), 0);
	program = synthetic_file("/usr/bin/program", true);
	kernel = synthetic_kernel();
	image = synthetic_image(100, "program", NULL);
	synthetic_map(image, BASE, 1000, program);
	aggregator_set_kernel(aggregator, kernel);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_cycles), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	aggregator_free(aggregator);
	image_unref(image);
	mapped_file_unref(program);
	mapped_file_unref(kernel);
	synthetic_check_pools();
	return 0;
}

static const uint64_t user_ips[] = { BASE + 0x10, BASE + 0x20, BASE + 0x30 };
static const uint64_t kernel_ips[] = { 0xffffffff81000100, 0xffffffff81000200 };

static struct synthetic_sample plain(uint64_t time)
{
	return (struct synthetic_sample){
		.time = time, .period = 10000000, .cpu = 1, .tid = 101, .comm = "thread",
		.kernel_end = STACKTAP_END_COMPLETE, .user_end = STACKTAP_END_COMPLETE,
		.image = image, .kernel = kernel_ips, .kernel_count = 2, .user = user_ips,
		.user_count = 3,
	};
}

static void add(uint64_t time)
{
	struct synthetic_sample sample = plain(time);

	assert_int_equal(synthetic_add(aggregator, &sample), 0);
}

static struct window *close_at(uint64_t end)
{
	struct window *window;

	assert_int_equal(aggregator_close(aggregator, end, &window), 0);
	return window;
}

static void equal_samples_share_an_entry(void **state)
{
	struct window *window;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		add(100 + i);
	assert_int_equal(aggregator_sample_count(aggregator), 1000);
	window = close_at(2000);
	assert_int_equal(window->sample_count, 1);
	assert_int_equal(window->samples[0].count, 1000);
	assert_null(window->samples[0].values);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(window->samples[0].times[i], 100 + i);
	assert_int_equal(window->counts[0].samples, 1000);
	assert_int_equal(window->counts[0].complete, 1000);
	assert_int_equal(window->counts[0].user_end[STACKTAP_END_COMPLETE], 1000);
	assert_int_equal(aggregator_sample_count(aggregator), 0);
	window_free(window);
}

static void anything_that_differs_makes_an_entry(void **state)
{
	struct synthetic_sample sample;
	struct window *window;

	(void)state;
	add(100);
	for (int what = 0; what < 7; what++) {
		sample = plain(200);
		switch (what) {
		case 0: sample.tid++; break;
		case 1: sample.cpu++; break;
		case 2: sample.comm = "other"; break;
		case 3: sample.user_end = STACKTAP_END_DEPTH; break;
		case 4: sample.flags = STACKTAP_SAMPLE_STALE; break;
		case 5: sample.user_count = 2; break;
		case 6: sample.source = 1; break;
		}
		assert_int_equal(synthetic_add(aggregator, &sample), 0);
		assert_int_equal(synthetic_add(aggregator, &sample), 0);
	}
	window = close_at(300);
	assert_int_equal(window->sample_count, 8);
	window_free(window);
}

static void leaves_are_exact_and_callers_are_returns(void **state)
{
	static const bool is_return[] = { false, true, false, true, true };
	const struct stack *stack;
	struct window *window;

	(void)state;
	add(100);
	window = close_at(200);
	stack = window->samples[0].stack;
	assert_int_equal(stack->count, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(stack->locations[i]->is_return, is_return[i]);
		assert_int_equal(stack->locations[i]->type, i < 2 ? FRAME_KERNEL : FRAME_NATIVE);
		assert_ptr_equal(stack->locations[i]->file, i < 2 ? kernel : program);
	}
	/* run-time addresses in the kernel, file offsets elsewhere */
	assert_int_equal(stack->locations[1]->offset, kernel_ips[1]);
	assert_int_equal(stack->locations[3]->offset, 0x1020);
	assert_int_equal(window->location_count, 5);
	window_free(window);
}

static void a_call_may_end_its_mapping(void **state)
{
	const uint64_t ips[] = { BASE + 0x10, BASE + 0x8000 };
	struct synthetic_sample sample = plain(100);
	struct window *window;

	(void)state;
	sample.user = ips;
	sample.user_count = 2;
	assert_int_equal(synthetic_add(aggregator, &sample), 0);
	window = close_at(200);
	assert_ptr_equal(window->samples[0].stack->locations[3]->file, program);
	assert_int_equal(window->samples[0].marks, 0);
	window_free(window);
}

static void processes_share_locations_and_stacks(void **state)
{
	const uint64_t elsewhere[] = { 0x550000000010, 0x550000000020, 0x550000000030 };
	struct image *other = synthetic_image(200, "program", NULL);
	struct mapped_file *again = mapped_file_new(OBJECT_FILE, "/proc/1/root/usr/bin/program");
	struct synthetic_sample sample = plain(100);
	struct window *window;

	(void)state;
	/* another mount's name of the same content */
	atomic_store(&again->object, object_ref(mapped_file_object(program)));
	synthetic_map(other, 0x550000000000, 0, again);
	add(50);
	sample.image = other;
	sample.user = elsewhere;
	assert_int_equal(synthetic_add(aggregator, &sample), 0);
	window = close_at(200);
	assert_int_equal(window->sample_count, 2);
	assert_ptr_equal(window->samples[0].stack, window->samples[1].stack);
	assert_int_equal(window->location_count, 5);
	window_free(window);
	image_unref(other);
	mapped_file_unref(again);
}

static void locations_outlive_windows(void **state)
{
	struct location *location;
	struct window *window;

	(void)state;
	add(100);
	window = close_at(200);
	location = location_ref(window->samples[0].stack->locations[2]);
	window_free(window);
	add(300);
	window = close_at(400);
	assert_ptr_equal(window->samples[0].stack->locations[2], location);
	window_free(window);
	/* but not those that no window asks for */
	for (int i = 0; i < 12; i++) {
		struct synthetic_sample sample = plain(500 + i * 10);

		sample.user_count = 0;
		assert_int_equal(synthetic_add(aggregator, &sample), 0);
		window_free(close_at(505 + i * 10));
	}
	assert_int_equal(atomic_load(&location->refs), 1);
	location_unref(location);
}

static void a_new_mapping_is_seen(void **state)
{
	struct mapped_file *other = synthetic_file("/usr/bin/other", true);
	struct window *window;

	(void)state;
	add(2000);
	synthetic_map(image, BASE, 50000, other);
	add(60000);	/* after it */
	add(45000);	/* in a tie: the newer mapping is right */
	add(30000);	/* before it: cannot be told any more */
	window = close_at(70000);
	assert_int_equal(window->sample_count, 3);
	assert_ptr_equal(window->samples[0].stack->locations[2]->file, program);
	assert_ptr_equal(window->samples[1].stack->locations[2]->file, other);
	assert_int_equal(window->samples[1].count, 2);
	assert_int_equal(window->samples[1].marks, 0);
	assert_int_equal(window->samples[2].marks, SAMPLE_DOUBTFUL);
	assert_int_equal(window->counts[0].stale, 1);
	window_free(window);
	mapped_file_unref(other);
}

static void unknown_addresses_are_marked(void **state)
{
	const uint64_t ips[] = { 0x1234, BASE + 0x20 };
	struct synthetic_sample sample = plain(100);
	struct window *window;

	(void)state;
	sample.user = ips;
	sample.user_count = 2;
	sample.kernel_count = 0;
	assert_int_equal(synthetic_add(aggregator, &sample), 0);
	assert_int_equal(synthetic_add(aggregator, &sample), 0);
	window = close_at(200);
	assert_int_equal(window->sample_count, 1);
	assert_int_equal(window->samples[0].marks, SAMPLE_UNKNOWN_MAPPING);
	assert_null(window->samples[0].stack->locations[0]->file);
	assert_int_equal(window->samples[0].stack->locations[0]->offset, 0x1234);
	window_free(window);
}

static void frequency_keeps_periods(void **state)
{
	struct synthetic_sample sample;
	struct window *window;

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		sample = plain(100 + i);
		sample.source = 1;
		sample.period = 1000 + i;
		assert_int_equal(synthetic_add(aggregator, &sample), 0);
	}
	window = close_at(300);
	assert_int_equal(window->sample_count, 1);
	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(window->samples[0].times[i], 100 + i);
		assert_int_equal(window->samples[0].values[i], 1000 + i);
	}
	window_free(window);
}

static void rates_change_cpu_by_cpu(void **state)
{
	struct profile_config slower = synthetic_clock;
	struct synthetic_sample sample;
	struct window *window;

	(void)state;
	slower.rate_hz = 19;
	slower.period = 52631578;
	add(100);
	assert_int_equal(aggregator_set_cpu_profile(aggregator, 1, &slower), 0);
	add(200);
	sample = plain(210);
	sample.cpu = 0;
	assert_int_equal(synthetic_add(aggregator, &sample), 0);
	window = close_at(300);
	assert_int_equal(window->profile_count, 2);
	assert_int_equal(window->counts[0].samples, 2);
	assert_int_equal(window->counts[1].samples, 1);
	assert_int_equal(window->profiles[1].rate_hz, 19);
	window_free(window);
	/* setting all CPUs ends the exception */
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	add(400);
	window = close_at(500);
	assert_int_equal(window->profile_count, 1);
	assert_int_equal(window->profiles[0].rate_hz, 100);
	window_free(window);
}

static void a_source_without_config_keeps_its_periods(void **state)
{
	struct synthetic_sample sample = plain(100);
	struct window *window;

	(void)state;
	sample.source = 5;
	assert_int_equal(synthetic_add(aggregator, &sample), 0);
	sample.source = STACKTAP_MAX_SOURCES;
	assert_int_equal(synthetic_add(aggregator, &sample), -EINVAL);
	window = close_at(200);
	assert_string_equal(window->profiles[0].source, "unknown");
	assert_int_equal(window->samples[0].values[0], 10000000);
	window_free(window);
}

static void losses_wait_for_a_window(void **state)
{
	struct synthetic_sample sample = plain(100);
	struct window_losses losses;
	struct window *window;

	(void)state;
	aggregator_add_losses(aggregator, 0, &(struct window_losses){ .lost = 5 });
	assert_null(close_at(50));
	sample.source = 1;
	assert_int_equal(synthetic_add(aggregator, &sample), 0);
	window = close_at(200);
	assert_int_equal(window->counts[0].lost, 0);
	window_free(window);
	assert_int_equal(aggregator_losses(aggregator).lost, 5);
	aggregator_add_losses(aggregator, 0, &(struct window_losses){ .lost = 1, .throttled = 3, .missed = 2 });
	add(300);
	window = close_at(400);
	assert_int_equal(window->counts[0].lost, 6);
	assert_int_equal(window->counts[0].throttled, 3);
	assert_int_equal(window->counts[0].missed, 2);
	window_free(window);
	losses = aggregator_losses(aggregator);
	assert_int_equal(losses.lost, 6);
	assert_int_equal(losses.throttled, 3);
	assert_int_equal(losses.stalled, 0);
	assert_int_equal(losses.missed, 2);
}

static void windows_hold_their_samples(void **state)
{
	struct window *window;

	(void)state;
	add(100);
	window = close_at(200);
	assert_int_equal(window->start, 100);
	assert_int_equal(window->end, 200);
	window_free(window);
	add(150);	/* from another CPU's ring, late */
	add(350);	/* drained beyond the snapshot */
	window = close_at(300);
	assert_int_equal(window->start, 150);
	assert_int_equal(window->end, 351);
	window_free(window);
	add(360);
	window = close_at(400);
	assert_int_equal(window->start, 351);
	window_free(window);
}

static void a_full_pool_closes_the_window(void **state)
{
	struct pool *pool = pool_get(POOL_AGGREGATE);
	size_t limit = pool->limit;
	uint64_t ips[64], added = 0, seen = 0;
	struct synthetic_sample sample = plain(100);
	struct window *window;
	int err;

	(void)state;
	pool->limit = (size_t)1 << 20;
	sample.user = ips;
	sample.user_count = ARRAY_SIZE(ips);
	for (uint32_t round = 0; round < 5; round++) {
		for (uint32_t i = 0; ; i++) {
			for (uint32_t k = 0; k < ARRAY_SIZE(ips); k++)
				ips[k] = BASE + (i * 7 + k * 13 + round * 3) % 0x8000;
			err = synthetic_add(aggregator, &sample);
			assert_true(atomic_load(&pool->used) <= pool->limit);
			if (err)
				break;
			added++;
		}
		assert_int_equal(err, -ENOBUFS);
		window = close_at(1000);
		for (size_t i = 0; i < window->sample_count; i++)
			seen += window->samples[i].count;
		window_free(window);
		assert_int_equal(synthetic_add(aggregator, &sample), 0);
		added++;
	}
	window = close_at(2000);
	for (size_t i = 0; i < window->sample_count; i++)
		seen += window->samples[i].count;
	window_free(window);
	assert_int_equal(seen, added);
	assert_true(added > 1000);
	pool->limit = limit;
}

/* Each once, whatever of it is stale. */
static void stacks_that_end_stale_count_as_stale(void **state)
{
	struct synthetic_sample sample = plain(100);
	struct window *window;

	(void)state;
	assert_int_equal(synthetic_add(aggregator, &sample), 0);
	sample.user_end = STACKTAP_END_STALE;
	assert_int_equal(synthetic_add(aggregator, &sample), 0);
	sample.flags = STACKTAP_SAMPLE_STALE;
	assert_int_equal(synthetic_add(aggregator, &sample), 0);
	sample.flags = 0;
	sample.user_end = STACKTAP_END_DEPTH;
	assert_int_equal(synthetic_add(aggregator, &sample), 0);
	sample.kernel_end = STACKTAP_END_STALE;
	assert_int_equal(synthetic_add(aggregator, &sample), 0);
	window = close_at(2000);
	assert_int_equal(window->counts[0].samples, 5);
	assert_int_equal(window->counts[0].complete, 1);
	assert_int_equal(window->counts[0].stale, 3);
	window_free(window);
}

static void locations_are_given_up_when_symbols_are_short(void **state)
{
	struct pool *pool = pool_get(POOL_SYMBOLS);
	size_t limit = pool->limit;
	struct synthetic_sample sample = plain(100);
	uint64_t ips[32];
	int full = 0;

	(void)state;
	pool->limit = 100 * sizeof(struct location);
	sample.user = ips;
	sample.user_count = ARRAY_SIZE(ips);
	for (uint32_t i = 0; i < 40; i++) {
		for (uint32_t k = 0; k < ARRAY_SIZE(ips); k++)
			ips[k] = BASE + i * ARRAY_SIZE(ips) + k;
		while (synthetic_add(aggregator, &sample)) {
			full++;
			assert_true(full < 100);
			window_free(close_at(1000 + i));
		}
	}
	assert_true(full > 5);
	window_free(close_at(2000));
	pool->limit = limit;
}

/* What thread B put off is another Location in the window after the next: the one that is open may use it. */
static void what_is_put_off_is_looked_up_again(void **state)
{
	struct location *first = NULL, *later = NULL;
	struct window *window;

	(void)state;
	add(1000);
	window = close_at(2000);
	for (size_t i = 0; i < window->location_count && !first; i++)
		if (window->locations[i]->type == FRAME_NATIVE)
			first = location_ref(window->locations[i]);
	assert_non_null(first);
	add(3000);
	atomic_store(&first->is_put_off, true);
	window_free(window);
	window_free(close_at(4000));
	add(5000);
	window = close_at(6000);
	for (size_t i = 0; i < window->location_count; i++)
		if (window->locations[i]->offset == first->offset &&
		    window->locations[i]->type == FRAME_NATIVE &&
		    window->locations[i]->is_return == first->is_return)
			later = window->locations[i];
	assert_non_null(later);
	assert_ptr_not_equal(later, first);
	assert_false(later->is_put_off);
	window_free(window);
	location_unref(first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(what_is_put_off_is_looked_up_again),
		T(equal_samples_share_an_entry), T(anything_that_differs_makes_an_entry),
		T(leaves_are_exact_and_callers_are_returns), T(a_call_may_end_its_mapping),
		T(processes_share_locations_and_stacks), T(locations_outlive_windows),
		T(a_new_mapping_is_seen), T(unknown_addresses_are_marked),
		T(frequency_keeps_periods), T(rates_change_cpu_by_cpu),
		T(a_source_without_config_keeps_its_periods), T(losses_wait_for_a_window),
		T(windows_hold_their_samples), T(a_full_pool_closes_the_window),
		T(locations_are_given_up_when_symbols_are_short),
		T(stacks_that_end_stale_count_as_stale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
