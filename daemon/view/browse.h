/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the live screen of `stacktap top` shows of its table, and what a key makes of it. No terminal is known
 * here.
 */
#ifndef STACKTAP_VIEW_BROWSE_H
#define STACKTAP_VIEW_BROWSE_H

#include <stdbool.h>
#include <stddef.h>

#include "view/live.h"

enum { BROWSE_TEXT = 128 };

/* Other keys are their character. */
enum browse_key {
	BROWSE_ESCAPE = 27,
	BROWSE_UP = 256,
	BROWSE_DOWN,
	BROWSE_PAGE_UP,
	BROWSE_PAGE_DOWN,
	BROWSE_HOME,
	BROWSE_END,
	BROWSE_ENTER,
	BROWSE_BACKSPACE,
};

enum browse_effect {
	BROWSE_DRAW,		/* the state alone has changed */
	BROWSE_BUILD,		/* another table is needed */
	BROWSE_ZERO,		/* and it begins now */
	BROWSE_SET_DELAY,	/* to what text says */
	BROWSE_SET_FILTER,	/* the same; "" is none */
	BROWSE_QUIT,
};

enum browse_ask { BROWSE_NOTHING, BROWSE_DELAY, BROWSE_FILTER };

struct browse {
	enum live_group group;
	bool by_total, is_frozen, has_help;
	enum browse_ask ask;
	char text[BROWSE_TEXT];	/* typed so far */
	size_t first, selected;	/* rows */
};

/* @rows that there are, @page of them on the screen. */
enum browse_effect browse_key(struct browse *browse, int key, size_t rows, size_t page);
/* The selected row is one of @rows, and on the screen. */
void browse_fit(struct browse *browse, size_t rows, size_t page);
/*
 * The columns that @text takes, at most @width of them, by the locale of the process. What is no printable
 * character becomes one `?': a name must not steer the terminal.
 */
int browse_cut(const char *text, int width, char *ret_cut, size_t size);

#endif /* STACKTAP_VIEW_BROWSE_H */
