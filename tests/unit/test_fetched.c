// SPDX-License-Identifier: Apache-2.0
/* Debug files of a server while sampling goes on: there, absent, wrong, late, and a server that is not there. */
#include "fixture.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/clock.h"
#include "base/pool.h"
#include "base/work.h"
#include "resolve/fetched.h"
#include "resolve/object_cache.h"
#include "web/listener.h"

enum { PATIENCE_MS = 60000, STEP_MS = 5 };

static struct hash_table files = { .index.pool = POOL_PROCESSES };
static char build_id[41];

static const char program[] =
	"__attribute__((noinline, noipa)) static int own_work(int x) { return x * 3; }\n"
	"int main(int c, char **v) { (void)v; return own_work(c); }\n";

/* What is asked for, and a server that gives the same to everybody. */
struct server {
	struct listener *listener;
	uint8_t *data;			/* NULL: it has none */
	size_t size;
	char url[128];
	_Atomic unsigned int asked;
	char path[256];			/* of the first question */
};

static void give(void *ctx, const char *path, const struct web_request *request _unused_,
		 struct web_answer *answer)
{
	struct server *server = ctx;

	if (!atomic_load(&server->asked))
		snprintf(server->path, sizeof(server->path), "%s", path);
	atomic_fetch_add(&server->asked, 1);
	if (!server->data) {
		answer->status = 404;
		return;
	}
	fwrite(server->data, 1, server->size, answer->body);
}

static void open_server(struct server *server, const char *file)
{
	const struct listener_options options = {
		.address = "localhost:0", .pool = POOL_REPORT, .handler = give, .ctx = server,
	};
	char error[256];

	*server = (struct server){ 0 };
	if (file)
		server->data = fixture_load(fixture_path(file), &server->size);
	assert_int_equal(listener_open(&options, &server->listener, error, sizeof(error)), 0);
	snprintf(server->url, sizeof(server->url), "%s", listener_name(server->listener));
}

static void close_server(struct server *server)
{
	listener_close(server->listener);
	free(server->data);
}

/* All that looks at the stripped program. */
struct bench {
	struct mount_namespace_table *spaces;
	struct opener *opener;
	struct parser *parser;
	struct names *names;
	struct objects *objects;
	struct fetched *fetched;
	struct image *image;
	struct mapped_file *file;
};

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

static void bench_open(struct bench *bench, const char *url, const char *directory)
{
	const struct debuginfod_options options = {
		.url = url, .directory = fixture_path(directory), .seconds = DEBUGINFOD_SECONDS_MAX,
	};

	assert_int_equal(mount_namespace_table_new("", &bench->spaces), 0);
	assert_int_equal(opener_new(&bench->opener), 0);
	assert_int_equal(parser_new(&bench->parser), 0);
	assert_int_equal(names_new(bench->parser, &bench->names), 0);
	assert_int_equal(objects_new(bench->spaces, bench->names, bench->opener, bench->parser,
				     &bench->objects), 0);
	assert_int_equal(fetched_new(&options, &bench->fetched), 0);
	objects_fetch(bench->objects, bench->fetched);
	bench->image = image_new(&files, (uint32_t)getpid(), 0, "test");
	bench->file = file_of(fixture_path("stripped"));
	objects_see(bench->objects, bench->image, bench->file);
	assert_string_equal(mapped_file_object(bench->file)->build_id, build_id);
}

static void bench_close(struct bench *bench)
{
	mapped_file_unref(bench->file);
	image_unref(bench->image);
	objects_free(bench->objects);
	fetched_free(bench->fetched);
	names_free(bench->names);
	parser_free(bench->parser);
	opener_free(bench->opener);
	mount_namespace_table_free(bench->spaces);
	*bench = (struct bench){ 0 };
}

/* Once there is nothing more to wait for: the names of the debug file, or NULL. */
static const struct symtab *await_names(struct bench *bench)
{
	const struct timespec step = { .tv_nsec = STEP_MS * (long)NSEC_PER_MSEC };
	struct object_symbols own, debug;
	int r = OBJECTS_MORE_LATER;

	for (int ms = 0; r == OBJECTS_MORE_LATER && ms < PATIENCE_MS; ms += STEP_MS) {
		r = objects_symbols(bench->objects, mapped_file_object(bench->file), 0, &own, &debug);
		assert_true(r >= 0 && own.symtab);
		if (r)
			nanosleep(&step, NULL);
	}
	assert_int_equal(r, 0);
	assert_int_equal(debug.is_fetched, !!debug.symtab);
	return debug.symtab;
}

static struct fetched_stats stats_of(const struct bench *bench)
{
	struct fetched_stats stats = { 0 };

	fetched_stats(bench->fetched, &stats);
	return stats;
}

static void it_is_asked_for_once_and_names_functions(void **state _unused_)
{
	struct object_symbols own, debug;
	struct server server;
	struct bench bench;
	char wanted[128];

	open_server(&server, "whole.debug");
	bench_open(&bench, server.url, "cache-there");
	assert_int_equal(objects_symbols(bench.objects, mapped_file_object(bench.file), 0, &own, &debug),
			 OBJECTS_MORE_LATER);
	assert_null(debug.symtab);
	assert_true(await_names(&bench)->count > 0);
	assert_false(symtab_is_stripped(await_names(&bench)));
	snprintf(wanted, sizeof(wanted), "/buildid/%s/debuginfo", build_id);
	/* in this order: the path was there before */
	assert_int_equal(server.asked, 1);
	assert_string_equal(server.path, wanted);
	assert_int_equal(stats_of(&bench).server.fetched, 1);
	assert_int_equal(stats_of(&bench).waiting, 0);
	/* its directory is ours to empty: it is fetched again */
	objects_release(bench.objects);
	objects_trim(bench.objects, 0);
	objects_make_room(bench.objects, SIZE_MAX);
	fixture_run("rm cache-there/%s.debug", build_id);
	assert_non_null(await_names(&bench));
	assert_int_equal(server.asked, 2);
	bench_close(&bench);
	/* the next daemon has it without a question */
	close_server(&server);
	bench_open(&bench, server.url, "cache-there");
	assert_non_null(await_names(&bench));
	assert_int_equal(stats_of(&bench).server.from_cache, 1);
	bench_close(&bench);
}

/* The names of a large one stay in it: its table alone names nothing. */
static void names_that_went_with_their_file_are_fetched_again(void **state _unused_)
{
	const struct entry *entry;
	struct server server;
	struct bench bench;

	open_server(&server, "whole.debug");
	bench_open(&bench, server.url, "cache-cleared");
	assert_non_null(await_names(&bench));
	entry = mapped_file_object(bench.file)->symbols;
	entry = entry->debug->symbols;
	free(steal_ptr(entry->symtab->names));
	/* as long as the file is there they are read from it */
	assert_ptr_equal(await_names(&bench), entry->symtab);
	objects_release(bench.objects);
	objects_trim(bench.objects, 0);
	fixture_run("rm cache-cleared/%s.debug", build_id);
	assert_non_null(await_names(&bench)->names);
	assert_int_equal(server.asked, 2);
	bench_close(&bench);
	close_server(&server);
}

static void what_the_server_does_not_have_is_not_asked_for_again(void **state _unused_)
{
	struct server server;
	struct bench bench;

	open_server(&server, NULL);
	bench_open(&bench, server.url, "cache-absent");
	for (int i = 0; i < 3; i++)
		assert_null(await_names(&bench));
	assert_int_equal(server.asked, 1);
	assert_int_equal(stats_of(&bench).server.absent, 1);
	assert_string_equal(stats_of(&bench).last_failed, "");
	bench_close(&bench);
	close_server(&server);
}

static void another_programs_debug_file_names_nothing(void **state _unused_)
{
	struct server server;
	struct bench bench;

	open_server(&server, "other.debug");
	bench_open(&bench, server.url, "cache-wrong");
	assert_null(await_names(&bench));
	assert_null(await_names(&bench));
	assert_int_equal(server.asked, 1);
	assert_non_null(strstr(stats_of(&bench).last_failed, "is not its debug file"));
	fixture_run("! test -e cache-wrong/%s.debug", build_id);
	bench_close(&bench);
	close_server(&server);
}

/* A port of ours where nobody answers: with @backlog < 0 not even connections are taken. */
static int silent_port(int backlog, char url[static 64])
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	if (backlog >= 0)
		assert_int_equal(listen(fd, backlog), 0);
	snprintf(url, 64, "http://127.0.0.1:%u", ntohs(address.sin_port));
	return fd;
}

static void a_server_that_is_down_is_tried_again(void **state _unused_)
{
	const struct timespec step = { .tv_nsec = STEP_MS * (long)NSEC_PER_MSEC };
	struct object_symbols own, debug;
	struct bench bench;
	char url[64];
	int fd = silent_port(-1, url);

	bench_open(&bench, url, "cache-down");
	for (int ms = 0; !stats_of(&bench).server.unreachable && ms < PATIENCE_MS; ms += STEP_MS) {
		assert_int_equal(objects_symbols(bench.objects, mapped_file_object(bench.file), 0, &own,
						 &debug), OBJECTS_MORE_LATER);
		nanosleep(&step, NULL);
	}
	assert_int_equal(stats_of(&bench).server.unreachable, 1);
	assert_non_null(strstr(stats_of(&bench).last_failed, "cannot be reached"));
	assert_int_equal(stats_of(&bench).waiting, 1);
	/* names of its own are there meanwhile */
	assert_int_equal(objects_symbols(bench.objects, mapped_file_object(bench.file), 0, &own, &debug),
			 OBJECTS_MORE_LATER);
	assert_non_null(own.symtab);
	bench_close(&bench);
	close(fd);
}

/* Else this would take the hour that a file may have. */
static void its_end_does_not_wait_for_an_answer(void **state _unused_)
{
	struct object_symbols own, debug;
	struct bench bench;
	char url[64];
	int fd = silent_port(1, url), asked;

	bench_open(&bench, url, "cache-silent");
	assert_int_equal(objects_symbols(bench.objects, mapped_file_object(bench.file), 0, &own, &debug),
			 OBJECTS_MORE_LATER);
	asked = accept(fd, NULL, NULL);
	assert_true(asked >= 0);
	assert_null(work_hung(clock_monotonic() + WORK_SECONDS * NSEC_PER_SEC, NULL));
	assert_string_equal(work_hung(UINT64_MAX, NULL), "fetch");
	bench_close(&bench);
	assert_null(work_hung(UINT64_MAX, NULL));
	fixture_run("! ls cache-silent | grep .");
	close(asked);
	close(fd);
}

static void a_directory_that_cannot_be_made_is_an_error(void **state _unused_)
{
	const struct debuginfod_options options = { .url = "http://localhost", .directory = "/dev/null/x" };
	struct fetched *fetched;

	assert_int_equal(fetched_new(&options, &fetched), -ENOTDIR);
}

static void pools_are_empty(void **state _unused_)
{
	hash_table_done(&files);
	assert_int_equal(pool_get(POOL_SYMBOLS)->used, 0);
	assert_int_equal(pool_get(POOL_PROCESSES)->used, 0);
	assert_int_equal(pool_get(POOL_SYMBOLS)->refused, 0);
}

static int build(void **state _unused_)
{
	fixture_build("whole", "-Wl,--build-id=sha1", program);
	fixture_build("another", "-Wl,--build-id=sha1 -DOTHER", "int main(void) { return 7; }\n");
	snprintf(build_id, sizeof(build_id), "%s",
		 fixture_ask("readelf -n whole | sed -n 's/.*Build ID: //p'"));
	fixture_run("cp whole stripped && strip stripped && objcopy --only-keep-debug whole whole.debug && "
		    "objcopy --only-keep-debug another other.debug");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_asked_for_once_and_names_functions),
		cmocka_unit_test(names_that_went_with_their_file_are_fetched_again),
		cmocka_unit_test(what_the_server_does_not_have_is_not_asked_for_again),
		cmocka_unit_test(another_programs_debug_file_names_nothing),
		cmocka_unit_test(a_server_that_is_down_is_tried_again),
		cmocka_unit_test(its_end_does_not_wait_for_an_answer),
		cmocka_unit_test(a_directory_that_cannot_be_made_is_an_error),
		cmocka_unit_test(pools_are_empty),
	};

	return cmocka_run_group_tests(tests, build, NULL);
}
