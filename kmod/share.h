/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_SHARE_H
#define STACKTAP_KMOD_SHARE_H

#include "cpu.h"

/*
 * How much of the time a hardware counter has a place in the PMU. Others' counters take turns with
 * ours or, pinned, take its place, and what it samples then stands for a part of the time alone.
 */

/*
 * The session runs and @counter is hardware's. @busy_ns: of its CPU, since boot. Tells what has
 * changed: in the stream, by an event and in the counter. Caller holds the session's mutex.
 */
void st_share_look(struct stacktap_counter *counter, u64 busy_ns);

#endif /* STACKTAP_KMOD_SHARE_H */
