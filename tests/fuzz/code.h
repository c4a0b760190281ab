/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of the code of what may be an ELF file, to ask for. */
#pragma once

#include <stdlib.h>

#include "symbol/kernel_module.h"

static inline int code_by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* @each of every section with code, as long as @room has so many; @data need not be an ELF file. */
static inline uint32_t code_addresses(const uint8_t *data, size_t size, uint32_t each, uint32_t room, uint64_t *addresses)
{
	uint32_t count = 0;
	struct elf elf;

	if (elf_open_memory(&elf, data, size) < 0)
		return 0;
	if (kernel_module_is(&elf))
		kernel_module_place(&elf);
	for (size_t i = 0; i < elf.shdr_count && count + each <= room; i++)
		for (uint64_t k = 0; k < each && elf.shdrs[i].sh_flags & SHF_EXECINSTR; k++)
			addresses[count++] = elf.shdrs[i].sh_addr + elf.shdrs[i].sh_size / each * k;
	elf_close(&elf);
	return count;
}
