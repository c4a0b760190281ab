/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal as a screen of lines, by ncurses. Once open it is given back by screen_close() or at exit. */
#ifndef STACKTAP_CLI_SCREEN_H
#define STACKTAP_CLI_SCREEN_H

#include <stdbool.h>

enum screen_style { SCREEN_PLAIN, SCREEN_HEADING, SCREEN_SELECTED };
enum screen_mark { SCREEN_HOT, SCREEN_WARM, SCREEN_SORTED };

bool screen_is_possible(void);	/* a terminal to read and write, of a kind that is known */
bool screen_open(void);	
void screen_close(void);
int screen_lines(void);
void screen_resize(void);	/* to what the terminal has become */
void screen_begin(void);	/* of a drawing */
void screen_line(int line, enum screen_style style, const char *text);
/* @width columns of a line that is there, from @column on: hot and warm by colour, where there is one. */
void screen_mark(int line, int column, int width, enum screen_mark mark);
void screen_end(void);
int screen_key(void);		/* as browse_key() knows it; -1: none waits */

#endif /* STACKTAP_CLI_SCREEN_H */
