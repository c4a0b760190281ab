// SPDX-License-Identifier: Apache-2.0
#include "symbol/disassemble.h"

#include <capstone/capstone.h>
#include <string.h>

#include "base/clock.h"

enum { PER_LOOK = 4096 };	/* instructions, at the clock */

struct writer {
	struct disassembly *disassembly;
	uint32_t room, string_room;
};

static int open_engine(const struct elf *elf, bool is_intel, csh *ret_engine)
{
	const bool is_x86 = elf->machine == EM_X86_64 || elf->machine == EM_386;

	if (!is_x86 && elf->machine != EM_AARCH64)
		return -EOPNOTSUPP;
	if (cs_open(is_x86 ? CS_ARCH_X86 : CS_ARCH_ARM64,
		    !is_x86 ? CS_MODE_ARM : elf->machine == EM_386 ? CS_MODE_32 : CS_MODE_64,
		    ret_engine) != CS_ERR_OK)
		return -ENOMEM;
	cs_option(*ret_engine, CS_OPT_DETAIL, CS_OPT_ON);
	cs_option(*ret_engine, CS_OPT_SKIPDATA, CS_OPT_ON);
	if (is_x86)
		cs_option(*ret_engine, CS_OPT_SYNTAX,
			  is_intel ? CS_OPT_SYNTAX_INTEL : CS_OPT_SYNTAX_ATT);
	return 0;
}

/* What the file has of [@start, @start + @size). */
static int read_code(const struct elf *elf, uint64_t start, uint32_t *size, uint8_t **ret_bytes)
{
	for (size_t i = 0; i < elf->phdr_count; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];
		const uint64_t at = start - phdr->p_vaddr;
		int r;

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X) || start < phdr->p_vaddr ||
		    at >= phdr->p_filesz)
			continue;
		*size = (uint32_t)min_of(phdr->p_filesz - at, (uint64_t)*size);
		*ret_bytes = malloc((size_t)*size + 1);
		if (!*ret_bytes)
			return -ENOMEM;
		r = elf_read(elf, phdr->p_offset + at, *ret_bytes, *size);
		if (r < 0) {
			free(*ret_bytes);
			*ret_bytes = NULL;
		}
		return r;
	}
	return -ENODATA;
}

static bool is_in_group(const cs_detail *detail, uint8_t group)
{
	return memchr(detail->groups, group, detail->groups_count);
}

static uint64_t target_of(const struct elf *elf, const cs_insn *insn)
{
	const cs_detail *detail = insn->detail;

	/* data has no details */
	if (!insn->id || !detail ||
	    (!is_in_group(detail, CS_GRP_JUMP) && !is_in_group(detail, CS_GRP_CALL) &&
	     !is_in_group(detail, CS_GRP_BRANCH_RELATIVE)))
		return 0;
	if (elf->machine != EM_AARCH64) {
		if (detail->x86.op_count == 1 && detail->x86.operands[0].type == X86_OP_IMM)
			return (uint64_t)detail->x86.operands[0].imm;
		return 0;
	}
	for (uint8_t i = detail->arm64.op_count; i-- > 0;)
		if (detail->arm64.operands[i].type == ARM64_OP_IMM)
			return (uint64_t)detail->arm64.operands[i].imm;
	return 0;
}

static int add_text(struct writer *writer, const cs_insn *insn, uint32_t *ret_text)
{
	struct disassembly *disassembly = writer->disassembly;
	char text[DISASSEMBLE_TEXT_MAX], *strings;
	size_t length;

	snprintf(text, sizeof(text), insn->op_str[0] ? "%-7s %s" : "%s%s", insn->mnemonic,
		 insn->op_str);
	length = strlen(text) + 1;
	if (disassembly->string_bytes + length > writer->string_room) {
		writer->string_room = writer->string_room ? 2 * writer->string_room : 64 << 10;
		strings = realloc(disassembly->strings, writer->string_room);
		if (!strings)
			return -ENOMEM;
		disassembly->strings = strings;
	}
	*ret_text = disassembly->string_bytes;
	memcpy(disassembly->strings + *ret_text, text, length);
	disassembly->string_bytes += (uint32_t)length;
	return 0;
}

static int add_instruction(struct writer *writer, const struct elf *elf, const cs_insn *insn)
{
	struct disassembly *disassembly = writer->disassembly;
	struct instruction *grown, *instruction;

	if (disassembly->count == writer->room) {
		writer->room = writer->room ? 2 * writer->room : 1024;
		grown = reallocarray(disassembly->instructions, writer->room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		disassembly->instructions = grown;
	}
	instruction = &disassembly->instructions[disassembly->count++];
	*instruction = (struct instruction){
		.address = insn->address, .target = target_of(elf, insn),
		.size = (uint8_t)min_of(insn->size, INSTRUCTION_MAX),
	};
	memcpy(instruction->bytes, insn->bytes, instruction->size);
	return add_text(writer, insn, &instruction->text);
}

static int decode(const struct elf *elf, csh engine, const uint8_t *bytes, size_t size,
		  uint64_t address, struct disassembly *disassembly)
{
	struct writer writer = { .disassembly = disassembly };
	cs_insn *insn = cs_malloc(engine);
	int r = insn ? 0 : -ENOMEM;

	while (!r && size && cs_disasm_iter(engine, &bytes, &size, &address, insn)) {
		r = add_instruction(&writer, elf, insn);
		if (!r && elf->deadline && !(disassembly->count % PER_LOOK) &&
		    clock_monotonic() > elf->deadline)
			r = -ETIME;
	}
	if (insn)
		cs_free(insn, 1);
	return r;
}

int disassemble(const struct elf *elf, uint64_t start, uint32_t size, bool is_intel,
		struct disassembly *ret_disassembly)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	csh engine;
	int r;

	memset(ret_disassembly, 0, sizeof(*ret_disassembly));
	if (size > DISASSEMBLE_BYTES_MAX)
		size = DISASSEMBLE_BYTES_MAX;
	r = read_code(elf, start, &size, &bytes) ?: open_engine(elf, is_intel, &engine);
	if (r < 0)
		return r;
	r = decode(elf, engine, bytes, size, start, ret_disassembly);
	cs_close(&engine);
	if (!r && !ret_disassembly->count)
		r = -ENODATA;
	if (r < 0)
		disassembly_free(ret_disassembly);
	return r;
}
