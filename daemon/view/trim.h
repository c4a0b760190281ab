/* SPDX-License-Identifier: Apache-2.0 */
/* The dictionary of a message that has lost some of its Samples: what nothing names any more goes, too. */
#ifndef STACKTAP_VIEW_TRIM_H
#define STACKTAP_VIEW_TRIM_H

#include "export/otlp.h"

/*
 * Entries that are left keep their order, and the first of each table its place. @allocator is the message's.
 * -EBADMSG: an index out of range; -E2BIG: no memory. The message is of no use then.
 */
int trim_dictionary(OtlpProfilesData *message, ProtobufCAllocator *allocator);

#endif /* STACKTAP_VIEW_TRIM_H */
