/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads of the pipeline send each other. A message owns what it points to. */
#ifndef STACKTAP_PIPELINE_MESSAGE_H
#define STACKTAP_PIPELINE_MESSAGE_H

#include "base/queue.h"
#include "process/image.h"
#include "process/lists.h"
#include "process/scan.h"
#include "profile/window.h"

enum message_kind {
	MESSAGE_IMAGE,		/* A to B */
	MESSAGE_FILE,
	MESSAGE_KERNEL,
	MESSAGE_SCAN,
	MESSAGE_LIST,
	MESSAGE_DEFERRED,		/* there is a deferred sample */
	MESSAGE_WINDOW,		/* A to B to C */
	MESSAGE_PART,		/* A to D */
	MESSAGE_SNAPSHOT,	/* B to A */
	MESSAGE_GONE,
	MESSAGE_UNREAD,		/* it is there, and nobody could read its mappings */
	MESSAGE_SCANNED_ALL,
	MESSAGE_RELIST,
};

struct message {
	struct queue_item item;
	enum message_kind kind;
	struct image *image, *parent;
	struct mapped_file *file;
	struct window *window;
	struct process_snapshot *snapshot;
	struct mapping_list *list;
	uint32_t tgid;		/* 0: all */
	uint64_t time;		/* when the scan began */
	bool complete;		/* nothing of the scan got lost on the way */
};

struct message *message_new(enum message_kind kind);
void message_free(struct message *message);
void message_drop(struct queue_item *item);	/* for queue_free() */
/* Takes the message, which may be NULL (-ENOMEM); @bytes beside its own size count in the queue. */
int message_send(struct queue *queue, struct message *message, size_t bytes, enum queue_lane lane,
		 int timeout_ms);
/* The same as queue_add(): one of several, whose reader is woken up by queue_rouse(). */
int message_add(struct queue *queue, struct message *message, size_t bytes, enum queue_lane lane);
/* The same as queue_put(). */
int message_put(struct queue *queue, struct message *message, enum queue_lane lane);
/* NULL with *ret_result 0 (none in time) or -EPIPE. */
struct message *message_take(struct queue *queue, int timeout_ms, int *ret_result);
/* What does not come after a window of its lane; NULL: none is there. */
struct message *message_take_beside_windows(struct queue *queue);

#endif /* STACKTAP_PIPELINE_MESSAGE_H */
