// SPDX-License-Identifier: Apache-2.0
/*
 * A program whose profile is known: main -> a -> b -> c -> hot_a | hot_b | hot_c, the CPU time of
 * the three leaves split as asked and measured by the thread's own CPU clock. What it prints when
 * it ends is the truth a profile of it is held against.
 *
 * usage: known_split SECONDS [SHARE_A SHARE_B SHARE_C]     SECONDS 0: until SIGTERM or SIGINT
 *
 * To be compiled with frame pointers in every function and no sibling calls.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* One call of a leaf aims at this; far above 1 ms, so that a calibration made while the host was
 * busy cannot bring a call below it. */
#define BURST_NS 5000000ULL
#define N_LEAVES 3

struct leaf {
	const char *name;
	void (*run)(uint64_t rounds);
	double share;
	uint64_t rounds;
	uint64_t ns;
	uint64_t calls;
	uint64_t shortest_ns;
};

void hot_a(uint64_t rounds);
void hot_b(uint64_t rounds);
void hot_c(uint64_t rounds);
void a(struct leaf *leaf);
void b(struct leaf *leaf);
void c(struct leaf *leaf);
uint64_t clock_ns(clockid_t clock);
void frame_keep(void);

static volatile sig_atomic_t stopping;
static volatile uint64_t sink;

/*
 * The system call is made in place: the C library keeps no frame pointers, so a sample in its
 * wrapper would lack the caller's frame.
 */
__attribute__((noinline)) uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts = { 0 };
	long ret;

#if defined(__x86_64__)
	__asm__ volatile("syscall" : "=a"(ret) : "0"(SYS_clock_gettime), "D"((long)clock), "S"(&ts)
			 : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = SYS_clock_gettime;
	register long x0 __asm__("x0") = clock;
	register long x1 __asm__("x1") = (long)&ts;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
	ret = x0;
#else
#error "no system call known for this architecture"
#endif
	if (ret)
		abort();
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/*
 * x86 gcc leaves the frame out of a function that neither calls nor spills, whatever it is told,
 * and then the caller's name is missing from every sample of it. So the leaves call this, once.
 */
__attribute__((noinline)) void frame_keep(void)
{
	__asm__ volatile("");
}

/* Three bodies that differ, so that no linker can fold them into one. */
__attribute__((noinline)) void hot_a(uint64_t rounds)
{
	uint64_t x = 1;

	frame_keep();
	while (rounds--)
		x = x * 6364136223846793005ULL + 1;
	sink = x;
}

__attribute__((noinline)) void hot_b(uint64_t rounds)
{
	uint64_t x = 2;

	frame_keep();
	while (rounds--)
		x = (x ^ (x >> 7)) + 0x9e3779b97f4a7c15ULL;
	sink = x;
}

__attribute__((noinline)) void hot_c(uint64_t rounds)
{
	uint64_t x = 3;

	frame_keep();
	while (rounds--)
		x = (x << 5) - x + 11;
	sink = x;
}

__attribute__((noinline)) void c(struct leaf *leaf)
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t ns;

	leaf->run(leaf->rounds);
	ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	leaf->ns += ns;
	leaf->calls++;
	if (ns < leaf->shortest_ns)
		leaf->shortest_ns = ns;
}

__attribute__((noinline)) void b(struct leaf *leaf)
{
	c(leaf);
	__asm__ volatile("");
}

__attribute__((noinline)) void a(struct leaf *leaf)
{
	b(leaf);
	__asm__ volatile("");
}

static void on_signal(int number)
{
	(void)number;
	stopping = 1;
}

/* The leaf furthest behind its share: the split is reached whatever the calls cost. */
static struct leaf *leaf_next(struct leaf leaves[N_LEAVES])
{
	struct leaf *next = NULL;
	double total = 0, most = 0;

	for (int i = 0; i < N_LEAVES; i++)
		total += (double)leaves[i].ns;
	for (int i = 0; i < N_LEAVES; i++) {
		double behind = leaves[i].share * total - (double)leaves[i].ns;

		if (leaves[i].share > 0 && (!next || behind > most)) {
			next = &leaves[i];
			most = behind;
		}
	}
	return next;
}

/* Through the same frames as everything else; these few short calls are counted in ns only. */
static void leaf_calibrate(struct leaf *leaf)
{
	uint64_t before;

	leaf->rounds = 1 << 14;
	do {
		leaf->rounds *= 2;
		before = leaf->ns;
		a(leaf);
	} while (leaf->ns - before < BURST_NS);
	leaf->calls = 0;
	leaf->shortest_ns = UINT64_MAX;
}

static int parse_number(const char *text, double *ret_number)
{
	char *end;

	errno = 0;
	*ret_number = strtod(text, &end);
	if (errno || end == text || *end || !(*ret_number >= 0) || *ret_number > 1e9)
		return -EINVAL;
	return 0;
}

static void print(const struct leaf leaves[N_LEAVES], uint64_t wall_ns)
{
	const char *comma = "";
	uint64_t total = 0;

	for (int i = 0; i < N_LEAVES; i++)
		total += leaves[i].ns;
	printf("{\"pid\": %d, \"wall_ns\": %llu, \"cpu_ns\": %llu, \"leaf_ns\": %llu,\n"
	       " \"chain\": [\"main\", \"a\", \"b\", \"c\"],\n \"functions\": [",
	       getpid(), (unsigned long long)wall_ns,
	       (unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID), (unsigned long long)total);
	for (int i = 0; i < N_LEAVES; i++) {
		const struct leaf *leaf = &leaves[i];

		if (!leaf->ns)
			continue;
		printf("%s\n  {\"name\": \"%s\", \"share\": %.6f, \"ns\": %llu, \"calls\": %llu, "
		       "\"shortest_ns\": %llu}",
		       comma, leaf->name, (double)leaf->ns / (double)total,
		       (unsigned long long)leaf->ns, (unsigned long long)leaf->calls,
		       (unsigned long long)(leaf->calls ? leaf->shortest_ns : 0));
		comma = ",";
	}
	printf("\n]}\n");
}

int main(int argc, char **argv)
{
	struct leaf leaves[N_LEAVES] = {
		{ .name = "hot_a", .run = hot_a, .share = 60 },
		{ .name = "hot_b", .run = hot_b, .share = 30 },
		{ .name = "hot_c", .run = hot_c, .share = 10 },
	};
	struct sigaction action = { .sa_handler = on_signal };
	double seconds, sum = 0;
	uint64_t start, now, limit;

	if ((argc != 2 && argc != 2 + N_LEAVES) || parse_number(argv[1], &seconds))
		goto usage;
	for (int i = 0; i < N_LEAVES; i++) {
		if (argc > 2 && parse_number(argv[2 + i], &leaves[i].share))
			goto usage;
		sum += leaves[i].share;
	}
	if (sum <= 0)
		goto usage;

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	start = clock_ns(CLOCK_MONOTONIC);
	limit = (uint64_t)(seconds * 1e9);
	for (int i = 0; i < N_LEAVES; i++) {
		leaves[i].share /= sum;
		if (leaves[i].share > 0)
			leaf_calibrate(&leaves[i]);
	}
	do {
		a(leaf_next(leaves));
		now = clock_ns(CLOCK_MONOTONIC);
	} while (!stopping && (!limit || now - start < limit));
	print(leaves, now - start);
	return fflush(stdout) ? 1 : 0;

usage:
	fprintf(stderr, "usage: %s SECONDS [SHARE_A SHARE_B SHARE_C]\n", argv[0]);
	return 2;
}
