/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What DWARF and the symbol table say of an address: its function, and those that were inlined there, with
 * source files and lines. In the parser alone, as all that foreign files drive.
 *
 * Of the file the index of its units is read (see dwarf_index.h), and then the units that addresses are in. The outermost
 * function is called as the symbol table has it, where there is one: so a frame has one name, whether it was named on
 * its host or later.
 */
#ifndef STACKTAP_SYMBOL_LINES_H
#define STACKTAP_SYMBOL_LINES_H

#include <stdint.h>

enum {
	LINES_ADDRESSES_MAX = 2048,	/* of one question */
	LINES_FRAMES_MAX = 64,		/* of one address; further ones, the innermost, are left out */
	LINES_TEXT_MAX = 4096,		/* of a name or path, with the NUL; longer ones are cut */
	LINES_STRINGS_MAX = 64 << 20,	/* bytes of one answer's */
};

struct lines_frame {
	uint32_t name, file;		/* in the strings, whose first is empty; as linkers know it */
	uint32_t line, column;		/* 0: unknown */
	uint32_t start_line;		/* where the function begins, if that is in the same file */
};

struct lines_answer {
	uint32_t counts[LINES_ADDRESSES_MAX];	/* frames of each address */
	struct lines_frame *frames;	/* of one address after the other, innermost first */
	uint32_t frame_count;
	char *strings;
	uint32_t string_bytes;
	uint32_t split;			/* addresses whose inlined functions are in a file that was not given */
};

struct lines;

/* @addresses are sorted, LINES_ADDRESSES_MAX at most. -ETIME, -ENOMEM, -EFBIG, -EUCLEAN */
int lines_find(struct lines *lines, const uint64_t *addresses, uint32_t count, uint64_t deadline,
	       struct lines_answer *ret_answer);
void lines_answer_free(struct lines_answer *answer);

#endif /* STACKTAP_SYMBOL_LINES_H */
