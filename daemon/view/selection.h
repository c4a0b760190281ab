/* SPDX-License-Identifier: Apache-2.0 */
/* Which Samples of a file are looked at, and how. What is NULL or not set selects all. */
#ifndef STACKTAP_VIEW_SELECTION_H
#define STACKTAP_VIEW_SELECTION_H

#include "base/macro.h"

enum moment_base {
	MOMENT_NONE,
	MOMENT_UNIX,		/* since 1970 */
	MOMENT_START,		/* since the file's first Profile began */
	MOMENT_END,		/* before its last one ended */
};

struct moment {
	enum moment_base base;
	uint64_t ns;
};

struct selection {
	const char *process;	/* name or id */
	const char *thread;	/* the same */
	const char *container;	/* the id, or how it begins */
	const char *service;
	const char *cgroup;	/* its path, or that of one above it */
	const char *event;	/* as the user named it, or what was counted */
	struct moment from, to;	/* from <= time < to */
	bool without_inlined;	/* a Location is one frame: the function that the others are inlined in */
};

/* Unix ns. */
struct time_span {
	uint64_t from, to;
};

bool selection_is_empty(const struct selection *selection);	/* it selects all */
bool selection_is_narrow(const struct selection *selection);	/* to a part of a Profile */
/* Are the file's own times needed to know which span is meant? */
bool selection_needs_bounds(const struct selection *selection);
struct time_span selection_span(const struct selection *selection, uint64_t start, uint64_t end);

bool selection_has_process(const struct selection *selection, uint32_t pid, const char *name,
			   const char *container, const char *service, const char *cgroup);
bool selection_has_thread(const struct selection *selection, uint32_t tid, const char *name);
bool selection_has_event(const struct selection *selection, const char *source, const char *event);

enum { SELECTION_TIME_MAX = 160 };
/* " from 10 s to 2026-11-23T14:00:05.5Z", to go behind a recording's name; "" for all of its time. */
void selection_say_time(const struct selection *selection, char *ret_text, size_t size);
/* Why nothing of the recording @name was selected. */
void selection_say_nothing(const struct selection *selection, const char *name, char *ret_text,
			   size_t size);

/*
 * "2.5", "500ms", "1m": since the recording's start; "@1764000000.25": Unix seconds;
 * "2026-11-23T14:00:00.5Z" or "+01:00" instead of Z, without either the local time. A day alone is its
 * midnight.
 */
bool moment_parse(const char *text, struct moment *ret_moment);

#endif /* STACKTAP_VIEW_SELECTION_H */
