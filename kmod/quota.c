// SPDX-License-Identifier: GPL-2.0-only
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>

#include "quota.h"

static atomic_long_t quota_taken = ATOMIC_LONG_INIT(0);
static unsigned int ring_limit_mib;
module_param(ring_limit_mib, uint, 0444);
MODULE_PARM_DESC(ring_limit_mib,
		 "limit of all rings, stashes and memos together in MiB, 0 for an eighth of the memory");

int st_quota_take(unsigned long bytes)
{
	unsigned long limit = (unsigned long)ring_limit_mib << 20;

	if (!limit)
		limit = totalram_pages() / 8 << PAGE_SHIFT;
	if (atomic_long_add_return(bytes, &quota_taken) <= limit)
		return 0;
	st_quota_return(bytes);
	return -EDQUOT;
}

void st_quota_return(unsigned long bytes)
{
	atomic_long_sub(bytes, &quota_taken);
}
