// SPDX-License-Identifier: Apache-2.0
/* Perf maps and jitdumps: which function is where when they overlap, and what hostile ones cost. */
#include "fixture.h"

#include <sys/mman.h>

#include "base/deadline.h"
#include "symbol/jitdump.h"
#include "symbol/perf_map.h"

/* A file of @size bytes. */
static int file_of(const void *bytes, size_t size)
{
	int fd = memfd_create("code", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	return fd;
}

static struct code_read read_map(const char *text, size_t size)
{
	struct code_read read;
	int fd = file_of(text, size);

	assert_int_equal(perf_map_read(fd, 0, size, DEADLINE_NONE, &read), 0);
	assert_true(code_table_is_valid(&read.table, read.end));
	close(fd);
	return read;
}

static void expect(const char *text, const struct code_table *table, uint64_t address, const char *name)
{
	const struct code *code = code_table_find(table, address);

	if (!name) {
		assert_null(code);
		return;
	}
	assert_non_null(code);
	assert_memory_equal(text + code->name, name, strlen(name));
	assert_int_equal(text[code->name + strlen(name)], '\n');
}

static void lines_are_functions(void **state)
{
	static const char text[] = "7f0000001000 20 first\n"
				   "0x00007f0000002000 0x10 void Main.run(java.lang.String)\n"
				   "7F0000003000\t1F\tLazyCompile:*f /a b.js:1:1\n"
				   "7f0000004000 10 cut by the end of the fi";
	struct code_read read = read_map(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(read.table.count, 3);
	assert_int_equal(read.bad, 0);
	/* that line's end is not there yet */
	assert_int_equal(read.end, strstr(text, "7f0000004000") - text);
	expect(text, &read.table, 0x7f0000001000, "first");
	expect(text, &read.table, 0x7f000000101f, "first");
	expect(text, &read.table, 0x7f0000001020, NULL);
	expect(text, &read.table, 0x7f0000000fff, NULL);
	expect(text, &read.table, 0x7f0000002001, "void Main.run(java.lang.String)");
	expect(text, &read.table, 0x7f000000301e, "LazyCompile:*f /a b.js:1:1");
	code_table_free(&read.table);
}

static void what_is_no_line_is_counted(void **state)
{
	static const char text[] = "\n"
				   "garbage\n"
				   "1000 10\n"
				   "1000 10 \n"
				   "1000  name\n"
				   "0x 10 name\n"
				   "xyz 10 name\n"
				   "1000 0 empty\n"
				   "1000 100000000 too_large\n"
				   "fffffffffffffff0 11 wraps\n"
				   "11111111111111111 10 too_many_digits\n"
				   "-1000 10 negative\n"
				   "2000 10 good\n";
	struct code_read read = read_map(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(read.bad, 12);
	assert_int_equal(read.table.count, 1);
	assert_int_equal(read.end, sizeof(text) - 1);
	expect(text, &read.table, 0x2000, "good");
	code_table_free(&read.table);
}

static void lines_without_an_end_are_passed_over(void **state)
{
	const size_t size = 3 << 20;
	char *text = malloc(size);
	struct code_read read;

	(void)state;
	memset(text, 'a', size);
	read = read_map(text, size);
	assert_int_equal(read.table.count, 0);
	assert_true(read.bad > 0);
	assert_true(size - read.end <= PERF_MAP_LINE_MAX);
	code_table_free(&read.table);
	memset(text, 0, size);
	read = read_map(text, size);
	assert_int_equal(read.table.count, 0);
	code_table_free(&read.table);
	free(text);
}

static void reading_stops_in_time(void **state)
{
	static const char text[] = "1000 10 name\n";
	struct code_read read;
	int fd = file_of(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(perf_map_read(fd, 0, sizeof(text) - 1, clock_monotonic(), &read), 0);
	assert_int_equal(read.end, 0);
	assert_int_equal(read.table.count, 0);
	code_table_free(&read.table);
	/* a file that is shorter than it is said to be, as one that is truncated meanwhile */
	assert_int_equal(perf_map_read(fd, 0, 1 << 20, DEADLINE_NONE, &read), 0);
	assert_int_equal(read.end, sizeof(text) - 1);
	code_table_free(&read.table);
	close(fd);
}

enum { HEAD = 20 << 20, LINE = 128 };

/* Lines that are none, then @count functions. */
static struct code_read read_large_map(uint32_t count)
{
	const size_t size = HEAD + (size_t)count * LINE;
	char *text = malloc(size + 1);
	struct code_read read;

	assert_non_null(text);
	memset(text, 'x', HEAD);
	for (size_t i = LINE - 1; i < HEAD; i += LINE)
		text[i] = '\n';
	for (uint32_t i = 0; i < count; i++)
		snprintf(text + HEAD + (size_t)i * LINE, LINE + 1, "%08x 10 %0*u\n", i * 16, LINE - 13, i);
	read = read_map(text, size);
	assert_int_equal(read.end, size);
	assert_non_null(code_table_find(&read.table, (count - 1) * 16));
	free(text);
	return read;
}

/* What is in front of the last CODE_MAX would go, so it is not read; of fewer all are. */
static void of_a_large_map_the_end_is_enough(void **state)
{
	struct code_read read = read_large_map(3 * CODE_MAX);

	(void)state;
	assert_int_equal(read.bad, 0);
	assert_true(read.table.dropped > 0 && read.table.count <= CODE_MAX && read.table.count > CODE_MAX / 2);
	code_table_free(&read.table);
	read = read_large_map(10);
	assert_int_equal(read.bad, HEAD / LINE);
	assert_int_equal(read.table.count, 10);
	assert_int_equal(read.table.dropped, 0);
	code_table_free(&read.table);
}

enum { SPACE = 512, PIECES = 200 };

/* Byte by byte, what code.c does by ranges. */
static void later_functions_cover_earlier_ones(void **state)
{
	unsigned int seed = 1;

	(void)state;
	for (int round = 0; round < 200; round++) {
		uint32_t painted[SPACE] = { 0 };
		struct code_table table = { 0 };
		struct code_batch batch = { .table = &table };

		for (uint32_t i = 1; i <= PIECES; i++) {
			uint32_t start = (uint32_t)rand_r(&seed) % (SPACE - 1);
			uint32_t size = 1 + (uint32_t)rand_r(&seed) % min_of(SPACE - start, 40u);

			assert_int_equal(code_batch_add(&batch, start, size, i), 0);
			for (uint32_t j = start; j < start + size; j++)
				painted[j] = i;
			/* batches of any size */
			if (rand_r(&seed) % 16 == 0)
				assert_int_equal(code_batch_flush(&batch), 0);
		}
		assert_int_equal(code_batch_flush(&batch), 0);
		assert_true(code_table_is_valid(&table, PIECES + 1));
		for (uint32_t j = 0; j < SPACE; j++) {
			const struct code *code = code_table_find(&table, j);

			assert_int_equal(code ? code->name : 0, painted[j]);
		}
		code_batch_free(&batch);
		code_table_free(&table);
	}
}

static void the_earliest_go_when_there_are_too_many(void **state)
{
	struct code_table table = { 0 };
	struct code_batch batch = { .table = &table };
	const uint32_t count = 3 * CODE_MAX;

	(void)state;
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(code_batch_add(&batch, (uint64_t)i * 16, 16, i), 0);
	assert_int_equal(code_batch_flush(&batch), 0);
	assert_true(table.count <= CODE_MAX && table.count >= CODE_MAX / 2);
	assert_int_equal(table.count + table.dropped, count);
	assert_non_null(code_table_find(&table, (count - 1) * 16ULL));
	assert_null(code_table_find(&table, 0));
	assert_true(code_table_is_valid(&table, count));
	code_batch_free(&batch);
	code_table_free(&table);
}

static void tables_that_are_none_are_noticed(void **state)
{
	struct code codes[] = { { 0x1000, 0x10, 5 }, { 0x1008, 0x10, 6 } };
	struct code_table table = { .codes = codes, .count = 2 };

	(void)state;
	assert_false(code_table_is_valid(&table, 10));	/* overlap */
	codes[1].start = 0x1010;
	assert_true(code_table_is_valid(&table, 10));
	assert_false(code_table_is_valid(&table, 6));	/* a name behind the end */
	codes[1].size = 0;
	assert_false(code_table_is_valid(&table, 10));
	codes[1] = (struct code){ UINT64_MAX - 4, 10, 1 };
	assert_false(code_table_is_valid(&table, 10));	/* it wraps */
	codes[1] = (struct code){ 0x10, 1, 1 };
	assert_false(code_table_is_valid(&table, 10));	/* order */
}

struct dump {
	uint8_t bytes[4096];
	size_t size;
};

static void put(struct dump *dump, const void *bytes, size_t size)
{
	assert_true(dump->size + size <= sizeof(dump->bytes));
	memcpy(dump->bytes + dump->size, bytes, size);
	dump->size += size;
}

static void put32(struct dump *dump, uint32_t value)
{
	put(dump, &value, sizeof(value));
}

static void put64(struct dump *dump, uint64_t value)
{
	put(dump, &value, sizeof(value));
}

static void put_header(struct dump *dump, uint32_t magic)
{
	put32(dump, magic);
	put32(dump, 1);
	put32(dump, 40);
	put32(dump, 62);
	put32(dump, 0);
	put32(dump, 17);
	put64(dump, 1);
	put64(dump, 0);
}

static void put_load(struct dump *dump, uint64_t address, uint64_t size, const char *name)
{
	const size_t bytes = strlen(name) + 1;
	uint8_t code[64] = { 0x90 };

	put32(dump, 0);
	put32(dump, (uint32_t)(56 + bytes + sizeof(code)));
	put64(dump, 2);
	put32(dump, 17);
	put32(dump, 17);
	put64(dump, address);
	put64(dump, address);
	put64(dump, size);
	put64(dump, 1);
	put(dump, name, bytes);
	put(dump, code, sizeof(code));
}

static void put_move(struct dump *dump, uint64_t from, uint64_t to, uint64_t size)
{
	put32(dump, 1);
	put32(dump, 64);
	put64(dump, 3);
	put32(dump, 17);
	put32(dump, 17);
	put64(dump, to);
	put64(dump, from);
	put64(dump, to);
	put64(dump, size);
	put64(dump, 1);
}

static int read_dump(const struct dump *dump, uint64_t offset, struct code_read *ret_read)
{
	int fd = file_of(dump->bytes, dump->size);
	int r = jitdump_read(fd, offset, dump->size, DEADLINE_NONE, ret_read);

	close(fd);
	return r;
}

static void expect_dump(const struct dump *dump, const struct code_table *table, uint64_t address,
			const char *name)
{
	const struct code *code = code_table_find(table, address);

	assert_non_null(code);
	assert_string_equal(dump->bytes + code->name, name);
}

static void jitdumps_tell_of_loads_and_moves(void **state)
{
	struct dump dump = { .size = 0 };
	struct code_read read;
	size_t half;

	(void)state;
	put_header(&dump, 0x4a695444);
	put_load(&dump, 0x1000, 0x40, "first");
	put_load(&dump, 0x2000, 0x40, "second");
	put_move(&dump, 0x1000, 0x3000, 0x40);
	put32(&dump, 3);	/* JIT_CODE_CLOSE */
	put32(&dump, 16);
	put64(&dump, 4);
	half = dump.size;
	assert_int_equal(read_dump(&dump, 0, &read), 0);
	assert_int_equal(read.end, half);
	assert_int_equal(read.bad, 0);
	assert_false(read.needs_all);
	expect_dump(&dump, &read.table, 0x1000, "first");
	expect_dump(&dump, &read.table, 0x203f, "second");
	expect_dump(&dump, &read.table, 0x3000, "first");
	code_table_free(&read.table);

	/* what has come since tells of what was before */
	put_move(&dump, 0x2000, 0x4000, 0x40);
	assert_int_equal(read_dump(&dump, half, &read), 0);
	assert_true(read.needs_all);
	code_table_free(&read.table);
	assert_int_equal(read_dump(&dump, 0, &read), 0);
	assert_false(read.needs_all);
	expect_dump(&dump, &read.table, 0x4000, "second");
	code_table_free(&read.table);
}

static void broken_jitdumps_end_early(void **state)
{
	struct dump dump = { .size = 0 }, other;
	struct code_read read;

	(void)state;
	put_header(&dump, 0x4454694a);	/* the other byte order */
	assert_int_equal(read_dump(&dump, 0, &read), -EBADMSG);
	dump.size = 0;
	put_header(&dump, 0x4a695444);
	other = dump;
	other.bytes[4] = 2;	/* its version */
	assert_int_equal(read_dump(&other, 0, &read), -EBADMSG);
	other = dump;
	other.size = 39;
	assert_int_equal(read_dump(&other, 0, &read), 0);
	assert_int_equal(read.end, 0);
	other = dump;
	other.bytes[8] = 41;	/* a header that ends behind the file */
	assert_int_equal(read_dump(&other, 0, &read), 0);
	assert_int_equal(read.end, 0);

	put_load(&dump, 0x1000, 0x40, "first");
	/* a record that ends behind the file's end may still be written */
	for (size_t cut = 41; cut < dump.size; cut++) {
		other = dump;
		other.size = cut;
		assert_int_equal(read_dump(&other, 0, &read), 0);
		assert_int_equal(read.end, 40);
		assert_int_equal(read.table.count, 0);
		code_table_free(&read.table);
	}
	/* one that has no length is the end of all reading */
	put32(&dump, 0);
	put32(&dump, 0);
	put64(&dump, 0);
	put_load(&dump, 0x2000, 0x40, "second");
	assert_int_equal(read_dump(&dump, 0, &read), 0);
	assert_int_equal(read.table.count, 1);
	assert_int_equal(read.bad, 1);
	code_table_free(&read.table);
	/* moved from nowhere, without a size */
	dump.size = 0;
	put_header(&dump, 0x4a695444);
	put_move(&dump, 0x7000, 0x8000, 16);
	put_load(&dump, 0x1000, 0, "empty");
	put_load(&dump, UINT64_MAX, 16, "wraps");
	put_load(&dump, 0x1000, 16, "good");
	assert_int_equal(read_dump(&dump, 0, &read), 0);
	assert_int_equal(read.bad, 3);
	assert_int_equal(read.table.count, 1);
	expect_dump(&dump, &read.table, 0x1000, "good");
	code_table_free(&read.table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_functions),
		cmocka_unit_test(what_is_no_line_is_counted),
		cmocka_unit_test(lines_without_an_end_are_passed_over),
		cmocka_unit_test(reading_stops_in_time),
		cmocka_unit_test(of_a_large_map_the_end_is_enough),
		cmocka_unit_test(later_functions_cover_earlier_ones),
		cmocka_unit_test(the_earliest_go_when_there_are_too_many),
		cmocka_unit_test(tables_that_are_none_are_noticed),
		cmocka_unit_test(jitdumps_tell_of_loads_and_moves),
		cmocka_unit_test(broken_jitdumps_end_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
