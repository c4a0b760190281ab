// SPDX-License-Identifier: Apache-2.0
#include "unwind/sp_write.h"

#include <string.h>

enum {
	LEAVE = 0xc9, RET = 0xc3, RET_WITH_BYTES = 0xc2, REP = 0xf3,
	REX_W = 0x48, REX_W_MASK = 0xf8,
	REX_B = 1, REX_R = 4,
	SP = 4, SP_ARM64 = 31,
};

/* The two operands of an instruction of x86, as they are where the stack pointer is one. */
struct modrm {
	uint8_t digit;
	bool is_register, is_memory_or_register;	/* the one by its number, the other as itself, not as an address */
};

static struct modrm modrm_of(uint8_t rex, uint8_t byte)
{
	return (struct modrm){
		.digit = byte >> 3 & 7,
		.is_register = (byte >> 3 & 7) == SP && !(rex & REX_R),
		.is_memory_or_register = byte >> 6 == 3 && (byte & 7) == SP && !(rex & REX_B),
	};
}

/* What leave comes in front of. Without that its byte is mostly the operands of others, as those of `xor %ecx, %ecx'. */
static bool is_return(const uint8_t bytes[static 2])
{
	return bytes[0] == RET || bytes[0] == RET_WITH_BYTES || (bytes[0] == REP && bytes[1] == RET);
}

static bool is_write_x86(const uint8_t bytes[static SP_WRITE_BYTES], uint32_t *ret_size)
{
	const uint8_t rex = bytes[0], opcode = bytes[1];
	const struct modrm modrm = modrm_of(rex, bytes[2]);

	if (rex == LEAVE)
		return is_return(bytes + 1);
	if ((rex & REX_W_MASK) != REX_W)
		return false;
	switch (opcode) {
	case 0x83:	/* add, or, adc, sbb, and, sub, xor, cmp */
	case 0x81:
		if (!modrm.is_memory_or_register || modrm.digit == 7)
			return false;
		if (modrm.digit == 0 || modrm.digit == 5)
			*ret_size = opcode == 0x83 ? 4 : 7;
		return true;
	case 0x89:	/* mov */
	case 0xc7:
	case 0xf7:	/* not, neg; what else there is has other operands */
	case 0xff:	/* inc, dec; or a call to where the stack is, which no program does */
		return modrm.is_memory_or_register;
	case 0x63:	/* movsxd */
	case 0x8b:	/* mov */
	case 0x8d:	/* lea */
		return modrm.is_register;
	case 0x87:	/* xchg */
		return modrm.is_register || modrm.is_memory_or_register;
	case 0x94:	/* xchg with rax */
	case 0xbc:	/* mov of 64 bits */
		return !(rex & REX_B);
	case 0x0f:	/* cmov */
		return (bytes[2] & 0xf0) == 0x40 && modrm_of(rex, bytes[3]).is_register;
	default:	/* arithmetic of two operands but for cmp, either way round */
		if (opcode >= 0x38 || (opcode & 7) > 3)
			return false;
		return (opcode & 3) == 1 ? modrm.is_memory_or_register : (opcode & 3) == 3 && modrm.is_register;
	}
}

static uint32_t word_of(const uint8_t bytes[static SP_WRITE_BYTES])
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

static bool is_write_arm64(uint32_t word)
{
	const bool is_target = (word & 31) == SP_ARM64, is_base = (word >> 5 & 31) == SP_ARM64;

	return (is_target && ((word & 0x3f800000) == 0x11000000 ||		/* add, sub of a number; mov */
			      (word & 0x3fe00000) == 0x0b200000 ||		/* of a register */
			      ((word & 0x1f800000) == 0x12000000 && (word >> 29 & 3) != 3))) ||	/* and, orr, eor */
	       (is_base && ((word & 0x3b200400) == 0x38000400 ||		/* load, store with a new base */
			    (word & 0x3a800000) == 0x28800000 ||		/* of pairs */
			    (word & 0xbe800000) == 0x0c800000));		/* of vectors */
}

bool sp_write_at(const struct machine *machine, const uint8_t bytes[static SP_WRITE_BYTES], uint32_t *ret_size)
{
	*ret_size = 0;
	if (!machine->has_link)
		return is_write_x86(bytes, ret_size);
	*ret_size = sizeof(uint32_t);
	return is_write_arm64(word_of(bytes));
}

bool sp_write_saves_link(const uint8_t bytes[static SP_WRITE_BYTES])
{
	const uint32_t word = word_of(bytes);

	return (word & 0xffe00fff) == 0xf8000ffe ||	/* str x30, [sp, #-n]! */
	       (word & 0xfffffc1f) == 0xf900001e ||	/* str x30, [xn] */
	       (word & 0xfffffc1f) == 0xa93ff81d;	/* stp x29, x30, [xn, #-8] */
}
