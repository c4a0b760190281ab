/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vDSO: the kernel maps the same image into all processes, so ours stands for theirs.
 */
#ifndef STACKTAP_SYMBOL_VDSO_H
#define STACKTAP_SYMBOL_VDSO_H

#include "symbol/symtab.h"

/* Ours, in memory. -ENOENT: this process has none. */
int vdso_image(const void **ret_image, size_t *ret_size);
/* functions_read(), whose room comes behind this one */
typedef int vdso_ranges_fn(const struct elf *elf, struct function_range **ret_ranges, size_t *ret_count);
/* Its object with all facts, and its functions, those without names as far as ranges can be read. -ENOENT: this process has none. */
int vdso_read(vdso_ranges_fn *read_ranges, struct object **ret_object, struct symtab **ret_symtab);

#endif /* STACKTAP_SYMBOL_VDSO_H */
