// SPDX-License-Identifier: Apache-2.0
/*
 * Rules of Go's functions where its table has no flags for those that change stacks, until Go 1.16. The tables are made here
 * (tests/unit/go_stack.s); what compilers of 20 versions wrote is held against its instructions by tests/oracle/go_versions.py.
 */
#include "fixture.h"

#include <elf.h>

#include "symbol/elf.h"
#include "unwind/compile.h"
#include "unwind/key.h"
#include "unwind/rule.h"

/* clang-format off */
__asm__(".pushsection .rodata\n.globl go_stack_tables\ngo_stack_tables: .incbin \"tests/unit/go_stack.s\"\n.byte 0\n.popsection\n");
/* clang-format on */
extern const char go_stack_tables[];

#define MEMORY ((size_t)64 << 20)

static const char *build(const char *symbols)
{
	fixture_write("go_stack.s", go_stack_tables);
	fixture_run("gcc -no-pie -static -nostdlib -Wl,--build-id=none %s -o stack go_stack.s", symbols);
	return fixture_path("stack");
}

static uint64_t symbol(const char *path, const char *name)
{
	return strtoull(fixture_ask("nm '%s' | awk '$3 == \"%s\" { print $1 }'", path, name), NULL, 16);
}

static uint8_t *load(const char *path, uint16_t machine, size_t *ret_size)
{
	uint8_t *image = fixture_load(path, ret_size);

	((Elf64_Ehdr *)(void *)image)->e_machine = machine;
	return image;
}

struct expected {
	const char *name;
	uint64_t offset;
	const char *rule;
};

/* -errno of compiling */
static int expect(const char *path, uint16_t machine, const struct expected *expected, size_t count)
{
	_cleanup_free_ void *data = NULL;
	struct compile_stats stats;
	struct unwind_table table;
	char found[RULE_TEXT_MAX];
	struct elf elf;
	size_t size, bytes;
	uint8_t *image = load(path, machine, &size);
	int r;

	assert_int_equal(elf_open_memory(&elf, image, size), 0);
	r = compile_elf(&elf, MEMORY, &data, &bytes, &stats);
	elf_close(&elf);
	free(image);
	if (r < 0)
		return r;
	assert_int_equal(unwind_table_check(data, bytes, &table), 0);
	for (size_t i = 0; i < count; i++) {
		rule_format(machine_find(machine),
			    unwind_table_find(&table, symbol(path, expected[i].name) + expected[i].offset), found);
		if (strcmp(found, expected[i].rule))
			fail_msg("%s+%d: %s, not %s", expected[i].name, (int)expected[i].offset, found, expected[i].rule);
	}
	return 0;
}

#define X86_LEAF "cfa=sp+8 ra=[cfa-8] fp=same"
#define X86_FRAME "cfa=sp+32 ra=[cfa-8] fp=same"
#define ARM64_LEAF "cfa=sp ra=lr fp=same"
#define ARM64_FRAME "cfa=sp+32 ra=[cfa-32] fp=same"
#define ARM64_UNSAVED "cfa=sp+32 ra=lr fp=same"

static const struct expected x86[] = {
	{ "_start", 0, "end of stack" }, { "last", 0, "end of stack" },
	{ "plain", 0, X86_LEAF }, { "plain", 4, X86_FRAME }, { "plain", 9, X86_LEAF },
	{ "leaving", 0, "no rule" }, { "leaving", 15, "no rule" },
	/* made by hand, so no distance tells of it */
	{ "unnoted", 0, "no rule" },
	{ "compiled", 0, X86_LEAF }, { "compiled", 4, X86_FRAME },
	{ "grows", 0, X86_LEAF }, { "grows", 8, X86_FRAME }, { "grows", 27, X86_LEAF },
	{ "block", 0, X86_LEAF }, { "block", 6, X86_LEAF }, { "block", 7, "no rule" }, { "behind", 0, "no rule" },
};

static const struct expected arm64[] = {
	{ "_start", 0, "end of stack" }, { "last", 0, "end of stack" },
	{ "plain", 0, ARM64_LEAF }, { "plain", 4, ARM64_FRAME }, { "plain", 12, ARM64_LEAF },
	{ "leaving", 0, "no rule" }, { "unnoted", 0, "no rule" },
	/* the link register is stored behind the instruction that makes the frame */
	{ "compiled", 0, ARM64_LEAF }, { "compiled", 4, ARM64_UNSAVED }, { "compiled", 8, ARM64_FRAME },
	{ "grows", 0, ARM64_LEAF }, { "grows", 12, ARM64_FRAME }, { "grows", 24, ARM64_LEAF },
	{ "block", 0, ARM64_LEAF }, { "block", 8, ARM64_LEAF }, { "behind", 0, "no rule" },
	/* its frame has the link register elsewhere */
	{ "hand", 0, "no rule" }, { "hand", 8, "no rule" },
};

static void functions_that_leave_their_stack_are_found(void **state)
{
	const struct expected stays[] = { { "leaving", 0, X86_LEAF }, { "unnoted", 0, "no rule" } };
	const struct expected stays_arm64[] = { { "leaving", 0, ARM64_LEAF }, { "unnoted", 0, "no rule" } };

	(void)state;
	assert_int_equal(expect(build("-Wa,--defsym,ELSEWHERE=1"), EM_X86_64, x86, ARRAY_SIZE(x86)), 0);
	assert_int_equal(expect(build("-Wa,--defsym,ELSEWHERE=2"), EM_X86_64, x86, ARRAY_SIZE(x86)), 0);
	assert_int_equal(expect(build(""), EM_X86_64, stays, ARRAY_SIZE(stays)), 0);
	assert_int_equal(expect(build("-Wa,--defsym,ELSEWHERE=3"), EM_X86_64, stays, ARRAY_SIZE(stays)), 0);
	assert_int_equal(expect(build("-Wa,--defsym,ELSEWHERE=1,--defsym,ARM64=1"), EM_AARCH64, arm64, ARRAY_SIZE(arm64)), 0);
	assert_int_equal(expect(build("-Wa,--defsym,ARM64=1"), EM_AARCH64, stays_arm64, ARRAY_SIZE(stays_arm64)), 0);
}

/* Where there are flags they count, and no code of x86 is read. */
static void flags_of_go_117_go_first(void **state)
{
	const struct expected flagged[] = {
		{ "_start", 0, "end of stack" }, { "leaving", 0, X86_LEAF }, { "unnoted", 0, X86_LEAF }, { "behind", 0, X86_FRAME },
	};
	const struct expected by_hand[] = {
		{ "plain", 4, ARM64_FRAME }, { "unnoted", 0, "no rule" }, { "compiled", 4, ARM64_FRAME }, { "hand", 4, "no rule" },
	};

	(void)state;
	assert_int_equal(expect(build("-Wa,--defsym,ELSEWHERE=1,--defsym,FLAGS=1"), EM_X86_64, flagged, ARRAY_SIZE(flagged)), 0);
	/* but for arm64's assembler */
	assert_int_equal(expect(build("-Wa,--defsym,ELSEWHERE=1,--defsym,FLAGS=1,--defsym,ARM64=1"), EM_AARCH64, by_hand,
				ARRAY_SIZE(by_hand)), 0);
}

static void without_names_there_are_no_rules(void **state)
{
	(void)state;
	assert_int_equal(expect(build("-Wa,--defsym,NAMELESS=1"), EM_X86_64, NULL, 0), -ENODATA);
}

static void key_of(const char *path, uint8_t ret_key[static KEY_BYTES])
{
	struct elf elf;
	size_t size;
	uint8_t *image = load(path, EM_X86_64, &size);

	assert_int_equal(elf_open_memory(&elf, image, size), 0);
	assert_int_equal(key_make(&elf, ret_key), 0);
	elf_close(&elf);
	free(image);
}

/* The same table with other code is another one. */
static void code_that_was_read_is_part_of_the_key(void **state)
{
	uint8_t keys[3][KEY_BYTES];

	(void)state;
	key_of(build(""), keys[0]);
	key_of(build("-Wa,--defsym,ELSEWHERE=1"), keys[1]);
	key_of(build(""), keys[2]);
	assert_memory_not_equal(keys[0], keys[1], KEY_BYTES);
	assert_memory_equal(keys[0], keys[2], KEY_BYTES);
}

static void damaged_tables_are_survived(void **state)
{
	static const uint8_t bits[] = { 0x01, 0x40, 0x80, 0xff };
	const char *path = build("");
	uint64_t offset = strtoull(fixture_ask("readelf -SW '%s' | sed -n 's/.*\\.gopclntab *//p' | awk '{ print $3 }'", path), NULL, 16);
	uint64_t bytes = strtoull(fixture_ask("readelf -SW '%s' | sed -n 's/.*\\.gopclntab *//p' | awk '{ print $4 }'", path), NULL, 16);
	struct compile_stats stats;
	size_t size, ignored, good = 0;
	uint8_t key[KEY_BYTES];
	struct elf elf;
	uint8_t *image = load(path, EM_X86_64, &size);
	void *data;

	(void)state;
	assert_true(offset && bytes > 400 && offset + bytes <= size);
	for (size_t i = 0; i < bytes * ARRAY_SIZE(bits); i++) {
		uint8_t *at = &image[offset + i / ARRAY_SIZE(bits)];

		*at ^= bits[i % ARRAY_SIZE(bits)];
		data = NULL;
		assert_int_equal(elf_open_memory(&elf, image, size), 0);
		(void)key_make(&elf, key);
		good += compile_elf(&elf, MEMORY, &data, &ignored, &stats) == 0;
		elf_close(&elf);
		free(data);
		*at ^= bits[i % ARRAY_SIZE(bits)];
	}
	assert_true(good > 0);
	free(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_that_leave_their_stack_are_found),
		cmocka_unit_test(flags_of_go_117_go_first),
		cmocka_unit_test(without_names_there_are_no_rules),
		cmocka_unit_test(code_that_was_read_is_part_of_the_key),
		cmocka_unit_test(damaged_tables_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
