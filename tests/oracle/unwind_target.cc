// SPDX-License-Identifier: Apache-2.0
// What is single-stepped: code that is hard to unwind, between two breakpoint instructions each.
#include <initializer_list>

#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define BREAK __asm__ volatile("int3")

static volatile unsigned long sink;
static char from[4096], to[4096];

NOINLINE static unsigned long leaf(unsigned long x)
{
	return x * 3 + 1;
}

NOINLINE static unsigned long many_registers(unsigned long a, unsigned long b, unsigned long c)
{
	unsigned long d = leaf(a), e = leaf(b), f = leaf(c), g = leaf(d), h = leaf(e), i = leaf(f);

	return leaf(a + b + c) + leaf(d + e) + leaf(f + g) + leaf(h + i) + d * e * f * g * h * i;
}

NOINLINE static unsigned long recursion(unsigned int depth)
{
	return depth ? recursion(depth - 1) * 5 + leaf(depth) : many_registers(1, 2, 3);
}

NOINLINE static unsigned long variable(size_t size)
{
	char *memory = static_cast<char *>(alloca(size));

	memset(memory, 7, size);
	sink += static_cast<unsigned char>(memory[size / 2]);
	return leaf(size) + recursion(2);
}

NOINLINE static unsigned long realigned(size_t size, unsigned long x)
{
	alignas(64) volatile unsigned char block[256];
	char *memory = static_cast<char *>(alloca(size));

	memset(memory, 1, size);
	for (unsigned int i = 0; i < sizeof(block); i += 16)
		block[i] = static_cast<unsigned char>(x + i);
	sink += static_cast<unsigned char>(memory[0]);
	return recursion(1) + block[x % 256];
}

NOINLINE static unsigned long large_frame(unsigned long x)
{
	volatile unsigned char block[20000];

	block[x % sizeof(block)] = static_cast<unsigned char>(x);
	return leaf(block[0]) + recursion(1);
}

NOINLINE static unsigned long last_call(unsigned long x)
{
	sink++;
	return many_registers(x, x + 1, x + 2);
}

static int compare(const void *a, const void *b)
{
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

struct Guard {
	~Guard() { sink = sink + recursion(1); }
};

NOINLINE static void thrower(int depth)
{
	Guard guard;

	if (depth == 0)
		throw depth;
	thrower(depth - 1);
	sink++;
}

static void handler(int, siginfo_t *info, void *context)
{
	ucontext_t *uc = static_cast<ucontext_t *>(context);

	if (info->si_signo == SIGILL)
		uc->uc_mcontext.gregs[REG_RIP] += 2;
	sink += recursion(3);
}

/* interrupted where nothing is on the stack but the return address */
NOINLINE static unsigned long interrupted(unsigned long x)
{
	__asm__ volatile("ud2");
	return x;
}

static ucontext_t main_context, other_context;

static void on_other_stack()
{
	sink += recursion(2);
	swapcontext(&other_context, &main_context);
}

static jmp_buf jump;

NOINLINE static void jumper(unsigned int depth)
{
	if (depth)
		jumper(depth - 1);
	/* every other function of this file has returned by then, which makes it large */
	if (++sink > 1)
		longjmp(jump, 1);
}

static void *thread(void *)
{
	sink += recursion(4);
	return nullptr;
}

/* code as a JIT compiler writes it: with a frame pointer, without call frame information */
static void jit()
{
	static const unsigned char code[] = {
		0x55, 0x48, 0x89, 0xe5,			/* push rbp; mov rbp, rsp */
		0x48, 0x83, 0xec, 0x10,			/* sub rsp, 16 */
		0xff, 0xd7,				/* call rdi */
		0xc9, 0xc3,				/* leave; ret */
	};
	void *memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	typedef void (*function)(void (*)());

	memcpy(memory, code, sizeof(code));
	mprotect(memory, 4096, PROT_READ | PROT_EXEC);
	reinterpret_cast<function>(memory)([] { sink += recursion(2); });
}

static void stack_and_signals()
{
	static char alternate[65536];
	stack_t stack = {};
	struct sigaction action = {};

	stack.ss_sp = alternate;
	stack.ss_size = sizeof(alternate);
	sigaltstack(&stack, nullptr);
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
	sigaction(SIGILL, &action, nullptr);
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGUSR1, &action, nullptr);
	BREAK;
	sink += interrupted(5);
	raise(SIGUSR1);
	BREAK;
}

int main(int argc, char **)
{
	static char stack[65536];
	int numbers[] = { 5, 3, 9, 1, 7, 2 };
	pthread_t id;
	pid_t pid;

	BREAK;
	sink += recursion(5);
	sink += variable(static_cast<size_t>(argc) * 333);
	sink += realigned(static_cast<size_t>(argc) * 100, 7);
	sink += large_frame(77);
	sink += last_call(3);
	for (size_t size : { 1UL, 15UL, 31UL, 64UL, 100UL, 300UL, 4000UL }) {
		memcpy(to, from, size);
		memmove(to + 1, to, size / 2);
		memset(from, 3, size);
		sink += strlen(from);
	}
	qsort(numbers, 6, sizeof(numbers[0]), compare);
	BREAK;

	BREAK;
	/* through a PLT that is bound at the first call */
	sink += static_cast<unsigned long>(getppid());
	sink += static_cast<unsigned long>(getppid());
	sink += static_cast<unsigned long>(snprintf(to, sizeof(to), "%d %s %g", 5, "x", 1.5));
	BREAK;

	stack_and_signals();

	BREAK;
	if (!setjmp(jump))
		jumper(4);
	getcontext(&other_context);
	other_context.uc_stack.ss_sp = stack;
	other_context.uc_stack.ss_size = sizeof(stack);
	makecontext(&other_context, on_other_stack, 0);
	swapcontext(&main_context, &other_context);
	jit();
	BREAK;

	BREAK;
	try {
		thrower(3);
	} catch (int) {
		sink++;
	}
	BREAK;

	BREAK;
	pid = vfork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, nullptr, 0);
	pthread_create(&id, nullptr, thread, nullptr);
	pthread_join(id, nullptr);
	BREAK;
	return 0;
}
