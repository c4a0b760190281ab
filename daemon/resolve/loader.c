// SPDX-License-Identifier: Apache-2.0
#include "resolve/loader.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define TICK_NS (10 * NSEC_PER_MSEC)	/* precision of start times in /proc */

enum { ATTEMPTS = 3 };

struct loader {
	struct tables_ops ops;
	struct tables *tables;
	struct loader_stats stats;
};

int loader_new(const struct tables_ops *ops, struct loader **ret_loader)
{
	struct loader *loader = calloc(1, sizeof(*loader));
	int r;

	if (!loader)
		return -ENOMEM;
	loader->ops = *ops;
	r = tables_new(ops, &loader->tables);
	if (r < 0) {
		free(loader);
		return r;
	}
	*ret_loader = loader;
	return 0;
}

void loader_free(struct loader *loader)
{
	if (!loader)
		return;
	tables_free(loader->tables);
	free(loader);
}

struct tables *loader_tables(struct loader *loader)
{
	return loader->tables;
}

bool loader_wants_lists(struct loader *loader)
{
	return tables_want_lists(loader->tables);
}

void loader_stats(const struct loader *loader, struct loader_stats *ret_stats)
{
	*ret_stats = loader->stats;
	ret_stats->tables = *tables_stats(loader->tables);
}

static size_t fill(struct loader *loader, const struct mapping_list *list,
		   struct stacktap_mapping *ret_ranges)
{
	size_t count = 0;

	for (size_t i = 0; i < list->count && count < STACKTAP_MAX_MAPPINGS; i++) {
		const struct mapping *mapping = &list->mappings[i];
		struct object *object = mapped_file_object(mapping->file);
		struct stacktap_mapping *range = &ret_ranges[count];
		uint64_t bias = 0;

		/* what x86 maps at the top of the kernel's half */
		if (mapping->end > INT64_MAX)
			break;
		*range = (struct stacktap_mapping){ .start = mapping->start, .end = mapping->end };
		if (object && mapping_bias(mapping, object, &bias)) {
			range->bias = bias;
			range->table_id = tables_get(loader->tables, object, list->tgid);
		}
		count++;
	}
	return count;
}

/* Which image runs there now? Not another process' than the list is of. */
static int identify(struct loader *loader, const struct mapping_list *list,
		    struct stacktap_mappings_set *set)
{
	struct stacktap_image image = { .size = sizeof(image), .tgid = list->tgid };
	int r;

	if (list->is_bound) {
		set->start_time = list->start_time;
		set->exec_id = list->exec_id;
		return 0;
	}
	r = loader->ops.request(loader->ops.ctx, STACKTAP_IOC_IMAGE, &image);
	if (r < 0)
		return r;
	if (list->start_time && image.start_time - list->start_time >= TICK_NS)
		return -ESRCH;
	/*
	 * Should another program have been executed since the list was made: its samples carry this
	 * list's generation, which is older than the exec.
	 */
	set->start_time = image.start_time;
	set->exec_id = image.exec_id;
	return 0;
}

/* A list names what the module does not hold: loading one table may have dropped another. */
static void forget(struct loader *loader, const struct stacktap_mapping *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (ranges[i].table_id)
			tables_forget(loader->tables, ranges[i].table_id);
}

static int set_list(struct loader *loader, const struct mapping_list *list,
		    struct stacktap_mapping *ranges)
{
	struct stacktap_mappings_set set = {
		.size = sizeof(set),
		.tgid = list->tgid,
		.generation = list->generation,
		.mappings = (uintptr_t)ranges,
	};
	int r;

	r = identify(loader, list, &set);
	for (int i = 0; i < ATTEMPTS && !r; i++) {
		set.count = (uint32_t)fill(loader, list, ranges);
		r = loader->ops.request(loader->ops.ctx, STACKTAP_IOC_MAPPINGS_SET, &set);
		if (i + 1 == ATTEMPTS)
			break;
		if (r == -ENOENT) {
			if (i)
				forget(loader, ranges, set.count);
			r = 0;
		} else if (r == -ENOSPC || r == -EDQUOT) {
			if (tables_evict(loader->tables, set.count * sizeof(*ranges)))
				r = 0;
		} else {
			break;
		}
	}
	return r;
}

int loader_load(struct loader *loader, const struct mapping_list *list)
{
	size_t bytes = min_of(list->count, (size_t)STACKTAP_MAX_MAPPINGS) *
		       sizeof(struct stacktap_mapping);
	_cleanup_free_ struct stacktap_mapping *ranges = NULL;
	int r;

	if (!pool_charge(POOL_TABLES, bytes))
		return -ENOBUFS;
	tables_pay(loader->tables, list->image->payer);
	ranges = malloc(bytes + 1);
	r = ranges ? set_list(loader, list, ranges) : -ENOMEM;
	pool_uncharge(POOL_TABLES, bytes);
	if (!r) {
		loader->stats.lists++;
	} else if (r == -ESRCH || r == -ESTALE) {
		loader->stats.lists_gone++;
	} else {
		loader->stats.lists_refused++;
		log_debug("process %" PRIu32 ": mapping list of %zu refused: %s", list->tgid,
			  list->count, strerror(-r));
	}
	return r;
}
