// SPDX-License-Identifier: Apache-2.0
/*
 * A kernel module's file: where its sections are placed, and how debug information is relocated, or refused. Made up here, word by
 * word, as no linker writes what is wrong; what linkers write is held against llvm-symbolizer in tests/oracle/kernel_modules.py.
 */
#include "unit.h"

#include <string.h>

#include "symbol/kernel_module.h"
#include "symbol/symtab.h"

enum { NONE, TEXT, INIT, COLD, EXIT, LATE, DATA, INFO, RELA, SYMBOLS, MODULE, NAMES, SECTIONS };
enum { SYMBOL_NONE, SYMBOL_COLD, SYMBOL_INFO, SYMBOL_FAR, SYMBOL_ABSENT, SYMBOL_COUNT };
enum { RELAS = 3, INFO_BYTES = 32 };

static const char *const names[SECTIONS] = {
	"", ".text", ".init.text", ".text.unlikely", ".exit.text", ".text.late", ".data", ".debug_info", ".rela.debug_info",
	".symtab", ".gnu.linkonce.this_module", ".shstrtab",
};

static struct image {
	Elf64_Ehdr ehdr;
	Elf64_Shdr shdrs[SECTIONS];
	Elf64_Rela relas[RELAS];
	Elf64_Sym symbols[SYMBOL_COUNT];
	uint8_t info[INFO_BYTES];
	char names[256];
} image;

static void put_section(size_t i, uint32_t type, uint64_t flags, uint64_t offset, uint64_t size, uint64_t align)
{
	image.shdrs[i].sh_type = type;
	image.shdrs[i].sh_flags = flags;
	image.shdrs[i].sh_offset = offset;
	image.shdrs[i].sh_size = size;
	image.shdrs[i].sh_addralign = align;
}

static void make(uint16_t machine)
{
	const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;
	size_t at = 0;

	image = (struct image){ .ehdr = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_REL, .e_machine = machine, .e_version = EV_CURRENT, .e_ehsize = sizeof(Elf64_Ehdr),
		.e_shoff = offsetof(struct image, shdrs), .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = SECTIONS,
		.e_shstrndx = NAMES,
	} };
	for (size_t i = 0; i < SECTIONS; i++) {
		image.shdrs[i].sh_name = (uint32_t)at;
		strcpy(image.names + at, names[i]);
		at += strlen(names[i]) + 1;
	}
	/* as in a file of debug information: code has no bytes */
	put_section(TEXT, SHT_NOBITS, code, 0, 0x1003, 16);
	put_section(INIT, SHT_NOBITS, code, 0, 0x500, 16);
	put_section(COLD, SHT_NOBITS, code, 0, 0x21, machine == EM_AARCH64 ? 4096 : 64);
	put_section(EXIT, SHT_NOBITS, code, 0, 0x30, 1);
	put_section(LATE, SHT_NOBITS, code, 0, 0x40, 1);
	put_section(DATA, SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 0, 0x1000, 8);
	put_section(INFO, SHT_PROGBITS, 0, offsetof(struct image, info), INFO_BYTES, 1);
	put_section(RELA, SHT_RELA, SHF_INFO_LINK, offsetof(struct image, relas), sizeof(image.relas), 8);
	image.shdrs[RELA].sh_info = INFO;
	image.shdrs[RELA].sh_link = SYMBOLS;
	put_section(SYMBOLS, SHT_SYMTAB, 0, offsetof(struct image, symbols), sizeof(image.symbols), 8);
	put_section(MODULE, SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 0, 0x380, 64);
	put_section(NAMES, SHT_STRTAB, 0, offsetof(struct image, names), sizeof(image.names), 1);
	image.symbols[SYMBOL_COLD] = (Elf64_Sym){ .st_shndx = COLD, .st_value = 8 };
	image.symbols[SYMBOL_INFO] = (Elf64_Sym){ .st_shndx = INFO };
	image.symbols[SYMBOL_FAR] = (Elf64_Sym){ .st_shndx = EXIT, .st_value = 4 };
	image.relas[0] = (Elf64_Rela){ 4, ELF64_R_INFO(SYMBOL_COLD, machine == EM_AARCH64 ? R_AARCH64_ABS64 : R_X86_64_64), 2 };
	image.relas[1] = (Elf64_Rela){ 12, ELF64_R_INFO(SYMBOL_INFO, machine == EM_AARCH64 ? R_AARCH64_ABS32 : R_X86_64_32), 0x77 };
	image.relas[2] = (Elf64_Rela){ 24, ELF64_R_INFO(SYMBOL_ABSENT, machine == EM_AARCH64 ? R_AARCH64_ABS64 : R_X86_64_64), 3 };
	memset(image.info, 0xee, sizeof(image.info));
}

static void open_image(struct elf *elf)
{
	assert_int_equal(elf_open_memory(elf, &image, sizeof(image)), 0);
	assert_true(kernel_module_is(elf));
	kernel_module_place(elf);
}

static uint64_t address(size_t section)
{
	struct elf elf;
	uint64_t found;

	open_image(&elf);
	found = elf.shdrs[section].sh_addr;
	elf_close(&elf);
	return found;
}

static int relocate(uint8_t info[static INFO_BYTES])
{
	struct elf elf;
	int r;

	open_image(&elf);
	memcpy(info, image.info, INFO_BYTES);
	r = kernel_module_relocate(&elf, INFO, info, INFO_BYTES);
	elf_close(&elf);
	return r;
}

static void assert_refused(void)
{
	uint8_t info[INFO_BYTES];

	assert_int_equal(relocate(info), -EBADMSG);
	make(EM_X86_64);
}

static void which_files_are_modules(void **state _unused_)
{
	struct elf elf;

	for (size_t i = 0; i < 4; i++) {
		make(EM_X86_64);
		if (i == 0)
			image.ehdr.e_type = ET_DYN;
		else if (i == 1)
			image.ehdr.e_machine = EM_PPC64;
		else if (i == 2)
			image.shdrs[MODULE].sh_name = 0;
		assert_int_equal(elf_open_memory(&elf, &image, sizeof(image)), 0);
		assert_int_equal(kernel_module_is(&elf), i == 3);
		assert_true(kernel_module_has_relocations(&elf, INFO));
		assert_false(kernel_module_has_relocations(&elf, TEXT));
		elf_close(&elf);
	}
}

static void code_lies_as_the_kernel_puts_it(void **state _unused_)
{
	make(EM_X86_64);
	assert_int_equal(address(TEXT), KERNEL_MODULE_TEXT);
	assert_int_equal(address(COLD), KERNEL_MODULE_TEXT + 0x1040);
	/* nothing that is not known to be there reaches as far as these */
	for (size_t i = 0; i < 4; i++)
		assert_true(address((size_t[]){ INIT, EXIT, LATE, DATA }[i]) > KERNEL_MODULE_TEXT + UINT32_MAX);
	assert_int_equal(address(INFO), 0);
}

static void what_arm64_fills_moves_what_is_behind_it(void **state _unused_)
{
	static const char *const filled[] = { ".plt", ".text.ftrace_trampoline" };

	/* with flags of code as of GNU ld, and without as of lld */
	for (size_t i = 0; i < 2 * ARRAY_SIZE(filled); i++) {
		make(EM_AARCH64);
		image.shdrs[COLD].sh_name = image.shdrs[TEXT].sh_name;
		image.shdrs[TEXT].sh_name = (uint32_t)sizeof(image.names) - 32;
		strcpy(image.names + image.shdrs[TEXT].sh_name, filled[i / 2]);
		put_section(TEXT, SHT_PROGBITS, i % 2 ? SHF_ALLOC : SHF_ALLOC | SHF_EXECINSTR, 0, 1, 1);
		assert_true(address(TEXT) > KERNEL_MODULE_TEXT + UINT32_MAX);
		assert_true(address(COLD) > KERNEL_MODULE_TEXT + UINT32_MAX);
	}
	/* that of the start is with the start */
	make(EM_AARCH64);
	strcpy(image.names + image.shdrs[INIT].sh_name, ".init.plt");
	image.shdrs[INIT].sh_flags = SHF_ALLOC;
	assert_int_equal(address(COLD), KERNEL_MODULE_TEXT + 0x2000);
	/* data of the exit moves no code */
	make(EM_X86_64);
	strcpy(image.names + image.shdrs[INIT].sh_name, ".exit.dat");
	image.shdrs[INIT].sh_flags = SHF_ALLOC | SHF_WRITE;
	assert_int_equal(address(COLD), KERNEL_MODULE_TEXT + 0x1040);
}

static void arm64_may_align_by_more(void **state _unused_)
{
	struct elf elf;

	make(EM_AARCH64);
	image.shdrs[COLD].sh_addralign = 2048;
	assert_int_equal(address(TEXT), KERNEL_MODULE_TEXT);
	assert_true(address(COLD) > KERNEL_MODULE_TEXT + UINT32_MAX);
	/* the first one is where the code begins, what has no bytes has no instructions */
	make(EM_AARCH64);
	image.shdrs[TEXT].sh_size = 0;
	image.shdrs[COLD].sh_addralign = 4;
	assert_int_equal(address(COLD), KERNEL_MODULE_TEXT);
	make(EM_AARCH64);
	image.shdrs[COLD].sh_size = 0;
	image.shdrs[COLD].sh_addralign = 4;
	open_image(&elf);
	assert_true(kernel_module_is_placed(&elf, &elf.shdrs[COLD]));
	assert_false(kernel_module_is_placed(&elf, &elf.shdrs[EXIT]));
	elf_close(&elf);
}

/* Of code that is not placed there may be more sections than a table of functions tells apart. */
static void functions_are_found_behind_what_is_not_placed(void **state _unused_)
{
	enum { MORE = 100 };
	static struct {
		struct image image;
		Elf64_Shdr shdrs[SECTIONS + MORE];
	} file;
	struct symtab *symtab;
	struct elf elf;

	make(EM_X86_64);
	image.ehdr.e_shoff = offsetof(typeof(file), shdrs);
	image.ehdr.e_shnum = SECTIONS + MORE;
	image.ehdr.e_shstrndx = NAMES + MORE;
	image.shdrs[SYMBOLS].sh_link = NAMES + MORE;
	image.symbols[SYMBOL_COLD] = (Elf64_Sym){ .st_name = image.shdrs[COLD].sh_name, .st_shndx = COLD + MORE, .st_value = 8,
						  .st_size = 4, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) };
	file.image = image;
	for (size_t i = 0; i < SECTIONS + MORE; i++)
		file.shdrs[i] = image.shdrs[!i ? NONE : i <= MORE ? INIT : i - MORE];
	assert_int_equal(elf_open_memory(&elf, &file, sizeof(file)), 0);
	kernel_module_place(&elf);
	assert_int_equal(symtab_read(&elf, NULL, 0, NULL, &symtab), 0);
	assert_non_null(symtab_find(symtab, KERNEL_MODULE_TEXT + 0x1040 + 8));
	assert_null(symtab_find(symtab, KERNEL_MODULE_TEXT + 8));
	symtab_free(symtab);
	elf_close(&elf);
}

static void sizes_that_cannot_be_are_not_believed(void **state _unused_)
{
	make(EM_X86_64);
	image.shdrs[COLD].sh_addralign = 48;
	assert_true(address(COLD) > KERNEL_MODULE_TEXT + UINT32_MAX);
	make(EM_X86_64);
	image.shdrs[COLD].sh_addralign = 1ull << 63;
	assert_true(address(COLD) > KERNEL_MODULE_TEXT + UINT32_MAX);
	make(EM_X86_64);
	image.shdrs[TEXT].sh_size = UINT64_MAX - 8;
	assert_true(address(TEXT) > KERNEL_MODULE_TEXT + UINT32_MAX);
	assert_true(address(COLD) > KERNEL_MODULE_TEXT + UINT32_MAX);
}

static void relocations_are_applied(void **state _unused_)
{
	static const uint16_t machines[] = { EM_X86_64, EM_AARCH64 };
	uint8_t info[INFO_BYTES];
	uint64_t value = 0;

	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		make(machines[i]);
		assert_int_equal(relocate(info), 0);
		memcpy(&value, info + 4, 8);
		assert_int_equal(value, KERNEL_MODULE_TEXT + (machines[i] == EM_AARCH64 ? 0x2000 : 0x1040) + 8 + 2);
		value = 0;
		memcpy(&value, info + 12, 4);
		assert_int_equal(value, 0x77);
		/* of what is nowhere: no code has such an address */
		memcpy(&value, info + 24, 8);
		assert_int_equal(value, 3);
		assert_int_equal(info[3], 0xee);
		assert_int_equal(info[16], 0xee);
		assert_int_equal(info[23], 0xee);
	}
}

static void what_is_wrong_is_refused(void **state _unused_)
{
	make(EM_X86_64);
	image.relas[0].r_info = ELF64_R_INFO(SYMBOL_COLD, R_X86_64_PLT32);
	assert_refused();
	image.relas[1].r_info = ELF64_R_INFO(SYMBOL_COUNT, R_X86_64_32);
	assert_refused();
	image.relas[0].r_offset = INFO_BYTES - 7;
	assert_refused();
	image.relas[0].r_offset = UINT64_MAX - 3;
	assert_refused();
	/* an address that has no place in half a word */
	image.relas[1].r_info = ELF64_R_INFO(SYMBOL_FAR, R_X86_64_32);
	assert_refused();
	image.relas[1].r_addend = -1;
	assert_refused();
	/* a part of a table, beyond the file's end, and one that has no addends */
	image.shdrs[RELA].sh_size--;
	assert_refused();
	image.shdrs[RELA].sh_size = UINT64_MAX;
	assert_refused();
	image.shdrs[RELA].sh_offset = UINT64_MAX - 8;
	assert_refused();
	image.shdrs[RELA].sh_type = SHT_REL;
	assert_refused();
	/* symbols that are none */
	image.shdrs[RELA].sh_link = NAMES;
	assert_refused();
	image.shdrs[RELA].sh_link = SECTIONS;
	assert_refused();
	image.shdrs[SYMBOLS].sh_offset = sizeof(image);
	assert_refused();
	/* a section of a symbol that there is not is none */
	image.symbols[SYMBOL_COLD].st_shndx = SECTIONS;
	assert_int_equal(relocate((uint8_t[INFO_BYTES]){ 0 }), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_files_are_modules),
		cmocka_unit_test(code_lies_as_the_kernel_puts_it),
		cmocka_unit_test(what_arm64_fills_moves_what_is_behind_it),
		cmocka_unit_test(arm64_may_align_by_more),
		cmocka_unit_test(functions_are_found_behind_what_is_not_placed),
		cmocka_unit_test(sizes_that_cannot_be_are_not_believed),
		cmocka_unit_test(relocations_are_applied),
		cmocka_unit_test(what_is_wrong_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
