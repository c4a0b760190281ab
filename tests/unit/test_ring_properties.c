// SPDX-License-Identifier: Apache-2.0
/* What holds of a ring at every position, fill level, record size and tail. */
#include "unit.h"

#include <string.h>

#include <stacktap/ring.h>

#include "ring_pair.h"

enum {
	SMALL = 4096,
	STEPS = 50000,
	BODY_MAX = 1500,
	RECORD = sizeof(struct stacktap_record),
};

/* Positions wrap after some of them; never seen in practice, and so best tried here. */
#define NEAR_THE_END (UINT64_MAX - 64 * SMALL + 1)

struct reader {
	uint64_t next;			/* number of the record that is expected */
	uint64_t wrong;
	uint32_t (*body_bytes)(uint64_t number);
};

static void on_record(void *ctx, uint32_t cpu _unused_, const struct stacktap_record *record)
{
	struct reader *reader = ctx;

	reader->wrong += !ring_pair_is(record, reader->next, reader->body_bytes(reader->next));
	reader->next++;
}

static const struct capture_ops ops = { .record = on_record };

static uint32_t random_body(uint64_t number)
{
	uint64_t state = number;

	return (uint32_t)(ring_pair_random(&state) % BODY_MAX);
}

static void consume(struct ring_pair *pair, struct reader *reader, struct capture_stats *stats)
{
	ring_snapshot(&pair->ring);
	ring_consume(&pair->ring, &ops, reader, stats);
}

/* @used may be anything: how far the tail is behind the head, or with a huge number before it. */
static void check_tail(uint64_t head, uint64_t used, uint64_t data_bytes)
{
	const struct stacktap_consumer_page page = { .tail = head - used };
	bool is_valid = used <= data_bytes && used % 8 == 0;

	assert_int_equal(!!stacktap_ring_tail_valid(head, page.tail, data_bytes), is_valid);
	assert_int_equal(stacktap_ring_space(head, page.tail, data_bytes),
			 is_valid ? data_bytes - used : 0);
	assert_int_equal(stacktap_ring_room(&page, head, data_bytes),
			 is_valid ? (int64_t)(data_bytes - used) : -EINVAL);
}

static void test_every_tail(void **state _unused_)
{
	const uint64_t heads[] = { 0, 8, SMALL - 8, SMALL, 1ULL << 32, 1ULL << 63, NEAR_THE_END,
				   UINT64_MAX - 7 };
	const uint64_t sizes[] = { SMALL, 1 << 20, 1ULL << 31 };
	uint64_t seed = 1;

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		for (size_t j = 0; j < ARRAY_SIZE(sizes); j++) {
			for (uint64_t distance = 0; distance < 2 * SMALL; distance++) {
				check_tail(heads[i], distance, sizes[j]);
				check_tail(heads[i], 0 - distance, sizes[j]);
				check_tail(heads[i], sizes[j] + distance, sizes[j]);
				check_tail(heads[i], sizes[j] - distance, sizes[j]);
			}
			for (int k = 0; k < 1000; k++) {
				check_tail(heads[i], ring_pair_random(&seed), sizes[j]);
				check_tail(heads[i], ring_pair_random(&seed) & ~7ULL, sizes[j]);
			}
		}
}

static void test_align(void **state _unused_)
{
	for (uint32_t bytes = 0; bytes < 70000; bytes++) {
		uint32_t aligned = stacktap_ring_align(bytes);

		assert_true(aligned % 8 == 0 && aligned >= bytes && aligned - bytes < 8);
	}
}

static uint32_t body_as_number(uint64_t number)
{
	return (uint32_t)(number % 700);
}

/* One by one over many laps, and over the end of all positions. */
static void test_every_size_arrives(void **state _unused_)
{
	struct reader reader = { .body_bytes = body_as_number };
	struct capture_stats stats = { 0 };
	struct ring_pair pair;

	ring_pair_init(&pair, SMALL, NEAR_THE_END);
	while (reader.next < 3000) {
		uint64_t number = reader.next;

		assert_true(ring_pair_write(&pair, number, body_as_number(number)));
		assert_false(ring_is_empty(&pair.ring));
		consume(&pair, &reader, &stats);
		assert_int_equal(reader.next, number + 1);
		assert_true(ring_is_empty(&pair.ring));
		assert_int_equal(pair.consumer.tail, pair.head);
	}
	assert_int_equal(reader.wrong, 0);
	assert_int_equal(stats.bad_records, 0);
	assert_true(pair.head < NEAR_THE_END);
	ring_pair_done(&pair);
}

/*
 * With every number of unread bytes, records of every length around what is free: what fits is
 * taken, what does not is refused, and no unread byte is touched either way.
 */
static void test_every_fill_level(void **state _unused_)
{
	static uint8_t before[SMALL];
	struct ring_pair pair;

	ring_pair_init(&pair, SMALL, 0);
	for (uint32_t used = 0; used <= SMALL; used += 8) {
		uint32_t room = SMALL - used;

		for (uint32_t size = room > 24 ? room - 24 : 0; size < room + 24; size++) {
			uint32_t body = size < RECORD ? 0 : size - RECORD;
			uint64_t tail, head = NEAR_THE_END + used * 5;
			bool fits = stacktap_ring_align(RECORD + body) <= room;

			pair.head = head;
			pair.consumer.tail = tail = head - used;
			memset(pair.data, 0xa5, SMALL);
			assert_int_equal(ring_pair_write(&pair, size, body), fits);
			/* two rows of the same pages: unread bytes lie in one piece in them */
			memset(before, 0xa5, used);
			assert_memory_equal(pair.data + tail % SMALL, before, used);
			if (!fits)
				continue;
			assert_true(ring_pair_is((void *)(pair.data + head % SMALL), size, body));
			assert_int_equal(pair.producer.head,
					 head + stacktap_ring_align(RECORD + body));
		}
	}
	assert_true(pair.written > 0 && pair.refused > 0);
	assert_int_equal(pair.bad_tails, 0);
	ring_pair_done(&pair);
}

struct walk {
	struct ring_pair pair;
	struct reader reader;
	struct capture_stats stats;
	uint64_t seed, number;		/* of the next record to write */
	uint64_t overwritten;
};

/* What somebody put on the consumer page; a reader's own position is one of the possible ones. */
static uint64_t hostile_tail(struct walk *walk)
{
	uint64_t head = walk->pair.head;

	switch (ring_pair_random(&walk->seed) % 6) {
	case 0:
		return ring_pair_random(&walk->seed);
	case 1:
		return head - 8 * (ring_pair_random(&walk->seed) % (SMALL / 8 + 1));
	case 2:
		return head - SMALL - 8;
	case 3:
		return head + 8;
	case 4:
		return head - ring_pair_random(&walk->seed) % SMALL;
	default:
		return 0;
	}
}

static void walk_hostile(struct walk *walk)
{
	struct ring_pair *pair = &walk->pair;
	uint64_t unread = pair->head - pair->ring.position, bad_tails = pair->bad_tails;
	uint64_t tail = hostile_tail(walk), used = pair->head - tail;
	uint32_t body = random_body(walk->number);
	uint32_t size = stacktap_ring_align(RECORD + body);
	bool is_valid = used <= SMALL && used % 8 == 0, wrote;

	pair->consumer.tail = tail;
	wrote = ring_pair_write(pair, walk->number, body);
	assert_int_equal(wrote, is_valid && size <= SMALL - used);
	assert_int_equal(pair->bad_tails - bad_tails, !is_valid);
	walk->number += wrote;
	if (wrote && unread + size > SMALL) {
		uint64_t wrong = walk->reader.wrong;

		/* by its own doing the reader has lost what it had not read; it goes on behind it */
		consume(pair, &walk->reader, &walk->stats);
		walk->reader.wrong = wrong;
		walk->reader.next = walk->number;
		walk->overwritten++;
	} else {
		stacktap_ring_release(&pair->consumer, pair->ring.position);
	}
}

static void walk_step(struct walk *walk)
{
	uint64_t number = walk->number;

	switch (ring_pair_random(&walk->seed) % 16) {
	case 0:
		ring_snapshot(&walk->pair.ring);
		break;
	case 1:
	case 2:
	case 3:
		consume(&walk->pair, &walk->reader, &walk->stats);
		assert_int_equal(walk->reader.next, number);
		break;
	case 4:
		/* up to an older snapshot */
		ring_consume(&walk->pair.ring, &ops, &walk->reader, &walk->stats);
		assert_true(walk->reader.next <= number);
		break;
	case 5:
		walk_hostile(walk);
		break;
	default:
		walk->number += ring_pair_write(&walk->pair, number, random_body(number));
	}
}

static void test_random_walk(void **state _unused_)
{
	struct walk walk = { .reader.body_bytes = random_body, .seed = 42 };

	ring_pair_init(&walk.pair, SMALL, NEAR_THE_END);
	for (int i = 0; i < STEPS; i++) {
		walk_step(&walk);
		assert_int_equal(walk.reader.wrong, 0);
	}
	/* it was everywhere */
	assert_true(walk.pair.written > STEPS / 10);
	assert_true(walk.pair.refused > STEPS / 100);
	assert_true(walk.pair.bad_tails > STEPS / 100);
	assert_true(walk.overwritten > 10);
	assert_int_equal(walk.stats.bad_records, walk.overwritten);
	ring_pair_done(&walk.pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_tail),
		cmocka_unit_test(test_align),
		cmocka_unit_test(test_every_size_arrives),
		cmocka_unit_test(test_every_fill_level),
		cmocka_unit_test(test_random_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
