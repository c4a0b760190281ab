// SPDX-License-Identifier: GPL-2.0-only
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "quota.h"
#include "stash.h"

enum {
	/* 10,000 Hz for 50 ms on each of a session's sources, rounded up: 9.5 MiB at the worst */
	STASH_MAX_SLOTS = 8192,
};

int st_stash_create(unsigned int cpu, unsigned int nr_slots, struct stacktap_stash **ret_stash)
{
	struct stacktap_stash *stash;
	size_t bytes;
	int err;

	/* a power of two, because positions are free-running and wrap at 2^32 */
	nr_slots = roundup_pow_of_two(clamp_t(unsigned int, nr_slots, 1, STASH_MAX_SLOTS));
	bytes = struct_size(stash, slots, nr_slots);
	err = st_quota_take(bytes);
	if (err)
		return err;
	stash = kvmalloc_node(bytes, GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN,
			      cpu_to_node(cpu));
	if (!stash) {
		st_quota_return(bytes);
		return -ENOMEM;
	}
	stash->nr_slots = nr_slots;
	stash->head = 0;
	stash->tail = 0;
	*ret_stash = stash;
	return 0;
}

void st_stash_destroy(struct stacktap_stash *stash)
{
	if (!stash)
		return;
	st_quota_return(stash_bytes(stash));
	kvfree(stash);
}
