// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/pool.h"
#include "symbol/symtab.h"
#include "unwind/functions.h"

static const char program[] =
	"int puts(const char *);\n"
	"#define F __attribute__((noinline, noipa, aligned(64)))\n"
	"F int visible(int x) { return x * 3; }\n"
	"F static int hidden(int x) { return x * 5; }\n"
	"F int __under(int x) { return x * 7; }\n"
	"int plain(int x) __attribute__((alias(\"__under\")));\n"
	"F int strong(int x) { return x * 9; }\n"
	"int weaker(int x) __attribute__((weak, alias(\"strong\")));\n"
	"int data = 4;\n"
	"__asm__(\".text\\n.p2align 6\\n\"\n"
	"	\".globl outer\\n.type outer, @function\\nouter:\\n.skip 16, 0x90\\n\"\n"
	"	\".globl inner\\n.type inner, @function\\ninner:\\n\"\n"
	"	\".skip 8, 0x90\\n.size inner, 8\\n\"\n"
	"	\".globl label\\nlabel:\\n.skip 40, 0x90\\n.size outer, 64\\n\"\n"
	"	\".p2align 6\\n.globl sizeless\\n.type sizeless, @function\\n\"\n"
	"	\"sizeless:\\n.skip 64, 0x90\\n\"\n"
	"	\".globl untyped\\nuntyped:\\n.skip 64, 0x90\\n\");\n"
	"int main(int c, char **v)\n"
	"{\n"
	"	puts(v[0]);\n"
	"	return visible(c) + hidden(c) + plain(c) + weaker(c) + strong(c) + data;\n"
	"}\n";

struct opened {
	int fd;
	struct elf elf;
	struct symtab *symtab;
};

static struct opened open_symtab_with(const char *path, const struct function_range *ranges,
				      size_t range_count)
{
	struct opened opened;
	struct stat st;

	opened.fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(opened.fd >= 0);
	assert_int_equal(fstat(opened.fd, &st), 0);
	assert_int_equal(elf_open(&opened.elf, opened.fd, (uint64_t)st.st_size, 0), 0);
	assert_int_equal(symtab_read(&opened.elf, ranges, range_count, NULL, &opened.symtab), 0);
	return opened;
}

static struct opened open_symtab(const char *path)
{
	return open_symtab_with(path, NULL, 0);
}

static void close_symtab(struct opened *opened)
{
	symtab_free(opened->symtab);
	elf_close(&opened->elf);
	close(opened->fd);
}

/* Static storage; "" for none. */
static const char *name_at(const struct opened *opened, uint64_t address)
{
	const struct symbol *symbol = symtab_find(opened->symtab, address);
	static char name[SYMTAB_NAME_MAX];

	if (!symbol)
		return "";
	if (!symtab_needs_file(opened->symtab, symbol)) {
		assert_int_equal(symtab_name(opened->symtab, symbol, name), 0);
		return name;
	}
	assert_true(pread(opened->fd, name, sizeof(name) - 1,
			  (off_t)(opened->symtab->names_offset + symbol->name)) > 0);
	assert_int_equal(symtab_trim(name), 0);
	return name;
}

static uint64_t nm_address(const char *file, const char *symbol)
{
	const char *line = fixture_ask("nm %s | awk '$3 == \"%s\" { print $1 }'", file, symbol);

	assert_true(line[0]);
	return strtoull(line, NULL, 16);
}

static void functions_have_their_names(void **state)
{
	struct opened opened = open_symtab(fixture_build("plain", "-O2", program));
	static const char *const names[] = { "visible", "hidden", "main", "outer", "inner",
					     "sizeless", "untyped" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		uint64_t address = nm_address("plain", names[i]);

		assert_string_equal(name_at(&opened, address), names[i]);
		assert_string_equal(name_at(&opened, address + 1), names[i]);
	}
	assert_false(opened.symtab->is_dynamic);
	assert_null(opened.symtab->partial);
	/* data is no function */
	assert_string_equal(name_at(&opened, nm_address("plain", "data")), "");
	assert_string_equal(name_at(&opened, 0), "");
	assert_string_equal(name_at(&opened, UINT64_MAX), "");
	close_symtab(&opened);
}

static void sizes_decide_between_neighbours(void **state)
{
	struct opened opened = open_symtab(fixture_build("sizes", "-O2", program));
	uint64_t outer = nm_address("sizes", "outer"), sizeless = nm_address("sizes", "sizeless");
	uint64_t visible = nm_address("sizes", "visible");

	(void)state;
	/* the padding behind a function is nobody's */
	assert_string_equal(name_at(&opened, visible + 63), "");
	/* behind a nested function the outer one goes on; a label in it is none */
	assert_string_equal(name_at(&opened, outer + 15), "outer");
	assert_string_equal(name_at(&opened, outer + 23), "inner");
	assert_string_equal(name_at(&opened, outer + 24), "outer");
	assert_string_equal(name_at(&opened, outer + 63), "outer");
	/* without a size: up to the next */
	assert_string_equal(name_at(&opened, sizeless + 63), "sizeless");
	assert_string_equal(name_at(&opened, sizeless + 64), "untyped");
	close_symtab(&opened);
}

static void the_best_alias_is_chosen(void **state)
{
	struct opened opened = open_symtab(fixture_build("aliases", "-O2", program));

	(void)state;
	assert_string_equal(name_at(&opened, nm_address("aliases", "__under")), "plain");
	assert_string_equal(name_at(&opened, nm_address("aliases", "weaker")), "strong");
	close_symtab(&opened);
}

static void stripped_files_have_dynamic_names(void **state)
{
	struct opened opened;
	uint64_t visible, hidden, untyped;

	(void)state;
	fixture_build("dynamic", "-O2 -rdynamic", program);
	visible = nm_address("dynamic", "visible");
	hidden = nm_address("dynamic", "hidden");
	untyped = nm_address("dynamic", "untyped");
	fixture_run("strip dynamic");
	opened = open_symtab(fixture_path("dynamic"));
	assert_true(opened.symtab->is_dynamic);
	assert_string_equal(name_at(&opened, visible + 1), "visible");
	/* its neighbour's name would be wrong */
	assert_string_equal(name_at(&opened, hidden + 1), "");
	assert_string_equal(name_at(&opened, untyped + 1), "");
	close_symtab(&opened);
}

static void check_plt(const char *flags)
{
	struct opened opened = open_symtab(fixture_build("plt", flags, program));
	const char *line = fixture_ask("objdump -d plt | grep '<puts@plt>:' | head -n 1");

	if (!line[0])
		fail_msg("objdump knows no PLT entry with %s", flags);
	assert_string_equal(name_at(&opened, strtoull(line, NULL, 16)), "puts@plt");
	assert_string_equal(name_at(&opened, strtoull(line, NULL, 16) + 5), "puts@plt");
	close_symtab(&opened);
}

static void plt_entries_have_names(void **state)
{
	(void)state;
#if defined(__x86_64__)
	check_plt("-O2 -fcf-protection=full");
	check_plt("-O2 -fcf-protection=none -no-pie");
	check_plt("-O2 -fcf-protection=full -Wl,-z,lazy,-z,ibtplt");
#elif defined(__aarch64__)
	check_plt("-O2");
	check_plt("-O2 -mbranch-protection=standard -Wl,-z,force-bti");
#endif
}

enum { MANY = 6000 };

static void names_of_big_tables_stay_in_the_file(void **state)
{
	struct opened opened;
	FILE *file;

	(void)state;
	file = fopen(fixture_path("many.s"), "we");
	assert_non_null(file);
	fprintf(file, ".section .note.GNU-stack,\"\",%%progbits\n.text\n");
	for (int i = 0; i < MANY; i++)
		fprintf(file,
			".globl a_function_with_a_rather_long_name_number_%d\n"
			".type a_function_with_a_rather_long_name_number_%d, @function\n"
			"a_function_with_a_rather_long_name_number_%d:\n.skip 16\n", i, i, i);
	fclose(file);
	fixture_run("${CC:-gcc} -shared -o many.so many.s");
	opened = open_symtab(fixture_path("many.so"));
	assert_null(opened.symtab->names);
	assert_true(opened.symtab->count >= MANY);
	/* 12 bytes each */
	assert_true(opened.symtab->bytes < (MANY + 200) * 12 + 4096);
	for (int i = 0; i < MANY; i += 599) {
		char name[64];
		uint64_t address;

		snprintf(name, sizeof(name), "a_function_with_a_rather_long_name_number_%d", i);
		address = nm_address("many.so", name);
		assert_string_equal(name_at(&opened, address + 15), name);
	}
	close_symtab(&opened);
}

static void a_full_pool_cuts_the_table(void **state)
{
	struct pool *pool = pool_get(POOL_SYMBOLS);
	size_t limit = pool->limit, used = atomic_load(&pool->used);
	struct opened opened;

	(void)state;
	pool->limit = used + 20 * 1024;
	opened = open_symtab(fixture_path("many.so"));
	assert_non_null(opened.symtab->partial);
	assert_true(opened.symtab->count > 0 && opened.symtab->count < MANY);
	assert_true(atomic_load(&pool->used) <= pool->limit);
	close_symtab(&opened);
	pool->limit = limit;
	assert_int_equal(atomic_load(&pool->used), used);
}

/* 400,000 functions at one address, whose names have to be compared. */
static void hostile_tables_take_bounded_time(void **state)
{
	enum { ALIASES = 400000 };
	size_t size, bytes = 64 * 5 + 16, symbols_at, names_at;
	Elf64_Ehdr ehdr = { .e_ident = ELFMAG "\2\1\1", .e_type = ET_DYN, .e_machine = EM_X86_64,
			    .e_shoff = 64, .e_shentsize = 64, .e_shnum = 4, .e_ehsize = 64 };
	Elf64_Shdr shdrs[4] = { 0 };
	uint64_t started, cpu;
	struct opened opened;
	struct stat st;
	Elf64_Sym symbol = { .st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			     .st_shndx = 1, .st_value = 0x1000, .st_size = 16 };
	uint8_t *data;
	FILE *file;

	(void)state;
	symbols_at = bytes;
	names_at = symbols_at + ALIASES * sizeof(symbol);
	size = names_at + ALIASES + 2;
	data = calloc(1, size);
	shdrs[1] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				 .sh_addr = 0x1000, .sh_size = 0x1000, .sh_offset = 64 };
	shdrs[2] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB, .sh_offset = symbols_at, .sh_link = 3,
				 .sh_size = ALIASES * sizeof(symbol), .sh_entsize = 24 };
	shdrs[3] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = names_at,
				 .sh_size = ALIASES + 2 };
	memcpy(data, &ehdr, sizeof(ehdr));
	memcpy(data + 64, shdrs, sizeof(shdrs));
	memset(data + names_at + 1, 'a', ALIASES);
	for (size_t i = 0; i < ALIASES; i++) {
		symbol.st_name = 1 + (uint32_t)i;
		memcpy(data + symbols_at + i * sizeof(symbol), &symbol, sizeof(symbol));
	}
	file = fopen(fixture_path("hostile"), "we");
	assert_int_equal(fwrite(data, 1, size, file), size);
	fclose(file);
	free(data);

	started = clock_monotonic();
	cpu = clock_read(CLOCK_PROCESS_CPUTIME_ID);
	opened.fd = open(fixture_path("hostile"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(opened.fd, &st), 0);
	assert_int_equal(elf_open(&opened.elf, opened.fd, (uint64_t)st.st_size,
				  started + NSEC_PER_SEC / 20), 0);
	assert_int_equal(symtab_read(&opened.elf, NULL, 0, NULL, &opened.symtab), 0);
	assert_int_equal(opened.symtab->count, 1);
	assert_non_null(opened.symtab->partial);
	assert_true(clock_read(CLOCK_PROCESS_CPUTIME_ID) - cpu < 10 * NSEC_PER_SEC);
	close_symtab(&opened);
}

/* Where it begins that holds @address; 0: in none. */
static uint64_t start_at(const struct opened *opened, uint64_t address, bool *ret_is_named)
{
	const struct symbol *symbol = symtab_find(opened->symtab, address);

	*ret_is_named = symbol && symbol_is_named(symbol);
	return symbol ? symtab_start(opened->symtab, symbol) : 0;
}

static void functions_without_symbols_are_told_apart(void **state)
{
	const char *path = fixture_build("nameless", "-O2", program);
	uint64_t visible = nm_address("nameless", "visible"), hidden = nm_address("nameless", "hidden");
	uint64_t outer = nm_address("nameless", "outer"), sizeless = nm_address("nameless", "sizeless");
	const struct function_range ranges[] = {
		{ .start = 0, .end = UINT64_MAX },	/* no code */
		{ .start = min_of(visible, hidden), .end = min_of(visible, hidden) + 16 },
		{ .start = max_of(visible, hidden), .end = max_of(visible, hidden) + 16 },
		{ .start = outer + 4, .end = outer + 8 },	/* it has a name already */
		{ .start = sizeless, .end = sizeless + 32 },
	};
	char name[SYMTAB_NAME_MAX];
	struct opened opened;
	bool is_named;

	(void)state;
	fixture_ask("strip %s && echo x", path);
	/* exported names alone: hidden() has none, and what has no size is not known to be a function */
	opened = open_symtab(path);
	assert_int_equal(start_at(&opened, hidden, &is_named), 0);
	close_symtab(&opened);

	opened = open_symtab_with(path, ranges, ARRAY_SIZE(ranges));
	assert_int_equal(start_at(&opened, hidden, &is_named), hidden);
	assert_int_equal(start_at(&opened, hidden + 15, &is_named), hidden);
	assert_false(is_named);
	assert_int_equal(start_at(&opened, hidden + 16, &is_named), 0);
	assert_int_equal(symtab_name(opened.symtab, symtab_find(opened.symtab, hidden), name),
			 -ENODATA);
	assert_false(symtab_needs_file(opened.symtab, symtab_find(opened.symtab, hidden)));
	close_symtab(&opened);
}

static void exported_names_come_before_ranges(void **state)
{
	const char *path = fixture_build("exported", "-O2 -rdynamic", program);
	uint64_t outer = nm_address("exported", "outer"), sizeless = nm_address("exported", "sizeless");
	uint64_t visible = nm_address("exported", "visible");
	struct function_range ranges[] = {
		{ .start = outer, .end = outer + 64 },
		{ .start = outer + 32, .end = outer + 48 },	/* part of it */
		{ .start = sizeless, .end = sizeless + 32 },
		{ .start = visible, .end = visible + 16 },
	};
	struct opened opened;
	bool is_named;

	(void)state;
	fixture_ask("strip %s && echo x", path);
	if (visible < outer) {
		struct function_range first = ranges[3];

		memmove(ranges + 1, ranges, 3 * sizeof(*ranges));
		ranges[0] = first;
	}
	opened = open_symtab(path);
	assert_string_equal(name_at(&opened, sizeless), "");
	close_symtab(&opened);

	opened = open_symtab_with(path, ranges, ARRAY_SIZE(ranges));
	assert_string_equal(name_at(&opened, outer + 40), "outer");
	assert_string_equal(name_at(&opened, visible), "visible");
	/* the range has the size that its symbol lacks */
	assert_string_equal(name_at(&opened, sizeless + 31), "sizeless");
	assert_int_equal(start_at(&opened, sizeless + 32, &is_named), 0);
	close_symtab(&opened);
}

static void ranges_can_bring_names(void **state)
{
	const char *path = fixture_build("brought", "-O2", program);
	uint64_t hidden = nm_address("brought", "hidden");
	struct function_range range = { .start = hidden, .end = hidden + 16 };
	struct opened opened;
	bool is_named;

	(void)state;
	fixture_ask("strip %s && printf 'main.hidden\\0' >> %s && echo x", path, path);
	range.name = strtoull(fixture_ask("stat -c %%s %s", path), NULL, 10) - sizeof("main.hidden");
	opened = open_symtab_with(path, &range, 1);
	assert_string_equal(name_at(&opened, hidden + 8), "main.hidden");
	close_symtab(&opened);
	/* not one that the file does not hold */
	range.name += 4096;
	opened = open_symtab_with(path, &range, 1);
	assert_int_equal(start_at(&opened, hidden, &is_named), hidden);
	assert_false(is_named);
	close_symtab(&opened);
}

/* The entry is ld.so's; the segment with it goes on behind what is looked at of it. */
#define ENTRY(before, behind) \
	".text\n.globl _start\n_start: " before "\n.byte 0x48, 0x89, 0xe7, 0xe8\n.skip 36, 0x90\n" behind "\n" \
	"next: .cfi_startproc\n.skip 80, 0x90\n.cfi_endproc\n" \
	".section .init, \"ax\", @progbits\n.skip 24, 0x90\n"

/* Of a program for x86_64: where its functions begin and end, from its entry on; @count of them. */
static void expect_ranges(const char *source, const struct function_range *expected, size_t count)
{
	struct function_range *ranges;
	uint8_t *image;
	struct elf elf;
	size_t size, found;

	fixture_write("entry.s", source);
	fixture_run("gcc -no-pie -static -nostdlib -Wl,--build-id=none -o entry entry.s");
	image = fixture_load(fixture_path("entry"), &size);
	((Elf64_Ehdr *)(void *)image)->e_machine = EM_X86_64;
	assert_int_equal(elf_open_memory(&elf, image, size), 0);
	assert_int_equal(functions_read(&elf, &ranges, &found), 0);
	assert_int_equal(found, count + 1);
	assert_int_equal(ranges[0].end - ranges[0].start, 24);
	assert_true(ranges[0].end <= nm_address("entry", "_start"));
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(ranges[i + 1].start - nm_address("entry", "_start"), expected[i].start);
		assert_int_equal(ranges[i + 1].end - nm_address("entry", "_start"), expected[i].end);
	}
	elf_close(&elf);
	free(image);
	free(ranges);
}

static void what_has_no_frame_entry_is_known_by_its_place(void **state)
{
	static const struct function_range apart[] = { { .start = 0, .end = 40 }, { .start = 40, .end = 120 } };
	static const struct function_range told[] = { { .start = 0, .end = 40 }, { .start = 48, .end = 128 } };
	static const struct function_range other[] = { { .start = 41, .end = 121 } };

	(void)state;
	expect_ranges(ENTRY("", ""), apart, ARRAY_SIZE(apart));
	/* the frame entry knows better */
	expect_ranges(ENTRY(".cfi_startproc", ".cfi_endproc\n.skip 8, 0x90"), told, ARRAY_SIZE(told));
	/* nothing that is known */
	expect_ranges(ENTRY(".byte 0x90", ""), other, ARRAY_SIZE(other));
}

/* What comes behind the deadline is not read, and the table says so. */
static void a_deadline_that_is_over_is_told(void **state)
{
	struct symtab *symtab;
	struct elf elf;

	(void)state;
	assert_int_equal(elf_open(&elf, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), (uint64_t)1 << 40, 0), 0);
	assert_int_equal(symtab_read(&elf, NULL, 0, NULL, &symtab), 0);
	assert_true(symtab->count > 0);
	assert_false(symtab->is_late);
	symtab_free(symtab);
	elf.deadline = 1;
	assert_int_equal(symtab_read(&elf, NULL, 0, NULL, &symtab), 0);
	assert_int_equal(symtab->count, 0);
	assert_true(symtab->is_late);
	symtab_free(symtab);
	close(elf.fd);
	elf_close(&elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_without_symbols_are_told_apart),
		cmocka_unit_test(exported_names_come_before_ranges),
		cmocka_unit_test(ranges_can_bring_names),
		cmocka_unit_test(what_has_no_frame_entry_is_known_by_its_place),
		cmocka_unit_test(a_deadline_that_is_over_is_told),
		cmocka_unit_test(functions_have_their_names),
		cmocka_unit_test(sizes_decide_between_neighbours),
		cmocka_unit_test(the_best_alias_is_chosen),
		cmocka_unit_test(stripped_files_have_dynamic_names),
		cmocka_unit_test(plt_entries_have_names),
		cmocka_unit_test(names_of_big_tables_stay_in_the_file),
		cmocka_unit_test(a_full_pool_cuts_the_table),
		cmocka_unit_test(hostile_tables_take_bounded_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
