/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * When a session whose overflow handlers take longer than its budget, or that loses samples to the
 * ceiling, gives up something, what, and when it takes that back. Each CPU is judged by a window of its own; the worst of them decides.
 */
#ifndef STACKTAP_DEGRADE_H
#define STACKTAP_DEGRADE_H

#include <linux/stacktap.h>
#include <linux/types.h>

enum {
	DEGRADE_DEPTH_STEPS	= 3,	/* kernel stacks of 64, 32 and 16 frames */
	DEGRADE_RATE_STEPS	= 4,	/* half the rate, a quarter, an 8th and a 16th */
	DEGRADE_STEPS		= DEGRADE_DEPTH_STEPS + DEGRADE_RATE_STEPS,
	/* fewer in a window tell nothing: it goes on then */
	DEGRADE_CALLS		= 50,
	/* one of so many calls lost to the ceiling is as bad as an exceeded budget */
	DEGRADE_LOST_PART	= 16,
	/* windows far below the budget before a step is taken back: at first, and at most */
	DEGRADE_PATIENCE	= 3,
	DEGRADE_PATIENCE_MAX	= 96,
};

/* ascending, so that the worst is the greatest */
enum degrade_load {
	DEGRADE_UNKNOWN,
	DEGRADE_LOW,		/* below half of the budget */
	DEGRADE_FAIR,
	DEGRADE_OVER,
};

struct degrade {
	__u32 step;		/* of DEGRADE_STEPS; 0: whole */
	__u32 calm;		/* windows in a row with low load */
	__u32 patience;		/* of those before a step is taken back */
	__u32 has_recovered;	/* a step was taken back since the last one was taken */
};

/* Handlers of a CPU, counted from wherever. */
struct degrade_window {
	__u64 calls;
	__u64 ns;
	__u64 longer;		/* calls in buckets from degrade_bucket() on */
	__u64 lost;		/* calls lost to the ceiling */
};

static inline __u32 degrade_kernel_frames(__u32 step)
{
	__u32 halvings = step < DEGRADE_DEPTH_STEPS ? step : DEGRADE_DEPTH_STEPS;

	return halvings ? (__u32)(STACKTAP_MAX_KERNEL_FRAMES + 1) >> halvings :
			  STACKTAP_MAX_KERNEL_FRAMES;
}

/* How often the rate is halved. */
static inline __u32 degrade_rate_shift(__u32 step)
{
	return step > DEGRADE_DEPTH_STEPS ? step - DEGRADE_DEPTH_STEPS : 0;
}

/* The first bucket of HANDLER_TIMES whose times are all at least half of the budget. */
static inline __u32 degrade_bucket(__u32 budget_ns)
{
	__u64 bound = 1ULL << STACKTAP_TIME_SHIFT;
	__u32 bucket = 0;

	if (budget_ns < 2)
		return 0;
	for (bucket = 1; bucket < STACKTAP_TIME_BUCKETS && bound < budget_ns / 2; bucket++)
		bound <<= 1;
	return bucket;
}

/*
 * A virtual CPU that its host takes away inside a handler makes that one thousands of times longer,
 * and with it the mean. That is not ours to mend: most handlers must have been long. @budget_ns 0: none.
 */
static inline enum degrade_load degrade_judge(__u32 budget_ns, const struct degrade_window *from,
					      const struct degrade_window *to)
{
	__u64 calls = to->calls - from->calls, ns = to->ns - from->ns;
	__u64 lost = to->lost - from->lost;

	if (calls < DEGRADE_CALLS)
		return DEGRADE_UNKNOWN;
	if (lost > calls / DEGRADE_LOST_PART)
		return DEGRADE_OVER;
	if (!budget_ns)
		return lost ? DEGRADE_FAIR : DEGRADE_LOW;
	if (ns > calls * budget_ns)
		return to->longer - from->longer > calls / 2 ? DEGRADE_OVER : DEGRADE_FAIR;
	return !lost && ns < calls * budget_ns / 2 ? DEGRADE_LOW : DEGRADE_FAIR;
}

/* A step is taken. Where one that was taken back is needed again the next is taken back half as soon. */
static inline void degrade_note_step(struct degrade *degrade)
{
	degrade->calm = 0;
	if (degrade->has_recovered && degrade->patience < DEGRADE_PATIENCE_MAX)
		degrade->patience *= 2;
	degrade->has_recovered = 0;
}

/* The step that stands for what a handler could not wait for: periods doubled @times since this one. */
static inline __u32 degrade_raised(struct degrade *degrade, __u32 times)
{
	__u32 shift = degrade_rate_shift(degrade->step) + times;

	degrade_note_step(degrade);
	return DEGRADE_DEPTH_STEPS + (shift < DEGRADE_RATE_STEPS ? shift : DEGRADE_RATE_STEPS);
}

static inline void degrade_reset(struct degrade *degrade)
{
	degrade->step = 0;
	degrade->calm = 0;
	degrade->patience = DEGRADE_PATIENCE;
	degrade->has_recovered = 0;
}

/*
 * The step to go on with when the CPUs whose windows ended had at worst @load. It does not go to and
 * fro, see degrade_note_step().
 */
static inline __u32 degrade_next(struct degrade *degrade, enum degrade_load load)
{
	if (load == DEGRADE_UNKNOWN)
		return degrade->step;
	if (load != DEGRADE_LOW)
		degrade->calm = 0;
	if (load == DEGRADE_OVER && degrade->step < DEGRADE_STEPS) {
		degrade_note_step(degrade);
		return degrade->step + 1;
	}
	if (load != DEGRADE_LOW || !degrade->step || ++degrade->calm < degrade->patience)
		return degrade->step;
	degrade->calm = 0;
	degrade->has_recovered = 1;
	return degrade->step - 1;
}

#endif /* STACKTAP_DEGRADE_H */
