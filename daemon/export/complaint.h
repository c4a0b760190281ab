/* SPDX-License-Identifier: Apache-2.0 */
/* What is logged of a receiver: the first of a kind at once, then once a minute with their number. */
#ifndef STACKTAP_EXPORT_COMPLAINT_H
#define STACKTAP_EXPORT_COMPLAINT_H

#include "base/clock.h"
#include "export/http.h"

#define COMPLAIN_NS (60 * NSEC_PER_SEC)	/* between two that say the same */

enum { COMPLAINTS = 4 };		/* that are told apart */

/* What was logged, when, and how often it has been so since. */
struct complaint {
	long status;
	int error;
	char text[HTTP_TEXT_MAX];
	uint64_t time;		/* CLOCK_MONOTONIC ns, 0: none */
	uint64_t more;
};

struct complaints {
	const char *name;	/* of the destination; "": there is but one */
	struct complaint of[COMPLAINTS];
	unsigned int next;
	uint64_t failed;	/* requests, since the last that was taken */
};

/* @what the receiver did. */
void complain(struct complaints *complaints, const char *what, const struct http_answer *answer);
/* A payload is taken: all is well, which is said with how many requests had failed. */
void complaints_end(struct complaints *complaints);

#endif /* STACKTAP_EXPORT_COMPLAINT_H */
