// SPDX-License-Identifier: Apache-2.0
/*
 * Programs that want the daemon's memory: each pool stays below its limit, and what it refuses is
 * counted. Of the other pools such programs are in test_window.c (aggregate), test_exporter.c (queues), test_dictionary.c
 * (encode), test_unwinder.c (tables), test_deferred.c (deferred), test_convert.c (report). Rings and side band are as
 * large as their owner asks for: nothing from outside is charged to them.
 */
#include "fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "base/queue.h"
#include "helper/cpu_wait.h"
#include "process/image.h"
#include "symbol/facts.h"
#include "resolve/names.h"
#include "resolve/symbolizer.h"

enum { NAME_LENGTH = 4095 };

static struct pool *symbols, *processes;
static size_t symbols_before, processes_before;

static int setup(void **state _unused_)
{
	symbols = pool_get(POOL_SYMBOLS);
	processes = pool_get(POOL_PROCESSES);
	symbols_before = symbols->used;
	processes_before = processes->used;
	return 0;
}

static int nothing_is_left(void **state _unused_)
{
	return symbols->used != symbols_before || processes->used != processes_before;
}

/* Name @i of those that are as long as can be. */
static const char *long_name(unsigned int i)
{
	static char name[NAME_LENGTH + 1];

	memset(name, 'x', NAME_LENGTH);
	name[snprintf(name, sizeof(name), "f%u", i)] = '_';
	return name;
}

static void names_beyond_the_limit_are_refused(void **state _unused_)
{
	enum { NAMES = 60000 };
	static struct function *functions[NAMES];
	unsigned int taken = 0;
	size_t budget = SIZE_MAX;
	struct function *again;
	struct names *names;

	assert_int_equal(names_new(NULL, &names), 0);
	for (unsigned int i = 0; i < NAMES; i++)
		taken += names_get(names, long_name(i), &budget, &functions[i]) == 0;
	assert_true(symbols->peak <= symbols->limit);
	assert_in_range(taken, NAMES_FOREIGN_MAX_BYTES / (NAME_LENGTH + 1) / 2,
			NAMES_FOREIGN_MAX_BYTES / (NAME_LENGTH + 1));
	/* the kernel's still fit, and so does what is there */
	assert_int_equal(names_get(names, "schedule", NULL, &again), 0);
	function_unref(again);
	assert_int_equal(names_get(names, long_name(0), &budget, &again), 0);
	assert_ptr_equal(again, functions[0]);
	function_unref(again);
	/* what is out of use makes room once the next window begins */
	for (unsigned int i = 0; i < taken; i++)
		function_unref(functions[i]);
	assert_int_equal(names_get(names, long_name(NAMES), &budget, &again), -EDQUOT);
	names_begin(names);
	assert_int_equal(names_get(names, long_name(NAMES), &budget, &again), 0);
	function_unref(again);
	names_free(names);
}

static void a_full_pool_refuses_names(void **state _unused_)
{
	size_t limit = symbols->limit, budget = SIZE_MAX;
	uint64_t refused = symbols->refused;
	struct function *function;
	struct names *names;

	assert_int_equal(names_new(NULL, &names), 0);
	assert_int_equal(names_get(names, "first", &budget, &function), 0);
	symbols->limit = symbols->used;
	assert_int_equal(names_get(names, "second", NULL, &(struct function *){ NULL }), -ENOBUFS);
	assert_true(symbols->refused > refused);
	symbols->limit = limit;
	function_unref(function);
	names_free(names);
}

/* Functions with long names, one to every 16 bytes, from the beginning of the segment's page on. */
static struct mapped_file *program_of(const char *name, unsigned int functions)
{
	struct mapped_file *file;
	struct stat st;

	fixture_run("python3 -c 'print(\".text\")\n"
		    "for i in range(%u):\n"
		    "    n = (\"f%%u_\" %% i).ljust(4000, \"x\")\n"
		    "    print(\".balign 16\\n.globl \" + n + \"\\n.type \" + n + "
		    "\",%%function\\n\" + n + \":\\n.zero 16\\n.size \" + n + \", 16\")' >many.s"
		    " && "
		    "gcc -nostdlib -shared -Wl,-z,separate-code -o %s many.s",
		    functions, name);
	file = mapped_file_new(OBJECT_FILE, fixture_path(name));
	assert_int_equal(stat(fixture_path(name), &st), 0);
	file->major = major(st.st_dev);
	file->minor = minor(st.st_dev);
	file->inode = st.st_ino;
	return file;
}

/* Whoever takes long to answer has no CPU. */
void cpu_wait_begin(struct cpu_wait *wait _unused_, pid_t pid _unused_)
{
}

unsigned int cpu_wait_rest(const struct cpu_wait *wait _unused_, pid_t pid _unused_)
{
	return 0;
}

/* Stops the parser until it has kept its next question waiting. The process that lets it go on. */
static pid_t keep_waiting(struct symbolizer *symbolizer)
{
	struct symbolizer_stats stats;
	pid_t pid;

	symbolizer_stats(symbolizer, &stats);
	assert_int_equal(kill(stats.parser.helper.pid, SIGSTOP), 0);
	pid = fork();
	if (pid)
		return pid;
	usleep(200000);
	kill(stats.parser.helper.pid, SIGCONT);
	_exit(0);
}

/*
 * One object does not have all of the pool; its frames stay without a name and say why. What is asked again, as the
 * parser had no CPU for it, adds to the same names.
 */
static void expect_bounded_names(bool is_starved)
{
	enum { FUNCTIONS = 1000, FIT = NAMES_OBJECT_MAX_BYTES / 4096 };
	const struct symbolizer_options options = { .with_kernel_addresses = true };
	static struct location *locations[FUNCTIONS];
	struct hash_table files = { .index.pool = POOL_PROCESSES };
	struct window window = { .locations = locations, .location_count = FUNCTIONS };
	struct mapped_file *file = program_of("long_names.so", FUNCTIONS);
	struct image *image = image_new(&files, (uint32_t)getpid(), 0, "test");
	struct symbolizer_stats stats;
	struct symbolizer *symbolizer;
	uint64_t named = 0, refused = 0;
	pid_t pid = 0;

	assert_int_equal(symbolizer_new(&options, &symbolizer), 0);
	symbolizer_see_image(symbolizer, image, NULL);
	symbolizer_see_file(symbolizer, image, file);
	assert_non_null(mapped_file_object(file));
	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		const struct object *object = mapped_file_object(file);

		locations[i] = location_new(file, object->segments[0].offset + 16 * i, FRAME_NATIVE,
					    false);
		assert_non_null(locations[i]);
	}
	if (is_starved)
		pid = keep_waiting(symbolizer);
	symbolizer_resolve(symbolizer, &window);
	if (pid)
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		named += locations[i]->line_count;
		refused += locations[i]->is_refused;
		assert_true(locations[i]->is_refused == !locations[i]->line_count);
		/* they are tried again */
		assert_true(locations[i]->is_refused == locations[i]->is_put_off);
	}
	assert_in_range(named, FIT - 10, FIT + 20);
	assert_int_equal(refused, FUNCTIONS - named);
	symbolizer_stats(symbolizer, &stats);
	assert_int_equal(stats.names_refused, refused);
	assert_int_equal(stats.named, named);
	for (unsigned int i = 0; i < FUNCTIONS; i++)
		location_unref(locations[i]);
	image_unref(image);
	mapped_file_unref(file);
	symbolizer_free(symbolizer);
	hash_table_done(&files);
}

static void an_objects_names_are_bounded_in_a_window(void **state _unused_)
{
	expect_bounded_names(false);
	expect_bounded_names(true);
}

static void set_service(struct image *image, size_t length)
{
	struct image_details *details = calloc(1, sizeof(*details));

	assert_non_null(details);
	details->service_name = malloc(length + 1);
	memset(details->service_name, 's', length);
	details->service_name[length] = '\0';
	image_set_details(image, details);
}

static void details_beyond_the_limit_are_refused(void **state _unused_)
{
	enum { IMAGES = 200, LENGTH = 64 * 1024 };
	struct image *images[IMAGES];
	size_t with_details = 0;
	uint64_t refused = processes->refused;

	for (size_t i = 0; i < IMAGES; i++) {
		images[i] = image_new(NULL, 7, 0, "comm");
		assert_non_null(images[i]);
	}
	for (size_t i = 0; i < IMAGES; i++) {
		set_service(images[i], LENGTH);
		with_details += image_details(images[i]) != NULL;
	}
	assert_true(processes->peak <= processes->limit);
	assert_in_range(with_details, 100, processes->limit / LENGTH);
	assert_int_equal(processes->refused - refused, IMAGES - with_details);
	for (size_t i = 0; i < IMAGES; i++)
		image_unref(images[i]);
}

static int set_segments(struct object *object, size_t count)
{
	struct object_segment *segments = calloc(count, sizeof(*segments));

	assert_non_null(segments);
	return object_set_segments(object, segments, count);
}

static void segments_are_charged_and_bounded(void **state _unused_)
{
	struct object *object = object_new(OBJECT_FILE, "/bin/x");
	size_t used = processes->used, limit = processes->limit;

	assert_non_null(object);
	assert_int_equal(set_segments(object, OBJECT_SEGMENTS_MAX + 1), -E2BIG);
	processes->limit = used;
	assert_int_equal(set_segments(object, OBJECT_SEGMENTS_MAX), -ENOBUFS);
	processes->limit = limit;
	assert_int_equal(object->segment_count, 0);
	assert_int_equal(set_segments(object, OBJECT_SEGMENTS_MAX), 0);
	assert_int_equal(processes->used - used,
			 OBJECT_SEGMENTS_MAX * sizeof(struct object_segment));
	object_unref(object);
}

/* A queue that is empty takes what the pool has room for, and always what is small. */
static void a_message_beyond_the_limit_is_refused(void **state _unused_)
{
	struct pool *pool = pool_get(POOL_QUEUES);
	struct queue_item item = { 0 }, *taken;
	uint64_t refused = pool->refused;
	struct queue *queue;

	assert_int_equal(queue_new(POOL_QUEUES, 4096, &queue), 0);
	assert_int_equal(queue_push(queue, &item, pool->limit + 1, QUEUE_NORMAL, 0), -EAGAIN);
	assert_true(pool->refused > refused);
	assert_int_equal(pool->used, 0);
	assert_int_equal(queue_push(queue, &item, pool->limit, QUEUE_NORMAL, 0), 0);
	assert_int_equal(queue_pop(queue, 0, &taken), 1);
	assert_ptr_equal(taken, &item);
	assert_true(pool_charge(POOL_QUEUES, pool->limit));
	assert_int_equal(queue_push(queue, &item, 100, QUEUE_NORMAL, 0), 0);
	assert_int_equal(queue_pop(queue, 0, &taken), 1);
	pool_uncharge(POOL_QUEUES, pool->limit);
	queue_free(queue, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, nothing_is_left)
		T(names_beyond_the_limit_are_refused), T(a_full_pool_refuses_names),
		T(an_objects_names_are_bounded_in_a_window),
		T(details_beyond_the_limit_are_refused), T(segments_are_charged_and_bounded),
		T(a_message_beyond_the_limit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
