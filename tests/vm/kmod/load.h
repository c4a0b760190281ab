/* SPDX-License-Identifier: Apache-2.0 */
/* Work for the CPUs, with a stack that tests know. */
#ifndef KMODTEST_LOAD_H
#define KMODTEST_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Burn the CPU that we run on for @ms of wall time, inside load_inner() inside load_outer(). */
void load_burn(unsigned int ms);
bool load_in_inner(uint64_t ip);
bool load_in_outer(uint64_t ip);

/* A process that burns on @cpu, or reads /dev/zero when @kernel, until it is killed. */
pid_t load_fork(unsigned int cpu, bool kernel);
void load_kill(pid_t pid);
/* All of @text into what exists. */
bool load_write(const char *path, const char *text);
bool load_set_online(unsigned int cpu, bool online);
/* Touch and drop fresh pages, to make page faults. */
void load_fault(unsigned int pages);

#endif /* KMODTEST_LOAD_H */
