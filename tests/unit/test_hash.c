// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include <string.h>

#include "base/hash.h"
#include "process/files.h"

/* Key and message are 0, 1, 2, ... as in the paper; the hashes by the message's length. */
static void it_is_siphash_1_3(void **state _unused_)
{
	static const uint64_t expected[] = {
		0xabac0158050fc4dc, 0xc9f49bf37d57ca93, 0x82cb9b024dc7d44d, 0x8bf80ab8e7ddf7fb,
		0xcf75576088d38328, 0xdef9d52f49533b67, 0xc50d2b50c59f22a7, 0xd3927d989bb11140,
		0x369095118d299a8e, 0x25a48eb36c063de4, 0x79de85ee92ff097f, 0x70c118c1f94dc352,
		0x78a384b157b4d9a2, 0x306f760c1229ffa7, 0x605aa111c0f95d34, 0xd320d86d2a519956,
	};
	unsigned char message[ARRAY_SIZE(expected)];

	hash_set_key(0x0706050403020100, 0x0f0e0d0c0b0a0908);
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		message[i] = (unsigned char)i;
		assert_true(hash_bytes(message, i) == expected[i]);
	}
}

static void another_key_gives_other_hashes(void **state _unused_)
{
	uint64_t first;

	hash_set_key(1, 2);
	first = hash_string("same");
	assert_true(hash_string("same") == first);
	hash_set_key(1, 3);
	assert_true(hash_string("same") != first);
	hash_set_key(0, 2);
	assert_true(hash_string("same") != first);
}

/* Slots that are looked at to find the entry that is the farthest from its place. */
static uint32_t longest_probe(const struct hash_table *table)
{
	const struct index *index = &table->index;
	uint32_t longest = 0;

	for (uint32_t i = 0; i <= index->mask; i++)
		if (index->slots[i].position)
			longest = max_of(longest, 1 + ((i - (uint32_t)table->links[index->slots[i].position - 1]->hash) &
						       index->mask));
	return longest;
}

/*
 * Paths that came to one hash: each ends with a word that a multiplication made nothing of what was
 * before it.
 */
static void paths_cannot_be_chosen_to_collide(void **state _unused_)
{
	enum { PATHS = 4096 };
	static struct mapped_file *files[PATHS];
	struct hash_table table = { .index.pool = POOL_PROCESSES };
	struct file_key key = { .major = 8, .inode = 1 };

	for (size_t i = 0; i < PATHS; i++) {
		/* 0xd6e8feb86659fd93 as it lies in memory */
		static const char annihilator[] = "\x93\xfd\x59\x66\xb8\xfe\xe8\xd6";
		char path[64];

		snprintf(path, sizeof(path), "/tmp/%011zu%s", i, annihilator);
		assert_int_equal(strlen(path), 24);
		key.path = path;
		files[i] = files_get(&table, &key);
		assert_non_null(files[i]);
		files_use(&table, files[i]);
	}
	assert_int_equal(table.count, PATHS);
	/* a table that is half full: by chance few are ten slots away, and none a hundred */
	assert_in_range(longest_probe(&table), 1, 100);
	for (size_t i = 0; i < PATHS; i++) {
		files_unuse(&table, files[i]);
		mapped_file_unref(files[i]);
	}
	hash_table_done(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* by the random key, before another is set */
		cmocka_unit_test(paths_cannot_be_chosen_to_collide),
		cmocka_unit_test(it_is_siphash_1_3),
		cmocka_unit_test(another_key_gives_other_hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
