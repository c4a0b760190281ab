// SPDX-License-Identifier: Apache-2.0
/* Tables on disk: found by content, checked when they come back, limited in bytes. */
#include "fixture.h"

#include "resolve/cache.h"
#include "unwind/compile.h"

#define MEMORY ((size_t)64 << 20)

static struct cache *open_cache(const char *name, uint64_t limit)
{
	const char *path = fixture_path(name);
	struct cache *cache;

	fixture_run("mkdir -p -m 0700 '%s'", path);
	assert_int_equal(cache_open(path, limit, &cache), 0);
	return cache;
}

/* The table of @path, from the cache or into it; it is what compiling makes. */
static size_t compile(struct cache *cache, const char *path)
{
	size_t image_size, size, plain_size;
	uint8_t *image = fixture_load(path, &image_size), key[KEY_BYTES];
	struct compile_stats stats;
	void *data, *plain;
	struct elf elf;

	assert_int_equal(elf_open_memory(&elf, image, image_size), 0);
	assert_int_equal(compile_elf(&elf, MEMORY, &plain, &plain_size, &stats), 0);
	assert_int_equal(key_make(&elf, key), 0);
	if (cache_get(cache, key, elf.machine, &data, &size) == 0) {
		assert_int_equal(size, plain_size);
		assert_memory_equal(data, plain, size);
		free(data);
	} else {
		cache_put(cache, key, plain, plain_size);
	}
	elf_close(&elf);
	free(plain);
	free(image);
	return plain_size;
}

static const char *program(const char *name, int number)
{
	char source[128];

	snprintf(source, sizeof(source),
		 "int leaf%d(int x) { return x; } int main(int c, char **v) { char b[%d]; (void)v; "
		 "return leaf%d(c) + (b[c] = 0); }\n", number, 100 + 64 * number, number);
	return fixture_build(name, "-O0 -fomit-frame-pointer -Wl,--build-id=0x1234", source);
}

static void tables_survive_a_restart(void **state)
{
	struct cache *cache = open_cache("restart", 1 << 20);
	const char *one = program("one", 1);

	(void)state;
	compile(cache, one);
	compile(cache, one);
	assert_int_equal(cache_stats(cache)->misses, 1);
	assert_int_equal(cache_stats(cache)->hits, 1);
	/* the same build-id is no reason to take another object's */
	compile(cache, program("two", 2));
	assert_int_equal(cache_stats(cache)->misses, 2);
	cache_close(cache);
	cache = open_cache("restart", 1 << 20);
	assert_int_equal(cache_stats(cache)->files, 2);
	compile(cache, one);
	assert_int_equal(cache_stats(cache)->hits, 1);
	assert_int_equal(cache_stats(cache)->misses, 0);
	cache_close(cache);
}

static void damaged_tables_are_made_again(void **state)
{
	struct cache *cache = open_cache("damaged", 1 << 20);
	const char *one = program("one", 1);

	(void)state;
	compile(cache, one);
	fixture_run("for f in damaged/*.table; do printf X | dd of=$f bs=1 seek=60 conv=notrunc "
		    "status=none; done");
	compile(cache, one);
	assert_int_equal(cache_stats(cache)->errors, 1);
	assert_int_equal(cache_stats(cache)->misses, 2);
	fixture_run("for f in damaged/*.table; do : >$f; done");
	compile(cache, one);
	fixture_run("for f in damaged/*.table; do truncate -s 40 $f; done");
	compile(cache, one);
	fixture_run("for f in damaged/*.table; do rm $f; ln -s /etc/passwd $f; done");
	compile(cache, one);
	fixture_run("for f in damaged/*.table; do rm -f $f; mkdir $f; done");
	compile(cache, one);
	assert_int_equal(cache_stats(cache)->hits, 0);
	cache_close(cache);
}

static void bytes_are_limited(void **state)
{
	struct cache *cache = open_cache("limited", 1 << 20);
	size_t size = compile(cache, program("first", 0)), used;

	(void)state;
	cache_close(cache);
	fixture_run("touch -d '2001-01-01' limited/*.table");
	cache = open_cache("limited", 8 * size);
	for (int i = 1; i < 12; i++)
		compile(cache, program("some", i));
	used = strtoull(fixture_ask("cat limited/*.table | wc -c"), NULL, 10);
	assert_true(cache_stats(cache)->evicted > 0);
	assert_int_equal(used, cache_stats(cache)->bytes);
	assert_true(used <= 8 * size);
	/* the oldest went first */
	compile(cache, program("first", 0));
	assert_int_equal(cache_stats(cache)->hits, 0);
	cache_close(cache);
	/* one that would fill a good part of it is not kept */
	cache = open_cache("small", size);
	compile(cache, program("first", 0));
	assert_int_equal(cache_stats(cache)->files, 0);
	cache_close(cache);
}

static void directories_of_others_are_refused(void **state)
{
	struct cache *cache;

	(void)state;
	fixture_run("mkdir -m 0777 open && chmod 0777 open");
	assert_int_equal(cache_open(fixture_path("open"), 1 << 20, &cache), -EPERM);
	assert_int_equal(cache_open(fixture_path("nowhere"), 1 << 20, &cache), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_survive_a_restart),
		cmocka_unit_test(damaged_tables_are_made_again),
		cmocka_unit_test(bytes_are_limited),
		cmocka_unit_test(directories_of_others_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
