// SPDX-License-Identifier: Apache-2.0
#include "helper/opener.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "broker/broker.h"
#include "helper/memfd.h"
#include "helper/opener_ask.h"
#include "process/context.h"

enum {
	OPEN_MS = 2000,
	PATIENCE_PART = 10,	/* of the time may be waited in vain, in the long run */
	PROCESSES_MAX = 1 << 22,	/* the kernel's limit of their numbers */
};

int opener_new(struct opener **ret_opener)
{
	struct opener *opener = calloc(1, sizeof(*opener));
	int r;

	if (!opener)
		return -ENOMEM;
	r = helper_new(HELPER_OPENER, &opener->helper);
	if (r < 0) {
		free(opener);
		return r;
	}
	opener->cancel_fd = -1;
	pthread_mutex_init(&opener->lock, NULL);
	credit_init(&opener->patience, PATIENCE_NS, PATIENCE_PART, clock_monotonic());
	*ret_opener = opener;
	return 0;
}

void opener_free(struct opener *opener)
{
	if (!opener)
		return;
	helper_free(opener->helper);
	pthread_mutex_destroy(&opener->lock);
	free(opener);
}

void opener_set_cancel(struct opener *opener, int fd)
{
	opener->cancel_fd = fd;
}

void opener_until(struct opener *opener, const struct deadline *deadline)
{
	pthread_mutex_lock(&opener->lock);
	opener->deadline = deadline;
	pthread_mutex_unlock(&opener->lock);
}

/* A @call that is answered by a file and what it is. */
static int ask_stat(struct opener *opener, const struct place *place, const char *what,
		    struct helper_call *call, int *ret_fd, struct stat *ret_stat)
{
	struct open_stat st;
	int r;

	call->timeout_ms = OPEN_MS;
	call->answer = &st;
	call->answer_bytes = sizeof(st);
	call->wants_fd = true;
	r = opener_ask(opener, place, what, call);
	if (r < 0)
		return r;
	if (call->ret_fd < 0 && !call->may_lack_fd)
		return -EBADMSG;
	*ret_fd = call->ret_fd;
	*ret_stat = (struct stat){
		.st_dev = st.dev, .st_ino = st.inode, .st_size = (off_t)st.size, .st_uid = st.user,
		.st_mode = st.mode,
		.st_ctim = { .tv_sec = (time_t)(st.ctime_ns / (int64_t)NSEC_PER_SEC),
			     .tv_nsec = (long)(st.ctime_ns % (int64_t)NSEC_PER_SEC) },
	};
	return 0;
}

static int ask_at(struct opener *opener, const struct place *place, uint32_t op, int root,
		  const struct open_file *file, int *ret_fd, struct stat *ret_stat)
{
	struct helper_call call = {
		.op = op, .fd = root, .request = file,
		.request_bytes = offsetof(struct open_file, path) + strlen(file->path) + 1,
		.may_lack_fd = file->known.inode,
	};

	return ask_stat(opener, place, file->path, &call, ret_fd, ret_stat);
}

static int ask_file(struct opener *opener, uint32_t op, uint64_t space, int root,
		    const struct open_file *file, int *ret_fd, struct stat *ret_stat)
{
	/* a device without a driver is one mount's; one disk is everybody's, and not to blame */
	const struct place place = {
		.space = space, .major = file->wanted.major, .minor = file->wanted.minor,
		.tgid = file->wanted.major || !file->wanted.minor ? file->tgid : 0,
	};

	return ask_at(opener, &place, op, root, file, ret_fd, ret_stat);
}

static int open_in(struct opener *opener, struct mount_namespace *space, struct open_file *file,
		   bool needs_inode, int *ret_fd, struct stat *ret_stat)
{
	if (space->root < 0)
		return -ESTALE;
	space->used = clock_monotonic();
	file->needs_inode = needs_inode;
	file->tgid = 0;
	return ask_file(opener, OPEN_IN, space->inode, space->root, file, ret_fd, ret_stat);
}

static int keep_unanswered(int kept, int error)
{
	return opener_is_unanswered(error) ? error : kept;
}

static int open_anywhere(struct opener *opener, struct mount_namespace_table *spaces,
			 struct mount_namespace *space, uint32_t tgid, struct open_file *file,
			 int *ret_fd, struct stat *ret_stat)
{
	struct mount_namespace *host;
	int r, first = -ENOENT, unanswered = 0;

	if (space) {
		first = open_in(opener, space, file, space->is_guess, ret_fd, ret_stat);
		if (first == 0 || first == -EREMOTE || first == -EHOSTDOWN)
			return first;
		unanswered = keep_unanswered(unanswered, first);
	}
	file->tgid = tgid;
	file->with_root = space && space->root < 0;
	r = tgid ? ask_file(opener, OPEN_PROCESS, 0, -1, file, ret_fd, ret_stat) : -ENOENT;
	if (r == 0)
		return 0;
	unanswered = keep_unanswered(unanswered, r);
	if (space && space->is_guess)
		return unanswered ?: first;
	host = mount_namespace_table_guess(spaces);
	r = open_in(opener, host, file, true, ret_fd, ret_stat);
	mount_namespace_unref(host);
	if (r == 0)
		return 0;
	/* it may be where nobody could look */
	return keep_unanswered(unanswered, r) ?: (space ? first : r);
}

int opener_open(struct opener *opener, struct mount_namespace_table *spaces,
		struct mount_namespace *space, uint32_t tgid, const struct opener_wanted *wanted,
		int *ret_fd, struct stat *ret_stat)
{
	struct open_file file = {
		.wanted = { .major = wanted->major, .minor = wanted->minor,
			    .inode = wanted->inode },
		.host_dev = mount_namespace_table_host(spaces),
	};
	const struct stat *known = wanted->known;
	int r;

	if (strlen(wanted->path) >= sizeof(file.path))
		return -ENAMETOOLONG;
	strcpy(file.path, wanted->path);
	if (known)
		file.known = (struct open_stat){
			.dev = known->st_dev, .inode = known->st_ino, .size = (uint64_t)known->st_size,
			.ctime_ns = (int64_t)known->st_ctim.tv_sec * (int64_t)NSEC_PER_SEC +
				    known->st_ctim.tv_nsec,
		};
	pthread_mutex_lock(&opener->lock);
	r = open_anywhere(opener, spaces, space, tgid, &file, ret_fd, ret_stat);
	pthread_mutex_unlock(&opener->lock);
	return r;
}

static int open_path(struct opener *opener, struct mount_namespace_table *spaces, struct mount_namespace *space,
		     const char *path, enum part part, const struct opener_program *program, int *ret_fd,
		     struct stat *ret_stat)
{
	struct open_file file = { .host_dev = mount_namespace_table_host(spaces), .is_told = part == PART_TOLD };
	struct place place = { .space = space->inode, .part = part };
	int r = -ESTALE;

	if (program) {
		place.major = major(program->dev);
		place.minor = minor(program->dev);
		place.user = program->user;
	}
	if (strlen(path) >= sizeof(file.path))
		return -ENAMETOOLONG;
	strcpy(file.path, path);
	pthread_mutex_lock(&opener->lock);
	if (space->root >= 0) {
		space->used = clock_monotonic();
		r = ask_at(opener, &place, OPEN_IN, space->root, &file, ret_fd, ret_stat);
	}
	pthread_mutex_unlock(&opener->lock);
	return r;
}

int opener_open_path(struct opener *opener, struct mount_namespace_table *spaces,
		     struct mount_namespace *space, const char *path, const struct opener_program *beside,
		     int *ret_fd, struct stat *ret_stat)
{
	return open_path(opener, spaces, space, path, beside ? PART_BESIDE : PART_PATHS, beside, ret_fd, ret_stat);
}

int opener_open_told(struct opener *opener, struct mount_namespace_table *spaces,
		     struct mount_namespace *space, const char *path, const struct opener_program *program,
		     int *ret_fd, struct stat *ret_stat)
{
	return open_path(opener, spaces, space, path, PART_TOLD, program, ret_fd, ret_stat);
}

int opener_perf_map(struct opener *opener, struct mount_namespace_table *spaces,
		    struct mount_namespace *space, const struct opener_process *process, int *ret_fd,
		    struct stat *ret_stat)
{
	const struct open_perf_map map = {
		.host_dev = mount_namespace_table_host(spaces), .start_time = process->start_time,
		.tgid = process->tgid, .pid = process->pid_in_namespace, .user = process->user,
	};
	const struct place place = {
		.space = space ? space->inode : 0, .tgid = space ? 0 : process->tgid,
		.part = PART_MAPS,
	};
	struct helper_call call = {
		/* a root that stands in for another may have that number's file, too */
		.op = OPEN_PERF_MAP, .fd = space && !space->is_guess ? space->root : -1,
		.request = &map, .request_bytes = sizeof(map),
	};
	char what[48];
	int r;

	snprintf(what, sizeof(what), "the perf map of process %" PRIu32, process->tgid);
	pthread_mutex_lock(&opener->lock);
	if (call.fd >= 0)
		space->used = clock_monotonic();
	r = ask_stat(opener, &place, what, &call, ret_fd, ret_stat);
	pthread_mutex_unlock(&opener->lock);
	return r;
}

bool opener_is_deleted(struct opener *opener, uint64_t dev, int fd)
{
	const struct place place = { .major = major(dev), .minor = minor(dev) };
	struct open_stat st;
	struct helper_call call = {
		.op = OPEN_LINKS, .fd = fd, .timeout_ms = OPEN_MS,
		.answer = &st, .answer_bytes = sizeof(st),
	};
	int r;

	pthread_mutex_lock(&opener->lock);
	r = opener_ask(opener, &place, "a file", &call);
	pthread_mutex_unlock(&opener->lock);
	return r == 0 && !st.links;
}

int opener_context(struct opener *opener, const struct open_context *question,
		   struct open_context_answer *ret_answer, int *ret_fd, uint64_t *ret_size)
{
	const struct place place = { .tgid = question->tgid, .part = PART_MEMORY };
	struct helper_call call = {
		.op = OPEN_CONTEXT, .fd = -1, .timeout_ms = OPENER_PROCESS_MS,
		.request = question, .request_bytes = sizeof(*question),
		.answer = ret_answer, .answer_bytes = sizeof(*ret_answer), .wants_fd = true,
		.may_lack_fd = true,
	};
	_cleanup_close_ int memfd = -1;
	char text[64];
	int r;

	snprintf(text, sizeof(text), "the process context of process %" PRIu32, question->tgid);
	pthread_mutex_lock(&opener->lock);
	r = opener_ask(opener, &place, text, &call);
	pthread_mutex_unlock(&opener->lock);
	if (r < 0)
		return r;
	memfd = call.ret_fd;
	if (memfd >= 0 && (!memfd_is_sealed(memfd, ret_size) || *ret_size > CONTEXT_MAX_BYTES))
		return -EBADMSG;
	*ret_fd = steal_fd(&memfd);
	return 0;
}

int opener_touch(struct opener *opener, uint32_t tgid, uint64_t address, uint32_t pages)
{
	const struct open_touch touch = {
		.address = address, .tgid = tgid, .pages = pages, .page_bytes = (uint32_t)sysconf(_SC_PAGESIZE),
	};
	const struct place place = { .tgid = tgid, .part = PART_MEMORY };
	struct open_count answer;
	struct helper_call call = {
		.op = OPEN_TOUCH, .fd = -1, .timeout_ms = OPENER_PROCESS_MS,
		.request = &touch, .request_bytes = sizeof(touch),
		.answer = &answer, .answer_bytes = sizeof(answer),
	};
	char text[48];
	int r;

	snprintf(text, sizeof(text), "the memory of process %" PRIu32, tgid);
	pthread_mutex_lock(&opener->lock);
	r = opener_ask(opener, &place, text, &call);
	pthread_mutex_unlock(&opener->lock);
	return r < 0 ? r : (int)min_of(answer.count, pages);
}

int opener_processes(struct opener *opener, int (*each)(void *ctx, uint32_t tgid), void *ctx)
{
	_cleanup_free_ uint32_t *tgids = NULL;
	_cleanup_close_ int memfd = -1;
	struct open_count answer;
	struct helper_call call = {
		.op = OPEN_PROCESSES, .fd = -1, .timeout_ms = OPENER_PROCESS_MS,
		.answer = &answer, .answer_bytes = sizeof(answer), .wants_fd = true,
	};
	uint64_t size;
	int r;

	if (!broker_is_there())
		return process_each(each, ctx);
	pthread_mutex_lock(&opener->lock);
	r = opener_ask(opener, &(struct place){ 0 }, "/proc", &call);
	pthread_mutex_unlock(&opener->lock);
	if (r < 0)
		return r;
	memfd = call.ret_fd;
	if (!memfd_is_sealed(memfd, &size) || answer.count > PROCESSES_MAX || size != answer.count * sizeof(*tgids))
		return -EBADMSG;
	tgids = malloc(size + 1);
	r = tgids ? memfd_read(memfd, tgids, size, 0) : -ENOMEM;
	for (uint32_t i = 0; !r && i < answer.count; i++)
		r = each(ctx, tgids[i]);
	return r;
}

void opener_stats(struct opener *opener, struct opener_stats *ret_stats)
{
	const uint64_t now = clock_monotonic();

	*ret_stats = (struct opener_stats){ 0 };
	pthread_mutex_lock(&opener->lock);
	helper_stats(opener->helper, &ret_stats->helper);
	for (size_t i = 0; i < QUARANTINES_MAX; i++)
		ret_stats->quarantined += opener->quarantines[i].length &&
					  now < opener->quarantines[i].until;
	ret_stats->left_alone = opener->left_alone;
	memcpy(ret_stats->last_quarantined, opener->last_quarantined,
	       sizeof(ret_stats->last_quarantined));
	pthread_mutex_unlock(&opener->lock);
}
