// SPDX-License-Identifier: Apache-2.0
/* What the broker does for who asks, and what it does not do for who would like it to. */
#include "fixture.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/file.h"
#include "broker/broker.h"
#include "broker/packet.h"
#include "client/event.h"
#include "helper/opener.h"
#include "helper/parser.h"
#include "service/broker_child.h"

enum { PATIENCE_ROUNDS = 6000, ROUND_US = 10000, STRANGER = 65533, MANY = 65, NO_EVENT = 9999 };

static int begin(void **state)
{
	char text[4 * PATH_MAX + 128];

	(void)state;
	snprintf(text, sizeof(text), "[export]\nendpoint = https://localhost:4318\nclient_key = %s\nheaders_file = %s\n"
		 "[destination far]\nendpoint = http://far\nheaders_file = %s\n[fleet]\nkill_switch = %s\n",
		 fixture_path("key"), fixture_path("headers"), fixture_path("headers far"), fixture_path("off"));
	fixture_write("config", text);
	fixture_write("key", "secret");
	fixture_write("headers", "a: b\n");
	fixture_write("headers far", "a: b\n");
	fixture_write("other", "other");
	return broker_begin(broker_name, fixture_path("config"));
}

static int end(void **state)
{
	(void)state;
	broker_end();
	return broker_is_there();
}

static int told(uint32_t op, void *payload, size_t bytes, const int *fds, size_t fd_count)
{
	union broker_answer answer;
	struct packet packet = { .header = { .op = op }, .payload = payload, .bytes = bytes, .fd_count = fd_count };

	for (size_t i = 0; i < fd_count; i++)
		packet.fds[i] = fds[i];
	assert_int_equal(packet_send(broker_socket(), &packet), 0);
	packet = (struct packet){ .payload = &answer, .bytes = sizeof(answer) };
	assert_int_equal(packet_receive(broker_socket(), &packet), 0);
	assert_int_equal(packet.header.op, op);
	packet_close(&packet);
	return packet.header.result;
}

/* What broker_lstat() asks only for what is closed to us, which to root nothing is. */
static int look(const char *path)
{
	struct broker_path request = { .is_link = true };

	snprintf(request.path, sizeof(request.path), "%s", path);
	return told(BROKER_LOOK, &request, sizeof(request), NULL, 0);
}

static void files_are_those_of_the_configuration(void **state)
{
	_cleanup_free_ char *config = NULL, *key = NULL, *symbols = NULL;
	_cleanup_close_ int fd = broker_open_config(), secret = broker_read_secret(fixture_path("key"));
	_cleanup_close_ int kernel = broker_open_kernel(BROKER_SYMBOLS);
	struct stat ours, told;

	(void)state;
	assert_int_equal(file_read_fd(fd, 4096, &config, NULL), 0);
	assert_non_null(strstr(config, "client_key"));
	assert_true(secret >= 0 && lseek(secret, 0, SEEK_SET) == 0);
	assert_int_equal(file_read_fd(secret, 4096, &key, NULL), 0);
	assert_string_equal(key, "secret");
	assert_int_equal(write(secret, "x", 1), -1);
	assert_int_equal(broker_read_secret(fixture_path("other")), -EPERM);
	assert_int_equal(broker_read_secret("/etc/shadow"), -EPERM);
	for (size_t i = 0; i < 2; i++) {
		_cleanup_close_ int headers = broker_read_secret(fixture_path(i ? "headers far" : "headers"));

		assert_true(headers >= 0);
	}
	assert_int_equal(file_read_fd(kernel, 64 << 20, &symbols, NULL), 0);
	assert_int_equal(broker_open_kernel(BROKER_KERNEL_FILES), -EINVAL);
	assert_int_equal(stat(fixture_path("config"), &ours), 0);
	assert_int_equal(broker_stat(fixture_path("config"), &told), 0);
	assert_int_equal(told.st_ino, ours.st_ino);
	assert_int_equal(look(fixture_path("absent")), -EPERM);
	assert_int_equal(look("/etc/shadow"), -EPERM);
	assert_int_equal(look(fixture_path("config")), 0);
	assert_int_equal(look(fixture_path("off")), -ENOENT);
	fixture_write("off", "");
	assert_int_equal(look(fixture_path("off")), 0);
	/* and while the file is being changed */
	fixture_write("config", "nonsense");
	assert_int_equal(look(fixture_path("off")), 0);
	assert_int_equal(look(fixture_path("absent")), -EPERM);
	fixture_run("rm off; printf '[fleet]\\nkill_switch = %s\\n' > config", fixture_path("absent"));
	assert_int_equal(look(fixture_path("absent")), -ENOENT);
}

/* The broker has of the environment what the daemon goes by; it names files with blanks around them or without. */
static void files_are_those_of_the_environment(void **state)
{
	static const struct {
		const char *variable, *file;
	} named[] = {
		{ "OTEL_EXPORTER_OTLP_CERTIFICATE", "ca" }, { "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "client" },
		{ "OTEL_EXPORTER_OTLP_PROFILES_CLIENT_KEY", "profiles key" },
		{ "OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY", "metrics key" },
	};
	char value[PATH_MAX + 3];

	for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
		fixture_write(named[i].file, "secret");
		snprintf(value, sizeof(value), " %s ", fixture_path(named[i].file));
		assert_int_equal(setenv(named[i].variable, value, 1), 0);
	}
	/* a signal's own comes before the one for all */
	assert_int_equal(setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", fixture_path("other"), 1), 0);
	assert_int_equal(begin(state), 0);
	for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
		_cleanup_close_ int fd = broker_read_secret(fixture_path(named[i].file));

		assert_true(fd >= 0);
		assert_int_equal(unsetenv(named[i].variable), 0);
	}
	assert_int_equal(broker_read_secret(fixture_path("other")), -EPERM);
	assert_int_equal(unsetenv("OTEL_EXPORTER_OTLP_CLIENT_KEY"), 0);
}

static bool has_variable(pid_t pid, const char *wanted)
{
	char path[64], text[8192];
	FILE *file;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	file = fopen(path, "re");
	assert_non_null(file);
	size = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[size] = '\0';
	for (const char *at = text; at < text + size; at += strlen(at) + 1)
		if (!strcmp(at, wanted))
			return true;
	return false;
}

/* Its recordings are of the same service as the daemon's profiles. */
static void the_service_is_that_of_the_environment(void **state)
{
	assert_int_equal(setenv("OTEL_SERVICE_NAME", "shop", 1), 0);
	assert_int_equal(setenv("OTEL_RESOURCE_ATTRIBUTES", "a=b", 1), 0);
	assert_int_equal(setenv("OTEL_EXPORTER_OTLP_HEADERS", "key=secret", 1), 0);
	assert_int_equal(begin(state), 0);
	assert_true(has_variable(broker_pid(), "OTEL_SERVICE_NAME=shop"));
	assert_true(has_variable(broker_pid(), "OTEL_RESOURCE_ATTRIBUTES=a=b"));
	assert_false(has_variable(broker_pid(), "OTEL_EXPORTER_OTLP_HEADERS=key=secret"));
	assert_int_equal(unsetenv("OTEL_SERVICE_NAME"), 0);
	assert_int_equal(unsetenv("OTEL_RESOURCE_ATTRIBUTES"), 0);
	assert_int_equal(unsetenv("OTEL_EXPORTER_OTLP_HEADERS"), 0);
}

/* Another's memory or device is no session of the module. */
static void nothing_is_set_where_nothing_was_opened(void **state)
{
	const struct stacktap_mapping mapping = { .start = 4096, .end = 8192 };
	struct stacktap_mappings_set set = { .size = sizeof(set), .tgid = 1, .mappings = (uintptr_t)&mapping, .count = 1 };
	_cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)state;
	assert_int_equal(broker_set_mappings(null, &set), -EBADF);
	set.count = STACKTAP_MAX_MAPPINGS + 1;
	assert_int_equal(broker_set_mappings(null, &set), -E2BIG);
	assert_int_equal(broker_open_sideband(0, 1), -EINVAL);
}

/* It says what it was told, as the daemon's own filter does not let it ask. */
static void events_are_tried_there(void **state)
{
	const struct broker_event task_clock = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK };
	const struct broker_event nothing = { .type = PERF_TYPE_SOFTWARE, .config = NO_EVENT };
	const struct broker_event trace = { .type = PERF_TYPE_TRACEPOINT }, kprobe = { .type = PERF_TYPE_MAX };
	struct control_source source = { .name = "nothing", .type = PERF_TYPE_SOFTWARE, .config = NO_EVENT };
	char error[256] = "";

	(void)state;
	assert_int_equal(broker_try_event(&task_clock), event_try(&task_clock));
	assert_int_equal(broker_try_event(&nothing), event_try(&nothing));
	assert_int_equal(broker_try_event(&trace), -EACCES);
	assert_int_equal(broker_try_event(&kprobe), -EACCES);
	if (event_try(&nothing) != -ENOENT) {
		print_message("needs perf_event_open()\n");
		skip();
	}
	assert_int_equal(event_check_countable(&source, error, sizeof(error)), -EOPNOTSUPP);
	assert_non_null(strstr(error, "no PMU of these CPUs"));
	/* without an answer nothing is said against it */
	assert_int_equal(kill(broker_pid(), SIGKILL), 0);
	assert_int_equal(event_check_countable(&source, error, sizeof(error)), 0);
}

static void only_what_it_started_is_ended(void **state)
{
	pid_t stranger = fork();
	int status;

	(void)state;
	if (!stranger) {
		pause();
		_exit(0);
	}
	broker_kill(stranger);
	assert_int_equal(broker_wait(stranger, &status), -1);
	assert_int_equal(waitpid(stranger, &status, WNOHANG), 0);
	kill(stranger, SIGKILL);
	assert_int_equal(waitpid(stranger, &status, 0), stranger);
}

static void helpers_are_started_and_replaced(void **state)
{
	struct helper_stats before, after;
	struct parser_stats stats;
	struct parser *parser;
	char name[DEMANGLE_MAX];

	(void)state;
	assert_int_equal(parser_new(&parser), 0);
	assert_int_equal(parser_demangle(parser, "_Z3foov", name), 0);
	assert_string_equal(name, "foo");
	parser_stats(parser, &stats);
	before = stats.helper;
	assert_true(before.pid > 0);
	/* it is no child of ours */
	assert_int_equal(waitpid(before.pid, NULL, WNOHANG), -1);
	broker_kill(before.pid);
	for (int i = 0; i < PATIENCE_ROUNDS && parser_demangle(parser, "_Z3barv", name); i++)
		usleep(ROUND_US);
	assert_string_equal(name, "bar");
	parser_stats(parser, &stats);
	after = stats.helper;
	assert_true(after.pid > 0 && after.pid != before.pid);
	parser_free(parser);
	assert_int_equal(kill(after.pid, 0), -1);
}

static pid_t start_and_kill(void)
{
	int sockets[2], r;
	pid_t pid = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	r = broker_start_helper(HELPER_PARSER, sockets[1], &pid);
	close(sockets[0]);
	close(sockets[1]);
	assert_true(!r || r == -EAGAIN);
	if (!r)
		broker_kill(pid);
	return pid;
}

static void what_nobody_waits_for_takes_no_place(void **state)
{
	(void)state;
	for (int i = 0; i < MANY; i++)
		for (int round = 0; !start_and_kill(); round++) {
			assert_true(round < PATIENCE_ROUNDS);
			usleep(ROUND_US);
		}
}

/* Be it started by who ignores the end of its children. */
static void the_end_of_a_process_can_be_asked_for(void **state)
{
	void (*before)(int) = signal(SIGCHLD, SIG_IGN);
	pid_t pid, ended = 0;
	int status = 0;

	assert_int_equal(begin(state), 0);
	assert_true(signal(SIGCHLD, before) == SIG_IGN);
	pid = start_and_kill();
	for (int round = 0; round < PATIENCE_ROUNDS && !ended; round++, usleep(ROUND_US))
		ended = broker_wait(pid, &status);
	assert_int_equal(ended, pid);
	assert_int_equal(broker_wait(pid, &status), -1);
}

static int opened(struct opener *opener, struct mount_namespace_table *spaces, const char *path)
{
	struct mount_namespace *host = mount_namespace_table_guess(spaces);
	struct stat st;
	int fd = -1, r = opener_open_path(opener, spaces, host, path, NULL, &fd, &st);

	mount_namespace_unref(host);
	if (fd >= 0)
		close(fd);
	return r;
}

/* Whoever gave up its rights is handed by the opener what everybody may read, and code. */
static void the_opener_hands_out_no_secrets(void **state)
{
	static const char *const code[] = { "jitdump", "tidtij", "program", "windows" };
	struct mount_namespace_table *spaces;
	struct opener *opener;

	(void)state;
	if (geteuid()) {
		print_message("needs root to be another user\n");
		skip();
	}
	fixture_write("text", "secret");
	fixture_write("empty", "");
	fixture_write("jitdump", "DTiJ");
	fixture_write("tidtij", "JiTD");
	fixture_write("windows", "MZ");
	fixture_run("cp /proc/self/exe program; printf '\\177ELF\\2\\1\\1\\0\\0\\0\\0\\0\\0\\0\\0\\0\\4\\0' > core");
	fixture_run("chmod 640 text empty jitdump tidtij program windows core");
	assert_int_equal(mount_namespace_table_new("", &spaces), 0);
	assert_int_equal(seteuid(STRANGER), 0);
	assert_int_equal(opener_new(&opener), 0);
	for (size_t i = 0; i < ARRAY_SIZE(code); i++)
		assert_int_equal(opened(opener, spaces, fixture_path(code[i])), 0);
	assert_int_equal(opened(opener, spaces, fixture_path("text")), -EACCES);
	assert_int_equal(opened(opener, spaces, fixture_path("empty")), -EACCES);
	assert_int_equal(opened(opener, spaces, fixture_path("core")), -EACCES);
	assert_int_equal(opened(opener, spaces, "/proc/1/mem"), -EACCES);
	assert_int_equal(opened(opener, spaces, "/proc/version"), -EACCES);
	assert_int_equal(chmod(fixture_path("text"), 0644), -1);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(fixture_path("text"), 0644), 0);
	assert_int_equal(opened(opener, spaces, fixture_path("text")), 0);
	opener_free(opener);
	/* one of our own has no more rights than we have */
	assert_int_equal(chmod(fixture_path("text"), 0640), 0);
	assert_int_equal(opener_new(&opener), 0);
	assert_int_equal(opened(opener, spaces, fixture_path("text")), 0);
	opener_free(opener);
	mount_namespace_table_free(spaces);
}

static void nonsense_is_refused(void **state)
{
	union broker_request request;
	const int fds[] = { STDERR_FILENO, STDERR_FILENO };

	(void)state;
	memset(&request, 0xff, sizeof(request));
	for (uint32_t op = 0; op < BROKER_OPS + 3; op++)
		for (size_t fd_count = 0; fd_count <= BROKER_FDS_MAX; fd_count++) {
			assert_true(told(op, &request, 3, fds, fd_count) < 0);
			assert_true(told(op, &request, sizeof(request), fds, fd_count) < 0);
		}
	/* of the right size, and nothing else about them */
	assert_int_equal(told(BROKER_START_HELPER, &request, sizeof(request.helper), fds, 1), -EINVAL);
	assert_int_equal(told(BROKER_START_RECORD, &request, sizeof(request.record), fds, 2), -EINVAL);
	assert_int_equal(told(BROKER_READ_SECRET, &request, sizeof(request.path), NULL, 0), -EPERM);
	assert_int_equal(told(BROKER_SET_MAPPINGS, &request, sizeof(request.mappings), fds, 1), -EINVAL);
	assert_int_equal(told(BROKER_KILL, &request, sizeof(request.process), NULL, 0), -ESRCH);
	request.process.pid = 0;
	assert_int_equal(told(BROKER_KILL, &request, sizeof(request.process), NULL, 0), -ESRCH);
	assert_int_equal(told(BROKER_WAIT, &request, sizeof(request.process), NULL, 0), -ECHILD);
}

static void its_end_is_seen(void **state)
{
	struct pollfd pollfd = { .fd = broker_socket(), .events = POLLIN };
	int status;

	(void)state;
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	assert_int_equal(kill(broker_pid(), SIGKILL), 0);
	assert_int_equal(poll(&pollfd, 1, -1), 1);
	assert_int_equal(broker_open_config(), -EPIPE);
	assert_int_equal(broker_wait(1, &status), -1);
}

static void one_that_hangs_is_not_waited_for(void **state)
{
	const pid_t pid = broker_pid();

	(void)state;
	assert_int_equal(kill(pid, SIGSTOP), 0);
	broker_end();
	assert_false(broker_is_there());
	/* it was killed, and may take its time */
	for (int round = 0; round < PATIENCE_ROUNDS && waitpid(pid, NULL, WNOHANG) == 0; round++)
		usleep(ROUND_US);
	assert_int_equal(kill(pid, 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_are_those_of_the_configuration, begin, end),
		cmocka_unit_test_teardown(files_are_those_of_the_environment, end),
		cmocka_unit_test_teardown(the_service_is_that_of_the_environment, end),
		cmocka_unit_test_setup_teardown(nothing_is_set_where_nothing_was_opened, begin, end),
		cmocka_unit_test_setup_teardown(events_are_tried_there, begin, end),
		cmocka_unit_test_setup_teardown(only_what_it_started_is_ended, begin, end),
		cmocka_unit_test_setup_teardown(helpers_are_started_and_replaced, begin, end),
		cmocka_unit_test_setup_teardown(what_nobody_waits_for_takes_no_place, begin, end),
		cmocka_unit_test_teardown(the_end_of_a_process_can_be_asked_for, end),
		cmocka_unit_test_setup_teardown(the_opener_hands_out_no_secrets, begin, end),
		cmocka_unit_test_setup_teardown(nonsense_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(its_end_is_seen, begin, end),
		cmocka_unit_test_setup_teardown(one_that_hangs_is_not_waited_for, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
