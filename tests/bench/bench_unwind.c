// SPDX-License-Identifier: Apache-2.0
/*
 * What unwind tables cost: time and bytes to compile large objects of this machine, and time per
 * frame of a walk by tables and by frame pointers, 38 frames deep, in this process. Prints one JSON
 * object per line.
 */
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "symbol/elf.h"
#include "unwind/compile.h"

struct stack {
	uint64_t start, end;
};

static inline int unwind_read_word(void *memory, uint64_t address, __u64 *ret_value)
{
	const struct stack *stack = memory;

	if (address < stack->start || address >= stack->end)
		return -1;
	*ret_value = *(const volatile __u64 *)(uintptr_t)address;
	return 0;
}

#include <stacktap/unwind.h>

enum {
	MAPPINGS_MAX = 64,
	DEPTH = 32,		/* with main's callers and the rest 38 or so */
	FRAMES_MAX = 128,
	WALKS = 20000,
	ROUNDS = 5,
};

#define ADDRESS_LIMIT 0x7ffffffff000ULL
#define MEMORY_LIMIT ((size_t)1 << 30)

static struct unwind_mapping mappings[MAPPINGS_MAX];
static struct unwind_table tables[MAPPINGS_MAX];
static uint32_t mapping_count;
static uint64_t stack_end;

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static int compile(const char *path, void **ret_data, size_t *ret_size,
		   struct compile_stats *ret_stats)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	struct elf elf;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	r = elf_open(&elf, fd, (uint64_t)st.st_size, 0);
	if (r < 0)
		return r;
	r = compile_elf(&elf, MEMORY_LIMIT, ret_data, ret_size, ret_stats);
	elf_close(&elf);
	return r;
}

static int bench_compile(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	uint64_t best = UINT64_MAX;
	struct compile_stats stats;
	size_t size = 0;

	/* the first one warms the page cache */
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = cpu_ns();
		void *data;
		int r;

		r = compile(path, &data, &size, &stats);
		if (r < 0)
			return r;
		best = min_of(best, cpu_ns() - start);
		free(data);
	}
	printf("{\"name\": \"unwind table, %s, compile\", \"value\": %.1f, \"unit\": \"ms\", "
	       "\"note\": \"%zu KiB of memory at most, %" PRIu64 " frame entries\"}\n",
	       name, (double)best / NSEC_PER_MSEC, stats.memory / 1024, stats.fdes);
	printf("{\"name\": \"unwind table, %s, size\", \"value\": %.3f, "
	       "\"unit\": \"of .eh_frame\", "
	       "\"note\": \"%zu of %" PRIu64 " bytes\"}\n",
	       name, (double)size / (double)stats.eh_bytes, size, stats.eh_bytes);
	return 0;
}

static int add_object(struct dl_phdr_info *info, size_t info_size, void *ctx)
{
	const char *path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
	struct compile_stats stats;
	size_t size;
	void *data;

	(void)info_size;
	(void)ctx;
	for (unsigned int i = 0; i < info->dlpi_phnum && mapping_count < MAPPINGS_MAX; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + phdr->p_vaddr;

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X) ||
		    compile(path, &data, &size, &stats) < 0 ||
		    unwind_table_check(data, size, &tables[mapping_count]) < 0)
			continue;
		mappings[mapping_count] = (struct unwind_mapping){
			.start = start,
			.end = start + phdr->p_memsz,
			.bias = info->dlpi_addr,
			.table = &tables[mapping_count],
		};
		mapping_count++;
	}
	return 0;
}

static int compare_mappings(const void *a, const void *b)
{
	const struct unwind_mapping *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Nanoseconds per frame, the best of some rounds, and how a walk ends. */
static int bench_walk(const struct unwind_walk *walk, double *ret_ns, uint32_t *ret_frames)
{
	struct stack bounds = { .start = walk->sp, .end = stack_end };
	int end = STACKTAP_END_NONE;

	*ret_ns = 1e9;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start = cpu_ns(), frames = 0;

		for (int i = 0; i < WALKS; i++) {
			struct unwind_walk w = *walk;

			unwind_walk_begin(&w);
			end = unwind_walk_run(&w, &bounds, FRAMES_MAX);
			frames += w.count;
			*ret_frames = w.count;
		}
		*ret_ns = min_of(*ret_ns, (double)(cpu_ns() - start) / (double)frames);
	}
	return end;
}

static __attribute__((noinline)) int walk_here(void)
{
	static __u64 ips[FRAMES_MAX];
	static uint16_t exact[1];
	struct unwind_walk walk = {
		.fp = (uintptr_t)__builtin_frame_address(0),
		.machine = EM_X86_64,
		.address_limit = ADDRESS_LIMIT,
		.mappings = mappings, .mapping_count = mapping_count,
		.ips = ips, .max = FRAMES_MAX, .exact = exact, .max_exact = 1,
	};
	uint32_t by_tables, by_fp;
	double tables_ns, fp_ns;
	uint64_t sp;

#ifdef __x86_64__
	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1" : "=r"(walk.pc), "=r"(sp));
#else
	walk.machine = EM_AARCH64;
	__asm__ volatile("adr %0, .\n\tmov %1, sp" : "=r"(walk.pc), "=r"(sp));
#endif
	walk.sp = sp;
	if (bench_walk(&walk, &tables_ns, &by_tables) != STACKTAP_END_COMPLETE)
		return -EINVAL;
	/* this ends in the C library, which has none */
	walk.mapping_count = 0;
	bench_walk(&walk, &fp_ns, &by_fp);
	printf("{\"name\": \"walk by tables\", \"value\": %.1f, \"unit\": \"ns/frame\", "
	       "\"note\": \"%u frames\"}\n", tables_ns, by_tables);
	printf("{\"name\": \"walk by frame pointers, the same code\", \"value\": %.1f, "
	       "\"unit\": \"ns/frame\", \"note\": \"%u frames\"}\n", fp_ns, by_fp);
	return 0;
}

static __attribute__((noinline)) int recurse(unsigned int depth)
{
	volatile int r = depth ? recurse(depth - 1) : walk_here();

	return r;
}

int main(int argc, char **argv)
{
	static const char *const patterns[] = {
		"/lib/*-linux-gnu/libc.so.6", "/usr/lib/*-linux-gnu/libpython3.*.so.1.0",
		"/usr/lib/*-linux-gnu/libcrypto.so.3", "/usr/lib/*-linux-gnu/libstdc++.so.6",
		"/usr/lib/gcc/*-linux-gnu/*/cc1plus", "/usr/lib/*-linux-gnu/libLLVM-*.so.1",
	};
	int r = 0;

	(void)argc;
	stack_end = (uintptr_t)argv;
	for (size_t i = 0; i < ARRAY_SIZE(patterns) && r == 0; i++) {
		glob_t found;

		if (glob(patterns[i], 0, NULL, &found) != 0)
			continue;
		r = bench_compile(found.gl_pathv[found.gl_pathc - 1]);
		globfree(&found);
	}
	if (r == 0) {
		dl_iterate_phdr(add_object, NULL);
		qsort(mappings, mapping_count, sizeof(mappings[0]), compare_mappings);
		r = recurse(DEPTH);
	}
	if (r < 0)
		fprintf(stderr, "bench_unwind: %s\n", strerror(-r));
	return r < 0;
}
