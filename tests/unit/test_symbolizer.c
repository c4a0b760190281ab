// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/pool.h"
#include "helper/parser_ask.h"
#include "process/details.h"
#include "profile/location_cache.h"
#include "resolve/object_cache.h"
#include "resolve/symbolizer.h"
#include "starve.h"
#include "symbol/vdso.h"
#include "unwind/functions.h"

static struct hash_table files = { .index.pool = POOL_PROCESSES };

static const char program[] =
	"#include <unistd.h>\n"
	"__attribute__((noinline, noipa)) int own_work(int x) { return x * 3; }\n"
	"int main(int c, char **v) { (void)v; write(1, \"x\", 1); for (;;) pause(); "
	"return own_work(c); }\n";

static struct symbolizer *new_symbolizer(void)
{
	const struct symbolizer_options options = { .with_kernel_addresses = true };
	struct symbolizer *symbolizer;

	assert_int_equal(symbolizer_new(&options, &symbolizer), 0);
	return symbolizer;
}

/* Starts a program and returns when its main() runs. */
static pid_t start(const char *path, char *const environment[])
{
	char *const arguments[] = { strdup(path), strdup("--secret"), NULL };
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(ready[1], 1);
		close(ready[0]);
		close(ready[1]);
		execve(path, arguments, environment ? environment : environ);
		_exit(127);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	free(arguments[0]);
	free(arguments[1]);
	return pid;
}

static void stop(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct mapped_file *file_of(const char *path)
{
	struct mapped_file *file = mapped_file_new(OBJECT_FILE, path);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	file->major = major(st.st_dev);
	file->minor = minor(st.st_dev);
	file->inode = st.st_ino;
	return file;
}

/* Where in the file its function is, as nm and readelf see it. */
static uint64_t offset_of(const char *name, const char *function)
{
	return strtoull(fixture_ask("python3 -c 'import subprocess, sys\n"
				    "name, function = sys.argv[1:]\n"
				    "run = lambda *a: subprocess.check_output(a, text=True)\n"
				    "value = [int(l.split()[0], 16)"
				    " for l in run(\"nm\", name).splitlines()"
				    " if l.split()[-1] == function][0]\n"
				    "for l in run(\"readelf\", \"-lW\", name).splitlines():\n"
				    "    w = l.split()\n"
				    "    if w and w[0] == \"LOAD\" and int(w[2], 16) <= value < "
				    "int(w[2], 16) + int(w[4], 16):\n"
				    "        print(hex(value - int(w[2], 16) + int(w[1], 16)))'"
				    " %s %s",
				    name, function), NULL, 16);
}

/* Of the entry of the PLT that calls it, as objdump sees it; where both addresses are the same. */
static uint64_t offset_of_plt(const char *name, const char *function)
{
	return strtoull(fixture_ask("objdump -d %s | awk '$2 == \"<%s@plt>:\" { print $1; exit }'", name, function),
			NULL, 16);
}

/* A window of one sample per Location. */
static struct window *new_window(struct image *image, struct location **locations, size_t count)
{
	struct window *window = calloc(1, sizeof(*window));

	window->profiles = calloc(1, sizeof(*window->profiles));
	window->counts = calloc(1, sizeof(*window->counts));
	window->profile_count = 1;
	window->locations = calloc(count, sizeof(*window->locations));
	window->samples = calloc(count, sizeof(*window->samples));
	window->location_count = count;
	window->sample_count = count;
	for (size_t i = 0; i < count; i++) {
		struct stack *stack = calloc(1, sizeof(*stack) + sizeof(stack->locations[0]));

		stack->count = 1;
		stack->locations[0] = locations[i];
		window->locations[i] = locations[i];
		window->samples[i] = (struct window_sample){
			.image = image,
			.stack = stack,
			.count = 3,
		};
	}
	return window;
}

static void free_window(struct window *window)
{
	for (size_t i = 0; i < window->sample_count; i++)
		free(window->samples[i].stack);
	free(window->samples);
	free(window->locations);
	free(window->counts);
	free(window->profiles);
	free(window);
}

static const char *name_of(const struct location *location)
{
	assert_true(location->is_resolved);
	return location->line_count ? location->lines[0].function->name : "";
}

/* The name at @offset + @plus; *ret_location, if wanted, is the caller's. */
static void expect(struct symbolizer *symbolizer, struct image *image, struct mapped_file *file,
		   uint64_t offset, const char *name, struct location **ret_location)
{
	struct location *location = location_new(file, offset, FRAME_NATIVE, false);
	struct window *window = new_window(image, &location, 1);

	symbolizer_resolve(symbolizer, window);
	assert_string_equal(name_of(location), name);
	assert_int_equal(window->counts[0].named, name[0] ? 3 : 0);
	free_window(window);
	if (ret_location)
		*ret_location = location;
	else
		location_unref(location);
}

/* In as many windows as that takes. */
static struct location *name_at_last(struct symbolizer *symbolizer, struct image *image, struct mapped_file *file, uint64_t offset)
{
	for (unsigned int windows = 0; windows < 100; windows++) {
		struct location *location = location_new(file, offset, FRAME_NATIVE, false);
		struct window *window = new_window(image, &location, 1);

		symbolizer_resolve(symbolizer, window);
		free_window(window);
		if (!location->is_put_off)
			return location;
		location_unref(location);
	}
	fail_msg("put off again and again");
	return NULL;
}

/* Each that was looked up has one outcome: @count frames have this one. */
static void expect_source(struct symbolizer *symbolizer, enum name_source source, uint64_t count)
{
	struct symbolizer_stats stats;
	uint64_t sum = 0;

	symbolizer_stats(symbolizer, &stats);
	assert_int_equal(stats.sources[source], count);
	for (int i = 0; i < SOURCES; i++)
		sum += stats.sources[i];
	assert_int_equal(sum, stats.lookups);
	assert_int_equal(stats.sources[SOURCE_NONE] + stats.sources[SOURCE_RANGE], sum - stats.named);
}

static void a_running_program_has_names(void **state)
{
	const char *path = fixture_build("runner", "", program);
	struct symbolizer *symbolizer = new_symbolizer();
	struct mapped_file *file = file_of(path);
	pid_t pid = start(path, NULL);
	struct image *image = image_new(&files, (uint32_t)pid, 0, "runner");
	struct location *location;

	(void)state;
	symbolizer_see_image(symbolizer, image, NULL);
	symbolizer_see_file(symbolizer, image, file);
	stop(pid);
	assert_string_equal(image_details(image)->executable_path, path);
	assert_string_equal(image_details(image)->executable_name, "runner");
	assert_null(image_details(image)->command_line);
	expect(symbolizer, image, file, offset_of("runner", "own_work") + 4, "own_work",
	       &location);
	assert_int_equal(location->object->state, OBJECT_READY);
	assert_int_equal(strlen(location->object->htlhash), 32);
	assert_string_equal(location->object->path, path);
	location_unref(location);
	expect(symbolizer, image, file, 1ULL << 40, "", NULL);
	expect(symbolizer, image, NULL, 0x1234, "", NULL);
	expect_source(symbolizer, SOURCE_SYMTAB, 1);
	expect_source(symbolizer, SOURCE_NONE, 2);
	expect(symbolizer, image, file, offset_of_plt("runner", "write"), "write@plt", NULL);
	expect_source(symbolizer, SOURCE_PLT, 1);
	image_unref(image);
	mapped_file_unref(file);
	symbolizer_free(symbolizer);
}

/* Thread B looks late: the process runs another program by then. */
static void a_program_has_not_the_name_of_the_next(void **state)
{
	char *older = strdup(fixture_build("before", "", program));
	const char *path = fixture_build("runner", "", program);
	struct symbolizer *symbolizer = new_symbolizer();
	struct mapped_file *file = file_of(path), *before_file = file_of(older);
	pid_t pid = start(path, NULL);
	struct image *image = image_new(&files, (uint32_t)pid, 2, "runner");
	struct image *before = image_new(&files, (uint32_t)pid, 1, "before");
	struct image *unseen = image_new(&files, (uint32_t)pid, 0, "unseen");

	(void)state;
	before->is_succeeded = unseen->is_succeeded = true;
	symbolizer_see_image(symbolizer, unseen, NULL);
	symbolizer_see_image(symbolizer, before, NULL);
	symbolizer_see_image(symbolizer, image, NULL);
	symbolizer_see_file(symbolizer, before, before_file);
	stop(pid);
	expect(symbolizer, image, file, 1ULL << 40, "", NULL);
	assert_string_equal(image_details(image)->executable_path, path);
	assert_string_equal(image_details(before)->executable_path, older);
	free(older);
	assert_null(image_details(unseen)->executable_path);
	/* what is the process' in all of them */
	assert_int_equal(image_details(before)->user, image_details(image)->user);
	assert_int_not_equal(image_details(before)->user, DETAILS_NO_USER);
	image_unref(unseen);
	image_unref(before);
	image_unref(image);
	mapped_file_unref(before_file);
	mapped_file_unref(file);
	symbolizer_free(symbolizer);
}

static void a_stripped_program_has_functions_without_names(void **state)
{
	const char *path = fixture_build("bare", "", program);
	uint64_t offset = offset_of("bare", "own_work");
	uint64_t start_of = strtoull(fixture_ask("nm bare | awk '$3 == \"own_work\" { print $1 }'"),
				     NULL, 16);
	struct location *location, *outside;
	struct symbolizer *symbolizer;
	struct mapped_file *file;
	struct window *window;
	struct image *image;
	pid_t pid;

	(void)state;
	fixture_ask("strip bare && echo x");
	symbolizer = new_symbolizer();
	file = file_of(path);
	pid = start(path, NULL);
	image = image_new(&files, (uint32_t)pid, 0, "bare");
	symbolizer_see_image(symbolizer, image, NULL);
	symbolizer_see_file(symbolizer, image, file);
	stop(pid);
	location = location_new(file, offset + 4, FRAME_NATIVE, false);
	outside = location_new(file, 1ULL << 40, FRAME_NATIVE, false);
	window = new_window(image, (struct location *[]){ location, outside }, 2);
	symbolizer_resolve(symbolizer, window);
	assert_int_equal(location->line_count, 0);
	assert_true(location->has_function);
	assert_int_equal(location->function_start, start_of);
	assert_false(outside->has_function);
	assert_int_equal(window->counts[0].named, 0);
	assert_int_equal(window->counts[0].by_range, 3);
	expect_source(symbolizer, SOURCE_RANGE, 1);
	expect_source(symbolizer, SOURCE_NONE, 1);
	free_window(window);
	location_unref(outside);
	location_unref(location);
	image_unref(image);
	mapped_file_unref(file);
	symbolizer_free(symbolizer);
}

/*
 * A program with its debug file below the host's root, which here is the fixture's directory: first another
 * program's by its name, then its own.
 */
static void a_debug_file_has_the_names(void **state)
{
	const char *const directory = "usr/lib/debug/.build-id", *path;
	struct symbolizer_options options = { .with_kernel_addresses = true };
	char id[64], root[PATH_MAX];

	(void)state;
	snprintf(root, sizeof(root), "%s", fixture_path("root"));
	options.sysroot = root;
	path = fixture_build("packaged", "-Wl,--build-id=sha1", program);
	snprintf(id, sizeof(id), "%s", fixture_ask("readelf -n packaged | sed -n 's/.*Build ID: //p'"));
	assert_int_equal(strlen(id), 40);
	fixture_run("mkdir -p root/%s/%.2s && objcopy --only-keep-debug packaged packaged.debug", directory, id);
	for (int is_own = 0; is_own < 2; is_own++) {
		uint64_t offset = offset_of("packaged", "own_work");
		struct symbolizer *symbolizer;
		struct symbolizer_stats stats;
		struct mapped_file *file;
		struct image *image;
		pid_t pid;

		/* a file of its own each time, so that nothing is known of it */
		fixture_run("cp packaged bare%d && strip bare%d", is_own, is_own);
		if (is_own)
			fixture_run("cp packaged.debug root/%s/%.2s/%s.debug", directory, id, id + 2);
		else
			fixture_run("cp runner root/%s/%.2s/%s.debug", directory, id, id + 2);
		path = fixture_path(is_own ? "bare1" : "bare0");
		assert_int_equal(symbolizer_new(&options, &symbolizer), 0);
		file = file_of(path);
		pid = start(path, NULL);
		image = image_new(&files, (uint32_t)pid, 0, "bare");
		symbolizer_see_image(symbolizer, image, NULL);
		symbolizer_see_file(symbolizer, image, file);
		stop(pid);
		expect(symbolizer, image, file, offset + 4, is_own ? "own_work" : "", NULL);
		symbolizer_stats(symbolizer, &stats);
		expect_source(symbolizer, SOURCE_DEBUG_FILE, is_own);
		assert_int_equal(stats.debug_files, 1);
		assert_int_equal(stats.objects, 1);
		image_unref(image);
		mapped_file_unref(file);
		symbolizer_free(symbolizer);
	}
}

/* Who opens what lies beside @path's user's programs does not come back from there. */
static void hang_beside(struct symbolizer *symbolizer, const char *sysroot, const char *path)
{
	struct opener *opener = symbolizer_opener(symbolizer);
	struct mount_namespace_table *spaces;
	struct opener_program whose;
	struct mount_namespace *host;
	struct opener_stats stats;
	struct stat st;
	int fd;

	assert_int_equal(mount_namespace_table_new(sysroot, &spaces), 0);
	host = mount_namespace_table_guess(spaces);
	assert_int_equal(stat(path, &st), 0);
	whose = (struct opener_program){ .dev = st.st_dev, .user = st.st_uid };
	opener_stats(opener, &stats);
	assert_true(stats.helper.pid > 0);
	assert_int_equal(kill(stats.helper.pid, SIGSTOP), 0);
	assert_int_equal(opener_open_path(opener, spaces, host, "/x", &whose, &fd, &st), -EHOSTDOWN);
	mount_namespace_unref(host);
	mount_namespace_table_free(spaces);
}

/* A new copy of the stripped program "linked", and what its function is called now. */
static void expect_linked_where(const char *copy, const char *sysroot, uint64_t offset, bool hangs_beside,
				bool is_named)
{
	const struct symbolizer_options options = { .with_kernel_addresses = true, .sysroot = sysroot };
	struct symbolizer *symbolizer;
	struct location *location;
	struct mapped_file *file;
	struct image *image;
	uint64_t again;
	pid_t pid;

	fixture_run("cp linked %s", copy);
	file = file_of(fixture_path(copy));
	pid = start(fixture_path(copy), NULL);
	assert_int_equal(symbolizer_new(&options, &symbolizer), 0);
	image = image_new(&files, (uint32_t)pid, 0, "linked");
	symbolizer_see_image(symbolizer, image, NULL);
	symbolizer_see_file(symbolizer, image, file);
	stop(pid);
	if (hangs_beside)
		hang_beside(symbolizer, sysroot, fixture_path(copy));
	expect(symbolizer, image, file, offset, is_named ? "own_work" : "", &location);
	expect_source(symbolizer, SOURCE_DEBUG_FILE, is_named);
	/* for the time being that is all that there is, and it is looked for again */
	assert_false(location->is_put_off);
	again = ((const struct entry *)location->object->symbols)->seek_debug_at;
	assert_true(hangs_beside && !is_named ? again > clock_monotonic() && again != UINT64_MAX : again == UINT64_MAX);
	location_unref(location);
	image_unref(image);
	mapped_file_unref(file);
	symbolizer_free(symbolizer);
}

static void expect_linked(const char *copy, const char *sysroot, uint64_t offset, bool is_named)
{
	expect_linked_where(copy, sysroot, offset, false, is_named);
}

/*
 * The file that a stripped program names: beside it, in .debug, below /usr/lib/debug. It has its build-id, or, without one,
 * the CRC that the link says; and where others may write its owner is the program's, or root.
 */
static void a_debug_link_leads_to_the_names(void **state)
{
	char root[PATH_MAX], directory[PATH_MAX];

	(void)state;
	for (int with_id = 0; with_id < 2; with_id++) {
		const char *kind = with_id ? "-Wl,--build-id=sha1" : "-Wl,--build-id=none";
		uint64_t offset;

		fixture_build("whole_linked", kind, program);
		offset = offset_of("whole_linked", "own_work") + 4;
		fixture_run("objcopy --only-keep-debug whole_linked linked.debug && strip -o linked whole_linked && "
			    "objcopy --add-gnu-debuglink=linked.debug linked && rm -rf .debug");
		expect_linked("linked_beside", "", offset, true);
		/* another build's, or one that has changed since */
		fixture_run("mv linked.debug good.debug && cp runner linked.debug");
		expect_linked("linked_to_another", "", offset, false);
		fixture_run("cp good.debug linked.debug && printf x >> linked.debug");
		expect_linked("linked_to_changed", "", offset, with_id);
		fixture_run("rm linked.debug && mkdir .debug && cp good.debug .debug/linked.debug");
		expect_linked("linked_below", "", offset, true);
		if (!getuid()) {
			fixture_run("chown 12345 .debug/linked.debug");
			expect_linked("linked_of_others", "", offset, false);
			fixture_run("chown 0 .debug/linked.debug");
		}
		/* below another root the program is not: what lies beside that path is not beside the program */
		snprintf(root, sizeof(root), "%s", fixture_path("elsewhere"));
		snprintf(directory, sizeof(directory), "%s", fixture_directory());
		fixture_run("rm -rf elsewhere && mkdir -p elsewhere%s elsewhere/usr/lib/debug%s && "
			    "cp good.debug elsewhere%s/linked.debug", directory, directory, directory);
		expect_linked("linked_elsewhere", root, offset, false);
		fixture_run("mv elsewhere%s/linked.debug elsewhere/usr/lib/debug%s/linked.debug", directory, directory);
		expect_linked("linked_packaged", root, offset, true);
		/* what a user has beside his programs keeps nobody from root's files */
		expect_linked_where("linked_hung_packaged", root, offset, true, true);
		fixture_run("cp good.debug linked.debug");
		expect_linked_where("linked_hung", "", offset, true, false);
		expect_linked("linked_again", "", offset, true);
	}
	fixture_run("rm -rf .debug linked.debug elsewhere");
}

/* Without a build-id, and longer than is read at a time; each window goes on where the last one was, unless the file changes. */
static void a_long_debug_file_has_the_names_later(void **state)
{
	/* who waits for names asks for what the parser has no CPU for again */
	const struct symbolizer_options options = { .names_ms = NAMES_WINDOW_MS };
	struct symbolizer *symbolizer;
	struct location *location;
	struct mapped_file *file;
	struct image *image;
	uint64_t offset;
	pid_t pid;

	(void)state;
	assert_int_equal(symbolizer_new(&options, &symbolizer), 0);
	fixture_build("whole_linked", "-Wl,--build-id=none", program);
	offset = offset_of("whole_linked", "own_work") + 4;
	fixture_run("objcopy --only-keep-debug whole_linked long.debug && truncate -s 250M long.debug && "
		    "strip -o linked_long whole_linked && objcopy --add-gnu-debuglink=long.debug linked_long");
	file = file_of(fixture_path("linked_long"));
	pid = start(fixture_path("linked_long"), NULL);
	image = image_new(&files, (uint32_t)pid, 0, "linked");
	symbolizer_see_image(symbolizer, image, NULL);
	symbolizer_see_file(symbolizer, image, file);
	stop(pid);
	expect(symbolizer, image, file, offset, "", &location);
	assert_true(location->is_put_off);
	/* what was read of it is worth nothing any more */
	location_unref(location);
	fixture_run("touch long.debug");
	expect(symbolizer, image, file, offset, "", &location);
	assert_true(location->is_put_off);
	location_unref(location);
	location = name_at_last(symbolizer, image, file, offset);
	assert_string_equal(name_of(location), "own_work");
	location_unref(location);
	image_unref(image);
	mapped_file_unref(file);
	symbolizer_free(symbolizer);
	fixture_run("rm long.debug");
}

/* As in Debian's packages: where the file is that is called so has been looked at, and nowhere else is one. */
static void a_debug_link_by_the_build_id_is_no_other_place(void **state)
{
	uint64_t offset;
	char id[64];

	(void)state;
	fixture_build("whole_linked", "-Wl,--build-id=sha1", program);
	offset = offset_of("whole_linked", "own_work") + 4;
	snprintf(id, sizeof(id), "%s", fixture_ask("readelf -n whole_linked | sed -n 's/.*Build ID: //p'"));
	for (int is_its = 0; is_its < 2; is_its++) {
		const char *name = is_its ? id + 2 : "other";

		fixture_run("objcopy --only-keep-debug whole_linked %s.debug && strip -o linked whole_linked && "
			    "objcopy --add-gnu-debuglink=%s.debug linked", name, name);
		expect_linked(is_its ? "linked_by_id" : "linked_by_name", "", offset, !is_its);
		fixture_run("rm %s.debug", name);
	}
}

/* Of a stripped program with a debug file, or of one that has all of it, where that is asked for. */
static void lines_and_inlined_functions_are_a_choice(void **state)
{
	static const char source[] =
		"#include <unistd.h>\n"
		"volatile int sink;\n"
		"static inline __attribute__((always_inline)) void within(int x) { sink = x * 3; }\n"
		"__attribute__((noinline, noipa)) void around(int x)\n"
		"{\n"
		"	within(x);\n"
		"}\n"
		"int main(int c, char **v) { (void)v; write(1, \"x\", 1); for (;;) { pause(); around(c); } }\n";
	struct symbolizer_options options = { .with_kernel_addresses = true };

	(void)state;
	for (int with = 0; with < 2; with++) {
		const char *path = fixture_build(with ? "lined" : "unlined", "-g -O1", source);
		uint64_t offset = offset_of(with ? "lined" : "unlined", "around");
		struct symbolizer *symbolizer;
		struct symbolizer_stats stats;
		struct mapped_file *file;
		struct location *location;
		struct image *image;
		pid_t pid;

		options.with_lines = with;
		assert_int_equal(symbolizer_new(&options, &symbolizer), 0);
		file = file_of(path);
		pid = start(path, NULL);
		image = image_new(&files, (uint32_t)pid, 0, "lined");
		symbolizer_see_image(symbolizer, image, NULL);
		symbolizer_see_file(symbolizer, image, file);
		/* its first instruction computes x * 3 */
		expect(symbolizer, image, file, offset, with ? "within" : "around", &location);
		symbolizer_stats(symbolizer, &stats);
		assert_int_equal(location->line_count, 1 + with);
		assert_int_equal(stats.lines.with_lines, with);
		assert_int_equal(stats.lines.with_inlined, with);
		if (with) {
			assert_string_equal(location->lines[1].function->name, "around");
			assert_int_equal(location->lines[0].line, 3);
			assert_int_equal(location->lines[1].line, 6);
			assert_int_equal(location->lines[1].function->start_line, 4);
			assert_non_null(strstr(location->lines[1].function->filename, ".c"));
		} else {
			assert_null(location->lines[0].function->filename);
		}
		assert_false(location->is_put_off);
		location_unref(location);
		stop(pid);
		image_unref(image);
		mapped_file_unref(file);
		symbolizer_free(symbolizer);
	}
}

/* Its descriptor was not used for long. */
static void close_idle(struct symbolizer *symbolizer, struct entry *entry)
{
	entry->fd_used = 0;
	symbolizer_after_window(symbolizer);
	assert_int_equal(entry->fd, -1);
}

/* Of a program, and of a debug file, whose names are at hand: by its path, and when that is gone through its process. */
static void lines_are_read_from_a_file_that_was_closed(void **state)
{
	const struct symbolizer_options options = { .with_kernel_addresses = true, .with_lines = true };

	(void)state;
	fixture_build("whole_closed", "-g -Wl,--build-id=sha1", program);
	fixture_run("objcopy --only-keep-debug whole_closed closed.debug && strip -o closed1 whole_closed && "
		    "objcopy --add-gnu-debuglink=closed.debug closed1 && cp whole_closed closed0");
	for (int has_debug = 0; has_debug < 2; has_debug++) {
		const char *path = fixture_path(has_debug ? "closed1" : "closed0");
		struct mapped_file *file = file_of(path);
		pid_t pid = start(path, NULL);
		struct image *image = image_new(&files, (uint32_t)pid, 0, "closed");
		struct symbolizer *symbolizer;
		struct location *location;
		struct entry *entry;

		assert_int_equal(symbolizer_new(&options, &symbolizer), 0);
		symbolizer_see_image(symbolizer, image, NULL);
		symbolizer_see_file(symbolizer, image, file);
		for (int turn = 0; turn < 3; turn++) {
			expect(symbolizer, image, file, offset_of("whole_closed", "own_work") + 4, "own_work", &location);
			assert_int_equal(location->lines[0].line, 2);
			location_unref(location);
			entry = mapped_file_object(file)->symbols;
			if (has_debug)
				entry = entry->debug->symbols;
			assert_non_null(entry->symtab->names);
			close_idle(symbolizer, entry);
			if (turn == 1 && !has_debug)
				fixture_run("rm closed0");
		}
		stop(pid);
		image_unref(image);
		mapped_file_unref(file);
		symbolizer_free(symbolizer);
	}
}

/* One Location in a file, asked for by itself; when there is no time, and when there are no lines. */
static void lines_that_cannot_be_had_are_put_off_or_given_up(void **state)
{
	struct symbolizer *symbolizer = new_symbolizer();
	struct lines_stats stats = { 0 };
	size_t budget = NAMES_OBJECT_MAX_BYTES;
	struct dwarf_known known = { 0 };
	struct lines_source source = { .known = &known };
	struct location *location;
	struct names *names;
	struct stat st;

	(void)state;
	assert_int_equal(names_new(NULL, &names), 0);
	source.fd = open(fixture_build("lineless", "-g0", program), O_RDONLY | O_CLOEXEC);
	source.object = source.program = object_new(OBJECT_FILE, "lineless");
	assert_int_equal(fstat(source.fd, &st), 0);
	source.object->size = (uint64_t)st.st_size;
	location = location_new(NULL, 0x1000, FRAME_NATIVE, false);
	location->address = 0x1000;

	source.deadline = clock_monotonic();
	lines_resolve(symbolizer_parser(symbolizer), names, &source, &location, 1, &budget, &stats);
	assert_true(location->is_put_off);
	assert_int_equal(stats.put_off, 1);
	assert_int_equal(known.seek_lines_at, 0);

	atomic_store(&location->is_put_off, false);
	source.deadline = clock_monotonic() + 10 * NSEC_PER_SEC;
	lines_resolve(symbolizer_parser(symbolizer), names, &source, &location, 1, &budget, &stats);
	assert_false(location->is_put_off);
	assert_int_equal(stats.without, 1);
	assert_int_equal(known.seek_lines_at, UINT64_MAX);
	/* and not again */
	lines_resolve(symbolizer_parser(symbolizer), names, &source, &location, 1, &budget, &stats);
	assert_int_equal(stats.without, 1);
	location_unref(location);
	object_unref(source.object);
	close(source.fd);
	names_free(names);
	symbolizer_free(symbolizer);
}

/* Compressed sections of 160 MiB of which each fits, .debug_info and @other: the memory for both is in no window. */
static void is_given_up(const char *other)
{
	static const char source[] =
		"__asm__(\".section .debug_str,\\\"\\\",@progbits\\n.asciz \\\"named\\\"\\n\"\n"
		"\".section .debug_abbrev,\\\"\\\",@progbits\\n.uleb128 1, 0x11; .byte 1; .uleb128 0x11, 1, 0x12, 7, 0, 0\\n\"\n"
		"\".uleb128 2, 0x2e; .byte 0; .uleb128 0x11, 1, 0x12, 7, 3, 14, 0, 0, 0\\n\"\n"
		"\".section .debug_info,\\\"\\\",@progbits\\n.long 2f - 1f\\n1: .short 4; .long .debug_abbrev; .byte 8\\n\"\n"
		"\".uleb128 1; .quad main, 64; .uleb128 2; .quad main, 64; .long .debug_str; .uleb128 0\\n\"\n"
		"\"2: .zero 160 << 20\\n.section %s,\\\"\\\",@progbits\\n.zero 160 << 20\\n.text\");\n"
		"int main(void) { return 0; }\n";
	struct symbolizer *symbolizer = new_symbolizer();
	struct lines_stats stats = { 0 };
	size_t budget = NAMES_OBJECT_MAX_BYTES;
	struct dwarf_known known = { 0 };
	struct lines_source source_of = { .known = &known };
	struct location *location = location_new(NULL, 0x1000, FRAME_NATIVE, false);
	char text[sizeof(source) + 32];
	struct names *names;
	struct stat st;

	snprintf(text, sizeof(text), source, other);
	source_of.fd = open(fixture_build("large", "-g0 -no-pie -Wa,--compress-debug-sections=zstd "
					  "-Wl,--compress-debug-sections=zstd", text), O_RDONLY | O_CLOEXEC);
	assert_int_equal(names_new(NULL, &names), 0);
	source_of.object = source_of.program = object_new(OBJECT_FILE, "large");
	assert_int_equal(fstat(source_of.fd, &st), 0);
	assert_true(st.st_size < 1 << 20);
	source_of.object->size = (uint64_t)st.st_size;
	source_of.deadline = clock_monotonic() + 60 * NSEC_PER_SEC;
	location->address = strtoull(fixture_ask("nm large | grep \" T main\""), NULL, 16);
	lines_resolve(symbolizer_parser(symbolizer), names, &source_of, &location, 1, &budget, &stats);
	assert_false(location->is_put_off);
	assert_int_equal(stats.with_lines, 0);
	assert_int_equal(stats.without, 1);
	assert_int_equal(known.seek_lines_at, UINT64_MAX);
	location_unref(location);
	object_unref(source_of.object);
	close(source_of.fd);
	names_free(names);
	symbolizer_free(symbolizer);
}

static void sections_too_large_together_are_given_up(void **state)
{
	(void)state;
	is_given_up(".debug_str");
	is_given_up(".debug_abbrev");
}

/* A program that runs, and is known to a symbolizer that waits for names so long. */
struct waiting {
	struct symbolizer *symbolizer;
	struct mapped_file *file;
	struct image *image;
	uint64_t offset;
	pid_t pid;
};

enum { LONG_TURN_S = 6, LEFT_S = 15 };	/* of the time for names that much is left: less than ten seconds after a turn */

static size_t turns;
static struct symbolizer *in_turn;	/* sampling ends in the first turn, there is a hurry in the second; NULL: neither */
static struct deadline *finish;	/* there is none any more in a turn that takes long; NULL: turns are short */

static void take_turn(void *ctx, size_t done, size_t count)
{
	const struct parser *parser = in_turn ? symbolizer_parser(in_turn) : NULL;

	assert_ptr_equal(ctx, &turns);
	assert_true(done < count);
	turns++;
	if (finish) {
		deadline_set(finish, DEADLINE_NONE);
		sleep(LONG_TURN_S);
	}
	if (!parser)
		return;
	/* what others ask is asked as outside of windows */
	assert_false(parser_waits(parser));
	if (turns == 1) {
		assert_int_equal(deadline_left_ns(parser->deadline), DEADLINE_NONE);
		symbolizer_finish(in_turn);
	}
	assert_in_range(deadline_left_ns(parser->deadline), 1, 60 * NSEC_PER_SEC);
	if (turns < 2)
		return;
	symbolizer_hurry(in_turn, true);
	assert_false(parser_has_time(parser));
}

static struct waiting left;	/* where a test failed: what it holds is not there for the next one */

static void end_waiting(struct waiting *waiting)
{
	left.symbolizer = in_turn = NULL;
	finish = NULL;
	stop(waiting->pid);
	image_unref(waiting->image);
	mapped_file_unref(waiting->file);
	symbolizer_free(waiting->symbolizer);
}

/* A program that is there, and whose function is at @offset. One at a time. */
static struct waiting start_waiting_in(const char *name, uint64_t offset, unsigned int names_ms)
{
	const struct symbolizer_options options = {
		.with_kernel_addresses = true, .names_ms = names_ms, .turn = take_turn, .turn_ctx = &turns,
	};
	const char *path = fixture_path(name);
	struct waiting waiting = { .offset = offset, .file = file_of(path), .pid = start(path, NULL) };

	if (left.symbolizer)
		end_waiting(&(struct waiting){ left.symbolizer, left.file, left.image, left.offset, left.pid });
	assert_int_equal(symbolizer_new(&options, &waiting.symbolizer), 0);
	waiting.image = image_new(&files, (uint32_t)waiting.pid, 0, name);
	left = waiting;
	symbolizer_see_image(waiting.symbolizer, waiting.image, NULL);
	symbolizer_see_file(waiting.symbolizer, waiting.image, waiting.file);
	return waiting;
}

static struct waiting start_waiting(const char *name, unsigned int names_ms)
{
	fixture_build(name, "", program);
	return start_waiting_in(name, offset_of(name, "own_work") + 4, names_ms);
}

struct outcome {
	bool is_named, is_late;
	uint64_t took;		/* ns that the window had to wait */
};

/* A window that was closed @age_ns ago; its Location is new. */
static struct outcome resolve(struct waiting *waiting, uint64_t age_ns)
{
	struct location *location = location_new(waiting->file, waiting->offset, FRAME_NATIVE, false);
	struct window *window = new_window(waiting->image, &location, 1);
	const uint64_t began = clock_monotonic();
	struct outcome outcome;

	window->end = began - age_ns;
	symbolizer_resolve(waiting->symbolizer, window);
	outcome.took = clock_monotonic() - began;
	outcome.is_named = name_of(location)[0];
	outcome.is_late = window->counts[0].names_late;
	assert_string_equal(name_of(location), outcome.is_named ? "own_work" : "");
	assert_int_equal(location->is_put_off, !outcome.is_named);
	assert_int_equal(window->counts[0].names_late, outcome.is_late ? 3 : 0);
	free_window(window);
	location_unref(location);
	return outcome;
}

/* Returns how long it had to wait. */
static uint64_t resolve_one(struct waiting *waiting, uint64_t age_ns, bool is_named, bool is_late)
{
	const struct outcome outcome = resolve(waiting, age_ns);

	assert_int_equal(outcome.is_named, is_named);
	assert_int_equal(outcome.is_late, is_late);
	return outcome.took;
}

static struct symbolizer_stats stats_of(const struct waiting *waiting)
{
	struct symbolizer_stats stats;

	symbolizer_stats(waiting->symbolizer, &stats);
	return stats;
}

/* The parser, which runs. */
static pid_t parser_of(const struct waiting *waiting)
{
	char name[DEMANGLE_MAX];
	pid_t pid;

	assert_int_equal(parser_demangle(symbolizer_parser(waiting->symbolizer), "_ZN3foo3barEv", name), 0);
	pid = stats_of(waiting).parser.helper.pid;
	assert_true(pid > 0);
	return pid;
}

/* As thread A wants it where memory is short: no question is asked, and what is known already is named all the same. */
static void a_hurried_window_takes_the_names_that_are_there(void **state)
{
	struct waiting waiting = start_waiting("hurried", 2000);
	uint64_t calls = stats_of(&waiting).parser.helper.calls;

	(void)state;
	symbolizer_hurry(waiting.symbolizer, true);
	resolve_one(&waiting, 0, false, true);
	assert_int_equal(stats_of(&waiting).parser.helper.calls, calls);
	assert_int_equal(stats_of(&waiting).late, 1);
	assert_int_equal(stats_of(&waiting).windows_late, 1);
	/* once the window is on its way there is time for what it lacked, however long thread C has it */
	symbolizer_after_window(waiting.symbolizer);
	assert_true(stats_of(&waiting).parser.helper.calls > calls);
	calls = stats_of(&waiting).parser.helper.calls;
	resolve_one(&waiting, 0, true, false);
	assert_int_equal(stats_of(&waiting).parser.helper.calls, calls);
	assert_int_equal(stats_of(&waiting).late, 1);
	end_waiting(&waiting);
}

/* All that is asked has an end then, and what no window waits for is not asked. */
static void at_the_end_there_is_a_minute(void **state)
{
	struct waiting waiting = start_waiting("last", 0);
	struct parser *parser = symbolizer_parser(waiting.symbolizer);
	uint64_t calls = stats_of(&waiting).parser.helper.calls;

	(void)state;
	assert_int_equal(deadline_left_ns(parser->deadline), DEADLINE_NONE);
	symbolizer_hurry(waiting.symbolizer, true);
	resolve_one(&waiting, 0, false, true);
	symbolizer_hurry(waiting.symbolizer, false);
	assert_int_equal(deadline_left_ns(parser->deadline), DEADLINE_NONE);
	symbolizer_finish(waiting.symbolizer);
	assert_in_range(deadline_left_ns(parser->deadline), 1, 60 * NSEC_PER_SEC);
	symbolizer_after_window(waiting.symbolizer);
	assert_int_equal(stats_of(&waiting).parser.helper.calls, calls);
	assert_in_range(deadline_left_ns(parser->deadline), 1, 60 * NSEC_PER_SEC);
	/* windows have it as well */
	resolve_one(&waiting, 0, true, false);
	assert_in_range(deadline_left_ns(parser->deadline), 1, 60 * NSEC_PER_SEC);
	end_waiting(&waiting);
}

/* What nobody announced is looked at with the credit that is there for that, also where names are waited for. */
static void what_is_new_in_a_window_waits_for_credit(void **state)
{
	struct waiting waiting = start_waiting("known", 0);
	struct parser *parser = symbolizer_parser(waiting.symbolizer);
	struct location *locations[2];
	struct window *window;
	struct mapped_file *file;

	(void)state;
	fixture_run("cp known unannounced");
	file = file_of(fixture_path("unannounced"));
	locations[0] = location_new(waiting.file, waiting.offset, FRAME_NATIVE, false);
	locations[1] = location_new(file, waiting.offset, FRAME_NATIVE, false);
	window = new_window(waiting.image, locations, 2);
	parser_pay(parser, waiting.image->payer);
	parser_spend(parser, &(struct parser_work){ 0 });
	symbolizer_resolve(waiting.symbolizer, window);
	assert_string_equal(name_of(locations[0]), "own_work");
	assert_string_equal(name_of(locations[1]), "");
	assert_true(locations[1]->is_put_off);
	assert_null(mapped_file_object(file));
	assert_int_equal(stats_of(&waiting).parser.deferred, 1);
	free_window(window);
	location_unref(locations[0]);
	location_unref(locations[1]);
	mapped_file_unref(file);
	end_waiting(&waiting);
}

/* The parser stands still: the window leaves when the question that it began has had its time. */
static void a_window_does_not_wait_for_names(void **state)
{
	struct waiting waiting = start_waiting("awaited", 300);
	unsigned int late = 0, tries = 60;
	struct outcome outcome;

	(void)state;
	kill(parser_of(&waiting), SIGSTOP);
	/* on a busy host its time may be over before the question is asked */
	for (; !stats_of(&waiting).parser.helper.timeouts && tries--; late++)
		resolve_one(&waiting, 0, false, true);
	assert_int_equal(stats_of(&waiting).parser.helper.timeouts, 1);
	assert_int_equal(stats_of(&waiting).windows_late, late);
	assert_int_equal(stats_of(&waiting).parser.set_apart, 0);
	/* however late a window comes there is some time for it; that need not be enough for another parser to start */
	for (tries = 60; !(outcome = resolve(&waiting, 3600 * NSEC_PER_SEC)).is_named && tries--;)
		late += outcome.is_late;
	assert_true(outcome.is_named && !outcome.is_late);
	assert_int_equal(stats_of(&waiting).late, late);
	end_waiting(&waiting);
}

/* As if the parser had had no CPU for more than none of its functions. */
static void lose_functions(struct symtab *symtab)
{
	assert_non_null(symtab);
	assert_false(symtab->is_late);
	assert_true(symtab->count > 0);
	symtab->is_late = true;
	symtab->count = 0;
}

static void *hurry_soon(void *ctx)
{
	usleep(500000);
	symbolizer_hurry(ctx, true);
	return NULL;
}

/* Thread A waits for memory: not as long as a recording's names may take. That ends the parser, and accuses no file. */
static void a_hurry_ends_a_long_question(void **state)
{
	struct waiting waiting = start_waiting("long_question", 0);
	pthread_t hurrying;

	(void)state;
	/* as often as a file may end the parser, and once more */
	for (int i = 0; i <= PARSER_DEATHS_MAX; i++) {
		kill(parser_of(&waiting), SIGSTOP);
		assert_int_equal(pthread_create(&hurrying, NULL, hurry_soon, waiting.symbolizer), 0);
		resolve_one(&waiting, 0, false, true);
		pthread_join(hurrying, NULL);
		symbolizer_hurry(waiting.symbolizer, false);
	}
	assert_int_equal(stats_of(&waiting).parser.helper.timeouts + stats_of(&waiting).parser.helper.deaths, 0);
	resolve_one(&waiting, 0, true, false);
	end_waiting(&waiting);
}

/* What was read of a file without a CPU is what there is for a minute, and for good if nobody reads more. */
static void a_table_that_lacks_functions_is_read_again(void **state)
{
	struct waiting waiting = start_waiting("short", 300);
	struct entry *entry;
	uint64_t calls;

	(void)state;
	resolve_one(&waiting, 0, true, false);
	entry = mapped_file_object(waiting.file)->symbols;
	lose_functions(entry->symtab);
	calls = stats_of(&waiting).parser.helper.calls;
	/* thread A makes another Location as long as this one's name may be missing */
	resolve_one(&waiting, 0, false, false);
	assert_int_equal(stats_of(&waiting).parser.helper.calls, calls);
	assert_int_equal(stats_of(&waiting).put_off, 1);
	entry->read_again_at = 1;
	kill(parser_of(&waiting), SIGKILL);
	resolve_one(&waiting, 0, false, false);
	/* a minute from then; at once for who waits for names, see below */
	assert_true(entry->read_again_at > clock_monotonic());
	entry->read_again_at = 1;
	resolve_one(&waiting, 0, true, false);
	assert_false(entry->symtab->is_late);
	end_waiting(&waiting);
	waiting = start_waiting("short", 0);
	resolve_one(&waiting, 0, true, false);
	entry = mapped_file_object(waiting.file)->symbols;
	lose_functions(entry->symtab);
	/* whoever read that part, and whenever */
	entry->read_again_at = UINT64_MAX;
	kill(parser_of(&waiting), SIGKILL);
	resolve_one(&waiting, 0, false, false);
	resolve_one(&waiting, 0, true, false);
	assert_false(entry->symtab->is_late);
	end_waiting(&waiting);
}

/* The name that the table lacked comes with a later window, in a Location that thread A has made for it. */
static void a_cached_frame_is_named_once_its_table_is_whole(void **state)
{
	struct waiting waiting = start_waiting("cached", 300);
	struct location_cache cache;
	struct location *location;
	struct entry *entry;
	bool is_first;

	(void)state;
	resolve_one(&waiting, 0, true, false);
	entry = mapped_file_object(waiting.file)->symbols;
	lose_functions(entry->symtab);
	location_cache_init(&cache);
	for (int i = 0; i < 2; i++) {
		struct window *window;

		assert_int_equal(location_cache_get(&cache, waiting.file, waiting.offset, FRAME_NATIVE, false, &location,
						    &is_first), 0);
		window = new_window(waiting.image, &location, 1);
		symbolizer_resolve(waiting.symbolizer, window);
		assert_string_equal(name_of(location), i ? "own_work" : "");
		free_window(window);
		location_cache_advance(&cache);
		entry->read_again_at = 1;
	}
	location_cache_free(&cache);
	end_waiting(&waiting);
}

/* When an object's symbols were asked for. */
static uint64_t asked_at(const struct mapped_file *file)
{
	return ((const struct entry *)mapped_file_object(file)->symbols)->used;
}

/* The parser has no CPU for the first file; it is asked for it again when all others have their names. */
static void a_recording_waits_for_a_parser_without_a_cpu(void **state)
{
	enum { COUNT = 3 };
	struct location *locations[COUNT];
	struct mapped_file *mapped[COUNT];
	struct symbolizer_stats stats;
	struct waiting waiting;
	struct window *window;
	uint64_t asked[COUNT], starved;
	unsigned int named = 0, after = 0;
	int first = 0;

	(void)state;
	starve_confine();
	waiting = start_waiting("starved", 0);
	/* its function is behind many others: a part of the table lacks it */
	fixture_run("(cat starved.c; seq 200000 | sed 's/.*/__asm__(\"f&: .long 0; .type f&, STT_FUNC; .size f&, 4\");/') >crowded.c && "
		    "${CC:-gcc} -o crowded crowded.c");
	waiting.offset = offset_of("crowded", "own_work") + 4;
	for (int i = 0; i < COUNT; i++) {
		char name[32];

		snprintf(name, sizeof(name), "starved%d", i);
		fixture_run("cp crowded %s", name);
		mapped[i] = file_of(fixture_path(name));
		symbolizer_see_file(waiting.symbolizer, waiting.image, mapped[i]);
		locations[i] = location_new(mapped[i], waiting.offset, FRAME_NATIVE, false);
	}
	mapped_file_object(mapped[first])->late_since = 1;
	window = new_window(waiting.image, locations, COUNT);
	starve_begin(parser_of(&waiting));
	symbolizer_resolve(waiting.symbolizer, window);
	starve_end();
	stats = stats_of(&waiting);
	starved = parser_starved(symbolizer_parser(waiting.symbolizer));
	for (int i = 0; i < COUNT; i++) {
		asked[i] = asked_at(mapped[i]);
		named += !strcmp(name_of(locations[i]), "own_work") && !locations[i]->is_put_off;
		after += asked[i] < asked[first];
	}
	/* what a test that fails leaves behind are the large tables of these */
	free_window(window);
	for (int i = 0; i < COUNT; i++) {
		location_unref(locations[i]);
		mapped_file_unref(mapped[i]);
	}
	end_waiting(&waiting);
	assert_int_equal(named, COUNT);
	assert_true(starved > 0);
	assert_int_equal(stats.parser.set_apart, 0);
	assert_int_equal(stats.put_off, 0);
	/* by chance it has some of them in its time */
	if (stats.parser.helper.starved)
		assert_int_equal(after, COUNT - 1);
}

/* Neither the file after that is asked for, nor have others another turn. */
static void a_hurry_reaches_what_others_ask(void **state)
{
	enum { COUNT = 5 };
	struct waiting waiting = start_waiting("turns", 0);
	struct location *locations[COUNT];
	struct mapped_file *mapped[COUNT];
	struct window *window;
	unsigned int named = 0;

	(void)state;
	for (int i = 0; i < COUNT; i++) {
		char name[32];

		snprintf(name, sizeof(name), "turns%d", i);
		fixture_run("cp turns %s", name);
		mapped[i] = file_of(fixture_path(name));
		symbolizer_see_file(waiting.symbolizer, waiting.image, mapped[i]);
		locations[i] = location_new(mapped[i], waiting.offset, FRAME_NATIVE, false);
	}
	in_turn = waiting.symbolizer;
	turns = 0;
	window = new_window(waiting.image, locations, COUNT);
	symbolizer_resolve(waiting.symbolizer, window);
	in_turn = NULL;
	symbolizer_hurry(waiting.symbolizer, false);
	for (int i = 0; i < COUNT; i++)
		named += name_of(locations[i])[0] != '\0';
	assert_int_equal(named, 2);
	assert_int_equal(turns, 2);
	assert_int_equal(stats_of(&waiting).put_off, COUNT - 2);
	free_window(window);
	for (int i = 0; i < COUNT; i++) {
		location_unref(locations[i]);
		mapped_file_unref(mapped[i]);
	}
	end_waiting(&waiting);
}

/* What others ask has time of its own: the second file has all that the window had. */
static void a_turn_takes_no_time_from_names(void **state)
{
	struct waiting waiting = start_waiting("lent", 0);
	struct location *locations[2];
	struct mapped_file *mapped[2];
	struct window *window;

	(void)state;
	fixture_run("cp lent other_lent");
	for (int i = 0; i < 2; i++) {
		mapped[i] = file_of(fixture_path(i ? "other_lent" : "lent"));
		symbolizer_see_file(waiting.symbolizer, waiting.image, mapped[i]);
		locations[i] = location_new(mapped[i], waiting.offset, FRAME_NATIVE, false);
	}
	finish = (struct deadline *)(uintptr_t)symbolizer_parser(waiting.symbolizer)->deadline;
	deadline_set(finish, clock_monotonic() + LEFT_S * NSEC_PER_SEC);
	turns = 0;
	window = new_window(waiting.image, locations, 2);
	symbolizer_resolve(waiting.symbolizer, window);
	finish = NULL;
	assert_int_equal(turns, 1);
	for (int i = 0; i < 2; i++)
		assert_string_equal(name_of(locations[i]), "own_work");
	free_window(window);
	for (int i = 0; i < 2; i++) {
		location_unref(locations[i]);
		mapped_file_unref(mapped[i]);
	}
	end_waiting(&waiting);
}

/* What there was no time for is asked for first the next time: it may need all of it. */
static void what_came_too_late_is_the_first_of_the_next_window(void **state)
{
	enum { COUNT = 8 };
	struct waiting waiting = start_waiting("first", 0);
	struct location *locations[COUNT];
	struct mapped_file *mapped[COUNT];
	struct symbolizer_stats stats;
	struct window *window;
	int last = 0;

	(void)state;
	for (int i = 0; i < COUNT; i++) {
		char name[32];

		snprintf(name, sizeof(name), "turn%d", i);
		fixture_run("cp first %s", name);
		mapped[i] = file_of(fixture_path(name));
		symbolizer_see_file(waiting.symbolizer, waiting.image, mapped[i]);
		locations[i] = location_new(mapped[i], waiting.offset, FRAME_NATIVE, false);
		/* by their addresses this one is the last */
		if (mapped_file_object(mapped[i]) > mapped_file_object(mapped[last]))
			last = i;
	}
	/* others have a turn between two files */
	turns = 0;
	mapped_file_object(mapped[last])->late_since = 1;
	kill(parser_of(&waiting), SIGKILL);
	window = new_window(waiting.image, locations, COUNT);
	symbolizer_resolve(waiting.symbolizer, window);
	assert_int_equal(turns, COUNT - 1);
	/* the first question is the one that a dead parser does not answer */
	symbolizer_stats(waiting.symbolizer, &stats);
	assert_int_equal(stats.put_off, 1);
	for (int i = 0; i < COUNT; i++)
		assert_string_equal(name_of(locations[i]), i == last ? "" : "own_work");
	assert_int_equal(mapped_file_object(mapped[last])->late_since, 0);
	free_window(window);
	for (int i = 0; i < COUNT; i++) {
		location_unref(locations[i]);
		mapped_file_unref(mapped[i]);
	}
	end_waiting(&waiting);
}

/*
 * One file of who has taken nothing of the time beside seven of another, which are first by age and by address and for
 * which their payer has taken time before the window, or has not.
 */
static void name_one_beside_seven(bool has_taken)
{
	enum { COUNT = 8, MODEST = 7 };
	struct waiting waiting = start_waiting("payers", 0);
	const struct image_details *details = image_details(waiting.image);
	struct image *seven = image_new(&files, (uint32_t)waiting.pid, 0, "seven");
	struct image *other = image_new(&files, (uint32_t)waiting.pid, 0, "other");
	struct location *locations[COUNT];
	struct mapped_file *mapped[COUNT];
	unsigned int before = 0;
	struct window *window;

	assert_non_null(details);
	seven->payer = waiting.image->payer + (has_taken ? 0 : 2);
	other->payer = waiting.image->payer + 1;
	for (int i = 0; i < COUNT; i++) {
		char name[32];

		snprintf(name, sizeof(name), "payer%d", i);
		fixture_run("cp payers %s", name);
		mapped[i] = file_of(fixture_path(name));
		symbolizer_see_file(waiting.symbolizer, waiting.image, mapped[i]);
	}
	for (int i = 0; i < COUNT; i++)
		if (mapped_file_object(mapped[i]) > mapped_file_object(mapped[MODEST])) {
			struct mapped_file *swapped = mapped[i];

			mapped[i] = mapped[MODEST];
			mapped[MODEST] = swapped;
		}
	for (int i = 0; i < COUNT; i++) {
		locations[i] = location_new(mapped[i], waiting.offset, FRAME_NATIVE, false);
		mapped_file_object(mapped[i])->late_since = i == MODEST ? 0 : 1;
	}
	window = new_window(seven, locations, COUNT);
	window->samples[MODEST].image = other;
	symbolizer_resolve(waiting.symbolizer, window);
	for (int i = 0; i < COUNT; i++) {
		assert_string_equal(name_of(locations[i]), "own_work");
		before += asked_at(mapped[i]) < asked_at(mapped[MODEST]);
	}
	/* by chance both have taken nothing of late: then one may come before it */
	assert_true(before <= 1);
	free_window(window);
	for (int i = 0; i < COUNT; i++) {
		location_unref(locations[i]);
		mapped_file_unref(mapped[i]);
	}
	image_unref(other);
	image_unref(seven);
	end_waiting(&waiting);
}

static void who_took_the_least_time_comes_first(void **state _unused_)
{
	name_one_beside_seven(true);
}

static void what_is_taken_counts_at_once(void **state _unused_)
{
	name_one_beside_seven(false);
}

/* Each is small, and together they take longer than there is time. */
static void what_the_end_of_a_window_refuses_is_late(void **state)
{
	enum { COUNT = 250 };
	struct waiting waiting = start_waiting("small", 300);
	struct location *locations[COUNT];
	struct mapped_file *mapped[COUNT];
	struct window *window;
	unsigned int named = 0, windows = 0, unnamed = 1;

	(void)state;
	fixture_run("(for i in $(seq 2000); do echo \"int f$i(void) { return $i; }\"; done; cat small.c) > crowd.c && "
		    "${CC:-gcc} -o crowd crowd.c && for i in $(seq 0 %d); do cp crowd crowd$i; done", COUNT - 1);
	for (int i = 0; i < COUNT; i++) {
		char name[32];

		snprintf(name, sizeof(name), "crowd%d", i);
		mapped[i] = file_of(fixture_path(name));
		symbolizer_see_file(waiting.symbolizer, waiting.image, mapped[i]);
		assert_non_null(mapped_file_object(mapped[i]));
	}
	waiting.offset = offset_of("crowd0", "own_work") + 4;
	/* a host that is busy has no time for any of them in some windows */
	for (; unnamed && windows < 4 * COUNT; windows++) {
		const uint64_t late = stats_of(&waiting).late;

		unnamed = 0;
		for (int i = 0; i < COUNT; i++)
			locations[i] = location_new(mapped[i], waiting.offset, FRAME_NATIVE, false);
		window = new_window(waiting.image, locations, COUNT);
		symbolizer_resolve(waiting.symbolizer, window);
		for (int i = 0; i < COUNT; i++) {
			const bool is_named = name_of(locations[i])[0];

			unnamed += !is_named;
			assert_int_equal(locations[i]->is_late, !is_named);
			assert_int_equal(mapped_file_object(mapped[i])->late_since != 0, !is_named);
			location_unref(locations[i]);
		}
		assert_int_equal(stats_of(&waiting).late, late + unnamed);
		/* in some there are more that have their names, in none are there fewer */
		assert_true(COUNT - unnamed >= named);
		named = COUNT - unnamed;
		free_window(window);
	}
	assert_int_equal(unnamed, 0);
	assert_true(windows > 1);
	for (int i = 0; i < COUNT; i++)
		mapped_file_unref(mapped[i]);
	end_waiting(&waiting);
}

/* Thread A found no room to tell of it: a sample does. */
static void an_unannounced_program_is_looked_at_for_its_sample(void **state)
{
	const char *path = fixture_build("untold", "", program);
	struct symbolizer *symbolizer = new_symbolizer();
	struct mapped_file *file = file_of(path);
	pid_t pid = start(path, NULL);
	struct image *image = image_new(&files, (uint32_t)pid, 0, "untold");

	(void)state;
	/* nor does anybody look at one that was not to be told of */
	expect(symbolizer, image, file, offset_of("untold", "own_work"), "own_work", NULL);
	assert_null(image_details(image));
	image->is_untold = true;
	expect(symbolizer, image, file, offset_of("untold", "own_work"), "own_work", NULL);
	assert_string_equal(image_details(image)->executable_path, path);
	assert_non_null(image->mount_namespace);
	stop(pid);
	image_unref(image);
	mapped_file_unref(file);
	symbolizer_free(symbolizer);
}

/* There was no opener just then: it is not one without a program, in the host's mount namespace. */
static void a_program_without_an_answer_is_looked_at_for_its_sample(void **state)
{
	struct waiting waiting = start_waiting("unanswered", 0);
	struct image *image = image_new(&files, (uint32_t)waiting.pid, 0, "unanswered");
	const pid_t opener = stats_of(&waiting).opener.helper.pid;

	(void)state;
	assert_true(opener > 0);
	assert_int_equal(kill(opener, SIGKILL), 0);
	symbolizer_see_image(waiting.symbolizer, image, waiting.image);
	assert_null(image_details(image));
	assert_null(image->mount_namespace);
	expect(waiting.symbolizer, image, waiting.file, waiting.offset, "own_work", NULL);
	assert_non_null(image_details(image));
	assert_string_equal(image_details(image)->executable_name, "unanswered");
	assert_non_null(image->mount_namespace);
	image_unref(image);
	end_waiting(&waiting);
}

static void what_a_dead_parser_did_not_name_is_put_off(void **state)
{
	struct symbolizer *symbolizer = new_symbolizer();
	const char *path = fixture_build("patient", "", program);
	uint64_t offset = offset_of("patient", "own_work") + 4;
	struct mapped_file *file = file_of(path);
	pid_t pid = start(path, NULL);
	struct image *image = image_new(&files, (uint32_t)pid, 0, "patient");
	struct symbolizer_stats stats;
	struct location *location;

	(void)state;
	symbolizer_see_image(symbolizer, image, NULL);
	symbolizer_see_file(symbolizer, image, file);
	stop(pid);
	symbolizer_stats(symbolizer, &stats);
	assert_int_equal(kill(stats.parser.helper.pid, SIGKILL), 0);
	expect(symbolizer, image, file, offset, "", &location);
	assert_true(location->is_put_off);
	location_unref(location);
	/* the next one has another parser */
	expect(symbolizer, image, file, offset, "own_work", &location);
	assert_false(location->is_put_off);
	location_unref(location);
	symbolizer_stats(symbolizer, &stats);
	assert_int_equal(stats.put_off, 1);
	image_unref(image);
	mapped_file_unref(file);
	symbolizer_free(symbolizer);
}

/* What was there already: the opener is dead when it is asked for the debug file. */
static void a_debug_file_is_sought_again(void **state)
{
	struct symbolizer_options options = { .with_kernel_addresses = true };
	struct symbolizer *symbolizer;
	struct symbolizer_stats stats;
	char id[64], root[PATH_MAX];
	struct location *location;
	struct mapped_file *file;
	struct image *image;
	uint64_t offset;
	pid_t pid;

	(void)state;
	snprintf(root, sizeof(root), "%s", fixture_path("again"));
	options.sysroot = root;
	fixture_build("whole", "-Wl,--build-id=sha1", program);
	snprintf(id, sizeof(id), "%s", fixture_ask("readelf -n whole | sed -n 's/.*Build ID: //p'"));
	fixture_run("mkdir -p again/usr/lib/debug/.build-id/%.2s && cp whole seeker && strip seeker && "
		    "objcopy --only-keep-debug whole again/usr/lib/debug/.build-id/%.2s/%s.debug", id, id,
		    id + 2);
	offset = offset_of("whole", "own_work") + 4;
	assert_int_equal(symbolizer_new(&options, &symbolizer), 0);
	file = file_of(fixture_path("seeker"));
	pid = start(fixture_path("seeker"), NULL);
	image = image_new(&files, (uint32_t)pid, 0, "seeker");
	symbolizer_see_image(symbolizer, image, NULL);
	symbolizer_see_file(symbolizer, image, file);
	stop(pid);
	symbolizer_stats(symbolizer, &stats);
	/* else its context would be asked for, and the next question have another opener */
	image->context_next = UINT64_MAX;
	assert_int_equal(kill(stats.opener.helper.pid, SIGKILL), 0);
	expect(symbolizer, image, file, offset, "", &location);
	assert_true(location->is_put_off);
	location_unref(location);
	expect(symbolizer, image, file, offset, "own_work", NULL);
	image_unref(image);
	mapped_file_unref(file);
	symbolizer_free(symbolizer);
}

/* As Fedora's rpmbuild makes it; @pack turns mini.elf into mini.xz. */
static const char *build_with_mini(const char *name, const char *pack)
{
	fixture_build("whole", "-Wl,--build-id=sha1", program);
	fixture_run("objcopy -S --keep-symbol=own_work whole mini.elf && %s && cp whole %s && strip %s && "
		    "objcopy --add-section .gnu_debugdata=mini.xz %s", pack, name, name, name);
	return fixture_path(name);
}

/* @error: what it is given up for, and not read again. */
static void expect_with_mini(const char *name, const char *pack, const char *function, int error)
{
	struct parser_stats before, after;
	struct location *location;
	struct entry *entry;
	struct symbolizer *symbolizer = new_symbolizer();
	const char *path = build_with_mini(name, pack);
	struct mapped_file *file = file_of(path);
	pid_t pid = start(path, NULL);
	struct image *image = image_new(&files, (uint32_t)pid, 0, name);

	symbolizer_see_image(symbolizer, image, NULL);
	symbolizer_see_file(symbolizer, image, file);
	stop(pid);
	/* a host that is busy may put it off */
	location = name_at_last(symbolizer, image, file, offset_of("whole", "own_work") + 4);
	assert_string_equal(name_of(location), function);
	expect_source(symbolizer, SOURCE_MINI, function[0] != '\0');
	entry = location->object->symbols;
	assert_int_equal(entry->mini_error, error);
	location_unref(location);
	parser_stats(symbolizer_parser(symbolizer), &before);
	expect(symbolizer, image, file, offset_of("whole", "own_work") + 4, function, NULL);
	parser_stats(symbolizer_parser(symbolizer), &after);
	assert_int_equal(after.helper.calls, before.helper.calls);
	assert_int_equal(after.helper.starts, 1);
	/* a part of it is read again as a part of the file's own functions is */
	if (function[0]) {
		lose_functions(entry->mini);
		/* at once by who waits */
		entry->mini_again_at = UINT64_MAX;
		expect(symbolizer, image, file, offset_of("whole", "own_work") + 4, function, NULL);
	}
	image_unref(image);
	mapped_file_unref(file);
	symbolizer_free(symbolizer);
}

/* Its path leads nowhere any more. */
static void unlink_and_close(const struct waiting *waiting, struct entry *entry)
{
	unlink(entry->object->path);
	close_idle(waiting->symbolizer, entry);
}

enum part { PART_FUNCTIONS, PART_NAMES, PART_MINI, PARTS };

static void lose(struct entry *entry, enum part part)
{
	if (part == PART_NAMES)
		free(steal_ptr(entry->symtab->names));	/* as those of a large file, which stay in it */
	else
		lose_functions(part == PART_MINI ? entry->mini : entry->symtab);
}

/* An upgrade: what is missing is read from the file that a process still runs. Once that is gone, what is there is all. */
static void what_an_unlinked_file_lacks_is_read_through_its_process(void **state)
{
	(void)state;
	for (enum part part = 0; part < PARTS; part++) {
		const char *name = part == PART_MINI ? "mini_unlinked" : "unlinked";
		struct location *location;
		struct waiting waiting;
		struct entry *entry;

		if (part == PART_MINI)
			build_with_mini(name, "xz -c mini.elf > mini.xz");
		else
			fixture_build(name, "", program);
		waiting = start_waiting_in(name, offset_of(part == PART_MINI ? "whole" : name, "own_work") + 4, 0);
		resolve_one(&waiting, 0, true, false);
		entry = mapped_file_object(waiting.file)->symbols;
		unlink_and_close(&waiting, entry);
		lose(entry, part);
		resolve_one(&waiting, 0, true, false);
		assert_true(entry->fd >= 0);
		unlink_and_close(&waiting, entry);
		lose(entry, part);
		kill(waiting.pid, SIGKILL);
		waitid(P_PID, (id_t)waiting.pid, NULL, WEXITED | WNOWAIT);
		expect(waiting.symbolizer, waiting.image, waiting.file, waiting.offset, "", &location);
		assert_false(location->is_put_off);
		location_unref(location);
		end_waiting(&waiting);
	}
}

/* What there is not for what @pid opens, beside what it is sent: descriptors; false: there are enough again. */
static void let_lack_descriptors(pid_t pid, bool lacks)
{
	struct rlimit limit = { 1024, 1024 };
	char path[64];

	if (lacks) {
		struct dirent *entry;
		DIR *directory;

		snprintf(path, sizeof(path), "/proc/%d/fd", pid);
		directory = opendir(path);
		assert_non_null(directory);
		for (limit.rlim_cur = 0; (entry = readdir(directory));)
			if (entry->d_name[0] != '.')
				limit.rlim_cur = max_of(limit.rlim_cur, (rlim_t)atoi(entry->d_name) + 2);
		closedir(directory);
	}
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, &limit, NULL), 0);
}

/* A program's, and a debug file's, cannot be opened again for the names that are in it: these come with a later window. */
static void names_of_a_file_that_cannot_be_opened_now_come_later(void **state)
{
	(void)state;
	fixture_build("whole_lacking", "-Wl,--build-id=sha1", program);
	fixture_run("objcopy --only-keep-debug whole_lacking lacking.debug && strip -o lacking1 whole_lacking && "
		    "objcopy --add-gnu-debuglink=lacking.debug lacking1 && cp whole_lacking lacking0");
	for (int has_debug = 0; has_debug < 2; has_debug++) {
		struct waiting waiting = start_waiting_in(has_debug ? "lacking1" : "lacking0",
							  offset_of("whole_lacking", "own_work") + 4, 0);
		struct symbolizer_stats stats;
		struct entry *entry;

		resolve_one(&waiting, 0, true, false);
		entry = mapped_file_object(waiting.file)->symbols;
		if (has_debug)
			entry = entry->debug->symbols;
		close_idle(waiting.symbolizer, entry);
		lose(entry, PART_NAMES);
		let_lack_descriptors(stats_of(&waiting).opener.helper.pid, true);
		resolve_one(&waiting, 0, false, false);
		stats = stats_of(&waiting);
		assert_int_equal(stats.put_off, 1);
		/* it has answered, and nobody is to blame */
		assert_int_equal(stats.opener.helper.deaths + stats.opener.helper.timeouts + stats.opener.quarantined, 0);
		let_lack_descriptors(stats.opener.helper.pid, false);
		resolve_one(&waiting, 0, true, false);
		assert_int_equal(stats_of(&waiting).put_off, 1);
		if (has_debug) {
			lose(entry, PART_FUNCTIONS);
			entry->read_again_at = UINT64_MAX;
			kill(parser_of(&waiting), SIGKILL);
			resolve_one(&waiting, 0, false, false);
			resolve_one(&waiting, 0, true, false);
		}
		end_waiting(&waiting);
	}
}

/* No process leads to that one. */
static void a_part_of_a_debug_file_that_is_gone_is_all_of_it(void **state)
{
	struct waiting waiting;
	struct entry *entry;

	(void)state;
	fixture_build("whole_linked", "-Wl,--build-id=sha1", program);
	fixture_run("objcopy --only-keep-debug whole_linked gone.debug && strip -o linked_gone whole_linked && "
		    "objcopy --add-gnu-debuglink=gone.debug linked_gone");
	waiting = start_waiting_in("linked_gone", offset_of("whole_linked", "own_work") + 4, 0);
	resolve_one(&waiting, 0, true, false);
	entry = ((const struct entry *)mapped_file_object(waiting.file)->symbols)->debug->symbols;
	unlink_and_close(&waiting, entry);
	entry->symtab->is_late = true;
	resolve_one(&waiting, 0, true, false);
	assert_false(entry->symtab->is_late);
	end_waiting(&waiting);
}

static void mini_debug_information_has_the_names(void **state)
{
	(void)state;
	expect_with_mini("mini", "xz -c mini.elf > mini.xz", "own_work", 0);
}

static void mini_debug_information_is_given_up(void **state)
{
	(void)state;
	expect_with_mini("cut", "xz -c mini.elf | head -c 200 > mini.xz", "", -EBADMSG);
	expect_with_mini("plain", "cp mini.elf mini.xz", "", -EBADMSG);
	/* no ELF file inside */
	expect_with_mini("text", "echo no | xz > mini.xz", "", -ENOEXEC);
	/* far more inside than outside; of more than is read of a section; for a decoder that needs more memory */
	expect_with_mini("bomb", "head -c 100M /dev/zero | cat mini.elf - | xz -1 > mini.xz", "", -EFBIG);
	expect_with_mini("long", "xz -c mini.elf > mini.xz && truncate -s 17M mini.xz", "", -EFBIG);
	expect_with_mini("large", "xz -c --lzma2=dict=128MiB mini.elf > mini.xz", "", -EFBIG);
}

/*
 * A label that its file's functions do not begin at is none, and one without a size does not go on over functions that the
 * file itself knows of.
 */
static void sizeless_names_of_mini_debug_information_swallow_nothing(void **state)
{
	static const char labels[] =
		"#include <unistd.h>\n"
		"__asm__(\".text\\n.type sizeless, @function\\nsizeless:\\n.skip 16, 0x90\\n\");\n"
		"__attribute__((noinline, noipa)) int own_work(int x) { __asm__ volatile(\"label:\"); return x * 3; }\n"
		"int main(int c, char **v) { (void)v; write(1, \"x\", 1); for (;;) pause(); return own_work(c); }\n";
	struct symbolizer *symbolizer;
	struct location *location;
	struct mapped_file *file;
	struct window *window;
	struct image *image;
	pid_t pid;

	(void)state;
	fixture_build("whole", "-O0 -Wl,--build-id=sha1", labels);
	fixture_run("objcopy -S --keep-symbol=label --keep-symbol=sizeless whole mini.elf && xz -c mini.elf > mini.xz && "
		    "cp whole labelled && strip labelled && objcopy --add-section .gnu_debugdata=mini.xz labelled");
	symbolizer = new_symbolizer();
	file = file_of(fixture_path("labelled"));
	pid = start(fixture_path("labelled"), NULL);
	image = image_new(&files, (uint32_t)pid, 0, "labelled");
	symbolizer_see_image(symbolizer, image, NULL);
	symbolizer_see_file(symbolizer, image, file);
	stop(pid);
	location = location_new(file, offset_of("whole", "own_work") + 12, FRAME_NATIVE, false);
	window = new_window(image, &location, 1);
	symbolizer_resolve(symbolizer, window);
	assert_int_equal(location->line_count, 0);
	assert_true(location->has_function);
	free_window(window);
	location_unref(location);
	image_unref(image);
	mapped_file_unref(file);
	symbolizer_free(symbolizer);
}

/* Nothing of the process is left but its file; its parent tells the rest. */
static void a_program_that_is_gone_has_names(void **state)
{
	char *const environment[] = { strdup("OTEL_SERVICE_NAME=shop"), NULL };
	const char *path = fixture_build("short_lived_program", "-s -rdynamic", program);
	struct symbolizer *symbolizer = new_symbolizer();
	struct mapped_file *file = file_of(path);
	struct image *parent, *image;
	pid_t parent_pid = start(path, environment), pid = start(path, NULL);
	uint64_t offset;

	(void)state;
	stop(pid);
	parent = image_new(&files, (uint32_t)parent_pid, 0, "other");
	symbolizer_see_image(symbolizer, parent, NULL);
	/* comm is cut to 15 characters */
	image = image_new(&files, (uint32_t)pid, 1, "short_lived_pro");
	symbolizer_see_image(symbolizer, image, parent);
	assert_null(image_details(image));
	symbolizer_see_file(symbolizer, image, file);
	assert_non_null(image_details(image));
	assert_string_equal(image_details(image)->executable_path, path);
	assert_string_equal(image_details(image)->service_name, "shop");
	assert_ptr_equal(image->mount_namespace, parent->mount_namespace);
	fixture_build("same", "-rdynamic", program);
	offset = offset_of("same", "own_work");
	expect(symbolizer, image, file, offset, "own_work", NULL);
	expect_source(symbolizer, SOURCE_DYNSYM, 1);
	stop(parent_pid);
	image_unref(image);
	image_unref(parent);
	mapped_file_unref(file);
	symbolizer_free(symbolizer);
	free(environment[0]);
}

static void a_fork_that_is_gone_is_its_parents_program(void **state)
{
	const char *path = fixture_build("forker", "", program);
	struct symbolizer *symbolizer = new_symbolizer();
	pid_t parent_pid = start(path, NULL), pid = start(path, NULL);
	struct image *parent = image_new(&files, (uint32_t)parent_pid, 0, "forker");
	struct image *child, *stranger;
	struct window *window = new_window(NULL, NULL, 0);

	(void)state;
	stop(pid);
	symbolizer_see_image(symbolizer, parent, NULL);
	child = image_new(&files, (uint32_t)pid, 1, "forker");
	stranger = image_new(&files, (uint32_t)pid, 2, "stranger");
	symbolizer_see_image(symbolizer, child, parent);
	symbolizer_see_image(symbolizer, stranger, parent);
	symbolizer_resolve(symbolizer, window);
	assert_string_equal(image_details(child)->executable_path, path);
	assert_null(image_details(stranger)->executable_path);
	free_window(window);
	stop(parent_pid);
	image_unref(child);
	image_unref(stranger);
	image_unref(parent);
	symbolizer_free(symbolizer);
}

/* By the time /proc is read the child has called exec: that is the next image's program. */
static void a_fork_that_has_moved_on_is_its_parents_program(void **state)
{
	const char *path = fixture_build("shell", "", program);
	const char *next_path = fixture_build("next", "", program);
	struct symbolizer *symbolizer = new_symbolizer();
	pid_t parent_pid = start(path, NULL), pid = start(next_path, NULL);
	struct image *parent = image_new(&files, (uint32_t)parent_pid, 0, "shell");
	struct image *child = image_new(&files, (uint32_t)pid, 1, "shell");
	struct image *next = image_new(&files, (uint32_t)pid, 2, "next");
	struct window *window = new_window(NULL, NULL, 0);

	(void)state;
	child->is_fork = true;
	symbolizer_see_image(symbolizer, parent, NULL);
	symbolizer_see_image(symbolizer, child, parent);
	symbolizer_see_image(symbolizer, next, parent);
	symbolizer_resolve(symbolizer, window);
	assert_string_equal(image_details(child)->executable_path, path);
	assert_string_equal(image_details(next)->executable_path, next_path);
	free_window(window);
	stop(pid);
	stop(parent_pid);
	image_unref(next);
	image_unref(child);
	image_unref(parent);
	symbolizer_free(symbolizer);
}

static void a_deleted_file_is_reached_through_its_process(void **state)
{
	const char *path = fixture_build("deleted", "", program);
	struct symbolizer *symbolizer = new_symbolizer();
	struct mapped_file *file = file_of(path);
	uint64_t offset = offset_of("deleted", "own_work");
	pid_t pid = start(path, NULL);
	struct image *image = image_new(&files, (uint32_t)pid, 0, "deleted");

	(void)state;
	/* an upgrade: the path now is another program's */
	fixture_run("rm deleted && cp runner deleted");
	symbolizer_see_image(symbolizer, image, NULL);
	assert_string_equal(image_details(image)->executable_path, path);
	symbolizer_see_file(symbolizer, image, file);
	stop(pid);
	expect(symbolizer, image, file, offset, "own_work", NULL);
	image_unref(image);
	mapped_file_unref(file);
	symbolizer_free(symbolizer);
}

static void another_file_at_the_path_gives_no_names(void **state)
{
	const char *path = fixture_build("replaced", "", program);
	struct symbolizer *symbolizer = new_symbolizer();
	struct mapped_file *file = file_of(path);
	uint64_t offset = offset_of("replaced", "own_work");
	pid_t pid = start(path, NULL);
	struct image *image = image_new(&files, (uint32_t)pid, 0, "replaced");
	struct symbolizer_stats stats;
	struct location *location;

	(void)state;
	symbolizer_see_image(symbolizer, image, NULL);
	stop(pid);
	fixture_run("cp replaced copy && mv copy replaced");
	symbolizer_see_file(symbolizer, image, file);
	expect(symbolizer, image, file, offset, "", &location);
	assert_int_equal(location->object->state, OBJECT_GONE);
	assert_int_equal(location->object->error, -ESTALE);
	assert_int_equal(location->address, offset);
	location_unref(location);
	symbolizer_stats(symbolizer, &stats);
	assert_int_equal(stats.objects_gone, 1);
	image_unref(image);
	mapped_file_unref(file);
	symbolizer_free(symbolizer);
}

/* Another image may reach what the first one could not. */
static void a_file_that_was_gone_is_found_later(void **state)
{
	struct symbolizer *symbolizer = new_symbolizer();
	struct image *image = image_new(&files, (uint32_t)getpid(), 0, "test");
	struct mapped_file *file;

	(void)state;
	fixture_run("cp runner hidden");
	file = file_of(fixture_path("hidden"));
	fixture_run("mv hidden elsewhere");
	symbolizer_see_file(symbolizer, image, file);
	assert_int_equal(mapped_file_object(file)->state, OBJECT_GONE);
	symbolizer_see_file(symbolizer, image, file);
	assert_int_equal(mapped_file_object(file)->state, OBJECT_GONE);
	fixture_run("mv elsewhere hidden");
	symbolizer_see_file(symbolizer, image, file);
	assert_int_equal(mapped_file_object(file)->state, OBJECT_READY);
	expect(symbolizer, image, file, offset_of("hidden", "own_work"), "own_work", NULL);
	mapped_file_unref(file);
	image_unref(image);
	symbolizer_free(symbolizer);
}

/* Thread A did not tell of it, a sample shows it. */
static void an_unannounced_file_is_opened_for_its_sample(void **state)
{
	struct symbolizer *symbolizer = new_symbolizer();
	struct image *image = image_new(&files, (uint32_t)getpid(), 0, "test");
	struct mapped_file *file = file_of(fixture_path("runner"));

	(void)state;
	expect(symbolizer, image, file, offset_of("runner", "own_work"), "own_work", NULL);
	mapped_file_unref(file);
	image_unref(image);
	symbolizer_free(symbolizer);
}

static void what_is_no_program_does_no_harm(void **state)
{
	struct symbolizer *symbolizer = new_symbolizer();
	struct image *image = image_new(&files, (uint32_t)getpid(), 0, "test");
	static const char *const names[] = { "fifo", "directory", "empty", "text" };

	(void)state;
	symbolizer_see_image(symbolizer, image, NULL);
	fixture_run("mkfifo fifo && mkdir directory && : > empty && echo text > text");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct mapped_file *file = file_of(fixture_path(names[i]));

		symbolizer_see_file(symbolizer, image, file);
		assert_int_equal(mapped_file_object(file)->state,
				 i < 2 ? OBJECT_GONE : OBJECT_NOT_ELF);
		expect(symbolizer, image, file, 1, "", NULL);
		mapped_file_unref(file);
	}
	image_unref(image);
	symbolizer_free(symbolizer);
}

static int read_no_ranges(const struct elf *elf, struct function_range **ret_ranges, size_t *ret_count)
{
	(void)elf;
	(void)ret_ranges;
	*ret_count = 100;
	return -EBADMSG;
}

/* Also where nobody can tell where its other functions begin and end. */
static void the_vdso_has_names_without_ranges(void **state)
{
	struct object *object;
	struct symtab *symtab;

	(void)state;
	if (!getauxval(AT_SYSINFO_EHDR)) {
		print_message("this process has no vDSO\n");
		skip();
	}
	assert_int_equal(vdso_read(read_no_ranges, &object, &symtab), 0);
	assert_true(symtab->count > 0);
	for (uint32_t i = 0; i < symtab->count; i++)
		assert_true(symbol_is_named(&symtab->symbols[i]));
	symtab_free(symtab);
	object_unref(object);
}

static void the_vdso_has_names(void **state)
{
	struct symbolizer *symbolizer = new_symbolizer();
	struct image *image = image_new(&files, (uint32_t)getpid(), 0, "test");
	struct mapped_file *file = mapped_file_new(OBJECT_VDSO, "[vdso]");
	const struct object *object;
	struct symbolizer_stats stats;
	bool found = false;
	struct function_range *ranges;
	size_t size, count;
	struct elf elf;
	const void *vdso;

	(void)state;
	if (!getauxval(AT_SYSINFO_EHDR)) {
		print_message("no vDSO here\n");
		mapped_file_unref(file);
		image_unref(image);
		symbolizer_free(symbolizer);
		skip();
	}
	symbolizer_see_file(symbolizer, image, file);
	object = mapped_file_object(file);
	assert_int_equal(object->state, OBJECT_READY);
	for (uint64_t offset = 0; offset < object->size && !found; offset += 16) {
		struct location *location = location_new(file, offset, FRAME_NATIVE, false);
		struct window *window = new_window(image, &location, 1);

		symbolizer_resolve(symbolizer, window);
		found = !!strstr(name_of(location), "clock_gettime");
		free_window(window);
		location_unref(location);
	}
	assert_true(found);
	symbolizer_stats(symbolizer, &stats);
	expect_source(symbolizer, SOURCE_VDSO, stats.named);
	/* what all of them call, and read the clock by, is static there */
	assert_int_equal(vdso_image(&vdso, &size), 0);
	assert_int_equal(elf_open_memory(&elf, vdso, size), 0);
	assert_int_equal(functions_read(&elf, &ranges, &count), 0);
	assert_true(count > 0);
	for (size_t i = 0; i < count; i++) {
		struct location *location = location_new(file, ranges[i].start, FRAME_NATIVE, false);
		struct window *window = new_window(image, &location, 1);

		symbolizer_resolve(symbolizer, window);
		assert_true(location->line_count || location->has_function);
		free_window(window);
		location_unref(location);
	}
	free(ranges);
	elf_close(&elf);
	mapped_file_unref(file);
	image_unref(image);
	symbolizer_free(symbolizer);
}

static void kernel_locations_are_resolved(void **state)
{
	const struct symbolizer_options options = { .sysroot = fixture_directory() };
	struct symbolizer *symbolizer;
	struct mapped_file *kernel;
	struct location *location;
	struct window *window;

	(void)state;
	fixture_run("mkdir -p proc");
	fixture_write("proc/kallsyms", "ffffffff9a200000 T _text\nffffffff9a200100 T do_work\n"
				       "ffffffff9a400000 B _end\n");
	assert_int_equal(symbolizer_new(&options, &symbolizer), 0);
	kernel = symbolizer_kernel(symbolizer);
	assert_int_equal(kernel->kind, OBJECT_KERNEL);
	location = location_new(kernel, 0xffffffff9a200110, FRAME_KERNEL, true);
	window = new_window(NULL, &location, 1);
	symbolizer_resolve(symbolizer, window);
	assert_string_equal(name_of(location), "do_work");
	expect_source(symbolizer, SOURCE_KERNEL, 1);
	assert_int_equal(location->address, 0);
	assert_ptr_equal(location->object, mapped_file_object(kernel));
	assert_int_equal(window->counts[0].named, 3);
	free_window(window);
	location_unref(location);
	mapped_file_unref(kernel);
	symbolizer_free(symbolizer);
}

static void tables_are_evicted_and_names_stay(void **state)
{
	enum { COUNT = 40 };
	struct pool *pool = pool_get(POOL_SYMBOLS);
	struct symbolizer *symbolizer = new_symbolizer();
	struct image *image = image_new(&files, (uint32_t)getpid(), 0, "test");
	struct mapped_file *mapped[COUNT];
	struct location *locations[COUNT];
	uint64_t offset = offset_of("runner", "own_work");
	size_t limit = pool->limit;
	struct symbolizer_stats stats;
	struct window *window;

	(void)state;
	symbolizer_see_image(symbolizer, image, NULL);
	for (int i = 0; i < COUNT; i++) {
		char name[32];

		snprintf(name, sizeof(name), "copy%d", i);
		fixture_run("cp runner %s", name);
		mapped[i] = file_of(fixture_path(name));
		symbolizer_see_file(symbolizer, image, mapped[i]);
		locations[i] = location_new(mapped[i], offset, FRAME_NATIVE, false);
	}
	/* room for about ten tables */
	pool->limit = atomic_load(&pool->used) + 20 * 1024;
	window = new_window(image, locations, COUNT);
	symbolizer_resolve(symbolizer, window);
	for (int i = 0; i < COUNT; i++) {
		assert_string_equal(name_of(locations[i]), "own_work");
		/* one Function for all */
		assert_ptr_equal(locations[i]->lines[0].function, locations[0]->lines[0].function);
	}
	assert_true(atomic_load(&pool->used) <= pool->limit);
	symbolizer_stats(symbolizer, &stats);
	assert_true(stats.evicted > 0);
	assert_int_equal(stats.lookups, COUNT);
	assert_int_equal(stats.named, COUNT);
	/* what is resolved is not touched again */
	symbolizer_resolve(symbolizer, window);
	symbolizer_stats(symbolizer, &stats);
	assert_int_equal(stats.lookups, COUNT);
	/* a quarter is left for the next window's Locations, as far as tables can give it */
	pool->limit = atomic_load(&pool->used) + 4096;
	symbolizer_resolve(symbolizer, window);
	symbolizer_stats(symbolizer, &stats);
	assert_int_equal(stats.evicted, COUNT);
	pool->limit = limit;
	for (int i = 0; i < COUNT; i++) {
		location_unref(locations[i]);
		mapped_file_unref(mapped[i]);
	}
	free_window(window);
	image_unref(image);
	symbolizer_free(symbolizer);
}

static void descriptors_are_bounded_and_deleted_names_saved(void **state)
{
	enum { COUNT = OBJECTS_FDS_MAX + 20 };
	struct mount_namespace_table *spaces;
	struct image *image = image_new(&files, (uint32_t)getpid(), 0, "test");
	struct object_symbols own, debug;
	struct mapped_file *first = NULL, *file;
	struct objects *objects;
	struct opener *opener;
	struct parser *parser;
	struct names *names;

	(void)state;
	assert_int_equal(mount_namespace_table_new("", &spaces), 0);
	assert_int_equal(names_new(NULL, &names), 0);
	assert_int_equal(opener_new(&opener), 0);
	assert_int_equal(parser_new(&parser), 0);
	assert_int_equal(objects_new(spaces, names, opener, parser, &objects), 0);
	fixture_run("mkdir many && for i in $(seq %d); do cp runner many/$i; done", COUNT);
	for (int i = 1; i <= COUNT; i++) {
		char name[32];

		snprintf(name, sizeof(name), "many/%d", i);
		file = file_of(fixture_path(name));
		objects_see(objects, image, file);
		if (i == 1)
			fixture_run("rm many/1");
		if (i == 1)
			first = file;
		else
			mapped_file_unref(file);
		assert_true(objects_fd_count(objects) <= OBJECTS_FDS_MAX);
	}
	assert_int_equal(objects_fd_count(objects), OBJECTS_FDS_MAX);
	/* its descriptor was the first to go, and its path is gone: names were kept */
	assert_int_equal(objects_symbols(objects, mapped_file_object(first), 0, &own, &debug), 0);
	assert_true(own.symtab->count > 0);
	/* what nobody holds is forgotten with its descriptor; what is held stays */
	objects_trim(objects, 0);
	assert_int_equal(objects_fd_count(objects), 0);
	assert_int_equal(objects_stats(objects)->evicted, COUNT - 1);
	assert_int_equal(mapped_file_object(first)->state, OBJECT_READY);
	mapped_file_unref(first);
	image_unref(image);
	objects_free(objects);
	parser_free(parser);
	opener_free(opener);
	names_free(names);
	mount_namespace_table_free(spaces);
}

static void a_file_is_opened_again_only_if_it_is_the_same(void **state)
{
	struct mount_namespace_table *spaces;
	struct image *image = image_new(&files, (uint32_t)getpid(), 0, "test");
	struct object_symbols own, debug;
	struct mapped_file *kept, *changed;
	struct objects *objects;
	struct opener *opener;
	struct parser *parser;
	struct names *names;

	(void)state;
	assert_int_equal(mount_namespace_table_new("", &spaces), 0);
	assert_int_equal(names_new(NULL, &names), 0);
	assert_int_equal(opener_new(&opener), 0);
	assert_int_equal(parser_new(&parser), 0);
	assert_int_equal(objects_new(spaces, names, opener, parser, &objects), 0);
	fixture_run("cp runner again1 && cp runner again2");
	kept = file_of(fixture_path("again1"));
	changed = file_of(fixture_path("again2"));
	objects_see(objects, image, kept);
	objects_see(objects, image, changed);
	objects_trim(objects, 0);
	assert_int_equal(objects_fd_count(objects), 0);
	/*
	 * another link changes the ctime but not the content; writing changes both, not the inode
	 */
	fixture_run("ln again1 link1 && printf X | dd of=again2 conv=notrunc status=none");
	assert_int_equal(objects_symbols(objects, mapped_file_object(kept), 0, &own, &debug), 0);
	assert_true(own.symtab->count > 0);
	assert_int_equal(objects_symbols(objects, mapped_file_object(changed), 0, &own, &debug),
			 -ESTALE);
	mapped_file_unref(kept);
	mapped_file_unref(changed);
	image_unref(image);
	objects_free(objects);
	parser_free(parser);
	opener_free(opener);
	names_free(names);
	mount_namespace_table_free(spaces);
}

static void services_are_found_in_environments(void **state)
{
	static const struct {
		const char *environment;
		size_t size;
		const char *service;
	} cases[] = {
#define CASE(text, expected) { text, sizeof(text), expected }
		CASE("PATH=/bin\0OTEL_SERVICE_NAME=shop\0X=1", "shop"),
		CASE("OTEL_RESOURCE_ATTRIBUTES=a=b, service.name = till%201 ,c=d", "till 1"),
		CASE("OTEL_RESOURCE_ATTRIBUTES=service.name=no\0OTEL_SERVICE_NAME=yes", "yes"),
		CASE("OTEL_RESOURCE_ATTRIBUTES=service.names=no,my.service.name=no", NULL),
		CASE("OTEL_RESOURCE_ATTRIBUTES=service.name", NULL),
		CASE("OTEL_RESOURCE_ATTRIBUTES=service.name=,", NULL),
		CASE("OTEL_RESOURCE_ATTRIBUTES=,,=,=,", NULL),
		CASE("OTEL_RESOURCE_ATTRIBUTES=service.name=%", "%"),
		CASE("OTEL_RESOURCE_ATTRIBUTES=service.name=%4", "%4"),
		CASE("OTEL_RESOURCE_ATTRIBUTES=service.name=%41%zz", "A%zz"),
		CASE("OTEL_SERVICE_NAME=\0OTEL_RESOURCE_ATTRIBUTES=service.name=x", "x"),
		CASE("NOTEL_SERVICE_NAME=a", NULL),
		CASE("OTEL_SERVICE_NAME=b\xff", "b?"),
		CASE("", NULL),
#undef CASE
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *service = details_service_name(cases[i].environment, cases[i].size);

		if (!cases[i].service != !service ||
		    (service && strcmp(service, cases[i].service)))
			fail_msg("case %zu: %s", i, service ? service : "none");
		free(service);
	}
}

static void of_itself_a_process_may_say_some(void **state)
{
	static const char environment[] =
		"OTEL_RESOURCE_ATTRIBUTES_X=service.version=0\0"
		"OTEL_RESOURCE_ATTRIBUTES=service.name=no,deployment.environment.name=test%20lab,"
		"host.name=no, service.version=1.2 ,service.names=s,k8s.namespace.name=shop,process.pid=1,"
		"service.bad=%4,=,k8s.none,deployment";
	char many[4096] = "OTEL_RESOURCE_ATTRIBUTES=";
	char *text = details_attributes(environment, sizeof(environment));

	(void)state;
	assert_string_equal(text, "deployment.environment.name=test%20lab,service.version=1.2 ,"
				  "service.names=s,k8s.namespace.name=shop");
	free(text);
	assert_null(details_attributes("OTEL_RESOURCE_ATTRIBUTES=a=b", 29));
	for (int i = 0; i < 100; i++)
		strcat(many, "k8s.x=y,");
	text = details_attributes(many, sizeof(many));
	assert_int_equal(strlen(text), DETAILS_MAX_ATTRIBUTES * strlen("k8s.x=y,") - 1);
	free(text);
	strcpy(many, "OTEL_RESOURCE_ATTRIBUTES=k8s.x=");
	memset(many + strlen(many), 'y', 2048);
	assert_null(details_attributes(many, sizeof(many)));
}

static void the_command_line_is_a_choice(void **state)
{
	const struct symbolizer_options options = { .with_command_line = true };
	const char *path = fixture_path("runner");
	struct symbolizer *symbolizer;
	pid_t pid = start(path, NULL);
	struct image *image = image_new(&files, (uint32_t)pid, 0, "runner");
	char expected[PATH_MAX + 16];

	(void)state;
	assert_int_equal(symbolizer_new(&options, &symbolizer), 0);
	symbolizer_see_image(symbolizer, image, NULL);
	snprintf(expected, sizeof(expected), "%s --secret", path);
	assert_string_equal(image_details(image)->command_line, expected);
	assert_int_equal(image_details(image)->pid_in_namespace, 0);
	stop(pid);
	image_unref(image);
	symbolizer_free(symbolizer);
}

static void a_pid_namespace_has_pids_of_its_own(void **state)
{
	struct symbolizer *symbolizer = new_symbolizer();
	struct image *image;
	int ready[2], child;
	pid_t outer;

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root for a pid namespace\n");
		symbolizer_free(symbolizer);
		skip();
	}
	assert_int_equal(pipe(ready), 0);
	outer = fork();
	if (outer == 0) {
		if (unshare(CLONE_NEWPID) < 0)
			_exit(1);
		child = fork();
		if (child == 0)
			for (;;)
				pause();
		if (write(ready[1], &child, sizeof(child)) < 0)
			_exit(1);
		waitpid(child, NULL, 0);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &child, sizeof(child)), sizeof(child));
	image = image_new(&files, (uint32_t)child, 0, "test");
	symbolizer_see_image(symbolizer, image, NULL);
	assert_int_equal(image_details(image)->pid_in_namespace, 1);
	kill(child, SIGKILL);
	waitpid(outer, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	image_unref(image);
	symbolizer_free(symbolizer);
}

/* The last one: whatever was charged by the others was given back. */
static void pools_are_empty(void **state)
{
	(void)state;
	hash_table_done(&files);
	assert_int_equal(atomic_load(&pool_get(POOL_SYMBOLS)->used), 0);
	assert_int_equal(atomic_load(&pool_get(POOL_PROCESSES)->used), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_running_program_has_names),
		cmocka_unit_test(a_program_has_not_the_name_of_the_next),
		cmocka_unit_test(a_stripped_program_has_functions_without_names),
		cmocka_unit_test(a_debug_file_has_the_names),
		cmocka_unit_test(a_debug_link_leads_to_the_names),
		cmocka_unit_test(a_long_debug_file_has_the_names_later),
		cmocka_unit_test(a_debug_link_by_the_build_id_is_no_other_place),
		cmocka_unit_test(lines_and_inlined_functions_are_a_choice),
		cmocka_unit_test(lines_are_read_from_a_file_that_was_closed),
		cmocka_unit_test(lines_that_cannot_be_had_are_put_off_or_given_up),
		cmocka_unit_test(sections_too_large_together_are_given_up),
		cmocka_unit_test(a_hurried_window_takes_the_names_that_are_there),
		cmocka_unit_test(a_window_does_not_wait_for_names),
		cmocka_unit_test(a_hurry_ends_a_long_question),
		cmocka_unit_test(at_the_end_there_is_a_minute),
		cmocka_unit_test(what_is_new_in_a_window_waits_for_credit),
		cmocka_unit_test(a_table_that_lacks_functions_is_read_again),
		cmocka_unit_test(a_cached_frame_is_named_once_its_table_is_whole),
		cmocka_unit_test(a_recording_waits_for_a_parser_without_a_cpu),
		cmocka_unit_test(a_hurry_reaches_what_others_ask),
		cmocka_unit_test(a_turn_takes_no_time_from_names),
		cmocka_unit_test(what_came_too_late_is_the_first_of_the_next_window),
		cmocka_unit_test(who_took_the_least_time_comes_first),
		cmocka_unit_test(what_is_taken_counts_at_once),
		cmocka_unit_test(what_the_end_of_a_window_refuses_is_late),
		cmocka_unit_test(an_unannounced_program_is_looked_at_for_its_sample),
		cmocka_unit_test(a_program_without_an_answer_is_looked_at_for_its_sample),
		cmocka_unit_test(what_a_dead_parser_did_not_name_is_put_off),
		cmocka_unit_test(what_an_unlinked_file_lacks_is_read_through_its_process),
		cmocka_unit_test(names_of_a_file_that_cannot_be_opened_now_come_later),
		cmocka_unit_test(a_part_of_a_debug_file_that_is_gone_is_all_of_it),
		cmocka_unit_test(mini_debug_information_has_the_names),
		cmocka_unit_test(mini_debug_information_is_given_up),
		cmocka_unit_test(sizeless_names_of_mini_debug_information_swallow_nothing),
		cmocka_unit_test(a_debug_file_is_sought_again),
		cmocka_unit_test(a_program_that_is_gone_has_names),
		cmocka_unit_test(a_fork_that_is_gone_is_its_parents_program),
		cmocka_unit_test(a_fork_that_has_moved_on_is_its_parents_program),
		cmocka_unit_test(a_deleted_file_is_reached_through_its_process),
		cmocka_unit_test(another_file_at_the_path_gives_no_names),
		cmocka_unit_test(a_file_that_was_gone_is_found_later),
		cmocka_unit_test(an_unannounced_file_is_opened_for_its_sample),
		cmocka_unit_test(what_is_no_program_does_no_harm),
		cmocka_unit_test(the_vdso_has_names), cmocka_unit_test(the_vdso_has_names_without_ranges),
		cmocka_unit_test(kernel_locations_are_resolved),
		cmocka_unit_test(tables_are_evicted_and_names_stay),
		cmocka_unit_test(descriptors_are_bounded_and_deleted_names_saved),
		cmocka_unit_test(a_file_is_opened_again_only_if_it_is_the_same),
		cmocka_unit_test(services_are_found_in_environments),
		cmocka_unit_test(of_itself_a_process_may_say_some),
		cmocka_unit_test(the_command_line_is_a_choice),
		cmocka_unit_test(a_pid_namespace_has_pids_of_its_own),
		cmocka_unit_test(pools_are_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
