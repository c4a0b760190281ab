// SPDX-License-Identifier: Apache-2.0
#include "helper/opener.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "base/credit.h"
#include "base/log.h"
#include "base/utf8.h"
#include "helper/memfd.h"
#include "process/context.h"
#include "process/details.h"

#define QUARANTINE_FIRST_NS ((uint64_t)60 * NSEC_PER_SEC)	/* doubled each time it happens again */
#define QUARANTINE_MAX_NS (3600 * NSEC_PER_SEC)
#define PATIENCE_NS (20 * NSEC_PER_SEC)	/* for questions without an answer, or a late one, in one go */
#define SLOW_NS (NSEC_PER_SEC / 4)	/* what takes longer is slow; a quarter of the patience is for such */

enum {
	OPEN_MS = 2000,
	PROCESS_MS = 2000,	/* what /proc says; a process of 60,000 mappings takes a tenth of it */
	PATIENCE_PART = 10,	/* of the time may be waited in vain, in the long run */
	QUARANTINES_MAX = 64,
	MAPPINGS_MAX = 16384,
	PATHS_MAX_BYTES = 4 << 20,
};

/* What of a namespace is to blame: what hangs below /usr/lib/debug says nothing of the rest. */
enum part {
	PART_FILES,
	PART_PATHS,	/* of debug files */
	PART_MAPS,	/* perf maps, in /tmp */
	PART_MEMORY,	/* of a process, which may be a file of a server that does not answer */
};

/* Of a mount namespace, of a device in it, or of a process; what is unknown is 0. */
struct place {
	uint64_t space;
	uint32_t major, minor;
	uint32_t tgid;
	enum part part;
};

struct quarantine {
	struct place place;
	uint64_t until, length;	/* ns; length 0: free */
	pid_t pid;		/* of the opener that still hangs there; 0: none */
};

struct opener {
	pthread_mutex_t lock;	/* all of it */
	struct helper *helper;
	struct credit patience;
	struct quarantine quarantines[QUARANTINES_MAX];
	uint64_t left_alone;
	char last_quarantined[256];
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

static bool is_same_place(const struct place *a, const struct place *b)
{
	return a->space == b->space && a->major == b->major && a->minor == b->minor &&
	       a->tgid == b->tgid && a->part == b->part;
}

static struct quarantine *find_quarantine(struct opener *opener, const struct place *place)
{
	for (size_t i = 0; i < QUARANTINES_MAX; i++)
		if (opener->quarantines[i].length &&
		    is_same_place(&opener->quarantines[i].place, place))
			return &opener->quarantines[i];
	return NULL;
}

/* A free place, or the one that ends first. */
static struct quarantine *new_quarantine(struct opener *opener)
{
	struct quarantine *found = &opener->quarantines[0];

	for (size_t i = 0; i < QUARANTINES_MAX && found->length; i++)
		if (!opener->quarantines[i].length || opener->quarantines[i].until < found->until)
			found = &opener->quarantines[i];
	return found;
}

static void quarantine(struct opener *opener, const struct place *place, const char *what,
		       const char *why)
{
	struct quarantine *quarantine = find_quarantine(opener, place);
	char text[200];

	if (quarantine) {
		quarantine->length = min_of(2 * quarantine->length, (uint64_t)QUARANTINE_MAX_NS);
	} else {
		quarantine = new_quarantine(opener);
		*quarantine = (struct quarantine){ .place = *place, .length = QUARANTINE_FIRST_NS };
	}
	quarantine->until = clock_monotonic() + quarantine->length;
	quarantine->pid = helper_left_behind(opener->helper);
	utf8_copy(text, sizeof(text), what);
	snprintf(opener->last_quarantined, sizeof(opener->last_quarantined), "%s", text);
	log_warning("%s: %s; it is left alone for %" PRIu64 " s, and frames there stay without names", text,
		    why, quarantine->length / (uint64_t)NSEC_PER_SEC);
}

/* -EHOSTDOWN instead of asking again where the last question had no answer. */
static int ask(struct opener *opener, const struct place *place, const char *what,
	       struct helper_call *call)
{
	struct quarantine *known = find_quarantine(opener, place);
	const uint64_t began = clock_monotonic();
	uint64_t now;
	bool is_slow;
	int r;

	/* while one hangs there another would, too */
	if (known && (began < known->until || helper_is_abandoned(opener->helper, known->pid))) {
		opener->left_alone++;
		return -EHOSTDOWN;
	}
	if (!credit_left(&opener->patience, began))
		return -EAGAIN;
	r = helper_call(opener->helper, call);
	now = clock_monotonic();
	is_slow = r != -EAGAIN && now - began > SLOW_NS;
	if (r == -ETIMEDOUT || r == -EPIPE || is_slow)
		credit_spend(&opener->patience, began, now);
	if (r == -ETIMEDOUT) {
		quarantine(opener, place, what, "its file system does not answer");
		return -EHOSTDOWN;
	}
	/* a host that is loaded is slow at times, a server that means to be is whenever it is asked */
	if (is_slow && credit_left(&opener->patience, now) < PATIENCE_NS / 4 * 3)
		quarantine(opener, place, what, "its file system is slow to answer");
	else if (known && r != -EPIPE && r != -EAGAIN)
		known->length = 0;	/* it answers again */
	return r;
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
	r = ask(opener, place, what, call);
	if (r < 0)
		return r;
	if (call->ret_fd < 0)
		return -EBADMSG;
	*ret_fd = call->ret_fd;
	*ret_stat = (struct stat){
		.st_dev = st.dev, .st_ino = st.inode, .st_size = (off_t)st.size,
		.st_ctim = { .tv_sec = (time_t)(st.ctime_ns / (int64_t)NSEC_PER_SEC),
			     .tv_nsec = (long)(st.ctime_ns % (int64_t)NSEC_PER_SEC) },
	};
	return 0;
}

static int ask_file(struct opener *opener, uint32_t op, uint64_t space, int root, enum part part,
		    const struct open_file *file, int *ret_fd, struct stat *ret_stat)
{
	/* a device without a driver is one mount's; one disk is everybody's, and not to blame */
	const struct place place = {
		.space = space, .major = file->wanted.major, .minor = file->wanted.minor,
		.tgid = file->wanted.major || !file->wanted.minor ? file->tgid : 0, .part = part,
	};
	struct helper_call call = {
		.op = op, .fd = root, .request = file, .request_bytes = sizeof(*file),
	};

	return ask_stat(opener, &place, file->wanted.path, &call, ret_fd, ret_stat);
}

static int open_in(struct opener *opener, struct mount_namespace *space, enum part part,
		   struct open_file *file, bool needs_inode, int *ret_fd, struct stat *ret_stat)
{
	if (space->root < 0)
		return -ESTALE;
	space->used = clock_monotonic();
	file->needs_inode = needs_inode;
	file->tgid = 0;
	return ask_file(opener, OPEN_IN, space->inode, space->root, part, file, ret_fd, ret_stat);
}

static int open_anywhere(struct opener *opener, struct mount_namespace_table *spaces,
			 struct mount_namespace *space, uint32_t tgid, struct open_file *file,
			 int *ret_fd, struct stat *ret_stat)
{
	struct mount_namespace *host;
	int r, first = -ENOENT;

	if (space) {
		first = open_in(opener, space, PART_FILES, file, space->is_guess, ret_fd, ret_stat);
		if (first == 0 || first == -EREMOTE || first == -EHOSTDOWN)
			return first;
	}
	file->tgid = tgid;
	file->with_root = space && space->root < 0;
	if (tgid &&
	    ask_file(opener, OPEN_PROCESS, 0, -1, PART_FILES, file, ret_fd, ret_stat) == 0)
		return 0;
	if (space && space->is_guess)
		return first;
	host = mount_namespace_table_guess(spaces);
	r = open_in(opener, host, PART_FILES, file, true, ret_fd, ret_stat);
	mount_namespace_unref(host);
	return r == 0 || !space ? r : first;
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
	int r;

	if (strlen(wanted->path) >= sizeof(file.wanted.path))
		return -ENAMETOOLONG;
	strcpy(file.wanted.path, wanted->path);
	pthread_mutex_lock(&opener->lock);
	r = open_anywhere(opener, spaces, space, tgid, &file, ret_fd, ret_stat);
	pthread_mutex_unlock(&opener->lock);
	return r;
}

int opener_open_path(struct opener *opener, struct mount_namespace_table *spaces,
		     struct mount_namespace *space, const char *path, int *ret_fd, struct stat *ret_stat)
{
	struct open_file file = { .host_dev = mount_namespace_table_host(spaces) };
	int r;

	if (strlen(path) >= sizeof(file.wanted.path))
		return -ENAMETOOLONG;
	strcpy(file.wanted.path, path);
	pthread_mutex_lock(&opener->lock);
	r = open_in(opener, space, PART_PATHS, &file, false, ret_fd, ret_stat);
	pthread_mutex_unlock(&opener->lock);
	return r;
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

static void say_process(uint32_t tgid, char ret_text[static 32])
{
	snprintf(ret_text, 32, "process %" PRIu32, tgid);
}

int opener_space(struct opener *opener, struct mount_namespace_table *spaces, uint32_t tgid,
		 struct mount_namespace **ret_space)
{
	const struct open_process process = { .tgid = tgid };
	struct open_stat st;
	struct helper_call call = {
		.op = OPEN_ROOT, .fd = -1, .timeout_ms = PROCESS_MS,
		.request = &process, .request_bytes = sizeof(process),
		.answer = &st, .answer_bytes = sizeof(st), .wants_fd = true,
	};
	struct mount_namespace_id id;
	char text[32];
	int r;

	/* this is the kernel's own file system: it answers */
	r = mount_namespace_identify(tgid, &id);
	if (r < 0)
		return r;
	say_process(tgid, text);
	pthread_mutex_lock(&opener->lock);
	r = ask(opener, &(struct place){ .space = id.inode }, text, &call);
	pthread_mutex_unlock(&opener->lock);
	if (r < 0)
		return r;
	if (call.ret_fd < 0)
		return -EBADMSG;
	id.root_dev = st.dev;
	id.root_inode = st.inode;
	return mount_namespace_table_take(spaces, &id, call.ret_fd, ret_space);
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
	r = ask(opener, &place, "a file", &call);
	pthread_mutex_unlock(&opener->lock);
	return r == 0 && !st.links;
}

static int ask_process(struct opener *opener, uint32_t op, const struct open_process *process,
		       void *answer, size_t answer_bytes, int *ret_fd)
{
	struct helper_call call = {
		.op = op, .fd = -1, .timeout_ms = PROCESS_MS,
		.request = process, .request_bytes = sizeof(*process),
		.answer = answer, .answer_bytes = answer_bytes, .wants_fd = op == OPEN_SCAN,
	};
	char text[32];
	int r;

	say_process(process->tgid, text);
	pthread_mutex_lock(&opener->lock);
	r = ask(opener, &(struct place){ .tgid = process->tgid }, text, &call);
	pthread_mutex_unlock(&opener->lock);
	*ret_fd = call.ret_fd;
	return r;
}

static char *take_text(char *text, size_t size)
{
	text[size - 1] = '\0';
	return text[0] ? utf8_dup(text, size - 1) : NULL;
}

int opener_details(struct opener *opener, uint32_t tgid, bool with_command_line,
		   struct image_details **ret_details)
{
	const struct open_process process = {
		.tgid = tgid, .with_command_line = with_command_line,
	};
	struct image_details *details;
	struct open_details from;
	int fd, r;

	r = ask_process(opener, OPEN_DETAILS, &process, &from, sizeof(from), &fd);
	if (r < 0)
		return r;
	details = calloc(1, sizeof(*details));
	if (!details)
		return -ENOMEM;
	details->pid_in_namespace = from.pid_in_namespace;
	details->user = from.user;
	details->executable_path = take_text(from.executable_path, sizeof(from.executable_path));
	details->executable_name = take_text(from.executable_name, sizeof(from.executable_name));
	details->container_id = take_text(from.container_id, sizeof(from.container_id));
	details->container_name = take_text(from.container_name, sizeof(from.container_name));
	details->pod_uid = take_text(from.pod_uid, sizeof(from.pod_uid));
	details->pod_qos = take_text(from.pod_qos, sizeof(from.pod_qos));
	details->unit = take_text(from.unit, sizeof(from.unit));
	details->cgroup = take_text(from.cgroup, sizeof(from.cgroup));
	details->attributes = take_text(from.attributes, sizeof(from.attributes));
	details->service_name = take_text(from.service_name, sizeof(from.service_name));
	details->command_line = take_text(from.command_line, sizeof(from.command_line));
	*ret_details = details;
	return 0;
}

static int take_mappings(struct process_snapshot *snapshot, const struct open_scan *scan,
			 const uint8_t *bytes)
{
	const struct open_mapping *from = (const void *)bytes;
	const char *path = (const char *)(from + scan->count), *end = path + scan->path_bytes;

	snapshot->mappings = calloc(scan->count + 1, sizeof(*snapshot->mappings));
	if (!snapshot->mappings)
		return -ENOMEM;
	for (uint32_t i = 0; i < scan->count; i++) {
		const char *stop = memchr(path, '\0', (size_t)(end - path));

		if (!stop || from[i].start >= from[i].end)
			return -EBADMSG;
		snapshot->mappings[i] = (struct process_snapshot_mapping){
			.start = from[i].start, .end = from[i].end,
			.file_offset = from[i].file_offset, .inode = from[i].inode,
			.major = from[i].major, .minor = from[i].minor, .path = strdup(path),
		};
		if (!snapshot->mappings[i].path)
			return -ENOMEM;
		snapshot->mapping_count++;
		path = stop + 1;
	}
	return 0;
}

static int take_snapshot(uint32_t tgid, const struct open_scan *scan, int fd,
			 struct process_snapshot **ret_snapshot)
{
	const uint64_t wanted = scan->count * sizeof(struct open_mapping) + scan->path_bytes;
	_cleanup_free_ uint8_t *bytes = NULL;
	struct process_snapshot *snapshot;
	uint64_t size;
	int r;

	if (!memfd_is_sealed(fd, &size) || scan->count > MAPPINGS_MAX ||
	    scan->path_bytes > PATHS_MAX_BYTES || size != wanted)
		return -EBADMSG;
	bytes = malloc(size + 1);
	snapshot = calloc(1, sizeof(*snapshot));
	r = bytes && snapshot ? memfd_read(fd, bytes, size, 0) : -ENOMEM;
	if (!r)
		r = take_mappings(snapshot, scan, bytes);
	if (r < 0) {
		process_snapshot_free(snapshot);
		return r;
	}
	snapshot->time = scan->time;
	snapshot->tgid = tgid;
	snapshot->parent_tgid = scan->parent_tgid;
	snapshot->start_time = scan->start_time;
	snapshot->is_cut = scan->is_cut;
	memcpy(snapshot->comm, scan->comm, sizeof(snapshot->comm) - 1);
	*ret_snapshot = snapshot;
	return 0;
}

int opener_scan(struct opener *opener, uint32_t tgid, struct process_snapshot **ret_snapshot)
{
	const struct open_process process = { .tgid = tgid };
	_cleanup_close_ int memfd = -1;
	struct open_scan scan;
	int r;

	r = ask_process(opener, OPEN_SCAN, &process, &scan, sizeof(scan), &memfd);
	return r < 0 ? r : take_snapshot(tgid, &scan, memfd, ret_snapshot);
}

int opener_context(struct opener *opener, const struct open_context *question,
		   struct open_context_answer *ret_answer, int *ret_fd, uint64_t *ret_size)
{
	const struct place place = { .tgid = question->tgid, .part = PART_MEMORY };
	struct helper_call call = {
		.op = OPEN_CONTEXT, .fd = -1, .timeout_ms = PROCESS_MS,
		.request = question, .request_bytes = sizeof(*question),
		.answer = ret_answer, .answer_bytes = sizeof(*ret_answer), .wants_fd = true,
		.may_lack_fd = true,
	};
	_cleanup_close_ int memfd = -1;
	char text[64];
	int r;

	snprintf(text, sizeof(text), "the process context of process %" PRIu32, question->tgid);
	pthread_mutex_lock(&opener->lock);
	r = ask(opener, &place, text, &call);
	pthread_mutex_unlock(&opener->lock);
	if (r < 0)
		return r;
	memfd = call.ret_fd;
	if (memfd >= 0 && (!memfd_is_sealed(memfd, ret_size) || *ret_size > CONTEXT_MAX_BYTES))
		return -EBADMSG;
	*ret_fd = steal_fd(&memfd);
	return 0;
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
