/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_PROBE_H
#define STACKTAP_KMOD_PROBE_H

/* The sched_switch probe, on while anybody holds it. It may sleep. */
int probe_hold(void);
void probe_drop(void);

/* -ENOENT when this kernel has no sched_switch tracepoint. */
int probe_init(void);

#endif /* STACKTAP_KMOD_PROBE_H */
