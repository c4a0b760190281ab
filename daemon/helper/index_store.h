/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indices of debug files in a directory, so that each is made once. It is this user's, and nobody else may write to it or to
 * what is in it; what is read back is checked in the parser all the same. The bytes are limited: those used longest ago go first.
 */
#ifndef STACKTAP_HELPER_INDEX_STORE_H
#define STACKTAP_HELPER_INDEX_STORE_H

#include "base/macro.h"

#define INDEX_STORE_SUFFIX ".index"	/* of each file's name */
#define INDEX_STORE_BYTES (256ULL << 20)	/* that a directory has at most, unless somebody says otherwise */

/* @make: if it is not there. -EPERM: it is another user's, or others may write to it. */
int index_store_open(const char *path, bool make);
/* For the parser. -EPERM: the same of the file. */
int index_store_read(int directory, const char *name, uint64_t *ret_size);
/* What is in @index, which is sealed, under its name once all of it is there. */
int index_store_write(int directory, const char *name, int index, uint64_t size, uint64_t limit);
void index_store_remove(int directory, const char *name);

#endif /* STACKTAP_HELPER_INDEX_STORE_H */
