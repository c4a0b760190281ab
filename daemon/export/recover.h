/* SPDX-License-Identifier: Apache-2.0 */
/* What a file of the journal has of windows that were not done when its daemon was killed, as messages of a store. */
#ifndef STACKTAP_EXPORT_RECOVER_H
#define STACKTAP_EXPORT_RECOVER_H

#include "base/macro.h"
#include "export/encode_options.h"
#include "export/journal_record.h"

struct recovered {
	uint64_t windows, samples;
	uint64_t damaged_bytes;		/* from the first that is damaged, cut off or too much for memory to the end */
	char version[JOURNAL_VERSION];	/* of the daemon that wrote it */
};

/*
 * Append sealed messages (export/record.h) to @to, in @form; NULL: in that of the daemon that wrote it. -EPROTO: @from is another version's, and was not read on. After another
 * error it may be read once more: -ENOBUFS where others have memory of the pool as well, -ENOMEM, or of the file that
 * is written.
 */
int recover(int from, int to, const struct encode_form *form, struct recovered *ret_recovered);

#endif /* STACKTAP_EXPORT_RECOVER_H */
