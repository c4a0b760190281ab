/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.executable.build_id.htlhash: half of the SHA-256 of a file's first and last 4 KiB and its
 * length. Says which file it is where there is no build-id.
 */
#ifndef STACKTAP_SYMBOL_HTLHASH_H
#define STACKTAP_SYMBOL_HTLHASH_H

#include "base/macro.h"

/* 32 lower-case digits. -ENODATA when the file is shorter than @size. */
int htlhash_file(int fd, uint64_t size, char ret_hex[static 33]);
void htlhash_memory(const void *memory, uint64_t size, char ret_hex[static 33]);

#endif /* STACKTAP_SYMBOL_HTLHASH_H */
