// SPDX-License-Identifier: Apache-2.0
/*
 * A runtime that compiles two functions into memory of its own and burns CPU in each: it tells of the first one in a
 * perf map, of the second in a jitdump, as it maps that executable.
 *
 *	jit DIRECTORY MS	the jitdump is DIRECTORY/jit-PID.dump
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "burn.h"

enum { PAGE = 65536 };	/* at least */

/* Counts its argument down, with a frame. */
static const uint32_t code[] = {
#if defined(__x86_64__)
	0xe5894855,	/* push %rbp; mov %rsp,%rbp */
	0x75cfff48,	/* dec %rdi; jne -5, to the dec */
	0x90c35dfb,	/* pop %rbp; ret; nop */
#else
	0xa9bf7bfd,	/* stp x29, x30, [sp, #-16]! */
	0x910003fd,	/* mov x29, sp */
	0xf1000400,	/* subs x0, x0, #1 */
	0x54ffffe1,	/* b.ne to the subs */
	0xa8c17bfd,	/* ldp x29, x30, [sp], #16 */
	0xd65f03c0,	/* ret */
#endif
};

static void *compile(void)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		exit(1);
	memcpy(page, code, sizeof(code));
	if (mprotect(page, PAGE, PROT_READ | PROT_EXEC) < 0)
		exit(1);
	__builtin___clear_cache(page, (char *)page + sizeof(code));
	return page;
}

static void tell_map(const void *at, const char *name)
{
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "a");
	/* what was there before, then what is there now */
	if (!map || fprintf(map, "%lx %x stale_work\n0x%lx 0x%zx %s\n", (unsigned long)at, PAGE,
			    (unsigned long)at, sizeof(code), name) < 0 || fclose(map))
		exit(1);
}

static void tell_dump(const char *directory, const void *at, const char *name)
{
	const uint32_t header[] = { 0x4a695444, 1, 40, 0, 0, (uint32_t)getpid(), 0, 0, 0, 0 };
	const uint32_t record[] = { 0, (uint32_t)(56 + strlen(name) + 1 + sizeof(code)), 0, 0,
				    (uint32_t)getpid(), (uint32_t)getpid() };
	const uint64_t load[] = { (uintptr_t)at, (uintptr_t)at, sizeof(code), 1 };
	char path[256];
	FILE *dump;

	snprintf(path, sizeof(path), "%s/jit-%d.dump", directory, getpid());
	dump = fopen(path, "w+");
	if (!dump || fwrite(header, sizeof(header), 1, dump) != 1 || fflush(dump) ||
	    mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED ||
	    fwrite(record, sizeof(record), 1, dump) != 1 || fwrite(load, sizeof(load), 1, dump) != 1 ||
	    fwrite(name, strlen(name) + 1, 1, dump) != 1 ||
	    fwrite(code, sizeof(code), 1, dump) != 1 || fclose(dump))
		exit(1);
}

static NOINLINE void run(void *at, int ms)
{
	uint64_t end = burn_now_ns() + (uint64_t)ms * 1000000u;
	void (*work)(uint64_t);

	memcpy(&work, &at, sizeof(work));
	while (burn_now_ns() < end)
		work(100000);
}

int main(int argc, char **argv)
{
	void *mapped = compile(), *dumped = compile();

	if (argc != 3)
		return 2;
	tell_map(mapped, "mapped_work");
	tell_dump(argv[1], dumped, "dumped_work");
	run(mapped, atoi(argv[2]));
	run(dumped, atoi(argv[2]));
	return 0;
}
