// SPDX-License-Identifier: Apache-2.0
/*
 * Writer and reader of a ring at the same time. ThreadSanitizer tells when bytes are touched that
 * head or tail has not handed over; without it, wrong bytes do.
 */
#include "unit.h"

#include <pthread.h>
#include <sched.h>

#include <stacktap/ring.h>

#include "ring_pair.h"

enum {
	RECORDS = 20000,
	RING_BYTES = 4096,
	BODY_MAX = 900,
	TRICKS = 100,
	HELD = 32,	/* every such record is looked at slowly */
};

struct run {
	struct ring_pair pair;
	bool drops;			/* what does not fit is lost, not tried again */
	bool has_ended;			/* atomic */
	uint64_t lost;			/* the writer's, until it has ended */
	uint64_t next, wrong, read;	/* the reader's */
};

static uint32_t body_of(uint64_t number)
{
	uint64_t state = number;

	return (uint32_t)(ring_pair_random(&state) % BODY_MAX);
}

static void *writer(void *argument)
{
	struct run *run = argument;

	for (uint64_t number = 0; number < RECORDS; number++) {
		while (!ring_pair_write(&run->pair, number, body_of(number))) {
			if (run->drops) {
				run->lost++;
				break;
			}
			sched_yield();
		}
	}
	__atomic_store_n(&run->has_ended, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool has_ended(struct run *run)
{
	return __atomic_load_n(&run->has_ended, __ATOMIC_ACQUIRE);
}

static uint64_t tries(const struct ring_pair *pair)
{
	return __atomic_load_n(&pair->written, __ATOMIC_RELAXED) +
	       __atomic_load_n(&pair->refused, __ATOMIC_RELAXED) +
	       __atomic_load_n(&pair->bad_tails, __ATOMIC_RELAXED);
}

/* Until the writer has tried once more; at the first change that try may have begun before. */
static void let_writer_run(struct run *run)
{
	uint64_t before = tries(&run->pair);

	while (!has_ended(run) && tries(&run->pair) < before + 2)
		sched_yield();
}

static void on_record(void *ctx, uint32_t cpu _unused_, const struct stacktap_record *record)
{
	struct run *run = ctx;
	uint64_t number = record->time;

	/* a writer that has this record's bytes too early shall have the time to use them */
	if (run->read % HELD == 0)
		let_writer_run(run);
	if (number < run->next || (!run->drops && number != run->next) ||
	    !ring_pair_is(record, number, body_of(number)))
		run->wrong++;
	run->next = number + 1;
	run->read++;
}

static const struct capture_ops ops = { .record = on_record };

/* Leave an impossible tail until the writer has met it. */
static void play_trick(struct run *run, uint64_t number)
{
	uint64_t tail = run->pair.ring.position;

	/* neither may become possible while the writer goes on */
	stacktap_ring_release(&run->pair.consumer,
			      number % 2 ? tail + 1 : tail - 2 * RING_BYTES);
	let_writer_run(run);
	stacktap_ring_release(&run->pair.consumer, tail);
}

static void run_both(struct run *run, uint64_t tricks)
{
	struct capture_stats stats = { 0 };
	pthread_t thread;
	bool is_last;

	ring_pair_init(&run->pair, RING_BYTES, UINT64_MAX - 64 * RING_BYTES + 1);
	assert_int_equal(pthread_create(&thread, NULL, writer, run), 0);
	do {
		is_last = has_ended(run);
		ring_snapshot(&run->pair.ring);
		ring_consume(&run->pair.ring, &ops, run, &stats);
		if (tricks)
			play_trick(run, tricks--);
		else
			sched_yield();
	} while (!is_last);
	pthread_join(thread, NULL);
	assert_int_equal(run->wrong, 0);
	assert_int_equal(stats.bad_records, 0);
	assert_int_equal(run->read, run->pair.written);
	assert_int_equal(run->read + run->lost, RECORDS);
	ring_pair_done(&run->pair);
}

static void test_everything_arrives_in_order(void **state _unused_)
{
	struct run run = { 0 };

	run_both(&run, 0);
	assert_int_equal(run.lost, 0);
	/* the ring is some nine records long: it was full, and each byte of it used many times */
	assert_true(run.pair.refused > 0);
}

static void test_what_is_lost_is_counted(void **state _unused_)
{
	struct run run = { .drops = true };

	run_both(&run, 0);
	assert_int_equal(run.lost, run.pair.refused);
}

static void test_impossible_tails_lose_nothing_that_was_written(void **state _unused_)
{
	struct run run = { 0 };

	run_both(&run, TRICKS);
	assert_true(run.pair.bad_tails >= TRICKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything_arrives_in_order),
		cmocka_unit_test(test_what_is_lost_is_counted),
		cmocka_unit_test(test_impossible_tails_lose_nothing_that_was_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
