/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of labels of Samples, each kept once: set 0 has none. Texts are interned by the same texts. Memory is POOL_REPORT's. */
#ifndef STACKTAP_VIEW_LABELS_H
#define STACKTAP_VIEW_LABELS_H

#include "view/rows.h"
#include "view/sample.h"

struct labels {
	struct rows sets;
	struct buffer all;
};

void labels_init(struct labels *labels);
void labels_free(struct labels *labels);
int labels_find(struct labels *labels, const struct view_label *set, size_t count, uint32_t *ret_set);	/* -E2BIG */
const struct view_label *labels_of(const struct labels *labels, uint32_t set, size_t *ret_count);

#endif /* STACKTAP_VIEW_LABELS_H */
