// SPDX-License-Identifier: Apache-2.0
#include "service/extra.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "service/start.h"
#include "service/viewer.h"

enum {
	AROUND_MS = 60000,	/* unwind tables of all processes before, names behind it */
	END_MS = 5000,		/* from its last byte until it has ended */
	STEP_US = 10000,
	ARGUMENTS_MAX = 20,
	EXIT_USAGE = 2,
};

/* Of each CPU. Both that may run have less than half of what the module lets all sessions take. */
#define CEILING_PERCENT "0.2"

struct extra {
	const struct extra_options *options;
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

/* Whose recording is at its end, or whose reader has seen enough. */
static void end_soon(struct extra *extra)
{
	const uint64_t end = clock_monotonic() + END_MS * NSEC_PER_MSEC;
	pid_t ended = 0;

	while (!ended && clock_monotonic() < end) {
		ended = waitpid(extra->pid, &extra->status, WNOHANG);
		if (!ended)
			usleep(STEP_US);
	}
	if (ended != extra->pid)
		extra->status = start_end(extra->pid);
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

/* Where it is installed, or was built. */
static int find_program(char path[PATH_MAX])
{
	static const char *const places[] = { "/stacktap", "/../bin/stacktap" };
	char own[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (length < 0)
		return -errno;
	own[length] = '\0';
	*strrchr(own, '/') = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (snprintf(path, PATH_MAX, "%s%s", own, places[i]) < PATH_MAX && !access(path, X_OK))
			return 0;
	return -ENOENT;
}

static int start(struct extra *extra, const char *program, int output)
{
	const struct extra_options *options = extra->options;
	const char *event = options->selection->event;
	_cleanup_free_ char *named = NULL;
	char seconds[16], *argv[ARGUMENTS_MAX] = { NULL };
	size_t count = 0;

	snprintf(seconds, sizeof(seconds), "%u", options->seconds);
	if (event && asprintf(&named, "--event=%s", event) < 0) {
		named = NULL;
		return -ENOMEM;
	}
#define PUT(text) (argv[count++] = (char *)(uintptr_t)(text))
	PUT("stacktap"), PUT("record"), PUT("-q"), PUT("-o"), PUT("-");
	PUT("--duration"), PUT(seconds), PUT("--ceiling"), PUT(CEILING_PERCENT);
	if (options->pid)
		PUT("-p"), PUT(options->pid);
	else
		PUT("-a");
	if (named)
		PUT(named);
	if (options->rate)
		PUT("-F"), PUT(options->rate);
	if (options->period)
		PUT("-c"), PUT(options->period);
#undef PUT
	return start_program(program, argv, (const struct start_fd[]){
		{ output, STDOUT_FILENO }, { extra->complaints, STDERR_FILENO } }, 2, &extra->pid);
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

static int take(struct extra *extra, const char *program, struct web_answer *answer)
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
	err = start(extra, program, ends[1]);
	close(ends[1]);
	job.input = ends[0];
	if (err)
		extra->pid = 0;
	else
		err = viewer_ask(&job, answer);
	close(ends[0]);
	if (extra->pid)
		extra->status = start_end(extra->pid);
	return err;
}

int extra_take(const struct extra_options *options, struct web_answer *answer, char *ret_reason, size_t reason_size)
{
	struct extra extra = { .options = options };
	_cleanup_close_ int complaints = memfd_create("stacktap", MFD_CLOEXEC);
	char path[PATH_MAX];
	int err;

	if (!options->stacktap && find_program(path)) {
		snprintf(ret_reason, reason_size, "There is no `stacktap' beside stacktapd, which would take this profile: "
			 "install both.");
		return -ENOEXEC;
	}
	if (complaints < 0)
		return -EIO;
	extra.complaints = complaints;
	err = take(&extra, options->stacktap ?: path, answer);
	return err == -ENOMSG ? tell_why(&extra, ret_reason, reason_size) : err;
}
