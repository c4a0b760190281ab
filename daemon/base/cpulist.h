/* SPDX-License-Identifier: Apache-2.0 */
/* CPU lists as the kernel and its tools write them ("0-3,7"), to bitmaps of 64-bit words. */
#ifndef STACKTAP_BASE_CPULIST_H
#define STACKTAP_BASE_CPULIST_H

#include "base/macro.h"

struct cpulist {
	uint64_t *words;	/* bit 0 of word 0 is CPU 0 */
	size_t count;
};

/* -EINVAL for anything but numbers, '-' and ','; an empty text is an empty list. */
int cpulist_parse(const char *text, struct cpulist *ret_list);
int cpulist_read_online(struct cpulist *ret_list);
void cpulist_done(struct cpulist *list);
/* The other way round; what does not fit is replaced by "...". */
void cpulist_format(const struct cpulist *list, char *buffer, size_t size);

static inline bool cpulist_has(const struct cpulist *list, uint32_t cpu)
{
	return cpu / 64 < list->count && list->words[cpu / 64] >> (cpu % 64) & 1;
}

static inline uint32_t cpulist_limit(const struct cpulist *list)
{
	return (uint32_t)list->count * 64;
}

#endif /* STACKTAP_BASE_CPULIST_H */
