// SPDX-License-Identifier: Apache-2.0
#include "resolve/worklist.h"

#include <stdlib.h>

/* What is left of one payer's. */
struct work_payer {
	const struct work_item *next, *end;
	uint64_t paid;		/* what it has taken of late, ns */
};

static struct object *object_of(const struct work_item *item)
{
	return item->locations[0]->object;
}

/*
 * Of those who pay for the processes whose samples an object's Locations are in, the one that took least of the time so
 * far pays for it: who maps the files of others does not spend what they have.
 */
static void find_payers(struct parser *parser, const struct window *window, uint64_t number)
{
	for (size_t i = 0; i < window->sample_count; i++) {
		const struct window_sample *sample = &window->samples[i];
		const uint64_t paid = sample->image ? parser_paid(parser, sample->image->payer) : 0;

		for (uint32_t j = 0; sample->image && j < sample->stack->count; j++) {
			const struct location *location = sample->stack->locations[j];
			struct object *object = location->is_resolved ? NULL : location->object;

			if (!object || (object->payer_window == number && object->payer_paid <= paid))
				continue;
			object->payer = sample->image->payer;
			object->payer_paid = paid;
			object->payer_window = number;
		}
	}
}

static int compare_locations(const void *a, const void *b)
{
	const struct location *x = *(struct location *const *)a, *y = *(struct location *const *)b;

	if (x->object != y->object)
		return (uintptr_t)x->object < (uintptr_t)y->object ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

static int compare_objects(const struct object *a, const struct object *b)
{
	/* 0, never, becomes the largest */
	const uint64_t x = a->late_since - 1, y = b->late_since - 1;

	if (x != y)
		return x < y ? -1 : 1;
	return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

static int compare_items(const void *a, const void *b)
{
	const struct object *x = object_of(a), *y = object_of(b);

	if (x->payer != y->payer)
		return x->payer < y->payer ? -1 : 1;
	return compare_objects(x, y);
}

static bool is_before(const struct work_payer *a, const struct work_payer *b)
{
	if (a->paid != b->paid)
		return a->paid < b->paid;
	return compare_objects(object_of(a->next), object_of(b->next)) < 0;
}

static void sift_down(struct worklist *list, size_t at)
{
	struct work_payer *payers = list->payers;

	for (size_t child; (child = 2 * at + 1) < list->payer_count; at = child) {
		const struct work_payer payer = payers[at];

		if (child + 1 < list->payer_count && is_before(&payers[child + 1], &payers[child]))
			child++;
		if (!is_before(&payers[child], &payer))
			return;
		payers[at] = payers[child];
		payers[child] = payer;
	}
}

/* The first object's Locations of those that are left. */
static struct work_item take(struct worklist *list)
{
	struct work_item item = { .locations = list->rest, .count = 1 };

	while (item.count < list->rest_count && list->rest[item.count]->object == object_of(&item))
		item.count++;
	list->rest += item.count;
	list->rest_count -= item.count;
	return item;
}

static void order(struct worklist *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		list->items[i] = take(list);
	qsort(list->items, count, sizeof(*list->items), compare_items);
	for (size_t i = 0, end; i < count; i = end) {
		const uint32_t payer = object_of(&list->items[i])->payer;

		for (end = i + 1; end < count && object_of(&list->items[end])->payer == payer;)
			end++;
		list->payers[list->payer_count++] = (struct work_payer){
			.next = &list->items[i],
			.end = &list->items[end],
			.paid = parser_paid(list->parser, payer),
		};
	}
	for (size_t i = list->payer_count / 2; i--;)
		sift_down(list, i);
}

void worklist_begin(struct worklist *list, struct parser *parser, const struct window *window, uint64_t number,
		    struct location **locations, size_t count)
{
	size_t objects = 0;

	*list = (struct worklist){ .parser = parser, .rest = locations, .rest_count = count };
	find_payers(parser, window, number);
	qsort(locations, count, sizeof(struct location *), compare_locations);
	for (size_t i = 0; i < count; i++)
		objects += !i || locations[i]->object != locations[i - 1]->object;
	list->count = objects;
	list->items = calloc(objects, sizeof(*list->items));
	list->payers = calloc(objects, sizeof(*list->payers));
	if (list->items && list->payers)
		order(list, objects);
}

/* The first item was done. */
static void put_back(struct worklist *list)
{
	struct work_payer *first = &list->payers[0];

	if (first->next + 1 < first->end)
		first->paid = parser_paid(list->parser, object_of(first->next++)->payer);
	else
		*first = list->payers[--list->payer_count];
	sift_down(list, 0);
}

bool worklist_next(struct worklist *list, struct work_item *ret_item)
{
	if (list->is_begun && list->payer_count)
		put_back(list);
	list->is_begun = true;
	if (list->payer_count)
		*ret_item = *list->payers[0].next;
	else if (list->rest_count)
		*ret_item = take(list);
	else
		return false;
	return true;
}

void worklist_end(struct worklist *list)
{
	free(list->payers);
	free(list->items);
}
