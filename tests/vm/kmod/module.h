/* SPDX-License-Identifier: Apache-2.0 */
/* What the module as a whole holds. */
#ifndef KMODTEST_MODULE_H
#define KMODTEST_MODULE_H

#include <stdbool.h>
#include <stdint.h>

/* Sessions that there are, or UINT32_MAX when the family does not answer. */
uint32_t module_sessions(void);
/* Wait until none is left: what a killed owner had goes a little after it. */
bool module_wait_idle(void);
/*
 * No session, table or mapping list is left, and rings may take all that they may: for a module
 * that was loaded with ring_limit_mib a power of two. Prints what is wrong.
 */
bool module_is_empty(void);
/* A number from the environment, for those who want more of a test, or @otherwise. */
unsigned long module_setting(const char *name, unsigned long otherwise);
/* Write a parameter of the module. */
bool module_set(const char *parameter, unsigned int value);

#endif /* KMODTEST_MODULE_H */
