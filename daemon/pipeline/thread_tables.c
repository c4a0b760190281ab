// SPDX-License-Identifier: Apache-2.0
/* Unwind tables and mapping lists on their way from thread A through thread B to the module. */
#include "pipeline/threads.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"

enum {
	FIRST_LISTS_MS = 30000,		/* sampling begins then, whatever is still missing */
	FIRST_ROUND_MS = 20,
	PROGRESS_FROM_MS = 2000,
	PROGRESS_EVERY_MS = 1000,
	CACHE_BYTES = 128 << 20,	/* all of a large Debian's programs are 80 MiB */
	KEEP_BYTES = 4 << 20,		/* of tables to walk with here: half of POOL_TABLES */
};

static int on_request(void *ctx, unsigned long request, void *argument)
{
	struct pipeline *pipeline = ctx;

	return capture_request(pipeline->capture, request, argument);
}

static int on_open(void *ctx, struct object *object, uint32_t tgid, int *ret_fd)
{
	struct pipeline *pipeline = ctx;

	return symbolizer_open(pipeline->symbolizer, object, tgid, ret_fd);
}

struct each_table {
	int (*each)(void *ctx, uint64_t id, uint64_t bytes, uint64_t hit);
	void *ctx;
};

static int on_table(void *ctx, const struct control_table *table)
{
	const struct each_table *each = ctx;

	return each->each(each->ctx, table->id, table->bytes, table->hit);
}

static int on_each_table(void *ctx,
			 int (*each)(void *each_ctx, uint64_t id, uint64_t bytes, uint64_t hit),
			 void *each_ctx)
{
	struct each_table inner = { .each = each, .ctx = each_ctx };
	struct pipeline *pipeline = ctx;
	int r = 0;

	if (!pipeline->table_control)
		r = control_open(&pipeline->table_control);
	return r < 0 ? r : control_each_table(pipeline->table_control,
					      capture_session_id(pipeline->capture), on_table, &inner);
}

/*
 * Thread A never waits for B here: what finds no room is made again later. Opening files comes first:
 * a program that ends is not unwound any more, but its samples want names.
 */
bool tables_send(void *ctx, struct mapping_list *list)
{
	struct pipeline *pipeline = ctx;
	struct message *message = message_new(MESSAGE_LIST);

	if (!message) {
		mapping_list_free(list);
		return false;
	}
	message->list = list;
	pthread_mutex_lock(&pipeline->lock);
	pipeline->lists_sent++;
	pthread_mutex_unlock(&pipeline->lock);
	if (message_add(pipeline->requests, message, mapping_list_bytes(list), QUEUE_SOON) == 0)
		return true;
	pthread_mutex_lock(&pipeline->lock);
	pipeline->lists_sent--;
	pthread_mutex_unlock(&pipeline->lock);
	return false;
}

/* Without it tables are compiled anew. */
static void open_cache(struct pipeline *pipeline)
{
	const char *path = pipeline->options.table_cache;
	int r;

	if (!path)
		return;
	r = cache_open(path, CACHE_BYTES, &pipeline->table_cache);
	if (r < 0)
		log_warning("unwind tables are not kept in %s: %s", path, strerror(-r));
}

static uint32_t frames_max(const struct pipeline *pipeline)
{
	uint32_t frames = pipeline->options.user_frames;

	return frames ? min_of(frames, (uint32_t)STACKTAP_MAX_USER_FRAMES) :
			STACKTAP_DEFAULT_USER_FRAMES;
}

int tables_start(struct pipeline *pipeline)
{
	struct tables_ops ops = {
		.request = on_request,
		.open = on_open,
		.each_table = on_each_table,
		.now = clock_monotonic,
		.ctx = pipeline,
	};
	const struct control_filter *filter = pipeline->options.filter;
	const uint64_t features = capture_info(pipeline->capture)->features;
	int r;

	if (!pipeline->options.with_tables)
		return 0;
	if (!(features & STACKTAP_FEATURE_TABLES)) {
		log_info("user stacks are walked by frame pointers: unwind tables need CAP_SYS_PTRACE, and a "
			 "kernel that is not locked down for confidentiality");
		return 0;
	}
	if (!(features & STACKTAP_FEATURE_STACK_SLICE))
		pipeline->options.slice_bytes = 0;
	open_cache(pipeline);
	ops.parser = symbolizer_parser(pipeline->symbolizer);
	ops.cache = pipeline->table_cache;
	ops.keep_bytes = pipeline->options.slice_bytes ? KEEP_BYTES : 0;
	r = loader_new(&ops, &pipeline->loader);
	if (!r && pipeline->options.slice_bytes)
		r = unwinder_new(loader_tables(pipeline->loader), frames_max(pipeline),
			     &pipeline->unwinder);
	if (!r && pipeline->options.fault_in)
		r = absent_new(&pipeline->absent);
	if (r < 0)
		return r;
	pipeline->stats.has_tables = true;
	drain_use_tables(pipeline->drain);
	return process_table_use_lists(drain_processes(pipeline->drain), tables_send, pipeline,
				       filter ? filter->tgids : NULL,
				       filter ? filter->tgid_count : 0);
}

void tables_stop(struct pipeline *pipeline)
{
	absent_free(pipeline->absent);
	unwinder_free(pipeline->unwinder);
	loader_free(pipeline->loader);
	cache_close(pipeline->table_cache);
	control_close(pipeline->table_control);
}

static void see_files(struct pipeline *pipeline, struct image *image,
		      const struct mapping *mappings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct mapped_file *file = mappings[i].file;

		if (file->kind != OBJECT_ANONYMOUS && !mapped_file_object(file))
			symbolizer_see_file(pipeline->symbolizer, image, file);
	}
}

static void publish(struct pipeline *pipeline, unsigned int lists)
{
	struct loader_stats stats;

	loader_stats(pipeline->loader, &stats);
	pthread_mutex_lock(&pipeline->lock);
	pipeline->lists_done += lists;
	stats.pending = pipeline->lists_sent - pipeline->lists_done;
	pipeline->stats.loader = stats;
	pthread_mutex_unlock(&pipeline->lock);
}

/* When that finds no room, tables stay in memory, or missing, until their lists change. */
void tables_check_lists(struct pipeline *pipeline)
{
	if (pipeline->loader && loader_wants_lists(pipeline->loader))
		message_send(pipeline->results, message_new(MESSAGE_RELIST), 0, QUEUE_NORMAL, 0);
}

void tables_load(struct pipeline *pipeline, const struct mapping_list *list)
{
	/* at the end nobody walks any more */
	if (!atomic_load_explicit(&pipeline->stop, memory_order_acquire)) {
		see_files(pipeline, list->image, list->mappings, list->count);
		loader_load(pipeline->loader, list);
	}
	tables_check_lists(pipeline);
	publish(pipeline, 1);
}

/* Behind what tells thread B of the sample's image and files. */
bool tables_send_deferred(void *ctx)
{
	struct pipeline *pipeline = ctx;

	return pipeline->unwinder &&
	       message_add(pipeline->requests, message_new(MESSAGE_DEFERRED), 0, QUEUE_SOON) == 0;
}

void tables_want_page(void *ctx, uint32_t tgid, uint64_t address)
{
	struct pipeline *pipeline = ctx;

	if (pipeline->absent)
		absent_want(pipeline->absent, tgid, address);
}

void tables_unwind_deferred(struct pipeline *pipeline)
{
	struct deferred *deferred = drain_deferred(pipeline->drain);
	struct deferred_sample *sample = deferred_next(deferred);
	const struct mapping_snapshot *mappings;

	if (!sample)
		return;
	mappings = deferred_mappings(sample);
	see_files(pipeline, deferred_image(sample), mappings->mappings, mappings->count);
	tables_pay(loader_tables(pipeline->loader), deferred_image(sample)->payer);
	deferred_unwind(deferred, sample, pipeline->unwinder);
	publish(pipeline, 0);
}

int tables_load_first(struct pipeline *pipeline)
{
	const struct timespec pause = { .tv_nsec = FIRST_ROUND_MS * (long)NSEC_PER_MSEC };
	uint64_t began = clock_monotonic(), next = began + PROGRESS_FROM_MS * NSEC_PER_MSEC;
	uint64_t wanted = UINT64_MAX, sent, done, now, time;
	int r;

	if (!pipeline->loader)
		return 0;
	for (;;) {
		r = capture_drain(pipeline->capture, &time);
		if (r < 0)
			return r;
		/*
		 * Once all have been sent, processes that start now take their turn like later ones. The side band has woken
		 * thread B up for what was announced; where it is done with that already, the next round's does.
		 */
		pipeline->has_lists = process_table_send_lists(drain_processes(pipeline->drain),
							       time, wanted == UINT64_MAX);
		pthread_mutex_lock(&pipeline->lock);
		sent = pipeline->lists_sent;
		done = pipeline->lists_done;
		pthread_mutex_unlock(&pipeline->lock);
		if (wanted == UINT64_MAX && !pipeline->has_lists)
			wanted = sent;
		if (done >= wanted)
			return 0;
		if (pipeline->options.is_cancelled && pipeline->options.is_cancelled())
			return -EINTR;
		now = clock_monotonic();
		if (now - began > FIRST_LISTS_MS * NSEC_PER_MSEC) {
			log_warning("sampling starts before all unwind tables are loaded: %" PRIu64
				    " of %" PRIu64 " processes are", done, sent);
			return 0;
		}
		if (pipeline->options.loading && now >= next) {
			pipeline->options.loading(done, sent);
			next = now + PROGRESS_EVERY_MS * NSEC_PER_MSEC;
		}
		nanosleep(&pause, NULL);
	}
}
