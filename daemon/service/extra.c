// SPDX-License-Identifier: Apache-2.0
#include "service/extra.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "broker/broker.h"
#include "service/record.h"
#include "service/viewer.h"

enum {
	AROUND_MS = 60000,	/* unwind tables of all processes before, names behind it */
	END_MS = 5000,		/* from its last byte until it has ended, and once more from being killed */
	STEP_US = 10000,
	EXIT_USAGE = 2,
};

struct extra {
	const struct extra_options *options;
	struct record_request request;
	pid_t pid;		/* 0: it has ended */
	int status;
	int complaints;		/* its standard error, a file without a name */
};

static bool goes_on(void *ctx)
{
	const struct extra *extra = ctx;
	const struct extra_options *options = extra->options;

	return !atomic_load(options->stop) && options->is_sampling(options->ctx);
}

static bool has_ended(struct extra *extra)
{
	const uint64_t end = clock_monotonic() + END_MS * NSEC_PER_MSEC;

	while (!broker_wait(extra->pid, &extra->status)) {
		if (clock_monotonic() >= end)
			return false;
		usleep(STEP_US);
	}
	return true;
}

/* What does not die of it is in the kernel's hands, and is let go of. */
static void end_now(struct extra *extra)
{
	broker_kill(extra->pid);
	has_ended(extra);
	extra->pid = 0;
}

/* Whose recording is at its end, or whose reader has seen enough. */
static void end_soon(struct extra *extra)
{
	if (!has_ended(extra))
		end_now(extra);
	extra->pid = 0;
}

static bool has_failed(const struct extra *extra)
{
	return !extra->pid && WIFEXITED(extra->status) && WEXITSTATUS(extra->status);
}

static bool has_worked(void *ctx)
{
	struct extra *extra = ctx;

	end_soon(extra);
	return !has_failed(extra);
}

static bool put(char *field, size_t size, const char *text)
{
	return snprintf(field, size, "%s", text ?: "") < (int)size;
}

static bool describe(const struct extra_options *options, struct record_request *ret_request)
{
	*ret_request = (struct record_request){ .seconds = options->seconds };
	return put(ret_request->pid, sizeof(ret_request->pid), options->pid) &&
	       put(ret_request->rate, sizeof(ret_request->rate), options->rate) &&
	       put(ret_request->period, sizeof(ret_request->period), options->period) &&
	       put(ret_request->event, sizeof(ret_request->event), options->selection->event);
}

static int start(struct extra *extra, int output)
{
	if (broker_is_there())
		return broker_start_record(&extra->request, output, extra->complaints, &extra->pid);
	return record_start(&extra->request, extra->options->arguments, extra->options->stacktap, output,
			    extra->complaints, &extra->pid);
}

/* All but what the session selects itself. */
static void select_rest(const struct extra_options *options, struct web_request *ret_request)
{
	static const char *const names[] = { "process", "thread", "container", "service", "cgroup" };
	const char *value;

	*ret_request = (struct web_request){ .socket = options->request->socket };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		value = web_query(options->request, names[i]);
		if (value)
			web_request_add(ret_request, names[i], value);
	}
}

/* The first line that it wrote, without its name. */
static int tell_why(const struct extra *extra, char *ret_reason, size_t size)
{
	static const char prefix[] = "stacktap: ";
	char text[512];
	ssize_t got = pread(extra->complaints, text, sizeof(text) - 1, 0);
	const char *start = text;

	text[got > 0 ? got : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (!strncmp(text, prefix, sizeof(prefix) - 1))
		start += sizeof(prefix) - 1;
	if (!utf8_copy(ret_reason, size, start))
		snprintf(ret_reason, size, "stacktap record ended with %d.", WEXITSTATUS(extra->status));
	return WEXITSTATUS(extra->status) == EXIT_USAGE ? -EINVAL : -ENOEXEC;
}

/* The broker reads the configuration itself, and has a limit of processes. */
static void tell_start(const struct extra_options *options, int err, char *ret_reason, size_t size)
{
	if (err == -EINVAL)
		snprintf(ret_reason, size, "The configuration file is invalid: `stacktapd --check-config' says where.");
	else if (err == -EAGAIN)
		snprintf(ret_reason, size, "Too many helper processes are running. Try again later.");
	else
		snprintf(ret_reason, size, "Cannot start %s: %s. Is it installed and executable?",
			 options->stacktap ?: "stacktap", strerror(-err));
}

static int take(struct extra *extra, struct web_answer *answer, char *ret_reason, size_t reason_size)
{
	const struct extra_options *options = extra->options;
	struct web_request request;
	char name[64];
	struct viewer_job job = {
		.name = name, .path = options->path, .request = &request,
		.deadline = clock_monotonic() + options->seconds * NSEC_PER_SEC + AROUND_MS * NSEC_PER_MSEC,
		.goes_on = goes_on, .is_wanted = has_worked, .ctx = extra,
	};
	int ends[2], err;

	select_rest(options, &request);
	snprintf(name, sizeof(name), "%u seconds", options->seconds);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -EIO;
	err = start(extra, ends[1]);
	close(ends[1]);
	job.input = ends[0];
	if (err) {
		extra->pid = 0;
		tell_start(options, err, ret_reason, reason_size);
		err = err == -ENOENT ? err : -ENOEXEC;
	} else {
		err = viewer_ask(&job, answer);
	}
	close(ends[0]);
	if (extra->pid)
		end_now(extra);
	return err;
}

int extra_take(const struct extra_options *options, struct web_answer *answer, char *ret_reason, size_t reason_size)
{
	struct extra extra = { .options = options };
	_cleanup_close_ int complaints = memfd_create("stacktap", MFD_CLOEXEC);
	int err;

	if (complaints < 0)
		return -EIO;
	if (!describe(options, &extra.request)) {
		snprintf(ret_reason, reason_size, "The name of the event is too long.");
		return -EINVAL;
	}
	extra.complaints = complaints;
	err = take(&extra, answer, ret_reason, reason_size);
	if (err == -ENOENT) {
		snprintf(ret_reason, reason_size, "`stacktap', which takes this profile, is not "
			 "installed beside stacktapd: install both.");
		return -ENOEXEC;
	}
	return err == -ENOMSG ? tell_why(&extra, ret_reason, reason_size) : err;
}
