// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "load.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t load_sink;

/* long enough between calls that being outside of it is rare */
__attribute__((noinline, section(".text.load_inner"))) static void load_inner(unsigned int rounds)
{
	uint64_t x = load_sink;

	/* asking for the frame's address is what makes gcc set one up in a leaf */
	__asm__ volatile("" : : "r" (__builtin_frame_address(0)));
	while (rounds--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	load_sink = x;
}

__attribute__((noinline, section(".text.load_outer"))) static void load_outer(unsigned int rounds)
{
	load_inner(rounds);
	load_sink++;
}

static uint64_t load_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

void load_burn(unsigned int ms)
{
	uint64_t end = load_now_ms() + ms;

	while (load_now_ms() < end)
		load_outer(1000000);
}

bool load_in_inner(uint64_t ip)
{
	return ip - (uint64_t)(uintptr_t)load_inner < 256;
}

bool load_in_outer(uint64_t ip)
{
	return ip - (uint64_t)(uintptr_t)load_outer < 256;
}

pid_t load_fork(unsigned int cpu, bool kernel)
{
	pid_t pid = fork();
	cpu_set_t set;
	int zero;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	if (kernel) {
		static char buffer[1 << 20];

		zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
		while (read(zero, buffer, sizeof(buffer)) > 0)
			;
		_exit(1);
	}
	for (;;)
		load_burn(1000);
}

void load_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

void load_fault(unsigned int pages)
{
	size_t page = sysconf(_SC_PAGESIZE), i;
	char *area = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		exit(1);
	madvise(area, pages * page, MADV_NOHUGEPAGE);
	for (i = 0; i < pages; i++)
		area[i * page] = 1;
	munmap(area, pages * page);
}

bool load_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

bool load_set_online(unsigned int cpu, bool online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	return load_write(path, online ? "1" : "0");
}
