/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What thread A does with what capture delivers: side-band events into the process table, samples
 * into windows. No thread, no I/O: tests and benchmarks feed it through ring_parse().
 */
#ifndef STACKTAP_PIPELINE_DRAIN_H
#define STACKTAP_PIPELINE_DRAIN_H

#include "pipeline/deferred.h"
#include "capture/capture.h"
#include "client/netlink.h"
#include "process/process.h"
#include "profile/window.h"

enum {
	DRAIN_WINDOW_SAMPLES = 2000,	/* a window with fewer is extended */
	DRAIN_WINDOW_MS = 15000,
	DRAIN_WINDOW_MAX_MS = 60000,
};

struct drain;

struct drain_options {
	const struct control_source *sources;	/* for their names; copied */
	size_t source_count;
	unsigned int window_ms, window_max_ms;	/* 0: the defaults */
	unsigned int early_ms;			/* the first window is due so much earlier, modulo its length */
	const uint32_t *follow_tgids;		/* see struct pipeline_options */
	size_t follow_count;
	struct mapped_file *kernel;		/* of kernel Locations; NULL: one of its own */
};

/* Called in the thread that drains. */
struct drain_output {
	struct process_observer observer;
	void (*window)(void *ctx, struct window *window);	/* takes it */
	/* Memory is used up by windows under way: wait until one is gone; false: there is none. */
	bool (*wait)(void *ctx);
	void (*kernel_changed)(void *ctx);	/* code was added to the kernel; may be NULL */
	void (*announced)(void *ctx);		/* all programs and files of a round's side band; may be NULL */
	/* A sample is deferred, its stack to be unwound; false: it cannot be. NULL: none ever can. */
	bool (*deferred)(void *ctx);
	/*
	 * The window that is open, for the journal to have its part. NULL: there is none. Asked before, as that costs
	 * something: is it time? UINT64_MAX: the window is about to close, which is always the time.
	 */
	void (*part)(void *ctx, struct window *window);
	bool (*wants_part)(void *ctx, uint64_t time);
	/* Do payloads wait for a receiver? Asked when a window could be closed; NULL: none does. */
	bool (*is_behind)(void *ctx);
	/* A walk found no page at @address; may be NULL. */
	void (*missing)(void *ctx, uint32_t tgid, uint64_t address);
	void *ctx;
};

int drain_new(const struct drain_options *options, const struct drain_output *output,
	      struct drain **ret_drain);
void drain_free(struct drain *drain);

/* To pass to capture_open() or ring_parse(), with the drain as context. */
extern const struct capture_ops drain_ops;

struct process_table *drain_processes(struct drain *drain);
struct deferred *drain_deferred(struct drain *drain);
/* User stacks are walked by tables from now on: by frame pointers alone none counts as complete. */
void drain_use_tables(struct drain *drain);

/*
 * After each round: all before @time has been delivered. Closes the window when it is due, and what
 * was deferred of it is back.
 */
void drain_round(struct drain *drain, uint64_t time);
/*
 * Close the window in one of the next rounds, whatever its age. True until it is: all that was delivered before
 * is in a window that was given away.
 */
void drain_want_close(struct drain *drain);
bool drain_wants_close(const struct drain *drain);
/* Close the window now. True: there was one. */
bool drain_flush(struct drain *drain, uint64_t time);
/* The same at the end: wait for all that is deferred, as long as that may take. */
void drain_finish(struct drain *drain);

/* How old a window has to be to be closed: @is_behind: where payloads wait already it grows to its full length. */
uint64_t drain_window_ns(const struct drain_options *options, uint64_t samples, bool is_behind);

struct drain_stats {
	uint64_t doubts;	/* gaps in the side band */
	uint64_t degradations;	/* steps that the module took, as CONFIG records say */
	uint32_t degraded;	/* by so many right now */
	uint64_t multiplexings;	/* times that a counter began to count a part of the time only */
	uint32_t multiplexed;	/* counters that do right now */
	uint64_t windows;
	uint64_t windows_early;	/* of these, closed as the pool of open windows was full */
	uint64_t unplaced;	/* samples that no window could take, counted as lost */
	struct window_losses losses;	/* so far, in whichever windows */
	struct deferred_stats deferred;
};
void drain_stats(const struct drain *drain, struct drain_stats *ret_stats);

#endif /* STACKTAP_PIPELINE_DRAIN_H */
