// SPDX-License-Identifier: Apache-2.0
#include "view/browse.h"

#include <string.h>
#include <wchar.h>

#include "base/macro.h"
#include "base/utf8.h"

void browse_fit(struct browse *browse, size_t rows, size_t page)
{
	browse->selected = min_of(browse->selected, rows ? rows - 1 : 0);
	browse->first = min_of(browse->first, browse->selected);
	if (page && browse->selected - browse->first >= page)
		browse->first = browse->selected - page + 1;
}

static enum browse_effect answer(struct browse *browse, int key)
{
	size_t length = strlen(browse->text);
	enum browse_ask ask = browse->ask;

	switch (key) {
	case BROWSE_ESCAPE:
		browse->ask = BROWSE_NOTHING;
		break;
	case BROWSE_ENTER:
		browse->ask = BROWSE_NOTHING;
		return ask == BROWSE_DELAY ? BROWSE_SET_DELAY : BROWSE_SET_FILTER;
	case BROWSE_BACKSPACE:
		while (length && utf8_is_inside(browse->text[--length]))
			;
		browse->text[length] = 0;
		break;
	default:
		if (key < ' ' || key > 0xff || key == 0x7f || length + 1 >= sizeof(browse->text))
			break;
		browse->text[length] = (char)key;
		browse->text[length + 1] = 0;
	}
	return BROWSE_DRAW;
}

static enum browse_effect ask(struct browse *browse, enum browse_ask what)
{
	browse->ask = what;
	browse->text[0] = 0;
	return BROWSE_DRAW;
}

static enum browse_effect move(struct browse *browse, int key, size_t rows, size_t page)
{
	size_t selected = browse->selected;

	switch (key) {
	case BROWSE_UP:
		selected -= !!selected;
		break;
	case BROWSE_DOWN:
		selected++;
		break;
	case BROWSE_PAGE_UP:
		selected -= min_of(selected, page);
		break;
	case BROWSE_PAGE_DOWN:
		selected += page;
		break;
	case BROWSE_HOME:
		selected = 0;
		break;
	case BROWSE_END:
		selected = rows;
		break;
	}
	browse->selected = selected;
	browse_fit(browse, rows, page);
	return BROWSE_DRAW;
}

void browse_enter(struct browse *browse, enum browse_view view)
{
	if (view == BROWSE_CODE)
		browse->under_code = browse->view;
	if (browse->view < view)
		browse->left[browse->view] = (struct browse_place){ browse->first, browse->selected };
	browse->view = view;
	/* the messages of a frozen table may be gone: another one is of now */
	browse->is_frozen = false;
	browse->first = browse->selected = 0;
}

/* As perf's: both q and Esc leave what was entered. */
static enum browse_effect leave(struct browse *browse)
{
	browse_enter(browse, browse->view == BROWSE_CODE ? browse->under_code : BROWSE_TABLE);
	browse->first = browse->left[browse->view].first;
	browse->selected = browse->left[browse->view].selected;
	return BROWSE_BUILD;
}

enum browse_effect browse_key(struct browse *browse, int key, size_t rows, size_t page)
{
	if (browse->ask)
		return answer(browse, key);
	if (browse->has_help) {
		browse->has_help = false;
		return key == 'q' || key == BROWSE_F10 ? BROWSE_QUIT : BROWSE_DRAW;
	}
	switch (key) {
	case BROWSE_F10:
		return BROWSE_QUIT;
	case 'q':
	case BROWSE_ESCAPE:
	case BROWSE_LEFT:
		if (browse->view)
			return leave(browse);
		return key == 'q' ? BROWSE_QUIT : BROWSE_DRAW;
	case 'a':
		return browse->view == BROWSE_CODE ? leave(browse) : BROWSE_SHOW_CODE;
	case 'e':
	case '+':
	case BROWSE_ENTER:
	case BROWSE_RIGHT:
		return browse->view == BROWSE_CODE ? BROWSE_DRAW : BROWSE_SHOW_CALLS;
	case 'h':
	case '?':
	case BROWSE_F1:
		browse->has_help = true;
		return BROWSE_DRAW;
	case 'd':
		return ask(browse, BROWSE_DELAY);
	case '/':
	case 'f':
	case BROWSE_F4:
		return ask(browse, BROWSE_FILTER);
	case 'p':
	case ' ':
		browse->is_frozen = !browse->is_frozen;
		return browse->is_frozen ? BROWSE_DRAW : BROWSE_BUILD;
	case 'z':
		browse->is_frozen = false;
		return BROWSE_ZERO;
	case 's':
	case BROWSE_F6:
		browse->by_total = !browse->by_total;
		break;
	case 'g':
		browse->group = (enum live_group)((browse->group + 1) % LIVE_GROUP_COUNT);
		break;
	default:
		return move(browse, key, rows, page);
	}
	browse_enter(browse, BROWSE_TABLE);
	return BROWSE_BUILD;
}

int browse_cut(const char *text, int width, char *ret_cut, size_t size)
{
	mbstate_t state = { 0 };
	size_t left = strlen(text), used = 0;
	int columns = 0;

	while (left) {
		wchar_t wide;
		size_t length = mbrtowc(&wide, text, left, &state);
		bool is_bad = length == (size_t)-1 || length == (size_t)-2;
		int width_of = is_bad ? -1 : wcwidth(wide);
		const char *from = text;

		if (is_bad) {
			state = (mbstate_t){ 0 };
			length = 1;
		}
		text += length;
		left -= length;
		if (width_of < 0) {
			from = "?";
			length = 1;
			width_of = 1;
		}
		if (columns + width_of > width || used + length >= size)
			break;
		memcpy(ret_cut + used, from, length);
		used += length;
		columns += width_of;
	}
	ret_cut[used] = 0;
	return columns;
}
