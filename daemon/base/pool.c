// SPDX-License-Identifier: Apache-2.0
#include "base/pool.h"

#define MIB ((size_t)1 << 20)

/*
 * Together 64 MiB plus what rings and side band may take, which grows with CPUs and is set by who opens
 * them. A report is no part of the daemon's; who has it make profiles of the moment sets another limit.
 */
static struct pool pools[POOL_ALL] = {
	[POOL_RINGS] = { .name = "rings", .limit = 0 },
	[POOL_SIDEBAND] = { .name = "sideband", .limit = 0 },
	[POOL_PROCESSES] = { .name = "processes", .limit = 8 * MIB },
	[POOL_SYMBOLS] = { .name = "symbols", .limit = 20 * MIB },
	[POOL_AGGREGATE] = { .name = "aggregate", .limit = 12 * MIB },
	[POOL_QUEUES] = { .name = "queues", .limit = 4 * MIB },
	[POOL_ENCODE] = { .name = "encode", .limit = 8 * MIB },
	[POOL_TABLES] = { .name = "tables", .limit = 8 * MIB },
	[POOL_DEFERRED] = { .name = "deferred", .limit = 4 * MIB },
	[POOL_REPORT] = { .name = "report", .limit = 512 * MIB },
};

struct pool *pool_get(enum pool_id id)
{
	return &pools[id];
}

static void raise_peak(struct pool *pool, size_t used)
{
	size_t peak = atomic_load_explicit(&pool->peak, memory_order_relaxed);

	while (used > peak &&
	       !atomic_compare_exchange_weak_explicit(&pool->peak, &peak, used,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

bool pool_charge(enum pool_id id, size_t bytes)
{
	struct pool *pool = &pools[id];
	size_t used = atomic_load_explicit(&pool->used, memory_order_relaxed);

	do {
		if (bytes > pool->limit || used > pool->limit - bytes) {
			atomic_fetch_add_explicit(&pool->refused, 1, memory_order_relaxed);
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(&pool->used, &used, used + bytes,
							memory_order_relaxed,
							memory_order_relaxed));
	raise_peak(pool, used + bytes);
	return true;
}

void pool_charge_always(enum pool_id id, size_t bytes)
{
	struct pool *pool = &pools[id];

	raise_peak(pool, atomic_fetch_add_explicit(&pool->used, bytes, memory_order_relaxed) +
				 bytes);
}

void pool_uncharge(enum pool_id id, size_t bytes)
{
	atomic_fetch_sub_explicit(&pools[id].used, bytes, memory_order_relaxed);
}
