// SPDX-License-Identifier: Apache-2.0
// What is single-stepped: code that is hard to unwind, between two breakpoint instructions each. The
// first one ends what is stepped from _start() on. With "memory" as argument: of the C library's
// variants of memcpy() and others that this processor gets; prints where in the library they are.
#include <initializer_list>

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
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

#ifdef __aarch64__
#define BREAK __asm__ volatile("brk #0" ::: "memory")
#define ILLEGAL __asm__ volatile("udf #0")
#define ILLEGAL_BYTES 4
#define PC(context) (context)->uc_mcontext.pc
#else
#define BREAK __asm__ volatile("int3" ::: "memory")
#define ILLEGAL __asm__ volatile("ud2")
#define ILLEGAL_BYTES 2
#define PC(context) (context)->uc_mcontext.gregs[REG_RIP]
#endif

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
		PC(uc) += ILLEGAL_BYTES;
	sink += recursion(3);
}

/* interrupted where nothing is on the stack but the return address */
NOINLINE static unsigned long interrupted(unsigned long x)
{
	ILLEGAL;
	return x;
}

static ucontext_t main_context, other_context;

/* leaves its stack for good; the second time it ends, and what it is linked to goes on */
static void on_other_stack(int round)
{
	sink += recursion(2);
	if (round == 0)
		swapcontext(&other_context, &main_context);
}

static void contexts()
{
	static char stack[65536];
	typedef void (*function)();

	for (int round = 0; round < 2; round++) {
		getcontext(&other_context);
		other_context.uc_stack.ss_sp = stack;
		other_context.uc_stack.ss_size = sizeof(stack);
		other_context.uc_link = &main_context;
		makecontext(&other_context, reinterpret_cast<function>(on_other_stack), 1, round);
		swapcontext(&main_context, &other_context);
	}
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
typedef void (*jit_function)(void (*)());

static jit_function make_jit()
{
#ifdef __aarch64__
	static const unsigned int code[] = {
		0xa9bf7bfd, 0x910003fd,			/* stp x29, x30, [sp, #-16]!; mov x29, sp */
		0xd63f0000,				/* blr x0 */
		0xa8c17bfd, 0xd65f03c0,			/* ldp x29, x30, [sp], #16; ret */
	};
#else
	static const unsigned char code[] = {
		0x55, 0x48, 0x89, 0xe5,			/* push rbp; mov rbp, rsp */
		0x48, 0x83, 0xec, 0x10,			/* sub rsp, 16 */
		0xff, 0xd7,				/* call rdi */
		0xc9, 0xc3,				/* leave; ret */
	};
#endif
	void *memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	char *bytes = static_cast<char *>(memory);

	memcpy(memory, code, sizeof(code));
	__builtin___clear_cache(bytes, bytes + sizeof(code));
	mprotect(memory, 4096, PROT_READ | PROT_EXEC);
	return reinterpret_cast<jit_function>(memory);
}

static void signals()
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

static int task(void *)
{
	sink += recursion(1);
	return 0;
}

static void threads()
{
	static char stack[65536];
	pthread_t id;
	pid_t pid;

	pid = vfork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, nullptr, 0);
	pthread_create(&id, nullptr, thread, nullptr);
	pthread_join(id, nullptr);
	pid = clone(task, stack + sizeof(stack), CLONE_VM, nullptr);
	waitpid(pid, nullptr, __WCLONE);
}

NOINLINE static void all_sizes()
{
	for (size_t size : { 1UL, 7UL, 15UL, 31UL, 64UL, 100UL, 300UL, 4000UL }) {
		memcpy(to, from, size);
		memmove(to + 1, to, size / 2);
		memset(from, 3, size);
		sink += strlen(from) + static_cast<unsigned>(memcmp(from, to, size));
	}
}

static void tell_variant(const char *name)
{
	void *function = dlsym(RTLD_DEFAULT, name);
	Dl_info info;

	if (dladdr(function, &info))
		fprintf(stderr, "variant %s %#lx\n", name,
			reinterpret_cast<unsigned long>(function) -
				reinterpret_cast<unsigned long>(info.dli_fbase));
}

int main(int argc, char **argv)
{
	jit_function jit = make_jit();
	int numbers[] = { 5, 3, 9, 1, 7, 2 };

	BREAK;
	if (argc > 1 && !strcmp(argv[1], "memory")) {
		all_sizes();
		BREAK;
		all_sizes();
		BREAK;
		tell_variant("memcpy");
		return 0;
	}

	BREAK;
	sink += recursion(5);
	sink += variable(static_cast<size_t>(argc) * 333);
	sink += realigned(static_cast<size_t>(argc) * 100, 7);
	sink += large_frame(77);
	sink += last_call(3);
	all_sizes();
	qsort(numbers, 6, sizeof(numbers[0]), compare);
	BREAK;

	BREAK;
	/* through a PLT that is bound at the first call */
	sink += static_cast<unsigned long>(getppid());
	sink += static_cast<unsigned long>(getppid());
	sink += static_cast<unsigned long>(snprintf(to, sizeof(to), "%d %s %g", 5, "x", 1.5));
	BREAK;

	signals();

	BREAK;
	if (!setjmp(jump))
		jumper(4);
	contexts();
	jit([] { sink += recursion(2); });
	BREAK;

	BREAK;
	try {
		thrower(3);
	} catch (int) {
		sink++;
	}
	BREAK;

	BREAK;
	threads();
	BREAK;
	return 0;
}
