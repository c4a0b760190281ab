// SPDX-License-Identifier: Apache-2.0
#include "cli/screen.h"

/* before term.h, of whose macros one is `columns' */
#include "cli/fit.h"

#include <curses.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

#include "view/browse.h"

enum { LINE_BYTES = 4096, ESCAPE_MS = 25, REDRAW = 'L' & 0x1f };
enum { PAIR_NONE, PAIR_GREEN, PAIR_RED };

static SCREEN *terminal;
static bool has_colors_on;

bool screen_is_possible(void)
{
	const char *term = getenv("TERM");
	int err;

	if (!term || !*term || !strcmp(term, "dumb") || !isatty(STDIN_FILENO) ||
	    !isatty(STDOUT_FILENO) || setupterm(NULL, STDOUT_FILENO, &err) != OK)
		return false;
	del_curterm(cur_term);
	return true;
}

void screen_close(void)
{
	if (terminal && !isendwin())
		endwin();
}

bool screen_open(void)
{
	const char *no_color = getenv("NO_COLOR");

	/* before ncurses looks at it */
	fit_locale();
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return false;
	atexit(screen_close);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	has_colors_on = !(no_color && *no_color) && has_colors() && start_color() != ERR;
	if (has_colors_on) {
		use_default_colors();
		init_pair(PAIR_GREEN, COLOR_GREEN, -1);
		init_pair(PAIR_RED, COLOR_RED, -1);
	}
	return true;
}

int screen_lines(void)
{
	return LINES;
}

void screen_resize(void)
{
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	/* the terminal may have moved what was there */
	clearok(curscr, TRUE);
}

void screen_begin(void)
{
	erase();
}

void screen_line(int line, enum screen_style style, const char *text)
{
	char cut[LINE_BYTES];

	if (line >= LINES)
		return;
	if (style == SCREEN_SELECTED)
		attron(A_REVERSE);
	else if (style == SCREEN_HEADING)
		attron(A_BOLD | (has_colors_on ? COLOR_PAIR(PAIR_GREEN) : 0));
	browse_cut(text, COLS, cut, sizeof(cut));
	mvaddstr(line, 0, cut);
	attrset(A_NORMAL);
	/* to the end of the line, as htop does */
	if (style == SCREEN_SELECTED)
		mvchgat(line, 0, -1, A_REVERSE, PAIR_NONE, NULL);
}

void screen_mark(int line, int column, int width, enum screen_mark mark)
{
	static const short pairs[] = {
		[SCREEN_HOT] = PAIR_RED, [SCREEN_WARM] = PAIR_GREEN, [SCREEN_SORTED] = PAIR_GREEN,
	};

	if (line >= LINES || column + width > COLS || (mark != SCREEN_SORTED && !has_colors_on))
		return;
	mvchgat(line, column, width, mark == SCREEN_SORTED ? A_BOLD | A_REVERSE : A_NORMAL,
		has_colors_on ? pairs[mark] : PAIR_NONE, NULL);
}

void screen_end(void)
{
	wnoutrefresh(stdscr);
	doupdate();
}

int screen_key(void)
{
	int key = getch();

	switch (key) {
	case KEY_UP:
		return BROWSE_UP;
	case KEY_DOWN:
		return BROWSE_DOWN;
	case KEY_PPAGE:
		return BROWSE_PAGE_UP;
	case KEY_NPAGE:
		return BROWSE_PAGE_DOWN;
	case KEY_LEFT:
		return BROWSE_LEFT;
	case KEY_RIGHT:
		return BROWSE_RIGHT;
	case KEY_HOME:
		return BROWSE_HOME;
	case KEY_END:
		return BROWSE_END;
	case '\n':
	case '\r':
	case KEY_ENTER:
		return BROWSE_ENTER;
	case '\b':
	case 0x7f:
	case KEY_BACKSPACE:
		return BROWSE_BACKSPACE;
	case KEY_F(1):
		return BROWSE_F1;
	case KEY_F(4):
		return BROWSE_F4;
	case KEY_F(6):
		return BROWSE_F6;
	case KEY_F(10):
		return BROWSE_F10;
	case REDRAW:
		clearok(curscr, TRUE);
		return 0;
	default:
		return key == ERR ? -1 : key > 0xff ? 0 : key;
	}
}
