// SPDX-License-Identifier: Apache-2.0
/* Names of code that a runtime compiles: which files are believed, and what they name when they grow. */
#include "fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/pool.h"
#include "process/scan.h"
#include "resolve/symbolizer.h"

#define AT 0x7f0012340000ULL

static struct hash_table files = { .index.pool = POOL_PROCESSES };

/* A process without a program of its own, its image and its memory. */
struct jitted {
	struct symbolizer *symbolizer;
	struct image *image;
	struct mapped_file *memory;
	pid_t pid;
	char map[64];
};

static uint64_t start_time_of(pid_t pid)
{
	char path[32];
	uint64_t start;
	int proc;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(proc >= 0);
	assert_int_equal(process_start_time(proc, &start), 0);
	close(proc);
	return start;
}

static struct jitted begin_with(pid_t pid, unsigned int names_ms)
{
	const struct symbolizer_options options = { .with_kernel_addresses = true, .names_ms = names_ms };
	struct jitted jitted = { .pid = pid };

	assert_true(pid > 0);
	assert_int_equal(symbolizer_new(&options, &jitted.symbolizer), 0);
	jitted.image = image_new(&files, (uint32_t)pid, 0, "jitted");
	jitted.image->start_time = start_time_of(pid);
	jitted.memory = mapped_file_new(OBJECT_ANONYMOUS, "//anon");
	snprintf(jitted.map, sizeof(jitted.map), "/tmp/perf-%d.map", pid);
	/* of one that had its number, and was killed */
	unlink(jitted.map);
	symbolizer_see_image(jitted.symbolizer, jitted.image, NULL);
	return jitted;
}

static struct jitted begin(pid_t pid)
{
	return begin_with(pid, 0);
}

static pid_t start(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

static void stop(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void end(struct jitted *jitted)
{
	unlink(jitted->map);
	symbolizer_free(jitted->symbolizer);
	mapped_file_unref(jitted->memory);
	image_unref(jitted->image);
}

static void write_file(const char *path, int flags, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* What a window's sample at @address is called, and its runtime. */
static enum frame_runtime ask(struct jitted *jitted, uint64_t address, char name[CODE_NAME_MAX])
{
	struct location *location = location_new(jitted->memory, address, FRAME_NATIVE, false);
	struct stack *stack = calloc(1, sizeof(*stack) + sizeof(stack->locations[0]));
	struct window_counts counts = { 0 };
	struct window_sample sample = { .image = jitted->image, .stack = stack, .count = 1 };
	struct window window = {
		.counts = &counts, .samples = &sample, .sample_count = 1,
		.locations = &location, .location_count = 1,
	};
	enum frame_runtime runtime;

	stack->count = 1;
	stack->locations[0] = location;
	symbolizer_resolve(jitted->symbolizer, &window);
	assert_true(location->is_resolved);
	snprintf(name, CODE_NAME_MAX, "%s", location->line_count ? location->lines[0].function->name : "");
	/* by the next window something else may be there */
	assert_true(location->is_put_off);
	assert_int_equal(location->address, address);
	runtime = location->runtime;
	location_unref(location);
	free(stack);
	return runtime;
}

static uint64_t named_by(const struct jitted *jitted, enum name_source source)
{
	struct symbolizer_stats stats;

	symbolizer_stats(jitted->symbolizer, &stats);
	return stats.sources[source];
}

static struct jit_stats stats_of(const struct jitted *jitted)
{
	struct symbolizer_stats stats;

	symbolizer_stats(jitted->symbolizer, &stats);
	return stats.jit;
}

/* Maps are looked at once a second. */
static void wait_for_a_look(void)
{
	usleep(1100000);
}

/* A stall takes all the time that reading has in a window: then it has its name in a later one. */
static enum frame_runtime expect(struct jitted *jitted, uint64_t address, const char *name)
{
	char found[CODE_NAME_MAX];
	enum frame_runtime runtime = ask(jitted, address, found);

	for (int seconds = 20; strcmp(found, name) && seconds--;) {
		wait_for_a_look();
		runtime = ask(jitted, address, found);
	}
	assert_string_equal(found, name);
	return runtime;
}

/* Of a map with more functions than are kept. A busy host takes several windows to read so many. */
static void read_until_some_are_dropped(struct jitted *jitted)
{
	const uint64_t before = stats_of(jitted).dropped;
	char name[CODE_NAME_MAX];

	ask(jitted, AT, name);
	for (int seconds = 60; stats_of(jitted).dropped == before && seconds--;) {
		wait_for_a_look();
		ask(jitted, AT, name);
	}
	assert_true(stats_of(jitted).dropped > before);
}

static void a_perf_map_names_what_it_has_and_what_comes(void **state)
{
	struct jitted jitted = begin(start());
	struct jit_stats stats;

	(void)state;
	write_file(jitted.map, 0,
		   "7f0012340000 100 LazyCompile:*hot /srv/app.js:7:3\nno line\n7f0012340100 20 _ZN3foo3barEv\n");
	assert_int_equal(expect(&jitted, AT + 0xff, "LazyCompile:*hot /srv/app.js:7:3"), RUNTIME_V8JS);
	assert_int_equal(expect(&jitted, AT + 0x100, "foo::bar"), RUNTIME_NATIVE);
	expect(&jitted, AT + 0x120, "");
	assert_int_equal(named_by(&jitted, SOURCE_PERF_MAP), 2);
	assert_int_equal(named_by(&jitted, SOURCE_NONE), 1);
	stats = stats_of(&jitted);
	assert_int_equal(stats.processes, 1);
	assert_int_equal(stats.functions, 2);
	assert_int_equal(stats.bad_entries, 1);
	assert_true(stats.bytes > 0);

	write_file(jitted.map, O_APPEND, "7f0012340080 a0 py::later:/srv/app.py\n7f0012350000 10 unfini");
	wait_for_a_look();
	assert_int_equal(expect(&jitted, AT + 0x7f, "LazyCompile:*hot /srv/app.js:7:3"), RUNTIME_V8JS);
	assert_int_equal(expect(&jitted, AT + 0x80, "py::later:/srv/app.py"), RUNTIME_CPYTHON);
	expect(&jitted, AT + 0x110, "py::later:/srv/app.py");
	expect(&jitted, AT + 0x10000, "");
	write_file(jitted.map, O_APPEND, "shed\n");
	wait_for_a_look();
	expect(&jitted, AT + 0x10000, "unfinished");

	/* begun anew, as by a runtime that writes all of it each time */
	write_file(jitted.map, O_TRUNC, "7f0012340000 10 anew\n");
	wait_for_a_look();
	expect(&jitted, AT, "anew");
	expect(&jitted, AT + 0x80, "");
	stop(jitted.pid);
	end(&jitted);
}

/* One that has become a program of this name when it returns. */
static pid_t start_program(const char *name)
{
	int ends[2];
	char byte;
	pid_t pid;

	fixture_run("cp /bin/sleep %s", name);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		execl(fixture_path(name), name, "1000", NULL);
		_exit(1);
	}
	close(ends[1]);
	/* exec closes the other end */
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
	return pid;
}

/* By the program that runs, before what a function is called. */
static void the_runtime_is_that_of_the_program(void **state)
{
	static const struct {
		const char *program, *name;
		enum frame_runtime runtime;
	} cases[] = {
		{ "java", "Interpreter", RUNTIME_JVM },
		{ "java", "int Main.work(int)", RUNTIME_JVM },
		{ "node", "Builtin:ArrayMap", RUNTIME_V8JS },
		{ "node", "JS:*hot /srv/app.js:7:3", RUNTIME_V8JS },
		{ "dotnet", "void [App] Main::Work()[Tier1]", RUNTIME_DOTNET },
		{ "beam.smp", "$lists:map/2", RUNTIME_BEAM },
		{ "python3", "py::work:/srv/app.py", RUNTIME_CPYTHON },
		{ "javac", "Interpreter", RUNTIME_NATIVE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct jitted jitted = begin(start_program(cases[i].program));
		enum frame_runtime runtime;
		char line[128];

		snprintf(line, sizeof(line), "7f0012340000 100 %s\n", cases[i].name);
		write_file(jitted.map, 0, line);
		runtime = expect(&jitted, AT + 0x80, cases[i].name);
		stop(jitted.pid);
		end(&jitted);
		assert_int_equal(runtime, cases[i].runtime);
	}
}

static void a_process_that_has_exited_has_names(void **state)
{
	struct jitted jitted = begin(start());

	(void)state;
	write_file(jitted.map, 0, "0x00007f0012340000 0x10 void Main.run()\n");
	stop(jitted.pid);
	expect(&jitted, AT, "void Main.run()");
	/* what has been read outlives the file, too */
	unlink(jitted.map);
	wait_for_a_look();
	expect(&jitted, AT, "void Main.run()");
	end(&jitted);
}

/* It stays without names, and says so once. */
static void expect_refused(struct jitted *jitted)
{
	expect(jitted, AT, "");
	assert_int_equal(stats_of(jitted).refused_files, 1);
	assert_int_equal(stats_of(jitted).functions, 0);
	stop(jitted->pid);
	end(jitted);
}

static void only_the_process_own_regular_file_is_read(void **state)
{
	static const char text[] = "7f0012340000 10 lie\n";
	struct timespec before_boot[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct jitted jitted = begin(start());

	(void)state;
	fixture_write("map", text);
	assert_int_equal(symlink(fixture_path("map"), jitted.map), 0);
	expect_refused(&jitted);

	jitted = begin(start());
	assert_int_equal(mkfifo(jitted.map, 0600), 0);
	expect_refused(&jitted);

	jitted = begin(start());
	assert_int_equal(mkdir(jitted.map, 0700), 0);
	expect(&jitted, AT, "");
	assert_int_equal(stats_of(&jitted).refused_files, 1);
	rmdir(jitted.map);
	stop(jitted.pid);
	end(&jitted);

	/* left behind by another process that had this number */
	jitted = begin(start());
	write_file(jitted.map, 0, text);
	assert_int_equal(utimensat(AT_FDCWD, jitted.map, before_boot, 0), 0);
	expect_refused(&jitted);
}

static void another_users_file_is_not_read(void **state)
{
	static const char text[] = "7f0012340000 10 lie\n";
	struct jitted jitted;

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root for another user's file\n");
		skip();
	}
	jitted = begin(start());
	write_file(jitted.map, 0, text);
	assert_int_equal(chown(jitted.map, 12345, 12345), 0);
	expect_refused(&jitted);
}

/* Both its pid and its /tmp are its own. */
static void a_container_has_its_own(void **state)
{
	struct jitted jitted;
	int ready[2];
	pid_t outer;
	pid_t pid;

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root for namespaces\n");
		skip();
	}
	assert_int_equal(pipe(ready), 0);
	outer = fork();
	if (outer == 0) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
			_exit(1);
		pid = fork();
		if (pid)
			_exit(write(ready[1], &pid, sizeof(pid)) == sizeof(pid) ? 0 : 1);
		if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("none", "/tmp", "tmpfs", 0, NULL) < 0)
			_exit(1);
		write_file("/tmp/perf-1.map", 0, "7f0012340000 10 contained\n");
		pid = 0;
		if (write(ready[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		pause();
		_exit(0);
	}
	pid = 0;
	for (int i = 0; i < 2; i++) {
		pid_t said;

		assert_int_equal(read(ready[0], &said, sizeof(said)), sizeof(said));
		pid = said ? said : pid;
	}
	assert_int_equal(waitpid(outer, NULL, 0), outer);
	jitted = begin(pid);
	expect(&jitted, AT, "contained");
	assert_int_equal(kill(pid, SIGKILL), 0);
	end(&jitted);
	close(ready[0]);
	close(ready[1]);
}

static void put(int fd, const void *bytes, size_t size)
{
	assert_int_equal(write(fd, bytes, size), size);
}

static void a_mapped_jitdump_names_its_code(void **state)
{
	static const uint32_t header[] = { 0x4a695444, 1, 40, 62, 0, 1, 0, 0, 0, 0 };
	static const uint32_t prefix[] = { 0, 56 + 8 + 16, 0, 0, 1, 1 };
	static const uint64_t load[] = { AT, AT, 0x100, 1 };
	struct jitted jitted = begin(start());
	struct mapped_file *file;
	struct stat st;
	int fd;

	(void)state;
	fd = open(fixture_path("jit-17.dump"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	put(fd, header, sizeof(header));
	put(fd, prefix, sizeof(prefix));
	put(fd, load, sizeof(load));
	put(fd, "js_code", 8);
	put(fd, "0123456789abcdef", 16);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	file = mapped_file_new(OBJECT_FILE, fixture_path("jit-17.dump"));
	file->major = major(st.st_dev);
	file->minor = minor(st.st_dev);
	file->inode = st.st_ino;
	expect(&jitted, AT + 0x10, "");
	symbolizer_see_file(jitted.symbolizer, jitted.image, file);
	expect(&jitted, AT + 0x10, "js_code");
	expect(&jitted, AT + 0x100, "");
	assert_int_equal(stats_of(&jitted).functions, 1);
	assert_int_equal(named_by(&jitted, SOURCE_JITDUMP), 1);
	assert_int_equal(named_by(&jitted, SOURCE_PERF_MAP), 0);
	stop(jitted.pid);
	end(&jitted);
	mapped_file_unref(file);
}

/* Several processes that each say as much as one may. */
static void what_all_say_is_bounded(void **state)
{
	enum { PROCESSES = 9 };
	struct jitted jitted = begin(start());
	struct image *images[PROCESSES];
	pid_t pids[PROCESSES];
	struct jit_stats stats;

	(void)state;
	for (int i = 0; i < PROCESSES; i++) {
		struct jitted other = jitted;
		char path[64];
		FILE *map;

		pids[i] = start();
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", pids[i]);
		map = fopen(path, "w");
		for (uint32_t j = 0; j < CODE_MAX + 1000; j++)
			fprintf(map, "%llx 10 function_%u\n", AT + j * 0x20ULL, j);
		fclose(map);
		images[i] = image_new(&files, (uint32_t)pids[i], 0, "full");
		images[i]->start_time = start_time_of(pids[i]);
		symbolizer_see_image(jitted.symbolizer, images[i], NULL);
		other.image = images[i];
		read_until_some_are_dropped(&other);
		expect(&other, AT + CODE_MAX * 0x20ULL, "function_65536");
		unlink(path);
		stats = stats_of(&jitted);
		assert_true(stats.bytes <= JIT_MAX_BYTES);
		assert_true(stats.functions <= JIT_MAX_BYTES / sizeof(struct code));
	}
	assert_true(stats.processes < PROCESSES);
	for (int i = 0; i < PROCESSES; i++) {
		stop(pids[i]);
		image_unref(images[i]);
	}
	stop(jitted.pid);
	end(&jitted);
}

enum { LOCATIONS = 60000 };

/* A window with a sample that is in all functions of a map. How many of them have names. */
static size_t name_all(struct jitted *jitted)
{
	struct location **locations = calloc(LOCATIONS, sizeof(*locations));
	struct stack *stack = calloc(1, sizeof(*stack) + LOCATIONS * sizeof(*locations));
	struct window_counts counts = { 0 };
	struct window_sample sample = { .image = jitted->image, .stack = stack, .count = 1 };
	struct window window = {
		.counts = &counts, .samples = &sample, .sample_count = 1,
		.locations = locations, .location_count = LOCATIONS,
	};
	size_t named = 0;

	for (uint32_t i = 0; i < LOCATIONS; i++)
		stack->locations[i] = locations[i] = location_new(jitted->memory, AT + i, FRAME_NATIVE, false);
	stack->count = LOCATIONS;
	symbolizer_resolve(jitted->symbolizer, &window);
	for (uint32_t i = 0; i < LOCATIONS; i++) {
		named += locations[i]->line_count;
		assert_true(locations[i]->is_put_off);
		location_unref(locations[i]);
	}
	free(locations);
	free(stack);
	return named;
}

/* A program may be in all of its functions at once: their names take a part of the time alone. */
static void what_names_take_is_bounded(void **state)
{
	struct jitted jitted = begin(start());
	struct symbolizer_stats before, stats;
	int seconds = 60;
	size_t named;
	FILE *map;

	(void)state;
	map = fopen(jitted.map, "w");
	for (uint32_t i = 0; i < LOCATIONS; i++)
		fprintf(map, "%llx 1 function_%u\n", AT + i, i);
	fclose(map);
	/*
	 * On a busy host a part of the map is read in the next window, or after names were asked for: of that it is not
	 * known yet that it has names.
	 */
	do {
		symbolizer_stats(jitted.symbolizer, &before);
		named = name_all(&jitted);
		symbolizer_stats(jitted.symbolizer, &stats);
		assert_true(named + stats.put_off - before.put_off <= LOCATIONS);
		wait_for_a_look();
	} while (before.jit.functions < LOCATIONS && seconds--);
	assert_true(stats.put_off > before.put_off);
	assert_int_equal(named + stats.put_off - before.put_off, LOCATIONS);
	stop(jitted.pid);
	end(&jitted);
}

/* The last one: whatever was charged by the others was given back. */
static void pools_are_empty(void **state)
{
	(void)state;
	hash_table_done(&files);
	assert_int_equal(atomic_load(&pool_get(POOL_SYMBOLS)->used), 0);
	assert_int_equal(atomic_load(&pool_get(POOL_PROCESSES)->used), 0);
}

/* A slow host has none but late windows. */
static void a_window_that_comes_late_has_names(void **state)
{
	struct jitted jitted = begin_with(start(), 300);

	(void)state;
	write_file(jitted.map, 0, "7f0012340000 100 late\n");
	expect(&jitted, AT, "late");
	stop(jitted.pid);
	end(&jitted);
}

/* Even where files took all of the time, unless somebody is in a hurry. */
static void one_process_after_the_other_is_read_without_time(void **state)
{
	struct jitted jitted[] = { begin(start()), begin(start()), begin(start()) };
	struct opener *opener = symbolizer_opener(jitted[0].symbolizer);
	struct parser *parser = symbolizer_parser(jitted[0].symbolizer);
	struct mount_namespace_table *spaces;
	struct deadline deadline = { 0 };
	struct jits *jits;

	(void)state;
	assert_int_equal(mount_namespace_table_new("", &spaces), 0);
	assert_int_equal(jits_new(opener, parser, spaces, NULL, &jits), 0);
	for (size_t i = 0; i < ARRAY_SIZE(jitted); i++)
		write_file(jitted[i].map, 0, "7f0012340000 100 waiting\n");
	deadline_set(&deadline, clock_monotonic());
	for (size_t window = 1; window <= ARRAY_SIZE(jitted); window++) {
		int seconds = 20;

		do {
			jits_begin(jits, &deadline);
			for (size_t i = 0; i < ARRAY_SIZE(jitted); i++)
				assert_non_null(jits_want(jits, jitted[i].image));
			deadline.is_over = true;
			jits_refresh(jits);
			assert_int_equal(jits_stats(jits)->functions, window - 1);
			deadline.is_over = false;
			jits_refresh(jits);
			/* what little time it has may go by in a stall */
		} while (jits_stats(jits)->functions < window && seconds-- && !sleep(1));
		assert_int_equal(jits_stats(jits)->functions, window);
	}
	parser_until(parser, NULL);
	opener_until(opener, NULL);
	jits_free(jits);
	mount_namespace_table_free(spaces);
	for (size_t i = 0; i < ARRAY_SIZE(jitted); i++) {
		stop(jitted[i].pid);
		end(&jitted[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_that_comes_late_has_names),
		cmocka_unit_test(one_process_after_the_other_is_read_without_time),
		cmocka_unit_test(a_perf_map_names_what_it_has_and_what_comes),
		cmocka_unit_test(the_runtime_is_that_of_the_program),
		cmocka_unit_test(a_process_that_has_exited_has_names),
		cmocka_unit_test(only_the_process_own_regular_file_is_read),
		cmocka_unit_test(another_users_file_is_not_read),
		cmocka_unit_test(a_container_has_its_own),
		cmocka_unit_test(a_mapped_jitdump_names_its_code),
		cmocka_unit_test(what_all_say_is_bounded),
		cmocka_unit_test(what_names_take_is_bounded),
		cmocka_unit_test(pools_are_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
