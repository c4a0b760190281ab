/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread B's looks for OpenTelemetry process contexts, at the end of a window, of the processes that it has
 * samples of. SDKs publish theirs some time after a process has started, and no event tells when; so a process
 * that has none is looked at again after twice as long, an hour at most. Of one that has, each window's end
 * reads the header.
 */
#ifndef STACKTAP_RESOLVE_CONTEXTS_H
#define STACKTAP_RESOLVE_CONTEXTS_H

#include "helper/opener.h"
#include "helper/parser.h"
#include "profile/window.h"

struct contexts;

struct contexts_stats {
	uint64_t read;		/* and what they say was taken */
	uint64_t bad;		/* malformed, or where they say that nothing can be read */
	uint64_t refused;	/* for want of memory, or more of one process than are kept */
	uint64_t put_off;	/* looks that had no time left */
};

int contexts_new(struct opener *opener, struct parser *parser, struct contexts **ret_contexts);
void contexts_free(struct contexts *contexts);	/* NULL is fine */

/* Of the processes that have samples in it, until @deadline; NULL: there is none. */
void contexts_look(struct contexts *contexts, const struct window *window, const struct deadline *deadline);

const struct contexts_stats *contexts_stats(const struct contexts *contexts);

#endif /* STACKTAP_RESOLVE_CONTEXTS_H */
