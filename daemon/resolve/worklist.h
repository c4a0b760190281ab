/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locations of a window by the object that they are in, in the order in which objects are named: whose files took the
 * least of the parser's time so far comes first, so that who has some that take long spends his own. Of his files that
 * one is the first which there was no time for since longest, as it may need all that there is.
 */
#ifndef STACKTAP_RESOLVE_WORKLIST_H
#define STACKTAP_RESOLVE_WORKLIST_H

#include "helper/parser.h"
#include "profile/window.h"

struct work_item {
	struct location **locations;	/* of one object, by address */
	size_t count;
};

struct work_payer;

struct worklist {
	struct parser *parser;
	struct location **rest;		/* the caller's */
	size_t rest_count;
	size_t count;			/* of objects */
	struct work_item *items;
	struct work_payer *payers;	/* a heap: the first is the next */
	size_t payer_count;
	bool is_begun;
};

/*
 * Orders @locations, which are of objects and stay the caller's, and notes in each object who pays for it in @window,
 * the @number-th one. Without memory objects come as they are.
 */
void worklist_begin(struct worklist *list, struct parser *parser, const struct window *window, uint64_t number,
		    struct location **locations, size_t count);
/* What its payer has taken is looked at anew after each item. False: none is left. */
bool worklist_next(struct worklist *list, struct work_item *ret_item);
void worklist_end(struct worklist *list);

#endif /* STACKTAP_RESOLVE_WORKLIST_H */
