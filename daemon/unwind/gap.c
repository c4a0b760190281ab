// SPDX-License-Identifier: Apache-2.0
#include "unwind/gap.h"

#include <string.h>

enum {
	TEXT_SEARCHED_MAX = 4 << 20,	/* larger objects bring call frame information */
	CHUNK = 64 * 1024,
	PLT_HEADER_X86 = 16,
	PLT_HEADER_ARM64 = 32,
	PLT_LOOK = 64,
	ENTRY_BYTES = 64,
	NAMES_SEARCHED_MAX = 2 << 20,	/* of symbols, where there is little code */
	SYMBOLS_SEARCHED_MAX = 128 * 1024,
	NAME_PLACES = 4,	/* where a name is the end of longer ones */
	ARM64_STP_X16_LR = 0xa9bf7bf0,	/* stp x16, x30, [sp, #-16]! */
	ARM64_SXTW_X0 = 0x93407c00,	/* sxtw x0, w0 */
};

/* The kernel's layout of what a signal handler's frame holds, seen from sp in the trampoline. */
enum {
	X86_CONTEXT_FP = 120,
	X86_CONTEXT_SP = 160,
	X86_CONTEXT_PC = 168,
	ARM64_CONTEXT_FP = 544,
	ARM64_CONTEXT_SP = 560,
	ARM64_CONTEXT_PC = 568,
};

static void add(struct gaps *gaps, struct gap gap)
{
	size_t at;

	if (gaps->count == GAP_MAX || gap.start >= gap.end)
		return;
	for (at = gaps->count; at > 0 && gaps->all[at - 1].start > gap.start; at--)
		gaps->all[at] = gaps->all[at - 1];
	gaps->all[at] = gap;
	gaps->count++;
}

/* Instructions that are searched for, one of whose bytes is rare in code. */
struct pattern {
	const uint8_t *bytes;
	size_t size, rare;
};

#define PATTERN(array, at) { .bytes = (array), .size = sizeof(array), .rare = (at) }

/* As memmem(), in a fraction of its time. */
static const uint8_t *find(const uint8_t *code, size_t size, const struct pattern *pattern)
{
	const uint8_t *const end = code + size;
	const uint8_t *at = code;

	while ((size_t)(end - at) >= pattern->size) {
		at = memchr(at + pattern->rare, pattern->bytes[pattern->rare],
			    (size_t)(end - at) - pattern->size + 1);
		if (!at)
			return NULL;
		at -= pattern->rare;
		if (!memcmp(at, pattern->bytes, pattern->size))
			return at;
		at++;
	}
	return NULL;
}

static bool starts_with(const uint8_t *bytes, const char *pattern, size_t size)
{
	return !memcmp(bytes, pattern, size);
}

/* Where an x86 PLT pushes, by what linkers write; anything else is left alone. */
static bool look_x86(const uint8_t *code, struct gap *gap)
{
	/* push what identifies the object; jump */
	if (starts_with(code, "\xff\x35", 2)) {
		gap->pushed = gap->start + 6;
		gap->header_end = gap->start + PLT_HEADER_X86;
		code += PLT_HEADER_X86;
		if (gap->end - gap->start < 2 * PLT_HEADER_X86)
			return false;
	}
	if (starts_with(code, "\xf3\x0f\x1e\xfa\x68", 5))	/* endbr64; push; jump */
		gap->late = 9;
	else if (starts_with(code, "\x68", 1))			/* push; jump */
		gap->late = 5;
	else if (starts_with(code, "\xff\x25", 2))		/* jump; push; jump */
		gap->late = code[6] == 0x68 ? 11 : 0;
	else if (!starts_with(code, "\xf3\x0f\x1e\xfa", 4) &&	/* endbr64; jump */
		 !starts_with(code, "\xf2\xff\x25", 3))
		return false;
	return true;
}

static bool look_arm64(const uint8_t *code, struct gap *gap)
{
	uint32_t words[2];

	memcpy(words, code, sizeof(words));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i] == ARM64_STP_X16_LR) {
			gap->pushed = gap->start + 4 * (i + 1);
			gap->header_end = gap->start + PLT_HEADER_ARM64;
		}
	return true;
}

static void look_at_plt(const struct elf *elf, const struct machine *machine,
			const Elf64_Shdr *shdr, struct gaps *gaps)
{
	struct gap gap = { .start = shdr->sh_addr, .end = shdr->sh_addr + shdr->sh_size };
	uint8_t code[PLT_LOOK] = { 0 };

	if (shdr->sh_type != SHT_PROGBITS || !(shdr->sh_flags & SHF_EXECINSTR) ||
	    shdr->sh_size > UINT64_MAX - shdr->sh_addr ||
	    elf_read(elf, shdr->sh_offset, code, min_of(shdr->sh_size, (uint64_t)PLT_LOOK)) < 0)
		return;
	if (!(machine->has_link ? look_arm64(code, &gap) : look_x86(code, &gap)))
		return;
	/* where an entry pushes is told by the address; those of a static program's ifuncs never do */
	if (gap.start % GAP_ALIGNMENT == 0 || !(gap.pushed || gap.late))
		add(gaps, gap);
}

/* What fills the space between functions. */
static bool is_filler(const struct machine *machine, const uint8_t *code, size_t size)
{
	/* nop; udf */
	static const uint8_t arm64[][4] = { { 0x1f, 0x20, 0x03, 0xd5 }, { 0, 0, 0, 0 } };

	if (machine->has_link)
		return size >= sizeof(*arm64) && (!memcmp(code, arm64[0], sizeof(*arm64)) ||
						  !memcmp(code, arm64[1], sizeof(*arm64)));
	/* prefixes of long ones */
	for (; size > 1 && (*code == 0x66 || *code == 0x2e); code++)
		size--;
	/* nop, int3, nopw and nopl */
	return size && (*code == 0x90 || *code == 0xcc ||
			(size > 1 && starts_with(code, "\x0f\x1f", 2)));
}

/* Does code end at @address, as the arm64 vDSO's does with its trampoline? */
static bool ends_code(const struct elf *elf, uint64_t address)
{
	bool ends = false;

	for (size_t i = 0; i < elf->shdr_count; i++) {
		const Elf64_Shdr *shdr = &elf->shdrs[i];

		if (shdr->sh_type != SHT_PROGBITS || !(shdr->sh_flags & SHF_EXECINSTR))
			continue;
		if (address - shdr->sh_addr < shdr->sh_size)
			return false;
		ends |= shdr->sh_size && address - shdr->sh_addr == shdr->sh_size;
	}
	return ends;
}

/*
 * The instructions that return from a signal; they are the same in every kernel and library. Within the
 * system call, until the kernel has taken the context over, the program counter is behind them.
 */
static void look_for_trampoline(const struct elf *elf, const struct machine *machine,
				const uint8_t *code, size_t size, uint64_t address,
				struct gaps *gaps)
{
	static const uint8_t x86[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t arm64[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 };
	static const struct pattern patterns[] = { PATTERN(x86, 1), PATTERN(arm64, 1) };
	const struct pattern *pattern = &patterns[machine->has_link];
	const uint8_t *at = code;

	while ((at = find(at, (size_t)(code + size - at), pattern))) {
		uint64_t start = address + (uint64_t)(at - code);
		uint64_t end = start + pattern->size;

		at += pattern->size;
		if (is_filler(machine, at, (size_t)(code + size - at)) || ends_code(elf, end))
			end += 1U << machine->shift;
		/* a handler returns here; the byte before is what a return address stands for */
		if (start >= 4 && start % (1U << machine->shift) == 0)
			add(gaps, (struct gap){ .start = start - (1U << machine->shift),
						.end = end, .is_signal = true });
	}
}

/*
 * glibc's __start_context on x86. Its call frame information has it called from somewhere, but what
 * lies above its address on the stack is the context to go on with.
 */
static void look_for_context(const struct machine *machine, const uint8_t *code, size_t size,
			     uint64_t address, struct gaps *gaps)
{
	/* mov %rbx, %rsp; mov (%rsp), %rdi; test %rdi, %rdi */
	static const uint8_t x86[] = { 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff };
	static const struct pattern pattern = PATTERN(x86, 2);
	const uint8_t *at = machine->has_link ? NULL : find(code, size, &pattern);

	if (at && (address + (uint64_t)(at - code)) % GAP_ALIGNMENT == 0)
		gaps->context_start = address + (uint64_t)(at - code);
}

static void look_for_resolver(const struct machine *machine, const uint8_t *code, size_t size,
			      uint64_t address, struct gaps *gaps)
{
	/* stp x8, x9, [sp, #-208]!; stp x6, x7, [sp, #16]; before them a nop or a bti */
	static const uint8_t arm64[] = { 0xe8, 0x27, 0xb3, 0xa9, 0xe6, 0x1f, 0x01, 0xa9 };
	static const struct pattern pattern = PATTERN(arm64, 2);
	const uint8_t *at = machine->has_link ? find(code, size, &pattern) : NULL;

	if (at)
		gaps->resolve_start = address + (uint64_t)(at - code) - 4;
}

/*
 * The child's side of musl's __clone(). What is above its stack pointer is the top of a stack, and the
 * frame pointer, which it leaves as it is on arm64 before musl 1.2.6, is that of the thread's creator.
 */
static void look_for_clone(const struct machine *machine, const uint8_t *code, size_t size,
			   uint64_t address, struct gaps *gaps)
{
	/* xor %ebp, %ebp; pop %rdi; call *%r9; mov %eax, %edi; xor %eax, %eax; mov $60, %al; syscall */
	static const uint8_t x86[] = { 0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1, 0x89, 0xc7, 0x31, 0xc0,
				       0xb0, 0x3c, 0x0f, 0x05 };
	/* ldp x1, x0, [sp], #16; blr x1; mov x8, #93; svc #0 */
	static const uint8_t arm64[] = { 0xe1, 0x03, 0xc1, 0xa8, 0x20, 0x00, 0x3f, 0xd6,
					 0xa8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 };
	static const struct pattern patterns[] = { PATTERN(x86, 5), PATTERN(arm64, 1) };
	const struct pattern *pattern = &patterns[machine->has_link];
	const uint8_t *at = find(code, size, pattern);
	uint64_t start = address + (uint64_t)(at ? at - code : 0);

	if (at && start % (1U << machine->shift) == 0)
		add(gaps, (struct gap){ .start = start, .end = start + pattern->size, .is_entry = true,
					.is_clone = true });
}

/* pthread_exit(start(argument)): where the call through a pointer ends that comes before @at */
static bool is_thread_call_x86(const uint8_t *code, const uint8_t *at, uint64_t to_exit,
			       size_t *ret_bytes)
{
	int32_t distance;

	/* mov %rax, %rdi, or movslq %eax, %rdi of what thrd_create() starts; call */
	if (at - code < 3 || (!starts_with(at, "\x48\x89\xc7\xe8", 4) &&
			      !starts_with(at, "\x48\x63\xf8\xe8", 4)))
		return false;
	memcpy(&distance, at + 4, sizeof(distance));
	*ret_bytes = 8;
	/* call *REGISTER, call *(REGISTER), call *OFFSET(REGISTER) */
	return (uint64_t)(int64_t)distance + *ret_bytes == to_exit &&
	       ((at[-2] == 0xff && (at[-1] & 0x38) == 0x10) ||
		(at[-3] == 0xff && (at[-2] & 0xf8) == 0x50));
}

static bool is_thread_call_arm64(const uint8_t *code, const uint8_t *at, uint64_t to_exit,
				 size_t *ret_bytes)
{
	uint32_t call, words[2], branch;

	if (at - code < 4)
		return false;
	memcpy(&call, at - 4, sizeof(call));
	memcpy(words, at, sizeof(words));
	*ret_bytes = words[0] == ARM64_SXTW_X0 ? 8 : 4;
	branch = words[*ret_bytes / 4 - 1];
	/* blr; bl */
	return (call & 0xfffffc1f) == 0xd63f0000 && branch >> 26 == 0x25 &&
	       (branch & 0x3ffffff) == ((to_exit + 4 - *ret_bytes) >> 2 & 0x3ffffff);
}

/*
 * Where musl's threads begin. The function keeps no frame, so the frame pointer of what it calls is
 * that of who created the thread, and only the call that ends the thread tells what this is.
 */
static void look_for_thread(const struct machine *machine, const uint8_t *code, size_t size,
			    uint64_t address, struct gaps *gaps)
{
	const unsigned int step = 1U << machine->shift;

	for (const uint8_t *at = code; gaps->exit && size - (size_t)(at - code) >= 8; at += step) {
		uint64_t start = address + (uint64_t)(at - code);
		size_t bytes;

		/* the byte before is what a return address stands for */
		if (machine->has_link ?
		    is_thread_call_arm64(code, at, gaps->exit - start, &bytes) :
		    is_thread_call_x86(code, at, gaps->exit - start, &bytes))
			add(gaps, (struct gap){ .start = start - step, .end = start + bytes,
						.is_entry = true });
	}
}

/* Where @name, with its NUL, is in the strings of @shdr. */
static size_t find_name(const struct elf *elf, const Elf64_Shdr *shdr, const char *name,
			uint32_t ret_places[static NAME_PLACES])
{
	_cleanup_free_ char *strings = NULL;
	size_t length = strlen(name) + 1, count = 0;
	const char *at;

	if (shdr->sh_size > NAMES_SEARCHED_MAX)
		return 0;
	strings = malloc(shdr->sh_size + 1);
	if (!strings || elf_read(elf, shdr->sh_offset, strings, shdr->sh_size) < 0)
		return 0;
	at = strings;
	while (count < NAME_PLACES &&
	       (at = memmem(at, (size_t)(strings + shdr->sh_size - at), name, length))) {
		ret_places[count++] = (uint32_t)(at - strings);
		at += length;
	}
	return count;
}

/* The address of the function @name by the symbols of @shdr; 0: it has none. */
static uint64_t find_function(const struct elf *elf, const Elf64_Shdr *shdr, const char *name)
{
	enum { BATCH = 128 };
	uint32_t places[NAME_PLACES];
	uint64_t left, offset;
	Elf64_Sym batch[BATCH];
	size_t count;

	if (!shdr || shdr->sh_link >= elf->shdr_count ||
	    shdr->sh_size > SYMBOLS_SEARCHED_MAX * sizeof(*batch))
		return 0;
	count = find_name(elf, &elf->shdrs[shdr->sh_link], name, places);
	left = count ? shdr->sh_size / sizeof(*batch) : 0;
	for (offset = shdr->sh_offset; left; offset += sizeof(batch)) {
		size_t n = (size_t)min_of(left, (uint64_t)BATCH);

		if (elf_read(elf, offset, batch, n * sizeof(*batch)) < 0)
			return 0;
		for (size_t i = 0; i < n * count; i++)
			if (batch[i / count].st_name == places[i % count] &&
			    batch[i / count].st_shndx != SHN_UNDEF &&
			    ELF64_ST_TYPE(batch[i / count].st_info) == STT_FUNC)
				return batch[i / count].st_value;
		left -= n;
	}
	return 0;
}

/*
 * Where musl's entry ends, with a call (x86) or a jump (arm64) that nothing comes back from; behind it
 * is another function already. ld.so's goes on behind its call.
 */
static uint64_t entry_bytes(const struct machine *machine, const uint8_t code[static ENTRY_BYTES])
{
	uint32_t word;

	for (size_t i = 4; i <= ENTRY_BYTES - 8; i += 1U << machine->shift) {
		memcpy(&word, code + i, sizeof(word));
		/* and $-16, %rsp; call */
		if (!machine->has_link && starts_with(code + i - 4, "\x48\x83\xe4\xf0\xe8", 5))
			return i + 5;
		/* b, bl */
		if (machine->has_link && (word & 0x7c000000) == 0x14000000)
			return i + 4;
	}
	return ENTRY_BYTES;
}

bool gap_entry(const struct elf *elf, const struct machine *machine, uint64_t *ret_start, uint64_t *ret_end)
{
	static const char *const x86[] = {
		"\x48\x89\xe7\xe8",	/* mov %rsp, %rdi; call */
		"\x48\x31\xed\x48",	/* xor %rbp, %rbp; mov */
	};
	/* mov x29, #0; mov x30, #0 */
	static const uint8_t arm64[] = { 0x1d, 0, 0x80, 0xd2, 0x1e, 0, 0x80, 0xd2 };
	uint8_t code[ENTRY_BYTES];
	uint64_t bytes = 0;
	Elf64_Ehdr header;

	if (elf_read(elf, 0, &header, sizeof(header)) < 0)
		return false;
	for (size_t i = 0; i < elf->phdr_count; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];
		uint64_t offset = header.e_entry - phdr->p_vaddr;

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X) || offset >= phdr->p_filesz ||
		    phdr->p_filesz - offset < ENTRY_BYTES ||
		    elf_read(elf, phdr->p_offset + offset, code, sizeof(code)) < 0)
			continue;
		if (machine->has_link ? !memcmp(code, arm64, sizeof(arm64)) :
					starts_with(code, x86[1], 4))
			bytes = entry_bytes(machine, code);
		else if (!machine->has_link && starts_with(code, x86[0], 4))
			bytes = ENTRY_BYTES;
	}
	*ret_start = header.e_entry;
	*ret_end = header.e_entry + bytes;
	return bytes;
}

static void search_segment(const struct elf *elf, const struct machine *machine,
			   const Elf64_Phdr *phdr, struct gaps *gaps)
{
	enum { OVERLAP = 16 };
	_cleanup_free_ uint8_t *code = malloc(CHUNK + OVERLAP);

	for (uint64_t at = 0; code && at < phdr->p_filesz; at += CHUNK) {
		size_t size = (size_t)min_of(phdr->p_filesz - at, (uint64_t)CHUNK + OVERLAP);

		if (elf_read(elf, phdr->p_offset + at, code, size) < 0)
			return;
		look_for_trampoline(elf, machine, code, size, phdr->p_vaddr + at, gaps);
		look_for_context(machine, code, size, phdr->p_vaddr + at, gaps);
		look_for_resolver(machine, code, size, phdr->p_vaddr + at, gaps);
		look_for_clone(machine, code, size, phdr->p_vaddr + at, gaps);
		look_for_thread(machine, code, size, phdr->p_vaddr + at, gaps);
	}
}

void gaps_find(const struct elf *elf, const struct machine *machine, struct gaps *ret_gaps)
{
	static const char *const plts[] = { ".plt", ".plt.sec", ".plt.got", ".iplt" };
	struct gap entry = { .is_entry = true };
	uint64_t text = 0;

	ret_gaps->count = 0;
	ret_gaps->context_start = 0;
	ret_gaps->resolve_start = 0;
	ret_gaps->exit = 0;
	if (gap_entry(elf, machine, &entry.start, &entry.end))
		add(ret_gaps, entry);
	for (size_t i = 0; i < ARRAY_SIZE(plts); i++) {
		const Elf64_Shdr *shdr = elf_find_section(elf, SHT_PROGBITS, plts[i]);

		if (shdr)
			look_at_plt(elf, machine, shdr, ret_gaps);
	}
	for (size_t i = 0; i < elf->phdr_count; i++)
		if (elf->phdrs[i].p_type == PT_LOAD && elf->phdrs[i].p_flags & PF_X &&
		    elf->phdrs[i].p_filesz <= TEXT_SEARCHED_MAX)
			text += elf->phdrs[i].p_filesz;
	if (text > TEXT_SEARCHED_MAX)
		return;
	ret_gaps->exit = find_function(elf, elf_find_section(elf, SHT_SYMTAB, NULL),
				       "pthread_exit");
	if (!ret_gaps->exit)
		ret_gaps->exit = find_function(elf, elf_find_section(elf, SHT_DYNSYM, NULL),
					       "pthread_exit");
	for (size_t i = 0; i < elf->phdr_count; i++)
		if (elf->phdrs[i].p_type == PT_LOAD && elf->phdrs[i].p_flags & PF_X &&
		    elf->phdrs[i].p_filesz <= TEXT_SEARCHED_MAX)
			search_segment(elf, machine, &elf->phdrs[i], ret_gaps);
}

static struct unwind_rule signal_rule(const struct machine *machine)
{
	bool is_arm64 = machine->has_link;

	return (struct unwind_rule){
		.cfa = UNWIND_LOAD | UNWIND_BASE_SP,
		.ra = UNWIND_LOAD | UNWIND_BASE_SP,
		.fp = UNWIND_LOAD | UNWIND_BASE_SP,
		.extra = UNWIND_EXTRA_SIGNAL,
		.cfa_offset = is_arm64 ? ARM64_CONTEXT_SP : X86_CONTEXT_SP,
		.ra_offset = is_arm64 ? ARM64_CONTEXT_PC : X86_CONTEXT_PC,
		.fp_offset = is_arm64 ? ARM64_CONTEXT_FP : X86_CONTEXT_FP,
	};
}

/*
 * @words are on the stack, the return address above them (or in the link register); with none this
 * is how every function begins.
 */
static struct unwind_rule entry_rule(const struct machine *machine, unsigned int words)
{
	if (machine->has_link && words == 0)
		return (struct unwind_rule){
			.cfa = UNWIND_VALUE | UNWIND_BASE_SP,
			.ra = UNWIND_VALUE | machine->ra,
		};
	return (struct unwind_rule){
		.cfa = UNWIND_VALUE | UNWIND_BASE_SP,
		.cfa_offset = (int32_t)(UNWIND_WORD * (words + !machine->has_link)),
		.ra = UNWIND_LOAD | UNWIND_BASE_CFA,
		.ra_offset = -UNWIND_WORD,
	};
}

static int fill_plt(const struct gap *gap, struct builder *builder)
{
	/* an x86 entry has pushed its number before it jumps to the header */
	unsigned int before = builder->machine->has_link ? 0 : 1;
	struct unwind_rule rule;
	int r = 0;

	if (gap->pushed) {
		rule = entry_rule(builder->machine, before);
		r = builder_row(builder, gap->start, &rule);
		if (r == 0) {
			rule = entry_rule(builder->machine, before + (before ? 1 : 2));
			r = builder_row(builder, gap->pushed, &rule);
		}
		if (r < 0)
			return r;
	}
	rule = entry_rule(builder->machine, 0);
	if (gap->late) {
		rule.cfa = UNWIND_PLT | UNWIND_BASE_SP;
		rule.extra = gap->late;
	}
	return builder_row(builder, gap->pushed ? gap->header_end : gap->start, &rule);
}

void gaps_correct(const struct gaps *gaps, uint64_t fde_start, struct unwind_rule *rule)
{
	const uint8_t cfa_load = UNWIND_LOAD | UNWIND_BASE_CFA;

	if (!gaps->resolve_start || fde_start != gaps->resolve_start ||
	    rule->cfa != (UNWIND_VALUE | UNWIND_BASE_SP))
		return;
	/* its first instruction has not told that the return address is on the stack */
	if (rule->ra == cfa_load ? rule->ra_offset != UNWIND_WORD : rule->cfa_offset != 0)
		return;
	rule->cfa_offset += GAP_PUSHED_ARM64;
	rule->ra = cfa_load;
	rule->ra_offset = -UNWIND_WORD;
	if (rule->fp == cfa_load)
		rule->fp_offset -= GAP_PUSHED_ARM64;
}

const struct gap *gaps_clone(const struct gaps *gaps, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < gaps->count; i++)
		if (gaps->all[i].is_clone && gaps->all[i].start >= start && gaps->all[i].end <= end)
			return &gaps->all[i];
	return NULL;
}

bool gaps_is_padding(const struct gaps *gaps, uint64_t start, uint64_t end)
{
	if (end - start >= GAP_ALIGNMENT || end % GAP_ALIGNMENT)
		return false;
	for (size_t i = 0; i < gaps->count; i++)
		if (gaps->all[i].start < end && gaps->all[i].end > start)
			return false;
	return true;
}

int gaps_fill(const struct gaps *gaps, struct builder *builder, uint64_t start, uint64_t end)
{
	struct unwind_rule uncovered = { .cfa = UNWIND_UNCOVERED };
	int r = builder_row(builder, start, &uncovered);

	for (size_t i = 0; r == 0 && i < gaps->count; i++) {
		const struct gap *gap = &gaps->all[i];

		if (gap->is_entry && gap->start >= start && gap->start < end) {
			struct unwind_rule rule = { .cfa = UNWIND_END };

			/* what has call frame information begins further on, or cuts it off */
			r = builder_row(builder, gap->start, &rule);
			start = min_of(gap->end, end);
			if (r == 0 && start < end)
				r = builder_row(builder, start, &uncovered);
			continue;
		}
		/* call frame information may cover the instructions, and not what is behind them */
		if (gap->is_signal && gap->end > start && gap->start < end) {
			struct unwind_rule rule = signal_rule(builder->machine);

			r = builder_row(builder, max_of(gap->start, start), &rule);
			start = min_of(gap->end, end);
			if (r == 0)
				r = builder_row(builder, start, &uncovered);
			continue;
		}
		if (gap->start < start || gap->end > end || gap->header_end > gap->end)
			continue;
		r = fill_plt(gap, builder);
		if (r == 0)
			r = builder_row(builder, gap->end, &uncovered);
		/* rows only ascend */
		start = gap->end;
	}
	return r;
}
