/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for code without call frame information that is known all the same: procedure linkage
 * tables (arm64, and whatever lld linked), the trampoline that returns from a signal handler
 * (the arm64 vDSO, musl), and where musl's threads begin.
 */
#ifndef STACKTAP_UNWIND_GAP_H
#define STACKTAP_UNWIND_GAP_H

#include "symbol/elf.h"
#include "unwind/builder.h"

enum {
	GAP_MAX = 24,
	GAP_ALIGNMENT = 16,	/* of functions */
	GAP_PUSHED_ARM64 = 16,	/* by the header of a PLT */
};

struct gap {
	uint64_t start, end;
	bool is_signal;
	bool is_entry;		/* where a program or a thread begins: nothing called it */
	bool is_clone;		/* that of a thread, whatever call frame information says */
	uint64_t pushed;	/* PLT: its header has pushed from here on, 0: it has no header */
	uint64_t header_end;
	uint8_t late;		/* x86: an entry has pushed from this byte on, 0: it never does */
};

struct gaps {
	struct gap all[GAP_MAX];	/* sorted */
	size_t count;
	uint64_t context_start;		/* what makecontext() made returns to here, 0: unknown */
	uint64_t resolve_start;		/* arm64's lazy binding, 0: unknown */
	uint64_t exit;			/* pthread_exit(), 0: not in this object */
};

/* The first instructions of what says nothing about them: ld.so on x86, musl's programs. False: it is none of these. */
bool gap_entry(const struct elf *elf, const struct machine *machine, uint64_t *ret_start, uint64_t *ret_end);

/* What is known of @elf, whether or not something covers it. */
void gaps_find(const struct elf *elf, const struct machine *machine, struct gaps *ret_gaps);

/*
 * Are [@start, @end), which no frame entry covers, only there to align the function behind? Such
 * bytes get that function's first rule. Nothing runs there, but a return address that is a
 * function's start (makecontext's) stands for the byte before; and it saves rows, for the ends of
 * functions and their starts mostly have the same rule.
 */
bool gaps_is_padding(const struct gaps *gaps, uint64_t start, uint64_t end);

/*
 * What the frame entry that begins at @fde_start says, made right: the arm64 PLT has pushed 16
 * bytes before it jumps to glibc's lazy binding, which forgets them and so has the return address
 * above its CFA.
 */
void gaps_correct(const struct gaps *gaps, uint64_t fde_start, struct unwind_rule *rule);

/*
 * Where a thread begins in [@start, @end), which a frame entry covers, or NULL. musl that was built for
 * debuggers has an entry for __clone(), which knows of the creator's stack alone.
 */
const struct gap *gaps_clone(const struct gaps *gaps, uint64_t start, uint64_t end);

/* Rows for [@start, @end), which no frame entry covers. */
int gaps_fill(const struct gaps *gaps, struct builder *builder, uint64_t start, uint64_t end);

#endif /* STACKTAP_UNWIND_GAP_H */
