/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading ELF files that somebody else wrote.
 *
 * By bounded pread() of our own rather than libelf: that sizes its arrays by what the file says,
 * and mapping a file that gets truncated is SIGBUS. Every count and size is checked against the
 * file's and a cap before memory is taken; a file that changes while it is read yields wrong
 * numbers at worst. Files of the host's byte order only, 32 and 64 bit.
 */
#ifndef STACKTAP_SYMBOL_ELF_H
#define STACKTAP_SYMBOL_ELF_H

#include <elf.h>

#include "process/object.h"

enum {
	ELF_PHDRS_MAX = 256,
	ELF_SHDRS_MAX = 16384,		/* -ffunction-sections survives in no linked file */
	ELF_NOTES_MAX = 64 * 1024,
	ELF_NAMES_MAX = 512 * 1024,	/* of sections */
	ELF_GO_BUILD_ID_MAX = 128,	/* with the NUL; Go's have 83 characters */
	ELF_SUPPLEMENTARY_MAX = 256,	/* of the path of a supplementary file, with the NUL */
	ELF_SNAPSHOT_BYTES = 64 << 20,	/* of a file that are kept, see elf_open_snapshot() */
};

struct elf_blocks;

struct elf {
	int fd;				/* borrowed; -1: in memory */
	const uint8_t *memory;
	struct elf_blocks *blocks;	/* what is kept of the file; NULL: nothing is */
	uint64_t size;
	uint64_t deadline;		/* CLOCK_MONOTONIC ns, then reads fail: -ETIME; 0: none */
	bool is_64;
	uint16_t type, machine;
	Elf64_Phdr *phdrs;		/* in the 64-bit form always */
	Elf64_Shdr *shdrs;
	size_t phdr_count, shdr_count;
	char *section_names;		/* NUL-terminated as a whole */
	size_t section_names_bytes;
};

/* -ENOEXEC: not an ELF file, or a broken one. Section headers that are broken count as absent. */
int elf_open(struct elf *elf, int fd, uint64_t size, uint64_t deadline);
int elf_open_memory(struct elf *elf, const void *memory, size_t size);
/*
 * The same bytes for every reader of the same place: what is read is kept until elf_close(), whatever
 * becomes of the file. Beyond ELF_SNAPSHOT_BYTES reads fail, -EFBIG.
 */
int elf_open_snapshot(struct elf *elf, int fd, uint64_t size, uint64_t deadline);
/*
 * For who reads many small pieces: they come from what is kept of the file around them, if that is not too much yet.
 * Large ones do not, and may be of another time.
 */
int elf_open_cached(struct elf *elf, int fd, uint64_t size, uint64_t deadline);
void elf_close(struct elf *elf);
/* Is it behind the deadline? For work on what has been read. */
bool elf_is_late(const struct elf *elf);

/* All of [@offset, @offset + @size), or -ENODATA when the file ends before. */
int elf_read(const struct elf *elf, uint64_t offset, void *ret_buffer, size_t size);
/* @size bytes at an address of the program, all in what the file has of one segment; else -EBADMSG. */
int elf_read_at(const struct elf *elf, uint64_t address, void *ret_buffer, size_t size);
const char *elf_section_name(const struct elf *elf, const Elf64_Shdr *shdr);
/* The first section with this type (SHT_NULL: any) and name (NULL: any), or NULL. */
const Elf64_Shdr *elf_find_section(const struct elf *elf, uint32_t type, const char *name);

/* GNU build-id in hex, or a supplementary file's own id; empty when there is none. */
void elf_build_id(const struct elf *elf, char ret_hex[static 41]);
/* The same from a bare note section, such as /sys/kernel/notes. */
void elf_notes_build_id(const void *notes, size_t size, size_t align, char *ret_hex);
/*
 * DWARF 5's .debug_sup: *ret_is_shared, the file has what others have moved out (dwz -5), and this id; else the path and id of
 * that one. False: neither.
 */
bool elf_supplementary(const struct elf *elf, bool *ret_is_shared, char ret_name[static ELF_SUPPLEMENTARY_MAX],
		       char ret_hex[static 41]);
/* What go tool buildid prints; empty when there is none. */
void elf_go_build_id(const struct elf *elf, char ret_text[static ELF_GO_BUILD_ID_MAX]);

/* Executable segments sorted by address; -ENODATA when there is none. Freed by the caller. */
int elf_segments(const struct elf *elf, struct object_segment **ret_segments, size_t *ret_count);

#endif /* STACKTAP_SYMBOL_ELF_H */
