// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"

#include <dwarf.h>

enum { STACK_MAX = 32 };

struct stack {
	uint64_t values[STACK_MAX];
	size_t count;
	bool bad;
};

/* What no formula comes to by chance, the same in each run. */
static uint64_t arbitrary(uint64_t seed, uint64_t number)
{
	__extension__ unsigned __int128 product = seed ^ 0x9e3779b97f4a7c15ULL;

	product *= number ^ 0xd6e8feb86659fd93ULL;
	return ((uint64_t)product ^ (uint64_t)(product >> 64)) & ~7ULL;
}

uint64_t evaluate_initial(const struct evaluate *evaluate, uint64_t number)
{
	return arbitrary(evaluate->seed, number);
}

static uint64_t memory_at(const struct evaluate *evaluate, uint64_t address)
{
	return arbitrary(~evaluate->seed, address);
}

static void push(struct stack *stack, uint64_t value)
{
	if (stack->count == STACK_MAX)
		stack->bad = true;
	else
		stack->values[stack->count++] = value;
}

static uint64_t pop(struct stack *stack)
{
	if (stack->count == 0) {
		stack->bad = true;
		return 0;
	}
	return stack->values[--stack->count];
}

static uint64_t breg(const struct evaluate *evaluate, uint64_t number, uint64_t offset)
{
	/* x86 expressions call the pc register 16 */
	if (evaluate->machine->elf == EM_X86_64 && number == evaluate->machine->ra)
		return evaluate->address + offset;
	return evaluate_initial(evaluate, number) + offset;
}

static void run_binary(struct stack *stack, uint8_t op)
{
	uint64_t b = pop(stack), a = pop(stack);

	switch (op) {
	case DW_OP_and:
		push(stack, a & b);
		break;
	case DW_OP_or:
		push(stack, a | b);
		break;
	case DW_OP_plus:
		push(stack, a + b);
		break;
	case DW_OP_minus:
		push(stack, a - b);
		break;
	case DW_OP_mul:
		push(stack, a * b);
		break;
	case DW_OP_shl:
		push(stack, b < 64 ? a << b : 0);
		break;
	case DW_OP_shr:
		push(stack, b < 64 ? a >> b : 0);
		break;
	case DW_OP_ge:
		push(stack, (int64_t)a >= (int64_t)b);
		break;
	default:
		stack->bad = true;
	}
}

static void run_op(const struct evaluate *evaluate, struct stack *stack, const Dwarf_Op *op)
{
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		push(stack, breg(evaluate, op->atom - DW_OP_breg0, op->number));
		return;
	}
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
		push(stack, op->atom - DW_OP_lit0);
		return;
	}
	switch (op->atom) {
	case DW_OP_bregx:
		push(stack, breg(evaluate, op->number, op->number2));
		break;
	case DW_OP_call_frame_cfa:
		push(stack, evaluate->cfa);
		break;
	case DW_OP_plus_uconst:
		push(stack, pop(stack) + op->number);
		break;
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		push(stack, op->number);
		break;
	case DW_OP_deref:
		push(stack, memory_at(evaluate, pop(stack)));
		break;
	default:
		run_binary(stack, op->atom);
	}
}

/* What is on top after @count operations. */
static struct evaluate_result run(const struct evaluate *evaluate, const Dwarf_Op *ops,
				  size_t count)
{
	struct stack stack = { .count = 0 };
	uint64_t value;

	for (size_t i = 0; i < count; i++)
		run_op(evaluate, &stack, &ops[i]);
	value = pop(&stack);
	if (stack.bad)
		return (struct evaluate_result){ .kind = EVALUATE_UNKNOWN };
	return (struct evaluate_result){ .kind = EVALUATE_VALUE, .value = value };
}

struct evaluate_result evaluate_cfa(const struct evaluate *evaluate, const Dwarf_Op *ops,
				    size_t count)
{
	return run(evaluate, ops, count);
}

struct evaluate_result evaluate_register(const struct evaluate *evaluate, Dwarf_Frame *frame,
					 int number)
{
	struct evaluate_result result;
	Dwarf_Op memory[3], *ops;
	size_t count;

	if (dwarf_frame_register(frame, number, memory, &ops, &count) != 0)
		return (struct evaluate_result){ .kind = EVALUATE_UNKNOWN };
	if (count == 0 && ops)
		return (struct evaluate_result){ .kind = EVALUATE_UNDEFINED };
	if (count == 0)
		return (struct evaluate_result){
			.kind = EVALUATE_VALUE,
			.value = evaluate_initial(evaluate, (uint64_t)number),
		};
	if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
		return (struct evaluate_result){
			.kind = EVALUATE_VALUE,
			.value = evaluate_initial(evaluate, ops[0].atom - DW_OP_reg0),
		};
	if (count == 1 && ops[0].atom == DW_OP_regx)
		return (struct evaluate_result){
			.kind = EVALUATE_VALUE,
			.value = evaluate_initial(evaluate, ops[0].number),
		};
	if (ops[count - 1].atom == DW_OP_stack_value)
		return run(evaluate, ops, count - 1);
	result = run(evaluate, ops, count);
	if (result.kind == EVALUATE_VALUE)
		result.value = memory_at(evaluate, result.value);
	return result;
}

uint64_t evaluate_how(const struct evaluate *evaluate, uint8_t how, int32_t offset, uint8_t extra)
{
	uint8_t base = how & UNWIND_BASE_MASK;
	uint64_t value;

	extra &= UNWIND_EXTRA_MASK;
	if (base == UNWIND_BASE_CFA)
		value = evaluate->cfa;
	else if (base == UNWIND_BASE_SP)
		value = evaluate_initial(evaluate, evaluate->machine->sp);
	else if (base == UNWIND_BASE_FP)
		value = evaluate_initial(evaluate, evaluate->machine->fp);
	else
		value = evaluate_initial(evaluate, base);
	value += (uint64_t)(int64_t)offset;
	switch (how & UNWIND_HOW_MASK) {
	case UNWIND_LOAD:
		return memory_at(evaluate, value) + (uint64_t)extra * UNWIND_WORD;
	case UNWIND_PLT:
		return value + (evaluate->address % UNWIND_PLT_ENTRY >= extra ? UNWIND_WORD : 0);
	}
	return value;
}
