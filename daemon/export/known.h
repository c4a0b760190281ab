/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the profile model that were met in a payload, by their address. */
#ifndef STACKTAP_EXPORT_KNOWN_H
#define STACKTAP_EXPORT_KNOWN_H

#include "base/buffer.h"
#include "base/index.h"
#include "profile/location.h"

struct known_item {
	const void *pointer;
	int32_t index;		/* of its entry */
	enum naming naming;
};

struct known {
	struct buffer items;	/* struct known_item */
	struct index index;
};

void known_init(struct known *known);	/* charged to POOL_ENCODE */
void known_clear(struct known *known);
void known_free(struct known *known);

static inline const struct known_item *known_items(const struct known *known)
{
	return (const struct known_item *)(const void *)known->items.data;
}

static inline size_t known_count(const struct known *known)
{
	return known->items.size / sizeof(struct known_item);
}

/* NULL: not met. Valid until one is added. */
const struct known_item *known_find(const struct known *known, const void *pointer);
/* One that was not met: its index, or -ENOBUFS. */
int known_add(struct known *known, struct known_item item);

#endif /* STACKTAP_EXPORT_KNOWN_H */
