// SPDX-License-Identifier: Apache-2.0
#include "coverage.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ADDRESSES = 1 << 18,
	FUNCTIONS_MAX = 4096,
	LINK_REGISTER = 30,	/* of arm64 */
};

struct function {
	char *name;
	uint32_t instructions;
};

static struct {
	uint64_t pc;
	bool has_cfi;
} addresses[ADDRESSES];
static uint32_t address_count;
static struct function functions[FUNCTIONS_MAX];
static uint32_t function_count;

static bool has_cfi(Dwfl *dwfl, uint64_t pc)
{
	Dwfl_Module *module = dwfl_addrmodule(dwfl, pc);
	Dwarf_Frame *frame;
	Dwarf_Addr bias;
	Dwarf_CFI *cfi;

	cfi = module ? dwfl_module_eh_cfi(module, &bias) : NULL;
	if (!cfi || dwarf_cfi_addrframe(cfi, pc - bias, &frame) != 0)
		return false;
	free(frame);
	return true;
}

static bool is_above_cfa(Dwfl *dwfl, uint64_t pc)
{
	Dwfl_Module *module = dwfl_addrmodule(dwfl, pc);
	Dwarf_Op memory[3], *ops;
	bool is_above = false;
	Dwarf_Frame *frame;
	Dwarf_Addr bias;
	Dwarf_CFI *cfi;
	size_t count;

	cfi = module ? dwfl_module_eh_cfi(module, &bias) : NULL;
	if (!cfi || dwarf_cfi_addrframe(cfi, pc - bias, &frame) != 0)
		return false;
	if (dwarf_frame_register(frame, LINK_REGISTER, memory, &ops, &count) == 0)
		is_above = count == 2 && ops[1].atom == DW_OP_plus_uconst &&
			   (int64_t)ops[1].number > 0;
	free(frame);
	return is_above;
}

bool coverage_is_wrong(Dwfl *dwfl, uint64_t pc)
{
	/* its first instruction does not tell yet */
	return !has_cfi(dwfl, pc) || is_above_cfa(dwfl, pc) || is_above_cfa(dwfl, pc + 4);
}

static bool is_plt(Dwfl_Module *module, uint64_t pc)
{
	Elf_Scn *section = NULL;
	GElf_Shdr memory, *header;
	const char *name;
	Dwarf_Addr bias;
	size_t names;
	Elf *elf;

	elf = dwfl_module_getelf(module, &bias);
	if (!elf || elf_getshdrstrndx(elf, &names) < 0)
		return false;
	while ((section = elf_nextscn(elf, section))) {
		header = gelf_getshdr(section, &memory);
		if (!header || pc - bias - header->sh_addr >= header->sh_size)
			continue;
		name = elf_strptr(elf, names, header->sh_name);
		if (name && !strncmp(name, ".plt", 4))
			return true;
	}
	return false;
}

static const char *find_name(Dwfl *dwfl, uint64_t pc)
{
	Dwfl_Module *module = dwfl_addrmodule(dwfl, pc);

	if (!module)
		return "no module";
	return is_plt(module, pc) ? "PLT" : dwfl_module_addrname(module, pc) ?: "no name";
}

bool coverage_add(Dwfl *dwfl, uint64_t pc, bool *ret_has_cfi)
{
	uint64_t at = pc * 0x9e3779b97f4a7c15ULL >> 46;
	const char *name;
	uint32_t i;

	while (addresses[at].pc && addresses[at].pc != pc)
		at = (at + 1) % ADDRESSES;
	*ret_has_cfi = addresses[at].has_cfi;
	if (addresses[at].pc)
		return false;
	*ret_has_cfi = addresses[at].has_cfi = has_cfi(dwfl, pc);
	/* once it is nearly full nothing is remembered any more, and the search still ends */
	if (address_count >= ADDRESSES / 8 * 7)
		return true;
	addresses[at].pc = pc;
	address_count++;
	name = find_name(dwfl, pc);
	for (i = 0; i < function_count; i++)
		if (!strcmp(functions[i].name, name))
			break;
	if (i == FUNCTIONS_MAX)
		return true;
	if (i == function_count) {
		functions[i].name = strdup(name);
		if (!functions[i].name)
			return true;
		function_count++;
	}
	functions[i].instructions++;
	return true;
}

/* Names are those of C and C++ symbols: they hold nothing that JSON would want escaped. */
void coverage_print(void)
{
	printf("{");
	for (uint32_t i = 0; i < function_count; i++)
		printf("%s\"%s\": %" PRIu32, i ? ", " : "", functions[i].name,
		       functions[i].instructions);
	printf("}");
}
