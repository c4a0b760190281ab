/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * A token bucket for CPU time, written as the generic cell rate algorithm of ITU-T I.371: one number, the
 * *horizon*, is the time up to which what was spent is paid for. Spending moves it ahead by what it takes
 * to earn that much; time that passes comes closer to it. How far it is ahead, beside how far it may be,
 * says what a sample may cost.
 */
#ifndef STACKTAP_CEILING_H
#define STACKTAP_CEILING_H

#include <linux/types.h>

enum {
	CEILING_WHOLE_CPU	= 1000,	/* permille */
	CEILING_BURST_NS	= 2000000, /* that may be spent at once by who has spent nothing for long */
	CEILING_SHORT_FRAMES	= 32,	/* of a user stack at CEILING_SHORT */
	/*
	 * What is charged for each call beside its own time: the interrupt around it, which would not be
	 * without us. A PMU's NMI or a timer's interrupt, with perf's part, takes 0.7 to 2 us on servers.
	 */
	CEILING_INTERRUPT_NS	= 1000,
	CEILING_SHIFT		= 8,	/* of ceiling_rate::scale */
};

/* What a sample may cost. Ascending: each gives up more than the one before. */
enum ceiling_level {
	CEILING_WHOLE,
	CEILING_SHORT,		/* user stacks of CEILING_SHORT_FRAMES, no stack slice */
	CEILING_LEAF,		/* one frame of either stack */
	CEILING_NOTHING,	/* the sample is lost */
	CEILING_SLOWER,		/* even losing them costs too much: the period is raised */
};

struct ceiling_rate {
	__u64 tolerance;	/* ns that the horizon may be ahead; 0: no ceiling */
	__u32 scale;		/* ns of horizon for a ns that is spent, << CEILING_SHIFT */
};

/* @permille: of a CPU; 0, or a whole CPU and more: no ceiling. */
static inline struct ceiling_rate ceiling_rate(__u32 permille)
{
	struct ceiling_rate rate = { 0, 0 };

	if (!permille || permille >= CEILING_WHOLE_CPU)
		return rate;
	rate.scale = (CEILING_WHOLE_CPU << CEILING_SHIFT) / permille;
	rate.tolerance = ((__u64)CEILING_BURST_NS * rate.scale) >> CEILING_SHIFT;
	return rate;
}

/* How far the horizon moves for @ns; one stretch counts for no more than half of the burst. */
static inline __u64 ceiling_price(__u32 scale, __u32 ns)
{
	if (ns > CEILING_BURST_NS / 2)
		ns = CEILING_BURST_NS / 2;
	return ((__u64)ns * scale) >> CEILING_SHIFT;
}

/* @ahead: of now is the horizon, in ns; negative when all is paid for. */
static inline enum ceiling_level ceiling_level(__s64 ahead, __u64 tolerance)
{
	__s64 quarter = (__s64)(tolerance / 4);

	if (ahead < 2 * quarter || !tolerance)
		return CEILING_WHOLE;
	if (ahead < 3 * quarter)
		return CEILING_SHORT;
	if (ahead < 4 * quarter)
		return CEILING_LEAF;
	/* not far: what is spent here is spent for nothing */
	return ahead < 4 * quarter + quarter / 8 ? CEILING_NOTHING : CEILING_SLOWER;
}

#endif /* STACKTAP_CEILING_H */
