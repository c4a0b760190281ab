// SPDX-License-Identifier: Apache-2.0
#include "helper/open_process.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "helper/memfd.h"
#include "process/details.h"
#include "process/scan.h"
#include "process/texts.h"

int open_proc(uint32_t tgid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u", tgid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* @to has room for all of a packet. */
static int read_details(int proc, const struct open_image *question, struct open_image_answer *to,
			size_t *bytes)
{
	struct image_details *details;
	int r = details_read(proc, question->tgid, question->with_command_line, &details);

	if (r < 0)
		return r;
	to->pid_in_namespace = details->pid_in_namespace;
	to->user = details->user;
	*bytes += texts_put(details, (char *)(to + 1));
	image_details_free(details);
	return 0;
}

static int read_root(int proc, const struct open_image *question, struct open_image_answer *to,
		     int *ret_fd)
{
	_cleanup_close_ int root = -1;
	struct stat st;

	if (fstatat(proc, "root", &st, 0) < 0)
		return -errno;
	if (!question->root_inode || st.st_dev != question->root_dev ||
	    st.st_ino != question->root_inode) {
		root = openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (root < 0 || fstat(root, &st) < 0)
			return -errno;
	}
	to->root_dev = st.st_dev;
	to->root_inode = st.st_ino;
	*ret_fd = steal_fd(&root);
	return 0;
}

int open_answer_image(const struct serve_request *request, struct serve_answer *answer)
{
	const struct open_image *question = request->payload;
	struct open_image_answer *to = (void *)answer->payload;
	_cleanup_close_ int proc = open_proc(question->tgid);

	if (proc < 0)
		return -ESRCH;
	*to = (struct open_image_answer){ .root_result = -ENODATA, .details_result = -ENODATA };
	answer->bytes = sizeof(*to);
	/* its memory is gone before its root when it exits */
	if (question->parts & OPEN_IMAGE_DETAILS)
		to->details_result = read_details(proc, question, to, &answer->bytes);
	if (question->parts & OPEN_IMAGE_ROOT)
		to->root_result = read_root(proc, question, to, &answer->fd);
	return 0;
}

struct packet {
	uint8_t *bytes;
	size_t used, size;
};

static void put(struct packet *packet, const void *bytes, size_t size)
{
	memcpy(packet->bytes + packet->used, bytes, size);
	packet->used += size;
}

/* There is room for it. */
static void put_mappings(struct packet *packet, const struct process_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->mapping_count; i++) {
		const struct process_snapshot_mapping *from = &snapshot->mappings[i];
		const struct open_mapping mapping = {
			.start = from->start, .end = from->end, .file_offset = from->file_offset,
			.inode = from->inode, .major = from->major, .minor = from->minor,
		};

		put(packet, &mapping, sizeof(mapping));
	}
	for (size_t i = 0; i < snapshot->mapping_count; i++)
		put(packet, snapshot->mappings[i].path, strlen(snapshot->mappings[i].path) + 1);
}

static int send_apart(const struct process_snapshot *snapshot, size_t bytes, int *ret_fd)
{
	struct packet packet = { .bytes = malloc(bytes), .size = bytes };
	_cleanup_free_ uint8_t *owned _unused_ = packet.bytes;
	_cleanup_close_ int fd = memfd_new();
	int r = fd < 0 ? fd : packet.bytes ? 0 : -ENOMEM;

	if (r < 0)
		return r;
	put_mappings(&packet, snapshot);
	r = file_write(fd, packet.bytes, packet.used);
	if (r < 0)
		return r;
	*ret_fd = memfd_seal(&fd);
	return min_of(*ret_fd, 0);
}

static int send_snapshot(const struct process_snapshot *snapshot, struct serve_answer *answer)
{
	struct open_scan *scan = (void *)answer->payload;
	struct packet packet = { .bytes = answer->payload, .used = sizeof(*scan), .size = HELPER_BYTES_MAX };
	size_t bytes = snapshot->mapping_count * sizeof(struct open_mapping), path_bytes = 0;

	for (size_t i = 0; i < snapshot->mapping_count; i++)
		path_bytes += strlen(snapshot->mappings[i].path) + 1;
	*scan = (struct open_scan){
		.time = snapshot->time, .start_time = snapshot->start_time,
		.parent_tgid = snapshot->parent_tgid, .count = (uint32_t)snapshot->mapping_count,
		.path_bytes = (uint32_t)path_bytes, .is_cut = snapshot->is_cut,
	};
	memcpy(scan->comm, snapshot->comm, sizeof(scan->comm));
	bytes += path_bytes;
	if (bytes <= packet.size - packet.used)
		put_mappings(&packet, snapshot);
	answer->bytes = packet.used;
	return packet.used > sizeof(*scan) || !bytes ? 0 : send_apart(snapshot, bytes, &answer->fd);
}

int open_answer_scan(const struct serve_request *request, struct serve_answer *answer)
{
	const struct open_process *process = request->payload;
	struct process_snapshot *snapshot;
	int r = process_scan(process->tgid, &snapshot);

	if (r < 0)
		return r;
	r = send_snapshot(snapshot, answer);
	process_snapshot_free(snapshot);
	return r;
}
