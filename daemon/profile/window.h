/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The aggregation window: what thread A collects between two exports.
 *
 * Samples are aggregated by (profile, image, thread, CPU, marks, raw stack, Link); every timestamp
 * is kept. A raw stack is resolved to Locations on its first sight in an image's current mapping
 * list. A closed window is immutable and moves from A to B (names) to C (encode, export), which
 * frees it.
 *
 * Memory is charged to POOL_AGGREGATE; aggregator_add() returns -ENOBUFS when half of it is used up:
 * close the window and add again. The other half is for the windows still under way to C.
 */
#ifndef STACKTAP_PROFILE_WINDOW_H
#define STACKTAP_PROFILE_WINDOW_H

#include <linux/stacktap.h>

#include "base/arena.h"
#include "base/macro.h"
#include "process/image.h"
#include "process/mark.h"
#include "profile/location.h"

/* What one OTLP Profile holds: one source at one rate. Changes when a CONFIG record says so. */
struct profile_config {
	char source[STACKTAP_NAME_LEN];	/* name as the user gave it */
	char event[STACKTAP_NAME_LEN];	/* name of what really counted ("cpu-clock" on fallback) */
	uint16_t source_id;
	uint16_t mode;			/* enum stacktap_mode */
	uint32_t rate_hz;		/* 0: only a period was asked for */
	uint32_t fallback_errno;
	uint32_t degraded;		/* steps of <stacktap/degrade.h> */
	bool is_multiplexed;		/* counted a part of the time */
	uint64_t period;		/* events or ns per sample; 0 in FREQ mode */
	bool is_clock;			/* period is nanoseconds */
	bool is_cpu_time;		/* samples are shares of CPU time: cycles or a clock, by rate */
};

/* A stack resolved to Locations, leaf first: kernel part, then user part. Shared in a window. */
struct stack {
	uint64_t hash;
	uint32_t count;
	uint32_t journalled;		/* its number in the journal, from 1; thread A's */
	struct encoded encoded;		/* thread C's, as is: */
	uint64_t listed;		/* the last list of Stacks to encode that has it */
	struct location *locations[];
};

/* Entries of one key may be several when it has many timestamps. */
struct window_sample {
	uint16_t profile;		/* index in window.profiles */
	uint16_t user_end;		/* enum stacktap_end */
	uint16_t kernel_end;
	uint16_t marks;			/* SAMPLE_* below */
	uint32_t tid;
	uint32_t cpu;
	char comm[STACKTAP_COMM_LEN];	/* thread name */
	struct image *image;		/* owned; NULL for kernel threads and idle */
	struct stack *stack;
	uint32_t count;
	uint32_t in_cuts;		/* of these, so many are in the journal */
	uint32_t journalled;		/* its number there, from 1 */
	uint32_t capacity;
	uint64_t *times;		/* [count], CLOCK_MONOTONIC ns, in order of arrival */
	uint64_t *values;		/* [count] periods in FREQ mode, else NULL */
};

/* What a source told of beside its samples. */
struct window_losses {
	uint64_t lost;			/* from LOST records */
	uint64_t throttled;
	uint64_t stalled;
	uint64_t missed;		/* periods that late timers swallowed */
};

/* Counts of a window, for the quality line and for Profile attributes. */
struct window_counts {
	uint64_t samples;
	uint64_t complete;		/* both halves complete (or absent) */
	/* filled by the symbol stage: */
	uint64_t named;			/* every Location has a name */
	uint64_t by_range;		/* each has a name or its function's start, but not all a name */
	uint64_t names_late;		/* there was no time for the name of a Location */
	uint64_t lost, throttled, stalled, missed;	/* as window_losses */
	uint64_t stale;			/* STALE or DOUBTFUL, or a stack that ends in END_STALE */
	uint64_t moved;
	uint64_t deferred, deferred_refused, deferred_expired, deferred_failed; /* SAMPLE_DEFERRED and so on */
	uint64_t user_end[STACKTAP_END_REASONS];
};

/* The worst of a stack's Locations; an empty stack has none that lacks a name. */
enum naming stack_naming(const struct stack *stack);
/* Is there a Location among them that has no name for want of time? After their names were looked up. */
bool stack_is_late(const struct stack *stack);
void window_counts_add_named(struct window_counts *counts, enum naming naming, uint64_t count);

void window_counts_sum(struct window_counts *sum, const struct window_counts *more);

/* Count @count samples of these ends and marks; all but the names and losses. */
void window_counts_add(struct window_counts *counts, const struct window_sample *sample,
		       uint64_t count);

struct window {
	uint64_t start;			/* CLOCK_MONOTONIC ns; not after the first timestamp */
	uint64_t end;			/* after the last timestamp */
	int64_t realtime_offset;	/* add to get Unix time in ns */
	uint8_t id[16];			/* random: seed of the profile_ids */
	struct profile_config *profiles;
	struct window_counts *counts;	/* [profile_count] */
	size_t profile_count;
	struct window_sample *samples;
	size_t sample_count;		/* entries, not timestamps */
	struct location **locations;	/* every distinct Location once, each with a reference */
	size_t location_count;
	size_t bytes;			/* charged; updated when the window is closed */
	uint64_t number;		/* grows from window to window */
	bool is_recovered;		/* out of the journal of a daemon that was killed */

	/* the aggregator's */
	struct arena arena;		/* stacks, times, values */
	size_t sample_capacity, location_capacity, profile_capacity;
	uint32_t *news;			/* indices of samples that have more than is in the journal, each once */
	size_t news_count, news_capacity;
};

/* Thread A's side. */
struct aggregator;

int aggregator_new(struct aggregator **ret_aggregator);
void aggregator_free(struct aggregator *aggregator);

/* Kernel addresses at or above this are the kernel's; mapped_file of all kernel Locations. */
void aggregator_set_kernel(struct aggregator *aggregator, struct mapped_file *kernel);

/* Samples of the source from now on belong to a Profile of this configuration, on all CPUs. */
int aggregator_set_profile(struct aggregator *aggregator, const struct profile_config *config);
/* The same for one CPU, as CONFIG records are: rings are drained one after the other, and cpu-clock
 * may stand in on some CPUs only. */
int aggregator_set_cpu_profile(struct aggregator *aggregator, uint32_t cpu,
			       const struct profile_config *config);
/* What holds for the source on a CPU now; NULL: it is out of range. Valid until it is set again. */
const struct profile_config *aggregator_profile(struct aggregator *aggregator, uint16_t source_id,
						uint32_t cpu);

struct sample_input {
	const struct stacktap_sample *sample;
	const uint64_t *kernel_ips;	/* leaf first */
	uint32_t kernel_count;
	const uint64_t *user_ips;
	uint32_t user_count;
	const uint16_t *exact;		/* indices of user_ips, ascending: no return addresses either */
	uint32_t exact_count;
	struct image *image;		/* NULL: no user half */
	uint16_t marks;
	/* of a sample that was kept deferred; NULL: what the image has mapped, and what holds, now */
	const struct mapping_snapshot *mappings;
	const struct profile_config *profile;
};

/*
 * The leaf is an exact address, as is the first user address below a kernel part; all others are
 * return addresses. Marks come from @input, from the record's flags, and from what resolving showed.
 */
int aggregator_add(struct aggregator *aggregator, const struct sample_input *input);
/* Losses count in the source's first Profile of this window, or of the next window that has one. */
void aggregator_add_losses(struct aggregator *aggregator, uint16_t source_id,
			   const struct window_losses *more);
uint64_t aggregator_sample_count(const struct aggregator *aggregator);	/* in the open window */
/* All of them so far, of closed windows and of those to come. */
struct window_losses aggregator_losses(const struct aggregator *aggregator);

/*
 * Close the window: everything collected since the last close moves to *ret_window, which is NULL
 * when there is nothing. @end is the time up to which rings were drained.
 */
int aggregator_close(struct aggregator *aggregator, uint64_t end, struct window **ret_window);

/* The open window, of which the journal takes what it does not have yet. Valid until it is closed. */
struct window *aggregator_window(struct aggregator *aggregator);

/* To be filled by one owner. NULL: out of memory. */
struct window *window_new(uint64_t number) _must_check_;
void window_free(struct window *window);	/* NULL is fine */
/* 16 random bytes, the first of which is not 0. */
void window_make_id(uint8_t ret_id[16]);
/* Room for one more in an array charged to POOL_AGGREGATE. -ENOBUFS, -ENOMEM */
int window_reserve(void *array_pointer, size_t count, size_t *capacity, size_t size) _must_check_;

#endif /* STACKTAP_PROFILE_WINDOW_H */
