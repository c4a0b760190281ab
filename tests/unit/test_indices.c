// SPDX-License-Identifier: Apache-2.0
/* Indices of DWARF on disk while recording: who may have written them, for which file they are, and that nobody waits for them. */
#include "fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/file.h"
#include "helper/index_store.h"
#include "helper/memfd.h"

static _Atomic bool is_held;	/* the disk does not answer */

static int slow_read(int directory, const char *name, uint64_t *ret_size)
{
	while (is_held)
		usleep(1000);
	return index_store_read(directory, name, ret_size);
}

#define index_store_read slow_read
#include "resolve/indices.c"

static struct indices *open_indices(uint64_t limit_bytes)
{
	const struct indices_options options = { .directory = fixture_path("indices"), .limit_bytes = limit_bytes };
	struct indices *indices;

	assert_int_equal(indices_new(&options, &indices), 0);
	return indices;
}

/* When all is written. */
static void close_indices(struct indices *indices)
{
	bool is_busy = true;

	while (is_busy) {
		pthread_mutex_lock(&indices->lock);
		is_busy = indices->job_count;
		pthread_mutex_unlock(&indices->lock);
		usleep(1000);
	}
	indices_free(indices);
}

static struct object *object_of(uint64_t inode, unsigned int disk)
{
	struct object *object = object_new(OBJECT_FILE, "/usr/bin/program");

	object->dev = makedev(disk, 1);
	object->inode = inode;
	object->ctime_ns = 12345;
	object->size = 1000;
	strcpy(object->build_id, "abcdef0123456789");
	return object;
}

static void put(struct indices *indices, const struct object *object, const void *bytes, size_t size)
{
	int fd = memfd_new();

	assert_int_equal(file_write(fd, bytes, size), 0);
	fd = memfd_seal(&fd);
	indices_put(indices, object, 1, &fd, size);
	assert_int_equal(fd, -1);
}

static struct indices_stats stats_of(struct indices *indices)
{
	struct indices_stats stats = { 0 };

	indices_stats(indices, &stats);
	return stats;
}

/* What it is for @object, or nothing. */
static const char *get(struct indices *indices, const struct object *object)
{
	static char text[64];
	uint64_t size = 0;
	uint64_t late;
	int fd = -1, r;

	/* on a host that is busy the thread may not come to it, but when that is what is tested */
	do {
		late = stats_of(indices).late;
		r = indices_get(indices, object, &fd, &size);
	} while (!is_held && stats_of(indices).late > late);
	text[0] = '\0';
	if (r < 0) {
		assert_int_equal(r, -ENOENT);
		return text;
	}
	assert_true(size < sizeof(text));
	assert_int_equal(pread(fd, text, size, 0), size);
	text[size] = '\0';
	close(fd);
	return text;
}

static void an_index_is_there_for_the_next_daemon(void **state)
{
	struct object *object = object_of(1, 8);
	struct indices *indices = open_indices(1 << 20);
	struct stat st;

	(void)state;
	assert_string_equal(get(indices, object), "");
	put(indices, object, "index", 5);
	close_indices(indices);
	assert_int_equal(stat(fixture_path("indices"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	indices = open_indices(1 << 20);
	assert_string_equal(get(indices, object), "index");
	indices_judge(indices, object, 0);
	assert_int_equal(stats_of(indices).loaded, 1);
	assert_int_equal(stats_of(indices).made, 0);
	close_indices(indices);
	object_unref(object);
}

/* The same build-id, and another file: a container's can say what it likes, of itself. */
static void an_index_is_its_files_alone(void **state)
{
	struct object *object = object_of(2, 8);
	struct indices *indices = open_indices(1 << 20);

	(void)state;
	put(indices, object, "index", 5);
	close_indices(indices);
	indices = open_indices(1 << 20);
	for (int i = 0; i < 5; i++) {
		struct object *other = object_of(2, 8);

		other->dev += i == 0;
		other->inode += i == 1;
		other->ctime_ns += i == 2;
		other->size += i == 3;
		other->build_id[0] = i == 4 ? 'b' : 'a';
		assert_string_equal(get(indices, other), "");
		object_unref(other);
	}
	assert_string_equal(get(indices, object), "index");
	close_indices(indices);
	object_unref(object);
}

static void the_numbers_of_devices_last_for_a_boot(void **state)
{
	struct object *object = object_of(3, 8);
	struct indices one = { .boot = "one" }, two = { .boot = "two" };
	char name[CACHE_NAME_BYTES], again[CACHE_NAME_BYTES];

	(void)state;
	name_of(&one, object, name);
	name_of(&one, object, again);
	assert_string_equal(name, again);
	name_of(&two, object, again);
	assert_string_not_equal(name, again);
	object_unref(object);
}

/* On the system's own devices it is found by the next boot, whatever their numbers are then; and of no other device there. */
static void an_index_of_the_systems_own_lasts(void **state)
{
	struct object *object = object_of(3, 8), *other = object_of(3, 9);
	struct indices one = { .boot = "one", .own = { makedev(1, 1), makedev(8, 1) } };
	struct indices two = { .boot = "two", .own = { makedev(8, 1), makedev(9, 1) } };
	char name[CACHE_NAME_BYTES], again[CACHE_NAME_BYTES];
	struct indices *indices;
	struct stat st;

	(void)state;
	name_of(&one, object, name);
	/* the second directory has another device number now, and the first one its number */
	name_of(&two, other, again);
	assert_string_equal(name, again);
	name_of(&two, object, again);
	assert_string_not_equal(name, again);
	two.own[1] = 0;
	name_of(&two, other, again);
	assert_string_not_equal(name, again);
	/* which these are */
	indices = open_indices(1 << 20);
	assert_int_equal(stat("/", &st), 0);
	assert_int_equal(indices->own[0], st.st_dev);
	assert_int_equal(stat("/usr", &st), 0);
	assert_int_equal(indices->own[1], st.st_dev);
	assert_int_equal(stat(fixture_path("indices"), &st), 0);
	assert_int_equal(indices->own[3], st.st_dev);
	close_indices(indices);
	object_unref(object);
	object_unref(other);
}

static void what_others_may_have_written_is_refused(void **state)
{
	struct object *object = object_of(4, 8);
	struct indices *indices = open_indices(1 << 20);
	const struct indices_options options = { .directory = fixture_path("indices"), .limit_bytes = 1 };
	struct indices_stats stats;

	(void)state;
	fixture_run("rm -f indices/*");
	put(indices, object, "index", 5);
	close_indices(indices);
	fixture_run("chmod g+w indices/*.index");
	indices = open_indices(1 << 20);
	assert_string_equal(get(indices, object), "");
	/* and made anew */
	put(indices, object, "again", 5);
	close_indices(indices);
	indices = open_indices(1 << 20);
	assert_string_equal(get(indices, object), "again");
	/* the parser finds it damaged */
	indices_judge(indices, object, -EBADMSG);
	stats = stats_of(indices);
	assert_int_equal(stats.refused, 1);
	assert_int_equal(stats.loaded, 0);
	close_indices(indices);
	assert_string_equal(fixture_ask("ls indices"), "");
	if (!geteuid()) {
		indices = open_indices(1 << 20);
		put(indices, object, "index", 5);
		close_indices(indices);
		fixture_run("chown 12345 indices/*.index");
		indices = open_indices(1 << 20);
		assert_string_equal(get(indices, object), "");
		assert_int_equal(stats_of(indices).refused, 1);
		close_indices(indices);
	}
	fixture_run("chmod g+w indices");
	assert_int_equal(indices_new(&options, &indices), -EPERM);
	fixture_run("chmod g-w indices");
	object_unref(object);
}

static void there_are_no_more_bytes_than_may_be(void **state)
{
	static const char half[400] = "half";
	struct object *object[3];
	struct indices *indices = open_indices(1000);
	static char large[1001];

	(void)state;
	fixture_run("rm -f indices/*");
	for (unsigned int i = 0; i < 3; i++) {
		object[i] = object_of(10 + i, 8);
		put(indices, object[i], half, sizeof(half));
		close_indices(indices);
		indices = open_indices(1000);
	}
	assert_string_equal(fixture_ask("ls indices | wc -l"), "2");
	put(indices, object[0], large, sizeof(large));
	/* it is behind the one that is to be written */
	while (!stats_of(indices).dropped)
		usleep(1000);
	assert_string_equal(fixture_ask("ls indices | wc -l"), "2");
	close_indices(indices);
	for (unsigned int i = 0; i < 3; i++)
		object_unref(object[i]);
}

/* What is to be written while the disk is slow is bounded, and a question has its time. */
static void nobody_waits_for_the_disk(void **state)
{
	struct object *object = object_of(20, 8);
	struct indices *indices = open_indices(1 << 20);

	(void)state;
	put(indices, object, "index", 5);
	close_indices(indices);
	indices = open_indices(1 << 20);
	is_held = true;
	assert_string_equal(get(indices, object), "");
	assert_int_equal(stats_of(indices).late, 1);
	for (int i = 0; i < INDICES_QUEUE_MAX + 2; i++)
		put(indices, object, "other", 5);
	assert_int_equal(stats_of(indices).made, INDICES_QUEUE_MAX + 2);
	assert_int_equal(stats_of(indices).dropped, 2);
	is_held = false;
	close_indices(indices);
	indices = open_indices(1 << 20);
	assert_string_equal(get(indices, object), "other");
	close_indices(indices);
	object_unref(object);
}

static void *let_go(void *ctx)
{
	struct indices *indices = ctx;
	bool is_ending = false;

	while (!is_ending) {
		usleep(1000);
		pthread_mutex_lock(&indices->lock);
		is_ending = indices->is_ending;
		pthread_mutex_unlock(&indices->lock);
	}
	is_held = false;
	return NULL;
}

/* Nor does one that answers no more: the thread is left with it. */
static void nobody_waits_at_the_end(void **state)
{
	struct object *object = object_of(32, 8);
	struct indices *indices = open_indices(1 << 20);
	const size_t charged = pool_get(POOL_SYMBOLS)->used;
	uint64_t began;

	(void)state;
	is_held = true;
	assert_string_equal(get(indices, object), "");
	put(indices, object, "index", 5);
	began = clock_monotonic();
	indices_free(indices);
	assert_true(clock_monotonic() - began >= INDICES_WAIT_MS * NSEC_PER_MSEC);
	assert_int_equal(pool_get(POOL_SYMBOLS)->used, charged);
	is_held = false;
	/* it frees what it had; the sanitizer would say if not all of it */
	while (pool_get(POOL_SYMBOLS)->used == charged)
		usleep(1000);
	object_unref(object);
}

/* A disk that is slow does not hold up who ends. */
static void what_waits_at_the_end_is_dropped(void **state)
{
	struct object *object = object_of(30, 8);
	struct indices *indices = open_indices(1 << 20);
	pthread_t thread;

	(void)state;
	fixture_run("rm -f indices/*");
	is_held = true;
	assert_string_equal(get(indices, object), "");
	for (int i = 0; i < 3; i++)
		put(indices, object, "index", 5);
	assert_int_equal(pthread_create(&thread, NULL, let_go, indices), 0);
	indices_free(indices);
	pthread_join(thread, NULL);
	assert_string_equal(fixture_ask("ls indices | wc -l"), "0");
	object_unref(object);
}

/* @size bytes of nothing; until they are written, or found to be too many. */
static void put_large(struct indices *indices, const struct object *object, uint32_t payer, uint64_t size)
{
	bool is_busy = true;
	int fd = memfd_new();

	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	fd = memfd_seal(&fd);
	indices_put(indices, object, payer, &fd, size);
	while (is_busy) {
		usleep(1000);
		pthread_mutex_lock(&indices->lock);
		is_busy = indices->job_count;
		pthread_mutex_unlock(&indices->lock);
	}
}

/* Who has always another index is not given all that is written for others. */
static void who_writes_much_is_kept_from_more(void **state)
{
	struct object *object = object_of(31, 8);
	struct indices *indices = open_indices(1 << 20);

	(void)state;
	assert_true(indices_may_put(indices, 1));
	put_large(indices, object, 1, INDICES_CREDIT_BYTES / 4 * 3);
	assert_false(indices_may_put(indices, 1));
	assert_true(indices_may_put(indices, 2));
	put_large(indices, object, 2, INDICES_CREDIT_BYTES / 2);
	assert_false(indices_may_put(indices, 3));
	close_indices(indices);
	object_unref(object);
}

/* One that is larger than all that may wait is kept, if none waits. What finds no room is not paid for. */
static void a_large_index_is_kept_and_none_beside_it(void **state)
{
	struct object *object = object_of(33, 8), *other = object_of(34, 8);
	struct indices *indices = open_indices(64 << 20);
	const uint64_t size = INDICES_QUEUE_BYTES + 5;
	int fd = -1;

	(void)state;
	fixture_run("rm -f indices/*");
	put_large(indices, object, 1, size);
	assert_int_equal(stats_of(indices).written, 1);
	assert_int_equal(strtoull(fixture_ask("stat -c %%s indices/*"), NULL, 10), size);
	is_held = true;
	assert_string_equal(get(indices, other), "");
	put(indices, other, "index", 5);
	indices_put(indices, object, 2, &fd, INDICES_CREDIT_BYTES);
	assert_int_equal(stats_of(indices).dropped, 1);
	assert_true(indices_may_put(indices, 2));
	is_held = false;
	close_indices(indices);
	object_unref(object);
	object_unref(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_index_is_there_for_the_next_daemon),
		cmocka_unit_test(an_index_is_its_files_alone),
		cmocka_unit_test(the_numbers_of_devices_last_for_a_boot),
		cmocka_unit_test(an_index_of_the_systems_own_lasts),
		cmocka_unit_test(what_others_may_have_written_is_refused),
		cmocka_unit_test(there_are_no_more_bytes_than_may_be),
		cmocka_unit_test(nobody_waits_for_the_disk),
		cmocka_unit_test(what_waits_at_the_end_is_dropped),
		cmocka_unit_test(nobody_waits_at_the_end),
		cmocka_unit_test(who_writes_much_is_kept_from_more),
		cmocka_unit_test(a_large_index_is_kept_and_none_beside_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
