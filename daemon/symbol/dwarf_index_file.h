/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index of units as bytes, so that it is made once for a file. Read, it is checked like anything that a file says: who
 * made it is not known either.
 */
#ifndef STACKTAP_SYMBOL_DWARF_INDEX_FILE_H
#define STACKTAP_SYMBOL_DWARF_INDEX_FILE_H

#include "symbol/dwarf_index.h"

enum {
	DWARF_INDEX_VERSION = 3,	/* of the bytes, and of where kernel modules' addresses begin */
	DWARF_INDEX_BYTES_MAX = 64 << 20,
};

/* Of a whole index; freed by the caller. -ENODATA: there are no units. -EFBIG: it has more bytes than are read again. */
int dwarf_index_pack(const struct dwarf_index *index, const struct elf *elf, void **ret_bytes, size_t *ret_size);
/* In place of what @index has. -EBADMSG: they are no index of this file. */
int dwarf_index_unpack(struct dwarf_index *index, const struct elf *elf, const void *bytes, size_t size);

#endif /* STACKTAP_SYMBOL_DWARF_INDEX_FILE_H */
