// SPDX-License-Identifier: Apache-2.0
/*
 * Go's table of functions as Go 1.2 and Go 1.16 laid it out, made here by what the runtime's sources of those
 * versions say of it, and where that of Go 1.20 and later has its code. What else is in the latter is in
 * test_unwind_compile.c, lines of each version are in test_go_lines.c; a real table of Go 1.15 is in
 * tests/oracle/symbols.py, of today's in tests/oracle/go_lines.py, of all others in tests/oracle/go_versions.py.
 *
 * Go 1.2 to 1.15: 8 bytes of magic, quantum and the size of a pointer, the number of functions, then for each its
 * address and, from the beginning of all, where it is described; the last one's end; where the files' names are. A
 * description begins with the address once more and, again from the beginning of all, where the name is.
 *
 * Go 1.16 and 1.17: the number of functions and of files, and where the names, the units, the files' names, the values
 * and the functions are. Descriptions count from the functions, names from the names; else as before.
 *
 * Go 1.20: as 1.16, with the address of the code before where the names are, from which functions are counted. Since
 * Go 1.26 it is 0, and the address is one of the words of .go.module.
 */
#include "fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "unwind/compile.h"
#include "unwind/functions.h"

static const char head[] =
	"__asm__(\".text\\n.globl _start, work, end\\n_start: .skip 16, 0x90\\n\"\n"
	"\"work: .skip 32, 0x90\\nend: .skip 16, 0x90\\nbehind: .skip 64, 0x90\\n\"\n"
	"\".section .gopclntab, \\\"a\\\", @progbits\\n.p2align 3\\ntable:\\n\"\n";

static const char go_12[] =
	"\".long 0xfffffffb\\n.byte 0, 0, %u, 8\\n.quad 3\\n\"\n"
	"\".quad _start %s, d0 - table, work, d1 - table, end, d2 - table, behind\\n\"\n"
	"\".long files - table\\n.p2align 3\\n\"\n"
	"\".macro f at name\\n.quad \\\\at\\n.long \\\\name - table, 0, 0, 0, 0, 0, 0, 0\\n.endm\\n\"\n"
	"\"d0: f _start, n0\\nd1: f work, n1\\nd2: f end, n2\\n\"\n"
	"\"n0: .asciz \\\"runtime.rt0_go\\\"\\nn1: .asciz \\\"main.work\\\"\\nn2: .asciz \\\"main.(*T).End\\\"\\n\"\n"
	"\"files: .long 1, 0\\n.previous\\n\");\n";

static const char go_116[] =
	"\".long 0xfffffffa\\n.byte 0, 0, %u, 8\\n.quad 3, 1\\n\"\n"
	"\".quad names - table, 0, files - table, 0, functions - table\\n\"\n"
	"\"names: .asciz \\\"\\\"\\nn0: .asciz \\\"runtime.rt0_go\\\"\\nn1: .asciz \\\"main.work\\\"\\n\"\n"
	"\"n2: .asciz \\\"main.(*T).End\\\"\\nfiles: .long 1, 0\\n.p2align 3\\n\"\n"
	"\"functions: .quad _start %s, d0 - functions, work, d1 - functions, end, d2 - functions, behind\\n\"\n"
	"\".macro f at name\\n.quad \\\\at\\n.long \\\\name - names, 0, 0, 0, 0, 0, 0, 0, 0\\n.endm\\n\"\n"
	"\"d0: f _start, n0\\nd1: f work, n1\\nd2: f end, n2\\n.previous\\n\");\n";

/* The code is behind some of C's. */
static const char go_126[] =
	"__asm__(\".text\\n.globl _start, first, work, behind\\n_start: .skip 48, 0x90\\n\"\n"
	"\"first: .skip 16, 0x90\\nwork: .skip 32, 0x90\\nbehind: .skip 64, 0x90\\n\"\n"
	"\".section .gopclntab, \\\"aw\\\", @progbits\\n.p2align 3\\n\"\n"
	"\"table: .long 0xfffffff1\\n.byte 0, 0, 1, 8\\n.quad 2, 0, %s, names - table\\n\"\n"
	"\".quad 0, 0, names - table, functions - table\\n\"\n"
	"\"names: .asciz \\\"\\\"\\nn0: .asciz \\\"runtime.text\\\"\\nn1: .asciz \\\"main.work\\\"\\n.p2align 3\\n\"\n"
	"\"functions: .long 0, d0 - functions, work - first, d1 - functions, behind - first, 0\\n\"\n"
	"\".macro f name\\n.long 0, \\\\name - names, 0, 0, 0, 0, 0, 0, 0, 0, 0\\n.endm\\n\"\n"
	"\"d0: f n0\\nd1: f n1\\n.section .go.module, \\\"aw\\\", @progbits\\n.p2align 3\\n\"\n"
	"\".quad %s, names, 6\\n.skip 8 * 17\\n.quad %s\\n.skip 8 * 30\\n.previous\\n\");\n";

enum layout { GO_12, GO_116, LAYOUTS };

/* @shift: what is added to the first address. */
static const char *build(enum layout layout, unsigned int quantum, const char *shift)
{
	_cleanup_free_ char *tail = NULL, *source = NULL;

	assert_true((layout == GO_12 ? asprintf(&tail, go_12, quantum, shift) :
				       asprintf(&tail, go_116, quantum, shift)) > 0);
	assert_true(asprintf(&source, "%s%s", head, tail) > 0);
	return fixture_build("old", "-no-pie -nostdlib -static -fno-asynchronous-unwind-tables", source);
}

/* @text: that the table has; @table, and @words of first function, end and code: that the moduledata has. */
static const char *build_126(const char *flags, const char *text, const char *table, const char *words)
{
	_cleanup_free_ char *source = NULL;

	assert_true(asprintf(&source, go_126, text, table, words) > 0);
	return fixture_build("new", flags, source);
}

static uint64_t symbol(const char *path, const char *name)
{
	return strtoull(fixture_ask("nm '%s' | sed -n 's/ [Tt] %s$//p'", path, name), NULL, 16);
}

static void read_functions(const char *path, struct function_range **ret_ranges, size_t *ret_count,
			   int *ret_fd)
{
	struct stat st;
	struct elf elf;

	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(*ret_fd >= 0);
	assert_int_equal(fstat(*ret_fd, &st), 0);
	assert_int_equal(elf_open(&elf, *ret_fd, (uint64_t)st.st_size, 0), 0);
	assert_int_equal(functions_read(&elf, ret_ranges, ret_count), 0);
	elf_close(&elf);
}

struct wanted {
	const char *start, *end, *name;
};

static void expect(const char *path, const struct wanted *wanted, size_t wanted_count)
{
	struct function_range *ranges;
	char name[32];
	size_t count;
	int fd;

	read_functions(path, &ranges, &count, &fd);
	assert_int_equal(count, wanted_count);
	for (size_t k = 0; k < count; k++) {
		assert_int_equal(ranges[k].start, symbol(path, wanted[k].start));
		assert_int_equal(ranges[k].end, symbol(path, wanted[k].end));
		assert_true(pread(fd, name, sizeof(name), (off_t)ranges[k].name) > 0);
		name[sizeof(name) - 1] = '\0';
		assert_string_equal(name, wanted[k].name);
	}
	free(ranges);
	close(fd);
}

static void functions_have_their_names(void **state _unused_)
{
	static const struct wanted wanted[] = {
		{ "_start", "work", "runtime.rt0_go" },
		{ "work", "end", "main.work" },
		{ "end", "behind", "main.(*T).End" },
	};

	for (enum layout layout = 0; layout < LAYOUTS; layout++)
		expect(build(layout, 1, ""), wanted, ARRAY_SIZE(wanted));
}

#define EXE "-no-pie -nostdlib -static -fno-asynchronous-unwind-tables"
#define PIE "-static-pie -nostdlib -fno-asynchronous-unwind-tables"

/* Where the loader writes addresses, they are in relocations, or in place (RELR). */
static void code_behind_that_of_c_is_found(void **state _unused_)
{
	static const struct wanted wanted[] = {
		{ "first", "work", "runtime.text" },
		{ "work", "behind", "main.work" },
	};
	static const struct {
		const char *flags, *text, *table, *words;
		bool is_found;
	} cases[] = {
		{ EXE, "0", "table", "first, behind, first", true },
		{ PIE, "0", "table", "first, behind, first", true },
		{ PIE " -Wl,-z,pack-relative-relocs", "0", "table", "first, behind, first", true },
		/* before Go 1.26 */
		{ EXE, "first", "0", "0, 0, 0", true },
		{ PIE, "first", "0", "0, 0, 0", true },
		/* of another table, or one whose fields are others */
		{ EXE, "0", "names", "first, behind, first", false },
		{ EXE, "0", "table", "first, behind + 1, first", false },
		{ EXE, "0", "table", "first, behind, first + 8", false },
		{ EXE, "0", "table", "first + 8, behind + 8, first", false },
		{ PIE, "0", "table", "first, behind, 0", false },
		/* in no code */
		{ EXE, "0", "table", "0x1000, 0x1030, 0x1000", false },
		{ EXE, "0", "table", "first + 65, behind + 65, first + 65", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		expect(build_126(cases[i].flags, cases[i].text, cases[i].table, cases[i].words), wanted,
		       cases[i].is_found ? ARRAY_SIZE(wanted) : 0);
}

/* Of another machine, and one whose addresses are filled in when it is loaded. */
static void what_is_elsewhere_is_no_function(void **state _unused_)
{
	static const struct {
		unsigned int quantum;
		const char *shift;
	} cases[] = { { 4, "" }, { 1, "- _start" }, { 1, "- 1" }, { 1, "+ 0x10000000" } };

	for (enum layout layout = 0; layout < LAYOUTS; layout++)
		for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
			struct function_range *ranges;
			size_t count;
			int fd;

			read_functions(build(layout, cases[k].quantum, cases[k].shift), &ranges, &count,
				       &fd);
			assert_int_equal(count, 0);
			free(ranges);
			close(fd);
		}
}

/* It does not tell which functions change stacks. */
static void there_are_no_rules_in_it(void **state _unused_)
{
	for (enum layout layout = 0; layout < LAYOUTS; layout++) {
		const char *path = build(layout, 1, "");
		struct compile_stats stats;
		void *data = NULL;
		size_t size;
		struct stat st;
		struct elf elf;
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(elf_open(&elf, fd, (uint64_t)st.st_size, 0), 0);
		assert_int_equal(compile_elf(&elf, 64 << 20, &data, &size, &stats), -ENODATA);
		elf_close(&elf);
		close(fd);
	}
}

/* Each byte of a section, one after the other. How many functions there were in all. */
static size_t damage(const char *path, const char *section)
{
	static const uint8_t bits[] = { 0x01, 0x40, 0x80, 0xff };
	const char *at = fixture_ask("readelf -SW '%s' | sed -n 's/.* \\%s *[A-Z]* *//p' | "
				     "awk '{ print \"0x\" $2, \"0x\" $3 }'", path, section);
	unsigned long long offset, bytes;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	size_t some = 0;

	assert_int_equal(sscanf(at, "%llx %llx", &offset, &bytes), 2);
	assert_true(bytes > 100);
	for (size_t k = 0; k < bytes * ARRAY_SIZE(bits); k++) {
		const off_t where = (off_t)(offset + k / ARRAY_SIZE(bits));
		struct function_range *ranges;
		uint8_t byte, bad;
		size_t count;
		int reader;

		assert_int_equal(pread(fd, &byte, 1, where), 1);
		bad = byte ^ bits[k % ARRAY_SIZE(bits)];
		assert_int_equal(pwrite(fd, &bad, 1, where), 1);
		read_functions(path, &ranges, &count, &reader);
		for (size_t n = 0; n < count; n++)
			assert_true(ranges[n].start < ranges[n].end);
		some += count;
		free(ranges);
		close(reader);
		assert_int_equal(pwrite(fd, &byte, 1, where), 1);
	}
	close(fd);
	return some;
}

static void damage_is_survived(void **state _unused_)
{
	const char *path;

	for (enum layout layout = 0; layout < LAYOUTS; layout++)
		assert_true(damage(build(layout, 1, ""), ".gopclntab") > 0);
	path = build_126(PIE, "0", "table", "first, behind, first");
	assert_true(damage(path, ".gopclntab") > 0);
	assert_true(damage(path, ".go.module") > 0);
	assert_true(damage(path, ".rela.dyn") > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_have_their_names),
		cmocka_unit_test(code_behind_that_of_c_is_found),
		cmocka_unit_test(what_is_elsewhere_is_no_function),
		cmocka_unit_test(there_are_no_rules_in_it),
		cmocka_unit_test(damage_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
