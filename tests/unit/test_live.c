// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"
#include "synthetic.h"

#include <stdlib.h>

#include "view/live.h"

enum { BIG = 32 << 20, SAMPLES = 2020 };

static struct payload message;	/* a window, whole */

static int keep(void *ctx, struct payload *payload)
{
	(void)ctx;
	assert_null(message.data);
	message = *payload;
	return 0;
}

static int setup(void **state)
{
	const struct encode_options options = { .max_bytes = 1 << 24, .service_name = "shop" };
	struct aggregator *aggregator;
	struct window *window;

	(void)state;
	assert_int_equal(aggregator_new(&aggregator), 0);
	window = synthetic_window(aggregator);
	assert_int_equal(encode_window(&options, window, keep, NULL), 0);
	window_free(window);
	aggregator_free(aggregator);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(message.data);
	synthetic_check_pools();
	return 0;
}

static struct live *with_messages(size_t max_bytes, size_t count)
{
	struct live *live;

	assert_int_equal(live_new(max_bytes, NULL, &live), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(live_add(live, message.data, message.size, 100 + i), 0);
	return live;
}

static uint64_t samples_since(struct live *live, uint64_t from)
{
	struct live_table table;
	uint64_t samples;

	assert_int_equal(live_build(live, from, LIVE_FUNCTION, false, &table), 0);
	samples = table.samples;
	live_table_free(&table);
	return samples;
}

static void every_group_adds_up(void **state)
{
	static const size_t rows[LIVE_GROUP_COUNT] = { [LIVE_SERVICE] = 1 };
	struct live *live = with_messages(BIG, 2);
	struct live_table table;

	(void)state;
	for (int group = 0; group < LIVE_GROUP_COUNT; group++) {
		uint64_t self = 0, samples = 0;

		assert_int_equal(live_build(live, 0, (enum live_group)group, false, &table), 0);
		assert_true(table.rows.count >= 1);
		if (rows[group])
			assert_int_equal(table.rows.count, rows[group]);
		for (uint32_t i = 0; i < table.rows.count; i++) {
			const struct live_row *row = live_row(&table, i);

			assert_true(row->total >= row->self && row->total <= table.weight);
			if (i)
				assert_true(row->self <= live_row(&table, i - 1)->self);
			self += row->self;
			samples += row->samples;
		}
		/* each sample has one leaf, and one mode */
		assert_int_equal(self, table.weight);
		assert_int_equal(samples, table.samples);
		assert_int_equal(table.user + table.kernel + table.idle, table.weight);
		assert_true(table.end > table.start && table.complete && table.lost);
		live_table_free(&table);
	}
	assert_int_equal(live_build(live, 0, LIVE_FUNCTION, true, &table), 0);
	for (uint32_t i = 1; i < table.rows.count; i++)
		assert_true(live_row(&table, i)->total <= live_row(&table, i - 1)->total);
	live_table_free(&table);
	live_free(live);
}

/* What is selected has the samples that its row has, when all are; losses are of all. */
static void selection_is_a_row(void **state)
{
	struct selection selection = { 0 };
	const char **wanted[LIVE_GROUP_COUNT] = {
		[LIVE_PROCESS] = &selection.process, [LIVE_THREAD] = &selection.thread,
		[LIVE_CONTAINER] = &selection.container, [LIVE_SERVICE] = &selection.service,
	};
	struct live_table all, part;
	struct live *every = with_messages(BIG, 2), *live;
	char id[16];

	(void)state;
	assert_int_equal(live_new(BIG, &selection, &live), 0);
	assert_int_equal(live_add(live, message.data, message.size, 100), 0);
	assert_int_equal(live_add(live, message.data, message.size, 101), 0);
	for (int group = 0; group < LIVE_GROUP_COUNT; group++) {
		if (!wanted[group])
			continue;
		assert_int_equal(live_build(every, 0, (enum live_group)group, false, &all), 0);
		for (uint32_t i = 0; i < all.rows.count; i++) {
			const struct live_row *row = live_row(&all, i);

			if (!row->owner[0])
				continue;
			snprintf(id, sizeof(id), "%u", row->id);
			*wanted[group] = row->id ? id : row->owner;
			assert_int_equal(live_build(live, 0, LIVE_FUNCTION, false, &part), 0);
			assert_int_equal(part.samples, row->samples);
			assert_int_equal(part.weight, row->self);
			assert_int_equal(part.user + part.kernel + part.idle, part.weight);
			assert_int_equal(part.lost, all.lost);
			assert_int_equal(part.has_complete, group != LIVE_THREAD);
			assert_true(!part.has_complete || part.complete <= part.samples);
			live_table_free(&part);
		}
		*wanted[group] = NULL;
		live_table_free(&all);
	}
	selection.process = "nobody";
	assert_int_equal(live_build(live, 0, LIVE_FUNCTION, false, &part), 0);
	assert_int_equal(part.samples + part.rows.count + part.complete, 0);
	live_table_free(&part);
	live_free(live);
	live_free(every);
}

/* A row of the table as what live_build_calls() wants. */
static struct live_subject subject_of(const struct live_row *row)
{
	return (struct live_subject){ .id = row->id, .is_kernel = row->is_kernel, .owner = row->owner,
				      .name = row->name, .file = row->file };
}

static uint64_t sum_of(const struct live_table *table, enum live_side side, bool of_self)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < table->rows.count; i++)
		if (live_row(table, i)->side == side)
			sum += of_self ? live_row(table, i)->self : live_row(table, i)->total;
	return sum;
}

static void calls_of_each_function_add_up(void **state)
{
	struct live *live = with_messages(BIG, 2);
	uint32_t with_callers = 0, with_callees = 0;
	struct live_table all, calls;

	(void)state;
	assert_int_equal(live_build(live, 0, LIVE_FUNCTION, false, &all), 0);
	/* some hundred of them, heavy and light */
	for (uint32_t i = 0; i < all.rows.count; i += 1 + all.rows.count / 100) {
		const struct live_row *row = live_row(&all, i);
		struct live_subject subject = subject_of(row);
		const struct live_row *itself = NULL;

		assert_int_equal(live_build_calls(live, 0, &subject, &calls), 0);
		assert_int_equal(calls.weight, all.weight);
		for (uint32_t k = 0; k < calls.rows.count; k++) {
			const struct live_row *other = live_row(&calls, k);

			assert_true(other->side != LIVE_ROW && other->id == row->id);
			if (k)
				assert_true(other->side >= live_row(&calls, k - 1)->side);
			if (other->side == LIVE_SUBJECT) {
				assert_null(itself);
				itself = other;
			}
		}
		assert_non_null(itself);
		assert_string_equal(itself->name, row->name);
		assert_int_equal(itself->self, row->self);
		assert_int_equal(itself->total, row->total);
		/* what is not its own is in what it calls, each stack once but for recursion */
		assert_true(sum_of(&calls, LIVE_CALLEE, false) >= row->total - row->self);
		assert_true(sum_of(&calls, LIVE_CALLEE, true) <= row->total);
		assert_int_equal(sum_of(&calls, LIVE_CALLER, true), 0);
		with_callers += sum_of(&calls, LIVE_CALLER, false) > 0;
		with_callees += sum_of(&calls, LIVE_CALLEE, false) > 0;
		live_table_free(&calls);
	}
	assert_true(with_callers && with_callees);
	live_table_free(&all);
	live_free(live);
}

static void nothing_calls_what_is_not_there(void **state)
{
	const struct live_subject subject = { .id = 1, .owner = "x", .name = "y", .file = "z" };
	struct live *live = with_messages(BIG, 1);
	struct live_table table;

	(void)state;
	assert_int_equal(live_build_calls(live, 0, &subject, &table), 0);
	assert_int_equal(table.rows.count, 0);
	assert_true(table.samples);
	live_table_free(&table);
	live_free(live);
}

static void what_is_older_goes(void **state)
{
	struct live *live = with_messages(BIG, 3);
	struct live_table table;
	uint64_t all = samples_since(live, 100);

	(void)state;
	assert_true(all >= 3 * SAMPLES);
	assert_int_equal(samples_since(live, 101), all / 3 * 2);
	/* for good */
	assert_int_equal(samples_since(live, 0), all / 3 * 2);
	assert_int_equal(live_add(live, message.data, message.size, 103), 0);
	assert_int_equal(samples_since(live, 0), all);
	assert_int_equal(live_build(live, 104, LIVE_FUNCTION, false, &table), 0);
	assert_int_equal(table.samples, 0);
	assert_int_equal(table.start, 0);
	assert_null(table.event);
	live_table_free(&table);
	live_free(live);
}

static void memory_is_bounded(void **state)
{
	struct live *live = with_messages(2 * message.size, 5);
	struct live_table table;
	uint64_t one = samples_since(live, 104);

	(void)state;
	live_free(live);
	live = with_messages(2 * message.size, 5);
	assert_int_equal(pool_get(POOL_REPORT)->used, 2 * message.size);
	assert_int_equal(live_build(live, 100, LIVE_FUNCTION, false, &table), 0);
	assert_int_equal(table.samples, 2 * one);
	assert_true(table.is_cut);
	live_table_free(&table);
	/* both lists together */
	assert_int_equal(live_add(live, message.data, message.size, 105), 0);
	assert_int_equal(live_build(live, 103, LIVE_FUNCTION, false, &table), 0);
	assert_int_equal(table.samples, 2 * one);
	assert_true(table.is_cut);
	live_table_free(&table);
	/* what was dropped is older than the window by now */
	assert_int_equal(live_build(live, 104, LIVE_FUNCTION, false, &table), 0);
	assert_false(table.is_cut);
	live_table_free(&table);
	live_free(live);
}

static void a_bad_message_is_said(void **state)
{
	struct live *live = with_messages(BIG, 1);
	struct live_table table;

	(void)state;
	assert_int_equal(live_add(live, (const uint8_t *)"\xff\xff\xff", 3, 101), 0);
	assert_int_equal(live_build(live, 0, LIVE_FUNCTION, false, &table), -EBADMSG);
	live_table_free(&table);
	live_free(live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_group_adds_up), cmocka_unit_test(selection_is_a_row),
		cmocka_unit_test(calls_of_each_function_add_up),
		cmocka_unit_test(nothing_calls_what_is_not_there),
		cmocka_unit_test(what_is_older_goes),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(a_bad_message_is_said),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
