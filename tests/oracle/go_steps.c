// SPDX-License-Identifier: Apache-2.0
/*
 * Runs a program of Go for x86_64 by single steps and holds the rules of its code against what the processor does: from each
 * instruction to the next the caller's stack pointer stays the same; behind a call it is eight bytes above the stack
 * pointer, and where a function returns to the stack pointer is what the rule at its `ret' said. So each rule follows
 * from the one before, whatever table it was made from.
 *
 * usage: go_steps STEPS PROGRAM [ARGUMENT...] < ROWS	rows as `stacktap unwind-info' prints them
 *
 * Prints steps, those between two rules, instructions that had a rule, and steps that broke one; each of the latter before.
 * Where either end is without a rule a step tells nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS_MAX = 256, LINE_MAX_BYTES = 256, PUSH_MAX = 2, WRONG_MAX = 20, WORD = 8, SPECIAL = -1 };

struct row {
	uint64_t start;
	int64_t cfa;		/* bytes above the stack pointer */
};

struct thread {
	pid_t tid;
	bool is_known;		/* where it was */
	uint64_t ip, sp;
};

static struct row *rows;
static size_t row_count, row_capacity;
static struct thread threads[THREADS_MAX];
static size_t thread_count;
static uint64_t steps, checked, wrong;
static uint8_t *seen;
static uint64_t seen_start, seen_bytes;

static bool read_rows(void)
{
	char line[LINE_MAX_BYTES];

	while (fgets(line, sizeof(line), stdin)) {
		struct row row;
		char *rule;

		row.start = strtoull(line, &rule, 16);
		if (rule - line != 16)
			continue;
		if (row_count == row_capacity) {
			row_capacity = row_capacity ? row_capacity * 2 : 1024;
			rows = reallocarray(rows, row_capacity, sizeof(*rows));
			if (!rows)
				return false;
		}
		row.cfa = strstr(rule, " ra=[cfa-8]") && sscanf(rule, " cfa=sp+%" SCNd64, &row.cfa) == 1 ? row.cfa : SPECIAL;
		rows[row_count++] = row;
	}
	if (row_count < 2)
		return false;
	seen_start = rows[0].start;
	seen_bytes = rows[row_count - 1].start - seen_start;
	seen = calloc(1, seen_bytes);
	return seen;
}

static int64_t cfa_at(uint64_t ip)
{
	size_t first = 0, last = row_count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (rows[middle].start <= ip)
			first = middle + 1;
		else
			last = middle;
	}
	/* the last row has no end */
	return first && first < row_count ? rows[first - 1].cfa : SPECIAL;
}

/* Only x86_64 has both of these names; elsewhere nothing is stepped. */
static bool get_registers(pid_t tid, uint64_t *ret_ip, uint64_t *ret_sp)
{
#ifdef __x86_64__
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs) < 0)
		return false;
	*ret_ip = regs.rip;
	*ret_sp = regs.rsp;
	return true;
#else
	(void)tid;
	*ret_ip = *ret_sp = 0;
	return false;
#endif
}

static struct thread *thread_of(pid_t tid)
{
	for (size_t i = 0; i < thread_count; i++)
		if (threads[i].tid == tid)
			return &threads[i];
	if (thread_count == THREADS_MAX)
		return NULL;
	threads[thread_count] = (struct thread){ .tid = tid };
	return &threads[thread_count++];
}

static void check(const struct thread *thread, uint64_t ip, uint64_t sp)
{
	const int64_t before = cfa_at(thread->ip), after = cfa_at(ip);
	uint64_t wanted = thread->sp + (uint64_t)before;

	if (before == SPECIAL || after == SPECIAL)
		return;
	if (ip - seen_start < seen_bytes)
		seen[ip - seen_start] = 1;
	checked++;
	if (sp + (uint64_t)after == wanted)
		return;
	/* further than a push or pop: a call, or a return */
	if (ip - thread->ip > PUSH_MAX && (sp == thread->sp - WORD ? after == WORD : sp == wanted && before == WORD))
		return;
	if (++wrong <= WRONG_MAX)
		printf("%" PRIx64 " sp=%" PRIx64 " cfa=sp+%" PRId64 ", then %" PRIx64 " sp=%" PRIx64 " cfa=sp+%" PRId64 "\n", thread->ip, thread->sp, before, ip, sp, after);
}

/* The signal to go on with. */
static int see(pid_t tid, int status)
{
	struct thread *thread = thread_of(tid);
	const int sig = WSTOPSIG(status);
	uint64_t ip, sp;

	/* a new thread, or one that another was made by */
	if (!thread || status >> 16 || sig == SIGSTOP)
		return 0;
	if (!get_registers(tid, &ip, &sp))
		return 0;
	steps++;
	if (thread->is_known && sig == SIGTRAP)
		check(thread, ip, sp);
	/* where a signal handler begins is no next instruction */
	thread->is_known = sig == SIGTRAP;
	thread->ip = ip;
	thread->sp = sp;
	return sig == SIGTRAP ? 0 : sig;
}

int main(int argc, char **argv)
{
	const uint64_t limit = argc > 2 ? strtoull(argv[1], NULL, 10) : 0;
	uint64_t addresses = 0;
	pid_t pid, tid;
	int status;

	if (!limit || !read_rows()) {
		fprintf(stderr, "usage: go_steps STEPS PROGRAM [ARGUMENT...] < ROWS\n");
		return 2;
	}
	pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execv(argv[2], argv + 2);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL) < 0) {
		fprintf(stderr, "go_steps: %s: %s\n", argv[2], strerror(errno));
		return 1;
	}
	ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);
	while (steps < limit && (tid = waitpid(-1, &status, __WALL)) > 0) {
		if (!WIFSTOPPED(status)) {
			if (tid == pid)
				break;
			continue;
		}
		ptrace(PTRACE_SINGLESTEP, tid, NULL, (void *)(intptr_t)see(tid, status));
	}
	for (uint64_t i = 0; i < seen_bytes; i++)
		addresses += seen[i];
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", steps, checked, addresses, wrong);
	return 0;
}
