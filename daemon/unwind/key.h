/* SPDX-License-Identifier: Apache-2.0 */
/* A hash of all that an object's unwind table is made from. */
#ifndef STACKTAP_UNWIND_KEY_H
#define STACKTAP_UNWIND_KEY_H

#include "base/sha256.h"
#include "symbol/elf.h"

enum { KEY_BYTES = SHA256_BYTES };

/* -ENODATA: no executable code; -ENOTSUP: no machine that is unwound; or what reading met. */
int key_make(const struct elf *elf, uint8_t ret_key[static KEY_BYTES]);

#endif /* STACKTAP_UNWIND_KEY_H */
