// SPDX-License-Identifier: Apache-2.0
/*
 * Processes that change what they are. Each phase burns CPU in a function whose name says what the
 * process is at that moment, so that a sample's attribution can be judged by its leaf alone.
 *
 *	images fork MS          parent burns in parent_work, the child in child_work, under other names
 *	images vfork PROGRAM MS vfork, the child execs PROGRAM after_exec MS
 *	images exec MS          burns in before_exec, then execs itself as after_exec
 *	images after_exec MS
 *	images dlopen LIB MS    loads LIB, burns in its plugin_work(ms), unloads, again, 5 times
 *	images mremap LIB MS    copies LIB's code to another address with mremap and burns there
 *	images churn N MS       N children one after the other, each burns MS in churn_work
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "burn.h"

static NOINLINE void parent_work(int ms) { BURN(ms); }
static NOINLINE void child_work(int ms) { BURN(ms); }
static NOINLINE void before_exec(int ms) { BURN(ms); }
static NOINLINE void after_exec(int ms) { BURN(ms); }
static NOINLINE void churn_work(int ms) { BURN(ms); }

static int do_fork(int ms)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_NAME, "img-child");
		child_work(ms);
		_exit(0);
	}
	prctl(PR_SET_NAME, "img-parent");
	printf("%d %d\n", getpid(), child);
	parent_work(ms);
	return waitpid(child, NULL, 0) < 0;
}

static int do_vfork(char *program, char *ms)
{
	pid_t child = vfork();

	if (!child) {
		execl(program, program, "after_exec", ms, NULL);
		_exit(127);
	}
	printf("%d %d\n", getpid(), child);
	parent_work(atoi(ms));
	return waitpid(child, NULL, 0) < 0;
}

static int do_dlopen(const char *path, int ms)
{
	for (int i = 0; i < 5; i++) {
		void *library = dlopen(path, RTLD_NOW);
		void (*work)(int);

		if (!library)
			return 1;
		*(void **)&work = dlsym(library, "plugin_work");
		work(ms);
		dlclose(library);
	}
	return 0;
}

static int do_mremap(const char *path, int ms)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*work)(int);
	uintptr_t page;
	char *where, *moved;

	if (!library)
		return 1;
	*(void **)&work = dlsym(library, "plugin_spin");
	page = (uintptr_t)work & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	where = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	moved = mremap((void *)page, (size_t)sysconf(_SC_PAGESIZE), (size_t)sysconf(_SC_PAGESIZE),
		       MREMAP_MAYMOVE | MREMAP_FIXED, where);
	if (moved == MAP_FAILED)
		return 1;
	*(uintptr_t *)&work = (uintptr_t)moved + ((uintptr_t)work - page);
	for (int spent = 0; spent < ms; spent++) {
		uint64_t end = burn_now_ns() + 1000000u;

		while (burn_now_ns() < end)
			work(20000);
	}
	_exit(0); /* the library's destructors would look for their page */
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "fork"))
		return do_fork(atoi(argv[2]));
	if (argc == 4 && !strcmp(argv[1], "vfork"))
		return do_vfork(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "exec")) {
		before_exec(atoi(argv[2]));
		execl("/proc/self/exe", "images", "after_exec", argv[2], NULL);
		return 1;
	}
	if (argc == 3 && !strcmp(argv[1], "after_exec")) {
		after_exec(atoi(argv[2]));
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "dlopen"))
		return do_dlopen(argv[2], atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "mremap"))
		return do_mremap(argv[2], atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "churn")) {
		for (int i = 0; i < atoi(argv[2]); i++) {
			pid_t child = fork();

			if (!child) {
				churn_work(atoi(argv[3]));
				_exit(0);
			}
			waitpid(child, NULL, 0);
		}
		return 0;
	}
	fprintf(stderr, "images: see the source for usage\n");
	return 2;
}
