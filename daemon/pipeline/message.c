// SPDX-License-Identifier: Apache-2.0
#include "pipeline/message.h"

void message_free(struct message *message)
{
	image_unref(message->image);
	image_unref(message->parent);
	mapped_file_unref(message->file);
	window_free(message->window);
	process_snapshot_free(message->snapshot);
	mapping_list_free(message->list);
	free(message);
}

void message_drop(struct queue_item *item)
{
	message_free(container_of(item, struct message, item));
}

struct message *message_new(enum message_kind kind)
{
	struct message *message = calloc(1, sizeof(*message));

	if (message)
		message->kind = kind;
	return message;
}

int message_send(struct queue *queue, struct message *message, size_t bytes, enum queue_lane lane,
		 int timeout_ms)
{
	int r;

	if (!message)
		return -ENOMEM;
	r = queue_push(queue, &message->item, sizeof(*message) + bytes, lane, timeout_ms);
	if (r < 0)
		message_free(message);
	return r;
}

int message_add(struct queue *queue, struct message *message, size_t bytes, enum queue_lane lane)
{
	int r;

	if (!message)
		return -ENOMEM;
	r = queue_add(queue, &message->item, sizeof(*message) + bytes, lane);
	if (r < 0)
		message_free(message);
	return r;
}

int message_put(struct queue *queue, struct message *message, enum queue_lane lane)
{
	int r;

	if (!message)
		return -ENOMEM;
	r = queue_put(queue, &message->item, sizeof(*message), lane);
	if (r < 0)
		message_free(message);
	return r;
}

struct message *message_take(struct queue *queue, int timeout_ms, int *ret_result)
{
	struct queue_item *item = NULL;

	*ret_result = queue_pop(queue, timeout_ms, &item);
	return item ? container_of(item, struct message, item) : NULL;
}

static bool is_window(struct queue_item *item)
{
	return container_of(item, struct message, item)->kind == MESSAGE_WINDOW;
}

struct message *message_take_beside_windows(struct queue *queue)
{
	struct queue_item *item = queue_pop_unheld(queue, is_window);

	return item ? container_of(item, struct message, item) : NULL;
}
