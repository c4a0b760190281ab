// SPDX-License-Identifier: Apache-2.0
/* Asking the opener what /proc says of a process. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "broker/broker.h"
#include "helper/memfd.h"
#include "helper/opener.h"
#include "helper/opener_ask.h"
#include "helper/protocol.h"
#include "process/image.h"
#include "process/texts.h"

#define APART_NS (600 * NSEC_PER_SEC)

enum {
	MAPPINGS_MAX = 16384,
	PATHS_MAX_BYTES = 4 << 20,
};

static void say_process(uint32_t tgid, char ret_text[static 32])
{
	snprintf(ret_text, 32, "process %" PRIu32, tgid);
}

/* What came of a question about an image, or of two. */
struct answered {
	struct open_image_answer image;
	char texts[TEXTS_MAX_BYTES];
};

static int ask_image(struct opener *opener, const struct place *place, const struct open_image *question,
		     struct answered *ret_answered, size_t *ret_text_bytes, int *ret_root)
{
	struct helper_call call = {
		.op = OPEN_IMAGE, .fd = -1, .timeout_ms = OPENER_PROCESS_MS,
		.request = question, .request_bytes = sizeof(*question),
		.answer = ret_answered, .answer_bytes = sizeof(*ret_answered), .is_text = true,
		.wants_fd = question->parts & OPEN_IMAGE_ROOT, .may_lack_fd = true,
	};
	char text[32];
	int r;

	say_process(question->tgid, text);
	r = opener_ask(opener, place, text, &call);
	*ret_root = call.ret_fd;
	if (r < 0)
		return r;
	if (call.ret_bytes < sizeof(ret_answered->image)) {
		if (call.ret_fd >= 0)
			close(call.ret_fd);
		*ret_root = -1;
		return -EBADMSG;
	}
	*ret_text_bytes = call.ret_bytes - sizeof(ret_answered->image);
	return 0;
}

static void take_root(struct mount_namespace_table *spaces, const struct open_image *question,
		      struct mount_namespace_id *id, const struct open_image_answer *answer, int root,
		      struct mount_namespace **ret_space)
{
	const bool is_known = question->root_inode && answer->root_dev == question->root_dev &&
			      answer->root_inode == question->root_inode;
	struct mount_namespace *space;

	id->root_dev = answer->root_dev;
	id->root_inode = answer->root_inode;
	if (answer->root_result || (root < 0 && !is_known)) {
		if (root >= 0)
			close(root);
		return;
	}
	if (mount_namespace_table_take(spaces, id, root, &space) == 0)
		*ret_space = space;
}

static void take_details(const struct answered *answered, size_t text_bytes,
			 struct image_details **ret_details)
{
	struct image_details *details = answered->image.details_result ? NULL : calloc(1, sizeof(*details));

	if (!details)
		return;
	details->pid_in_namespace = answered->image.pid_in_namespace;
	details->user = answered->image.user;
	if (texts_take(answered->texts, text_bytes, details) < 0)
		image_details_free(details);
	else
		*ret_details = details;
}

/* One question, which hangs or is slow for the one or the other: a later one of that kind is asked apart. */
static int ask_together(struct opener *opener, struct mount_namespace_table *spaces,
			 const struct place *process, struct open_image *question,
			 struct mount_namespace_id *id, struct mount_namespace **ret_space,
			 struct image_details **ret_details)
{
	struct answered answered;
	size_t text_bytes;
	int r, root;

	question->parts = OPEN_IMAGE_ROOT | OPEN_IMAGE_DETAILS;
	r = ask_image(opener, process, question, &answered, &text_bytes, &root);
	if (r == 0) {
		take_details(&answered, text_bytes, ret_details);
		take_root(spaces, question, id, &answered.image, root, ret_space);
	}
	if (opener_is_doubtful(opener, process))
		opener->apart_until = clock_monotonic() + APART_NS;
	return r;
}

/* Its root may be a file server's, what is in its memory as well: each is left alone for itself. */
static int ask_apart(struct opener *opener, struct mount_namespace_table *spaces,
		      const struct place *process, struct open_image *question,
		      struct mount_namespace_id *id, struct mount_namespace **ret_space,
		      struct image_details **ret_details)
{
	struct answered answered;
	size_t text_bytes;
	int r, details, root;

	question->parts = OPEN_IMAGE_DETAILS;
	details = ask_image(opener, process, question, &answered, &text_bytes, &root);
	if (details == 0)
		take_details(&answered, text_bytes, ret_details);
	if (!id->inode)
		return details;
	question->parts = OPEN_IMAGE_ROOT;
	r = ask_image(opener, &(struct place){ .space = id->inode }, question, &answered, &text_bytes, &root);
	if (r == 0)
		take_root(spaces, question, id, &answered.image, root, ret_space);
	return opener_is_unanswered(details) ? details : r;
}

/* With the lock. This is the kernel's own file system: it answers, but not to who may not look at the process. */
static int identify(struct opener *opener, uint32_t tgid, struct mount_namespace_id *ret_id)
{
	const struct open_process process = { .tgid = tgid };
	struct open_namespace answer;
	struct helper_call call = {
		.op = OPEN_NAMESPACE, .fd = -1, .timeout_ms = OPENER_PROCESS_MS,
		.request = &process, .request_bytes = sizeof(process),
		.answer = &answer, .answer_bytes = sizeof(answer),
	};
	int r = mount_namespace_identify(tgid, ret_id);
	char text[32];

	if (r != -EACCES || !broker_is_there())
		return r;
	say_process(tgid, text);
	r = opener_ask(opener, &(struct place){ .tgid = tgid }, text, &call);
	*ret_id = (struct mount_namespace_id){ .dev = r ? 0 : answer.dev, .inode = r ? 0 : answer.inode };
	return r;
}

int opener_image(struct opener *opener, struct mount_namespace_table *spaces, uint32_t tgid,
		 bool with_command_line, struct mount_namespace **ret_space,
		 struct image_details **ret_details)
{
	struct open_image question = { .tgid = tgid, .with_command_line = with_command_line };
	const struct place process = { .tgid = tgid };
	struct mount_namespace_id id = { 0 };
	int r;

	*ret_space = NULL;
	*ret_details = NULL;
	pthread_mutex_lock(&opener->lock);
	if (identify(opener, tgid, &id) == 0)
		mount_namespace_table_root(spaces, &id, &question.root_dev, &question.root_inode);
	if (id.inode && clock_monotonic() >= opener->apart_until &&
	    !opener_is_doubtful(opener, &(struct place){ .space = id.inode }) &&
	    !opener_is_doubtful(opener, &process))
		r = ask_together(opener, spaces, &process, &question, &id, ret_space, ret_details);
	else
		r = ask_apart(opener, spaces, &process, &question, &id, ret_space, ret_details);
	pthread_mutex_unlock(&opener->lock);
	if (opener_is_unanswered(r)) {
		mount_namespace_unref(steal_ptr(*ret_space));
		image_details_free(steal_ptr(*ret_details));
		return r;
	}
	return 0;
}

int opener_space(struct opener *opener, struct mount_namespace_table *spaces, uint32_t tgid,
		 struct mount_namespace **ret_space)
{
	struct open_image question = { .tgid = tgid, .parts = OPEN_IMAGE_ROOT };
	struct mount_namespace_id id = { 0 };
	struct answered answered;
	size_t text_bytes;
	int r, root;

	*ret_space = NULL;
	pthread_mutex_lock(&opener->lock);
	r = identify(opener, tgid, &id);
	if (!r) {
		mount_namespace_table_root(spaces, &id, &question.root_dev, &question.root_inode);
		r = ask_image(opener, &(struct place){ .space = id.inode }, &question, &answered, &text_bytes, &root);
	}
	if (!r)
		take_root(spaces, &question, &id, &answered.image, root, ret_space);
	pthread_mutex_unlock(&opener->lock);
	return r < 0 || *ret_space ? r : -ESRCH;
}

/* @bytes: `count` mappings and their paths. */
static int take_mappings(struct process_snapshot *snapshot, const struct open_scan *scan,
			 const uint8_t *bytes)
{
	const char *path = (const char *)bytes + scan->count * sizeof(struct open_mapping);
	const char *end = path + scan->path_bytes;

	snapshot->mappings = calloc(scan->count + 1, sizeof(*snapshot->mappings));
	if (!snapshot->mappings)
		return -ENOMEM;
	for (uint32_t i = 0; i < scan->count; i++) {
		const char *stop = memchr(path, '\0', (size_t)(end - path));
		struct open_mapping from;

		memcpy(&from, bytes + i * sizeof(from), sizeof(from));
		if (!stop || from.start >= from.end)
			return -EBADMSG;
		snapshot->mappings[i] = (struct process_snapshot_mapping){
			.start = from.start, .end = from.end, .file_offset = from.file_offset,
			.inode = from.inode, .major = from.major, .minor = from.minor, .path = strdup(path),
		};
		if (!snapshot->mappings[i].path)
			return -ENOMEM;
		snapshot->mapping_count++;
		path = stop + 1;
	}
	return 0;
}

/* Of the packet, or of the memfd if there is one. */
static int take_snapshot(uint32_t tgid, const struct open_scan *scan, const uint8_t *bytes, size_t size,
			 struct process_snapshot **ret_snapshot)
{
	struct process_snapshot *snapshot;
	int r;

	if (scan->count > MAPPINGS_MAX || scan->path_bytes > PATHS_MAX_BYTES ||
	    size != scan->count * sizeof(struct open_mapping) + scan->path_bytes)
		return -EBADMSG;
	snapshot = calloc(1, sizeof(*snapshot));
	r = snapshot ? take_mappings(snapshot, scan, bytes) : -ENOMEM;
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

static int take_large(uint32_t tgid, const struct open_scan *scan, int fd,
		      struct process_snapshot **ret_snapshot)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	uint64_t size;
	int r;

	if (!memfd_is_sealed(fd, &size) ||
	    size > MAPPINGS_MAX * sizeof(struct open_mapping) + PATHS_MAX_BYTES)
		return -EBADMSG;
	bytes = malloc(size + 1);
	r = bytes ? memfd_read(fd, bytes, size, 0) : -ENOMEM;
	return r < 0 ? r : take_snapshot(tgid, scan, bytes, size, ret_snapshot);
}

int opener_scan(struct opener *opener, uint32_t tgid, struct process_snapshot **ret_snapshot)
{
	const struct open_process question = { .tgid = tgid };
	static const size_t max_bytes = HELPER_BYTES_MAX;
	_cleanup_free_ uint8_t *answer = malloc(max_bytes);
	struct helper_call call = {
		.op = OPEN_SCAN, .fd = -1, .timeout_ms = OPENER_PROCESS_MS,
		.request = &question, .request_bytes = sizeof(question),
		.answer = answer, .answer_bytes = max_bytes, .is_text = true,
		.wants_fd = true, .may_lack_fd = true,
	};
	_cleanup_close_ int memfd = -1;
	struct open_scan scan;
	char text[32];
	int r;

	if (!answer)
		return -ENOMEM;
	say_process(tgid, text);
	pthread_mutex_lock(&opener->lock);
	r = opener_ask(opener, &(struct place){ .tgid = tgid }, text, &call);
	pthread_mutex_unlock(&opener->lock);
	if (r < 0)
		return call.ret_is_starved ? -EBUSY : r;
	memfd = call.ret_fd;
	if (call.ret_bytes < sizeof(scan))
		return -EBADMSG;
	memcpy(&scan, answer, sizeof(scan));
	if (memfd >= 0)
		return take_large(tgid, &scan, memfd, ret_snapshot);
	return take_snapshot(tgid, &scan, answer + sizeof(scan), call.ret_bytes - sizeof(scan), ret_snapshot);
}
