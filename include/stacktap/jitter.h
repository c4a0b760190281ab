/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Stratified sampling: time, or the count of events, is cut into periods, and one sample falls
 * into each, the first one too, anywhere in it with the same likelihood. A program that repeats itself as often, or
 * twice as often, is then seen everywhere, while the number of samples is what it would be with
 * a fixed period, to within one.
 *
 * From one sample to the next it is T + u' - u, T being the period and u how far into its own each
 * of them falls; but never less than T / 16, for which one in 512 falls later in its period than drawn.
 */
#ifndef STACKTAP_JITTER_H
#define STACKTAP_JITTER_H

#include <linux/types.h>

enum {
	/* a 16th of it is 4: perf takes a period of 1 for "every event" */
	JITTER_MIN_PERIOD	= 64,
	JITTER_MIN_SHIFT	= 4,
	JITTER_WHOLE_SHIFT	= 15,
	JITTER_WHOLE		= 1 << JITTER_WHOLE_SHIFT, /* share of a period as it is */
	JITTER_LEAST		= JITTER_WHOLE >> JITTER_MIN_SHIFT,
};

/* twice as much has to fit perf's 63 bits */
#define JITTER_MAX_PERIOD	0x2000000000000000ULL

/* A function apart, so that overflow handlers keep no registers for it. */
#ifdef __KERNEL__
#define jitter_rare noinline
#else
#define jitter_rare inline
#endif

struct jitter {
	__u64 state;		/* of the generator, odd */
	__u64 offset;		/* how far into its period the last sample falls, in events or ns */
	__u32 phase;		/* the same in 1 / JITTER_WHOLE of the period, rounded down */
	__u32 share;		/* likewise, from the sample before to that one; 0: none was drawn yet */
};

static inline int jitter_takes(__u64 period)
{
	return period >= JITTER_MIN_PERIOD && period <= JITTER_MAX_PERIOD;
}

/*
 * A multiplicative congruential generator, of whose output the upper bits are taken. Its factor has 31 bits,
 * which are an operand on x86 and two moves on arm64; by the spectral test pairs, triples and quadruples of
 * draws are spread as evenly as 0.89, 0.78 and 0.82 of what is possible.
 */
static inline __u64 jitter_draw(struct jitter *jitter)
{
	jitter->state *= 0x79ea4a75;
	return jitter->state;
}

/* The part of @period that @fraction / 2^64 is. */
static inline __u64 jitter_part(__u64 period, __u64 fraction)
{
	__uint128_t product = (__uint128_t)period * fraction;

	return (__u64)(product >> 64);
}

/* The last sample fell @offset, of any size, behind the beginning of some period. Slow. */
static inline void jitter_place(struct jitter *jitter, __u64 period, __u64 offset)
{
	jitter->offset = offset %= period;
	/* as short as the division needs them */
	while (period >> (64 - JITTER_WHOLE_SHIFT)) {
		period >>= 1;
		offset >>= 1;
	}
	jitter->phase = (__u32)((offset << JITTER_WHOLE_SHIFT) / period);
	if (jitter->phase >= JITTER_WHOLE)
		jitter->phase = JITTER_WHOLE - 1;
}

/* The first period begins now: the first jitter_next() is at most @period, and on the average half of it. */
static inline void jitter_begin(struct jitter *jitter, __u64 period, __u64 seed)
{
	/* seeds next to each other begin apart */
	jitter->state = (seed ^ seed >> 32) * 0x9e3779b97f4a7c15ULL | 1;
	jitter_draw(jitter);
	jitter->state ^= jitter->state >> 31 & ~1ULL;
	jitter->share = 0;
	jitter_place(jitter, period, period - 1);
}

/*
 * What jitter_next() does where a 16th of @period or less was drawn, as far as phases tell: the last sample
 * was in the last 16th of its own period, so this one is in the first 16th of the next.
 */
static jitter_rare __u64 jitter_next_least(struct jitter *jitter, __u64 period)
{
	__u64 before = jitter->offset, offset = before + (period >> JITTER_MIN_SHIFT);

	/* both are rounded down */
	offset = offset > period ? offset - period : 0;
	jitter->offset = offset;
	jitter->phase += JITTER_LEAST - JITTER_WHOLE;
	jitter->share = JITTER_LEAST;
	return period - before + offset;
}

/*
 * From the last sample to the next: from @period / 16 to below 2 * @period. The sum of all is exact to
 * within one period. @period as jitter_takes() it, and as it was; jitter_place() is for another.
 * @jitter->share is the same, 2048 to 65535 JITTER_WHOLE-ths of @period, give or take one and two events.
 */
static inline __u64 jitter_next(struct jitter *jitter, __u64 period)
{
	__u64 drawn = jitter_draw(jitter), offset = jitter_part(period, drawn);
	__u32 phase = (__u32)(drawn >> (64 - JITTER_WHOLE_SHIFT));
	__u32 share = JITTER_WHOLE + phase - jitter->phase;

	/* phases are rounded down, so at one more it is as much for sure */
	if (__builtin_expect(share <= JITTER_LEAST, 0))
		return jitter_next_least(jitter, period);
	period += offset - jitter->offset;
	jitter->offset = offset;
	jitter->phase = phase;
	jitter->share = share;
	return period;
}

#endif /* STACKTAP_JITTER_H */
