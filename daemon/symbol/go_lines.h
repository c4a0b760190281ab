/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Go program knows of an address by itself, stripped or not: its function, those that were inlined there, and
 * their files and lines. Go's runtime prints stacks by that, so each program has it, and what was inlined since Go 1.9.
 *
 * Where the lists of inlined functions are stands since Go 1.18 in the runtime's moduledata alone, whose layout changes
 * from one Go to the next: of the addresses that it has, the one is taken at which these lists make sense.
 */
#ifndef STACKTAP_SYMBOL_GO_LINES_H
#define STACKTAP_SYMBOL_GO_LINES_H

#include "symbol/elf.h"

struct go_lines;

struct go_frame {
	const char *name, *file;	/* empty: unknown; until the next call */
	uint32_t line, start_line;	/* 0: unknown; the latter since Go 1.20 */
};

/* @elf stays the caller's, and open. -ENODATA: it is no program of Go, or of one that is not known */
int go_lines_open(const struct elf *elf, struct go_lines **ret_go);
void go_lines_free(struct go_lines *go);	/* NULL is fine */

/*
 * @take gets the frames of @address, innermost first; -ENODATA if it gets none, -errno of reading. Where the list of
 * inlined functions is not known or broken, that is the function without a line.
 */
int go_lines_find(struct go_lines *go, uint64_t address,
		  void (*take)(void *ctx, const struct go_frame *frame), void *ctx);

#endif /* STACKTAP_SYMBOL_GO_LINES_H */
