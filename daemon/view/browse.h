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
	BROWSE_LEFT,
	BROWSE_RIGHT,
	BROWSE_ENTER,
	BROWSE_BACKSPACE,
	BROWSE_F1, BROWSE_F4, BROWSE_F6, BROWSE_F10,	/* of htop's what there is here */
};

enum browse_effect {
	BROWSE_DRAW,		/* the state alone has changed */
	BROWSE_BUILD,		/* another table is needed */
	BROWSE_ZERO,		/* and it begins now */
	BROWSE_SET_DELAY,	/* to what text says */
	BROWSE_SET_FILTER,	/* the same; "" is none */
	BROWSE_SHOW_CALLS,	/* of the selected row, if it is a function: browse_enter() */
	BROWSE_SHOW_CODE,	/* the same */
	BROWSE_QUIT,
};

enum browse_ask { BROWSE_NOTHING, BROWSE_DELAY, BROWSE_FILTER };

enum browse_view {
	BROWSE_TABLE,
	BROWSE_CALLS,		/* callers and callees of one function */
	BROWSE_CODE,		/* its source or instructions: lines of text */
};

struct browse_place {
	size_t first, selected;
};

struct browse {
	enum browse_view view, under_code;	/* what is left for, where the code is left */
	enum live_group group;
	bool by_total, is_frozen, has_help;
	enum browse_ask ask;
	char text[BROWSE_TEXT];	/* typed so far */
	size_t first, selected;	/* rows */
	struct browse_place left[BROWSE_CODE + 1];	/* of each view, where it was left for another one */
};

/* @rows that there are, @page of them on the screen. */
enum browse_effect browse_key(struct browse *browse, int key, size_t rows, size_t page);
/* Another view, from its first row on. */
void browse_enter(struct browse *browse, enum browse_view view);
/* The selected row is one of @rows, and on the screen. */
void browse_fit(struct browse *browse, size_t rows, size_t page);
/*
 * The columns that @text takes, at most @width of them, by the locale of the process. What is no printable
 * character becomes one `?': a name must not steer the terminal.
 */
int browse_cut(const char *text, int width, char *ret_cut, size_t size);

#endif /* STACKTAP_VIEW_BROWSE_H */
