/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_PROBE_H
#define STACKTAP_KMOD_PROBE_H

/* The sched_switch probe, on while anybody holds it. It may sleep. */
int st_probe_hold(void);
void st_probe_drop(void);

/* The sched_process_fork probe, in the same way. */
int st_probe_hold_fork(void);
void st_probe_drop_fork(void);

/* -ENOENT when this kernel lacks one of the tracepoints. */
int st_probe_init(void);

#endif /* STACKTAP_KMOD_PROBE_H */
