// SPDX-License-Identifier: Apache-2.0
#include "unwind/program.h"

#include <dwarf.h>

enum {
	/* not in elfutils' header of every distribution */
	OP_AARCH64_NEGATE_RA_STATE = 0x2d,
	OP_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
	OPERAND_MASK = 0x3f,
};

/* The value that an instruction on register @number is about; NULL: one that does not matter. */
static struct cfi_value *value_of(struct program *program, uint64_t number)
{
	if (number == program->machine->ra)
		return &program->state.values[CFI_RA];
	if (number == program->machine->fp)
		return &program->state.values[CFI_FP];
	if (number == program->machine->sp)
		return &program->state.values[CFI_SP];
	if (program->machine->saved && number == program->machine->saved)
		return &program->state.values[CFI_SAVED];
	return NULL;
}

static void set(struct program *program, uint64_t number, enum cfi_kind kind, int64_t operand)
{
	struct cfi_value *value = value_of(program, number);

	if (value)
		*value = (struct cfi_value){ .kind = kind, .number = operand };
}

static void set_expression(struct program *program, struct cfi_value *value, enum cfi_kind kind)
{
	uint64_t size = cursor_uleb(&program->cursor);
	const uint8_t *bytes = cursor_take(&program->cursor, size);

	if (value && bytes)
		*value = (struct cfi_value){
			.kind = kind,
			.size = (uint32_t)min_of(size, (uint64_t)UINT32_MAX),
			.number = value->number,
			.expression = bytes,
		};
}

static void restore(struct program *program, uint64_t number)
{
	struct cfi_value *value = value_of(program, number);

	if (value)
		*value = program->cie->initial.values[value - program->state.values];
}

/* An operand in units of the data alignment; unreasonable ones make the program bad. */
static int64_t scaled(struct program *program, int64_t operand)
{
	int64_t product;

	if (__builtin_mul_overflow(operand, program->cie->data_align, &product)) {
		program->cursor.bad = true;
		return 0;
	}
	return product;
}

static int64_t unsigned_operand(struct program *program)
{
	uint64_t operand = cursor_uleb(&program->cursor);

	if (operand > INT64_MAX)
		program->cursor.bad = true;
	return (int64_t)(operand & INT64_MAX);
}

static enum program_end move(struct program *program, uint64_t units)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(units, program->cie->code_align, &bytes) ||
	    __builtin_add_overflow(program->address, bytes, &program->next))
		return PROGRAM_BAD;
	return bytes ? PROGRAM_MOVED : PROGRAM_DONE;
}

static void define_cfa(struct program *program, uint64_t number, int64_t offset)
{
	program->state.cfa = (struct cfi_value){ .kind = CFI_OFFSET, .number = offset };
	program->state.cfa_register = number;
}

/*
 * Change one half of a CFA that is register plus offset. Assembly goes back from an expression to a
 * register with its last offset; libgcc and gdb take that.
 */
static void change_register(struct program *program, uint64_t number)
{
	if (program->state.cfa.kind == CFI_UNSET)
		program->cursor.bad = true;
	else
		define_cfa(program, number, program->state.cfa.number);
}

static void change_offset(struct program *program, int64_t offset)
{
	if (program->state.cfa.kind != CFI_OFFSET)
		program->cursor.bad = true;
	else
		program->state.cfa.number = offset;
}

static void remember(struct program *program)
{
	if (program->depth == CFI_STATES_MAX)
		program->cursor.bad = true;
	else
		program->remembered[program->depth++] = program->state;
}

static void recall(struct program *program)
{
	if (program->depth == 0)
		program->cursor.bad = true;
	else
		program->state = program->remembered[--program->depth];
}

/* Instructions that are whole bytes and say where a register is. */
static void run_register(struct program *program, uint8_t op)
{
	struct cursor *cursor = &program->cursor;
	uint64_t number = cursor_uleb(cursor);

	switch (op) {
	case DW_CFA_offset_extended:
		set(program, number, CFI_OFFSET, scaled(program, unsigned_operand(program)));
		break;
	case DW_CFA_offset_extended_sf:
		set(program, number, CFI_OFFSET, scaled(program, cursor_sleb(cursor)));
		break;
	case DW_CFA_GNU_negative_offset_extended:
		set(program, number, CFI_OFFSET, scaled(program, -unsigned_operand(program)));
		break;
	case DW_CFA_val_offset:
		set(program, number, CFI_VAL_OFFSET, scaled(program, unsigned_operand(program)));
		break;
	case DW_CFA_val_offset_sf:
		set(program, number, CFI_VAL_OFFSET, scaled(program, cursor_sleb(cursor)));
		break;
	case DW_CFA_restore_extended:
		restore(program, number);
		break;
	case DW_CFA_undefined:
		set(program, number, CFI_UNDEFINED, 0);
		break;
	case DW_CFA_same_value:
		set(program, number, CFI_SAME, 0);
		break;
	case DW_CFA_register:
		set(program, number, CFI_REGISTER, unsigned_operand(program));
		break;
	case DW_CFA_expression:
		set_expression(program, value_of(program, number), CFI_EXPRESSION);
		break;
	case DW_CFA_val_expression:
		set_expression(program, value_of(program, number), CFI_VAL_EXPRESSION);
		break;
	default:
		cursor->bad = true;
	}
}

static void run_cfa(struct program *program, uint8_t op)
{
	struct cursor *cursor = &program->cursor;
	uint64_t number;

	switch (op) {
	case DW_CFA_def_cfa:
		number = cursor_uleb(cursor);
		define_cfa(program, number, unsigned_operand(program));
		break;
	case DW_CFA_def_cfa_sf:
		number = cursor_uleb(cursor);
		define_cfa(program, number, scaled(program, cursor_sleb(cursor)));
		break;
	case DW_CFA_def_cfa_register:
		change_register(program, cursor_uleb(cursor));
		break;
	case DW_CFA_def_cfa_offset:
		change_offset(program, unsigned_operand(program));
		break;
	case DW_CFA_def_cfa_offset_sf:
		change_offset(program, scaled(program, cursor_sleb(cursor)));
		break;
	case DW_CFA_def_cfa_expression:
		set_expression(program, &program->state.cfa, CFI_EXPRESSION);
		break;
	}
}

static enum program_end run_extended(struct program *program, uint8_t op)
{
	struct cursor *cursor = &program->cursor;

	switch (op) {
	case DW_CFA_nop:
		break;
	case DW_CFA_advance_loc1:
		return move(program, cursor_number(cursor, 1));
	case DW_CFA_advance_loc2:
		return move(program, cursor_number(cursor, 2));
	case DW_CFA_advance_loc4:
		return move(program, cursor_number(cursor, 4));
	case DW_CFA_MIPS_advance_loc8:
		return move(program, cursor_number(cursor, 8));
	case DW_CFA_remember_state:
		remember(program);
		break;
	case DW_CFA_restore_state:
		recall(program);
		break;
	case DW_CFA_GNU_args_size:
		cursor_uleb(cursor);
		break;
	case OP_AARCH64_NEGATE_RA_STATE:
	case OP_AARCH64_NEGATE_RA_STATE_WITH_PC:
		/* the walk masks every return address, signed or not; x86 has none of it */
		cursor->bad |= program->machine->elf != EM_AARCH64;
		break;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		run_cfa(program, op);
		break;
	default:
		run_register(program, op);
	}
	return PROGRAM_DONE;
}

enum program_end program_step(struct program *program)
{
	struct cursor *cursor = &program->cursor;

	while (cursor_left(cursor) && !cursor->bad) {
		uint8_t op = cursor_u8(cursor), operand = op & OPERAND_MASK;
		enum program_end end = PROGRAM_DONE;

		switch (op & ~OPERAND_MASK) {
		case DW_CFA_advance_loc:
			end = move(program, operand);
			break;
		case DW_CFA_offset:
			set(program, operand, CFI_OFFSET,
			    scaled(program, unsigned_operand(program)));
			break;
		case DW_CFA_restore:
			restore(program, operand);
			break;
		default:
			end = run_extended(program, op);
		}
		if (end != PROGRAM_DONE)
			return cursor->bad ? PROGRAM_BAD : end;
	}
	return cursor->bad ? PROGRAM_BAD : PROGRAM_DONE;
}

void program_begin(struct program *program, const struct machine *machine,
		   const struct cfi_fde *fde)
{
	/* not `remembered`, which is large and written before it is read */
	program->machine = machine;
	program->cie = fde->cie;
	program->cursor = (struct cursor){
		.at = fde->program,
		.end = fde->program + fde->program_bytes,
	};
	program->state = fde->cie->initial;
	program->address = program->next = fde->start;
	program->depth = 0;
}

bool program_initial(const struct machine *machine, struct cfi_cie *cie, const uint8_t *data,
		     size_t size)
{
	struct program program = {
		.machine = machine,
		.cie = cie,
		.cursor = { .at = data, .end = data + size },
	};

	if (program_step(&program) != PROGRAM_DONE)
		return false;
	cie->initial = program.state;
	return true;
}
