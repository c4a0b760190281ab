// SPDX-License-Identifier: Apache-2.0
/*
 * Split DWARF that lies: of a package its index, of a .dwo file its entries. Whatever they say costs the inlined functions
 * alone; the linked program's lines and symbols are there.
 */
#include "fixture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "symbol/lines.h"
#include "symbol/lines_file.h"

enum { ADDRESSES = 64, SECONDS = 60 };

/* A program, and what a packager or compiler wrote for it, which is changed in memory. */
static char program[PATH_MAX];
static uint8_t *split;
static size_t split_size;
static uint64_t addresses[ADDRESSES];

static const char source[] =
	"#include <stdio.h>\n"
	"static inline __attribute__((always_inline)) int inner(int x) { return printf(\"%d\", x) * 3; }\n"
	"__attribute__((noinline)) int outer(int x) { return inner(x) + inner(x + 1); }\n"
	"int main(int c, char **v) { (void)v; return outer(c); }\n";

static uint64_t deadline(void)
{
	return clock_monotonic() + SECONDS * NSEC_PER_SEC;
}

static void build(unsigned int version)
{
	uint64_t start;

	strcpy(program, fixture_path("split"));
	fixture_write("split.c", source);
	fixture_run("${CC:-gcc} -O2 -gdwarf-%u -gsplit-dwarf -c -o split.o split.c && ${CC:-gcc} -o split split.o", version);
	start = strtoull(fixture_ask("nm '%s' | awk '$3 == \"outer\" { print $1 }'", program), NULL, 16);
	for (size_t i = 0; i < ADDRESSES; i++)
		addresses[i] = start + i / 2;
}

static void load(const char *name)
{
	free(split);
	split = fixture_load(fixture_path(name), &split_size);
}

static int open_program(struct lines **ret_lines)
{
	struct stat st;
	int fd = open(program, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	assert_int_equal(lines_open(fd, (uint64_t)st.st_size, true, deadline(), ret_lines), 0);
	return fd;
}

static int split_file(size_t size)
{
	int fd = memfd_create("split", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, split, size), size);
	return fd;
}

/* How many addresses have inlined functions; all have a line and the name of the program's own function. */
static uint32_t count_inlined(struct lines *lines, uint32_t *ret_split)
{
	static struct lines_answer answer;
	const struct lines_frame *frame;
	uint32_t inlined = 0;

	assert_int_equal(lines_find(lines, addresses, ADDRESSES, deadline(), &answer), 0);
	frame = answer.frames;
	for (uint32_t i = 0; i < ADDRESSES; frame += answer.counts[i++]) {
		assert_true(answer.counts[i] > 0);
		assert_true(frame[0].line > 0);
		assert_string_equal(answer.strings + frame[answer.counts[i] - 1].name, "outer");
		inlined += answer.counts[i] > 1;
	}
	*ret_split = answer.split;
	lines_answer_free(&answer);
	return inlined;
}

static uint32_t inlined_of_package(size_t size)
{
	struct lines *lines;
	int fd = open_program(&lines), other = split_file(size);
	uint32_t without, inlined;

	assert_int_equal(lines_set_split(lines, other, size, deadline()), 0);
	inlined = count_inlined(lines, &without);
	assert_true(without == 0 || (without == ADDRESSES && !inlined));
	lines_free(lines);
	close(fd);
	close(other);
	return inlined;
}

/* By the way of a .dwo file; *ret_is_taken: whether it was. */
static uint32_t inlined_of_dwo(size_t size, bool *ret_is_taken)
{
	struct dwarf_dwo_names *names = malloc(sizeof(*names));
	struct lines *lines;
	int fd = open_program(&lines), other = split_file(size);
	uint32_t count, asked, without, inlined;
	int r;

	assert_int_equal(lines_find_dwos(lines, addresses, ADDRESSES, deadline(), &count, &asked), 0);
	assert_int_equal(count, 1);
	assert_int_equal(asked, ADDRESSES);
	assert_int_equal(lines_dwo_names(lines, 1, deadline(), names), -ENOENT);
	assert_int_equal(lines_dwo_names(lines, 0, deadline(), names), 0);
	assert_string_equal(names->name, "split.dwo");
	assert_string_equal(names->directory, fixture_directory());
	r = lines_set_dwo(lines, 0, &other, size, deadline());
	assert_true(r == 0 || r == -ENOENT || r == -EBADMSG);
	*ret_is_taken = r == 0;
	/* whose descriptor is taken over */
	assert_int_equal(other < 0, r == 0);
	inlined = count_inlined(lines, &without);
	assert_true(r == 0 ? without == 0 || !inlined : without == ADDRESSES && !inlined);
	lines_free(lines);
	close(fd);
	if (other >= 0)
		close(other);
	free(names);
	return inlined;
}

static size_t section(const char *name, size_t *ret_size)
{
	const Elf64_Shdr *shdr;
	struct elf elf;
	size_t offset;

	assert_int_equal(elf_open_memory(&elf, split, split_size), 0);
	shdr = elf_find_section(&elf, SHT_NULL, name);
	assert_non_null(shdr);
	offset = shdr->sh_offset;
	*ret_size = shdr->sh_size;
	elf_close(&elf);
	return offset;
}

static void put(size_t at, uint32_t number)
{
	assert_true(at + sizeof(number) <= split_size);
	memcpy(split + at, &number, sizeof(number));
}

static uint32_t get(size_t at)
{
	uint32_t number;

	memcpy(&number, split + at, sizeof(number));
	return number;
}

/* Header: version, columns, rows, slots; then ids, rows of these, kinds of columns, offsets, sizes. */
static void an_index_may_say_anything(void **state)
{
	static const uint32_t values[] = { 0, 1, 2, 3, 9, 0x7fffffff, 0x80000000, 0xfffffff0, UINT32_MAX };
	uint8_t *sound;
	size_t at, size, slots, columns, whole;

	(void)state;
	build(4);
	fixture_run("dwp -e split -o split.dwp");
	load("split.dwp");
	whole = inlined_of_package(split_size);
	assert_true(whole > 0);
	at = section(".debug_cu_index", &size);
	assert_true(size >= 16 && at + size <= split_size);
	columns = get(at + 4);
	slots = get(at + 12);
	assert_true(columns > 1 && slots && size == 16 + 12 * slots + 4 * columns * (1 + 2 * get(at + 8)));
	sound = malloc(split_size);
	memcpy(sound, split, split_size);
	for (size_t field = 0; field + 4 <= size; field += 4)
		for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
			put(at + field, values[i]);
			assert_true(inlined_of_package(split_size) <= whole);
			memcpy(split, sound, split_size);
		}
	/* a table without an empty slot, in which everything is another one's */
	for (size_t i = 0; i < slots; i++)
		put(at + 16 + 8 * slots + 4 * i, 1);
	memset(split + at + 16, 0x5a, 8 * slots);
	assert_int_equal(inlined_of_package(split_size), 0);
	memcpy(split, sound, split_size);
	/* it ends, and the file does, anywhere */
	for (size_t i = 0; i < size; i++) {
		memset(split + at + i, 0, size - i);
		assert_true(inlined_of_package(split_size) <= whole);
		memcpy(split, sound, split_size);
	}
	for (size_t i = 0; i < split_size; i += 7)
		assert_true(inlined_of_package(i) <= whole);
	free(sound);
}

static void a_dwo_file_may_say_anything(unsigned int version)
{
	size_t at, size;
	uint32_t whole;
	bool is_taken;

	build(version);
	load("split.dwo");
	whole = inlined_of_dwo(split_size, &is_taken);
	assert_true(is_taken && whole > 0);
	at = section(".debug_info.dwo", &size);
	/* references to themselves and behind the end, lengths of everything, and what is no id any more */
	for (size_t i = 0; i < size - 4; i++) {
		const uint32_t values[] = { (uint32_t)i, (uint32_t)size, UINT32_MAX };
		const uint32_t old = get(at + i);

		for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
			put(at + i, values[k]);
			inlined_of_dwo(split_size, &is_taken);
		}
		put(at + i, old);
	}
	for (size_t i = 0; i < split_size; i += 13)
		assert_true(inlined_of_dwo(i, &is_taken) <= whole);
	/* of another program */
	load("split");
	assert_int_equal(inlined_of_dwo(split_size, &is_taken), 0);
	assert_false(is_taken);
}

/* A compressed section for which there is no room once others are unpacked: it is noticed by what is read late. */
static void one_too_large_costs_its_own_functions(void **state)
{
	size_t at, size;
	bool is_taken;

	(void)state;
	build(5);
	fixture_run("objcopy --compress-debug-sections=zlib split.dwo packed.dwo");
	load("packed.dwo");
	assert_true(inlined_of_dwo(split_size, &is_taken) > 0);
	at = section(".debug_str.dwo", &size);
	/* ch_size of an Elf64_Chdr */
	put(at + 8, DWARF_UNPACKED_MAX);
	assert_int_equal(inlined_of_dwo(split_size, &is_taken), 0);
	assert_true(is_taken);
}

/* Questions about .dwo files that came too late leave lines. */
static void late_questions_cost_no_lines(void **state)
{
	struct dwarf_dwo_names *names = malloc(sizeof(*names));
	struct lines *lines;
	uint32_t count, asked, without;
	int fd;

	(void)state;
	build(5);
	fd = open_program(&lines);
	assert_int_equal(lines_find_dwos(lines, addresses, ADDRESSES, 1, &count, &asked), -ETIME);
	assert_int_equal(count_inlined(lines, &without), 0);
	lines_free(lines);
	close(fd);
	fd = open_program(&lines);
	assert_int_equal(lines_find_dwos(lines, addresses, ADDRESSES, deadline(), &count, &asked), 0);
	assert_int_equal(lines_dwo_names(lines, 0, 1, names), -ETIME);
	/* each question has a time of its own */
	assert_int_equal(lines_dwo_names(lines, 0, deadline(), names), 0);
	assert_string_equal(names->name, "split.dwo");
	assert_int_equal(count_inlined(lines, &without), 0);
	assert_int_equal(without, ADDRESSES);
	lines_free(lines);
	close(fd);
	free(names);
}

static void one_of_dwarf_4_may_say_anything(void **state)
{
	(void)state;
	a_dwo_file_may_say_anything(4);
}

static void one_of_dwarf_5_may_say_anything(void **state)
{
	(void)state;
	a_dwo_file_may_say_anything(5);
}

/* More units than may be wanted at a time: some addresses, and then the others. */
static void many_are_asked_for_in_turn(void **state)
{
	enum { UNITS = DWARF_DWOS_MAX + 10 };
	uint64_t all[UNITS];
	uint32_t count, asked;
	struct lines *lines;
	char list[4096], *next = list;
	int fd;

	(void)state;
	fixture_run("for i in $(seq 100 %d); do echo \"int f$i(int x) { return x * $i; }\" >f$i.c; done && "
		    "echo 'int main(void) { return 0; }' >m.c && ${CC:-gcc} -O1 -gdwarf-5 -gsplit-dwarf -c f*.c m.c && "
		    "${CC:-gcc} -o many f*.o m.o", 100 + UNITS - 1);
	strcpy(program, fixture_path("many"));
	strcpy(list, fixture_ask("nm -n many | awk '$3 ~ /^f1[0-9][0-9]$/ { printf \"%%s \", $1 }'"));
	for (uint32_t i = 0; i < UNITS; i++)
		all[i] = strtoull(next, &next, 16);
	fd = open_program(&lines);
	assert_int_equal(lines_find_dwos(lines, all, UNITS, deadline(), &count, &asked), 0);
	assert_int_equal(count, DWARF_DWOS_MAX);
	assert_int_equal(asked, DWARF_DWOS_MAX);
	assert_int_equal(lines_find_dwos(lines, all + asked, UNITS - asked, deadline(), &count, &asked), 0);
	assert_int_equal(count, 10);
	assert_int_equal(asked, 10);
	lines_free(lines);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_index_may_say_anything),
		cmocka_unit_test(one_too_large_costs_its_own_functions),
		cmocka_unit_test(late_questions_cost_no_lines),
		cmocka_unit_test(one_of_dwarf_4_may_say_anything),
		cmocka_unit_test(one_of_dwarf_5_may_say_anything),
		cmocka_unit_test(many_are_asked_for_in_turn),
	};
	int failed;

	/* which may have an object of the same source that was compiled in another directory */
	setenv("CCACHE_DISABLE", "1", 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(split);
	return failed;
}
