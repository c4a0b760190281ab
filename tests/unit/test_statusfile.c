// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "service/statusfile.h"

static char parent[] = "/tmp/stacktap-status-XXXXXX";
static char directory[64];

static int make_parent(void **state _unused_)
{
	if (!mkdtemp(parent))
		return -1;
	snprintf(directory, sizeof(directory), "%s/run", parent);
	return 0;
}

static int remove_parent(void **state _unused_)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", parent);
	return system(command);
}

static void write_status(struct statusfile *file, uint64_t sent)
{
	struct pipeline_stats pipeline = { .counts = { .samples = 200, .complete = 150 },
					   .has_tables = true,
					   .loader.tables = { .failed = 1,
							      .last_failed = "/bin/x: why",
							      .refused_files = 2,
							      .last_refused = "/bin/y: huge" } };
	struct exporter_stats exporter = { .sum = { .payloads_sent = sent, .retries = 3 } };
	struct relabel *relabel;
	struct snapshot input = { .session_id = 7, .endpoint = "http://x:4318/",
					  .pipeline = &pipeline, .exporter = &exporter };
	char error[256];

	assert_int_equal(relabel_new(&relabel), 0);
	assert_int_equal(relabel_add(relabel, "drop a b", error, sizeof(error)), 0);
	relabel_left_out(relabel, 0, 17);
	input.relabel = relabel;
	assert_int_equal(statusfile_write(file, &input), 0);
	relabel_free(relabel);
}

static void test_life(void **state _unused_)
{
	struct statusfile *file, *second;
	char *text, *json, path[80];
	struct stat st;
	size_t size;

	assert_int_equal(statusfile_read(directory, &text, &json, &size), 0);
	assert_null(text);
	assert_int_equal(statusfile_open(directory, &file), 0);
	/* alive, but nothing is written yet */
	assert_int_equal(statusfile_read(directory, &text, &json, &size), 0);
	assert_null(json);
	assert_int_equal(statusfile_write_address(file, "http://127.0.0.1:1/first/"), 0);
	assert_int_equal(statusfile_write_address(file, "http://127.0.0.1:1/token/"), 0);
	snprintf(path, sizeof(path), "%s/serve", directory);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_size, strlen("http://127.0.0.1:1/token/\n"));
	assert_int_equal(statusfile_write_address(file, NULL), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(statusfile_write_address(file, "http://127.0.0.1:1/token/"), 0);
	write_status(file, 41);
	write_status(file, 42);
	assert_int_equal(statusfile_read(directory, &text, &json, &size), 0);
	assert_non_null(text);
	assert_non_null(strstr(text, "75.0 % complete"));
	assert_non_null(strstr(text, "42 payloads sent"));
	assert_non_null(strstr(text, "aggregate"));
	assert_non_null(strstr(text, "last unwind table that failed: /bin/x: why\n"));
	assert_non_null(strstr(text, "files whose unwind table is too large: 2; the last: /bin/y: huge\n"));
	assert_non_null(strstr(json, "\"last_failed\":\"/bin/x: why\""));
	assert_non_null(strstr(json, "\"last_refused\":\"/bin/y: huge\""));
	assert_non_null(strstr(json, "\"payloads_sent\":42"));
	assert_non_null(strstr(json, "\"retries\":3"));
	assert_non_null(strstr(text, "rule `drop a b': matched 0 times, left out 17 samples\n"));
	assert_non_null(strstr(json, "\"samples_left_out\":17"));
	assert_int_equal(json[size], '\n');
	free(text);
	free(json);
	assert_int_equal(statusfile_open(directory, &second), -EBUSY);
	statusfile_close(file);
	assert_int_equal(statusfile_read(directory, &text, &json, &size), 0);
	assert_null(text);
	assert_int_equal(statusfile_open(directory, &second), 0);
	statusfile_close(second);
}

/* Killed without a chance to clean up: its files are there and nobody believes them. */
static void test_dead_daemon(void **state _unused_)
{
	char *text, *json, path[96];
	size_t size;
	pid_t pid = fork();
	int status;

	if (!pid) {
		struct statusfile *file;

		if (statusfile_open(directory, &file) < 0)
			_exit(1);
		write_status(file, 1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	snprintf(path, sizeof(path), "%s/status.json", directory);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(statusfile_read(directory, &text, &json, &size), 0);
	assert_null(text);
	assert_null(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_dead_daemon),
	};

	return cmocka_run_group_tests(tests, make_parent, remove_parent);
}
