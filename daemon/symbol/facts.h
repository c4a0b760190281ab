/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the encoder wants to know of an object: segments, address range, build-id.
 */
#ifndef STACKTAP_SYMBOL_FACTS_H
#define STACKTAP_SYMBOL_FACTS_H

#include "symbol/elf.h"

/* As object_set_segments(), and what follows from them. */
int facts_set_segments(struct object *object, struct object_segment *segments, size_t count);

/* Fill in what an ELF file says; -ENODATA, and nothing but the build-id, when it has no code. */
int facts_read(const struct elf *elf, struct object *object);

#endif /* STACKTAP_SYMBOL_FACTS_H */
