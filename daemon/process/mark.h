/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be known of a sample beside its stack: how far it can be trusted. */
#ifndef STACKTAP_PROCESS_MARK_H
#define STACKTAP_PROCESS_MARK_H

enum sample_mark {
	SAMPLE_STALE = 1 << 0,		/* another task ran when the stack was to be walked */
	SAMPLE_MOVED = 1 << 1,
	SAMPLE_DOUBTFUL = 1 << 2,	/* mappings may be wrong: side-band loss, mapping changed */
	SAMPLE_UNKNOWN_MAPPING = 1 << 3, /* an address in no known mapping */
	/* walked without a mapping list, but with what it takes to unwind the stack later: */
	SAMPLE_DEFERRED = 1 << 4,	/* which was done */
	SAMPLE_DEFERRED_REFUSED = 1 << 5, /* too many were waiting for that */
	SAMPLE_DEFERRED_EXPIRED = 1 << 6, /* it waited too long */
	SAMPLE_DEFERRED_FAILED = 1 << 7, /* nothing was known of what it ran */
};

#endif /* STACKTAP_PROCESS_MARK_H */
