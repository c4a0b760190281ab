// SPDX-License-Identifier: Apache-2.0
#include "service/watch.h"

#include <string.h>

#include "broker/broker.h"

static bool read_state(const char *path, struct watch_state *ret_state)
{
	struct stat st;

	if (broker_stat(path, &st) < 0)
		return false;
	/* it is compared as bytes */
	memset(ret_state, 0, sizeof(*ret_state));
	ret_state->dev = st.st_dev;
	ret_state->inode = st.st_ino;
	ret_state->size = (uint64_t)st.st_size;
	ret_state->mtime = st.st_mtim;
	ret_state->ctime = st.st_ctim;
	return true;
}

void watch_note(struct watch *watch, const char *path)
{
	if (!read_state(path, &watch->known))
		memset(&watch->known, 0, sizeof(watch->known));
	watch->seen = watch->known;
}

bool watch_look(struct watch *watch, const char *path)
{
	struct watch_state state;
	bool is_settled;

	if (!read_state(path, &state))
		return false;
	is_settled = !memcmp(&state, &watch->seen, sizeof(state));
	watch->seen = state;
	if (!is_settled || !memcmp(&state, &watch->known, sizeof(state)))
		return false;
	watch->known = state;
	return true;
}
