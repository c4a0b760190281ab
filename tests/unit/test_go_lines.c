// SPDX-License-Identifier: Apache-2.0
/*
 * What Go's table tells of an address, in each form that it has had since Go 1.2. The tables are made here
 * (tests/unit/go_tables.s), as no package has such compilers; what these write is read by tests/oracle/go_versions.py.
 */
#include "fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "symbol/go_lines.h"

/* clang-format off */
__asm__(".pushsection .rodata\n.globl go_tables\ngo_tables: .incbin \"tests/unit/go_tables.s\"\n.byte 0\n.popsection\n");
/* clang-format on */
extern const char go_tables[];

enum { WORK = 16 };		/* main.work, from the first function on */

#define EXE "-no-pie -static"
#define PIE "-static-pie"

static const char *build(const char *kind, const char *symbols)
{
	fixture_write("go_tables.s", go_tables);
	fixture_run("gcc %s -nostdlib -Wl,--build-id=none %s -o lines go_tables.s", kind, symbols);
	return fixture_path("lines");
}

struct text {
	char bytes[4096];
	size_t length;
};

static void add(void *ctx, const struct go_frame *frame)
{
	struct text *text = ctx;
	const size_t left = sizeof(text->bytes) - text->length;
	int n = snprintf(text->bytes + text->length, left, "%s%s %s:%u %u", text->length ? ", " : "", frame->name,
			 frame->file, frame->line, frame->start_line);

	text->length += min_of((size_t)n, left - 1);
}

/* Frames of an address, counted from the first function; "none", or "error". */
static void ask(const char *path, uint64_t offset, struct text *ret_text)
{
	struct go_lines *go;
	struct stat st;
	struct elf elf;
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;

	*ret_text = (struct text){ 0 };
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	r = elf_open(&elf, fd, (uint64_t)st.st_size, 0);
	if (!r) {
		const Elf64_Shdr *code = elf_find_section(&elf, SHT_PROGBITS, ".text");

		r = go_lines_open(&elf, &go);
		if (!r) {
			r = go_lines_find(go, (code ? code->sh_addr : 0) + offset, add, ret_text);
			go_lines_free(go);
		}
		elf_close(&elf);
	}
	if (r < 0)
		snprintf(ret_text->bytes, sizeof(ret_text->bytes), r == -ENODATA ? "none" : "error");
	close(fd);
}

static void expect(const char *path, uint64_t offset, const char *wanted)
{
	struct text text;

	ask(path, offset, &text);
	assert_string_equal(text.bytes, wanted);
}

static const struct version {
	const char *symbols, *inlined, *inner;
} versions[] = {
	{ "-Wa,--defsym,GO=104", "main.work b.go:50 0", "main.work b.go:60 0" },
	{ "-Wa,--defsym,GO=109", "main.outer b.go:50 0, main.work a.go:11 0",
	  "main.inner b.go:60 0, main.outer b.go:55 0, main.work a.go:11 0" },
	{ "-Wa,--defsym,GO=112", "main.outer b.go:50 0, main.work a.go:10 0",
	  "main.inner b.go:60 0, main.outer b.go:50 0, main.work a.go:10 0" },
	{ "-Wa,--defsym,GO=113", "main.outer b.go:50 0, main.work a.go:10 0",
	  "main.inner b.go:60 0, main.outer b.go:50 0, main.work a.go:10 0" },
	{ "-Wa,--defsym,GO=116", "main.outer b.go:50 0, main.work a.go:10 0",
	  "main.inner b.go:60 0, main.outer b.go:50 0, main.work a.go:10 0" },
	{ "-Wa,--defsym,GO=120", "main.outer b.go:50 30, main.work a.go:10 9",
	  "main.inner b.go:60 40, main.outer b.go:50 30, main.work a.go:10 9" },
};

static void expect_all(const char *path, const struct version *version)
{
	const bool has_start = strstr(version->symbols, "120");

	expect(path, 0, has_start ? "runtime.rt0_go a.go:6 5" : "runtime.rt0_go a.go:6 0");
	expect(path, WORK + 7, has_start ? "main.work a.go:10 9" : "main.work a.go:10 0");
	expect(path, WORK + 8, version->inlined);
	expect(path, WORK + 23, version->inner);
	expect(path, WORK + 31, has_start ? "main.work a.go:12 9" : "main.work a.go:12 0");
	expect(path, 63, has_start ? "main.(*T).End a.go:6 5" : "main.(*T).End a.go:6 0");
	expect(path, 64, "none");
}

static void each_form_is_read(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		expect_all(build(EXE, versions[i].symbols), &versions[i]);
		expect_all(build(PIE, versions[i].symbols), &versions[i]);
	}
}

/* Words of @path that the loader fills in: as linkers leave them that do not write them as well. How many there were. */
static size_t clear_words(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	const Elf64_Shdr *section;
	const uint64_t none = 0;
	size_t count = 0;
	struct stat st;
	struct elf elf;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	assert_int_equal(elf_open(&elf, fd, (uint64_t)st.st_size, 0), 0);
	section = elf_find_section(&elf, SHT_RELA, ".rela.dyn");
	assert_non_null(section);
	for (; count < section->sh_size / sizeof(Elf64_Rela); count++) {
		Elf64_Rela rela;

		assert_int_equal(elf_read(&elf, section->sh_offset + count * sizeof(rela), &rela, sizeof(rela)), 0);
		for (size_t i = 0; i < elf.phdr_count; i++) {
			const uint64_t at = rela.r_offset - elf.phdrs[i].p_vaddr;

			if (elf.phdrs[i].p_type == PT_LOAD && at < elf.phdrs[i].p_filesz)
				assert_int_equal(pwrite(fd, &none, sizeof(none), (off_t)(elf.phdrs[i].p_offset + at)), 8);
		}
	}
	elf_close(&elf);
	close(fd);
	return count;
}

/* Addresses are in relocations alone. */
static void what_the_loader_fills_in_is_read(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		const char *path = build(PIE, versions[i].symbols);

		assert_true(clear_words(path) > 1);
		expect_all(path, &versions[i]);
	}
}

/* C's linker has put it among other constants, two of which begin like it. */
static void a_table_among_constants_is_found(void **state _unused_)
{
	char symbols[128];

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		snprintf(symbols, sizeof(symbols), "%s -Wa,--defsym,HIDDEN=1", versions[i].symbols);
		expect_all(build(PIE, symbols), &versions[i]);
		/* nothing says that it is Go's */
		fixture_run("objcopy --rename-section .note.go.buildid=.note.other lines lines");
		expect(fixture_path("lines"), WORK, "none");
	}
}

static void a_cycle_costs_the_line(void **state _unused_)
{
	static const char *const cyclic[] = { "109", "112", "113", "116", "120" };
	char symbols[128];

	for (size_t i = 0; i < ARRAY_SIZE(cyclic); i++) {
		snprintf(symbols, sizeof(symbols), "-Wa,--defsym,GO=%s -Wa,--defsym,CYCLE=1", cyclic[i]);
		build(EXE, symbols);
		expect(fixture_path("lines"), WORK + 23, "main.work :0 0");
		expect(fixture_path("lines"), WORK + 31, strcmp(cyclic[i], "120") ? "main.work a.go:12 0" : "main.work a.go:12 9");
	}
}

/* What has others inlined has its name alone, and the rest its lines; of Go 1.12 it is not known then which that is. */
static void lists_that_are_nowhere_cost_inlined_lines(void **state _unused_)
{
	static const char *const each[] = { "109", "112", "113", "116" };
	char symbols[128];

	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		snprintf(symbols, sizeof(symbols), "-Wa,--defsym,GO=%s -Wa,--defsym,NOWHERE=1", each[i]);
		build(EXE, symbols);
		expect(fixture_path("lines"), 0, "runtime.rt0_go a.go:6 0");
		expect(fixture_path("lines"), WORK + 23, "main.work :0 0");
		expect(fixture_path("lines"), WORK + 31, strcmp(each[i], "112") ? "main.work a.go:12 0" : "main.work :0 0");
	}
}

/* Each byte of a section, one after the other. How many answers there were. */
static size_t damage(const char *path, const char *section)
{
	static const uint8_t bits[] = { 0x01, 0x80, 0xff };
	static const uint64_t asked[] = { 0, WORK + 23, 63 };
	const char *at = fixture_ask("readelf -SW '%s' | sed -n 's/.* \\%s *[A-Z]* *//p' | awk '{ print \"0x\" $2, \"0x\" $3 }'",
				     path, section);
	unsigned long long offset, bytes;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct text text;
	size_t some = 0;

	assert_int_equal(sscanf(at, "%llx %llx", &offset, &bytes), 2);
	assert_true(bytes > 30);
	for (size_t k = 0; k < bytes * ARRAY_SIZE(bits); k++) {
		const off_t where = (off_t)(offset + k / ARRAY_SIZE(bits));
		uint8_t byte, bad;

		assert_int_equal(pread(fd, &byte, 1, where), 1);
		bad = byte ^ bits[k % ARRAY_SIZE(bits)];
		assert_int_equal(pwrite(fd, &bad, 1, where), 1);
		for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
			ask(path, asked[i], &text);
			some += !strncmp(text.bytes, "main.", 5);
		}
		assert_int_equal(pwrite(fd, &byte, 1, where), 1);
	}
	close(fd);
	return some;
}

static void damage_is_survived(void **state _unused_)
{
	static const char *const each[] = { "109", "113", "116" };
	char symbols[128];

	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		snprintf(symbols, sizeof(symbols), "-Wa,--defsym,GO=%s", each[i]);
		assert_true(damage(build(EXE, symbols), ".gopclntab") > 100);
		assert_true(damage(build(EXE, symbols), ".rodata") > 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_form_is_read),
		cmocka_unit_test(what_the_loader_fills_in_is_read),
		cmocka_unit_test(a_table_among_constants_is_found),
		cmocka_unit_test(a_cycle_costs_the_line),
		cmocka_unit_test(lists_that_are_nowhere_cost_inlined_lines),
		cmocka_unit_test(damage_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
