// SPDX-License-Identifier: Apache-2.0
#include "helper/helper.h"

#include <poll.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/log.h"
#include "broker/broker.h"
#include "helper/cpu_wait.h"
#include "helper/descriptor.h"
#include "helper/sandbox.h"
#include "helper/serve.h"
#include "helper/spawn.h"

enum {
	HELLO_MS = 20000,	/* a loaded host takes long to start a program */
	REAP_MS = 200,		/* a killed process that is not in the kernel's hands ends sooner */
	REAP_STEP_MS = 5,
	PAUSE_FIRST_MS = 100,	/* between a death and the next start, doubled by each in a row */
	PAUSE_MAX_MS = 10000,
	WAIT_MAX_MS = 500,	/* of such a pause is waited for */
	LOOK_MS = 100,		/* whether somebody is in a hurry, and who did not run, is looked at so often */
	LOST_MS = 200,		/* a step of waiting that ends so late is one in which this process did not run */
	PROMPT_MS = 50,		/* who has not answered by then is watched whether it has a CPU */
	STARVED_PERCENT = 50,	/* of the time without waiting for one: with less there was none to speak of */
};

struct helper {
	enum helper_kind kind;
	pid_t pid;		/* 0: none runs */
	int socket;
	bool is_ready;		/* it has said hello */
	uint64_t patience_ms;	/* SO_RCVTIMEO; 0: none yet */
	pid_t abandoned[HELPER_ABANDONED_MAX];
	pid_t left_behind;
	uint64_t start_at;	/* CLOCK_MONOTONIC ns, not before */
	unsigned int pause_ms;
	bool has_warned;
	struct helper_stats stats;
};

/* True when it is gone, or was never ours to wait for. */
static bool has_ended(pid_t pid, int *ret_status)
{
	pid_t r = broker_wait(pid, ret_status);

	return r == pid || (r < 0 && errno == ECHILD);
}

static unsigned int reap_abandoned(struct helper *helper)
{
	unsigned int count = 0;
	int status;

	for (size_t i = 0; i < HELPER_ABANDONED_MAX; i++) {
		if (helper->abandoned[i] && has_ended(helper->abandoned[i], &status))
			helper->abandoned[i] = 0;
		count += helper->abandoned[i] != 0;
	}
	helper->stats.abandoned = count;
	return count;
}

/* Kill it, and let go of it if it does not die. */
static int end(struct helper *helper)
{
	const struct timespec step = { .tv_nsec = REAP_STEP_MS * (long)NSEC_PER_MSEC };
	pid_t pid = helper->pid;
	int status = 0;

	if (helper->socket >= 0)
		close(helper->socket);
	helper->socket = -1;
	helper->pid = 0;
	helper->is_ready = false;
	helper->left_behind = 0;
	if (!pid)
		return 0;
	broker_kill(pid);
	for (int ms = 0; ms < REAP_MS; ms += REAP_STEP_MS) {
		if (has_ended(pid, &status))
			return status;
		nanosleep(&step, NULL);
	}
	for (size_t i = 0; i < HELPER_ABANDONED_MAX; i++)
		if (!helper->abandoned[i]) {
			helper->abandoned[i] = helper->left_behind = pid;
			break;
		}
	reap_abandoned(helper);
	return 0;
}

/* It ended, or had to: the next one may start, the later the more often that happens. */
static int fail(struct helper *helper, int error)
{
	int status = end(helper);

	if (error == -ECANCELED) {
		log_debug("%s: ended, its request was cancelled", serve_name(helper->kind));
	} else if (error == -ETIMEDOUT) {
		helper->stats.timeouts++;
		log_debug("%s: killed, it did not answer in time", serve_name(helper->kind));
	} else {
		helper->stats.deaths++;
		log_debug("%s: ended by %s", serve_name(helper->kind),
			  WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "itself");
	}
	helper->start_at = clock_monotonic() + helper->pause_ms * NSEC_PER_MSEC;
	/* that a caller was in a hurry says nothing of it */
	if (error != -ECANCELED)
		helper->pause_ms = min_of(2 * helper->pause_ms, (unsigned int)PAUSE_MAX_MS);
	return error;
}

static int send_request(struct helper *helper, const struct helper_call *call)
{
	struct helper_header header = { .op = call->op, .bytes = (uint32_t)call->request_bytes };
	struct iovec parts[] = {
		{ .iov_base = &header, .iov_len = sizeof(header) },
		{ .iov_base = (void *)(uintptr_t)call->request, .iov_len = call->request_bytes },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts) };
	union descriptor_room room;

	descriptor_put(&message, &room, call->fd);
	while (sendmsg(helper->socket, &message, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -EPIPE;
	return 0;
}

/* 0: *ret_result is the answer, 0 or -errno; -ETIMEDOUT, -EINTR; -EPIPE: it is none. */
static int receive_answer(struct helper *helper, struct helper_call *call, int *ret_result)
{
	union descriptor_room room;
	struct helper_header header;
	struct iovec parts[] = {
		{ .iov_base = &header, .iov_len = sizeof(header) },
		{ .iov_base = call->answer, .iov_len = call->answer_bytes },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts) };
	ssize_t n;

	descriptor_expect(&message, &room);
	n = recvmsg(helper->socket, &message, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : errno == EINTR ? -EINTR : -EPIPE;
	if (descriptor_take(&message, &call->ret_fd) < 0 || n < (ssize_t)sizeof(header))
		return -EPIPE;
	call->ret_bytes = (size_t)n - sizeof(header);
	if (header.op != call->op || header.bytes != call->ret_bytes || header.result > 0)
		return -EPIPE;
	*ret_result = header.result;
	if (header.result < 0)
		return call->ret_bytes || call->ret_fd >= 0 ? -EPIPE : 0;
	if (call->ret_fd >= 0 ? !call->wants_fd : call->wants_fd && !call->may_lack_fd)
		return -EPIPE;
	return call->is_text || call->ret_bytes == call->answer_bytes ? 0 : -EPIPE;
}

/* Of one that waits for something else as well. 0: there is an answer, or its end. */
static int await_either(struct helper *helper, const struct helper_call *call, uint64_t left_ms)
{
	struct pollfd pollfds[] = {
		{ .fd = helper->socket, .events = POLLIN },
		{ .fd = call->cancel_fd, .events = POLLIN },
	};
	int r = poll(pollfds, ARRAY_SIZE(pollfds), (int)left_ms);

	if (r > 0 && pollfds[1].revents)
		return -ECANCELED;
	if (r < 0)
		return errno == EINTR ? -EINTR : -EPIPE;
	return r ? 0 : -ETIMEDOUT;
}

/* How long the next answer is waited for. */
static int set_patience(struct helper *helper, uint64_t ms)
{
	const struct timeval time = {
		.tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000 * 1000),
	};

	if (helper->patience_ms == ms)
		return 0;
	if (setsockopt(helper->socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) < 0)
		return -EPIPE;
	helper->patience_ms = ms;
	return 0;
}

/*
 * What a step of waiting took too long, ns. A VM or a control group that was paused, the helper with it: the time is
 * nobody's, or the first question after each live migration would be one that its file system did not answer.
 */
static uint64_t time_lost(uint64_t took, uint64_t step_ms)
{
	return took > (step_ms + LOST_MS) * NSEC_PER_MSEC ? took - step_ms * NSEC_PER_MSEC : 0;
}

/*
 * 0, with the answer in *ret_result, 0 or the helper's own -errno; or its failure. *ret_rest: of the time that it took what
 * is left without waiting for a CPU, percent, if there may not have been enough.
 */
static int await_answer(struct helper *helper, struct helper_call *call, int *ret_result, unsigned int *ret_rest)
{
	const uint64_t began = clock_monotonic(), most = call->timeout_ms * NSEC_PER_MSEC;
	const uint64_t prompt = min_of(PROMPT_MS * NSEC_PER_MSEC, most);
	struct cpu_wait wait = { 0 };
	uint64_t now = began, step, lost = 0, left_ms, took = 0;
	unsigned int rest;
	bool is_slow = false;
	int r;

	for (;;) {
		left_ms = ((is_slow ? most : prompt) - took) / NSEC_PER_MSEC;
		left_ms = min_of(left_ms, (uint64_t)LOOK_MS);
		left_ms = max_of(left_ms, (uint64_t)1); /* 0 would be for ever */
		r = call->can_cancel ? await_either(helper, call, left_ms) : 0;
		if (!r)
			r = set_patience(helper, left_ms);
		if (!r)
			r = receive_answer(helper, call, ret_result);
		step = now;
		now = clock_monotonic();
		lost += time_lost(now - step, left_ms);
		took = now - began - lost;
		if (r != -EINTR && r != -ETIMEDOUT)
			break;
		if (took >= most) {
			r = -ETIMEDOUT;
			break;
		}
		if (call->hurried_ms && now - began >= call->hurried_ms * NSEC_PER_MSEC && deadline_is_over(call->deadline)) {
			r = -ECANCELED;
			break;
		}
		if (!is_slow && took >= prompt) {
			is_slow = true;
			cpu_wait_begin(&wait, helper->pid);
		}
	}
	rest = is_slow ? cpu_wait_rest(&wait, helper->pid) : CPU_WAIT_PERCENT;
	call->ret_ns = took / CPU_WAIT_PERCENT * rest;
	call->ret_starved_ns = took / CPU_WAIT_PERCENT * (CPU_WAIT_PERCENT - rest) + lost;
	*ret_rest = !r || r == -ETIMEDOUT ? rest : CPU_WAIT_PERCENT;
	if (r < 0 && call->ret_fd >= 0) {
		close(call->ret_fd);
		call->ret_fd = -1;
	}
	return r;
}

/* It cannot be had: not the question's fault. */
static int refuse(struct helper *helper, int error)
{
	if (!helper->has_warned)
		log_warning("%s cannot be started: %s; %s", serve_name(helper->kind), strerror(-error),
			    helper->kind == HELPER_FETCHER ? "debug files are not fetched" :
							     "files of processes are not read");
	helper->has_warned = true;
	fail(helper, error);
	return -EAGAIN;
}

/* After one death the next question is worth the wait, after many it is not. */
static bool wait_until(uint64_t time, uint64_t most_ms)
{
	uint64_t now = clock_monotonic(), left = time > now ? time - now : 0;
	const struct timespec pause = {
		.tv_sec = (time_t)(left / NSEC_PER_SEC), .tv_nsec = (long)(left % NSEC_PER_SEC),
	};

	if (left > min_of(most_ms, (uint64_t)WAIT_MAX_MS) * NSEC_PER_MSEC)
		return false;
	nanosleep(&pause, NULL);
	return true;
}

/* Does not wait for it to be ready. */
static int start(struct helper *helper, unsigned int most_ms)
{
	int sockets[2], r;

	if (reap_abandoned(helper) == HELPER_ABANDONED_MAX || !wait_until(helper->start_at, most_ms))
		return -EAGAIN;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return -EAGAIN;
	helper->socket = sockets[0];
	helper->patience_ms = 0;
	r = broker_is_there() ? broker_start_helper(helper->kind, sockets[1], &helper->pid) :
				helper_spawn(helper->kind, sockets[1], &helper->pid);
	close(sockets[1]);
	if (r < 0) {
		helper->pid = 0;
		return refuse(helper, r);
	}
	helper->stats.starts++;
	return 0;
}

/* Before @first. */
static int await_hello(struct helper *helper, const struct helper_call *first, unsigned int most_ms)
{
	struct helper_hello hello;
	struct helper_call call = {
		.op = HELPER_HELLO, .fd = -1, .timeout_ms = most_ms,
		.can_cancel = first->can_cancel, .cancel_fd = first->cancel_fd,
		.deadline = first->deadline, .hurried_ms = first->hurried_ms,
		.answer = &hello, .answer_bytes = sizeof(hello), .ret_fd = -1,
	};
	unsigned int rest;
	int result = 0, r = await_answer(helper, &call, &result, &rest);

	if (r == -ECANCELED && first->can_cancel)
		return fail(helper, r);
	/* by the next question it may be ready */
	if (r == -ECANCELED || (r == -ETIMEDOUT && most_ms < HELLO_MS))
		return -EAGAIN;
	if (r < 0)
		return refuse(helper, r);
	helper->is_ready = true;
	helper->stats.is_confined = hello.is_confined;
	if (!hello.is_confined && SANDBOX_CAN_CONFINE && !helper->has_warned) {
		log_warning("%s: this kernel does not filter system calls", serve_name(helper->kind));
		helper->has_warned = true;
	}
	return 0;
}

int helper_new(enum helper_kind kind, struct helper **ret_helper)
{
	struct helper *helper = calloc(1, sizeof(*helper));

	if (!helper)
		return -ENOMEM;
	helper->kind = kind;
	helper->socket = -1;
	helper->pause_ms = PAUSE_FIRST_MS;
	/* by the first question it may be ready */
	start(helper, HELLO_MS);
	*ret_helper = helper;
	return 0;
}

void helper_free(struct helper *helper)
{
	if (!helper)
		return;
	end(helper);
	free(helper);
}

int helper_call(struct helper *helper, struct helper_call *call)
{
	const unsigned int start_ms = call->start_ms ? min_of(call->start_ms, (unsigned int)HELLO_MS) : HELLO_MS;
	unsigned int rest;
	int result = -EPROTO, r = 0;

	call->ret_fd = -1;
	call->ret_bytes = 0;
	call->ret_ns = 0;
	call->ret_starved_ns = 0;
	call->ret_blame = 0;
	call->ret_is_starved = false;
	if (call->request_bytes > HELPER_BYTES_MAX)
		return -E2BIG;
	if (!helper->pid)
		r = start(helper, start_ms);
	if (!r && !helper->is_ready)
		r = await_hello(helper, call, start_ms);
	if (r < 0)
		return r;
	helper->stats.calls++;
	r = send_request(helper, call);
	if (r < 0) {
		/* it had died before, and not of this */
		fail(helper, r);
		return -EAGAIN;
	}
	r = await_answer(helper, call, &result, &rest);
	if (r < 0) {
		fail(helper, r);
		call->ret_blame = r == -ECANCELED ? 0 : rest < STARVED_PERCENT ? max_of(rest, 1U) : CPU_WAIT_PERCENT;
	} else {
		helper->pause_ms = PAUSE_FIRST_MS;
		r = result;
	}
	if (rest >= STARVED_PERCENT || r == -ECANCELED)
		return r;
	call->ret_is_starved = true;
	/* any other answer is one, for who knows what it may lack */
	if (!call->ret_blame && r != -ETIME)
		return r;
	helper->stats.starved++;
	log_debug("%s: waited for a CPU for %u %% of its time", serve_name(helper->kind), CPU_WAIT_PERCENT - rest);
	return -EAGAIN;
}

pid_t helper_left_behind(const struct helper *helper)
{
	return helper->left_behind;
}

bool helper_is_abandoned(struct helper *helper, pid_t pid)
{
	bool is_abandoned = false;

	reap_abandoned(helper);
	for (size_t i = 0; i < HELPER_ABANDONED_MAX; i++)
		is_abandoned |= pid && helper->abandoned[i] == pid;
	return is_abandoned;
}

static uint64_t resident_of(pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	unsigned long long pages;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	if (file_read(AT_FDCWD, path, 4096, &text, NULL) < 0 ||
	    sscanf(text, "%*u %llu", &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void helper_stats(struct helper *helper, struct helper_stats *ret_stats)
{
	reap_abandoned(helper);
	*ret_stats = helper->stats;
	ret_stats->pid = helper->pid;
	ret_stats->resident = helper->pid ? resident_of(helper->pid) : 0;
}
