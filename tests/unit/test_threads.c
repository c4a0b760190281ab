// SPDX-License-Identifier: Apache-2.0
/* Threads B, C and D at work, with the test in thread A's place: what goes in comes out. */
#include "unit.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/work.h"
#include "capture/replay.h"
#include "process/scan.h"
#include "records.h"
#include "pipeline/pipeline.h"
#include "pipeline/threads.h"
#include "synthetic.h"

enum {
	ROUNDS = 60,
	SAMPLES = 300,		/* of a round */
	GONE_PID = 4194400,	/* above every kernel's pid_max */
	QUEUE_BYTES = 64 << 10,
};

static struct sink {
	uint64_t samples, payloads;	/* thread C's, read when it is joined */
	unsigned int delay_us;
	uint64_t fail_from;		/* payload that the disk is full at, 0: never */
	uint64_t windows;
	uint64_t part_samples;		/* thread D's */
	uint64_t part_window;
	uint64_t begun;			/* files */
	uint64_t fail_parts;		/* every so many'th is not written, 0: none */
	uint64_t failed_samples;	/* in these */
	uint64_t parts;
	bool has_no_journal;
	sem_t *gate;			/* each window passes it; NULL: none */
} sink;

/* The session, as thread B sees it. */
static struct {
	uint64_t next_id;
	unsigned int loads, drops, sets;
	bool is_full;
	sem_t *stuck;		/* a file that is not read before somebody lets it */
} session;

static struct stat own;	/* this program, which all processes here run */
static char own_path[PATH_MAX];
static struct pipeline pipeline;
static struct capture_stats stats;
static uint64_t fed, fed_deferred;
static size_t window_queue_bytes = QUEUE_BYTES;

static int take_payload(void *ctx, struct payload *payload)
{
	struct sink *out = ctx;

	free(payload->data);
	out->payloads++;
	if (out->delay_us)
		usleep(out->delay_us);
	out->samples += payload->samples;
	return out->fail_from && out->payloads >= out->fail_from ? -ENOSPC : 0;
}

static void take_end(void *ctx, uint64_t window)
{
	struct sink *out = ctx;

	assert_true(window > 0);
	out->windows++;
	if (out->gate)
		sem_wait(out->gate);
}

static int take_part(void *ctx, const struct cut *cut, const uint8_t *data, size_t size)
{
	struct sink *out = ctx;

	assert_true(data && size && cut->window >= out->part_window);
	out->part_window = cut->window;
	out->begun += cut->begins;
	if (out->fail_parts && ++out->parts % out->fail_parts == 0) {
		out->failed_samples += cut->samples;
		return -ENOSPC;
	}
	out->part_samples += cut->samples;
	return 0;
}

static uint64_t journal_room(void *ctx)
{
	return ((struct sink *)ctx)->has_no_journal ? 0 : 1 << 20;
}

static int request(void *ctx _unused_, unsigned long number, void *argument)
{
	if (session.stuck) {
		sem_wait(session.stuck);
		sem_post(session.stuck);
	}
	if (number == STACKTAP_IOC_MAPPINGS_SET) {
		session.sets++;
	} else if (number == STACKTAP_IOC_TABLE_LOAD) {
		/* every third time one has to go */
		session.is_full = !session.is_full && ++session.loads % 3 == 0;
		if (session.is_full)
			return -ENOSPC;
		((struct stacktap_table_load *)argument)->table_id = ++session.next_id;
	} else if (number == STACKTAP_IOC_IMAGE) {
		((struct stacktap_image *)argument)->exec_id = 7;
	} else {
		session.drops++;
	}
	return 0;
}

static int open_object(void *ctx _unused_, struct object *object, uint32_t tgid, int *ret_fd)
{
	return symbolizer_open(pipeline.symbolizer, object, tgid, ret_fd);
}

static int each_table(void *ctx _unused_,
		      int (*each)(void *each_ctx, uint64_t id, uint64_t bytes, uint64_t hit),
		      void *each_ctx)
{
	return session.next_id ? each(each_ctx, session.next_id, 1000, 0) : 0;
}

/* Time enough passes between any two looks at the clock. */
static uint64_t fast_clock(void)
{
	static uint64_t now;

	return now += 60 * NSEC_PER_SEC;
}

static int start_loader(void)
{
	const struct tables_ops ops = {
		.request = request,
		.open = open_object,
		.each_table = each_table,
		.now = fast_clock,
		.keep_bytes = 1 << 20,
		.parser = symbolizer_parser(pipeline.symbolizer),
	};

	session.loads = session.drops = session.sets = 0;
	session.next_id = 0;
	session.stuck = NULL;
	return loader_new(&ops, &pipeline.loader) ?:
	       unwinder_new(loader_tables(pipeline.loader), 64, &pipeline.unwinder) ?:
	       process_table_use_lists(drain_processes(pipeline.drain), tables_send, &pipeline,
				       NULL, 0);
}

/* It takes longer to start than all rounds take. */
static int await_parser(void)
{
	struct object *object = object_new(OBJECT_FILE, "/proc/self/exe");
	int fd = open(object->path, O_RDONLY | O_CLOEXEC), r;

	object->size = (uint64_t)own.st_size;
	r = parser_facts(symbolizer_parser(pipeline.symbolizer), object, fd);
	close(fd);
	object_unref(object);
	return r;
}

static int setup(void **state _unused_)
{
	const struct symbolizer_options symbolizer = { .with_kernel_addresses = true,
						       .sysroot = "" };
	struct drain_options options = { 0 };
	struct drain_output output;

	if (stat("/proc/self/exe", &own) < 0 || !realpath("/proc/self/exe", own_path))
		return -errno;
	sink = (struct sink){ 0 };
	stats = (struct capture_stats){ 0 };
	fed = fed_deferred = 0;
	pipeline = (struct pipeline){
		.options = { .encode = { .max_bytes = 65536 },
			     .sink = { .payload = take_payload, .done = take_end, .journal = take_part,
				       .journal_room = journal_room, .ctx = &sink } },
	};
	pthread_mutex_init(&pipeline.lock, NULL);
	pthread_cond_init(&pipeline.window_gone, NULL);
	output = drain_thread_output(&pipeline);
	return queue_new(POOL_QUEUES, QUEUE_BYTES, &pipeline.requests) ?:
	       queue_new(POOL_QUEUES, window_queue_bytes, &pipeline.windows) ?:
	       queue_new(POOL_QUEUES, QUEUE_BYTES, &pipeline.results) ?:
	       queue_new(POOL_QUEUES, QUEUE_BYTES, &pipeline.parts) ?:
	       symbolizer_new(&symbolizer, &pipeline.symbolizer) ?:
	       await_parser() ?:
	       drain_new(&options, &output, &pipeline.drain) ?:
	       start_loader() ?:
	       pthread_create(&pipeline.symbol_thread, NULL, symbol_thread, &pipeline) ?:
	       pthread_create(&pipeline.export_thread, NULL, export_thread, &pipeline) ?:
	       pthread_create(&pipeline.journal_thread, NULL, journal_thread, &pipeline);
}

/* Between threads B and C there is never more than a window. */
static int setup_narrow(void **state)
{
	int r;

	window_queue_bytes = 1;
	r = setup(state);
	window_queue_bytes = QUEUE_BYTES;
	return r;
}

static int teardown(void **state _unused_)
{
	queue_free(pipeline.requests, message_drop);
	queue_free(pipeline.windows, message_drop);
	queue_free(pipeline.results, message_drop);
	queue_free(pipeline.parts, message_drop);
	journal_forget(&pipeline);
	drain_thread_forget(&pipeline);
	drain_free(pipeline.drain);
	tables_stop(&pipeline);
	symbolizer_free(pipeline.symbolizer);
	pthread_cond_destroy(&pipeline.window_gone);
	pthread_mutex_destroy(&pipeline.lock);
	for (int id = 0; id < POOL_COUNT; id++)
		if (pool_get((enum pool_id)id)->used)
			return -1;
	return 0;
}

/* Its code is somewhere in it. */
static uint64_t own_length(void)
{
	return ((uint64_t)own.st_size + 0xfff) & ~0xfffULL;
}

/* Where in the file some code is: segments lie in memory as they do there. */
static uint64_t own_code(void)
{
	extern const char __executable_start[];

	return (uint64_t)((uintptr_t)own_code - (uintptr_t)__executable_start);
}

static void map(uint32_t pid, uint64_t address, uint64_t inode, const char *path)
{
	drain_ops.mmap(pipeline.drain, &(struct sideband_mmap){
		.time = clock_monotonic(), .pid = pid, .address = address, .length = own_length(),
		.inode = inode, .path = path });
}

static void start_program(uint32_t pid)
{
	drain_ops.comm(pipeline.drain, &(struct sideband_task){
		.time = clock_monotonic(), .pid = pid, .tid = pid, .comm = "program",
		.is_exec = true });
	map(pid, 0x400000, own.st_ino, own_path);
	map(pid, 0x7f0000000000, 99, "/usr/lib/libgone.so.1");
}

/* As thread A does between its rounds. */
static void merge_results(void)
{
	struct process_table *processes = drain_processes(pipeline.drain);
	struct message *message;
	int r;

	while ((message = message_take(pipeline.results, 0, &r))) {
		if (message->kind == MESSAGE_SNAPSHOT)
			process_table_merge(processes, message->snapshot);
		else if (message->kind == MESSAGE_GONE)
			process_table_gone(processes, message->tgid, message->time);
		else if (message->kind == MESSAGE_SCANNED_ALL && message->complete)
			process_table_scanned_all(processes, message->time);
		else if (message->kind == MESSAGE_RELIST)
			process_table_relist(processes, clock_monotonic());
		message_free(message);
	}
}

static void request_scan(uint32_t tgid)
{
	struct message *message = message_new(MESSAGE_SCAN);

	assert_non_null(message);
	message->tgid = tgid;
	assert_int_equal(message_send(pipeline.requests, message, 0, QUEUE_URGENT, -1), 0);
}

static void feed_samples(uint32_t round, uint32_t count)
{
	struct records records = { 0 };
	const uint32_t pids[] = { (uint32_t)getpid(), 0, GONE_PID + round % 7 };
	/* some come from before the program's list: whatever their stacks lead to */
	const uint64_t slice[64] = { 0x400040 + own_code(), 0x400800 + own_code(), 0x401000 + own_code() };
	union {
		struct stacktap_regs head;
		uint64_t words[sizeof(struct stacktap_regs) / 8 + 17];
	} regs = { .words = { 0 } };

	regs.head.arch = EM_X86_64;
	regs.head.count = 17;
	regs.head.regs[6] = 0x7ffc00000008;
	regs.head.regs[7] = 0x7ffc00000000;
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 1000, PERF_TYPE_HARDWARE,
		       PERF_COUNT_HW_CPU_CYCLES, "cycles");
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t user[] = { 0x400000 + own_code() + (uint64_t)(rand() % 4096) * 16,
					  0x7f0000000000 + (uint64_t)(rand() % 64) * 16 };
		const uint64_t kernel = 0xffffffff81000000 + (uint64_t)(rand() % 4096) * 64;
		const uint32_t pid = pids[i % ARRAY_SIZE(pids)];

		struct sample_spec spec = {
			.time = clock_monotonic(), .tgid = pid, .tid = pid, .cpu = i % 2,
			.start_time = 5, .exec_id = 1 + round / 20, .period = 1000,
			.flags = pid ? STACKTAP_SAMPLE_USER_MODE : STACKTAP_SAMPLE_IDLE,
			.user_ips = user, .user_count = pid ? 2 : 0,
			.kernel_ips = &kernel, .kernel_count = i % 2,
		};

		records_sample(&records, &spec);
		if (!pid || i % 4)
			continue;
		regs.head.pc = user[0];
		spec.regs = &regs.head;
		spec.slice = slice;
		spec.slice_bytes = sizeof(slice);
		spec.slice_address = regs.head.regs[7];
		spec.user_end = STACKTAP_END_NO_MAPPINGS;
		records_sample(&records, &spec);
		fed_deferred++;
		fed++;
	}
	assert_int_equal(ring_parse(records.data, records.bytes, 0, &drain_ops, pipeline.drain,
				    &stats), 0);
	fed += count;
	records_free(&records);
}

static void feed_round(uint32_t round)
{
	feed_samples(round, SAMPLES);
}

static void run_rounds(uint32_t rounds_of_window)
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		if (round % 20 == 0) {
			start_program((uint32_t)getpid());
			request_scan(0);
		}
		if (round % 7 == 0)
			start_program(GONE_PID + round % 7);
		if (round % 9 == 0)
			request_scan(round % 2 ? GONE_PID : (uint32_t)getpid());
		if (round % 11 == 0)
			drain_ops.gap(pipeline.drain, CAPTURE_GAP_SIDEBAND_LOST, clock_monotonic(),
				      0);
		if (round % 13 == 0)
			drain_ops.ksymbol(pipeline.drain, clock_monotonic(), 0, 0, false, "module");
		merge_results();
		process_table_send_lists(drain_processes(pipeline.drain), clock_monotonic(),
					 round % 2);
		feed_round(round);
		/* as if one and a half seconds had gone by */
		pipeline.next_part = 0;
		drain_round(pipeline.drain, clock_monotonic());
		if (round % rounds_of_window == rounds_of_window - 1)
			drain_flush(pipeline.drain, clock_monotonic());
	}
}

/* From left to right, as pipeline_stop() does. */
static void join_all(void)
{
	queue_close(pipeline.parts);
	pthread_join(pipeline.journal_thread, NULL);
	queue_close(pipeline.results);
	queue_close(pipeline.requests);
	pthread_join(pipeline.symbol_thread, NULL);
	queue_close(pipeline.windows);
	pthread_join(pipeline.export_thread, NULL);
}

static struct pipeline_stats end(void)
{
	struct pipeline_stats result;
	struct drain_stats drained;

	drain_thread_end(&pipeline);
	drain_stats(pipeline.drain, &drained);
	join_all();
	pipeline_stats(&pipeline, &result);
	assert_int_equal(pipeline.windows_under_way, 0);
	assert_int_equal(result.windows_dropped, 0);
	assert_int_equal(result.counts.samples + result.counts.lost, fed);
	assert_int_equal(drained.deferred.waiting, 0);
	assert_int_equal(drained.deferred.taken + drained.deferred.refused, fed_deferred);
	assert_int_equal(drained.deferred.unwound + drained.deferred.expired + drained.deferred.failed,
			 drained.deferred.taken);
	assert_true(drained.deferred.unwound > 0);
	assert_int_equal(result.counts.deferred, drained.deferred.unwound);
	assert_int_equal(result.counts.deferred_refused, drained.deferred.refused);
	assert_int_equal(result.counts.deferred_failed, drained.deferred.failed);
	return result;
}

/* Until the sink has all of it. */
static void await_closing(uint64_t closing)
{
	while (!pipeline_has_closed(&pipeline, closing)) {
		usleep(1000);
		merge_results();
		drain_thread_round(&pipeline, closing, clock_monotonic());
	}
}

static void test_a_window_is_closed_when_asked(void **state _unused_)
{
	uint64_t closing;

	pipeline.closing = pipeline.closed = atomic_load(&pipeline_closings);
	assert_true(pipeline_has_closed(&pipeline, pipeline.closed));
	sink.delay_us = 20000;
	start_program((uint32_t)getpid());
	for (uint32_t round = 0; round < 5; round++) {
		feed_round(round);
		closing = atomic_fetch_add(&pipeline_closings, 1) + 1;
		assert_false(pipeline_has_closed(&pipeline, closing));
		await_closing(closing);
		/* all of it has been through the sink, although no window is as old as it should be */
		assert_int_equal(sink.samples, fed);
		assert_int_equal(sink.windows, round + 1);
	}
	/* nothing was sampled since */
	closing = atomic_fetch_add(&pipeline_closings, 1) + 1;
	await_closing(closing);
	assert_int_equal(sink.windows, 5);
	/* who does not ask waits for the window's age */
	feed_round(5);
	drain_thread_round(&pipeline, closing, clock_monotonic());
	assert_true(sink.windows == 5 && pipeline.windows_under_way == 0);
	end();
}

/* Thread B has published its figures and waits for ever. */
static void await_idle_names(void)
{
	struct message *gone;
	int r;

	request_scan(GONE_PID);
	gone = message_take(pipeline.results, 60000, &r);
	usleep(1000000);
	if (gone)
		message_free(gone);
	assert_non_null(gone);
}

/* So few that they alone do not wake it up. */
static size_t announce_one(void)
{
	size_t bytes;

	start_program((uint32_t)getpid());
	bytes = queue_bytes(pipeline.requests);
	assert_true(bytes < QUEUE_SMALL_BYTES);
	return bytes;
}

static bool is_taken_by_names(void)
{
	const uint64_t deadline = clock_monotonic() + 20 * NSEC_PER_SEC;

	while (queue_bytes(pipeline.requests) && clock_monotonic() < deadline)
		usleep(1000);
	return !queue_bytes(pipeline.requests);
}

/* What is announced thread B is woken up for behind the side band, and in a round, also of stacks that are deferred; without a window. */
static void test_a_round_wakes_thread_b(void **state _unused_)
{
	size_t announced[3];
	bool is_taken[3];

	for (int i = 0; i < 3; i++) {
		await_idle_names();
		if (i < 2)
			announce_one();
		else
			feed_samples(0, 1);
		announced[i] = queue_bytes(pipeline.requests);
		if (i == 1)
			drain_ops.sideband_end(pipeline.drain);
		else
			drain_thread_round(&pipeline, pipeline.closing, clock_monotonic());
		is_taken[i] = is_taken_by_names();
	}
	drain_finish(pipeline.drain);
	join_all();
	assert_true(announced[0] && announced[1] && announced[2]);
	assert_int_equal(fed_deferred, 1);
	assert_true(is_taken[0] && is_taken[1] && is_taken[2]);
}

/* The last deferred stack is looked at, and not given up when it has waited for too long. */
static void test_the_end_wakes_thread_b(void **state _unused_)
{
	struct drain_stats drained;

	await_idle_names();
	feed_samples(0, 1);
	drain_thread_end(&pipeline);
	drain_stats(pipeline.drain, &drained);
	join_all();
	assert_int_equal(drained.deferred.taken, 1);
	assert_int_equal(drained.deferred.expired, 0);
}

static void test_nothing_is_lost_on_the_way(void **state _unused_)
{
	struct pipeline_stats result;

	run_rounds(4);
	result = end();
	assert_int_equal(result.counts.lost, 0);
	assert_int_equal(result.samples_dropped, 0);
	assert_int_equal(sink.samples, fed);
	assert_int_equal(result.payloads, sink.payloads);
	assert_int_equal(result.windows, sink.windows);
	/* a part that thread D has no time for is in the next one, if its window is still open then */
	assert_true(result.parts > 0 && sink.part_samples > fed / 100);
	assert_true(sink.part_samples <= fed);
	assert_int_equal(result.parts_refused, 0);
	assert_int_equal(sink.begun, 1);
	assert_true(result.windows >= ROUNDS / 4);
	assert_true(result.counts.stale > 0);
	assert_int_equal(pipeline.lists_sent, pipeline.lists_done);
	assert_int_equal(result.loader.pending, 0);
	assert_int_equal(result.loader.lists, session.sets);
	assert_true(session.sets > 0);
	assert_true(session.loads > 0);
}

/* The sink is slower than the samples come, and memory for windows is short: the drain waits. */
static void test_a_slow_sink_loses_nothing(void **state _unused_)
{
	struct pool *pool = pool_get(POOL_AGGREGATE);
	size_t limit = pool->limit;
	struct pipeline_stats result;

	pool->limit = 1 << 20;
	sink.delay_us = 20000;
	run_rounds(4);
	result = end();
	pool->limit = limit;
	assert_int_equal(result.counts.lost, 0);
	assert_int_equal(sink.samples, fed);
	assert_true(result.windows > ROUNDS / 4 + 1);
}

static void test_a_failing_sink_is_accounted_for(void **state _unused_)
{
	struct pipeline_stats result;

	/* in the middle of a window */
	sink.fail_from = 2;
	sink.has_no_journal = true;
	run_rounds(ROUNDS);
	result = end();
	assert_int_equal(result.parts + sink.part_samples, 0);
	assert_true(result.samples_dropped > 0);
	assert_int_equal(sink.samples + result.samples_dropped, fed);
}

/* In good time: what never comes is a failure, not a lane that hangs. */
static bool names_are_busy(uint64_t least_ns, uint64_t most_ns)
{
	const uint64_t deadline = clock_monotonic() + 120 * NSEC_PER_SEC;
	struct pipeline_stats result;

	do {
		usleep(1000);
		pipeline_stats(&pipeline, &result);
		if (result.busy_ns[THREAD_NAMES] >= least_ns && result.busy_ns[THREAD_NAMES] <= most_ns)
			return true;
	} while (clock_monotonic() < deadline);
	return false;
}

/* Thread B is at a list that does not come to its end before @stuck is posted. */
static void hold_names(sem_t *stuck)
{
	sem_init(stuck, 0, 0);
	session.stuck = stuck;
	start_program((uint32_t)getpid());
	feed_round(0);
	drain_round(pipeline.drain, clock_monotonic());
	process_table_send_lists(drain_processes(pipeline.drain), clock_monotonic(), true);
}

/* Thread B stands at one program for ever, and says so. */
static void test_a_file_without_end_shows(void **state _unused_)
{
	sem_t stuck;
	bool was_busy, goes_on;
	const char *hung;

	hold_names(&stuck);
	/* nothing ends it by itself */
	was_busy = names_are_busy(40 * NSEC_PER_MSEC, UINT64_MAX);
	hung = work_hung(UINT64_MAX, NULL);
	sem_post(&stuck);
	goes_on = names_are_busy(0, 0);
	run_rounds(4);
	end();
	session.stuck = NULL;
	sem_destroy(&stuck);
	assert_true(was_busy);
	assert_string_equal(hung, "names");
	assert_true(goes_on);
}

static sem_t finished;

/* Ends what thread B stands at when the test itself is held up, so that it fails instead of hanging. */
static void *let_go(void *ctx)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	if (sem_timedwait(&finished, &until) == 0)
		return NULL;
	sem_post(ctx);
	return ctx;
}

/*
 * Thread B is at one piece of work, and whatever thread A has to tell it finds no room: programs, files, code of the kernel,
 * scans, windows. It goes on draining, nothing of a window is lost, and what was not told is counted.
 */
static void test_the_drain_never_waits_for_names(void **state _unused_)
{
	enum { PROGRAMS = 2000, WINDOWS = 20, SCANS = 30 };
	struct hash_table files = { .index.pool = POOL_PROCESSES };
	struct drain_output output = drain_thread_output(&pipeline);
	struct image *image = image_new(&files, (uint32_t)getpid(), 0, "untold");
	struct mapped_file *library = mapped_file_new(OBJECT_FILE, "/usr/lib/libgone.so.2");
	struct mapped_file *dump = mapped_file_new(OBJECT_FILE, "/tmp/jit-7.dump");
	const uint64_t scans = pipeline.scans;
	bool is_library_told, is_dump_told, wants_all;
	uint32_t unscanned;
	unsigned int untold;
	uint16_t marks;
	struct pipeline_stats result;
	uint64_t deadline;
	pthread_t watch;
	sem_t stuck;
	bool is_busy, wants_kernel;
	void *was_late;

	sem_init(&stuck, 0, 0);
	sem_init(&finished, 0, 0);
	session.stuck = &stuck;
	assert_int_equal(pthread_create(&watch, NULL, let_go, &stuck), 0);
	start_program((uint32_t)getpid());
	feed_round(0);
	drain_round(pipeline.drain, clock_monotonic());
	process_table_send_lists(drain_processes(pipeline.drain), clock_monotonic(), true);
	is_busy = names_are_busy(20 * NSEC_PER_MSEC, UINT64_MAX);
	for (uint32_t i = 0; i < PROGRAMS; i++)
		output.observer.image(output.observer.ctx, image, NULL);
	/* no sample will tell of it */
	is_library_told = output.observer.file(output.observer.ctx, image, library);
	is_dump_told = output.observer.file(output.observer.ctx, image, dump);
	mapped_file_unref(library);
	mapped_file_unref(dump);
	untold = pipeline.untold_count;
	/* nor is a scan lost, or made one of all */
	for (uint32_t i = 0; i < SCANS; i++)
		process_table_image(drain_processes(pipeline.drain), &(struct stacktap_sample){
			.header = { .time = clock_monotonic(), .flags = STACKTAP_SAMPLE_USER_MODE },
			.tgid = GONE_PID + 100 + i, .start_time = 5,
			.exec_id = 1, .comm = "unknown" }, &marks);
	drain_thread_scans(&pipeline, clock_monotonic());
	unscanned = pipeline.unscanned;
	wants_all = pipeline.wants_all;
	image_unref(image);
	output.kernel_changed(output.ctx);
	wants_kernel = pipeline.wants_kernel;
	for (uint32_t round = 0; round < WINDOWS; round++) {
		feed_round(round);
		drain_flush(pipeline.drain, clock_monotonic());
	}
	sem_post(&finished);
	pthread_join(watch, &was_late);
	sem_post(&stuck);
	deadline = clock_monotonic() + 60 * NSEC_PER_SEC;
	while ((pipeline.unscanned || pipeline.untold_count) && clock_monotonic() < deadline) {
		usleep(1000);
		drain_thread_scans(&pipeline, clock_monotonic());
		drain_thread_round(&pipeline, pipeline.closing, clock_monotonic());
	}
	result = end();
	session.stuck = NULL;
	sem_destroy(&stuck);
	sem_destroy(&finished);
	assert_true(is_busy && wants_kernel);
	assert_true(!is_library_told && is_dump_told);
	assert_int_equal(untold, 1);
	assert_int_equal(pipeline.untold_count, 0);
	assert_true(unscanned && !wants_all && !pipeline.unscanned);
	assert_in_range(pipeline.scans - scans, SCANS, UINT32_MAX);
	assert_null(was_late);
	assert_true(pipeline.unannounced > 0 && pipeline.unannounced < PROGRAMS);
	assert_int_equal(result.counts.lost, 0);
	assert_int_equal(sink.samples, fed);
	assert_true(result.windows >= WINDOWS);
}

/* Once thread A has said that it is in a hurry, or when it never does. */
static void *await_hurry(void *ctx)
{
	const uint64_t deadline = clock_monotonic() + 60 * NSEC_PER_SEC;
	struct pipeline_stats result;

	do {
		usleep(1000);
		pipeline_stats(&pipeline, &result);
	} while (!result.hurries && clock_monotonic() < deadline);
	sem_post(ctx);
	return result.hurries ? NULL : ctx;
}

/* Memory for windows is used up, and all that there are wait for thread B: they leave with the names that are there. */
static void test_short_memory_ends_the_wait_for_names(void **state _unused_)
{
	struct pool *pool = pool_get(POOL_AGGREGATE);
	size_t limit = pool->limit;
	struct pipeline_stats result;
	void *was_late;
	pthread_t watch;
	sem_t stuck;
	bool is_busy;

	hold_names(&stuck);
	is_busy = names_are_busy(40 * NSEC_PER_MSEC, UINT64_MAX);
	assert_int_equal(pthread_create(&watch, NULL, await_hurry, &stuck), 0);
	pool->limit = 1 << 20;
	run_rounds(4);
	pthread_join(watch, &was_late);
	result = end();
	pool->limit = limit;
	session.stuck = NULL;
	sem_destroy(&stuck);
	assert_true(is_busy);
	assert_null(was_late);
	assert_int_equal(result.counts.lost, 0);
	assert_int_equal(sink.samples, fed);
	assert_true(result.symbolizer.late > 0);
	assert_true(result.counts.names_late > 0);
}

static bool await_named(uint64_t count)
{
	const uint64_t deadline = clock_monotonic() + 60 * NSEC_PER_SEC;

	while (atomic_load(&pipeline.named) < count && clock_monotonic() < deadline)
		usleep(1000);
	return atomic_load(&pipeline.named) == count;
}

static void flush_one(uint32_t round)
{
	feed_round(round);
	drain_flush(pipeline.drain, clock_monotonic());
}

/* There is always a window before it. */
static void test_windows_leave_turns_to_others(void **state _unused_)
{
	struct message *message = message_new(MESSAGE_SCAN), *gone;
	struct unwinder *unwinder = pipeline.unwinder;
	bool is_waiting;
	sem_t gate;
	int r;

	sem_init(&gate, 0, 0);
	sink.gate = &gate;
	/* the only one that waits: no stacks do */
	pipeline.unwinder = NULL;
	/* with thread C, in the queue to it, and one that finds that full */
	for (uint32_t round = 0; round < 3; round++)
		flush_one(round);
	is_waiting = await_named(3);
	while ((gone = message_take(pipeline.results, 0, &r)))
		message_free(gone);
	message->tgid = GONE_PID;
	assert_int_equal(message_send(pipeline.requests, message, 0, QUEUE_SOON, 0), 0);
	flush_one(3);
	flush_one(4);
	sem_post(&gate);
	gone = message_take(pipeline.results, 60000, &r);
	for (int i = 0; i < 100; i++)
		sem_post(&gate);
	drain_finish(pipeline.drain);
	join_all();
	pipeline.unwinder = unwinder;
	sem_destroy(&gate);
	assert_true(is_waiting);
	assert_non_null(gone);
	assert_int_equal(gone->kind, MESSAGE_GONE);
	message_free(gone);
}

static void request_kernel(struct queue *queue)
{
	assert_int_equal(message_send(queue, message_new(MESSAGE_KERNEL), 0, QUEUE_URGENT, 0), 0);
}

/* Names have as long as the others had, a turn at least; and looking at all of /proc is not begun. */
static void test_turns_in_a_window_leave_time_for_names(void **state _unused_)
{
	struct pipeline other = { .symbolizer = pipeline.symbolizer, .results = pipeline.results };
	struct message *scan = message_new(MESSAGE_SCAN);
	size_t first, held, later, last;
	uint64_t next, end;

	assert_int_equal(queue_new(POOL_QUEUES, QUEUE_BYTES, &other.requests), 0);
	do {
		other.turn_at = 0;
		request_kernel(other.requests);
		names_turn(&other, 1, 3);
		first = queue_bytes(other.requests);
		request_kernel(other.requests);
		next = other.turn_at;
		names_turn(&other, 2, 3);
		end = clock_monotonic();
		held = queue_bytes(other.requests);
		while (clock_monotonic() < other.turn_at)
			usleep(1000);
		names_turn(&other, 2, 3);
		later = queue_bytes(other.requests);
	} while (next && end >= next);
	other.turn_at = 0;
	assert_int_equal(message_send(other.requests, scan, 0, QUEUE_URGENT, 0), 0);
	names_turn(&other, 2, 3);
	last = queue_bytes(other.requests);
	queue_free(other.requests, message_drop);
	drain_finish(pipeline.drain);
	join_all();
	assert_true(held > 0 && !first && !later && !last);
	assert_true(other.owes_scan);
}

struct seen_waiting {
	bool is_at_work;	/* thread A */
	bool is_taken;		/* what it had announced */
};

/* Thread C, which a receiver is slow for: it sees what threads A and B do meanwhile. */
static void *await_rest(void *ctx)
{
	const uint64_t deadline = clock_monotonic() + 60 * NSEC_PER_SEC;
	struct seen_waiting *seen = ctx;

	do {
		usleep(1000);
		seen->is_at_work = work_taken(&pipeline.work[THREAD_DRAIN], UINT64_MAX);
	} while (seen->is_at_work && clock_monotonic() < deadline);
	seen->is_taken = is_taken_by_names();
	pipeline_window_left(&pipeline);
	return NULL;
}

/*
 * A receiver may be given ten minutes: nobody takes it for a drain that hangs, and what samples announced before it was
 * waited for has its names by then.
 */
static void test_waiting_for_memory_is_no_work(void **state _unused_)
{
	const struct drain_output output = drain_thread_output(&pipeline);
	struct seen_waiting seen = { 0 };
	bool is_at_work, has_waited;
	pthread_t receiver;
	size_t announced;

	await_idle_names();
	announced = announce_one();
	pipeline_enter(&pipeline, THREAD_DRAIN);
	work_begin();
	pthread_mutex_lock(&pipeline.lock);
	pipeline.windows_under_way++;
	pthread_mutex_unlock(&pipeline.lock);
	assert_int_equal(pthread_create(&receiver, NULL, await_rest, &seen), 0);
	has_waited = output.wait(output.ctx);
	is_at_work = work_taken(&pipeline.work[THREAD_DRAIN], UINT64_MAX);
	work_leave();
	pthread_join(receiver, NULL);
	drain_finish(pipeline.drain);
	join_all();
	assert_true(has_waited && is_at_work && announced);
	assert_true(!seen.is_at_work && seen.is_taken);
}

/* What cannot be written is counted, and what follows it goes to a file that needs nothing of it. */
static void test_a_failing_journal_begins_anew(void **state _unused_)
{
	struct pipeline_stats result;

	sink.fail_parts = 3;
	run_rounds(4);
	result = end();
	assert_int_equal(sink.samples, fed);
	assert_int_equal(result.parts_refused, sink.parts / 3);
	assert_int_equal(result.parts_samples_refused, sink.failed_samples);
	assert_true(sink.parts < 3 || sink.failed_samples);
	/* thread D may have been too slow for three parts */
	assert_in_range(sink.begun, 1, 1 + sink.parts / 3);
	assert_true(sink.parts < 4 || sink.begun > 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_window_is_closed_when_asked),
		TEST(test_a_round_wakes_thread_b),
		TEST(test_the_end_wakes_thread_b),
		TEST(test_nothing_is_lost_on_the_way),
		TEST(test_a_slow_sink_loses_nothing),
		TEST(test_a_failing_sink_is_accounted_for),
		TEST(test_a_file_without_end_shows),
		TEST(test_the_drain_never_waits_for_names),
		TEST(test_short_memory_ends_the_wait_for_names),
		cmocka_unit_test_setup_teardown(test_windows_leave_turns_to_others, setup_narrow, teardown),
		TEST(test_turns_in_a_window_leave_time_for_names),
		TEST(test_waiting_for_memory_is_no_work),
		TEST(test_a_failing_journal_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
