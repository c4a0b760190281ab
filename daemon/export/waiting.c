// SPDX-License-Identifier: Apache-2.0
#include "export/waiting.h"

void waiting_list_init(struct waiting_list *list)
{
	list->first = NULL;
	list->last = &list->first;
}

struct waiting *waiting_new(struct body *body)
{
	/* what found no room had its only try */
	struct waiting *waiting = body->budget ? malloc(sizeof(*waiting)) : NULL;

	if (waiting)
		*waiting = (struct waiting){ .body = body };
	return waiting;
}

void waiting_free(struct waiting *waiting)
{
	body_unref(waiting->body);
	free(waiting);
}

void waiting_append(struct waiting_list *list, struct waiting *waiting)
{
	waiting->next = NULL;
	*list->last = waiting;
	list->last = &waiting->next;
}

void waiting_prepend(struct waiting_list *list, struct waiting *waiting)
{
	waiting->next = list->first;
	list->first = waiting;
	if (!waiting->next)
		list->last = &waiting->next;
}

struct waiting *waiting_pop(struct waiting_list *list)
{
	struct waiting *waiting = list->first;

	list->first = waiting->next;
	if (!list->first)
		list->last = &list->first;
	return waiting;
}
