// SPDX-License-Identifier: Apache-2.0
#include "cli/targets.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/file.h"

enum { STAT_BYTES = 4096 };

struct task {
	char state;
	unsigned int threads;
	uint64_t start_time;
};

static bool read_task(uint32_t id, struct task *ret_task)
{
	_cleanup_free_ char *text = NULL;
	const char *end;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", id);
	if (file_read(AT_FDCWD, path, STAT_BYTES, &text, NULL) < 0)
		return false;
	/* a name may hold anything, also parentheses: proc(5) counts on from the last one */
	end = strrchr(text, ')');
	return end && sscanf(end + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			     "%*s %*s %u %*s %" SCNu64, &ret_task->state, &ret_task->threads,
			     &ret_task->start_time) == 3;
}

/* A process whose first thread has ended lives on while it has others. */
static bool is_there(const struct target *target, bool is_process)
{
	struct task task;

	/* one that may not be read (hidepid=), or not now, is there as long as it can be signalled */
	if (!read_task(target->id, &task))
		return !kill((pid_t)target->id, 0) || errno == EPERM;
	if (target->start_time && task.start_time != target->start_time)
		return false;
	return !strchr("ZXx", task.state) || (is_process && task.threads > 1);
}

static bool any_left(struct target *targets, size_t *count, bool is_process)
{
	while (*count && !is_there(&targets[*count - 1], is_process))
		--*count;
	return *count;
}

static int add(struct target **ret_targets, size_t *ret_count, const uint32_t *ids, size_t count)
{
	*ret_count = count;
	if (!count)
		return 0;
	*ret_targets = calloc(count, sizeof(**ret_targets));
	if (!*ret_targets)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct task task = { 0 };

		read_task(ids[i], &task);
		(*ret_targets)[i] = (struct target){ .id = ids[i], .start_time = task.start_time };
	}
	return 0;
}

int targets_init(struct targets *ret_targets, const struct control_filter *filter)
{
	struct targets targets = { 0 };
	int r;

	r = add(&targets.processes, &targets.process_count, filter->tgids, filter->tgid_count) ?:
	    add(&targets.threads, &targets.thread_count, filter->tids, filter->tid_count);
	if (r < 0) {
		targets_done(&targets);
		return r;
	}
	*ret_targets = targets;
	return 0;
}

void targets_done(struct targets *targets)
{
	free(targets->processes);
	free(targets->threads);
	*targets = (struct targets){ 0 };
}

bool targets_are_gone(struct targets *targets)
{
	return (targets->processes &&
		!any_left(targets->processes, &targets->process_count, true)) ||
	       (targets->threads && !any_left(targets->threads, &targets->thread_count, false));
}
