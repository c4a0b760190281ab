/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of PLT entries, which no symbol table has: "read@plt".
 *
 * Every entry jumps through a GOT slot; the slot is decoded from its instructions and the
 * relocation of that slot names the function. So the order of entries, which linkers differ in,
 * does not matter. x86_64 and aarch64.
 */
#ifndef STACKTAP_SYMBOL_PLT_H
#define STACKTAP_SYMBOL_PLT_H

#include "symbol/elf.h"

struct plt_entry {
	uint64_t address;
	uint32_t size;
	uint32_t name;		/* offset in plt.names */
};

struct plt {
	struct plt_entry *entries;
	uint32_t count;
	char *names;		/* NUL-separated */
	uint32_t names_bytes;
};

/* Best effort: entries that cannot be decoded are left out. */
int plt_read(const struct elf *elf, struct plt *ret_plt);
void plt_done(struct plt *plt);

#endif /* STACKTAP_SYMBOL_PLT_H */
