// SPDX-License-Identifier: Apache-2.0
#include "frames.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	X86_64_PC = 16,
	ARM64_LINK = 30,
};

static bool get_thread(Dwfl *dwfl, pid_t tid, void *ctx, void **ret_thread)
{
	struct slice *slice = ctx;

	(void)dwfl;
	*ret_thread = slice;
	return (uint32_t)tid == slice->tid;
}

static pid_t next_thread(Dwfl *dwfl, void *ctx, void **thread)
{
	struct slice *slice = ctx;

	(void)dwfl;
	if (*thread)
		return 0;
	*thread = slice;
	return (pid_t)slice->tid;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret_word, void *ctx)
{
	const struct sample_sections *sections;
	struct slice *slice = ctx;
	uint64_t offset;

	(void)dwfl;
	sections = slice->sections;
	offset = address - sections->slice_address;
	if (sections->slice_bytes < sizeof(*ret_word) ||
	    offset > sections->slice_bytes - sizeof(*ret_word)) {
		slice->missed = max_of(slice->missed, address);
		return false;
	}
	memcpy(ret_word, (const uint8_t *)sections->slice + offset, sizeof(*ret_word));
	return true;
}

static uint64_t link_register(const struct stacktap_regs *regs)
{
	return regs->regs[ARM64_LINK] & ~regs->pac_mask;
}

static bool set_registers(Dwfl_Thread *thread, void *ctx)
{
	const struct slice *slice = ctx;
	const struct stacktap_regs *regs = slice->sections->regs;
	Dwarf_Word words[UINT8_MAX];
	uint32_t count = regs->count;

	if (count >= ARRAY_SIZE(words))
		return false;
	for (uint32_t i = 0; i < count; i++)
		words[i] = regs->regs[i];
	if (regs->arch == EM_X86_64) {
		words[X86_64_PC] = regs->pc;
		count = X86_64_PC + 1;
	}
	if (!dwfl_thread_state_registers(thread, 0, count, words))
		return false;
	/* before the return address: it is asked about the call, and not about what follows */
	if (regs->arch != EM_X86_64)
		dwfl_thread_state_register_pc(thread, slice->is_caller ?
						      link_register(regs) - 1 : regs->pc);
	return true;
}

bool frames_attach(Dwfl *dwfl, uint32_t pid, struct slice *slice)
{
	static const Dwfl_Thread_Callbacks callbacks = {
		.next_thread = next_thread,
		.get_thread = get_thread,
		.memory_read = memory_read,
		.set_initial_registers = set_registers,
	};

	return dwfl_attach_state(dwfl, NULL, (pid_t)pid, &callbacks, slice);
}

void frames_of_sample(const struct stacktap_sample *sample, const struct sample_sections *sections,
		      struct frames *ret_frames)
{
	ret_frames->count = sections->user_count;
	ret_frames->exact_count = sections->exact_count;
	ret_frames->end = sample->user_end;
	for (uint32_t i = 0; i < sections->user_count; i++)
		ret_frames->pcs[i] = sections->user_ips[i];
	for (uint32_t i = 0; i < sections->exact_count; i++)
		ret_frames->exact[i] = sections->exact[i];
}

static int on_frame(Dwfl_Frame *frame, void *ctx)
{
	struct frames *frames = ctx;
	bool is_activation;
	Dwarf_Addr pc;

	if (frames->count == ARRAY_SIZE(frames->pcs) ||
	    !dwfl_frame_pc(frame, &pc, &is_activation))
		return DWARF_CB_ABORT;
	if (is_activation && frames->count)
		frames->exact[frames->exact_count++] = (uint16_t)frames->count;
	frames->pcs[frames->count++] = pc;
	return DWARF_CB_OK;
}

/* libdwfl calls an interrupted frame an activation, and the trampoline below it as well. */
static void mark_interrupted(struct frames *frames)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < frames->exact_count; i++) {
		if (i + 1 == frames->exact_count || frames->exact[i + 1] != frames->exact[i] + 1)
			frames->exact[count++] = frames->exact[i];
	}
	frames->exact_count = count;
}

static Dwarf_Frame *find_frame(Dwfl *dwfl, uint64_t pc)
{
	Dwfl_Module *module = dwfl_addrmodule(dwfl, pc);
	Dwarf_Frame *frame;
	Dwarf_Addr bias;
	Dwarf_CFI *cfi;

	cfi = module ? dwfl_module_eh_cfi(module, &bias) : NULL;
	if (cfi && dwarf_cfi_addrframe(cfi, pc - bias, &frame) == 0)
		return frame;
	cfi = module ? dwfl_module_dwarf_cfi(module, &bias) : NULL;
	return cfi && dwarf_cfi_addrframe(cfi, pc - bias, &frame) == 0 ? frame : NULL;
}

/* glibc's lazy binding on arm64 forgets 16 bytes, and so has the return address above its CFA. */
static bool is_wrong(Dwarf_Frame *frame)
{
	Dwarf_Op memory[3], *ops;
	size_t count;

	return frame && dwarf_frame_register(frame, ARM64_LINK, memory, &ops, &count) == 0 &&
	       count == 2 && ops[1].atom == DW_OP_plus_uconst && (int64_t)ops[1].number > 0;
}

/* Is there call frame information that can be believed? */
static bool has_cfi(Dwfl *dwfl, uint64_t pc, bool is_arm64)
{
	_cleanup_free_ Dwarf_Frame *frame = find_frame(dwfl, pc);
	/* the first instruction there does not tell yet */
	_cleanup_free_ Dwarf_Frame *next = is_arm64 ? find_frame(dwfl, pc + 4) : NULL;

	return frame && !(is_arm64 && (is_wrong(frame) || is_wrong(next)));
}

static bool is_exact(const struct frames *frames, uint32_t i)
{
	for (uint32_t j = 0; j < frames->exact_count; j++)
		if (frames->exact[j] == i)
			return true;
	return i == 0;
}

static void unwind(Dwfl *dwfl, const struct slice *slice, struct frames *ret_frames)
{
	ret_frames->count = ret_frames->exact_count = 0;
	ret_frames->end = STACKTAP_END_COMPLETE;
	ret_frames->is_blind = false;
	if (dwfl_getthread_frames(dwfl, (pid_t)slice->tid, on_frame, ret_frames) != 0)
		ret_frames->end = STACKTAP_END_NO_RULE;
	/* for libdwfl a return address that it cannot read is the end of the stack */
	if (slice->missed > slice->sections->slice_address)
		ret_frames->end = STACKTAP_END_UNREADABLE;
	/* an undefined return address may come out as a last frame of 0 */
	while (ret_frames->count > 1 && !ret_frames->pcs[ret_frames->count - 1])
		ret_frames->count--;
	/* what it cannot read it guesses by the frame pointer; what is no code is no frame */
	if (ret_frames->end == STACKTAP_END_UNREADABLE && ret_frames->count > 1 &&
	    !dwfl_addrmodule(dwfl, ret_frames->pcs[ret_frames->count - 1]))
		ret_frames->count--;
	mark_interrupted(ret_frames);
}

/*
 * Behind code without call frame information libdwfl guesses, by the link register and the frame
 * pointer, and skips frames: that is no judgement.
 */
static void drop_guesses(Dwfl *dwfl, const struct slice *slice, struct frames *frames)
{
	bool is_arm64 = slice->sections->regs->arch == EM_AARCH64;

	for (uint32_t i = 0; i < frames->count; i++) {
		if (has_cfi(dwfl, frames->pcs[i] - !is_exact(frames, i), is_arm64))
			continue;
		frames->count = i + 1;
		frames->end = STACKTAP_END_NO_RULE;
		frames->is_blind = true;
		while (frames->exact_count && frames->exact[frames->exact_count - 1] > i)
			frames->exact_count--;
	}
}

/* On arm64 most code of that kind (PLT entries, the vDSO) has nothing on the stack. */
static void unwind_from_caller(Dwfl *dwfl, struct slice *slice, struct frames *frames)
{
	static struct frames above;

	slice->missed = 0;
	slice->is_caller = true;
	unwind(dwfl, slice, &above);
	slice->is_caller = false;
	drop_guesses(dwfl, slice, &above);
	/* otherwise it has, and nobody knows how much */
	if (above.end != STACKTAP_END_COMPLETE || above.exact_count ||
	    above.count == ARRAY_SIZE(above.pcs))
		return;
	frames->end = above.end;
	frames->is_blind = false;
	frames->count = above.count + 1;
	memcpy(frames->pcs + 1, above.pcs, above.count * sizeof(above.pcs[0]));
	frames->pcs[1] = link_register(slice->sections->regs);
}

void frames_by_dwfl(Dwfl *dwfl, struct slice *slice, struct frames *ret_frames)
{
	unwind(dwfl, slice, ret_frames);
	drop_guesses(dwfl, slice, ret_frames);
	if (ret_frames->is_blind && ret_frames->count == 1 &&
	    slice->sections->regs->arch == EM_AARCH64)
		unwind_from_caller(dwfl, slice, ret_frames);
}

enum verdict frames_compare(const struct frames *ours, const struct frames *theirs)
{
	const uint32_t common = min_of(ours->count, theirs->count);
	const bool is_same = !memcmp(ours->pcs, theirs->pcs, common * sizeof(ours->pcs[0]));
	const bool are_whole = ours->end == STACKTAP_END_COMPLETE &&
			       theirs->end == STACKTAP_END_COMPLETE;

	if (theirs->is_blind && is_same && ours->count >= theirs->count)
		return VERDICT_BLIND;
	if (is_same && ((ours->count <= theirs->count && ours->end == STACKTAP_END_TIME) ||
			(ours->count >= theirs->count && theirs->end == STACKTAP_END_UNREADABLE)))
		return VERDICT_CUT;
	if (ours->end == STACKTAP_END_COMPLETE &&
	    (ours->count < theirs->count ||
	     (are_whole && (ours->count != theirs->count ||
			    ours->pcs[ours->count - 1] != theirs->pcs[theirs->count - 1]))))
		return VERDICT_WRONG_ROOT;
	if (!is_same)
		return VERDICT_WRONG;
	if (theirs->end == STACKTAP_END_COMPLETE && theirs->count < ours->count)
		return VERDICT_WRONG;
	if (are_whole)
		return ours->exact_count == theirs->exact_count &&
		       memcmp(ours->exact, theirs->exact,
			      ours->exact_count * sizeof(ours->exact[0])) == 0 ?
		       VERDICT_EQUAL : VERDICT_WRONG;
	if (ours->count == theirs->count && ours->end != STACKTAP_END_COMPLETE &&
	    theirs->end != STACKTAP_END_COMPLETE)
		return VERDICT_EQUAL;
	return ours->count < theirs->count || theirs->end == STACKTAP_END_COMPLETE ?
	       VERDICT_WE_ENDED : VERDICT_THEY_ENDED;
}

void frames_print(const char *who, const struct frames *frames)
{
	fprintf(stderr, "  %s, %u frames, end %d:", who, frames->count, frames->end);
	for (uint32_t i = 0; i < frames->count && i < 40; i++)
		fprintf(stderr, " %" PRIx64, frames->pcs[i]);
	fprintf(stderr, ", exact:");
	for (uint32_t i = 0; i < frames->exact_count; i++)
		fprintf(stderr, " %u", frames->exact[i]);
	fprintf(stderr, "\n");
}
