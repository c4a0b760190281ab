/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views of a recording as a listener's answers: a page with its timeline, flame graphs of a part of it, what changed
 * between two parts, and profiles for go tool pprof.
 */
#ifndef STACKTAP_VIEW_SITE_H
#define STACKTAP_VIEW_SITE_H

#include "view/model.h"
#include "view/selection.h"
#include "web/listener.h"

struct site {
	const char *path;	/* of the recording, or the store's directory; read anew for each answer */
	const char *name;	/* how it is called; NULL: by its path */
	struct selection selection;	/* what a query does not select otherwise */
};

/* A web_handler; its context is a struct site. */
void site_answer(void *ctx, const char *path, const struct web_request *request,
		 struct web_answer *answer);

/* What a listener of any recording answers, in memory. */
void site_write_pprof(struct model *model, const char *name, struct web_answer *answer);
void site_write_flamegraph(struct model *model, const char *name, struct web_answer *answer);

#endif /* STACKTAP_VIEW_SITE_H */
