// SPDX-License-Identifier: Apache-2.0
#include "view/labels.h"

#include "base/fingerprint.h"

struct label_set {
	uint64_t hash;
	size_t first, count;
};

static const struct label_set *set_at(const struct rows *sets, uint32_t i)
{
	return (const struct label_set *)(const void *)sets->data.data + i;
}

static uint64_t hash_of(const void *ctx, uint32_t position)
{
	return ((const struct label_set *)ctx + position)->hash;
}

void labels_init(struct labels *labels)
{
	rows_init(&labels->sets);
	buffer_init(&labels->all, POOL_REPORT);
}

void labels_free(struct labels *labels)
{
	rows_free(&labels->sets);
	buffer_free(&labels->all);
}

const struct view_label *labels_of(const struct labels *labels, uint32_t set, size_t *ret_count)
{
	const struct label_set *row = set ? set_at(&labels->sets, set - 1) : NULL;

	*ret_count = row ? row->count : 0;
	return row ? (const struct view_label *)(const void *)labels->all.data + row->first : NULL;
}

static bool is_same(const struct view_label *a, const struct view_label *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (a[i].key != b[i].key || a[i].text != b[i].text || a[i].number != b[i].number || a[i].unit != b[i].unit)
			return false;
	return true;
}

int labels_find(struct labels *labels, const struct view_label *set, size_t count, uint32_t *ret_set)
{
	struct label_set row = { .first = labels->all.size / sizeof(*set), .count = count };
	struct fingerprint print = fingerprint_start(count);
	struct index_probe probe;
	uint32_t i;

	*ret_set = 0;
	if (!count)
		return 0;
	for (size_t k = 0; k < count; k++) {
		fingerprint_mix(&print, (uintptr_t)set[k].key, (uintptr_t)set[k].text);
		fingerprint_mix(&print, (uint64_t)set[k].number, (uintptr_t)set[k].unit);
	}
	row.hash = fingerprint_end(print).lo;
	probe = index_first(&labels->sets.index, row.hash);
	while ((i = index_next(&labels->sets.index, &probe)) != INDEX_NONE) {
		const struct label_set *old = set_at(&labels->sets, i);
		size_t have;

		if (old->count == count && is_same(labels_of(labels, i + 1, &have), set, count)) {
			*ret_set = i + 1;
			return 0;
		}
	}
	if (buffer_append(&labels->all, set, count * sizeof(*set)) ||
	    rows_add(&labels->sets, row.hash, hash_of, &row, sizeof(row), &i))
		return -E2BIG;
	*ret_set = i + 1;
	return 0;
}
