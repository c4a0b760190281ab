// SPDX-License-Identifier: Apache-2.0
#include "resolve/unwinder.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pool.h"
#include "unwind/machine.h"

#define TIE_NS (10 * NSEC_PER_USEC)	/* what clocks of two CPUs may differ by */
#define TAG_BITS (0xffULL << 56)	/* of an arm64 pointer, which loads ignore */

/* All that is known of the process' memory. */
struct slice {
	const uint8_t *bytes;
	uint64_t address, size;
	bool went_beyond;		/* the last read that failed was above it */
};

static inline int unwind_read_word(void *memory, __u64 address, __u64 *ret_value)
{
	struct slice *slice = memory;
	/* one unsigned comparison also refuses what lies below the slice */
	uint64_t offset = address - slice->address;

	if (offset >= slice->size || slice->size - offset < sizeof(*ret_value)) {
		slice->went_beyond = address >= slice->address;
		return -EFAULT;
	}
	memcpy(ret_value, slice->bytes + offset, sizeof(*ret_value));
	return 0;
}

#include <stacktap/unwind.h>

struct unwinder {
	struct tables *tables;
	uint32_t max_frames;
	uint64_t page_bytes;
	struct unwind_mapping *mappings;
	const struct mapping **sources;	/* what each is made from; NULL: looked at already */
	size_t capacity;
	__u64 ips[];
};

static size_t unwinder_bytes(uint32_t max_frames)
{
	return sizeof(struct unwinder) + max_frames * sizeof(uint64_t);
}

static size_t mappings_bytes(size_t count)
{
	return count * (sizeof(struct unwind_mapping) + sizeof(struct mapping *));
}

int unwinder_new(struct tables *tables, uint32_t max_frames, struct unwinder **ret_unwinder)
{
	struct unwinder *unwinder = calloc(1, unwinder_bytes(max_frames));

	if (!unwinder)
		return -ENOMEM;
	unwinder->tables = tables;
	unwinder->max_frames = max_frames;
	unwinder->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	pool_charge_always(POOL_TABLES, unwinder_bytes(max_frames));
	*ret_unwinder = unwinder;
	return 0;
}

static void forget_mappings(struct unwinder *unwinder)
{
	pool_uncharge(POOL_TABLES, mappings_bytes(unwinder->capacity));
	free(unwinder->mappings);
	free(unwinder->sources);
	unwinder->mappings = NULL;
	unwinder->sources = NULL;
	unwinder->capacity = 0;
}

void unwinder_free(struct unwinder *unwinder)
{
	if (!unwinder)
		return;
	forget_mappings(unwinder);
	pool_uncharge(POOL_TABLES, unwinder_bytes(unwinder->max_frames));
	free(unwinder);
}

static int reserve(struct unwinder *unwinder, size_t count)
{
	if (count <= unwinder->capacity)
		return 0;
	forget_mappings(unwinder);
	if (!pool_charge(POOL_TABLES, mappings_bytes(count)))
		return -ENOMEM;
	unwinder->capacity = count;
	unwinder->mappings = calloc(count, sizeof(*unwinder->mappings));
	unwinder->sources = calloc(count, sizeof(*unwinder->sources));
	if (!unwinder->mappings || !unwinder->sources) {
		forget_mappings(unwinder);
		return -ENOMEM;
	}
	return 0;
}

/* What was mapped at @time; which tables that takes turns out on the way. */
static int take_mappings(struct unwinder *unwinder, const struct mapping_snapshot *snapshot,
			 uint64_t time, uint32_t *ret_count)
{
	uint32_t count = 0;
	int r = reserve(unwinder, snapshot->count);

	if (r < 0)
		return r;
	for (size_t i = 0; i < snapshot->count; i++) {
		const struct mapping *mapping = &snapshot->mappings[i];

		/* above user memory is what x86 maps at the top of the kernel's half */
		if (mapping->since > time + TIE_NS || mapping->end > INT64_MAX)
			continue;
		unwinder->mappings[count] = (struct unwind_mapping){
			.start = mapping->start,
			.end = mapping->end,
		};
		unwinder->sources[count++] = mapping;
	}
	*ret_count = count;
	return 0;
}

/* The table of the code at @address, NULL if it has none. Each is looked for once in a walk. */
static const struct unwind_table *find_table(struct unwinder *unwinder, struct unwind_walk *walk,
					     uint64_t address, uint32_t tgid)
{
	const struct unwind_mapping *found = unwind_walk_find(walk, address);
	const struct unwind_table *table;
	struct unwind_mapping *mapping;
	const struct mapping *source;
	struct object *object;
	uint64_t bias;

	if (!found)
		return NULL;
	mapping = &unwinder->mappings[found - unwinder->mappings];
	source = unwinder->sources[found - unwinder->mappings];
	unwinder->sources[found - unwinder->mappings] = NULL;
	object = source ? mapped_file_object(source->file) : NULL;
	if (!object || !mapping_bias(source, object, &bias))
		return mapping->table;
	mapping->bias = bias;
	table = tables_view(unwinder->tables, object, tgid);
	/* a program of another machine, run by an emulator */
	if (table && table->machine == walk->machine)
		mapping->table = table;
	return mapping->table;
}

/* Is the frame that was just found a uretprobe's trampoline? It is known as the module knows it. */
static bool is_hook(struct unwinder *unwinder, struct unwind_walk *walk, uint32_t tgid)
{
	return walk->pc % unwinder->page_bytes == 0 && !find_table(unwinder, walk, walk->pc, tgid);
}

static uint64_t untag(uint16_t machine, uint64_t address)
{
	return machine == EM_AARCH64 ? address & ~TAG_BITS : address;
}

static int begin(struct unwinder *unwinder, const struct stacktap_regs *regs,
		 uint32_t mapping_count, struct unwinder_stack *stack, struct unwind_walk *walk)
{
	const struct machine *machine = machine_find((uint16_t)regs->arch);

	if (!machine || regs->arch != machine->elf || regs->count <= machine->sp)
		return -EINVAL;
	*walk = (struct unwind_walk){
		.pc = regs->pc,
		.sp = untag(machine->elf, regs->regs[machine->sp]),
		.fp = untag(machine->elf, regs->regs[machine->fp]),
		.regs = regs->regs,
		.reg_count = regs->count,
		.machine = machine->elf,
		/* the widest that kernels offer; what is not mapped ends the walk anyway */
		.address_limit = 1ULL << 56,
		.pac_mask = regs->pac_mask,
		.mappings = unwinder->mappings,
		.mapping_count = mapping_count,
		.ips = unwinder->ips,
		.max = unwinder->max_frames,
		.exact = stack->exact,
		.max_exact = ARRAY_SIZE(stack->exact),
	};
	unwind_walk_begin(walk);
	return unwind_walk_find(walk, walk->pc) ? 0 : -ENOENT;
}

/* The slice's own end is why there is no more, unless it says that there is no more stack. */
static uint8_t end_beyond(const struct sample_sections *sections)
{
	switch (sections->slice_end) {
	case STACKTAP_END_DEPTH:
	case STACKTAP_END_TIME:
		return (uint8_t)sections->slice_end;
	}
	return STACKTAP_END_UNREADABLE;
}

int unwinder_walk(struct unwinder *unwinder, const struct sample_sections *sections,
		  const struct mapping_snapshot *mappings, uint64_t time, uint32_t tgid,
		  struct unwinder_stack *ret_stack)
{
	struct slice slice = {
		.bytes = sections->slice,
		.address = sections->slice_address,
		.size = sections->slice_bytes,
	};
	struct unwind_walk walk;
	uint32_t count;
	int end, r;

	if (!sections->regs || !sections->slice)
		return -EINVAL;
	r = take_mappings(unwinder, mappings, time, &count);
	if (!r)
		r = begin(unwinder, sections->regs, count, ret_stack, &walk);
	if (r < 0)
		return r;
	do {
		find_table(unwinder, &walk, walk.pc - !walk.is_exact, tgid);
		end = unwind_walk_run(&walk, &slice, walk.count + 1);
		if (end == STACKTAP_END_NONE && sections->is_hooked &&
		    is_hook(unwinder, &walk, tgid)) {
			walk.count--;
			if (walk.exact_count && walk.exact[walk.exact_count - 1] == walk.count)
				walk.exact_count--;
			end = STACKTAP_END_HOOK;
		}
	} while (end == STACKTAP_END_NONE);
	tables_walk_done(unwinder->tables);
	/* there is no code in a slice: a step by the frame pointer cannot be proven */
	if (end == STACKTAP_END_COMPLETE && walk.is_guessed && !walk.is_unlisted)
		end = STACKTAP_END_GUESSED;
	/* it has just begun, in code that nothing describes: above its stack pointer is no stack */
	if (end == STACKTAP_END_NO_RULE && walk.count == 1 && !slice.size &&
	    sections->slice_end == STACKTAP_END_COMPLETE)
		end = STACKTAP_END_COMPLETE;
	/* by frame pointers through code that the process table knows as little as the module did */
	if (end == STACKTAP_END_COMPLETE && walk.is_unlisted)
		end = STACKTAP_END_NO_MAPPINGS;
	if (end == STACKTAP_END_UNREADABLE && slice.went_beyond)
		end = end_beyond(sections);
	ret_stack->ips = unwinder->ips;
	ret_stack->count = walk.count;
	ret_stack->exact_count = walk.exact_count;
	ret_stack->end = (uint8_t)end;
	return 0;
}
