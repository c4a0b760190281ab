/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of asking the opener: what a question is to blame for, and what is left alone for that. */
#ifndef STACKTAP_HELPER_OPENER_ASK_H
#define STACKTAP_HELPER_OPENER_ASK_H

#include <pthread.h>

#include "base/clock.h"
#include "base/credit.h"
#include "base/deadline.h"
#include "helper/helper.h"

#define PATIENCE_NS (20 * NSEC_PER_SEC)	/* for questions without an answer, or a late one, in one go */

enum {
	OPENER_PROCESS_MS = 2000, /* what /proc says; a process of 60,000 mappings takes a tenth of it */
	QUARANTINES_MAX = 64,
	CUT_SHORT_MAX = 16,
};

/* What of a namespace is to blame: what hangs below /usr/lib/debug says nothing of the rest. */
enum part {
	PART_FILES,
	PART_PATHS,	/* of debug files, in root's directories */
	PART_BESIDE,	/* a program, where whose it is may put what leads anywhere */
	PART_TOLD,	/* a program says so, and it leads anywhere as well */
	PART_MAPS,	/* perf maps, in /tmp */
	PART_MEMORY,	/* of a process, which may be a file of a server that does not answer */
};

/* Of a mount namespace, of a device in it, or of a process; what is unknown is 0. */
struct place {
	uint64_t space;
	uint32_t major, minor;
	uint32_t tgid;
	uint32_t user;		/* whose program, of PART_BESIDE and PART_TOLD */
	enum part part;
};

struct quarantine {
	struct place place;
	uint64_t until, length;	/* ns; length 0: free */
	pid_t pid;		/* of the opener that still hangs there; 0: none */
};

/* What had no answer in the time that was left, so often in a row. */
struct cut_short {
	struct place place;
	unsigned int times;	/* 0: free */
};

struct opener {
	pthread_mutex_t lock;	/* all of it */
	struct helper *helper;
	struct credit patience;
	struct quarantine quarantines[QUARANTINES_MAX];
	struct cut_short cut_short[CUT_SHORT_MAX];
	size_t next_cut_short;	/* to be forgotten for another one */
	uint64_t left_alone;
	char last_quarantined[256];
	const struct deadline *deadline;	/* of all questions, borrowed; NULL: none */
	int cancel_fd;		/* borrowed; -1: none */
	uint64_t apart_until;	/* CLOCK_MONOTONIC ns, see opener_image() */
};

/*
 * With the lock. -EHOSTDOWN instead of asking where the last question had no answer: what is asked is left alone,
 * and named by @what.
 */
int opener_ask(struct opener *opener, const struct place *place, const char *what,
	       struct helper_call *call);
/* With the lock. Is it left alone, or was it until not long ago? */
bool opener_is_doubtful(struct opener *opener, const struct place *place);

#endif /* STACKTAP_HELPER_OPENER_ASK_H */
