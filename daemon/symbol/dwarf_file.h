/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections of debugging information of a file, of which only what is asked for is read: a unit, a string, an
 * entry of a table. A compressed one is unpacked whole when it is first needed, and so is one of a kernel module that has
 * relocations, which are applied then.
 */
#ifndef STACKTAP_SYMBOL_DWARF_FILE_H
#define STACKTAP_SYMBOL_DWARF_FILE_H

#include "base/cursor.h"
#include "symbol/elf.h"

enum {
	DWARF_TEXT_MAX = 4096,		/* of a name or path, with the NUL; longer ones are cut */
	/* bytes of compressed and relocated sections of one file; code, units and answers need the rest of 256 MiB */
	DWARF_UNPACKED_MAX = 192 << 20,
	DWARF_WINDOW = 512,		/* of a stream */
};

enum dwarf_section {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_LINE,
	DWARF_STR,
	DWARF_LINE_STR,
	DWARF_STR_OFFSETS,
	DWARF_ADDR,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_ARANGES,
	DWARF_CU_INDEX,			/* of a package */
	DWARF_SECTIONS,
};

struct dwarf_file;

/*
 * @elf stays the caller's, and open; its deadline holds. @is_split: of sections as a .dwo file or a package of such
 * (.dwp) has them. -ENODATA: there is none that can be read. -EFBIG
 */
int dwarf_file_open(const struct elf *elf, bool is_split, struct dwarf_file **ret_file);
void dwarf_file_close(struct dwarf_file *file);		/* NULL is fine */

/*
 * -ENOMEM, -ETIME, -EFBIG or -EUCLEAN of anything that was read since the last call, else 0: texts, and what else has no
 * errors of its own, may be missing. -EFBIG: compressed or relocated sections for which there is no room, now or later;
 * -EUCLEAN: one that cannot be relocated.
 */
int dwarf_take_failure(struct dwarf_file *file);	/* NULL is fine */

/* What dwz moved away from it; @alt stays the caller's. NULL: nothing, or it is not there. */
void dwarf_set_alt(struct dwarf_file *file, struct dwarf_file *alt);
struct dwarf_file *dwarf_alt(const struct dwarf_file *file);

uint64_t dwarf_size(const struct dwarf_file *file, enum dwarf_section section);
/* Does the file have code there? An address that it has not is of what the linker dropped (--gc-sections). */
bool dwarf_is_code(const struct dwarf_file *file, uint64_t address);

/* All of it, or -ENODATA when the section ends before. The latter keeps what is around it for who asks next. */
int dwarf_read(struct dwarf_file *file, enum dwarf_section section, uint64_t offset, void *ret_bytes, size_t size);
int dwarf_peek(struct dwarf_file *file, enum dwarf_section section, uint64_t offset, void *ret_bytes, size_t size);
/* The same where it is, or in memory that *ret_owned is, to be freed. */
int dwarf_bytes(struct dwarf_file *file, enum dwarf_section section, uint64_t offset, size_t size,
		const uint8_t **ret_bytes, void **ret_owned);
/* A string; empty where there is none. */
const char *dwarf_text(struct dwarf_file *file, enum dwarf_section section, uint64_t offset,
		       char ret_text[static DWARF_TEXT_MAX]);

/* What ends somewhere in a section, read piece by piece. */
struct dwarf_stream {
	struct dwarf_file *file;
	enum dwarf_section section;
	uint64_t next;			/* behind what is in the window */
	struct cursor cursor;
	uint8_t window[DWARF_WINDOW];
};

void dwarf_stream_open(struct dwarf_stream *stream, struct dwarf_file *file, enum dwarf_section section,
		       uint64_t offset);
/* Before each item, which DWARF_WINDOW / 2 bytes must be enough for. -errno; there may be nothing left. */
int dwarf_stream_fill(struct dwarf_stream *stream);

#endif /* STACKTAP_SYMBOL_DWARF_FILE_H */
