// SPDX-License-Identifier: Apache-2.0
/* Lines of a program whose split DWARF is in a .dwo file, when that takes too long or the parser dies of it. */
#include "fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "helper/dwo_files.h"

static enum { FAULT_NONE, FAULT_DEATH, FAULT_LATE } fault;
static unsigned int asked;

static int faulty_ask(struct dwo_files *files, const uint64_t *addresses, uint32_t *count, struct lines_answer *ret_answer)
{
	struct parser_stats stats;

	asked++;
	parser_stats(files->parser, &stats);
	if (fault == FAULT_DEATH)
		kill(stats.helper.pid, SIGKILL);
	if (fault == FAULT_LATE)
		files->deadline = clock_monotonic();
	return dwo_files_ask(files, addresses, count, ret_answer);
}

#define dwo_files_ask faulty_ask
#include "resolve/lines.c"
#include "resolve/symbolizer.h"

enum { WINDOWS_MAX = 60 };

static struct hash_table files = { .index.pool = POOL_PROCESSES };

static const char program[] =
	"volatile int sink;\n"
	"static inline __attribute__((always_inline)) void within(int x) { sink = x * 3; }\n"
	"__attribute__((noinline, noipa)) void around(int x)\n"
	"{\n"
	"	within(x);\n"
	"}\n"
	"int main(int c, char **v) { (void)v; around(c); return 0; }\n";

/* As if it were sampled in this process, which needs not run it. */
struct bench {
	struct symbolizer *symbolizer;
	struct mapped_file *file;
	struct image *image;
	uint64_t offset;
};

static void open_bench(struct bench *bench)
{
	const struct symbolizer_options options = { .with_lines = true };
	const char *path = fixture_build("split", "-O1 -g -gsplit-dwarf -no-pie", program);
	const struct object *object;
	struct stat st;
	uint64_t address;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(symbolizer_new(&options, &bench->symbolizer), 0);
	bench->file = mapped_file_new(OBJECT_FILE, path);
	bench->file->major = major(st.st_dev);
	bench->file->minor = minor(st.st_dev);
	bench->file->inode = st.st_ino;
	bench->image = image_new(&files, (uint32_t)getpid(), 0, "split");
	symbolizer_see_image(bench->symbolizer, bench->image, NULL);
	symbolizer_see_file(bench->symbolizer, bench->image, bench->file);
	object = mapped_file_object(bench->file);
	address = strtoull(fixture_ask("nm split | awk '$3 == \"around\" { print $1 }'"), NULL, 16);
	bench->offset = address - object->segments[0].vaddr + object->segments[0].offset;
}

static void close_bench(struct bench *bench)
{
	image_unref(bench->image);
	mapped_file_unref(bench->file);
	symbolizer_free(bench->symbolizer);
}

/* In a window of its own. How many functions it has; 0: it is put off. */
static uint32_t look_at_it(struct bench *bench, struct symbolizer_stats *ret_stats)
{
	struct location *location = location_new(bench->file, bench->offset, FRAME_NATIVE, false);
	struct stack *stack = calloc(1, sizeof(*stack) + sizeof(stack->locations[0]));
	struct window_sample sample = { .image = bench->image, .stack = stack, .count = 1 };
	struct window window = {
		.profiles = calloc(1, sizeof(*window.profiles)), .counts = calloc(1, sizeof(*window.counts)),
		.profile_count = 1, .locations = &location, .location_count = 1, .samples = &sample, .sample_count = 1,
	};
	uint32_t count;

	stack->count = 1;
	stack->locations[0] = location;
	symbolizer_resolve(bench->symbolizer, &window);
	symbolizer_stats(bench->symbolizer, ret_stats);
	assert_string_equal(location->lines[location->line_count - 1].function->name, "around");
	count = location->is_put_off ? 0 : location->line_count;
	assert_true(!count || location->lines[0].line > 0);
	location_unref(location);
	free(window.profiles);
	free(window.counts);
	free(stack);
	return count;
}

/* As the first of windows that had time for it says; a host that is busy may have none in several. */
static uint32_t look_until_there(struct bench *bench, struct symbolizer_stats *ret_stats)
{
	uint32_t count = 0;

	for (int i = 0; !count && i < WINDOWS_MAX; i++)
		count = look_at_it(bench, ret_stats);
	return count;
}

static void inlined_functions_are_in_another_file(void **state)
{
	struct symbolizer_stats stats;
	struct bench bench;
	uint64_t dwos;

	(void)state;
	open_bench(&bench);
	assert_int_equal(look_until_there(&bench, &stats), 2);
	dwos = stats.lines.parts.dwos;
	assert_true(dwos);
	assert_int_equal(stats.lines.without_inlined, 0);
	/* what is nowhere is not looked for in each window, and the program is not said to have none */
	fixture_run("mkdir -p away && mv *.dwo away");
	assert_int_equal(look_until_there(&bench, &stats), 1);
	assert_int_equal(look_until_there(&bench, &stats), 1);
	assert_int_equal(stats.lines.parts.dwos, dwos);
	assert_int_equal(stats.lines.without_inlined, 2);
	fixture_run("mv away/*.dwo .");
	close_bench(&bench);
}

static void a_parser_that_dies_of_them_costs_inlined_functions(void **state)
{
	struct symbolizer_stats stats;
	struct bench bench;

	(void)state;
	open_bench(&bench);
	fault = FAULT_DEATH;
	asked = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(look_until_there(&bench, &stats), 1);
	assert_int_equal(asked, 1);
	assert_true(stats.lines.put_off);
	assert_int_equal(stats.lines.without, 0);
	assert_int_equal(stats.lines.without_inlined, 3);
	fault = FAULT_NONE;
	close_bench(&bench);
}

static void those_that_take_too_long_are_given_up(void **state)
{
	struct symbolizer_stats stats;
	struct bench bench;

	(void)state;
	open_bench(&bench);
	fault = FAULT_LATE;
	asked = 0;
	assert_int_equal(look_until_there(&bench, &stats), 1);
	assert_int_equal(asked, SPLIT_LATE_MAX);
	assert_true(stats.lines.put_off >= SPLIT_LATE_MAX);
	fault = FAULT_NONE;
	close_bench(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inlined_functions_are_in_another_file),
		cmocka_unit_test(a_parser_that_dies_of_them_costs_inlined_functions),
		cmocka_unit_test(those_that_take_too_long_are_given_up),
	};

	setenv("CCACHE_DISABLE", "1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
