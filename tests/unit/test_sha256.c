// SPDX-License-Identifier: Apache-2.0
/* By the examples of FIPS 180-4 and one of their million letters. */
#include "fixture.h"

#include <string.h>

#include "base/sha256.h"

enum { MILLION = 1000000 };

static const struct {
	const char *text, *digest;
} examples[] = {
	{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
	  "mnopqrstnopqrstu",
	  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
};

static void assert_digest(const uint8_t digest[static SHA256_BYTES], const char *expected)
{
	char hex[2 * SHA256_BYTES + 1];

	for (size_t i = 0; i < SHA256_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(hex, expected);
}

static void it_is_sha_256(void **state _unused_)
{
	uint8_t digest[SHA256_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		sha256_of(&(struct sha256_part){ examples[i].text, strlen(examples[i].text) }, 1, digest);
		assert_digest(digest, examples[i].digest);
	}
}

/* Wherever it is cut, in as many parts as there may be. */
static void parts_are_one_text(void **state _unused_)
{
	const char *text = examples[3].text;
	const size_t size = strlen(text), step = size / SHA256_PARTS_MAX;
	uint8_t digest[SHA256_BYTES];

	for (size_t first = 0; first <= step; first++) {
		struct sha256_part parts[SHA256_PARTS_MAX];
		size_t at = 0;

		for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
			const size_t end = i + 1 == ARRAY_SIZE(parts) ? size : first + i * step;

			parts[i] = (struct sha256_part){ text + at, end - at };
			at = end;
		}
		sha256_of(parts, ARRAY_SIZE(parts), digest);
		assert_digest(digest, examples[3].digest);
	}
}

static void it_may_come_piece_by_piece(void **state _unused_)
{
	static const char letters[1000] = { [0 ... 999] = 'a' };
	uint8_t digest[SHA256_BYTES];

	for (size_t piece = 1; piece <= sizeof(letters); piece += 37) {
		_cleanup_(sha256_done) struct sha256 sha = { 0 };

		assert_int_equal(sha256_init(&sha), 0);
		for (size_t done = 0, size; done < MILLION; done += size) {
			size = min_of(piece, MILLION - done);
			sha256_add(&sha, letters, size);
		}
		sha256_get(&sha, digest);
		assert_digest(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_sha_256),
		cmocka_unit_test(parts_are_one_text),
		cmocka_unit_test(it_may_come_piece_by_piece),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
