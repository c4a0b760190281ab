/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MiniDebugInfo: what Fedora's and its relatives' stripped files keep of their symbols, an ELF file with .symtab
 * alone, compressed by xz in the section .gnu_debugdata. It has the functions that .dynsym lacks.
 */
#ifndef STACKTAP_SYMBOL_MINIDEBUG_H
#define STACKTAP_SYMBOL_MINIDEBUG_H

#include "symbol/elf.h"

enum {
	MINIDEBUG_PACKED_MAX = 16 << 20,	/* bytes of the section */
	MINIDEBUG_BYTES_MAX = 64 << 20,		/* that it unpacks to */
};

/* Freed by the caller. -ENODATA: there is none. -EFBIG; -EBADMSG: it is broken; -ENOMEM, -ETIME */
int minidebug_read(const struct elf *elf, void **ret_data, size_t *ret_size);

#endif /* STACKTAP_SYMBOL_MINIDEBUG_H */
