/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of Go's functions leave the stack that they are on, and where stacks end.
 *
 * Since Go 1.17 .gopclntab tells by flags. Before, the runtime knew some of them by name, and so does this; of the
 * others those that are in assembler are read: Go's assembler keeps account of each instruction that moves the stack pointer
 * by a known number, so where one writes it and no new distance begins behind it, it goes elsewhere. What is compiled from
 * Go, or until Go 1.4 from C, moves it by such numbers alone.
 *
 * What distances do not tell is read as well: Go 1.5 forgot that the call for more stack at a function's end is made before
 * there is a frame, Go 1.10 and 1.11 that there is one in what follows it in wrappers; and until Go 1.7 arm64's functions that call nothing do not store the link register, and large
 * frames are made before it is stored. Which of these versions wrote a table it does not say. In arm64's assembler a frame that
 * is made by hand has it anywhere (crosscall2, which C calls Go by): where it is not at the lower end, or two instructions
 * move the stack pointer and only the second has a distance, nothing is known, whatever the flags say.
 *
 * The file is hostile: reads are bounded, and time is in proportion to the code and the table.
 */
#ifndef STACKTAP_UNWIND_GO_STACK_H
#define STACKTAP_UNWIND_GO_STACK_H

#include "symbol/pclntab.h"
#include "unwind/machine.h"

enum { GO_STACK_CODE = 4096 };

enum go_stack_kind {
	GO_STACK_STAYS,
	GO_STACK_ENDS,		/* nothing on this stack called it */
	GO_STACK_LEAVES,	/* what is known of it holds for a part of its code at most */
};

struct go_stack {
	struct pclntab *pclntab;
	const struct machine *machine;
	bool has_flags;
	struct pclntab_window names;
	/* is the last file that was asked for assembler's? */
	uint32_t file;
	bool has_file, is_assembler;
	char path[PCLNTAB_WINDOW];
	/* code that was read last */
	uint64_t code_at;
	size_t code_bytes;
	uint8_t code[GO_STACK_CODE];
};

struct go_stack_function {
	enum go_stack_kind kind;
	uint64_t saved;		/* from this address on the link register is stored; 0: whenever there is a frame */
	/* from this address on there is no frame, whatever the distances are, and from that on nothing is known */
	uint64_t again, behind;
};

/* False: functions that have to be known by name have none here. */
bool go_stack_init(struct go_stack *stack, struct pclntab *pclntab);

/* Is code read, beside the table itself? */
bool go_stack_reads_code(const struct go_stack *stack);

/* What @function, which takes up [@entry, @end), does. -ETIME; -errno of reading */
int go_stack_get(struct go_stack *stack, const struct pclntab_function *function, uint64_t entry, uint64_t end,
		 struct go_stack_function *ret_function);

#endif /* STACKTAP_UNWIND_GO_STACK_H */
