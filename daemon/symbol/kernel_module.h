/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a kernel module, or what is left of it as a file of debug information. It is relocatable: all sections begin at
 * address 0, and where they refer to each other tables (SHT_RELA) say it.
 *
 * A kernel that loads it puts what has code, but for initialisation code, one section behind the other in the file's order,
 * each aligned as it asks for, and says in /proc/modules where that begins. Here they are placed in the same way, so an address
 * that counts from there is known by its distance from KERNEL_MODULE_TEXT. That ends at the first section that a kernel leaves
 * out, makes larger or aligns by more than the file says, by its configuration and CPUs: from there on nothing is placed.
 */
#ifndef STACKTAP_SYMBOL_KERNEL_MODULE_H
#define STACKTAP_SYMBOL_KERNEL_MODULE_H

#include "symbol/elf.h"

/* Not 0, which is the address of what the linker dropped. */
#define KERNEL_MODULE_TEXT 0x1000000ULL

/* Is it one, of a machine whose relocations are known? */
bool kernel_module_is(const struct elf *elf);
/* Gives the sections of a module addresses; what is not placed has some far from any that is. */
void kernel_module_place(struct elf *elf);
/* Has it given this one a place? True where it was not called. */
bool kernel_module_is_placed(const struct elf *elf, const Elf64_Shdr *shdr);
/* Are there relocations of section @number? */
bool kernel_module_has_relocations(const struct elf *elf, size_t number);
/*
 * Relocates @bytes, all @size of the content of section @number, by the addresses of kernel_module_place(). -EBADMSG: not all of
 * that can be done, and the bytes are worth nothing.
 */
int kernel_module_relocate(const struct elf *elf, size_t number, uint8_t *bytes, uint64_t size);

#endif /* STACKTAP_SYMBOL_KERNEL_MODULE_H */
