/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash table of this program: open addressing, from 64-bit hashes to positions in an array that its
 * owner keeps, by value or of pointers (base/hash_table.h). A slot holds 32 bits of hash and the position,
 * so that a probe rarely touches the wrong entry.
 *
 * Look up:
 *	for (p = index_first(t, hash); (i = index_next(t, &p)) != INDEX_NONE;)
 *		if (entry i is the one) ...
 */
#ifndef STACKTAP_BASE_INDEX_H
#define STACKTAP_BASE_INDEX_H

#include "base/macro.h"
#include "base/pool.h"

#define INDEX_NONE UINT32_MAX

struct index_slot {
	uint32_t tag;
	uint32_t position;	/* + 1; 0: free */
};

struct index {
	struct index_slot *slots;
	uint32_t mask;		/* slots - 1; 0: no slots yet */
	uint32_t count;
	enum pool_id pool;
};

struct index_probe {
	uint32_t slot;
	uint32_t tag;
};

static inline void index_init(struct index *index, enum pool_id pool)
{
	*index = (struct index){ .pool = pool };
}

/* What it takes, which is charged to its pool. */
static inline size_t index_bytes(const struct index *index)
{
	return index->mask ? ((size_t)index->mask + 1) * sizeof(struct index_slot) : 0;
}

static inline struct index_probe index_first(const struct index *index, uint64_t hash)
{
	return (struct index_probe){ .slot = (uint32_t)hash & index->mask,
				     .tag = (uint32_t)(hash >> 32) };
}

static inline uint32_t index_next(const struct index *index, struct index_probe *probe)
{
	const struct index_slot *slot;

	if (!index->slots)
		return INDEX_NONE;
	for (;;) {
		slot = &index->slots[probe->slot];
		if (!slot->position)
			return INDEX_NONE;
		probe->slot = (probe->slot + 1) & index->mask;
		if (slot->tag == probe->tag)
			return slot->position - 1;
	}
}

/* Make room for one more; @hash_of gives an entry's hash again. -ENOBUFS, -ENOMEM */
int index_reserve(struct index *index, uint64_t (*hash_of)(const void *ctx, uint32_t position),
		  const void *ctx) _must_check_;
/* After index_reserve(). */
void index_insert(struct index *index, uint64_t hash, uint32_t position);
/*
 * Entry @position is no more. @hash_of is asked about others alone, and before one of them is moved: who closes the gap
 * with the last one says so next, index_move().
 */
void index_remove(struct index *index, uint64_t hash, uint32_t position,
		  uint64_t (*hash_of)(const void *ctx, uint32_t position), const void *ctx);
void index_move(struct index *index, uint64_t hash, uint32_t from, uint32_t to);
/*
 * The owner has moved its entries, and @count are left, no more than there were: positions 0 to
 * @count - 1 take the place of all. Needs no memory, but gives some back if few are left.
 */
void index_rebuild(struct index *index, uint32_t count,
		   uint64_t (*hash_of)(const void *ctx, uint32_t position), const void *ctx);
/* Forget all entries; gives a table back that one window blew up. */
void index_clear(struct index *index);
void index_free(struct index *index);

#endif /* STACKTAP_BASE_INDEX_H */
