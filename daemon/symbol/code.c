// SPDX-License-Identifier: Apache-2.0
#include "symbol/code.h"

enum {
	BATCH = 64 << 10,
	KEPT_PART = 4,	/* of the functions that there is room for, one in so many goes at once */
};

/* One that is to be put over others: a higher age is a later one. */
struct piece {
	uint64_t start, end;
	uint32_t name, age;
};

void code_table_free(struct code_table *table)
{
	free(table->codes);
	*table = (struct code_table){ 0 };
}

static int compare_starts(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->age > y->age) - (x->age < y->age);
}

/* The pieces that have begun, the latest on top. */
struct heap {
	const struct piece **pieces;
	size_t count;
};

static void push(struct heap *heap, const struct piece *piece)
{
	size_t i = heap->count++;

	for (; i && heap->pieces[(i - 1) / 2]->age < piece->age; i = (i - 1) / 2)
		heap->pieces[i] = heap->pieces[(i - 1) / 2];
	heap->pieces[i] = piece;
}

static void pop(struct heap *heap)
{
	const struct piece *last = heap->pieces[--heap->count];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < heap->count) {
		if (child + 1 < heap->count &&
		    heap->pieces[child + 1]->age > heap->pieces[child]->age)
			child++;
		if (heap->pieces[child]->age < last->age)
			break;
		heap->pieces[i] = heap->pieces[child];
		i = child;
	}
	heap->pieces[i] = last;
}

static uint64_t end_of(const struct code *code)
{
	return code->start + code->size;
}

static void emit(struct code_table *table, uint64_t start, uint64_t end, uint32_t name)
{
	struct code *last = table->count ? &table->codes[table->count - 1] : NULL;

	if (start == end)
		return;
	if (last && last->name == name && end_of(last) == start &&
	    end - last->start <= UINT32_MAX) {
		last->size = (uint32_t)(end - last->start);
		return;
	}
	table->codes[table->count++] = (struct code){
		.start = start, .size = (uint32_t)(end - start), .name = name,
	};
}

/* What is seen of @pieces, sorted by their starts, from above. At most twice as many. */
static void flatten(const struct piece *pieces, size_t count, struct heap *heap,
		    struct code_table *table)
{
	uint64_t at = 0;

	for (size_t i = 0; i < count || heap->count;) {
		uint64_t next = i < count ? pieces[i].start : UINT64_MAX;
		const struct piece *top;

		while (heap->count && heap->pieces[0]->end <= at)
			pop(heap);
		if (!heap->count) {
			if (i == count)
				break;
			at = next;
			push(heap, &pieces[i++]);
			continue;
		}
		top = heap->pieces[0];
		if (next <= at) {
			push(heap, &pieces[i++]);
			continue;
		}
		next = min_of(next, top->end);
		emit(table, at, next, top->name);
		at = next;
	}
}

static int compare_names(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The earliest go, more than have to: sorting is not for one at a time. */
static int drop_earliest(struct code_table *table)
{
	const uint32_t keep = CODE_MAX - CODE_MAX / KEPT_PART;
	uint32_t *names, first, kept = 0;

	if (table->count <= CODE_MAX)
		return 0;
	names = malloc(table->count * sizeof(*names));
	if (!names)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->count; i++)
		names[i] = table->codes[i].name;
	qsort(names, table->count, sizeof(*names), compare_names);
	first = names[table->count - keep];
	free(names);
	for (uint32_t i = 0; i < table->count; i++)
		/* several pieces of one name may be too many for all of them */
		if (table->codes[i].name >= first && kept < CODE_MAX)
			table->codes[kept++] = table->codes[i];
	table->dropped += table->count - kept;
	table->count = kept;
	return 0;
}

size_t code_table_lay_bytes(const struct code_table *table, const struct code_table *over)
{
	/* one that is laid into the middle of another makes two of that */
	return (table->count + 2 * (size_t)over->count + 1) * sizeof(*table->codes);
}

/* What of @code is at @from or behind, and before @end. */
static void emit_part(struct code_table *table, const struct code *code, uint64_t from, uint64_t end)
{
	const uint64_t start = max_of(code->start, from);

	end = min_of(end, end_of(code));
	if (start < end)
		emit(table, start, end, code->name);
}

int code_table_lay(struct code_table *table, const struct code_table *over)
{
	const struct code *old = table->codes, *old_end = table->count ? old + table->count : old;
	struct code_table made = { .dropped = table->dropped + over->dropped };
	struct code *fitted;
	uint64_t from = 0;

	made.codes = malloc(code_table_lay_bytes(table, over));
	if (!made.codes)
		return -ENOMEM;
	for (uint32_t i = 0; i < over->count; i++) {
		const struct code *next = &over->codes[i];

		for (; old < old_end && old->start < next->start; old++) {
			emit_part(&made, old, from, next->start);
			if (end_of(old) > next->start)
				break;
		}
		from = end_of(next);
		emit(&made, next->start, from, next->name);
		while (old < old_end && end_of(old) <= from)
			old++;
	}
	for (; old < old_end; old++)
		emit_part(&made, old, from, UINT64_MAX);
	if (drop_earliest(&made) < 0) {
		free(made.codes);
		return -ENOMEM;
	}
	fitted = realloc(made.codes, (made.count + 1) * sizeof(*made.codes));
	made.codes = fitted ? fitted : made.codes;
	free(table->codes);
	*table = made;
	return 0;
}

const struct code *code_table_find(const struct code_table *table, uint64_t address)
{
	uint32_t low = 0, high = table->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (table->codes[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - table->codes[low - 1].start >= table->codes[low - 1].size)
		return NULL;
	return &table->codes[low - 1];
}

bool code_table_is_valid(const struct code_table *table, uint64_t end)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < table->count; i++) {
		const struct code *code = &table->codes[i];

		if (code->start < at || !code->size || code->size > UINT64_MAX - code->start ||
		    code->name >= end)
			return false;
		at = end_of(code);
	}
	return true;
}

int code_batch_flush(struct code_batch *batch)
{
	const size_t count = batch->count;
	_cleanup_free_ const struct piece **heap = NULL;
	_cleanup_free_ struct piece *pieces = NULL;
	struct code_table flat = { 0 };
	int r = -ENOMEM;

	if (!count)
		return 0;
	batch->count = 0;
	pieces = malloc(count * sizeof(*pieces));
	heap = malloc(count * sizeof(*heap));
	flat.codes = malloc(2 * count * sizeof(*flat.codes));
	if (pieces && heap && flat.codes) {
		for (size_t i = 0; i < count; i++)
			pieces[i] = (struct piece){
				.start = batch->codes[i].start, .end = end_of(&batch->codes[i]),
				.name = batch->codes[i].name, .age = (uint32_t)i,
			};
		qsort(pieces, count, sizeof(*pieces), compare_starts);
		flatten(pieces, count, &(struct heap){ .pieces = heap }, &flat);
		r = code_table_lay(batch->table, &flat);
	}
	code_table_free(&flat);
	return r;
}

int code_batch_add(struct code_batch *batch, uint64_t start, uint64_t size, uint64_t name)
{
	if (!size || size > UINT32_MAX || size > UINT64_MAX - start || name > UINT32_MAX)
		return -EINVAL;
	if (!batch->codes)
		batch->codes = malloc(BATCH * sizeof(*batch->codes));
	if (!batch->codes)
		return -ENOMEM;
	batch->codes[batch->count++] = (struct code){
		.start = start, .size = (uint32_t)size, .name = (uint32_t)name,
	};
	return batch->count == BATCH ? code_batch_flush(batch) : 0;
}

void code_batch_free(struct code_batch *batch)
{
	free(batch->codes);
	batch->codes = NULL;
	batch->count = 0;
}
