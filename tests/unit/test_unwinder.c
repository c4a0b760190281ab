// SPDX-License-Identifier: Apache-2.0
/*
 * Late walks of this program's own stack, from a copy of it: against libgcc's unwinder, against the
 * walk as the module does it, cut short anywhere, and with nonsense for registers and stack.
 */
#include "unit.h"

#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pool.h"
#include "process/files.h"
#include "process/scan.h"
#include "resolve/symbolizer.h"
#include "resolve/unwinder.h"
#include "unwind/machine.h"

enum {
	SLICE_MAX = 256 << 10,
	FRAMES_MAX = 512,
	REGISTERS = 33,
	DEPTH = 20,
	RANDOM_ROUNDS = 30000,
};

/* Memory as it is, between where the slice begins and where the stack does. */
struct live {
	uint64_t start, end;
};

static inline int unwind_read_word(void *memory, __u64 address, __u64 *ret_value)
{
	const struct live *live = memory;

	if (address < live->start || address >= live->end)
		return -1;
	memcpy(ret_value, (const void *)(uintptr_t)address, sizeof(*ret_value));
	return 0;
}

#include <stacktap/unwind.h>

static struct symbolizer *symbolizer;
static struct tables *tables;
static struct unwinder *unwinder;
static struct image *image;
static struct mapping_snapshot *mappings;
static uint64_t next_id, seed = 1;

static union {
	struct stacktap_regs head;
	uint64_t words[sizeof(struct stacktap_regs) / 8 + REGISTERS];
} registers;

/* A stack as the module would have sent it, and what libgcc says of it. */
static struct {
	uint8_t slice[SLICE_MAX] __attribute__((aligned(8)));
	struct sample_sections sections;
	struct live live;
	void *frames[FRAMES_MAX];
	int frame_count;
	uint64_t live_ips[FRAMES_MAX];
	uint32_t live_count, live_exact_count;
	uint16_t live_exact[STACKTAP_MAX_EXACT_PCS];
	int live_end;
} taken;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static unsigned int opens;
static uint64_t skipped_ns;

static uint64_t now(void)
{
	return clock_monotonic() + skipped_ns;
}

static int request(void *ctx _unused_, unsigned long number, void *argument)
{
	if (number == STACKTAP_IOC_TABLE_LOAD)
		((struct stacktap_table_load *)argument)->table_id = ++next_id;
	return 0;
}

static int open_object(void *ctx _unused_, struct object *object, uint32_t tgid, int *ret_fd)
{
	opens++;
	return symbolizer_open(symbolizer, object, tgid, ret_fd);
}

static int each_table(void *ctx _unused_,
		      int (*each)(void *each_ctx, uint64_t id, uint64_t bytes,
				  uint64_t hit) _unused_,
		      void *each_ctx _unused_)
{
	return 0;
}

static void map_all(void)
{
	struct process_snapshot *snapshot;
	bool replaced;

	assert_int_equal(process_scan((uint32_t)getpid(), &snapshot), 0);
	for (size_t i = 0; i < snapshot->mapping_count; i++) {
		const struct process_snapshot_mapping *from = &snapshot->mappings[i];
		const struct file_key key = { .path = from->path };
		struct mapped_file *file = mapped_file_new(files_kind(&key), from->path);
		uint64_t offset = from->file_offset;

		assert_non_null(file);
		file->major = from->major;
		file->minor = from->minor;
		file->inode = from->inode;
		if (file->kind == OBJECT_ANONYMOUS)
			offset = from->start;
		else
			symbolizer_see_file(symbolizer, image, file);
		if (file->kind == OBJECT_VDSO)
			offset = 0;
		assert_int_equal(image_map(image, from->start, from->end, offset, 5, file,
					   &replaced), 0);
		mapped_file_unref(file);
	}
	process_snapshot_free(snapshot);
}

static int setup_with(size_t keep_bytes)
{
	const struct symbolizer_options options = { .sysroot = "" };
	struct tables_ops ops = {
		.request = request,
		.open = open_object,
		.each_table = each_table,
		.now = now,
		.keep_bytes = keep_bytes,
	};

	image = image_new(NULL, (uint32_t)getpid(), 0, "test");
	if (!image || symbolizer_new(&options, &symbolizer))
		return -ENOMEM;
	ops.parser = symbolizer_parser(symbolizer);
	if (tables_new(&ops, &tables) || unwinder_new(tables, FRAMES_MAX, &unwinder))
		return -ENOMEM;
	symbolizer_see_image(symbolizer, image, NULL);
	map_all();
	mappings = image_snapshot(image);
	return mappings ? 0 : -ENOMEM;
}

static int setup(void **state _unused_)
{
	return setup_with(4 << 20);
}

static int teardown(void **state _unused_)
{
	mapping_snapshot_unref(mappings);
	image_unref(image);
	unwinder_free(unwinder);
	tables_free(tables);
	symbolizer_free(symbolizer);
	return pool_get(POOL_TABLES)->used || pool_get(POOL_PROCESSES)->used;
}

static uint64_t stack_end(void)
{
	pthread_attr_t attr;
	void *address;
	size_t size;

	assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
	assert_int_equal(pthread_attr_getstack(&attr, &address, &size), 0);
	pthread_attr_destroy(&attr);
	return (uintptr_t)address + size;
}

static void take_registers(const ucontext_t *context)
{
	struct stacktap_regs *regs = &registers.head;
	__u64 *values = regs->regs;
#ifdef __x86_64__
	static const uint8_t order[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
					 REG_RBP, REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11,
					 REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		values[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
	*regs = (struct stacktap_regs){ .pc = values[16], .arch = EM_X86_64, .count = 17 };
#else
	for (size_t i = 0; i < 31; i++)
		values[i] = context->uc_mcontext.regs[i];
	values[31] = context->uc_mcontext.sp;
	values[32] = context->uc_mcontext.pc;
	*regs = (struct stacktap_regs){ .pc = values[32], .arch = EM_AARCH64, .count = 33 };
#endif
}

/* The walk as the module does it: all tables at hand, memory as it is. */
static void walk_live(void)
{
	const struct machine *machine = machine_find((uint16_t)registers.head.arch);
	struct unwind_mapping *all = calloc(mappings->count, sizeof(*all));
	struct unwind_walk walk = {
		.pc = registers.head.pc,
		.sp = registers.head.regs[machine->sp],
		.fp = registers.head.regs[machine->fp],
		.regs = registers.head.regs,
		.reg_count = registers.head.count,
		.machine = machine->elf,
		.address_limit = 0x7ffffffff000ULL,
		.mappings = all,
		.ips = (__u64 *)taken.live_ips,
		.max = FRAMES_MAX,
		.exact = taken.live_exact,
		.max_exact = STACKTAP_MAX_EXACT_PCS,
	};

	for (size_t i = 0; i < mappings->count; i++) {
		const struct mapping *mapping = &mappings->mappings[i];
		struct object *object = mapped_file_object(mapping->file);
		uint64_t bias = 0;

		if (mapping->end > INT64_MAX)
			break;
		all[i].start = mapping->start;
		all[i].end = mapping->end;
		if (object && mapping_bias(mapping, object, &bias))
			all[i].table = tables_view(tables, object, (uint32_t)getpid());
		all[i].bias = bias;
		walk.mapping_count++;
	}
	unwind_walk_begin(&walk);
	do
		taken.live_end = unwind_walk_run(&walk, &taken.live, FRAMES_MAX);
	while (taken.live_end == STACKTAP_END_NONE);
	taken.live_count = walk.count;
	taken.live_exact_count = walk.exact_count;
	tables_walk_done(tables);
	free(all);
}

static __attribute__((noinline, no_sanitize("address"))) void copy_stack(uint64_t from,
									 uint64_t bytes)
{
	const volatile uint64_t *words = (const volatile uint64_t *)(uintptr_t)from;

	/* not memcpy(): it may not see what a sanitizer has put between variables */
	for (uint64_t i = 0; i < bytes / 8; i++)
		((uint64_t *)(void *)taken.slice)[i] = words[i];
}

static __attribute__((noinline)) void take(void)
{
	ucontext_t context;
	uint64_t sp, bytes;

	assert_int_equal(getcontext(&context), 0);
	take_registers(&context);
	sp = registers.head.regs[machine_find((uint16_t)registers.head.arch)->sp];
	bytes = min_of(stack_end() - sp, (uint64_t)SLICE_MAX) & ~7ULL;
	copy_stack(sp, bytes);
	taken.live = (struct live){ .start = sp, .end = sp + bytes };
	taken.sections = (struct sample_sections){
		.regs = &registers.head,
		.slice = taken.slice,
		.slice_bytes = (uint32_t)bytes,
		.slice_address = sp,
		.slice_end = STACKTAP_END_DEPTH,
	};
	taken.frame_count = backtrace(taken.frames, FRAMES_MAX);
	walk_live();
}

/* Not of the kind that a compiler turns into a loop. */
static __attribute__((noinline)) unsigned int recurse(unsigned int depth)
{
	volatile uint8_t room[48];

	room[depth] = (uint8_t)depth;
	if (depth)
		return recurse(depth - 1) + room[depth];
	take();
	return room[0];
}

/* What earlier calls left where those to come have their frames. */
static __attribute__((noinline)) void clear_stack(void)
{
	uint8_t room[65536];

	explicit_bzero(room, sizeof(room));
}

static void on_signal(int number _unused_)
{
	recurse(3);
}

static struct unwinder_stack walk(void)
{
	struct unwinder_stack stack = { 0 };

	assert_int_equal(unwinder_walk(unwinder, &taken.sections, mappings, 100, (uint32_t)getpid(),
				   &stack), 0);
	return stack;
}

/* The callers; where backtrace() is a sanitizer's it has a frame of its own below them. */
static void check_callers(const struct unwinder_stack *stack)
{
	uint32_t own = (uint32_t)taken.frame_count - taken.live_count;

	assert_in_range(own, 0, 1);
	for (uint32_t i = 1; i < stack->count; i++)
		assert_int_equal(stack->ips[i], (uintptr_t)taken.frames[own + i]);
}

static void check_frames(const struct unwinder_stack *stack)
{
	assert_int_equal(stack->end, STACKTAP_END_COMPLETE);
	check_callers(stack);
	/* and to the last bit what the module would have said */
	assert_int_equal(stack->end, taken.live_end);
	assert_int_equal(stack->count, taken.live_count);
	assert_memory_equal(stack->ips, taken.live_ips, stack->count * sizeof(uint64_t));
	assert_int_equal(stack->exact_count, taken.live_exact_count);
	assert_memory_equal(stack->exact, taken.live_exact, stack->exact_count * sizeof(uint16_t));
}

static void test_whole_stack(void **state _unused_)
{
	struct unwinder_stack stack;

	recurse(DEPTH);
	stack = walk();
	assert_true(stack.count > DEPTH + 4);
	assert_int_equal(stack.exact_count, 0);
	check_frames(&stack);
}

static void test_through_a_signal(void **state _unused_)
{
	struct unwinder_stack stack;

	assert_true(signal(SIGUSR1, on_signal) != SIG_ERR);
	assert_int_equal(raise(SIGUSR1), 0);
	stack = walk();
	assert_int_equal(stack.exact_count, 1);
	assert_true(stack.exact[0] > 5 && stack.exact[0] < stack.count);
	check_frames(&stack);
}

/* A slice that ends anywhere: the frames that it holds are right, and never called complete. */
static void test_every_cut(void **state _unused_)
{
	uint32_t frames = 0, whole, bytes;

	recurse(DEPTH);
	whole = taken.live_count;
	for (bytes = 0; bytes < taken.live.end - taken.live.start; bytes += 8) {
		struct unwinder_stack stack;

		taken.sections.slice_bytes = bytes;
		taken.sections.slice_end = (uint16_t)(bytes / 8);
		stack = walk();
		assert_true(stack.count >= frames && stack.count <= whole);
		assert_memory_equal(stack.ips, taken.live_ips, stack.count * sizeof(uint64_t));
		frames = stack.count;
		if (stack.end == STACKTAP_END_COMPLETE)
			break;
		if (bytes / 8 == STACKTAP_END_DEPTH || bytes / 8 == STACKTAP_END_TIME)
			assert_int_equal(stack.end, bytes / 8);
		else
			assert_int_equal(stack.end, STACKTAP_END_UNREADABLE);
	}
	assert_int_equal(frames, whole);
	assert_true(bytes > DEPTH * 16);
}

/* The address of an anonymous page in place of a caller's, as uprobes do it. */
static void test_hooks(void **state _unused_)
{
	uint64_t *words = (uint64_t *)(void *)taken.slice, caller;
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct unwinder_stack stack;
	size_t i = 0;

	/* a return address that is left from before is no frame's */
	clear_stack();
	recurse(DEPTH);
	caller = taken.live_ips[DEPTH];
	/* the first of several callers that are the same */
	while (words[i] != caller)
		i++;
	words[i] = page * 16;
	taken.sections.is_hooked = true;
	stack = walk();
	assert_int_equal(stack.end, STACKTAP_END_HOOK);
	assert_in_range(stack.count, 1, DEPTH);
	check_callers(&stack);
	/* what is no start of a page is none, and without a hook the start of a page is none either */
	taken.sections.is_hooked = false;
	stack = walk();
	assert_int_not_equal(stack.end, STACKTAP_END_HOOK);
	taken.sections.is_hooked = true;
	words[i] = page * 16 + 8;
	stack = walk();
	assert_int_not_equal(stack.end, STACKTAP_END_HOOK);
}

/* A caller at the start of a page, but of code that has a table, is one. */
static void test_no_hook_in_known_code(void **state _unused_)
{
	uint64_t *words = (uint64_t *)(void *)taken.slice, i = 0;
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct unwinder_stack stack;

	recurse(DEPTH);
	while (words[i] != taken.live_ips[DEPTH])
		i++;
	words[i] = (uint64_t)(uintptr_t)recurse / page * page;
	taken.sections.is_hooked = true;
	stack = walk();
	assert_int_not_equal(stack.end, STACKTAP_END_HOOK);
}

static void test_mappings_of_its_time(void **state _unused_)
{
	struct unwinder_stack stack;
	uint64_t since;

	recurse(DEPTH);
	/* the frame above ours is in this program, as are most; what calls main() is not */
	since = mappings->mappings[0].since;
	for (size_t i = 0; i < mappings->count; i++)
		if (taken.live_ips[taken.live_count - 2] >= mappings->mappings[i].start &&
		    taken.live_ips[taken.live_count - 2] < mappings->mappings[i].end)
			mappings->mappings[i].since = NSEC_PER_SEC;
	stack = walk();
	assert_int_equal(since, 5);
	assert_true(stack.count < taken.live_count);
	assert_int_not_equal(stack.end, STACKTAP_END_COMPLETE);
	/* all of them are younger: nothing is known of it */
	for (size_t i = 0; i < mappings->count; i++)
		mappings->mappings[i].since = NSEC_PER_SEC;
	assert_int_equal(unwinder_walk(unwinder, &taken.sections, mappings, 100, 1, &stack),
			 -ENOENT);
}

static void test_what_is_no_sample(void **state _unused_)
{
	struct sample_sections whole;
	struct unwinder_stack stack;

	recurse(1);
	whole = taken.sections;
	taken.sections.regs = NULL;
	assert_int_equal(unwinder_walk(unwinder, &taken.sections, mappings, 100, 1, &stack),
			 -EINVAL);
	taken.sections = whole;
	taken.sections.slice = NULL;
	assert_int_equal(unwinder_walk(unwinder, &taken.sections, mappings, 100, 1, &stack),
			 -EINVAL);
	taken.sections = whole;
	registers.head.count = 7;
	assert_int_equal(unwinder_walk(unwinder, &taken.sections, mappings, 100, 1, &stack),
			 -EINVAL);
	registers.head.count = 17;
	registers.head.arch = 65536 + EM_X86_64;
	assert_int_equal(unwinder_walk(unwinder, &taken.sections, mappings, 100, 1, &stack),
			 -EINVAL);
	registers.head.arch = EM_386;
	assert_int_equal(unwinder_walk(unwinder, &taken.sections, mappings, 100, 1, &stack),
			 -EINVAL);
}

static uint64_t any_word(void)
{
	static const uint64_t edges[] = { 0, 1, 7, 8, UINT64_MAX, UINT64_MAX - 7, 1ULL << 63,
					  (1ULL << 56) - 8, 1ULL << 56, 1ULL << 47 };
	uint64_t value = next_random();

	switch (value % 8) {
	case 0:
		return edges[value / 8 % ARRAY_SIZE(edges)];
	case 1:	/* code that is mapped */
	case 2:
		return taken.live_ips[value / 8 % taken.live_count];
	case 3: {
		const struct mapping *mapping = &mappings->mappings[value / 8 % mappings->count];

		return mapping->start + next_random() % (mapping->end - mapping->start);
	}
	case 4:	/* the stack */
	case 5:
	case 6:
		return taken.live.start + value / 8 % 600 * 8;
	}
	return value;
}

static void check_bounds(const struct unwinder_stack *stack)
{
	assert_in_range(stack->count, 1, FRAMES_MAX);
	assert_in_range(stack->exact_count, 0, STACKTAP_MAX_EXACT_PCS);
	assert_in_range(stack->end, STACKTAP_END_COMPLETE, STACKTAP_END_REASONS - 1);
	for (uint32_t i = 0; i < stack->exact_count; i++)
		assert_true(stack->exact[i] < stack->count &&
			    (!i || stack->exact[i] > stack->exact[i - 1]));
}

static void test_nonsense(void **state _unused_)
{
	const uint64_t *real = (const uint64_t *)(const void *)taken.slice;
	uint64_t good[REGISTERS], deep = 0;

	recurse(DEPTH);
	memcpy(good, &registers.words[sizeof(struct stacktap_regs) / 8], sizeof(good));
	for (int round = 0; round < RANDOM_ROUNDS; round++) {
		struct unwinder_stack stack = { 0 };
		uint32_t words = (uint32_t)(next_random() % 512);
		uint64_t *slice = malloc(words * 8 + 1);
		int r;

		/* its own memory, so that a read beyond it is noticed */
		assert_non_null(slice);
		/* all of it, or a word here and there */
		for (uint32_t i = 0; i < words; i++)
			slice[i] = round % 2 || next_random() % 64 == 0 ? any_word() : real[i];
		for (uint32_t i = 0; i < REGISTERS; i++)
			registers.head.regs[i] =
				round % 2 || next_random() % 64 == 0 ? any_word() : good[i];
		registers.head.pc = next_random() % 2 ? any_word() : taken.live_ips[0];
		registers.head.pac_mask = next_random() % 16 ? 0 : any_word();
		taken.sections.slice = slice;
		taken.sections.slice_bytes = words * 8 + next_random() % 2;
		taken.sections.slice_address = next_random() % 4 ? taken.live.start : any_word();
		taken.sections.slice_end = (uint16_t)next_random();
		r = unwinder_walk(unwinder, &taken.sections, mappings, 100, 1, &stack);
		if (r < 0) {
			assert_int_equal(r, -ENOENT);
		} else {
			check_bounds(&stack);
			deep += stack.count > 2;
		}
		free(slice);
	}
	assert_true(deep > RANDOM_ROUNDS / 100);
}

/* Of the tables that it needs only so many fit: then others are cut, but nothing is wrong. */
static void test_bytes_of_tables(void **state _unused_)
{
	struct unwinder_stack stack;
	uint32_t whole;
	size_t limit;

	recurse(DEPTH);
	/* which has asked for more tables than one stack leads through */
	teardown(NULL);
	assert_int_equal(setup(NULL), 0);
	stack = walk();
	whole = stack.count;
	limit = tables_stats(tables)->kept_bytes;
	assert_true(tables_stats(tables)->kept >= 2);
	teardown(NULL);
	assert_int_equal(setup_with(limit - 8), 0);
	stack = walk();
	assert_true(tables_stats(tables)->kept_bytes <= limit - 8);
	assert_in_range(stack.count, 1, whole);
	assert_memory_equal(stack.ips, taken.live_ips, stack.count * sizeof(uint64_t));
	teardown(NULL);
	assert_int_equal(setup_with(0), 0);
	stack = walk();
	assert_int_equal(tables_stats(tables)->kept, 0);
	assert_int_not_equal(stack.end, STACKTAP_END_COMPLETE);
}

static struct object *first_object(void)
{
	for (size_t i = 0; i < mappings->count; i++) {
		struct object *object = mapped_file_object(mappings->mappings[i].file);

		if (object && object->kind == OBJECT_FILE && object->state == OBJECT_READY)
			return object;
	}
	fail_msg("no file is mapped");
	return NULL;
}

/* Whoever fills the pool must not have a table made again for every stack that is walked. */
static void test_what_does_not_fit_is_not_compiled_for_each_stack(void **state _unused_)
{
	struct pool *pool = pool_get(POOL_TABLES);
	const uint64_t refused = pool->refused;
	struct object *object = first_object();
	unsigned int before;
	uint64_t bytes;
	size_t most;

	assert_true(tables_get(tables, object, (uint32_t)getpid()) > 0);
	bytes = tables_stats(tables)->bytes;
	teardown(NULL);
	assert_int_equal(setup(NULL), 0);
	object = first_object();
	/* room for it to pass, not to stay as well */
	most = pool->limit - pool->used - 4096 - bytes * 3 / 2;
	assert_true(pool_charge(POOL_TABLES, most));
	assert_true(tables_get(tables, object, (uint32_t)getpid()) > 0);
	before = opens;
	for (int i = 0; i < 1000; i++) {
		assert_null(tables_view(tables, object, (uint32_t)getpid()));
		tables_walk_done(tables);
	}
	assert_in_range(opens - before, 0, 1);
	assert_true(pool->refused > refused);
	assert_true(pool->used <= pool->limit);
	/* when there is room again it stays here, by and by */
	pool_uncharge(POOL_TABLES, most);
	skipped_ns += 60 * NSEC_PER_SEC;
	assert_non_null(tables_view(tables, object, (uint32_t)getpid()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_whole_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(test_through_a_signal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hooks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_hook_in_known_code, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mappings_of_its_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_no_sample, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nonsense, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bytes_of_tables, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_does_not_fit_is_not_compiled_for_each_stack, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
