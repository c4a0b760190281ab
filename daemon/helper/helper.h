/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper process: this executable once more, as somebody with fewer rights, which does what must not
 * hang or crash its owner. Started when it is first asked. One thread asks; each question has a deadline.
 *
 * One that does not answer in time is killed and another takes its place. If it cannot die, as a read from
 * a dead server goes on in the kernel, it is abandoned and never waited for; with HELPER_ABANDONED_MAX of
 * those there is no other until one of them has ended.
 */
#ifndef STACKTAP_HELPER_HELPER_H
#define STACKTAP_HELPER_HELPER_H

#include <sys/types.h>

#include "helper/protocol.h"

enum { HELPER_ABANDONED_MAX = 4 };

struct deadline;
struct helper;

struct helper_stats {
	uint64_t calls;
	uint64_t starts;	/* more than one: it was replaced */
	uint64_t deaths;	/* it crashed, or a limit of its memory ended it */
	uint64_t timeouts;	/* it was killed for not answering */
	uint64_t starved;	/* an answer was put off: it had hardly had a CPU */
	unsigned int abandoned;	/* right now */
	pid_t pid;		/* 0: none runs */
	bool is_confined;
	uint64_t resident;	/* bytes; 0: not known */
};

struct helper_call {
	uint32_t op;
	const void *request;
	size_t request_bytes;
	int fd;			/* lent to the helper; -1: none */
	unsigned int timeout_ms;
	unsigned int start_ms;	/* for a helper that is being started; 0: as long as that may take */
	unsigned int hurried_ms;	/* -ECANCELED, and no helper, after that if `deadline` is over by word; 0: it has `timeout_ms` */
	const struct deadline *deadline;
	bool can_cancel;	/* -ECANCELED, and no helper, as soon as `cancel_fd` can be read */
	int cancel_fd;

	void *answer;		/* of exactly @answer_bytes, unless `is_text` */
	size_t answer_bytes;
	bool is_text;		/* up to @answer_bytes: *ret_bytes */
	size_t ret_bytes;
	uint64_t ret_ns;	/* until there was an answer, or none, without what a start and waiting for a CPU took, and a pause */
	uint64_t ret_starved_ns;	/* that the helper waited for a CPU meanwhile, and in which the caller did not run */
	unsigned int ret_blame;	/* percent of a death that the question is to blame for; 0: it did not end the helper */
	bool ret_is_starved;	/* it was asked, and the helper had hardly a CPU for it: -EAGAIN, or there is an answer */
	bool wants_fd;
	bool may_lack_fd;	/* that it wants */
	int ret_fd;		/* the caller's; -1 unless it wants one and there was no error, or it may lack */
};

int helper_new(enum helper_kind kind, struct helper **ret_helper);
void helper_free(struct helper *helper);	/* NULL is fine */

/*
 * 0 or what the helper found, -errno. Its own failures: -ETIMEDOUT, it was killed; -EPIPE, it died of this
 * question; -EAGAIN, there is none right now: not asked, or it waited for a CPU for more than half of the time, and there was
 * none left: what it does not do then says nothing of the question.
 */
int helper_call(struct helper *helper, struct helper_call *call);

/* The process that the last question left behind in the kernel; 0: it could be killed. */
pid_t helper_left_behind(const struct helper *helper);
/* Is it still there? */
bool helper_is_abandoned(struct helper *helper, pid_t pid);

/* From the thread that asks. */
void helper_stats(struct helper *helper, struct helper_stats *ret_stats);

#endif /* STACKTAP_HELPER_HELPER_H */
