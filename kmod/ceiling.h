/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_CEILING_H
#define STACKTAP_KMOD_CEILING_H

#include <stacktap/ceiling.h>

#include "cpu.h"

/*
 * The share of each CPU that all sessions together may take, and of a session if it has one of its own.
 * Everything of ours is charged: overflow handlers, phase 2, the probes. An NMI's handler that hits
 * phase 2 is charged by itself and with what it hit.
 */

/* What a sample of @cpu, which is this one, may cost at @now. IRQs are off, or this is an NMI. */
enum ceiling_level st_ceiling_look(struct stacktap_cpu *cpu, u64 now);

/* @ns of this CPU were spent for @cpu's session. The same. */
void st_ceiling_charge(struct stacktap_cpu *cpu, u32 ns);

/* @ns of this CPU were spent for all sessions. Preemption is off. */
void st_ceiling_charge_all(u32 ns);

/* In permille of a CPU, 0: none. */
u32 st_ceiling_permille(void);
/* Caller holds the session's mutex. */
void st_ceiling_set(struct stacktap_session *session, u32 permille);

#endif /* STACKTAP_KMOD_CEILING_H */
