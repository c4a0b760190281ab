// SPDX-License-Identifier: Apache-2.0
#include "compare.h"

#include <gelf.h>

#include "evaluate.h"
#include "unwind/gap.h"

enum { SEEDS = 2 };

struct compare {
	const struct unwind_table *table;
	const struct machine *machine;
	Dwarf_CFI *eh, *debug;
	void (*report)(void *ctx, uint64_t address, const char *what);
	void *ctx;
	struct compare_result *result;
};

enum verdict {
	VERDICT_EXACT,
	VERDICT_REFUSED,
	VERDICT_NO_RULE,
	VERDICT_WRONG,
};

static bool is_saved_wrong(const struct compare *compare, const struct unwind_rule *rule,
			   Dwarf_Frame *frame, const struct evaluate *evaluate)
{
	int32_t saved = compare->table->saved[rule - compare->table->rules];
	struct evaluate_result theirs;

	theirs = evaluate_register(evaluate, frame, compare->machine->saved);
	if (saved == UNWIND_SAVED_LOST)
		return false;
	/* libdw takes rbx, of which nothing is said, for a register that calls destroy */
	if (theirs.kind != EVALUATE_VALUE)
		return saved != UNWIND_SAVED_SAME;
	if (saved == UNWIND_SAVED_SAME)
		return theirs.value != evaluate_initial(evaluate, compare->machine->saved);
	return theirs.value != evaluate_how(evaluate, UNWIND_LOAD | UNWIND_BASE_CFA, saved, 0);
}

/* What gaps_correct() did: the return address is where they say, or not said to be there yet. */
static bool is_corrected(const struct compare *compare, const struct unwind_rule *rule,
			 const struct evaluate *evaluate, Dwarf_Frame *frame, uint64_t their_cfa)
{
	struct evaluate theirs = *evaluate;
	struct evaluate_result ra;

	theirs.cfa = their_cfa;
	ra = evaluate_register(&theirs, frame, compare->machine->ra);
	return compare->machine->has_link && evaluate->cfa == their_cfa + GAP_PUSHED_ARM64 &&
	       rule->ra == (UNWIND_LOAD | UNWIND_BASE_CFA) && rule->ra_offset == -UNWIND_WORD &&
	       ra.kind == EVALUATE_VALUE &&
	       (ra.value == evaluate_how(evaluate, rule->ra, rule->ra_offset, 0) ||
		ra.value == evaluate_initial(evaluate, compare->machine->ra));
}

/* Both evaluated with the same numbers; NULL: they agree. */
static const char *differ(const struct compare *compare, const struct unwind_rule *rule,
			  Dwarf_Frame *frame, uint64_t address, uint64_t seed)
{
	struct evaluate evaluate = {
		.machine = compare->machine,
		.seed = seed,
		.address = address,
	};
	struct evaluate_result theirs;
	Dwarf_Op *ops;
	size_t count;

	if (dwarf_frame_cfa(frame, &ops, &count) != 0)
		return "CFA that is gone";
	theirs = evaluate_cfa(&evaluate, ops, count);
	evaluate.cfa = evaluate_how(&evaluate, rule->cfa, rule->cfa_offset, rule->extra);
	if (theirs.kind != EVALUATE_VALUE)
		return "CFA";
	if (theirs.value != evaluate.cfa)
		return is_corrected(compare, rule, &evaluate, frame, theirs.value) ? NULL : "CFA";
	theirs = evaluate_register(&evaluate, frame, compare->machine->ra);
	if (theirs.kind != EVALUATE_VALUE ||
	    theirs.value != evaluate_how(&evaluate, rule->ra, rule->ra_offset, 0))
		return "return address";
	theirs = evaluate_register(&evaluate, frame, compare->machine->sp);
	if (theirs.kind != EVALUATE_VALUE || theirs.value != evaluate.cfa)
		return "stack pointer";
	if (compare->table->saved && is_saved_wrong(compare, rule, frame, &evaluate))
		return "saved register";
	theirs = evaluate_register(&evaluate, frame, compare->machine->fp);
	if (rule->fp == UNWIND_FP_UNDEFINED)
		return theirs.kind == EVALUATE_UNDEFINED ? NULL : "frame pointer is undefined";
	if (theirs.kind != EVALUATE_VALUE)
		return "frame pointer";
	if (rule->fp == UNWIND_FP_SAME)
		return theirs.value == evaluate_initial(&evaluate, compare->machine->fp) ?
			       NULL : "frame pointer is the same";
	return theirs.value == evaluate_how(&evaluate, rule->fp, rule->fp_offset, 0) ?
		       NULL : "frame pointer";
}

static enum verdict look_at(const struct compare *compare, Dwarf_Frame *frame, uint64_t address,
			    bool is_signal)
{
	const struct unwind_rule *rule = unwind_table_find(compare->table, address);
	struct evaluate evaluate = { .machine = compare->machine };
	const char *what = NULL;
	Dwarf_Op *ops;
	size_t count;

	if (dwarf_frame_cfa(frame, &ops, &count) != 0)
		return VERDICT_REFUSED;
	if (!rule || rule->cfa == UNWIND_UNCOVERED)
		what = "no rule though there is a frame entry";
	else if (rule->cfa == UNWIND_NO_RULE)
		return VERDICT_NO_RULE;
	else if (rule->cfa == UNWIND_END)
		what = evaluate_register(&evaluate, frame, compare->machine->ra).kind ==
				       EVALUATE_UNDEFINED ? NULL : "not the end of the stack";
	else if (!!(rule->extra & UNWIND_EXTRA_SIGNAL) != is_signal)
		what = "signal frame";
	else
		for (uint64_t seed = 1; seed <= SEEDS && !what; seed++)
			what = differ(compare, rule, frame, address, seed);
	if (what)
		compare->report(compare->ctx, address, what);
	return what ? VERDICT_WRONG : VERDICT_EXACT;
}

static int find_frame(const struct compare *compare, uint64_t address, Dwarf_Frame **ret_frame)
{
	if (compare->eh && dwarf_cfi_addrframe(compare->eh, address, ret_frame) == 0)
		return 0;
	if (compare->debug && dwarf_cfi_addrframe(compare->debug, address, ret_frame) == 0)
		return 0;
	return -ENODATA;
}

/*
 * The next address to ask libdw about, when it has nothing for @address: where our table changes,
 * if that has nothing either. At most @end.
 */
static uint64_t next_row(const struct compare *compare, uint64_t address, uint64_t end)
{
	const struct unwind_rule *rule = unwind_table_find(compare->table, address);

	do
		address += 1U << compare->machine->shift;
	while (address < end && (!rule || rule->cfa == UNWIND_UNCOVERED) &&
	       unwind_table_find(compare->table, address) == rule);
	return min_of(address, end);
}

static bool is_uncovered(const struct compare *compare, uint64_t address)
{
	const struct unwind_rule *rule = unwind_table_find(compare->table, address);

	return !rule || rule->cfa == UNWIND_UNCOVERED;
}

static void compare_row(const struct compare *compare, uint64_t start, uint64_t end,
			Dwarf_Frame *frame, bool is_signal)
{
	struct compare_result *result = compare->result;
	uint64_t addresses[] = { start, start + (end - start) / 2, end - 1 };
	enum verdict worst = VERDICT_EXACT;

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
		worst = max_of(worst, look_at(compare, frame, addresses[i], is_signal));
	result->rows++;
	result->exact += worst == VERDICT_EXACT;
	result->refused += worst == VERDICT_REFUSED;
	result->no_rule += worst == VERDICT_NO_RULE;
	result->wrong += worst == VERDICT_WRONG;
}

static void compare_range(const struct compare *compare, uint64_t start, uint64_t end)
{
	while (start < end) {
		uint64_t from = start, next;
		Dwarf_Frame *frame;
		Dwarf_Addr low, high;
		bool is_signal;

		if (find_frame(compare, start, &frame) < 0) {
			next = next_row(compare, start, end);
			compare->result->gap_bytes += next - start;
			if (!is_uncovered(compare, from))
				compare->result->outside += next - start;
			start = next;
			continue;
		}
		if (dwarf_frame_info(frame, &low, &high, &is_signal) < 0 || high <= start)
			high = start + 1;
		high = min_of(high, end);
		compare_row(compare, start, high, frame, is_signal);
		free(frame);
		start = high;
	}
}

static int compare_elf(struct compare *compare, Elf *elf)
{
	size_t count;

	if (elf_getphdrnum(elf, &count) != 0)
		return -ENOEXEC;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf, (int)i, &phdr) || phdr.p_type != PT_LOAD ||
		    !(phdr.p_flags & PF_X) || phdr.p_filesz > UINT64_MAX - phdr.p_vaddr)
			continue;
		compare_range(compare, phdr.p_vaddr, phdr.p_vaddr + phdr.p_filesz);
	}
	return 0;
}

int compare_file(int fd, const struct unwind_table *table,
		 void (*report)(void *ctx, uint64_t address, const char *what), void *ctx,
		 struct compare_result *ret_result)
{
	struct compare compare = {
		.table = table,
		.machine = machine_find(table->machine),
		.report = report,
		.ctx = ctx,
		.result = ret_result,
	};
	Dwarf *dwarf;
	Elf *elf;
	int r;

	*ret_result = (struct compare_result){ 0 };
	if (!compare.machine)
		return -ENOTSUP;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf)
		return -ENOEXEC;
	dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	compare.eh = dwarf_getcfi_elf(elf);
	compare.debug = dwarf ? dwarf_getcfi(dwarf) : NULL;
	r = compare_elf(&compare, elf);
	if (compare.eh)
		dwarf_cfi_end(compare.eh);
	if (dwarf)
		dwarf_end(dwarf);
	elf_end(elf);
	return r;
}
