/* SPDX-License-Identifier: Apache-2.0 */
/* A file that lines are looked up in, and those that belong to it. */
#ifndef STACKTAP_SYMBOL_LINES_FILE_H
#define STACKTAP_SYMBOL_LINES_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/dwarf_dwos.h"

struct lines;

/*
 * @fd stays the caller's, and open. Without DWARF, or one that cannot be read, there are symbols alone.
 * -ENODATA: neither. -EFBIG: compressed sections for which there is no room.
 */
int lines_open(int fd, uint64_t size, bool with_dwarf, uint64_t deadline, struct lines **ret_lines);
/* What dwz has moved away, before the first question. */
int lines_set_alt(struct lines *lines, int fd, uint64_t size, uint64_t deadline);
/* A package (.dwp) of its split DWARF, or a .dwo file, as well; one that cannot be read is as none. */
int lines_set_split(struct lines *lines, int fd, uint64_t size, uint64_t deadline);
/*
 * Which .dwo files have the functions of @addresses, which are sorted, that no package has: *ret_count of them, for the first
 * *ret_addresses of these, at least one. They are numbered from 0 on until the next such question, and each may be given then: -ENOENT, it
 * is another one, -EBADMSG, it cannot be read. Not as those before: *fd is taken over if it is.
 */
int lines_find_dwos(struct lines *lines, const uint64_t *addresses, uint32_t count, uint64_t deadline,
		    uint32_t *ret_count, uint32_t *ret_addresses);
int lines_dwo_names(struct lines *lines, uint32_t number, uint64_t deadline, struct dwarf_dwo_names *ret_names);
int lines_set_dwo(struct lines *lines, uint32_t number, int *fd, uint64_t size, uint64_t deadline);
/*
 * The index of its units, which lines_find() makes for the first address that .debug_aranges does not have: as bytes to be
 * kept (-ENODATA: it has made none, or was given it), and such bytes, before the first question (-EBADMSG: they are of
 * another file, or damaged).
 */
int lines_save_index(struct lines *lines, void **ret_bytes, size_t *ret_size);
int lines_load_index(struct lines *lines, const void *bytes, size_t size);
void lines_free(struct lines *lines);	/* NULL is fine */

#endif /* STACKTAP_SYMBOL_LINES_FILE_H */
