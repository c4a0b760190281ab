// SPDX-License-Identifier: Apache-2.0
/* Files that are compressed as a whole, by the tools that do it: all of them, their beginnings, what is damaged, and bombs. */
#include "fixture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "symbol/packed.h"

static const char *const tools[] = { "gzip -c", "xz -c", "xz -c --check=crc32 --lzma2=dict=1MiB", "zstd -q -c", "zstd -q -c -19 --no-check" };

struct answer {
	int error;
	uint64_t size;
	int fd;			/* of the caller */
};

static struct answer unpack(const void *bytes, size_t size, uint64_t deadline)
{
	int fd = memfd_create("packed", MFD_CLOEXEC), to = memfd_create("plain", MFD_CLOEXEC);
	struct answer answer = { .fd = to };

	assert_true(fd >= 0 && to >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	answer.error = packed_unpack(fd, size, deadline, to, &answer.size);
	close(fd);
	return answer;
}

static int error_of(const void *bytes, size_t size)
{
	struct answer answer = unpack(bytes, size, 0);

	close(answer.fd);
	return answer.error;
}

static void expect(const void *bytes, size_t size, const uint8_t *wanted, size_t wanted_size)
{
	struct answer answer = unpack(bytes, size, 0);
	_cleanup_free_ uint8_t *plain = malloc(wanted_size);
	struct stat st;

	assert_int_equal(answer.error, 0);
	assert_int_equal(answer.size, wanted_size);
	assert_int_equal(fstat(answer.fd, &st), 0);
	assert_int_equal(st.st_size, wanted_size);
	assert_int_equal(pread(answer.fd, plain, wanted_size, 0), wanted_size);
	assert_memory_equal(plain, wanted, wanted_size);
	close(answer.fd);
}

/* More than a step, and as good as code to compress. */
static uint8_t *make_plain(size_t *ret_size)
{
	fixture_run("cat /bin/bash /bin/ls | head -c 300000 >plain");
	return fixture_load(fixture_path("plain"), ret_size);
}

static uint8_t *pack(const char *tool, size_t *ret_size)
{
	fixture_run("%s plain >packed", tool);
	return fixture_load(fixture_path("packed"), ret_size);
}

static void each_tool_s_file_is_read(void **state _unused_)
{
	size_t plain_size, size;
	_cleanup_free_ uint8_t *plain = make_plain(&plain_size);

	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		_cleanup_free_ uint8_t *packed = pack(tools[i], &size), *both = malloc(2 * size), *twice = malloc(2 * plain_size);

		expect(packed, size, plain, plain_size);
		/* one behind the other */
		memcpy(both, packed, size);
		memcpy(both + size, packed, size);
		memcpy(twice, plain, plain_size);
		memcpy(twice + plain_size, plain, plain_size);
		expect(both, 2 * size, twice, 2 * plain_size);
		/* and something else behind it */
		memset(both + size, 'x', size);
		assert_int_equal(error_of(both, 2 * size), -EBADMSG);
	}
	assert_int_equal(error_of(plain, plain_size), -ENODATA);
	assert_int_equal(error_of("\x1f\x8b\x08", 3), -ENODATA);
}

static void what_ends_too_early_is_told(void **state _unused_)
{
	size_t plain_size, size;
	_cleanup_free_ uint8_t *plain = make_plain(&plain_size);

	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		_cleanup_free_ uint8_t *packed = pack(tools[i], &size);

		for (size_t cut = 6; cut < size; cut += cut < 24 ? 1 : size / 10)
			assert_int_equal(error_of(packed, cut), -EBADMSG);
		assert_int_equal(error_of(packed, size - 1), -EBADMSG);
	}
	/* the file is shorter than was said */
	{
		int fd = open(fixture_path("packed"), O_RDONLY | O_CLOEXEC), to = memfd_create("plain", MFD_CLOEXEC);
		uint64_t written;

		assert_int_equal(packed_unpack(fd, size + 1, 0, to, &written), -EBADMSG);
		close(fd);
		close(to);
	}
}

/* Each of some bytes; the checksum may be there, or in none. */
static void damage_is_survived(void **state _unused_)
{
	static const uint8_t bits[] = { 0x01, 0x80, 0xff };
	size_t plain_size, size, refused = 0, all = 0;
	_cleanup_free_ uint8_t *plain = make_plain(&plain_size);

	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		_cleanup_free_ uint8_t *packed = pack(tools[i], &size);

		for (size_t at = 0; at < size; at += at < 24 ? 1 : size / 6)
			for (size_t k = 0; k < ARRAY_SIZE(bits); k++) {
				packed[at] ^= bits[k];
				refused += error_of(packed, size) != 0;
				all++;
				packed[at] ^= bits[k];
			}
	}
	assert_true(all > 400 && refused > all / 2);
}

/* As much as is written, and one byte more; and terabytes. */
static void a_bomb_ends_at_the_limit(void **state _unused_)
{
	size_t size;

	/* xz takes longest for the same */
	for (size_t i = 0; i < ARRAY_SIZE(tools); i += 3) {
		struct answer answer;
		struct stat st;

		fixture_run("head -c %u /dev/zero | %s >packed", PACKED_BYTES_MAX, tools[i]);
		{
			_cleanup_free_ uint8_t *packed = fixture_load(fixture_path("packed"), &size), *more = malloc(2 * size);

			answer = unpack(packed, size, 0);
			assert_int_equal(answer.error, 0);
			assert_int_equal(answer.size, PACKED_BYTES_MAX);
			close(answer.fd);
			memcpy(more, packed, size);
			memcpy(more + size, packed, size);
			answer = unpack(more, 2 * size, 0);
			assert_int_equal(answer.error, -EFBIG);
			assert_int_equal(fstat(answer.fd, &st), 0);
			assert_true(st.st_size <= PACKED_BYTES_MAX);
			close(answer.fd);
		}
	}
}

/* What asks for more memory than a decoder may take. */
static void a_large_dictionary_is_refused(void **state _unused_)
{
	size_t plain_size, size;
	_cleanup_free_ uint8_t *plain = make_plain(&plain_size), *xz = pack("xz -c --lzma2=dict=128MiB", &size);

	assert_int_equal(error_of(xz, size), -EFBIG);
	free(xz);
	xz = pack("xz -c -9", &size);
	assert_int_equal(error_of(xz, size), -EFBIG);
	fixture_run("head -c 200M /dev/zero | zstd -q -c --long=27 >packed");
	free(xz);
	xz = fixture_load(fixture_path("packed"), &size);
	assert_int_equal(error_of(xz, size), -EFBIG);
}

static void time_ends_it(void **state _unused_)
{
	size_t plain_size, size;
	_cleanup_free_ uint8_t *plain = make_plain(&plain_size), *packed = pack(tools[0], &size);
	struct answer answer = unpack(packed, size, clock_monotonic() - 1);

	assert_int_equal(answer.error, -ETIME);
	close(answer.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_tool_s_file_is_read),
		cmocka_unit_test(what_ends_too_early_is_told),
		cmocka_unit_test(damage_is_survived),
		cmocka_unit_test(a_bomb_ends_at_the_limit),
		cmocka_unit_test(a_large_dictionary_is_refused),
		cmocka_unit_test(time_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
