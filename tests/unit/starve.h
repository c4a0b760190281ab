/* SPDX-License-Identifier: Apache-2.0 */
/* A process that has no CPU, as on a host with too much to do. */
#ifndef STACKTAP_TESTS_STARVE_H
#define STACKTAP_TESTS_STARVE_H

#include <sys/types.h>

/* This process, and those which it starts from now on, have one CPU between them. */
void starve_confine(void);
/* @pid, one of those, hardly gets it until starve_end(). */
void starve_begin(pid_t pid);
/* As before the one and the other, but for @pid and what it started. Before any assertion on what came of it. */
void starve_end(void);

#endif /* STACKTAP_TESTS_STARVE_H */
