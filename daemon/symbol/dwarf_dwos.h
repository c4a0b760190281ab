/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The .dwo files of some skeletons, for a program whose split DWARF no packager has packed. It may have thousands: there are
 * DWARF_DWOS_MAX descriptors at most, and one of them is read at a time, which gives way to the next.
 */
#ifndef STACKTAP_SYMBOL_DWARF_DWOS_H
#define STACKTAP_SYMBOL_DWARF_DWOS_H

#include "symbol/dwarf_split.h"

enum { DWARF_DWOS_MAX = 64 };

/* As the compiler was told: @name is relative to @directory, unless it begins with a slash. */
struct dwarf_dwo_names {
	char name[DWARF_TEXT_MAX], directory[DWARF_TEXT_MAX];
};

struct dwarf_dwo {
	uint64_t skeleton, id;		/* skeleton: where that begins */
	uint64_t size;
	int fd;				/* its own; -1: not given */
};

struct dwarf_dwos {
	struct dwarf_dwo dwos[DWARF_DWOS_MAX];
	uint32_t count;
	struct dwarf_split open;	/* of the one that was asked for last */
	const struct dwarf_dwo *opened;
};

void dwarf_dwos_close(struct dwarf_dwos *dwos);

/* Adds that of @skeleton, if it is not there. -ENOSPC: there are as many as there may be. */
int dwarf_dwos_want(struct dwarf_dwos *dwos, const struct dwarf_unit *skeleton);
/* What the skeleton, of @file, says where it is. */
int dwarf_dwos_names(const struct dwarf_dwos *dwos, uint32_t number, struct dwarf_file *file,
		     struct dwarf_dwo_names *ret_names);
/* Takes *fd over if the unit is in there; -ENOENT: it is not. -EBADMSG: nothing can be read there. -ETIME, -ENOMEM */
int dwarf_dwos_set(struct dwarf_dwos *dwos, uint32_t number, int *fd, uint64_t size, uint64_t deadline);
/* The unit that @skeleton stands for, in *ret_split; both stay until the next such question. -ENOENT: it was not given. */
int dwarf_dwos_find(struct dwarf_dwos *dwos, const struct dwarf_unit *skeleton, uint64_t deadline,
		    struct dwarf_split **ret_split, struct dwarf_unit **ret_unit);
/* dwarf_take_failure() of the one that is open. */
int dwarf_dwos_failure(struct dwarf_dwos *dwos);
/* Closes what was given for @skeleton: it is as if it had not been. */
void dwarf_dwos_drop(struct dwarf_dwos *dwos, const struct dwarf_unit *skeleton);

#endif /* STACKTAP_SYMBOL_DWARF_DWOS_H */
