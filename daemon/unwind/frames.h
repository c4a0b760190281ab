/* SPDX-License-Identifier: Apache-2.0 */
/* Where an object keeps its call frame information, in memory. */
#ifndef STACKTAP_UNWIND_FRAMES_H
#define STACKTAP_UNWIND_FRAMES_H

#include "symbol/elf.h"
#include "unwind/builder.h"
#include "unwind/cfi.h"

enum { FRAMES_BYTES_MAX = 64 << 20 };	/* of a section; offsets fit 31 bits */

/*
 * .eh_frame: by its section, or by the program header that leads to it in files without sections.
 * Memory is charged to @builder; data is NULL when there is none. -ENOMEM, or what reading met.
 */
int frames_read_eh(const struct elf *elf, struct builder *builder, struct cfi_section *section);
/* .debug_frame, decompressed. */
int frames_read_debug(const struct elf *elf, struct builder *builder, struct cfi_section *section);
void frames_free(struct builder *builder, struct cfi_section *section);

#endif /* STACKTAP_UNWIND_FRAMES_H */
