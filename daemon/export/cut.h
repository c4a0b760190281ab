/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cut: what was added to the open window since the one before, for the journal, in a format of its
 * own. It costs a fraction of what OTLP does: a file of the journal has each Location, Function, image
 * and so on once, over all the windows that are in it, and what has an index there knows it itself
 * (struct journalled), so that nothing is looked up. export/cut_reader.h makes windows of them again.
 *
 * Resources are in it as bytes, by the rules and with what is known at that time: nothing that a rule
 * leaves out is written.
 */
#ifndef STACKTAP_EXPORT_CUT_H
#define STACKTAP_EXPORT_CUT_H

#include "base/buffer.h"
#include "export/encode_options.h"
#include "profile/window.h"

struct cutter;

struct cut {
	uint64_t window;
	uint64_t samples;
	bool begins;		/* a file: what was in the one before is not known in this one */
	bool is_more;		/* there was more than a cut may have: ask again soon */
};

/* @options without a count of what rules leave out; they stay the caller's. */
int cutter_new(const struct encode_options *options, struct cutter **ret_cutter);
void cutter_free(struct cutter *cutter);	/* NULL is fine */
/*
 * Thread A: append a cut of @window to @buffer, nothing if there is nothing new. A file of more than @file_bytes ends
 * with its window. @named counts windows whose Locations have been named since the start. -ENOBUFS: nothing fits.
 */
int cutter_cut(struct cutter *cutter, struct window *window, uint64_t file_bytes, uint64_t named,
	       struct buffer *buffer, struct cut *ret_cut);
/* The last cut was not written: the next one begins a file. */
void cutter_begin(struct cutter *cutter);

#endif /* STACKTAP_EXPORT_CUT_H */
