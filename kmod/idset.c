// SPDX-License-Identifier: GPL-2.0-only
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/string.h>

#include "idset.h"

enum {
	IDSET_MIN_BITS = 4,
	IDSET_TRIES = 8,	/* factors for each size */
	IDSET_GROWTHS = 2,	/* doublings beyond half full */
};

/* False when @id would lie too far from where it is looked for. */
static bool idset_insert(struct idset *set, u32 id)
{
	u32 mask = (1U << set->bits) - 1, at = id * set->factor >> (32 - set->bits);
	unsigned int i;

	for (i = 0; i < IDSET_MAX_PROBES; i++) {
		u32 *slot = &set->slots[(at + i) & mask];

		if (*slot == id)
			return true;
		if (*slot != IDSET_NONE)
			continue;
		*slot = id;
		set->nr++;
		return true;
	}
	return false;
}

static bool idset_fill(struct idset *set, const u32 *ids, unsigned int nr)
{
	unsigned int i;

	set->nr = 0;
	memset(set->slots, 0xff, sizeof(*set->slots) << set->bits);
	for (i = 0; i < nr; i++)
		if (!idset_insert(set, ids[i]))
			return false;
	return true;
}

int st_idset_create(const u32 *ids, unsigned int nr, struct idset **ret_set)
{
	unsigned int bits = max_t(unsigned int, ilog2(roundup_pow_of_two(2 * nr)), IDSET_MIN_BITS);
	unsigned int last = bits + IDSET_GROWTHS, try;
	struct idset *set;

	for (; bits <= last; bits++) {
		set = kvmalloc(struct_size(set, slots, 1U << bits), GFP_KERNEL_ACCOUNT);
		if (!set)
			return -ENOMEM;
		set->bits = bits;
		/* spreads numbers in a row, as process ids are, best of all */
		set->factor = GOLDEN_RATIO_32;
		for (try = 0; try < IDSET_TRIES; try++) {
			if (idset_fill(set, ids, nr)) {
				*ret_set = set;
				return 0;
			}
			set->factor = get_random_u32() | 1;
		}
		kvfree(set);
	}
	return -ENOSPC;
}

void st_idset_destroy(struct idset *set)
{
	kvfree(set);
}

static int idset_compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

void st_idset_copy(const struct idset *set, u32 *ids)
{
	unsigned int i, nr = 0;

	for (i = 0; i < 1U << set->bits; i++)
		if (set->slots[i] != IDSET_NONE)
			ids[nr++] = set->slots[i];
	sort(ids, nr, sizeof(*ids), idset_compare, NULL);
}
