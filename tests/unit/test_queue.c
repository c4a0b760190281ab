// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpulist.h"
#include "base/hash_table.h"
#include "base/queue.h"

struct entry {
	struct queue_item item;
	int number;
};

static struct queue *new_queue(size_t max_bytes)
{
	struct queue *queue;

	assert_int_equal(queue_new(POOL_QUEUES, max_bytes, &queue), 0);
	return queue;
}

static int push(struct queue *queue, int number, size_t bytes, enum queue_lane lane, int timeout)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	int r;

	entry->number = number;
	r = queue_push(queue, &entry->item, bytes, lane, timeout);
	if (r < 0)
		free(entry);
	return r;
}

static int pop(struct queue *queue, int timeout)
{
	struct queue_item *item;
	int r = queue_pop(queue, timeout, &item);
	struct entry *entry;

	if (r != 1)
		return r;
	entry = container_of(item, struct entry, item);
	r = entry->number;
	free(entry);
	return r;
}

static void drop(struct queue_item *item)
{
	free(container_of(item, struct entry, item));
}

static void test_order_and_lanes(void **state)
{
	struct queue *queue = new_queue(1000);

	(void)state;
	assert_int_equal(push(queue, 11, 10, QUEUE_NORMAL, 0), 0);
	assert_int_equal(push(queue, 12, 10, QUEUE_NORMAL, 0), 0);
	assert_int_equal(push(queue, 16, 10, QUEUE_SOON, 0), 0);
	assert_int_equal(push(queue, 13, 10, QUEUE_URGENT, 0), 0);
	assert_int_equal(push(queue, 14, 10, QUEUE_URGENT, 0), 0);
	assert_int_equal(pop(queue, 0), 13);
	assert_int_equal(pop(queue, 0), 14);
	assert_int_equal(pop(queue, 0), 16);
	assert_int_equal(pop(queue, 0), 11);
	assert_int_equal(push(queue, 15, 10, QUEUE_NORMAL, 0), 0);
	assert_int_equal(pop(queue, 0), 12);
	assert_int_equal(pop(queue, 0), 15);
	assert_int_equal(pop(queue, 0), 0);
	queue_free(queue, drop);
}

static bool is_two(struct queue_item *item)
{
	return container_of(item, struct entry, item)->number == 2;
}

static int pop_unheld(struct queue *queue)
{
	struct queue_item *item = queue_pop_unheld(queue, is_two);
	const int number = item ? container_of(item, struct entry, item)->number : 0;

	if (item)
		drop(item);
	return number;
}

/* What comes after it in its lane stays, other lanes go on, and whoever waits for their room, too. */
static void test_an_item_holds_its_lane(void **state)
{
	struct queue *queue = new_queue(100);

	(void)state;
	assert_int_equal(pop_unheld(queue), 0);
	assert_int_equal(push(queue, 1, 20, QUEUE_URGENT, 0), 0);
	assert_int_equal(push(queue, 2, 20, QUEUE_URGENT, 0), 0);
	assert_int_equal(push(queue, 3, 20, QUEUE_URGENT, 0), 0);
	assert_int_equal(push(queue, 4, 40, QUEUE_SOON, 0), 0);
	assert_int_equal(push(queue, 5, 40, QUEUE_SOON, 0), -EAGAIN);
	assert_int_equal(pop_unheld(queue), 1);
	assert_int_equal(pop_unheld(queue), 4);
	assert_int_equal(pop_unheld(queue), 0);
	assert_int_equal(push(queue, 5, 40, QUEUE_SOON, 0), 0);
	assert_int_equal(pop(queue, 0), 2);
	assert_int_equal(pop_unheld(queue), 3);
	assert_int_equal(pop_unheld(queue), 5);
	queue_free(queue, drop);
}

static void test_bytes_are_bounded(void **state)
{
	struct queue *queue = new_queue(100);
	size_t before = pool_get(POOL_QUEUES)->used;

	(void)state;
	assert_int_equal(push(queue, 1, 60, QUEUE_NORMAL, 0), 0);
	assert_int_equal(push(queue, 2, 41, QUEUE_NORMAL, 0), -EAGAIN);
	assert_int_equal(push(queue, 3, 40, QUEUE_NORMAL, 0), 0);
	assert_int_equal(queue_bytes(queue), 100);
	assert_int_equal(pool_get(POOL_QUEUES)->used - before, 100);
	/* a size near the type's limit must not wrap past the bound */
	assert_int_equal(push(queue, 4, SIZE_MAX - 50, QUEUE_NORMAL, 0), -EAGAIN);
	assert_int_equal(pop(queue, 0), 1);
	assert_int_equal(pop(queue, 0), 3);
	/* one that is too large for the bound passes when it is alone */
	assert_int_equal(push(queue, 5, 5000, QUEUE_NORMAL, 0), 0);
	assert_int_equal(push(queue, 6, 1, QUEUE_NORMAL, 0), -EAGAIN);
	queue_free(queue, drop);
	assert_int_equal(pool_get(POOL_QUEUES)->used, before);
}

/* What somebody else bounds is never refused, and what is bounded here waits for all of it. */
static void test_what_is_put_finds_room(void **state)
{
	struct queue *queue = new_queue(100);
	struct entry *entry;

	(void)state;
	assert_int_equal(push(queue, 1, 100, QUEUE_URGENT, 0), 0);
	for (int i = 2; i < 5; i++) {
		entry = calloc(1, sizeof(*entry));
		entry->number = i;
		assert_int_equal(queue_put(queue, &entry->item, 60, QUEUE_URGENT), 0);
	}
	assert_int_equal(queue_bytes(queue), 280);
	for (int i = 1; i < 4; i++) {
		assert_int_equal(push(queue, 9, 50, QUEUE_NORMAL, 0), -EAGAIN);
		assert_int_equal(pop(queue, 0), i);
	}
	assert_int_equal(push(queue, 9, 40, QUEUE_NORMAL, 0), 0);
	queue_close(queue);
	entry = calloc(1, sizeof(*entry));
	assert_int_equal(queue_put(queue, &entry->item, 1, QUEUE_URGENT), -EPIPE);
	free(entry);
	queue_free(queue, drop);
}

static void test_pool_limit_holds(void **state)
{
	struct queue *queue = new_queue(SIZE_MAX);
	size_t limit = pool_get(POOL_QUEUES)->limit;

	(void)state;
	assert_int_equal(push(queue, 1, limit - 10, QUEUE_NORMAL, 0), 0);
	assert_int_equal(push(queue, 2, 11, QUEUE_NORMAL, 0), -EAGAIN);
	assert_int_equal(push(queue, 3, 10, QUEUE_NORMAL, 0), 0);
	queue_free(queue, drop);
}

static void test_timeout_and_close(void **state)
{
	struct queue *queue = new_queue(100);
	uint64_t start = clock_monotonic();

	(void)state;
	assert_int_equal(pop(queue, 30), 0);
	assert_true(clock_monotonic() - start >= 29 * NSEC_PER_MSEC);
	assert_int_equal(push(queue, 1, 90, QUEUE_NORMAL, 0), 0);
	start = clock_monotonic();
	assert_int_equal(push(queue, 2, 90, QUEUE_NORMAL, 30), -EAGAIN);
	assert_true(clock_monotonic() - start >= 29 * NSEC_PER_MSEC);
	queue_close(queue);
	assert_int_equal(push(queue, 3, 1, QUEUE_NORMAL, -1), -EPIPE);
	assert_int_equal(pop(queue, -1), 1);
	assert_int_equal(pop(queue, -1), -EPIPE);
	queue_free(queue, drop);
}

enum { MANY = 20000 };

static void *produce(void *ctx)
{
	for (int i = 1; i <= MANY; i++)
		assert_int_equal(push(ctx, i, 1 + i % 7, QUEUE_NORMAL, -1), 0);
	queue_close(ctx);
	return NULL;
}

static void test_threads_wait_for_each_other(void **state)
{
	struct queue *queue = new_queue(20);
	pthread_t thread;
	int expected = 1, got;

	(void)state;
	pthread_create(&thread, NULL, produce, queue);
	while ((got = pop(queue, -1)) != -EPIPE)
		assert_int_equal(got, expected++);
	assert_int_equal(expected, MANY + 1);
	pthread_join(thread, NULL);
	queue_free(queue, drop);
}

struct reader {
	struct queue *queue;
	_Atomic int tid, last;
};

static void *read_all(void *ctx)
{
	struct reader *reader = ctx;
	int got;

	reader->tid = (int)gettid();
	while ((got = pop(reader->queue, -1)) != -EPIPE)
		reader->last = got;
	return NULL;
}

static void pause_ms(unsigned int ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long)(ms * NSEC_PER_MSEC) }, NULL);
}

/* There is nothing that it sleeps for but an item. */
static void await_sleep(const struct reader *reader)
{
	char path[64], state = 0;
	FILE *file;

	for (int ms = 0; state != 'S'; ms++) {
		assert_in_range(ms, 0, 10000);
		pause_ms(1);
		if (!reader->tid)
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", reader->tid);
		file = fopen(path, "re");
		assert_non_null(file);
		assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
		fclose(file);
	}
}

static void await(const struct reader *reader, int number)
{
	for (int ms = 0; reader->last != number && ms < 10000; ms++)
		pause_ms(1);
	assert_int_equal(reader->last, number);
}

static int add(struct queue *queue, int number, size_t bytes)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	int r;

	entry->number = number;
	r = queue_add(queue, &entry->item, bytes, QUEUE_NORMAL);
	if (r < 0)
		free(entry);
	return r;
}

/* Many small items cost one wakeup, and so many that there is work for two CPUs wait for none. */
static void test_a_reader_is_woken_up_once_for_several(void **state)
{
	struct reader reader = { .queue = new_queue(2 * QUEUE_SMALL_BYTES) };
	pthread_t thread;

	(void)state;
	queue_rouse(reader.queue);
	assert_int_equal(add(reader.queue, 1, 2 * QUEUE_SMALL_BYTES), 0);
	assert_int_equal(add(reader.queue, 2, 1), -EAGAIN);
	pthread_create(&thread, NULL, read_all, &reader);
	await(&reader, 1);
	await_sleep(&reader);
	for (int i = 2; i < 6; i++)
		assert_int_equal(add(reader.queue, i, 10), 0);
	pause_ms(50);
	assert_int_equal(reader.last, 1);
	queue_rouse(reader.queue);
	await(&reader, 5);
	await_sleep(&reader);
	assert_int_equal(add(reader.queue, 6, QUEUE_SMALL_BYTES - 1), 0);
	pause_ms(50);
	assert_int_equal(reader.last, 5);
	assert_int_equal(add(reader.queue, 7, 1), 0);
	await(&reader, 7);
	queue_close(reader.queue);
	assert_int_equal(add(reader.queue, 8, 1), -EPIPE);
	pthread_join(thread, NULL);
	queue_free(reader.queue, drop);
}

static bool is_found(const struct hash_table *table, uint64_t hash, const struct hash_link *wanted)
{
	struct index_probe probe = hash_table_first(table, hash);
	const struct hash_link *link;
	bool is = false;

	while ((link = hash_table_next(table, &probe)))
		is |= link == wanted;
	return is;
}

static void test_hash_table(void **state)
{
	enum { COUNT = 1000 };
	struct hash_table table = { .index.pool = POOL_PROCESSES };
	static struct hash_link links[COUNT];
	size_t before = pool_get(POOL_PROCESSES)->used;

	(void)state;
	assert_false(is_found(&table, 0, &links[0]));
	/* every hash twice */
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(hash_table_add(&table, &links[i], i / 2 * 4711), 0);
	for (size_t i = 0; i < COUNT; i++)
		assert_true(is_found(&table, i / 2 * 4711, &links[i]));
	for (size_t i = 0; i < COUNT; i += 2)
		hash_table_remove(&table, &links[i]);
	assert_int_equal(table.count, COUNT / 2);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(is_found(&table, i / 2 * 4711, &links[i]), i % 2);
	hash_table_done(&table);
	assert_int_equal(pool_get(POOL_PROCESSES)->used, before);
}

/* Runs of slots that wrap around the table's end, some of whose entries begin in it and some before. */
static void test_what_is_removed_hides_nothing(void **state)
{
	enum { COUNT = 500, PLACES = 40, ROUNDS = 20000 };
	struct hash_table table = { .index.pool = POOL_PROCESSES };
	static struct hash_link links[COUNT];
	static bool is_in[COUNT];
	uint32_t number = 1;

	(void)state;
	for (size_t round = 0; round < ROUNDS; round++) {
		size_t i = (number = number * 1664525 + 1013904223) / 65536 % COUNT;
		/* the last slots of a table of any size, and the first ones */
		uint64_t hash = (uint64_t)i << 32 | (uint32_t)(i % PLACES - PLACES / 2);

		if (is_in[i])
			hash_table_remove(&table, &links[i]);
		else
			assert_int_equal(hash_table_add(&table, &links[i], hash), 0);
		is_in[i] = !is_in[i];
		if (round % 100)
			continue;
		for (size_t k = 0; k < COUNT; k++)
			assert_int_equal(is_found(&table, (uint64_t)k << 32 | (uint32_t)(k % PLACES - PLACES / 2),
						  &links[k]), is_in[k]);
		for (uint32_t k = 0; k < table.count; k++)
			assert_int_equal(table.links[k]->position, k);
	}
	hash_table_done(&table);
}

static void test_cpulist(void **state)
{
	static const char *const bad[] = { "-1", "1-", "3-1", "1,,2", "1,", "a", "1 2", "70000",
					   "0x3", "99999999999999999999" };
	struct cpulist list;

	(void)state;
	assert_int_equal(cpulist_parse("0-2,64,130-131\n", &list), 0);
	for (uint32_t cpu = 0; cpu < 256; cpu++)
		assert_int_equal(cpulist_has(&list, cpu), cpu <= 2 || cpu == 64 || cpu == 130 ||
							   cpu == 131);
	cpulist_done(&list);
	assert_int_equal(cpulist_parse("", &list), 0);
	assert_false(cpulist_has(&list, 0));
	cpulist_done(&list);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(cpulist_parse(bad[i], &list), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_lanes),
		cmocka_unit_test(test_an_item_holds_its_lane),
		cmocka_unit_test(test_bytes_are_bounded),
		cmocka_unit_test(test_what_is_put_finds_room),
		cmocka_unit_test(test_pool_limit_holds),
		cmocka_unit_test(test_timeout_and_close),
		cmocka_unit_test(test_threads_wait_for_each_other),
		cmocka_unit_test(test_a_reader_is_woken_up_once_for_several),
		cmocka_unit_test(test_hash_table),
		cmocka_unit_test(test_what_is_removed_hides_nothing),
		cmocka_unit_test(test_cpulist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
