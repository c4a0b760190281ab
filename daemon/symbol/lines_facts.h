/* SPDX-License-Identifier: Apache-2.0 */
/* What an object has that names functions and lines, before any is read: which build it is of, and which files belong to it. */
#ifndef STACKTAP_SYMBOL_LINES_FACTS_H
#define STACKTAP_SYMBOL_LINES_FACTS_H

#include "symbol/elf.h"

enum {
	LINES_SEGMENTS_MAX = 8,	/* executable ones of a file that are told */
	LINES_LINK_MAX = 256,
};

/* .gnu_debuglink: what it says that its debug file is called, empty: nothing, and that file's CRC. */
struct lines_link {
	char name[LINES_LINK_MAX];
	uint32_t crc;
};

/* What can be said of a file's names before they are read. */
struct lines_facts {
	uint8_t is_elf, has_dwarf, has_symbols;
	uint8_t has_go_lines;		/* see symbol/go_lines.h */
	uint8_t is_split;		/* a package of split DWARF, or a .dwo file */
	uint8_t is_module;		/* a kernel's, see symbol/kernel_module.h */
	char htlhash[33], build_id[41];
	char alt_build_id[41];		/* of the file that dwz has moved a part into; empty: none */
	char alt_link[256];		/* and its path */
	struct lines_link link;
	uint8_t has_code;		/* code has its bytes in the file */
	uint64_t vaddr;			/* lowest of an executable segment, of those with bytes if there are such */
	uint64_t image;			/* lowest of all executable segments, or a module's code; UINT64_MAX: there is none */
	uint32_t segment_count;		/* of those with bytes in the file; 0: debug information alone */
	struct object_segment segments[LINES_SEGMENTS_MAX];
};

void lines_link(const struct elf *elf, struct lines_link *ret_link);
int lines_facts(int fd, uint64_t size, uint64_t deadline, struct lines_facts *ret_facts);
/* Has a linker still to change its addresses? What dwz makes, and a kernel module, is not such. */
bool lines_is_relocatable(const struct elf *elf);

#endif /* STACKTAP_SYMBOL_LINES_FACTS_H */
