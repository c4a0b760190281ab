/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What view/site.h answers, made by another process: this executable once more, without capabilities, at the lowest
 * priority and with an address space of SANDBOX_VIEWER_BYTES, so that a recording of any size, and what it may hold,
 * takes neither the daemon's memory nor its time. One for each question; its answer is passed on as it comes.
 */
#ifndef STACKTAP_SERVICE_VIEWER_H
#define STACKTAP_SERVICE_VIEWER_H

#include "web/listener.h"

struct viewer_job {
	const char *name;	/* how the recording is called */
	int input;		/* a store's directory, or a pipe with a recording; lent */
	const char *path;	/* of the site */
	const struct web_request *request;	/* its query; the token stays here */
	uint64_t deadline;	/* CLOCK_MONOTONIC */
	bool (*goes_on)(void *ctx);	/* asked a few times a second while it is waited for */
	/* Before an answer is passed on; false: that is not wanted, and there is none. */
	bool (*is_wanted)(void *ctx);	/* NULL: any is */
	void *ctx;
};

/*
 * 0; -ECANCELED: it does not go on; -ETIMEDOUT; -EIO: the process died or could not be started; -ENOMSG: its answer
 * is not wanted. After the last four @answer is as it was, but that a part of the body may be written.
 */
int viewer_ask(const struct viewer_job *job, struct web_answer *answer);

#endif /* STACKTAP_SERVICE_VIEWER_H */
