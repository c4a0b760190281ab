// SPDX-License-Identifier: Apache-2.0
#include "late.h"

#include <stdlib.h>
#include <string.h>

#include "frameless.h"

static inline int unwind_read_word(void *memory, uint64_t address, __u64 *ret_value)
{
	const struct sample_view *view = memory;
	uint64_t offset = address - view->slice_address;

	if (offset >= view->slice_bytes || view->slice_bytes - offset < sizeof(*ret_value))
		return -1;
	memcpy(ret_value, view->slice + offset, sizeof(*ret_value));
	return 0;
}

#include <stacktap/unwind.h>

unsigned int late_walk(const struct sample_view *view, uint64_t *ips, unsigned int max,
		       unsigned int *ret_end)
{
	uint64_t text[2], range[2], regs[UNWIND_REGISTERS];
	struct unwind_mapping mappings[3] = { 0 };
	struct unwind_table table;
	uint16_t exact[STACKTAP_MAX_EXACT_PCS];
	__u64 found[256];
	struct unwind_walk walk = {
		.pc = view->regs->pc, .machine = view->regs->arch, .pac_mask = view->regs->pac_mask,
		.regs = (const __u64 *)regs, .reg_count = view->regs->count,
		.address_limit = 1ull << 48, .mappings = mappings, .mapping_count = 3,
		.ips = found, .max = max < 256 ? max : 256,
		.exact = exact, .max_exact = STACKTAP_MAX_EXACT_PCS,
	};
	const void *data;
	size_t size;

	data = frameless_table(&size);
	if (walk.reg_count > UNWIND_REGISTERS || unwind_table_check(data, size, &table))
		abort();
	memcpy(regs, view->regs->regs, walk.reg_count * sizeof(*regs));
	walk.sp = regs[walk.machine == UNWIND_MACHINE_X86_64 ? 7 : 31];
	walk.fp = regs[walk.machine == UNWIND_MACHINE_X86_64 ? 6 : 29];
	frameless_text(&text[0], &text[1]);
	frameless_range(&range[0], &range[1]);
	mappings[0].start = text[0];
	mappings[0].end = mappings[1].start = range[0];
	mappings[1].end = mappings[2].start = range[1];
	mappings[1].table = &table;
	mappings[2].end = text[1];
	unwind_walk_begin(&walk);
	*ret_end = unwind_walk_run(&walk, (void *)(uintptr_t)view, walk.max);
	memcpy(ips, found, walk.count * sizeof(*ips));
	return walk.count;
}
