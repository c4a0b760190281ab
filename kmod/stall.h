/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_STALL_H
#define STACKTAP_KMOD_STALL_H

#include "cpu.h"

/*
 * Counters that go on counting while their overflow interrupts no longer come. Emulated and virtual
 * PMUs lose one at times, after which a counter has its whole width to go before the next. A CPU
 * that such a counter leaves out is found in a few seconds, its counter set anew and counted.
 */

/*
 * The session runs and @counter is hardware's. @busy_ns: of its CPU, since boot. Caller holds the
 * session's mutex.
 */
void st_stall_look(struct stacktap_counter *counter, u64 busy_ns);

#endif /* STACKTAP_KMOD_STALL_H */
