/* SPDX-License-Identifier: Apache-2.0 */
/* Two ways to sample the whole machine into buffers that nobody reads meanwhile. */
#ifndef BENCH_SAMPLER_H
#define BENCH_SAMPLER_H

#include <sys/types.h>

#include "base/macro.h"

struct sampler_request {
	bool cycles;		/* hardware cycles, else cpu-clock */
	bool without_stacks;	/* perf only */
	bool dwarf;		/* perf only: registers and 8 KiB of the stack, as --call-graph dwarf */
	bool by_tables;		/* stacktap only: of @pid */
	pid_t pid;
	bool two_phase;		/* stacktap only */
	bool fixed;		/* stacktap only: periods without jitter, as perf's are */
	bool noop;		/* stacktap only: the handler does nothing, count its calls */
	uint32_t filter;	/* stacktap only: of so many processes, none of which is there; calls */
	uint64_t period;
};

/* Samples of one process. */
struct sampler_count {
	uint64_t samples;
	uint64_t user_frames;	/* sum over samples */
	uint64_t record_bytes;
};

/* Print what failed and exit. */
void sampler_die(const char *what) __attribute__((noreturn));

void sampler_perf_start(const struct sampler_request *request);
void sampler_perf_stop(pid_t pid, struct sampler_count *ret_count);

/* Into the session with this descriptor. */
void sampler_tables_load(int session, pid_t pid);

void sampler_stacktap_start(const struct sampler_request *request);
void sampler_stacktap_stop(pid_t pid, struct sampler_count *ret_count);

#endif /* BENCH_SAMPLER_H */
