/* SPDX-License-Identifier: Apache-2.0 */
/* What a killed run left in the spool of one destination is for the others as well, once. */
#ifndef STACKTAP_EXPORT_JOURNAL_SHARE_H
#define STACKTAP_EXPORT_JOURNAL_SHARE_H

#include "base/macro.h"

/*
 * Copy the journal's files in @from to @to, before the stores of either are opened. A file may stay in @from for many
 * starts, while its messages find no room there: @to has a note journal-TIME.taken of each that it got.
 */
void journal_share(const char *from, const char *to);
/* Files that could not be copied, of this process. */
uint64_t journal_share_failed(void);

#endif /* STACKTAP_EXPORT_JOURNAL_SHARE_H */
