/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of a journal that continue each other (encode.h's payloads): the dictionary of each has only what those before
 * it do not have, so that any of them from the first on are one message when they are joined, and none is one by itself.
 */
#ifndef STACKTAP_EXPORT_CHAIN_H
#define STACKTAP_EXPORT_CHAIN_H

#include "base/macro.h"

/*
 * Make one record of each chain in a file, which is replaced at once, or not touched on an error. What is not of a chain
 * stays as it is, damaged or cut off as it may be; records whose beginning is damaged or missing are left out, and told.
 */
int chain_join(int directory, const char *name);

#endif /* STACKTAP_EXPORT_CHAIN_H */
