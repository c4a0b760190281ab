// SPDX-License-Identifier: Apache-2.0
/*
 * Single-step a program and walk its stack twice, with our tables and by libdwfl: at each instruction
 * when it comes there for the first time, and at every so many steps. Frames that differ, or that
 * come after the end of one of both for no known reason, fail.
 *
 * usage: unwind_live STEPS-BETWEEN-COMPARISONS PROGRAM [ARGUMENT...]
 */
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/macro.h"
#include "symbol/elf.h"
#include "unwind/compile.h"

#include "coverage.h"
#include "tracee.h"

static inline int unwind_read_word(void *memory, uint64_t address, __u64 *ret_value)
{
	const struct tracee *target = memory;
	struct iovec local = { .iov_base = ret_value, .iov_len = sizeof(*ret_value) };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)address, .iov_len = 8 };

	return process_vm_readv(target->pid, &local, 1, &remote, 1, 0) == 8 ? 0 : -1;
}

#include <stacktap/unwind.h>

enum {
	FRAMES_MAX = 256,
	MAPPINGS_MAX = 256,
	THREAD_STEPS = 3000,
	REPORTED_MAX = 20,
};

#define MEMORY_LIMIT ((size_t)1 << 30)

struct stack {
	uint64_t pcs[FRAMES_MAX];
	uint16_t exact[FRAMES_MAX];
	uint32_t count, exact_count;
	int end;
};

struct loaded {
	struct unwind_table table;
	void *data;
};

/* What one step leaves to the next. */
struct step {
	struct tracee_regs before;
	bool had_cfi;
	struct stack callers;		/* where nothing describes the code */
	bool has_callers;
};

static struct unwind_mapping mappings[MAPPINGS_MAX];
static struct loaded loaded[MAPPINGS_MAX];
static uint32_t mapping_count;
static struct {
	uint64_t steps, compared, followed, skipped, equal, we_ended, they_ended, misled, frames, by_fp, wrong;
	uint64_t ends[STACKTAP_END_REASONS];
} counts;

/* Table of an ELF image and the bias of the mapping that shows its file's bytes from @offset. */
static const struct unwind_table *load_table(const struct elf *elf, uint64_t start,
					     uint64_t offset, struct loaded *to, __u64 *ret_bias)
{
	_cleanup_free_ struct object_segment *segments = NULL;
	struct compile_stats stats;
	size_t count, size;

	if (elf_segments(elf, &segments, &count) < 0 ||
	    compile_elf(elf, MEMORY_LIMIT, &to->data, &size, &stats) < 0)
		return NULL;
	if (unwind_table_check(to->data, size, &to->table) < 0)
		tracee_die("a table does not pass its own check");
	for (size_t i = 0; i < count; i++)
		if (offset + 4096 > segments[i].offset &&
		    offset < segments[i].offset + segments[i].size)
			*ret_bias = start - (segments[i].vaddr - segments[i].offset + offset);
	return &to->table;
}

static void load_mapping(pid_t pid, uint64_t start, uint64_t end, uint64_t offset,
			 const char *path)
{
	struct unwind_mapping *mapping = &mappings[mapping_count++];
	_cleanup_free_ char *image = NULL;
	_cleanup_close_ int fd = -1;
	struct elf elf = { .fd = -1 };
	struct stat st;

	*mapping = (struct unwind_mapping){ .start = start, .end = end };
	if (!strcmp(path, "[vdso]")) {
		struct iovec local = { .iov_base = image = malloc(end - start),
				       .iov_len = end - start };
		struct iovec remote = { .iov_base = (void *)(uintptr_t)start,
					.iov_len = end - start };

		if (!image || process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0 ||
		    elf_open_memory(&elf, image, end - start) < 0)
			tracee_die("vdso");
		offset = 0;
	} else if (path[0] == '/') {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) < 0 || elf_open(&elf, fd, (uint64_t)st.st_size, 0) < 0)
			tracee_die(path);
	} else {
		return;
	}
	mapping->table = load_table(&elf, start, offset, &loaded[mapping - mappings],
				    &mapping->bias);
	elf_close(&elf);
}

static Dwfl *load_dwfl(pid_t pid)
{
	static char *debuginfo_path;
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.debuginfo_path = &debuginfo_path,
	};
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (!dwfl || dwfl_linux_proc_report(dwfl, pid) != 0 ||
	    dwfl_report_end(dwfl, NULL, NULL) != 0 ||
	    dwfl_linux_proc_attach(dwfl, pid, true) != 0)
		tracee_die("libdwfl cannot attach");
	return dwfl;
}

static void unload(Dwfl *dwfl)
{
	for (; mapping_count; mapping_count--)
		free(steal_ptr(loaded[mapping_count - 1].data));
	if (dwfl)
		dwfl_end(dwfl);
}

/* Both sides learn the mappings again. */
static Dwfl *load(pid_t pid, Dwfl *dwfl)
{
	_cleanup_fclose_ FILE *maps = NULL;
	char path[64], line[4500];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps)
		tracee_die(path);
	unload(dwfl);
	while (fgets(line, sizeof(line), maps)) {
		uint64_t start, end, offset;
		char flags[8], name[4096] = "";

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4095s", &start,
			   &end, flags, &offset, name) >= 4 &&
		    flags[2] == 'x' && start < TRACEE_ADDRESS_LIMIT && mapping_count < MAPPINGS_MAX)
			load_mapping(pid, start, end, offset, name);
	}
	return load_dwfl(pid);
}

static void walk_ours(const struct tracee *target, const struct tracee_regs *regs,
		      struct stack *ret_stack)
{
	struct tracee memory = *target;
	__u64 known[TRACEE_REGISTERS], ips[FRAMES_MAX];
	struct unwind_walk walk = {
		.pc = regs->pc, .sp = regs->sp, .fp = regs->fp,
		.regs = known, .reg_count = regs->count,
		.machine = TRACEE_MACHINE,
		.address_limit = TRACEE_ADDRESS_LIMIT,
		.mappings = mappings, .mapping_count = mapping_count,
		.ips = ips, .max = FRAMES_MAX,
		.exact = ret_stack->exact, .max_exact = FRAMES_MAX,
	};

	for (size_t i = 0; i < regs->count; i++)
		known[i] = regs->all[i];
	unwind_walk_begin(&walk);
	ret_stack->end = unwind_walk_run(&walk, &memory, FRAMES_MAX);
	ret_stack->count = walk.count;
	ret_stack->exact_count = walk.exact_count;
	counts.by_fp += walk.fp_count;
	for (uint32_t i = 0; i < walk.count; i++)
		ret_stack->pcs[i] = ips[i];
}

static int on_frame(Dwfl_Frame *frame, void *ctx)
{
	struct stack *stack = ctx;
	bool is_activation;
	Dwarf_Addr pc;

	if (stack->count == FRAMES_MAX || !dwfl_frame_pc(frame, &pc, &is_activation))
		return DWARF_CB_ABORT;
	if (is_activation && stack->count)
		stack->exact[stack->exact_count++] = (uint16_t)stack->count;
	stack->pcs[stack->count++] = pc;
	return DWARF_CB_OK;
}

/* libdwfl calls an interrupted frame an activation, and the trampoline below it as well. */
static void mark_interrupted(struct stack *stack)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < stack->exact_count; i++) {
		if (i + 1 == stack->exact_count || stack->exact[i + 1] != stack->exact[i] + 1)
			stack->exact[count++] = stack->exact[i];
	}
	stack->exact_count = count;
}

static void walk_theirs(Dwfl *dwfl, const struct tracee *target, struct stack *ret_stack)
{
	*ret_stack = (struct stack){ .end = STACKTAP_END_COMPLETE };
	if (dwfl_getthread_frames(dwfl, target->tid, on_frame, ret_stack) != 0)
		ret_stack->end = STACKTAP_END_NO_RULE;
	/* an undefined return address may come out as a last frame of 0 */
	while (ret_stack->count > 1 && !ret_stack->pcs[ret_stack->count - 1])
		ret_stack->count--;
	mark_interrupted(ret_stack);
}

static void print_stack(const char *who, const struct stack *stack)
{
	fprintf(stderr, "  %s (end %d):", who, stack->end);
	for (uint32_t i = 0; i < stack->count && i < 12; i++)
		fprintf(stderr, " %" PRIx64, stack->pcs[i]);
	fprintf(stderr, ", exact:");
	for (uint32_t i = 0; i < stack->exact_count; i++)
		fprintf(stderr, " %u", stack->exact[i]);
	fprintf(stderr, "\n");
}

/*
 * libdwfl takes rbx for a register that calls destroy (so says its table for x86_64), and passes a
 * stack off as whole when it needs rbx for the next CFA.
 */
static bool needs_saved(uint64_t pc)
{
	struct unwind_walk walk = { .mappings = mappings, .mapping_count = mapping_count };
	const struct unwind_mapping *mapping = unwind_walk_find(&walk, pc - 1);
	const struct unwind_rule *rule = NULL;

	if (mapping && mapping->table)
		rule = unwind_table_find(mapping->table, pc - 1 - mapping->bias);
	return rule && (rule->cfa & UNWIND_HOW_MASK) == UNWIND_VALUE &&
	       (rule->cfa & UNWIND_BASE_MASK) == UNWIND_SAVED_REGISTER;
}

/* libdwfl guesses by the frame pointer where it knows nothing; what is no code is no frame. */
static void drop_guess(struct stack *stack)
{
	struct unwind_walk walk = { .mappings = mappings, .mapping_count = mapping_count };

	if (stack->end != STACKTAP_END_COMPLETE && stack->count > 1 &&
	    !unwind_walk_find(&walk, stack->pcs[stack->count - 1]))
		stack->count--;
}

/*
 * Nothing describes the arm64 kernel's signal trampoline; and glibc's information on lazy binding
 * forgets 16 bytes, and so has the return address above its CFA. Tables know both, libdwfl does not:
 * what it says of the callers is nothing.
 */
static void drop_misled(Dwfl *dwfl, struct stack *stack)
{
	for (uint32_t i = 0; TRACEE_CFI_HAS_GAPS && i < stack->count; i++)
		if (coverage_is_wrong(dwfl, stack->pcs[i] - (i > 0))) {
			stack->count = i + 1;
			stack->end = STACKTAP_END_NO_RULE;
			while (stack->exact_count && stack->exact[stack->exact_count - 1] > i)
				stack->exact_count--;
		}
}

/*
 * A frame of ours that is no code. Call frame information that is wrong leads libdwfl there, too; what
 * comes then says nothing about either.
 */
static bool is_strange(struct stack *ours, struct stack *theirs)
{
	struct unwind_walk walk = { .mappings = mappings, .mapping_count = mapping_count };

	for (uint32_t i = 1; i < ours->count; i++) {
		if (unwind_walk_find(&walk, ours->pcs[i]))
			continue;
		if (i >= theirs->count || theirs->pcs[i] != ours->pcs[i])
			return true;
		counts.misled++;
		ours->count = theirs->count = i;
		ours->end = theirs->end = STACKTAP_END_NO_RULE;
		break;
	}
	return false;
}

/*
 * On arm64 nothing describes PLTs and start-up code, where libdwfl goes by the link register and then
 * skips frames. There we keep account of calls ourselves: what was on the stack when it came there,
 * and whence it was called.
 */
static void follow(const struct tracee *target, struct step *step)
{
	const struct tracee_regs *before = &step->before;
	struct stack *callers = &step->callers;
	struct iovec remote = { .iov_base = (void *)(uintptr_t)before->pc, .iov_len = 4 };
	uint32_t instruction = 0;
	struct iovec local = { .iov_base = &instruction, .iov_len = sizeof(instruction) };

	if (process_vm_readv(target->pid, &local, 1, &remote, 1, 0) != 4)
		tracee_die("instruction");
	if (step->had_cfi) {
		struct stack stack = { 0 };

		/* calls write no memory there, so the registers of the step before still fit */
		walk_ours(target, before, &stack);
		*callers = stack;
		step->has_callers = true;
		callers->count--;
		memmove(callers->pcs, callers->pcs + 1, callers->count * sizeof(callers->pcs[0]));
	}
	if (tracee_is_call(instruction) && callers->count + 1 < FRAMES_MAX) {
		memmove(callers->pcs + 1, callers->pcs, callers->count * sizeof(callers->pcs[0]));
		callers->pcs[0] = before->pc + 4;
		callers->count++;
	} else if (tracee_is_return(instruction) && callers->count) {
		callers->count--;
		memmove(callers->pcs, callers->pcs + 1, callers->count * sizeof(callers->pcs[0]));
	}
}

static bool is_uncovered(uint64_t pc)
{
	struct unwind_walk walk = { .mappings = mappings, .mapping_count = mapping_count };
	const struct unwind_mapping *mapping = unwind_walk_find(&walk, pc);
	const struct unwind_rule *rule = NULL;

	if (mapping && mapping->table)
		rule = unwind_table_find(mapping->table, pc - mapping->bias);
	return !rule || rule->cfa == UNWIND_UNCOVERED;
}

/* Without call frame information at the pc: against what follow() found. */
static void compare_followed(const struct tracee *target, const struct tracee_regs *regs,
			     const struct stack *callers)
{
	struct stack ours = { 0 };

	walk_ours(target, regs, &ours);
	counts.compared++;
	counts.followed++;
	counts.ends[ours.end]++;
	counts.frames += ours.count;
	if (ours.count == callers->count + 1 && ours.end == callers->end &&
	    !memcmp(ours.pcs + 1, callers->pcs, callers->count * sizeof(callers->pcs[0]))) {
		counts.equal++;
	} else if (callers->count && is_uncovered(callers->pcs[0] - 1) &&
		   ours.count == callers->count && ours.end == callers->end &&
		   !memcmp(ours.pcs + 1, callers->pcs + 1,
			   (callers->count - 1) * sizeof(callers->pcs[0]))) {
		/* start-up code that calls its like: which of two leaves it is, nothing tells */
		counts.skipped++;
	} else if (ours.end == STACKTAP_END_NO_RULE && ours.count <= callers->count + 1 &&
		   !memcmp(ours.pcs + 1, callers->pcs,
			   (ours.count - 1) * sizeof(callers->pcs[0]))) {
		/* a leaf whose caller keeps no frame record: how much it has on the stack, nothing tells */
		counts.we_ended++;
	} else if (counts.wrong++ < REPORTED_MAX) {
		print_stack("ours", &ours);
		print_stack("callers", callers);
	}
}

static void compare(Dwfl *dwfl, const struct tracee *target, const struct tracee_regs *regs)
{
	struct stack ours = { 0 }, theirs;
	uint32_t common;
	bool is_wrong;

	walk_ours(target, regs, &ours);
	walk_theirs(dwfl, target, &theirs);
	drop_misled(dwfl, &theirs);
	is_wrong = is_strange(&ours, &theirs);
	drop_guess(&theirs);
	if (theirs.count > 0 && theirs.count < ours.count &&
	    needs_saved(theirs.pcs[theirs.count - 1]))
		theirs.end = STACKTAP_END_NO_RULE;
	common = min_of(ours.count, theirs.count);
	is_wrong |= memcmp(ours.pcs, theirs.pcs, common * sizeof(ours.pcs[0])) != 0;
	/* who says to have reached the end must not have fewer frames than the other */
	is_wrong |= ours.end == STACKTAP_END_COMPLETE && ours.count < theirs.count;
	is_wrong |= theirs.end == STACKTAP_END_COMPLETE && theirs.count < ours.count;
	counts.compared++;
	counts.ends[ours.end]++;
	counts.frames += ours.count;
	if (ours.count == theirs.count && ours.end == theirs.end) {
		is_wrong |= ours.exact_count != theirs.exact_count ||
			    memcmp(ours.exact, theirs.exact,
				   ours.exact_count * sizeof(ours.exact[0])) != 0;
		counts.equal += !is_wrong;
	} else if (!is_wrong) {
		counts.we_ended += ours.end != STACKTAP_END_COMPLETE;
		counts.they_ended += theirs.end != STACKTAP_END_COMPLETE;
	}
	if (is_wrong && counts.wrong++ < REPORTED_MAX) {
		print_stack("ours", &ours);
		print_stack("libdwfl", &theirs);
	}
}

/* Step one thread up to its next breakpoint, or @limit instructions; its status then. */
static int step(Dwfl *dwfl, const struct tracee *target, uint64_t every, uint64_t limit)
{
	struct step step = { 0 };
	struct tracee_regs regs;
	bool has_cfi, is_due;
	int status = 0, number = 0;

	for (uint64_t i = 0; i < limit; i++) {
		if (ptrace(PTRACE_SINGLESTEP, target->tid, 0, number) < 0 ||
		    waitpid(target->tid, &status, __WALL) < 0)
			tracee_die("single-step");
		if (!WIFSTOPPED(status) || status >> 16)
			return status;
		number = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		tracee_regs(target->tid, &regs);
		counts.steps++;
		is_due = coverage_add(dwfl, regs.pc, &has_cfi) || i % every == 0;
		if (!TRACEE_CFI_HAS_GAPS || has_cfi) {
			if (is_due)
				compare(dwfl, target, &regs);
		} else if (step.before.pc) {
			follow(target, &step);
			if (is_due && step.has_callers)
				compare_followed(target, &regs, &step.callers);
		}
		step.before = regs;
		step.had_cfi = has_cfi;
		if (!number && tracee_is_at_breakpoint(target->tid))
			return status;
	}
	return status;
}

/* The program has made a thread, or a child by vfork(): step that one from its first instruction on, then let it go. */
static void step_thread(Dwfl *dwfl, pid_t pid, uint64_t every)
{
	struct tracee target = { .pid = pid };
	unsigned long tid;
	int status;

	if (ptrace(PTRACE_GETEVENTMSG, pid, 0, &tid) < 0)
		tracee_die("new thread");
	target.tid = (pid_t)tid;
	if (waitpid(target.tid, &status, __WALL) < 0)
		tracee_die("new thread");
	status = step(dwfl, &target, every, THREAD_STEPS);
	if (WIFSTOPPED(status) && ptrace(PTRACE_DETACH, target.tid, 0, 0) < 0)
		tracee_die("detach");
}

static void trace(pid_t pid, uint64_t every)
{
	struct tracee target = { .pid = pid, .tid = pid };
	bool is_stepping = false;
	Dwfl *dwfl = NULL;
	int status, number = 0;

	if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, pid, 0,
		   PTRACE_O_TRACECLONE | PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL) < 0)
		tracee_die("trace");
	/* the dynamic linker's first instructions have nothing above them, nor has _start() */
	dwfl = load(pid, dwfl);
	step(dwfl, &target, every, THREAD_STEPS);
	tracee_run_to(pid, tracee_entry(pid));
	dwfl = load(pid, dwfl);
	is_stepping = true;
	for (;;) {
		if (is_stepping) {
			status = step(dwfl, &target, every, UINT64_MAX);
			number = 0;
		} else if (ptrace(PTRACE_CONT, pid, 0, number) < 0 ||
			   waitpid(pid, &status, 0) < 0) {
			tracee_die("continue");
		}
		if (!WIFSTOPPED(status))
			break;
		number = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		if (status >> 16) {
			step_thread(dwfl, pid, every);
		} else if (!number && (is_stepping || tracee_is_at_breakpoint(pid))) {
			is_stepping = !is_stepping;
			if (is_stepping)
				dwfl = load(pid, dwfl);
		}
	}
	unload(dwfl);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "unwind_live: the program did not end well: %#x\n", status);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	uint64_t every = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	pid_t pid;

	if (argc < 3 || every == 0) {
		fputs("usage: unwind_live STEPS PROGRAM [ARGUMENT...]\n", stderr);
		return 2;
	}
	/* libdwfl would ask the network for debug files */
	unsetenv("DEBUGINFOD_URLS");
	pid = fork();
	if (pid < 0)
		tracee_die("fork");
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) == 0)
			execv(argv[2], argv + 2);
		_exit(127);
	}
	trace(pid, every);
	printf("{\"steps\": %" PRIu64 ", \"compared\": %" PRIu64 ", \"followed\": %" PRIu64 ", \"skipped\": %" PRIu64 ", \"equal\": %" PRIu64 ", \"we_ended\": %" PRIu64
	       ", \"they_ended\": %" PRIu64 ", \"misled\": %" PRIu64 ", \"frames\": %" PRIu64 ", \"by_fp\": %" PRIu64
	       ", \"complete\": %" PRIu64 ", \"no_rule\": %" PRIu64 ", \"bad_frame\": %" PRIu64
	       ", \"wrong\": %" PRIu64 ", \"functions\": ", counts.steps, counts.compared, counts.followed, counts.skipped,
	       counts.equal, counts.we_ended, counts.they_ended, counts.misled, counts.frames, counts.by_fp,
	       counts.ends[STACKTAP_END_COMPLETE], counts.ends[STACKTAP_END_NO_RULE],
	       counts.ends[STACKTAP_END_BAD_FRAME], counts.wrong);
	coverage_print();
	puts("}");
	return counts.wrong != 0;
}
