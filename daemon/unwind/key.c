// SPDX-License-Identifier: Apache-2.0
#include "unwind/key.h"

#include "unwind/frames.h"
#include "unwind/gap.h"
#include "unwind/pcsp.h"

enum {
	KEY_VERSION = 8,	/* counts changes of what the compiler makes of the same bytes */
	CHUNK = 64 * 1024,
};

static void add(struct sha256 *sha, uint64_t number)
{
	sha256_add(sha, &number, sizeof(number));
}

static int add_bytes(struct sha256 *sha, const struct elf *elf, uint64_t offset, uint64_t size)
{
	_cleanup_free_ uint8_t *chunk = malloc(CHUNK);

	if (!chunk)
		return -ENOMEM;
	add(sha, size);
	while (size) {
		size_t part = (size_t)min_of(size, (uint64_t)CHUNK);
		int r = elf_read(elf, offset, chunk, part);

		if (r < 0)
			return r;
		sha256_add(sha, chunk, part);
		offset += part;
		size -= part;
	}
	return 0;
}

static void add_gaps(struct sha256 *sha, const struct elf *elf, const struct machine *machine)
{
	struct gaps gaps;

	gaps_find(elf, machine, &gaps);
	add(sha, gaps.count);
	add(sha, gaps.context_start);
	add(sha, gaps.resolve_start);
	for (size_t i = 0; i < gaps.count; i++) {
		add(sha, gaps.all[i].start);
		add(sha, gaps.all[i].end);
		add(sha, gaps.all[i].is_signal);
		add(sha, gaps.all[i].is_entry);
		add(sha, gaps.all[i].pushed);
		add(sha, gaps.all[i].header_end);
		add(sha, gaps.all[i].late);
	}
}

static void see_number(void *ctx, uint64_t number)
{
	add(ctx, number);
}

static int add_pclntab(struct sha256 *sha, const struct elf *elf)
{
	_cleanup_free_ struct pcsp *pcsp = calloc(1, sizeof(*pcsp));
	uint64_t start, end;
	int r;

	if (!pcsp)
		return -ENOMEM;
	if (!pcsp_find(pcsp, elf, &start, &end))
		return 0;
	add(sha, pcsp->pclntab.text);
	r = add_bytes(sha, elf, pcsp->pclntab.section->sh_offset, pcsp->pclntab.section->sh_size);
	/* of Go's code what it was found to do */
	return r ?: pcsp_each(pcsp, see_number, sha);
}

static int add_segments(struct sha256 *sha, const struct elf *elf)
{
	_cleanup_free_ struct object_segment *segments = NULL;
	size_t count;
	int r;

	r = elf_segments(elf, &segments, &count);
	if (r < 0)
		return r;
	add(sha, count);
	for (size_t i = 0; i < count; i++) {
		add(sha, segments[i].vaddr);
		/* what of it the file holds: that alone is compiled */
		add(sha, segments[i].offset < elf->size ?
			 min_of(segments[i].size, elf->size - segments[i].offset) : 0);
	}
	return 0;
}

int key_make(const struct elf *elf, uint8_t ret_key[static KEY_BYTES])
{
	const struct machine *machine = elf->is_64 ? machine_find(elf->machine) : NULL;
	const Elf64_Shdr *debug = elf_find_section(elf, SHT_NULL, ".debug_frame");
	_cleanup_free_ struct cfi_section *eh = calloc(1, sizeof(*eh));
	_cleanup_(sha256_done) struct sha256 sha = { 0 };
	int r;

	if (!machine)
		return -ENOTSUP;
	if (!eh)
		return -ENOMEM;
	frames_find_eh(elf, machine, eh);
	if (debug && (debug->sh_type == SHT_NOBITS || debug->sh_size > FRAMES_BYTES_MAX))
		debug = NULL;
	r = sha256_init(&sha);
	if (r < 0)
		return r;
	add(&sha, KEY_VERSION);
	add(&sha, UNWIND_TABLE_VERSION);
	add(&sha, machine->elf);
	r = add_segments(&sha, elf);
	if (r < 0)
		return r;
	add_gaps(&sha, elf, machine);
	add(&sha, eh->address);
	add(&sha, eh->is_open);
	r = add_bytes(&sha, elf, eh->offset, eh->size);
	if (r == 0 && debug) {
		add(&sha, debug->sh_flags & SHF_COMPRESSED);
		r = add_bytes(&sha, elf, debug->sh_offset, debug->sh_size);
	}
	if (r == 0)
		r = add_pclntab(&sha, elf);
	sha256_get(&sha, ret_key);
	return r;
}
