// SPDX-License-Identifier: Apache-2.0
#include "capture/sideband.h"

#include <string.h>
#include <sys/mman.h>

/* Bodies as perf_event_open(2) lays them out; strings and the trailer follow. */
struct body_mmap2 {
	uint32_t pid, tid;
	uint64_t address, length, file_offset;
	union {
		struct {
			uint32_t major, minor;
			uint64_t inode, inode_generation;
		};
		struct {
			uint8_t build_id_length, reserved[3];
			uint8_t build_id[20];
		};
	};
	uint32_t protection, flags;
};

struct body_comm {
	uint32_t pid, tid;
};

struct body_task {
	uint32_t pid, parent_pid, tid, parent_tid;
	uint64_t time;
};

struct body_ksymbol {
	uint64_t address;
	uint32_t length;
	uint16_t type, flags;
};

struct body_lost {
	uint64_t id, lost;
};

struct span {
	const uint8_t *body;
	size_t size;		/* without the trailer */
	uint64_t time;
};

/* The string behind a fixed part, or NULL when it does not end inside the record. */
static const char *span_string(const struct span *span, size_t fixed)
{
	const char *text = (const char *)span->body + fixed;

	if (span->size <= fixed || !memchr(text, '\0', span->size - fixed))
		return NULL;
	return text;
}

static int parse_mmap2(const struct span *span, uint16_t misc, const struct capture_ops *ops,
		       void *ctx)
{
	const struct body_mmap2 *body = (const void *)span->body;
	const char *path = span_string(span, sizeof(*body));
	struct sideband_mmap event;

	if (!path)
		return -EBADMSG;
	/* data mappings and what wraps round the address space hold no code */
	if (!(body->protection & PROT_EXEC) || misc & PERF_RECORD_MISC_MMAP_DATA ||
	    !body->length || body->address + body->length < body->address || !body->pid ||
	    body->pid == UINT32_MAX)
		return 0;
	event = (struct sideband_mmap){
		.time = span->time,
		.pid = body->pid,
		.tid = body->tid,
		.address = body->address,
		.length = body->length,
		.file_offset = body->file_offset,
		.path = path,
	};
	if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		event.build_id = body->build_id;
		event.build_id_length = min_of((uint32_t)body->build_id_length,
					       (uint32_t)sizeof(body->build_id));
	} else {
		event.major = body->major;
		event.minor = body->minor;
		event.inode = body->inode;
		event.inode_generation = body->inode_generation;
	}
	if (ops->mmap)
		ops->mmap(ctx, &event);
	return 0;
}

static int parse_comm(const struct span *span, uint16_t misc, const struct capture_ops *ops,
		      void *ctx)
{
	const struct body_comm *body = (const void *)span->body;
	struct sideband_task event = {
		.time = span->time,
		.comm = span_string(span, sizeof(*body)),
		.is_exec = misc & PERF_RECORD_MISC_COMM_EXEC,
	};

	if (!event.comm)
		return -EBADMSG;
	event.pid = body->pid;
	event.tid = body->tid;
	if (ops->comm && event.pid && event.pid != UINT32_MAX)
		ops->comm(ctx, &event);
	return 0;
}

typedef void task_event_fn(void *ctx, const struct sideband_task *event);

static int parse_task(const struct span *span, task_event_fn *deliver, void *ctx)
{
	const struct body_task *body = (const void *)span->body;
	struct sideband_task event;

	if (span->size < sizeof(*body))
		return -EBADMSG;
	event = (struct sideband_task){
		.time = span->time,
		.pid = body->pid,
		.tid = body->tid,
		.parent_pid = body->parent_pid,
		.parent_tid = body->parent_tid,
	};
	/* ids of tasks outside our pid namespace are 0, of tasks that are gone -1 */
	if (deliver && event.pid && event.pid != UINT32_MAX)
		deliver(ctx, &event);
	return 0;
}

static int parse_ksymbol(const struct span *span, const struct capture_ops *ops, void *ctx)
{
	const struct body_ksymbol *body = (const void *)span->body;
	const char *name = span_string(span, sizeof(*body));

	if (!name)
		return -EBADMSG;
	if (ops->ksymbol)
		ops->ksymbol(ctx, span->time, body->address, body->length,
			     body->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER, name);
	return 0;
}

int sideband_parse(const struct perf_event_header *record, const struct capture_ops *ops,
		   void *ctx, uint64_t *ret_lost)
{
	const uint8_t *bytes = (const void *)record;
	struct span span = { .body = bytes + sizeof(*record) };

	if (record->size < sizeof(*record) + SIDEBAND_TRAILER)
		return -EBADMSG;
	span.size = record->size - sizeof(*record) - SIDEBAND_TRAILER;
	memcpy(&span.time, bytes + record->size - SIDEBAND_TIME_FROM_END, sizeof(span.time));

	switch (record->type) {
	case PERF_RECORD_MMAP2:
		return parse_mmap2(&span, record->misc, ops, ctx);
	case PERF_RECORD_COMM:
		return parse_comm(&span, record->misc, ops, ctx);
	case PERF_RECORD_FORK:
		return parse_task(&span, ops->fork, ctx);
	case PERF_RECORD_EXIT:
		return parse_task(&span, ops->exit, ctx);
	case PERF_RECORD_KSYMBOL:
		return parse_ksymbol(&span, ops, ctx);
	case PERF_RECORD_LOST:
		if (span.size < sizeof(struct body_lost))
			return -EBADMSG;
		*ret_lost += ((const struct body_lost *)(const void *)span.body)->lost;
		return 0;
	default:
		return 0;
	}
}
