/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte budgets. Every cache, queue and table charges its memory to a pool, so that one table shows
 * where the daemon's memory is and each limit is enforced where memory is taken.
 *
 * A charge is the payload's size as its owner counts it (allocator overhead is not included).
 * Counters are atomic: any thread may charge and read.
 */
#ifndef STACKTAP_BASE_POOL_H
#define STACKTAP_BASE_POOL_H

#include <stdatomic.h>

#include "base/macro.h"

enum pool_id {
	POOL_RINGS,
	POOL_SIDEBAND,
	POOL_PROCESSES,	/* images, mapping lists, objects */
	POOL_SYMBOLS,	/* symbol tables, Locations, Functions, names */
	POOL_AGGREGATE,	/* open windows: stacks and samples */
	POOL_QUEUES,	/* what waits between the threads, closed windows included */
	POOL_ENCODE,	/* buffers of the encoder and of the HTTP client */
	POOL_TABLES,	/* unwind tables */
	POOL_DEFERRED,	/* samples whose unwinding is deferred */
	POOL_COUNT,	/* of the daemon's budget, which these are all of */

	POOL_REPORT = POOL_COUNT, /* `stacktap report` reading a file */
	POOL_ALL
};

struct pool {
	const char *name;
	_Atomic size_t limit;	/* bytes; of rings and side band 0 until they are opened */
	_Atomic size_t used;
	_Atomic size_t peak;
	_Atomic uint64_t refused;	/* charges that did not fit */
};

struct pool *pool_get(enum pool_id id);

/* Take @bytes. False, and counted, when the pool's limit would be passed. */
bool pool_charge(enum pool_id id, size_t bytes) _must_check_;
/*
 * Take @bytes even beyond the limit. Only for what has a fixed size and is there once, once per CPU or once per queue,
 * and for the copy of a payload whose bytes were granted before: never for what comes from outside.
 */
void pool_charge_always(enum pool_id id, size_t bytes);
void pool_uncharge(enum pool_id id, size_t bytes);

#endif /* STACKTAP_BASE_POOL_H */
