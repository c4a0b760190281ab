/* SPDX-License-Identifier: Apache-2.0 */
/* NMIs that stacktap_nmi.ko sends, and the sources of a session that counts them. */
#ifndef KMODTEST_NMI_H
#define KMODTEST_NMI_H

#include <stdbool.h>

#include "client.h"

#define NMI_PARAMETERS	"/sys/module/stacktap_nmi/parameters/"
#define NMI_BURST	NMI_PARAMETERS "burst"

enum {
	NMI_INTERVAL_US = 60,
	/* in nmi_sources */
	NMI_CLOCK = 0,
	NMI_NMI = 1,
	NMI_SOURCES = 2,
	NMI_SLOTS = 128,	/* of their stash: 50 ms of both, as a power of two */
};

extern const struct source nmi_sources[NMI_SOURCES];
/* For a session that stays, so that the scheduler's tracepoint is on all the while, see case_nmi(). */
extern const struct source nmi_slow_clock;

/* To all CPUs from now on, 0: none. */
bool nmi_set_interval(unsigned int us);
/* To this CPU, with IRQs off. */
bool nmi_burst(unsigned int count);

#endif /* KMODTEST_NMI_H */
