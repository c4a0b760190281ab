// SPDX-License-Identifier: Apache-2.0
/* Lines of programs whose DWARF has parts in other files, when these are not theirs, take too long, or the parser dies of them. */
#include "fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "helper/dwo_files.h"

static enum { FAULT_NONE, FAULT_DEATH, FAULT_LATE, FAULT_PACKAGE, FAULT_INDEX } fault;
static unsigned int asked;
static bool has_package;

static void kill_parser(struct parser *parser)
{
	struct parser_stats stats;

	asked++;
	parser_stats(parser, &stats);
	kill(stats.helper.pid, SIGKILL);
}

static int faulty_ask(struct dwo_files *files, const uint64_t *addresses, uint32_t *count, struct lines_answer *ret_answer)
{
	if (fault == FAULT_DEATH)
		kill_parser(files->parser);
	if (fault == FAULT_LATE) {
		asked++;
		files->deadline = clock_monotonic();
	}
	return dwo_files_ask(files, addresses, count, ret_answer);
}

static int faulty_open(struct parser *parser, const struct object *object, int fd, bool with_dwarf,
		       const struct parser_part *alt, const struct parser_part *split, uint32_t limit_ms)
{
	has_package = split->fd >= 0;
	return parser_open_lines(parser, object, fd, with_dwarf, alt, split, limit_ms);
}

static int faulty_lines(struct parser *parser, const struct object *object, const uint64_t *addresses, uint32_t count,
			uint32_t limit_ms, struct lines_answer *ret_answer)
{
	if (fault == FAULT_PACKAGE && has_package)
		kill_parser(parser);
	return parser_lines(parser, object, addresses, count, limit_ms, ret_answer);
}

static int faulty_load(struct parser *parser, const struct object *object, int fd, uint64_t size, uint32_t limit_ms)
{
	if (fault == FAULT_INDEX)
		kill_parser(parser);
	return parser_load_index(parser, object, fd, size, limit_ms);
}

#define dwo_files_ask faulty_ask
#define parser_open_lines faulty_open
#define parser_lines faulty_lines
#define parser_load_index faulty_load
#include "resolve/lines.c"
#include "resolve/object_cache.h"
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

/* @name, whose functions are where @whole says. */
static void open_file(struct bench *bench, const char *name, const char *whole)
{
	const char *path = fixture_path(name);
	const struct object *object;
	struct stat st;
	uint64_t address;

	assert_int_equal(stat(path, &st), 0);
	bench->file = mapped_file_new(OBJECT_FILE, path);
	bench->file->major = major(st.st_dev);
	bench->file->minor = minor(st.st_dev);
	bench->file->inode = st.st_ino;
	bench->image = image_new(&files, (uint32_t)getpid(), 0, name);
	symbolizer_see_image(bench->symbolizer, bench->image, NULL);
	symbolizer_see_file(bench->symbolizer, bench->image, bench->file);
	object = mapped_file_object(bench->file);
	address = strtoull(fixture_ask("nm %s | awk '$3 == \"around\" { print $1 }'", whole), NULL, 16);
	bench->offset = address - object->segments[0].vaddr + object->segments[0].offset;
}

static void open_bench_with(struct bench *bench, const struct symbolizer_options *options, const char *name, const char *whole)
{
	assert_int_equal(symbolizer_new(options, &bench->symbolizer), 0);
	open_file(bench, name, whole);
}

static void open_bench(struct bench *bench)
{
	const struct symbolizer_options options = { .with_lines = true };

	fixture_build("split", "-O1 -g -gsplit-dwarf -no-pie", program);
	open_bench_with(bench, &options, "split", "split");
}

static void close_file(struct bench *bench)
{
	image_unref(bench->image);
	mapped_file_unref(bench->file);
}

static void close_bench(struct bench *bench)
{
	close_file(bench);
	symbolizer_free(bench->symbolizer);
}

static const struct entry *entry_of(const struct bench *bench)
{
	return mapped_file_object(bench->file)->symbols;
}

/* In a window of its own. How many functions it has; 0: it is put off, or has no lines. */
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
	count = location->is_put_off || !location->lines[0].line ? 0 : location->line_count;
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

	for (int i = 0; !count && i < WINDOWS_MAX; i++) {
		/* a parser that died is not started again at once */
		usleep(i ? 50000 : 0);
		count = look_at_it(bench, ret_stats);
	}
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
	unsigned int first;

	(void)state;
	open_bench(&bench);
	fault = FAULT_DEATH;
	asked = 0;
	assert_int_equal(look_until_there(&bench, &stats), 1);
	/* one that is dead before it is asked has not died of them: more than once on a host that is busy */
	first = asked;
	assert_true(first);
	for (int i = 0; i < 2; i++)
		assert_int_equal(look_until_there(&bench, &stats), 1);
	assert_int_equal(asked, first);
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

/* Two programs with one debug file, of which the first has a package of its DWARF. */
static void open_pair(struct bench *with, struct bench *without, bool is_with_first)
{
	const struct symbolizer_options options = { .with_lines = true };
	struct bench *first = is_with_first ? with : without, *second = is_with_first ? without : with;

	fixture_build("both", "-O1 -g -gdwarf-4 -gsplit-dwarf -no-pie -Wl,--build-id=sha1", program);
	fixture_run("dwp -e both -o with.dwp && rm -f both*.dwo && objcopy --only-keep-debug both both.debug");
	fixture_run("for f in with without; do cp both $f; strip $f; objcopy --add-gnu-debuglink=both.debug $f; done");
	open_bench_with(first, &options, is_with_first ? "with" : "without", "both");
	second->symbolizer = first->symbolizer;
	open_file(second, is_with_first ? "without" : "with", "both");
}

static void close_pair(struct bench *with, struct bench *without)
{
	close_file(without);
	close_bench(with);
}

static void what_a_program_leads_to_is_its_own(void **state)
{
	struct symbolizer_stats stats;
	struct bench with, without;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_pair(&with, &without, i);
		assert_int_equal(look_until_there(i ? &with : &without, &stats), i ? 2 : 1);
		assert_int_equal(look_until_there(i ? &without : &with, &stats), i ? 1 : 2);
		assert_ptr_equal(entry_of(&with)->debug, entry_of(&without)->debug);
		assert_int_equal(stats.lines.parts.packages, 1);
		assert_int_equal(stats.lines.without, 0);
		close_pair(&with, &without);
	}
}

static void a_package_is_blamed_for_itself(void **state)
{
	struct symbolizer_stats stats;
	struct bench with, without;

	(void)state;
	open_pair(&with, &without, true);
	assert_int_equal(look_until_there(&with, &stats), 2);
	fault = FAULT_PACKAGE;
	asked = 0;
	assert_int_equal(look_until_there(&with, &stats), 1);
	assert_true(asked);
	assert_int_equal(look_until_there(&without, &stats), 1);
	assert_int_equal(stats.lines.without, 0);
	fault = FAULT_NONE;
	close_pair(&with, &without);
}

/* By then others may write to it, or its path leads elsewhere. */
static void a_part_that_was_closed_is_judged_anew(void **state)
{
	struct symbolizer_stats stats;
	struct bench with, without;
	struct entry *package;

	(void)state;
	open_pair(&with, &without, true);
	assert_int_equal(look_until_there(&with, &stats), 2);
	package = entry_of(&with)->debug_dwarf.package->symbols;
	close(steal_fd(&package->fd));
	fixture_run("chmod g+w with.dwp");
	assert_int_equal(look_until_there(&with, &stats), 1);
	assert_true(stats.lines.parts.refused);
	close_pair(&with, &without);
}

/* Whoever asks for one that is open already may be followed by who still uses its descriptor. */
static void a_file_that_is_open_stays_open(void **state)
{
	struct symbolizer_stats stats;
	struct bench with, without;
	int fd;

	(void)state;
	open_pair(&with, &without, true);
	look_at_it(&with, &stats);
	fd = ((const struct entry *)entry_of(&with)->debug->symbols)->fd;
	assert_true(fd >= 0);
	look_at_it(&without, &stats);
	assert_int_equal(((const struct entry *)entry_of(&without)->debug->symbols)->fd, fd);
	close_pair(&with, &without);
}

/* Of a debug file that says that a part of it is in itself. */
static void no_file_is_a_part_of_itself(void **state)
{
	struct symbolizer_options options = { .with_lines = true };
	struct symbolizer_stats stats;
	char root[PATH_MAX], id[64];
	const struct dwarf_known *known;
	const struct object *debug;
	struct bench bench;

	(void)state;
	snprintf(root, sizeof(root), "%s", fixture_path("root"));
	options.sysroot = root;
	fixture_build("circle", "-O1 -g -no-pie -Wl,--build-id=sha1", program);
	snprintf(id, sizeof(id), "%s", fixture_ask("readelf -n circle | sed -n 's/.*Build ID: //p'"));
	fixture_run("mkdir -p root/usr/lib/debug/.build-id/%.2s && "
		    "{ printf 'circle\\0'; objcopy -O binary --only-section=.note.gnu.build-id circle /dev/stdout | tail -c 20; } >link && "
		    "objcopy --only-keep-debug --add-section .gnu_debugaltlink=link circle "
		    "root/usr/lib/debug/.build-id/%.2s/%s.debug && cp circle bare && strip bare", id, id, id + 2);
	open_bench_with(&bench, &options, "bare", "circle");
	for (int i = 0; i < 3; i++)
		look_at_it(&bench, &stats);
	debug = entry_of(&bench)->debug;
	assert_non_null(debug);
	assert_int_equal(stats.lines.without, 1);
	assert_int_equal(stats.lines.parts.moved, 0);
	/* it may come to be there */
	known = &entry_of(&bench)->debug_dwarf;
	assert_true(known->seek_lines_at && known->seek_lines_at == known->seek_moved_at);
	/* by the cache, and the program */
	assert_int_equal(debug->refs, 2);
	close_bench(&bench);
}

/* What packages install in root's directory is found by its name alone there, whose word that ever is; nothing beside it. */
static void what_dwz_moved_is_in_roots_directory(void **state)
{
	static const char *const names[] = { "/usr/lib/debug/.dwz/x/part", "/usr/lib/debug/.dwz/x/../../part" };
	struct symbolizer_options options = { .with_lines = true };
	struct symbolizer_stats stats;
	char root[PATH_MAX];
	struct bench bench;

	(void)state;
	snprintf(root, sizeof(root), "%s", fixture_path("root"));
	options.sysroot = root;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		fixture_build("moved", "-O1 -g -no-pie -Wl,--build-id=sha1", program);
		/* what the owner of no program could put there */
		fixture_run("rm -rf root && mkdir -p root/usr/lib/debug/.dwz/x && cp moved other && "
			    "dwz -m root%s -M %s moved other && chmod g+w root%s", names[i], names[i], names[i]);
		open_bench_with(&bench, &options, "moved", "moved");
		assert_int_equal(look_until_there(&bench, &stats), i ? 0 : 2);
		assert_int_equal(stats.lines.parts.moved, i ? 0 : 1);
		close_bench(&bench);
	}
}

/* A file that is one program's debug file may be another one that runs. */
static void a_program_is_no_part(void **state)
{
	struct symbolizer_stats stats;
	const struct symbolizer_options options = { .with_lines = true };
	struct bench bench, other;

	(void)state;
	fixture_build("whole", "-O1 -g -no-pie -Wl,--build-id=sha1", program);
	fixture_run("cp whole bare && strip bare && objcopy --add-gnu-debuglink=whole bare");
	open_bench_with(&bench, &options, "bare", "whole");
	assert_int_equal(look_until_there(&bench, &stats), 2);
	other.symbolizer = bench.symbolizer;
	open_file(&other, "whole", "whole");
	assert_int_equal(mapped_file_object(other.file)->inode, entry_of(&bench)->debug->inode);
	assert_ptr_not_equal(entry_of(&other), entry_of(&bench)->debug->symbols);
	assert_int_equal(look_until_there(&other, &stats), 2);
	close_file(&other);
	close_bench(&bench);
}

static void an_index_is_blamed_for_itself(void **state)
{
	const struct symbolizer_options options = {
		.with_lines = true, .indices = { .directory = fixture_path("indices"), .limit_bytes = 1 << 20 },
	};
	struct symbolizer_stats stats;
	struct bench bench;
	int windows = 0;

	(void)state;
	fixture_build("indexed", "-O1 -g -no-pie", program);
	fixture_run("objcopy -R .debug_aranges indexed");
	open_bench_with(&bench, &options, "indexed", "indexed");
	fault = FAULT_INDEX;
	asked = 0;
	/* it is removed, and made anew */
	while (asked < PARSER_DEATHS_MAX && windows++ < WINDOWS_MAX) {
		look_at_it(&bench, &stats);
		usleep(10000);
	}
	assert_int_equal(asked, PARSER_DEATHS_MAX);
	fault = FAULT_NONE;
	assert_int_equal(look_until_there(&bench, &stats), 2);
	assert_int_equal(stats.lines.without, 0);
	close_bench(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inlined_functions_are_in_another_file),
		cmocka_unit_test(a_parser_that_dies_of_them_costs_inlined_functions),
		cmocka_unit_test(those_that_take_too_long_are_given_up),
		cmocka_unit_test(what_a_program_leads_to_is_its_own),
		cmocka_unit_test(a_package_is_blamed_for_itself),
		cmocka_unit_test(a_part_that_was_closed_is_judged_anew),
		cmocka_unit_test(a_file_that_is_open_stays_open),
		cmocka_unit_test(no_file_is_a_part_of_itself),
		cmocka_unit_test(what_dwz_moved_is_in_roots_directory),
		cmocka_unit_test(a_program_is_no_part),
		cmocka_unit_test(an_index_is_blamed_for_itself),
	};

	setenv("CCACHE_DISABLE", "1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
