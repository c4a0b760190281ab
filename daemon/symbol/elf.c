// SPDX-License-Identifier: Apache-2.0
#include "symbol/elf.h"

#include <endian.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/varint.h"

#if __BYTE_ORDER == __LITTLE_ENDIAN
#define HOST_DATA ELFDATA2LSB
#else
#define HOST_DATA ELFDATA2MSB
#endif

#define BLOCK_BYTES ((size_t)64 << 10)
#define SMALL_BYTES ((size_t)4 << 10)	/* what is read directly costs no more than being kept */

enum {
	BLOCKS_MAX = 1 << 18,	/* a file of 16 GiB */
	NOTE_OWNER_BYTES = 4,	/* GNU's and Go's are as long */
	NOTE_GO_BUILD_ID = 4,
	BUILD_ID_BYTES = 20,	/* longer ones are cut */
};

struct elf_blocks {
	bool is_snapshot;
	size_t count, left;	/* of the file; that may still be read */
	uint8_t *read[];	/* by their place in the file, NULL: not yet */
};

bool elf_is_late(const struct elf *elf)
{
	return elf->deadline && clock_monotonic() > elf->deadline;
}

static int read_file(const struct elf *elf, uint64_t offset, void *ret_buffer, size_t size)
{
	return elf_is_late(elf) ? -ETIME : file_pread(elf->fd, ret_buffer, size, offset);
}

/* Block @i, read when it is first asked for. */
static int get_block(const struct elf *elf, size_t i, const uint8_t **ret_block)
{
	const uint64_t offset = (uint64_t)i * BLOCK_BYTES;
	uint8_t **block = &elf->blocks->read[i];
	int r;

	if (!*block) {
		if (!elf->blocks->left)
			return -EFBIG;
		*block = malloc(BLOCK_BYTES);
		if (!*block)
			return -ENOMEM;
		r = read_file(elf, offset, *block,
			      (size_t)min_of(elf->size - offset, (uint64_t)BLOCK_BYTES));
		if (r < 0) {
			free(*block);
			*block = NULL;
			return r;
		}
		elf->blocks->left--;
	}
	*ret_block = *block;
	return 0;
}

static int read_blocks(const struct elf *elf, uint64_t offset, uint8_t *ret_buffer, size_t size)
{
	if (elf_is_late(elf))
		return -ETIME;
	while (size) {
		const size_t at = offset % BLOCK_BYTES, part = min_of(size, BLOCK_BYTES - at);
		const uint8_t *block = NULL;
		int r = get_block(elf, offset / BLOCK_BYTES, &block);

		if (r < 0)
			return r;
		memcpy(ret_buffer, block + at, part);
		ret_buffer += part;
		offset += part;
		size -= part;
	}
	return 0;
}

int elf_read(const struct elf *elf, uint64_t offset, void *ret_buffer, size_t size)
{
	if (offset > elf->size || size > elf->size - offset)
		return -ENODATA;
	if (elf->blocks && elf->blocks->is_snapshot)
		return read_blocks(elf, offset, ret_buffer, size);
	/* a file that was cut may have the piece, and not all around it */
	if (elf->blocks && size < SMALL_BYTES && read_blocks(elf, offset, ret_buffer, size) == 0)
		return 0;
	if (elf->fd >= 0)
		return read_file(elf, offset, ret_buffer, size);
	memcpy(ret_buffer, elf->memory + offset, size);
	return 0;
}

int elf_read_at(const struct elf *elf, uint64_t address, void *ret_buffer, size_t size)
{
	for (size_t i = 0; i < elf->phdr_count; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];
		const uint64_t at = address - phdr->p_vaddr;

		if (phdr->p_type == PT_LOAD && at < phdr->p_filesz && phdr->p_filesz - at >= size)
			return elf_read(elf, phdr->p_offset + at, ret_buffer, size);
	}
	return -EBADMSG;
}

/* A table of @count entries of @entry bytes at @offset; refused unless the file holds all of it. */
static int read_table(const struct elf *elf, uint64_t offset, size_t count, size_t entry,
		      void **ret_table)
{
	_cleanup_free_ void *table = NULL;
	int r;

	if (offset > elf->size || count > (elf->size - offset) / entry)
		return -ENODATA;
	table = malloc(count * entry + 1);
	if (!table)
		return -ENOMEM;
	r = elf_read(elf, offset, table, count * entry);
	if (r < 0)
		return r;
	*ret_table = steal_ptr(table);
	return 0;
}

static int read_phdrs(struct elf *elf, uint64_t offset, size_t count, size_t entry)
{
	_cleanup_free_ void *table = NULL;
	int r;

	if (count == 0)
		return 0;
	if (count > ELF_PHDRS_MAX ||
	    entry != (elf->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
		return -ENOEXEC;
	r = read_table(elf, offset, count, entry, &table);
	if (r < 0)
		return r == -ENODATA ? -ENOEXEC : r;
	if (elf->is_64) {
		elf->phdrs = steal_ptr(table);
	} else {
		const Elf32_Phdr *small = table;

		elf->phdrs = calloc(count, sizeof(*elf->phdrs));
		if (!elf->phdrs)
			return -ENOMEM;
		for (size_t i = 0; i < count; i++)
			elf->phdrs[i] = (Elf64_Phdr){
				.p_type = small[i].p_type,
				.p_flags = small[i].p_flags,
				.p_offset = small[i].p_offset,
				.p_vaddr = small[i].p_vaddr,
				.p_filesz = small[i].p_filesz,
				.p_memsz = small[i].p_memsz,
				.p_align = small[i].p_align,
			};
	}
	elf->phdr_count = count;
	return 0;
}

static int read_shdr_table(struct elf *elf, uint64_t offset, size_t count, Elf64_Shdr **ret_shdrs)
{
	_cleanup_free_ void *table = NULL;
	Elf64_Shdr *shdrs;
	const Elf32_Shdr *small;
	int r;

	r = read_table(elf, offset, count, elf->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr),
		       &table);
	if (r < 0)
		return r;
	if (elf->is_64) {
		*ret_shdrs = steal_ptr(table);
		return 0;
	}
	small = table;
	shdrs = calloc(count, sizeof(*shdrs));
	if (!shdrs)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		shdrs[i] = (Elf64_Shdr){
			.sh_name = small[i].sh_name,
			.sh_type = small[i].sh_type,
			.sh_flags = small[i].sh_flags,
			.sh_addr = small[i].sh_addr,
			.sh_offset = small[i].sh_offset,
			.sh_size = small[i].sh_size,
			.sh_link = small[i].sh_link,
			.sh_info = small[i].sh_info,
			.sh_addralign = small[i].sh_addralign,
			.sh_entsize = small[i].sh_entsize,
		};
	*ret_shdrs = shdrs;
	return 0;
}

static void read_shdrs(struct elf *elf, uint64_t offset, size_t count, size_t entry, size_t names)
{
	Elf64_Shdr *shdrs = NULL;

	if (offset == 0 || entry != (elf->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)))
		return;
	/* counts that do not fit the header's 16 bits are in the first entry */
	if (count == 0 || names == SHN_XINDEX) {
		Elf64_Shdr *first = NULL;

		if (read_shdr_table(elf, offset, 1, &first) < 0)
			return;
		if (count == 0)
			count = min_of(first->sh_size, (uint64_t)ELF_SHDRS_MAX + 1);
		if (names == SHN_XINDEX)
			names = first->sh_link;
		free(first);
	}
	if (count == 0 || count > ELF_SHDRS_MAX ||
	    read_shdr_table(elf, offset, count, &shdrs) < 0)
		return;
	elf->shdrs = shdrs;
	elf->shdr_count = count;
	if (names < count && shdrs[names].sh_type == SHT_STRTAB &&
	    shdrs[names].sh_size <= ELF_NAMES_MAX &&
	    read_table(elf, shdrs[names].sh_offset, shdrs[names].sh_size, 1,
		       (void **)&elf->section_names) == 0) {
		elf->section_names_bytes = shdrs[names].sh_size;
		elf->section_names[elf->section_names_bytes] = '\0';
	}
}

static int read_headers(struct elf *elf)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr small;
		Elf64_Ehdr large;
	} ehdr = { 0 };
	int r;

	r = elf_read(elf, 0, &ehdr, min_of(elf->size, (uint64_t)sizeof(ehdr)));
	if (r < 0)
		return r;
	if (memcmp(ehdr.ident, ELFMAG, SELFMAG) || ehdr.ident[EI_DATA] != HOST_DATA)
		return -ENOEXEC;
	if (ehdr.ident[EI_CLASS] == ELFCLASS64 && elf->size >= sizeof(ehdr.large))
		elf->is_64 = true;
	else if (ehdr.ident[EI_CLASS] != ELFCLASS32 || elf->size < sizeof(ehdr.small))
		return -ENOEXEC;
	/* these two are at the same place in both */
	elf->type = ehdr.large.e_type;
	elf->machine = ehdr.large.e_machine;
	if (elf->is_64) {
		read_shdrs(elf, ehdr.large.e_shoff, ehdr.large.e_shnum, ehdr.large.e_shentsize,
			   ehdr.large.e_shstrndx);
		return read_phdrs(elf, ehdr.large.e_phoff, ehdr.large.e_phnum,
				  ehdr.large.e_phentsize);
	}
	read_shdrs(elf, ehdr.small.e_shoff, ehdr.small.e_shnum, ehdr.small.e_shentsize,
		   ehdr.small.e_shstrndx);
	return read_phdrs(elf, ehdr.small.e_phoff, ehdr.small.e_phnum, ehdr.small.e_phentsize);
}

static int open_common(struct elf *elf)
{
	int r = read_headers(elf);

	if (r < 0)
		elf_close(elf);
	return r;
}

int elf_open(struct elf *elf, int fd, uint64_t size, uint64_t deadline)
{
	*elf = (struct elf){ .fd = fd, .size = size, .deadline = deadline };
	return open_common(elf);
}

int elf_open_memory(struct elf *elf, const void *memory, size_t size)
{
	*elf = (struct elf){ .fd = -1, .memory = memory, .size = size };
	return open_common(elf);
}

static int keep_blocks(struct elf *elf, bool is_snapshot)
{
	const size_t count = (size_t)(elf->size / BLOCK_BYTES + 1);

	if (elf->size / BLOCK_BYTES >= BLOCKS_MAX)
		return -EFBIG;
	elf->blocks = calloc(1, sizeof(*elf->blocks) + count * sizeof(elf->blocks->read[0]));
	if (!elf->blocks)
		return -ENOMEM;
	elf->blocks->is_snapshot = is_snapshot;
	elf->blocks->count = count;
	elf->blocks->left = ELF_SNAPSHOT_BYTES / BLOCK_BYTES;
	return 0;
}

int elf_open_snapshot(struct elf *elf, int fd, uint64_t size, uint64_t deadline)
{
	int r;

	*elf = (struct elf){ .fd = fd, .size = size, .deadline = deadline };
	r = keep_blocks(elf, true);
	return r < 0 ? r : open_common(elf);
}

int elf_open_cached(struct elf *elf, int fd, uint64_t size, uint64_t deadline)
{
	int r = elf_open(elf, fd, size, deadline);

	/* headers are in few pieces; without a cache it is slower, and no more */
	if (!r)
		(void)!keep_blocks(elf, false);
	return r;
}

void elf_close(struct elf *elf)
{
	for (size_t i = 0; elf->blocks && i < elf->blocks->count; i++)
		free(elf->blocks->read[i]);
	free(elf->blocks);
	free(elf->phdrs);
	free(elf->shdrs);
	free(elf->section_names);
	*elf = (struct elf){ .fd = -1 };
}

const char *elf_section_name(const struct elf *elf, const Elf64_Shdr *shdr)
{
	return shdr->sh_name < elf->section_names_bytes ? elf->section_names + shdr->sh_name : "";
}

const Elf64_Shdr *elf_find_section(const struct elf *elf, uint32_t type, const char *name)
{
	for (size_t i = 0; i < elf->shdr_count; i++) {
		const Elf64_Shdr *shdr = &elf->shdrs[i];

		if ((type == SHT_NULL || shdr->sh_type == type) &&
		    (!name || !strcmp(elf_section_name(elf, shdr), name)))
			return shdr;
	}
	return NULL;
}

static size_t align_up(size_t value, size_t align)
{
	return (value + align - 1) & ~(align - 1);
}

/* The bytes of the first note of this kind; NULL: there is none. */
static const uint8_t *find_note(const void *notes, size_t size, size_t align, const char *owner,
				uint32_t type, size_t *ret_size)
{
	const uint8_t *bytes = notes;

	align = align == 8 ? 8 : 4;
	while (size >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		size_t name, whole;

		memcpy(&note, bytes, sizeof(note));
		if (note.n_namesz > size || note.n_descsz > size)
			return NULL;
		name = align_up(sizeof(note) + note.n_namesz, align);
		whole = align_up(name + note.n_descsz, align);
		if (name + note.n_descsz > size)
			return NULL;
		if (note.n_type == type && note.n_namesz == NOTE_OWNER_BYTES && note.n_descsz > 0 &&
		    !memcmp(bytes + sizeof(note), owner, NOTE_OWNER_BYTES)) {
			*ret_size = note.n_descsz;
			return bytes + name;
		}
		if (whole >= size)
			return NULL;
		bytes += whole;
		size -= whole;
	}
	return NULL;
}

void elf_notes_build_id(const void *notes, size_t size, size_t align, char *ret_hex)
{
	size_t length = 0;
	const uint8_t *bytes = find_note(notes, size, align, "GNU", NT_GNU_BUILD_ID, &length);

	ret_hex[0] = '\0';
	for (size_t i = 0; bytes && i < min_of(length, (size_t)BUILD_ID_BYTES); i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", bytes[i]);
}

/* As the Go tool prints it, which is what makes it an id: it is no number. */
static void take_go_build_id(const void *notes, size_t size, size_t align, char *ret_text)
{
	size_t length = 0;
	const uint8_t *bytes = find_note(notes, size, align, "Go\0", NOTE_GO_BUILD_ID, &length);

	if (!bytes || length >= ELF_GO_BUILD_ID_MAX)
		return;
	for (size_t i = 0; i < length; i++)
		if (bytes[i] <= ' ' || bytes[i] > '~')
			return;
	memcpy(ret_text, bytes, length);
	ret_text[length] = '\0';
}

/* Shows @take all notes, until it has set @ret_text. */
static void look_at_notes(const struct elf *elf,
			  void (*take)(const void *notes, size_t size, size_t align, char *ret_text),
			  char *ret_text)
{
	ret_text[0] = '\0';
	for (size_t i = 0; i < elf->phdr_count + elf->shdr_count && !ret_text[0]; i++) {
		const Elf64_Phdr *phdr = i < elf->phdr_count ? &elf->phdrs[i] : NULL;
		const Elf64_Shdr *shdr = phdr ? NULL : &elf->shdrs[i - elf->phdr_count];
		uint64_t offset = phdr ? phdr->p_offset : shdr->sh_offset;
		uint64_t size = phdr ? phdr->p_filesz : shdr->sh_size;
		_cleanup_free_ void *notes = NULL;

		if ((phdr ? phdr->p_type != PT_NOTE : shdr->sh_type != SHT_NOTE) ||
		    size > ELF_NOTES_MAX || read_table(elf, offset, size, 1, &notes) < 0)
			continue;
		take(notes, (size_t)size, (size_t)(phdr ? phdr->p_align : shdr->sh_addralign), ret_text);
	}
}

bool elf_supplementary(const struct elf *elf, bool *ret_is_shared, char ret_name[static ELF_SUPPLEMENTARY_MAX],
		       char ret_hex[static 41])
{
	const Elf64_Shdr *shdr = elf_find_section(elf, SHT_NULL, ".debug_sup");
	/* a version, a byte, the name, a length, and the id */
	uint8_t bytes[3 + ELF_SUPPLEMENTARY_MAX + 1 + BUILD_ID_BYTES] = { 0 };
	const uint8_t *at = bytes + 3, *end = bytes;
	uint64_t length;
	size_t name;

	ret_name[0] = ret_hex[0] = '\0';
	if (!shdr || shdr->sh_type == SHT_NOBITS)
		return false;
	end += min_of(shdr->sh_size, (uint64_t)sizeof(bytes));
	if (end <= at || elf_read(elf, shdr->sh_offset, bytes, (size_t)(end - bytes)) < 0)
		return false;
	name = strnlen((const char *)at, (size_t)(end - at));
	if (name >= ELF_SUPPLEMENTARY_MAX || at + name == end)
		return false;
	memcpy(ret_name, at, name + 1);
	at += name + 1;
	if (!varint_take(&at, end, &length) || !length || length > BUILD_ID_BYTES || length > (uint64_t)(end - at))
		return false;
	for (size_t i = 0; i < length; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", at[i]);
	*ret_is_shared = bytes[2];
	return true;
}

void elf_build_id(const struct elf *elf, char ret_hex[static 41])
{
	char name[ELF_SUPPLEMENTARY_MAX], hex[41];
	bool is_shared;

	look_at_notes(elf, elf_notes_build_id, ret_hex);
	if (!ret_hex[0] && elf_supplementary(elf, &is_shared, name, hex) && is_shared)
		strcpy(ret_hex, hex);
}

void elf_go_build_id(const struct elf *elf, char ret_text[static ELF_GO_BUILD_ID_MAX])
{
	look_at_notes(elf, take_go_build_id, ret_text);
}

static int compare_segments(const void *a, const void *b)
{
	const struct object_segment *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

int elf_segments(const struct elf *elf, struct object_segment **ret_segments, size_t *ret_count)
{
	_cleanup_free_ struct object_segment *segments = NULL;
	size_t count = 0;

	segments = calloc(max_of(elf->phdr_count, (size_t)1), sizeof(*segments));
	if (!segments)
		return -ENOMEM;
	for (size_t i = 0; i < elf->phdr_count; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X) || phdr->p_filesz == 0)
			continue;
		/* sums must not wrap: addresses and offsets are added to below and by readers */
		if (phdr->p_filesz > UINT64_MAX - phdr->p_vaddr ||
		    phdr->p_filesz > UINT64_MAX - phdr->p_offset)
			continue;
		segments[count++] = (struct object_segment){
			.vaddr = phdr->p_vaddr,
			.offset = phdr->p_offset,
			.size = phdr->p_filesz,
		};
	}
	if (count == 0)
		return -ENODATA;
	qsort(segments, count, sizeof(*segments), compare_segments);
	*ret_segments = steal_ptr(segments);
	*ret_count = count;
	return 0;
}
