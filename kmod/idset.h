/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_IDSET_H
#define STACKTAP_KMOD_IDSET_H

#include <linux/overflow.h>
#include <linux/types.h>

enum {
	IDSET_NONE = U32_MAX,	/* the one number that no set holds */
	/* slots that a lookup looks at, at most; a set that needs more is laid out anew */
	IDSET_MAX_PROBES = 32,
};

/*
 * A set of numbers, asked for one of them in NMI: a hash table at most half full, so that a lookup
 * costs the same in a set of 10 and in one of 10,000. Never changes.
 */
struct idset {
	u32 nr;
	u32 factor;		/* odd */
	unsigned int bits;	/* log2 of the number of slots */
	u32 slots[];
};

/* @ids may repeat themselves. -ENOSPC: they hash too badly, which takes an enemy and luck. */
int st_idset_create(const u32 *ids, unsigned int nr, struct idset **ret_set);
void st_idset_destroy(struct idset *set);
/* All of them, ascending; @ids has room for set->nr. */
void st_idset_copy(const struct idset *set, u32 *ids);

static inline size_t idset_bytes(const struct idset *set)
{
	return set ? struct_size(set, slots, 1U << set->bits) : 0;
}

static inline bool idset_has(const struct idset *set, u32 id)
{
	u32 mask = (1U << set->bits) - 1, at = id * set->factor >> (32 - set->bits);
	unsigned int i;

	for (i = 0; i < IDSET_MAX_PROBES; i++) {
		u32 found = set->slots[(at + i) & mask];

		if (found == id)
			return true;
		if (found == IDSET_NONE)
			return false;
	}
	return false;
}

#endif /* STACKTAP_KMOD_IDSET_H */
