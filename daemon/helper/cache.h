/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of files that may go at any time: what was used longest ago goes first. */
#ifndef STACKTAP_HELPER_CACHE_H
#define STACKTAP_HELPER_CACHE_H

#include "base/macro.h"

enum { CACHE_NAME_BYTES = 64 };	/* of a file's name, with the NUL */

/* The directory, and those above it that are not there. @path is as it was afterwards. */
int cache_make_directory(char *path);
/*
 * Removes files with these @suffixes, which NULL ends, until @bytes more fit into @limit, and as many files as can be
 * looked through. When one was used its time of modification says.
 */
void cache_make_room(int directory, const char *const *suffixes, uint64_t bytes, uint64_t limit);

#endif /* STACKTAP_HELPER_CACHE_H */
