/* SPDX-License-Identifier: Apache-2.0 */
/* Where an object keeps its call frame information. */
#ifndef STACKTAP_UNWIND_FRAMES_H
#define STACKTAP_UNWIND_FRAMES_H

#include "symbol/elf.h"
#include "unwind/builder.h"
#include "unwind/cfi.h"

enum { FRAMES_BYTES_MAX = 64 << 20 };	/* of a section; offsets fit 31 bits */

/*
 * .eh_frame: by its section, or by the program header that leads to it in files without sections.
 * Its size is 0 when there is none.
 */
void frames_find_eh(const struct elf *elf, const struct machine *machine,
		    struct cfi_section *section);
/* .debug_frame; decompressed into memory that is charged to @builder. */
int frames_find_debug(const struct elf *elf, struct builder *builder,
		      struct cfi_section *section);
void frames_free(struct builder *builder, struct cfi_section *section);

#endif /* STACKTAP_UNWIND_FRAMES_H */
