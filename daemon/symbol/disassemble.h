/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function's instructions as text: x86 of 32 and 64 bits, and arm64. By capstone, which is only to be let at
 * foreign code in the parser. `stacktap' alone is linked with it, the daemon is not: see helper/parse.c.
 */
#ifndef STACKTAP_SYMBOL_DISASSEMBLE_H
#define STACKTAP_SYMBOL_DISASSEMBLE_H

#include "symbol/elf.h"

enum {
	DISASSEMBLE_BYTES_MAX = 512 << 10,	/* of code in one answer */
	DISASSEMBLE_TEXT_MAX = 256,		/* of one instruction, with the NUL */
	INSTRUCTION_MAX = 16,			/* bytes */
};

struct instruction {
	uint64_t address;
	uint64_t target;	/* of a jump or call to a fixed address; 0: it is none */
	uint32_t text;		/* in the strings: "mov     %rsp,%rbp" */
	uint8_t size;
	uint8_t bytes[INSTRUCTION_MAX];
};

struct disassembly {
	struct instruction *instructions;	/* without a gap; what is none is ".byte" */
	uint32_t count;
	char *strings;
	uint32_t string_bytes;
};

/*
 * The code from @start on, @size bytes as far as the file has them. -ENODATA: the file has none there;
 * -EOPNOTSUPP: of another architecture; -ETIME.
 */
int disassemble(const struct elf *elf, uint64_t start, uint32_t size, bool is_intel,
		struct disassembly *ret_disassembly);

static inline void disassembly_free(struct disassembly *disassembly)
{
	free(disassembly->instructions);
	free(disassembly->strings);
	*disassembly = (struct disassembly){ 0 };
}

#endif /* STACKTAP_SYMBOL_DISASSEMBLE_H */
