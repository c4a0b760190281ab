// SPDX-License-Identifier: Apache-2.0
#include "unwind/go_stack.h"

#include <string.h>

#include "unwind/sp_write.h"

enum {
	FLAG_TOP = 1,		/* nothing called it: goexit, mstart, since Go 1.20 signal handlers */
	FLAG_SP_WRITE = 2,	/* it goes to another stack */
	NAME_BYTES = 32,
	PROLOGUE_BYTES = 64,
	CLOCK_EVERY = 4096,	/* functions between two looks at the deadline: what is in memory has none */
};

/*
 * Who has no caller on its stack: where threads, goroutines and signal handlers begin; and what leaves the goroutine's
 * stack for that of its thread, or until Go 1.2 for a new part of it.
 */
static const char *const ends[] = {
	"runtime.goexit", "runtime.mstart", "runtime.rt0_go", "_rt0_go", "_rt0_amd64_linux", "_rt0_arm64_linux",
	"runtime.sigtramp", "runtime.cgoSigtramp", "runtime.sigreturn", "runtime.sigreturn__sigaction", /* since Go 1.21 */
	"runtime.systemstack", "runtime.mcall", "runtime.morestack", "runtime.lessstack", "runtime.newstackcall",
};

static bool get_name(struct go_stack *stack, const struct pclntab_function *function, char ret_name[static NAME_BYTES])
{
	struct pclntab *pclntab = stack->pclntab;

	if (pclntab_get(pclntab, &stack->names, pclntab->names + function->name, ret_name, NAME_BYTES) < 0)
		return false;
	ret_name[NAME_BYTES - 1] = '\0';
	return true;
}

static bool is_end(struct go_stack *stack, const struct pclntab_function *function)
{
	char name[NAME_BYTES];

	if (!get_name(stack, function, name))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (!strcmp(name, ends[i]))
			return true;
	return false;
}

bool go_stack_init(struct go_stack *stack, struct pclntab *pclntab)
{
	struct pclntab_function function;
	bool has_names = false;
	char name[NAME_BYTES];
	uint64_t entry;
	uint32_t at;

	*stack = (struct go_stack){
		.pclntab = pclntab, .machine = machine_find(pclntab->elf->machine), .has_flags = pclntab->has_offsets,
	};
	/* Go 1.17 has the table of 1.16, where the flags are 0 */
	for (uint32_t i = 0; !stack->has_flags && i < pclntab->count; i++) {
		if (i % CLOCK_EVERY == 0 && elf_is_late(pclntab->elf))
			return false;
		if (pclntab_entry(pclntab, i, &entry, &at) < 0 || pclntab_describe(pclntab, at, &function) < 0)
			continue;
		stack->has_flags = function.flags;
		has_names = has_names || (get_name(stack, &function, name) && !strcmp(name, ends[0]));
	}
	return stack->has_flags || has_names;
}

bool go_stack_reads_code(const struct go_stack *stack)
{
	return !stack->has_flags || stack->machine->has_link;
}

/* By the file where it begins; one that is not known is taken for assembler's, unless flags tell what it does. */
static bool is_assembler(struct go_stack *stack, const struct pclntab_function *function, uint64_t entry)
{
	struct pclntab *pclntab = stack->pclntab;
	struct pclntab_run run;
	uint32_t name;
	size_t length;

	pclntab_values(pclntab, function->files, entry, &run);
	if (!function->files || pclntab_next(pclntab, &run) != 1 || pclntab_file(pclntab, function, run.value, &name) < 0)
		return !stack->has_flags;
	if (stack->has_file && stack->file == name)
		return stack->is_assembler;
	stack->has_file = pclntab_text(pclntab, pclntab->files + name, stack->path, sizeof(stack->path)) == 0;
	if (!stack->has_file)
		return !stack->has_flags;
	length = strlen(stack->path);
	stack->file = name;
	stack->is_assembler = !length || (length >= 2 && !strcmp(stack->path + length - 2, ".s"));
	return stack->is_assembler;
}

/* What is at @address, up to where the function ends; behind that zeroes, which write nothing. */
static int get_code(struct go_stack *stack, uint64_t address, uint64_t end, uint8_t ret_bytes[static SP_WRITE_BYTES])
{
	const size_t wanted = (size_t)min_of(end - address, (uint64_t)SP_WRITE_BYTES);
	int r;

	if (address < stack->code_at || address - stack->code_at > stack->code_bytes ||
	    stack->code_bytes - (address - stack->code_at) < wanted) {
		stack->code_bytes = 0;
		stack->code_at = address;
		r = elf_read_at(stack->pclntab->elf, address, stack->code,
				(size_t)min_of(end - address, (uint64_t)GO_STACK_CODE));
		if (r < 0)
			return r;
		stack->code_bytes = (size_t)min_of(end - address, (uint64_t)GO_STACK_CODE);
	}
	memset(ret_bytes, 0, SP_WRITE_BYTES);
	memcpy(ret_bytes, stack->code + (address - stack->code_at), wanted);
	return 0;
}

/* Does a new distance begin at @address? @run: the distance right before it, or one further down */
static int is_noted(struct go_stack *stack, struct pclntab_run *run, uint64_t address)
{
	struct pclntab_run next;
	int r = 1;

	while (r > 0 && run->end < address)
		r = pclntab_next(stack->pclntab, run);
	if (r <= 0 || run->end != address)
		return r == -EBADMSG ? 0 : r < 0 ? r : 0;
	next = *run;
	r = pclntab_next(stack->pclntab, &next);
	return r == -EBADMSG ? 0 : r;
}

/* 1: some instruction takes the stack pointer elsewhere. */
static int leaves(struct go_stack *stack, const struct pclntab_function *function, uint64_t entry, uint64_t end)
{
	const uint64_t step = 1ULL << stack->machine->shift;
	uint8_t bytes[SP_WRITE_BYTES];
	struct pclntab_run run;
	uint32_t size;
	int r = 0;

	pclntab_values(stack->pclntab, function->distances, entry, &run);
	for (uint64_t at = entry; r == 0 && at < end; at += step) {
		if ((at - entry) % GO_STACK_CODE == 0 && elf_is_late(stack->pclntab->elf))
			return -ETIME;
		r = get_code(stack, at, end, bytes);
		if (r < 0 || !sp_write_at(stack->machine, bytes, &size))
			continue;
		r = size ? is_noted(stack, &run, at + size) : 0;
		r = r < 0 ? r : !r;
	}
	return r;
}

static uint32_t word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* Of arm64: the lowest of @bits bits is at @shift, and they count instructions. */
static uint64_t branch_to(uint64_t at, uint32_t word, unsigned int bits, unsigned int shift)
{
	const int32_t distance = (int32_t)(word << (32 - bits - shift)) >> (32 - bits);

	return at + (uint64_t)(4 * (int64_t)distance);
}

/* Where the jump at @address goes that compares the stack pointer with its limit: jbe, b.ls. 0: there is none */
static uint64_t jump_below(const struct machine *machine, const uint8_t bytes[static SP_WRITE_BYTES], uint64_t address)
{
	if (machine->has_link)
		return (word_at(bytes) & 0xff00001f) == 0x54000009 ? branch_to(address, word_at(bytes), 19, 5) : 0;
	if (bytes[0] == 0x0f && bytes[1] == 0x86)
		return address + 6 + (uint64_t)(int64_t)(int32_t)word_at(bytes + 2);
	return bytes[0] == 0x76 ? address + 2 + (uint64_t)(int64_t)(int8_t)bytes[1] : 0;
}

/* How many bytes at @address are the function's call for more stack, to begin anew. 0: it is not there */
static int call_for_stack(struct go_stack *stack, uint64_t address, uint64_t entry, uint64_t end)
{
	uint8_t bytes[2 * SP_WRITE_BYTES] = { 0 };
	int r = get_code(stack, address, end, bytes);

	if (r == 0 && end - address > SP_WRITE_BYTES)
		r = get_code(stack, address + SP_WRITE_BYTES, end, bytes + SP_WRITE_BYTES);
	if (r < 0)
		return r;
	/* mov x3, lr; bl; b */
	if (stack->machine->has_link)
		return word_at(bytes) == 0xaa1e03e3 && word_at(bytes + 4) >> 26 == 0x25 && word_at(bytes + 8) >> 26 == 5 &&
		       branch_to(address + 8, word_at(bytes + 8), 26, 0) == entry ? 12 : 0;
	/* call; jmp */
	if (bytes[0] != 0xe8)
		return 0;
	if (bytes[5] == 0xe9)
		return address + 10 + (uint64_t)(int64_t)(int32_t)word_at(bytes + 6) == entry ? 10 : 0;
	return bytes[5] == 0xeb && address + 7 + (uint64_t)(int64_t)(int8_t)bytes[6] == entry ? 7 : 0;
}

/*
 * What is at the end of a function that begins with no frame, and there jumps to it: the call for more stack, and the way
 * back. So there is no frame.
 */
static int find_again(struct go_stack *stack, const struct pclntab_function *function, uint64_t entry, uint64_t end,
		      struct go_stack_function *ret_function)
{
	const uint64_t step = 1ULL << stack->machine->shift;
	uint8_t bytes[SP_WRITE_BYTES];
	struct pclntab_run run;
	int r;

	pclntab_values(stack->pclntab, function->distances, entry, &run);
	r = pclntab_next(stack->pclntab, &run);
	if (r != 1 || run.value || run.end >= end)
		return r < 0 && r != -EBADMSG ? r : 0;
	for (uint64_t at = entry; at < run.end && at - entry < PROLOGUE_BYTES; at += step) {
		uint64_t target;

		r = get_code(stack, at, end, bytes);
		if (r < 0)
			return r;
		target = jump_below(stack->machine, bytes, at);
		if (target < run.end || target >= end)
			continue;
		r = call_for_stack(stack, target, entry, end);
		if (r < 0)
			return r;
		if (r > 0) {
			ret_function->again = target;
			ret_function->behind = target + (uint64_t)r;
			break;
		}
	}
	return 0;
}

/* Behind the first instruction that stores the link register; @end: none does. */
static int find_saved(struct go_stack *stack, uint64_t entry, uint64_t end, uint64_t *ret_saved)
{
	const uint64_t step = 1ULL << stack->machine->shift;
	uint8_t bytes[SP_WRITE_BYTES];
	int r;

	*ret_saved = end;
	for (uint64_t at = entry; at < end; at += step) {
		if ((at - entry) % GO_STACK_CODE == 0 && elf_is_late(stack->pclntab->elf))
			return -ETIME;
		r = get_code(stack, at, end, bytes);
		if (r < 0)
			return r;
		if (sp_write_saves_link(bytes)) {
			*ret_saved = at + step;
			break;
		}
	}
	return 0;
}

/* Is there ever a frame? */
static int has_frame(struct go_stack *stack, const struct pclntab_function *function, uint64_t entry, uint64_t end)
{
	struct pclntab_run run;

	pclntab_values(stack->pclntab, function->distances, entry, &run);
	for (uint32_t i = 1; run.end < end && pclntab_next(stack->pclntab, &run) == 1; i++) {
		if (run.value)
			return 1;
		/* a hostile table's runs may all be of none */
		if (i % GO_STACK_CODE == 0 && elf_is_late(stack->pclntab->elf))
			return -ETIME;
	}
	return 0;
}

/* What of a function that stays on its stack its distances do not tell. */
static int correct(struct go_stack *stack, const struct pclntab_function *function, bool is_by_hand, uint64_t entry,
		   uint64_t end, struct go_stack_function *ret_function)
{
	const bool has_link = stack->machine->has_link, is_old = !stack->pclntab->has_ids;
	int r = is_old ? find_again(stack, function, entry, end, ret_function) : 0;

	if (r < 0 || !has_link || !(is_old || is_by_hand))
		return r;
	r = has_frame(stack, function, entry, end);
	if (r <= 0)
		return r;
	r = find_saved(stack, entry, end, &ret_function->saved);
	if (r == 0 && is_by_hand && ret_function->saved == end)
		ret_function->kind = GO_STACK_LEAVES;
	return r;
}

int go_stack_get(struct go_stack *stack, const struct pclntab_function *function, uint64_t entry, uint64_t end,
		 struct go_stack_function *ret_function)
{
	const bool is_by_hand = go_stack_reads_code(stack) && is_assembler(stack, function, entry);
	int r = 0;

	*ret_function = (struct go_stack_function){ .kind = GO_STACK_STAYS, .again = UINT64_MAX, .behind = UINT64_MAX };
	if (function->flags & FLAG_TOP || is_end(stack, function))
		ret_function->kind = GO_STACK_ENDS;
	else if (function->flags & FLAG_SP_WRITE)
		ret_function->kind = GO_STACK_LEAVES;
	else if (is_by_hand)
		r = leaves(stack, function, entry, end);
	if (r == 1)
		ret_function->kind = GO_STACK_LEAVES;
	if (r == 0 && ret_function->kind == GO_STACK_STAYS)
		r = correct(stack, function, is_by_hand, entry, end, ret_function);
	return r < 0 ? r : 0;
}
