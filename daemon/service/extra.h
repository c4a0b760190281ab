/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile by a session of its own, beside the daemon's: `stacktap record' at the rate that is asked for, read by a
 * viewer. Both are processes of their own; the module gives that session a ceiling of its own, below what all may
 * take, so that the daemon's keeps a share. It ends with the request, and when the daemon stops to sample. What the
 * configuration leaves out is not in it, either.
 */
#ifndef STACKTAP_SERVICE_EXTRA_H
#define STACKTAP_SERVICE_EXTRA_H

#include <stdatomic.h>

#include "view/selection.h"
#include "web/listener.h"

struct extra_options {
	const char *stacktap;	/* the program; NULL: beside this one */
	const char *path;	/* of the site: which view */
	const struct web_request *request;	/* the client's */
	unsigned int seconds;
	const char *pid, *rate, *period;	/* NULL: not asked for */
	char *const *arguments;	/* of the program besides, NULL at their end: config_record_arguments() */
	const struct selection *selection;
	const _Atomic bool *stop;
	bool (*is_sampling)(void *ctx);
	void *ctx;
};

/*
 * As viewer_ask(); besides -EINVAL: what is asked for is refused, -ENOEXEC: it could not be sampled, both with a
 * sentence in @ret_reason.
 */
int extra_take(const struct extra_options *options, struct web_answer *answer, char *ret_reason, size_t reason_size);

#endif /* STACKTAP_SERVICE_EXTRA_H */
