/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of a position-independent program as its loader leaves them: addresses of its own, which the file has in its
 * relocations alone (SHT_RELA), or already in place (SHT_RELR, which only adds where the program is).
 *
 * The file is hostile: a relocation is searched as in a sorted table, which linkers make of those that name no symbol; in
 * one that is not, it is not found.
 */
#ifndef STACKTAP_SYMBOL_RELOCATION_H
#define STACKTAP_SYMBOL_RELOCATION_H

#include "symbol/elf.h"

/* @count words from @address on, as if the program were loaded at the addresses that it has in the file. -errno of reading */
int relocation_words(const struct elf *elf, uint64_t address, uint64_t *ret_words, size_t count);
/* The same for @words that have been read there. */
int relocation_fill(const struct elf *elf, uint64_t address, uint64_t *words, size_t count);

#endif /* STACKTAP_SYMBOL_RELOCATION_H */
