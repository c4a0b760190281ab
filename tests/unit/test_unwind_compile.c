// SPDX-License-Identifier: Apache-2.0
/* Call frame information compiled: what assemblers and linkers make of it, and broken files. */
#include "fixture.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "symbol/elf.h"
#include "unwind/compile.h"
#include "base/cursor.h"
#include "unwind/gap.h"
#include "unwind/machine.h"
#include "unwind/rule.h"

#define MEMORY ((size_t)64 << 20)

struct compiled {
	void *data;
	size_t size;
	struct unwind_table table;
	struct compile_stats stats;
};

static int compile(const uint8_t *image, size_t size, size_t limit, struct compiled *ret)
{
	struct elf elf;
	int r;

	*ret = (struct compiled){ 0 };
	r = elf_open_memory(&elf, image, size);
	if (r < 0)
		return r;
	r = compile_elf(&elf, limit, &ret->data, &ret->size, &ret->stats);
	elf_close(&elf);
	if (r == 0)
		assert_int_equal(unwind_table_check(ret->data, ret->size, &ret->table), 0);
	return r;
}

static struct compiled compile_path(const char *path)
{
	struct compiled compiled;
	uint8_t *image;
	size_t size;

	image = fixture_load(path, &size);
	assert_int_equal(compile(image, size, MEMORY, &compiled), 0);
	free(image);
	return compiled;
}

static uint64_t symbol(const char *path, const char *name)
{
	return strtoull(fixture_ask("nm '%s' | awk '$3 == \"%s\" { print $1 }'", path, name), NULL,
			16);
}

static void expect(const struct compiled *compiled, uint64_t address, const char *text)
{
	const struct unwind_rule *rule = unwind_table_find(&compiled->table, address);
	char found[RULE_TEXT_MAX] = "nothing";

	if (rule)
		rule_format(machine_find(compiled->table.machine), rule, found);
	assert_string_equal(found, text);
}

/* Assembly in a function of its own, with the program around it. */
static const char *assemble(const char *name, const char *flags, const char *body)
{
	_cleanup_free_ char *source = NULL;
	FILE *file;
	size_t size;

	file = open_memstream(&source, &size);
	assert_non_null(file);
	fprintf(file, "__asm__(\".text\\n.p2align 4\\n.globl probe\\nprobe:\\n.cfi_startproc\\n\"\n"
		      "%s\n\".cfi_endproc\\n.globl probe_end\\nprobe_end: nop\\n.p2align 5\\n\");\n"
		      "void probe(void);\n"
		      "int main(int c, char **v) { (void)v; if (c > 100) probe(); return 0; }\n",
		body);
	fclose(file);
	return fixture_build(name, flags, source);
}

static void instructions_become_rules(void **state)
{
	const char *path = assemble("rules", "-no-pie",
		"\"nop\\n.cfi_def_cfa_offset 16\\n.cfi_offset rbp, -16\\n\"\n"
		"\"nop\\n.cfi_def_cfa_register rbp\\n\"\n"
		"\"nop\\n.cfi_remember_state\\n.cfi_def_cfa rsp, 8\\n.cfi_restore rbp\\n\"\n"
		"\"nop\\n.cfi_restore_state\\n\"\n"
		"\"nop\\n.cfi_def_cfa r10, 0\\n.cfi_undefined rbp\\n\"\n"
		"\"nop\\n.cfi_register rip, rdi\\n.cfi_same_value rbp\\n\"\n"
		"\"nop\\n.cfi_val_offset rbp, 8\\n\"\n"
		"\"nop\\n.cfi_undefined rip\\n\"\n"
		"\"nop\\n.cfi_restore rip\\n.cfi_register rbp, r11\\n\"\n"
		"\"nop\\n\"");
	struct compiled compiled = compile_path(path);
	uint64_t at = symbol(path, "probe");

	(void)state;
	assert_true(at > 0);
	expect(&compiled, at, "cfa=sp+8 ra=[cfa-8] fp=same");
	expect(&compiled, at + 1, "cfa=sp+16 ra=[cfa-8] fp=[cfa-16]");
	expect(&compiled, at + 2, "cfa=fp+16 ra=[cfa-8] fp=[cfa-16]");
	expect(&compiled, at + 3, "cfa=sp+8 ra=[cfa-8] fp=same");
	expect(&compiled, at + 4, "cfa=fp+16 ra=[cfa-8] fp=[cfa-16]");
	expect(&compiled, at + 5, "cfa=r10 ra=[cfa-8] fp=undefined");
	expect(&compiled, at + 6, "cfa=r10 ra=r5 fp=same");
	expect(&compiled, at + 7, "cfa=r10 ra=r5 fp=cfa+8");
	expect(&compiled, at + 8, "end of stack");
	expect(&compiled, at + 9, "cfa=r10 ra=[cfa-8] fp=r11");
	expect(&compiled, symbol(path, "probe_end"), "uncovered");
	free(compiled.data);
}

/* An object in which callers need rbx tells where it is. */
static void a_register_that_callers_need_is_told(void **state)
{
	const char *path = assemble("saved", "-no-pie",
		"\"nop\\n.cfi_def_cfa_offset 16\\n.cfi_offset rbx, -16\\n\"\n"
		"\"nop\\n.cfi_def_cfa_register rbx\\n\"\n"
		"\"nop\\n.cfi_def_cfa rsp, 24\\n.cfi_register rbx, rdx\\n\"\n"
		"\"nop\\n.cfi_same_value rbx\\n\"\n"
		"\"nop\\n\"");
	struct compiled compiled = compile_path(path);
	const struct unwind_table *table = &compiled.table;
	static const int32_t saved[] = { 0, -16, -16, UNWIND_SAVED_LOST, 0 };
	uint64_t at = symbol(path, "probe");

	(void)state;
	assert_non_null(table->saved);
	for (size_t i = 0; i < ARRAY_SIZE(saved); i++)
		assert_int_equal(table->saved[unwind_table_find(table, at + i) - table->rules],
				 saved[i]);
	free(compiled.data);
	compiled = compile_path(fixture_build("unsaved", "-O1",
					      "int main(void) { return 0; }\n"));
	assert_null(compiled.table.saved);
	free(compiled.data);
}

/* .cfi_escape: 0x0f def_cfa_expression, 0x10 expression; 0x77 breg7, 0x76 breg6, 0x06 deref */
static void expressions_become_rules_or_nothing(void **state)
{
	const char *path = assemble("expressions", "-no-pie",
		/* what gcc says of a realigned stack */
		"\"nop\\n.cfi_escape 0x0f,3,0x76,0x78,6\\n.cfi_escape 0x10,6,2,0x76,0\\n\"\n"
		/* a saved stack pointer, as in OpenSSL: *(rsp + 40) + 8 */
		"\"nop\\n.cfi_escape 0x0f,5,0x77,40,6,0x23,8\\n\"\n"
		/* *(rsp + 40) + 4: no whole words */
		"\"nop\\n.cfi_escape 0x0f,5,0x77,40,6,0x23,4\\n\"\n"
		/* rsp + 8 + r9 * 8 */
		"\"nop\\n.cfi_escape 0x0f,7,0x77,8,0x79,0,0x38,0x1e,0x22\\n\"\n"
		/* back to a register, with the last offset */
		"\"nop\\n.cfi_def_cfa_register rsp\\n\"\n"
		/* rbp = CFA + 16, by DW_CFA_val_expression */
		"\"nop\\n.cfi_def_cfa rsp, 64\\n.cfi_escape 0x16,6,2,0x23,16\\n\"\n"
		/* the stack pointer is somewhere else */
		"\"nop\\n.cfi_restore rbp\\n.cfi_register rsp, r8\\n\"\n"
		"\"nop\\n\"");
	struct compiled compiled = compile_path(path);
	uint64_t at = symbol(path, "probe");

	(void)state;
	expect(&compiled, at + 1, "cfa=[fp-8] ra=[cfa-8] fp=[fp]");
	expect(&compiled, at + 2, "cfa=[sp+40]+8 ra=[cfa-8] fp=[fp]");
	expect(&compiled, at + 3, "no rule");
	expect(&compiled, at + 4, "no rule");
	expect(&compiled, at + 5, "cfa=sp+8 ra=[cfa-8] fp=[fp]");
	expect(&compiled, at + 6, "cfa=sp+64 ra=[cfa-8] fp=cfa+16");
	expect(&compiled, at + 7, "no rule");
	free(compiled.data);
}

static void unknown_instructions_leave_the_rest_without_rule(void **state)
{
	const char *path = assemble("unknown", "-no-pie -Wl,--no-eh-frame-hdr",
		"\"nop\\n.cfi_def_cfa_offset 16\\n\"\n"
		"\"nop\\n.cfi_escape 0x3a\\n\"\n"
		"\"nop\\n.cfi_def_cfa_offset 8\\n\"\n"
		"\"nop\\n\"");
	struct compiled compiled = compile_path(path);
	uint64_t at = symbol(path, "probe");

	(void)state;
	expect(&compiled, at, "cfa=sp+8 ra=[cfa-8] fp=same");
	expect(&compiled, at + 1, "cfa=sp+16 ra=[cfa-8] fp=same");
	expect(&compiled, at + 2, "no rule");
	expect(&compiled, at + 3, "no rule");
	expect(&compiled, symbol(path, "probe_end"), "uncovered");
	free(compiled.data);
}

static void system_libraries_have_their_special_functions(void **state)
{
	const char *path = fixture_ask("ldd /bin/sh | awk '/libc.so/ { print $3 }'");
	struct compiled compiled;
	char address[32];

	(void)state;
	if (!*path || access(path, R_OK) < 0)
		path = "/lib/x86_64-linux-gnu/libc.so.6";
	compiled = compile_path(path);
	/* movq $15, %rax; syscall: where handlers return to */
	snprintf(address, sizeof(address), "%s", fixture_ask(
		"objdump -d --section=.text '%s' | "
		"awk '/mov +\\$0xf,%%rax/ { sub(\":\", \"\", $1); a = $1 } "
		"/syscall/ && a && n == NR - 1 { print a; exit } /mov +\\$0xf,%%rax/ { n = NR }'", path));
	assert_true(*address != '\0');
	expect(&compiled, strtoull(address, NULL, 16),
	       "cfa=[sp+160] ra=[sp+168] fp=[sp+120] signal");
	expect(&compiled, strtoull(address, NULL, 16) - 1,
	       "cfa=[sp+160] ra=[sp+168] fp=[sp+120] signal");
	/* within the system call the program counter is behind it, where no function is */
	expect(&compiled, strtoull(address, NULL, 16) + 9,
	       "cfa=[sp+160] ra=[sp+168] fp=[sp+120] signal");
	expect(&compiled, strtoull(address, NULL, 16) + 10, "uncovered");
	assert_true(compiled.stats.fdes > 1000);
	assert_true(2 * compiled.size <= compiled.stats.eh_bytes);
	free(compiled.data);
}

static void debug_frames_serve_where_eh_frame_is_missing(void **state)
{
	static const char source[] = "int leaf(int x) { return x + 1; }\n"
				     "int main(int c, char **v) { (void)v; return leaf(c); }\n";
	static const char flags[] = "-no-pie -g -O1 -fomit-frame-pointer "
				    "-fno-asynchronous-unwind-tables -fno-exceptions";
	static const char *const kinds[] = { "", "-Wa,--compress-debug-sections=zlib",
					     "-Wl,--compress-debug-sections=zlib" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		_cleanup_free_ char *all = NULL;
		struct compiled compiled;
		const char *path;

		assert_true(asprintf(&all, "%s %s", flags, kinds[i]) > 0);
		path = fixture_build("debug", all, source);
		compiled = compile_path(path);
		assert_true(compiled.stats.debug_bytes > 0);
		expect(&compiled, symbol(path, "leaf"), "cfa=sp+8 ra=[cfa-8] fp=same");
		free(compiled.data);
	}
}

/* The same table whether sections or program headers lead to .eh_frame. */
static void files_without_sections_are_read(void **state)
{
	const char *path = fixture_build("plain", "-O1", "int main(void) { return 0; }\n");
	struct compiled with, without;
	uint8_t *image;
	size_t size;

	(void)state;
	image = fixture_load(path, &size);
	assert_int_equal(compile(image, size, MEMORY, &with), 0);
	((Elf64_Ehdr *)(void *)image)->e_shoff = 0;
	((Elf64_Ehdr *)(void *)image)->e_shnum = 0;
	assert_int_equal(compile(image, size, MEMORY, &without), 0);
	expect(&without, symbol(path, "main"), "cfa=sp+8 ra=[cfa-8] fp=same");
	assert_int_equal(without.stats.fdes, with.stats.fdes);
	free(with.data);
	free(without.data);
	free(image);
}

static void a_plt_without_frame_entry_has_a_rule(void **state)
{
	/* the linker's own entries are left out on request; lld never writes any */
	const char *path = fixture_build("plt", "-no-pie -O1 -Wl,-z,lazy "
					 "-Wl,--no-ld-generated-unwind-info",
					 "int puts(const char *);\n"
					 "int main(void) { return puts(\"x\"); }\n");
	struct compiled compiled = compile_path(path);
	uint64_t plt = strtoull(fixture_ask("readelf -SW '%s' | awk '$2 == \".plt\" { print $4 } "
					    "$3 == \".plt\" { print $5 }'", path), NULL, 16);

	(void)state;
	assert_true(plt > 0);
	expect(&compiled, plt, "cfa=sp+16 ra=[cfa-8] fp=same");
	expect(&compiled, plt + 6, "cfa=sp+24 ra=[cfa-8] fp=same");
	expect(&compiled, plt + 16, "cfa=sp+8+plt11 ra=[cfa-8] fp=same");
	expect(&compiled, plt + 31, "cfa=sp+8+plt11 ra=[cfa-8] fp=same");
	free(compiled.data);
}

/* The functions of a static program that are chosen when it starts are called by entries that never push. */
static void a_plt_of_a_static_program_has_a_rule(void **state)
{
	const char *path = fixture_build("iplt", "-static -no-pie -O1 -fno-builtin",
					 "#include <string.h>\n"
					 "int main(int c, char **v) { (void)c; return (int)strlen(v[0]); }\n");
	struct compiled compiled = compile_path(path);
	uint64_t plt = strtoull(fixture_ask("readelf -SW '%s' | sed 's/^ *\\[ *[0-9]*\\] *//' | "
					    "awk '$1 == \".plt\" { print $3 }'", path), NULL, 16);
	uint64_t bytes = strtoull(fixture_ask("readelf -SW '%s' | sed 's/^ *\\[ *[0-9]*\\] *//' | "
					      "awk '$1 == \".plt\" { print $5 }'", path), NULL, 16);

	(void)state;
	assert_true(plt > 0 && bytes >= 16 && bytes % 8 == 0);
	for (uint64_t at = plt; at < plt + bytes; at++)
		expect(&compiled, at, "cfa=sp+8 ra=[cfa-8] fp=same");
	expect(&compiled, plt + bytes, "uncovered");
	free(compiled.data);
}

static void cursors_stay_inside(void **state)
{
	static const uint8_t bytes[] = { 0x80, 0x80, 0x01, 0x7f, 0xff };
	struct cursor cursor = { .at = bytes, .end = bytes + sizeof(bytes) };

	(void)state;
	assert_int_equal(cursor_uleb(&cursor), 1 << 14);
	assert_int_equal(cursor_sleb(&cursor), -1);
	assert_false(cursor.bad);
	assert_int_equal(cursor_uleb(&cursor), 0x7f);
	assert_true(cursor.bad);
	for (unsigned int size = 6; size <= 8; size++) {
		cursor = (struct cursor){ .at = bytes, .end = bytes + sizeof(bytes) };
		assert_int_equal(cursor_number(&cursor, size), 0);
		assert_true(cursor.bad);
		assert_ptr_equal(cursor.at, cursor.end);
	}
	cursor = (struct cursor){ .at = bytes, .end = bytes + sizeof(bytes) };
	assert_null(cursor_take(&cursor, UINT64_MAX));
	assert_null(cursor_take(&cursor, 1));
}

/* musl and the arm64 vDSO have no frame entry for where handlers return to. */
static void a_trampoline_without_frame_entry_has_a_rule(void **state)
{
	static const char flags[] = "-no-pie -O1";
	static const char source[] =
		"__asm__(\".text\\n.p2align 6\\n.skip 40, 0x90\\n\"\n"
		"\".globl trampoline\\ntrampoline:\\n\"\n"
		"\"movq $15, %%rax\\nsyscall\\n.globl behind\\nbehind: %s\\n.skip 40, 0x90\\n\");\n"
		"int main(void) { return 0; }\n";
	static const char rule[] = "cfa=[sp+160] ra=[sp+168] fp=[sp+120] signal";
	static const struct {
		const char *code;
		bool is_filler;
	} cases[] = {
		{ "nop", true }, { "int3", true }, { "nopl 0x12345678(%rax)", true },
		{ ".byte 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0", true },
		/* functions */
		{ "pushq %rbx", false }, { "pxor %xmm0, %xmm0", false }, { "endbr64", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *all = NULL;
		struct compiled compiled;
		const char *path;
		uint64_t at;

		assert_true(asprintf(&all, source, cases[i].code) > 0);
		path = fixture_build("trampoline", flags, all);
		compiled = compile_path(path);
		at = symbol(path, "trampoline");
		expect(&compiled, at - 2, "uncovered");
		/* the byte before stands for a return address that is the first instruction's */
		expect(&compiled, at - 1, rule);
		expect(&compiled, at + 8, rule);
		/* and the one behind for the system call that is under way */
		expect(&compiled, symbol(path, "behind"), cases[i].is_filler ? rule : "uncovered");
		expect(&compiled, symbol(path, "behind") + 1, "uncovered");
		free(compiled.data);
	}
}

/* The arm64 vDSO's is the last of its code, in the midst of a segment; musl's has a function behind it. */
static void a_trampoline_on_arm64_has_a_rule(void **state)
{
	static const char flags[] = "-no-pie -nostdlib -static -fno-asynchronous-unwind-tables "
				    "-Wl,-z,noseparate-code";
	static const char source[] =
		"__asm__(\".p2align 4\\n.globl _start, trampoline, behind\\n_start: .long 0xd503201f\\n\"\n"
		"\"trampoline: .long 0xd2801168, 0xd4000001\\nbehind: %s\\n\"\n"
		"\".section .altinstructions, \\\"a\\\"\\n.long 0xfffffb44, 0xffffffd0\\n\");\n";
	static const char rule[] = "cfa=[sp+560] ra=[sp+568] fp=[sp+544] signal";
	static const struct {
		const char *behind, *rule;
	} cases[] = {
		{ "", rule },
		{ ".long 0xd503201f, 0xd503201f", rule },	/* nop */
		{ ".long 0, 0", rule },
		{ ".long 0xa9bf7bfd, 0xd503201f", "uncovered" },	/* stp x29, x30, [sp, #-16]! */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ uint8_t *image = NULL;
		_cleanup_free_ char *all = NULL;
		struct compiled compiled;
		const char *path;
		uint64_t at;
		size_t size;

		assert_true(asprintf(&all, source, cases[i].behind) > 0);
		path = fixture_build("trampoline-arm64", flags, all);
		image = fixture_load(path, &size);
		((Elf64_Ehdr *)(void *)image)->e_machine = EM_AARCH64;
		assert_int_equal(compile(image, size, MEMORY, &compiled), 0);
		at = symbol(path, "trampoline");
		expect(&compiled, at - 4, rule);
		expect(&compiled, at + 4, rule);
		expect(&compiled, at + 8, cases[i].rule);
		expect(&compiled, at + 12, "uncovered");
		free(compiled.data);
	}
}

/* ld.so on x86 has none for where the kernel enters it. */
static void an_entry_without_frame_entry_is_the_end(void **state)
{
	static const char flags[] = "-no-pie -O1 -nostdlib -Wl,-e,begin";
	static const char source[] =
		"__asm__(\".text\\n.p2align 6\\n.skip 16, 0x90\\n.globl begin\\nbegin:\\n\"\n"
		"\"%s\\ncall begin\\n.globl behind\\nbehind: .skip 80, 0x90\\n\");\n"
		"int other(int x) { return x; }\n";
	static const struct {
		const char *first, *rule, *behind;
	} cases[] = {
		{ "movq %rsp, %rdi", "end of stack", "end of stack" },
		/* musl's: another function follows */
		{ "xorq %rbp, %rbp\\nmovq %rsp, %rdi\\nandq $-16, %rsp", "end of stack",
		  "uncovered" },
		/* libraries may begin with anything */
		{ "leaq 8(%rsp), %rdi", "uncovered", "uncovered" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *all = NULL;
		struct compiled compiled;
		const char *path;

		assert_true(asprintf(&all, source, cases[i].first) > 0);
		path = fixture_build("entry", flags, all);
		compiled = compile_path(path);
		expect(&compiled, symbol(path, "begin"), cases[i].rule);
		expect(&compiled, symbol(path, "behind") - 1, cases[i].rule);
		expect(&compiled, symbol(path, "behind"), cases[i].behind);
		expect(&compiled, symbol(path, "begin") - 1, "uncovered");
		expect(&compiled, symbol(path, "begin") + 64, "uncovered");
		free(compiled.data);
	}
}

/* musl says nothing about them either; the frame pointer there is that of who made the thread. */
static void where_threads_of_musl_begin_is_the_end(void **state)
{
	static const char flags[] = "-no-pie -nostdlib -static -fno-asynchronous-unwind-tables";
	static const char x86[] =
		"__asm__(\".globl _start, before, code, call, behind, pthread_exit\\n_start: nop\\n\"\n"
		"\".type pthread_exit, @function\\npthread_exit: hlt\\n.p2align 4\\n\"\n"
		"\"before: test %eax, %eax\\njnz behind\\ncode: xor %ebp, %ebp\\npop %rdi\\n\"\n"
		"\"call *%r9\\nmov %eax, %edi\\nxor %eax, %eax\\nmov $60, %al\\nsyscall\\nhlt\\n\"\n"
		"\"behind: ret\\n.skip 20, 0x90\\ncall *(%rax)\\ncall: \"\n"
		"\"movslq %eax, %rdi\\ncall pthread_exit\\n\"\n"
		"\"call *8(%rbx)\\nmov %rax, %rdi\\ncall pthread_exit\\n\"\n"
		"\"call _start\\nmov %rax, %rdi\\ncall pthread_exit\\n\"\n"
		"\"call *(%rax)\\nmov %rax, %rdi\\ncall _start\\n\");\n";
	/* cbz x0, code; ret; musl 1.2.5's; nops; blr x1; bl; blr x1; sxtw; bl; bl _start; bl */
	static const char arm64[] =
		"__asm__(\".p2align 4\\n.globl _start, before, code, call, behind, pthread_exit\\n\"\n"
		"\"_start: .long 0xd503201f\\n.type pthread_exit, @function\\n\"\n"
		"\"pthread_exit: .long 0x14000000\\n\"\n"
		"\"before: .long 0xb4000040, 0xd65f03c0\\n\"\n"
		"\"code: .long 0xa8c103e1, 0xd63f0020, 0xd2800ba8, 0xd4000001\\n\"\n"
		"\"behind: .long 0xd503201f, 0xd503201f, 0xd63f0020\\n\"\n"
		"\"call: .long 0x97fffff6, 0xd63f0020, 0x93407c00, 0x97fffff3\\n\"\n"
		"\".long 0x97fffff1, 0x97fffff1, 0xd63f0020, 0x97ffffee\\n\");\n";
	/* bytes from the call on, which is the end that only a pointer leads to */
	static const struct {
		uint16_t machine;
		const char *name, *source;
		int8_t ends[4], others[4];
	} cases[] = {
		{ EM_X86_64, "musl-x86", x86, { -1, 7, 10, 18 }, { -2, 8, 23, 39 } },
		{ EM_AARCH64, "musl-arm64", arm64, { -4, 0, 4, 12 }, { -8, 16, 20, 24 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *path = fixture_build(cases[i].name, flags, cases[i].source);
		uint64_t call = symbol(path, "call"), start = symbol(path, "code");
		struct compiled compiled;
		uint8_t *image;
		size_t size;

		image = fixture_load(path, &size);
		((Elf64_Ehdr *)(void *)image)->e_machine = cases[i].machine;
		assert_int_equal(compile(image, size, MEMORY, &compiled), 0);
		expect(&compiled, symbol(path, "before"), "uncovered");
		expect(&compiled, start, "end of stack");
		expect(&compiled, start + 12, "end of stack");
		expect(&compiled, symbol(path, "behind"), "uncovered");
		for (size_t j = 0; j < ARRAY_SIZE(cases[i].ends); j++) {
			expect(&compiled, call + (uint64_t)cases[i].ends[j], "end of stack");
			expect(&compiled, call + (uint64_t)cases[i].others[j], "uncovered");
		}
		free(compiled.data);
		free(image);
	}
}

/* What musl's build makes of __clone() for debuggers follows the stack pointer, of one thread. */
static void where_threads_begin_is_the_end_for_debuggers_too(void **state)
{
	static const char flags[] = "-no-pie -nostdlib -static";
	static const char source[] =
		"__asm__(\".globl _start, clone, code, behind, after\\n_start: nop\\n.p2align 4\\n\"\n"
		"\".cfi_sections .debug_frame\\nclone: .cfi_startproc\\nmov %%rcx, (%%rsi)\\nsyscall\\n\"\n"
		"\"test %%eax, %%eax\\njnz behind\\n\"\n"
		"\"code: xor %%ebp, %%ebp\\npop %%rdi\\n%s\\ncall *%%r9\\n\"\n"
		"\"mov %%eax, %%edi\\nxor %%eax, %%eax\\nmov $60, %%al\\nsyscall\\nhlt\\n\"\n"
		"\"behind: %s\\nret\\nafter: nop\\nret\\n.cfi_endproc\\n.skip 20, 0x90\\n\");\n";
	static const struct {
		const char *in_child, *behind, *rule;
	} cases[] = {
		{ ".cfi_adjust_cfa_offset -8", "", "cfa=sp ra=[cfa-8] fp=same" },
		{ ".cfi_adjust_cfa_offset -8", ".cfi_adjust_cfa_offset 8", "cfa=sp+8 ra=[cfa-8] fp=same" },
		{ "", "", "cfa=sp+8 ra=[cfa-8] fp=same" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *all = NULL;
		struct compiled compiled;
		const char *path;
		uint64_t code;

		assert_true(asprintf(&all, source, cases[i].in_child, cases[i].behind) > 0);
		path = fixture_build("clone", flags, all);
		compiled = compile_path(path);
		code = symbol(path, "code");
		expect(&compiled, symbol(path, "clone"), "cfa=sp+8 ra=[cfa-8] fp=same");
		expect(&compiled, code - 1, "cfa=sp+8 ra=[cfa-8] fp=same");
		for (uint64_t at = code; at < code + 14; at++)
			expect(&compiled, at, "end of stack");
		expect(&compiled, symbol(path, "behind"), cases[i].rule);
		expect(&compiled, symbol(path, "after") + 1, cases[i].rule);
		expect(&compiled, symbol(path, "after") + 2, "uncovered");
		free(compiled.data);
	}
}

static void lazy_binding_on_arm64_is_corrected(void **state)
{
	const struct gaps gaps = { .resolve_start = 0x100 };
	/* in its first instruction, behind it; elsewhere; and as glibc has it mended one day */
	static const struct {
		uint64_t start;
		struct unwind_rule rule;
		const char *want;
	} cases[] = {
		{ 0x100, { .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .ra = UNWIND_VALUE | 30 },
		  "cfa=sp+16 ra=[cfa-8] fp=same" },
		{ 0x100, { .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .cfa_offset = 208,
			   .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = 8 },
		  "cfa=sp+224 ra=[cfa-8] fp=same" },
		{ 0x200, { .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .ra = UNWIND_VALUE | 30 },
		  "cfa=sp ra=lr fp=same" },
		{ 0x100, { .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .cfa_offset = 224,
			   .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -8 },
		  "cfa=sp+224 ra=[cfa-8] fp=same" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct unwind_rule rule = cases[i].rule;
		char found[RULE_TEXT_MAX];

		gaps_correct(&gaps, cases[i].start, &rule);
		rule_format(machine_find(EM_AARCH64), &rule, found);
		assert_string_equal(found, cases[i].want);
	}
}

/* Go's own table, as Go 1.18 and 1.20 lay it out: all that a stripped program of Go has. */
static const char go_source[] =
	"__asm__(\".text\\n.globl _start, work, end, switch, other, none\\n_start: .skip 16, 0x90\\n\"\n"
	"\"work: .skip 32, 0x90\\nend: .skip 16, 0x90\\nswitch: .skip 16, 0x90\\n\"\n"
	"\"other: .skip 16, 0x90\\nnone: .skip 128, 0x90\\nbehind: .skip 16, 0x90\\n\"\n"
	"\".section .gopclntab, \\\"a\\\", @progbits\\n\"\n"
	"\"table: .long %u\\n.byte 0, 0, %u, 8\\n.quad 6, 0, %s, names - table\\n\"\n"
	"\".quad 0, 0, values - table, functions - table\\n\"\n"
	"\"names: .asciz \\\"%s\\\"\\nname: .asciz \\\"runtime.systemstack\\\"\\n\"\n"
	/* from -1 on: 0 for a unit, 24 for 5, 0 for 2 */
	"\"values: .byte 0, 2, 16 / %u, 0\\nvalues2: .byte 2, 1 * %u, 48, 5 * %u, 47, 2 * %u, 0\\n\"\n"
	"\".p2align 3\\nfunctions: .long 0, d0 - functions, work - _start, d1 - functions\\n\"\n"
	"\".long end - _start, d2 - functions, switch - _start, d3 - functions\\n\"\n"
	"\".long other - _start, d4 - functions, none - _start, d5 - functions\\n\"\n"
	"\".long behind - _start, 0\\n\"\n"
	"\".macro f name values flags\\n\"\n"
	"\".long 0, \\\\name, 0, 0, \\\\values, 0, 0, 0, 0%s\\n.byte 0, \\\\flags, 0, 0\\n.endm\\n\"\n"
	"\"d0: f 0, 1, 0\\nd1: f 0, values2-values, 0\\nd2: f 0, values2-values, 1\\n\"\n"
	"\"d3: f name-names, values2-values, 2\\nd4: f 0, values2-values, 6\\n\"\n"
	"\"d5: f 0, 1, 4\\n.previous\\n\");\n";

static const char *build_go(uint16_t machine, bool is_120, const char *text, const char *entry)
{
	unsigned int quantum = machine == EM_AARCH64 ? 4 : 1, step = 4 / quantum;
	_cleanup_free_ char *source = NULL;

	assert_true(asprintf(&source, go_source, is_120 ? 0xfffffff1 : 0xfffffff0, quantum, text,
			     entry, quantum, step, step, step, is_120 ? ", 0" : "") > 0);
	return fixture_build("go", "-no-pie -nostdlib -static -fno-asynchronous-unwind-tables",
			     source);
}

static void functions_of_go_have_their_rules(void **state)
{
	static const struct {
		uint16_t machine;
		bool is_120;
		const char *text, *entry, *leaf, *frame;
	} cases[] = {
		{ EM_X86_64, true, "0", "_rt0_amd64_linux_lib", "cfa=sp+8 ra=[cfa-8] fp=same",
		  "cfa=sp+32 ra=[cfa-8] fp=same" },
		{ EM_X86_64, false, "_start", "x", "cfa=sp+8 ra=[cfa-8] fp=same",
		  "cfa=sp+32 ra=[cfa-8] fp=same" },
		{ EM_AARCH64, true, "_start", "x", "cfa=sp ra=lr fp=same",
		  "cfa=sp+24 ra=[cfa-24] fp=same" },
		/* not where its code is */
		{ EM_X86_64, true, "1", "_rt0_amd64_linux_lib", NULL, NULL },
		/* the entry is C's, and where the first function would be by chance */
		{ EM_X86_64, true, "0", "main.main", NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *path = build_go(cases[i].machine, cases[i].is_120, cases[i].text,
					    cases[i].entry);
		uint64_t at = symbol(path, "work");
		struct compiled compiled;
		uint8_t *image;
		size_t size;

		image = fixture_load(path, &size);
		((Elf64_Ehdr *)(void *)image)->e_machine = cases[i].machine;
		if (!cases[i].leaf) {
			assert_int_equal(compile(image, size, MEMORY, &compiled), -ENODATA);
			free(image);
			continue;
		}
		assert_int_equal(compile(image, size, MEMORY, &compiled), 0);
		expect(&compiled, at - 1, cases[i].leaf);
		expect(&compiled, at, cases[i].leaf);
		expect(&compiled, at + 4, cases[i].frame);
		expect(&compiled, at + 23, cases[i].frame);
		expect(&compiled, at + 24, cases[i].leaf);
		expect(&compiled, at + 31, cases[i].leaf);
		expect(&compiled, symbol(path, "end"), "end of stack");
		expect(&compiled, symbol(path, "switch"), "end of stack");
		expect(&compiled, symbol(path, "other"), "no rule");
		expect(&compiled, symbol(path, "none"), cases[i].leaf);
		/* its values end before it does */
		expect(&compiled, symbol(path, "none") + 16, "uncovered");
		free(compiled.data);
		free(image);
	}
}

static void damaged_tables_of_go_are_survived(void **state)
{
	static const uint8_t bits[] = { 0x01, 0x40, 0x80, 0xff };
	const char *path = build_go(EM_X86_64, true, "0", "_rt0_amd64_linux_lib");
	uint64_t offset = strtoull(fixture_ask("readelf -SW '%s' | sed -n 's/.*\\.gopclntab *//p' | "
					       "awk '{ print $3 }'", path), NULL, 16);
	uint64_t bytes = strtoull(fixture_ask("readelf -SW '%s' | sed -n 's/.*\\.gopclntab *//p' | "
					      "awk '{ print $4 }'", path), NULL, 16);
	struct compiled compiled;
	uint8_t *image;
	size_t size, good = 0;

	(void)state;
	image = fixture_load(path, &size);
	assert_true(offset > 0 && bytes > 400 && offset + bytes <= size);
	for (size_t i = 0; i < bytes * ARRAY_SIZE(bits); i++) {
		uint8_t *at = &image[offset + i / ARRAY_SIZE(bits)];

		*at ^= bits[i % ARRAY_SIZE(bits)];
		good += compile(image, size, MEMORY, &compiled) == 0;
		free(compiled.data);
		*at ^= bits[i % ARRAY_SIZE(bits)];
	}
	assert_true(good > 0);
	free(image);
}

static void other_files_are_refused(void **state)
{
	struct compiled compiled;
	const char *path;
	uint8_t *image;
	size_t size;

	(void)state;
	path = fixture_build("none", "-no-pie -nostdlib -static -fno-asynchronous-unwind-tables "
				     "-Wl,--build-id=none", "void _start(void) { for (;;); }\n");
	image = fixture_load(path, &size);
	assert_int_equal(compile(image, size, MEMORY, &compiled), -ENODATA);
	((Elf64_Ehdr *)(void *)image)->e_machine = EM_RISCV;
	assert_int_equal(compile(image, size, MEMORY, &compiled), -ENOTSUP);
	((Elf64_Ehdr *)(void *)image)->e_machine = EM_X86_64;
	((Elf64_Ehdr *)(void *)image)->e_type = ET_REL;
	assert_int_equal(compile(image, size, MEMORY, &compiled), -ENOTSUP);
	free(image);
}

/* A small file cannot ask for a large table. */
static void segments_are_what_the_file_holds(void **state)
{
	const char *path = fixture_build("spread", "-O1 -no-pie", "int main(void) { return 0; }\n");
	struct compiled good, compiled;
	Elf64_Phdr *phdrs, *code = NULL;
	Elf64_Ehdr *ehdr;
	uint8_t *image;
	size_t size;

	(void)state;
	image = fixture_load(path, &size);
	assert_int_equal(compile(image, size, MEMORY, &good), 0);
	ehdr = (void *)image;
	phdrs = (void *)(image + ehdr->e_phoff);
	for (size_t i = 0; i < ehdr->e_phnum; i++)
		if (phdrs[i].p_type == PT_LOAD && phdrs[i].p_flags & PF_X)
			code = &phdrs[i];
	assert_non_null(code);
	code->p_filesz = code->p_memsz = 2ULL << 30;
	assert_int_equal(compile(image, size, MEMORY, &compiled), 0);
	assert_true(compiled.size <= good.size + size);
	free(compiled.data);
	code->p_vaddr |= 1ULL << 63;
	assert_int_equal(compile(image, size, MEMORY, &compiled), -ENODATA);
	code->p_vaddr &= INT64_MAX;
	/* another segment, far away */
	for (size_t i = 0; i < ehdr->e_phnum; i++)
		if (phdrs[i].p_type == PT_GNU_STACK)
			phdrs[i] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_X | PF_R,
						 .p_vaddr = 1ULL << 31, .p_filesz = 64 };
	assert_int_equal(compile(image, size, MEMORY, &compiled), -EFBIG);
	free(good.data);
	free(image);
}

static void memory_and_time_are_limited(void **state)
{
	struct compiled compiled;
	struct compile_stats stats;
	struct elf elf;
	uint8_t *image;
	size_t size;
	void *data;
	int fd;

	(void)state;
	image = fixture_load("/proc/self/exe", &size);
	assert_int_equal(compile(image, size, MEMORY, &compiled), 0);
	assert_true(compiled.stats.memory > 1024);
	free(compiled.data);
	assert_int_equal(compile(image, size, compiled.stats.memory / 2, &compiled), -ENOMEM);
	free(image);
	/* of Go's table all may be in memory, where no look at the file sees how late it is */
	image = fixture_load(build_go(EM_X86_64, true, "0", "_rt0_amd64_linux_lib"), &size);
	assert_int_equal(elf_open_memory(&elf, image, size), 0);
	elf.deadline = 1;
	assert_int_equal(compile_elf(&elf, MEMORY, &data, &size, &stats), -ETIME);
	elf_close(&elf);
	free(image);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_open(&elf, fd, (uint64_t)lseek(fd, 0, SEEK_END), 0), 0);
	elf.deadline = 1;
	assert_int_equal(compile_elf(&elf, MEMORY, &data, &size, &stats), -ETIME);
	elf_close(&elf);
	close(fd);
}

/* Damage to any byte of the call frame information is survived, with a sound table or none. */
static void damaged_information_is_survived(void **state)
{
	const char *path = fixture_build("damaged", "-O1 -no-pie",
					 "int main(void) { return 0; }\n");
	unsigned int offset = 0, length = 0;
	struct compiled compiled;
	uint8_t *image;
	size_t size, sound = 0;

	(void)state;
	image = fixture_load(path, &size);
	assert_int_equal(sscanf(fixture_ask("readelf -SW '%s' | "
					    "sed -n 's/^.*\\.eh_frame  *PROGBITS  *[0-9a-f]* "
					    "\\([0-9a-f]*\\) \\([0-9a-f]*\\).*/\\1 \\2/p'", path),
				"%x %x", &offset, &length), 2);
	for (size_t at = offset; at < offset + length; at++) {
		static const uint8_t changes[] = { 0x01, 0x80, 0xff };

		for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
			image[at] ^= changes[i];
			sound += compile(image, size, MEMORY, &compiled) == 0;
			free(compiled.data);
			image[at] ^= changes[i];
		}
	}
	assert_true(sound > 0);
	for (size_t cut = 0; cut < size; cut += 97)
		if (compile(image, cut, MEMORY, &compiled) == 0)
			free(compiled.data);
	free(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions_become_rules),
		cmocka_unit_test(expressions_become_rules_or_nothing),
		cmocka_unit_test(a_register_that_callers_need_is_told),
		cmocka_unit_test(unknown_instructions_leave_the_rest_without_rule),
		cmocka_unit_test(system_libraries_have_their_special_functions),
		cmocka_unit_test(debug_frames_serve_where_eh_frame_is_missing),
		cmocka_unit_test(files_without_sections_are_read),
		cmocka_unit_test(a_plt_without_frame_entry_has_a_rule),
		cmocka_unit_test(a_plt_of_a_static_program_has_a_rule),
		cmocka_unit_test(a_trampoline_without_frame_entry_has_a_rule),
		cmocka_unit_test(a_trampoline_on_arm64_has_a_rule),
		cmocka_unit_test(an_entry_without_frame_entry_is_the_end),
		cmocka_unit_test(where_threads_of_musl_begin_is_the_end),
		cmocka_unit_test(where_threads_begin_is_the_end_for_debuggers_too),
		cmocka_unit_test(lazy_binding_on_arm64_is_corrected),
		cmocka_unit_test(cursors_stay_inside),
		cmocka_unit_test(functions_of_go_have_their_rules),
		cmocka_unit_test(damaged_tables_of_go_are_survived),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(segments_are_what_the_file_holds),
		cmocka_unit_test(memory_and_time_are_limited),
		cmocka_unit_test(damaged_information_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
