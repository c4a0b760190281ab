// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/stat.h>

#include "service/config.h"

static char path[] = "/tmp/stacktap-config-XXXXXX";

static int make_file(void **state _unused_)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state _unused_)
{
	return unlink(path);
}

static void write_text(const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static struct config load(const char *text)
{
	struct config config;
	char error[512] = "";

	write_text(text);
	if (config_load(path, &config, error, sizeof(error)) < 0)
		fail_msg("%s", error);
	return config;
}

/* @where: the line that is named, 0: none */
static void assert_refused(const char *text, int where, const char *word)
{
	struct config config = { .rate_hz = 4711 };
	char error[512] = "", line[32];

	write_text(text);
	assert_int_equal(config_load(path, &config, error, sizeof(error)), -EINVAL);
	assert_int_equal(config.rate_hz, 4711);
	snprintf(line, sizeof(line), ":%d: ", where);
	if (!strstr(error, word) || (where && !strstr(error, line)))
		fail_msg("`%s' does not say `%s' of line %d", error, word, where);
}

static char *dump(const struct config *config)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	config_dump(config, stream);
	fclose(stream);
	return text;
}

static void test_defaults(void **state _unused_)
{
	struct config empty = load(""), config;

	config_init(&config);
	assert_int_equal(config.rate_hz, 19);
	assert_int_equal(config.event_count, 1);
	assert_string_equal(config.events[0], "cycles");
	assert_false(config.with_command_line);
	assert_true(config.with_kernel_addresses);
	assert_true(config.load_module);
	assert_true(config.with_tables);
	assert_true(config.with_deferred);
	assert_int_equal(config.slice_bytes, 16384);
	assert_int_equal(config.slice_max_bytes, 65536);
	/* all that waits in a ring is a quarter of it */
	assert_int_equal(config.ring_bytes / 4, config.slice_max_bytes);
	assert_null(config.budget_ns);
	assert_true(config.fault_in);
	assert_string_equal(config.store_directory, "/var/lib/stacktap");
	assert_null(config.endpoint);
	assert_true(config_same(&empty, &config, "profile", NULL));
	assert_true(config_same(&empty, &config, "privacy", NULL));
	assert_true(config_same(&empty, &config, "store", NULL));
	assert_ptr_not_equal(empty.store_directory, config.store_directory);
	config_done(&empty);
	config_done(&config);
}

static void test_record_takes_what_the_daemon_has(void **state _unused_)
{
	static const char *const want[] = {
		"--cpu=0-1", "--uid=root,7", "--comm=a,b c", "--cgroup=/a.slice", "--user-only", "--exclude-idle",
		"--service-name=shop front", "--resource-attributes=a=b%20c,d=e", "--command-line",
		"--relabel=drop a (b|c)+", "--relabel=set \"a b\" c if d .*", NULL,
	};
	struct config config = load("[filter]\ncpus = 0-1\nusers = root,7\ncomms = a,b c\ncgroups = /a.slice\n"
				    "user_only = yes\nexclude_idle = yes\n"
				    "[resource]\nservice_name = shop front\nattributes = a=b%20c,d=e\n"
				    "[privacy]\ncommand_line = yes\n"
				    "[relabel]\nrule = drop a (b|c)+\nrule = set \"a b\" c if d .*\n");
	struct config other = load("[filter]\nkernel_only = yes\nexclude_idle = no\n"
				   "[privacy]\nkernel_addresses = no\n"), empty = load("");
	char **list = config_record_arguments(&config);

	for (size_t i = 0; want[i]; i++)
		assert_string_equal(list[i], want[i]);
	assert_null(list[ARRAY_SIZE(want) - 1]);
	free(list);
	list = config_record_arguments(&other);
	assert_string_equal(list[0], "--kernel-only");
	assert_string_equal(list[1], "--no-kernel-addresses");
	assert_null(list[2]);
	free(list);
	list = config_record_arguments(&empty);
	assert_string_equal(list[0], "--exclude-idle");
	assert_null(list[1]);
	free(list);
	config_done(&config);
	config_done(&other);
	config_done(&empty);
}

static void test_every_option_round_trips(void **state _unused_)
{
	static const char text[] =
		"[profile]\nevent = instructions:u\nevent = cpu-clock\nrate = 7\nperiod = 0\n"
		"mode = frequency\njitter = no\nwindow_seconds = 2\nwindow_max_seconds = 3\nexact_times = yes\nmax_stack = 9\nunnamed = range\nkernel_suffix = _[k]\nrepeat_functions = yes\nbudget_ns = 0\n"
		"ceiling = 2.5\n\n"
		"[filter]\ncpus = 0-1\nusers = root,7\ncomms = a,b c\ncgroups =\nuser_only = yes\nkernel_only = no\nexclude_idle = no\n\n"
		"[capture]\nring_bytes = 131072\nsideband_bytes = 32768\n\n"
		"[unwind]\ntables = no\ndeferred = no\nslice_bytes = 4096\nslice_max_bytes = 8192\n"
		"fault_in = no\n\n"
		"[export]\nendpoint = https://host:4318\nprotocol = grpc\nheaders = a=b\nheaders_file = /b\ncertificate = /c\n"
		"client_certificate = /d\nclient_key = /e\ncompression = none\n"
		"timeout_seconds = 5\nwire_version = 1\n\n"
		"[store]\ndirectory = /s\nmax_bytes = 1048576\nmax_age_hours = 3\n\n"
		"[spool]\ndirectory = /q\nmax_bytes = 65536\nmax_age_hours = 0\njournal = no\n\n"
		"[metrics]\nlisten = unix:/m\npush = yes\npush_endpoint = http://a:4318\npush_headers = e=f\npush_seconds = 7\n\n"
		"[serve]\nlisten = 127.0.0.1:9471\n\n"
		"[resource]\nservice_name = me\nattributes = x=y\n\n"
		"[relabel]\nrule = drop a (b|c)+\nrule = set \"a b\" c if d .*\n\n"
		"[privacy]\ncommand_line = yes\nkernel_addresses = no\n\n[symbols]\nwait_seconds = 3\nlines = yes\n"
		"index_directory = /i\nindex_max_bytes = 0\ndebuginfod = https://d\ndebuginfod_directory = /f\ndebuginfod_max_bytes = 65536\n"
		"debuginfod_file_bytes = 65537\ndebuginfod_seconds = 9\n\n"
		"[fleet]\nkill_switch = /off\nduty_percent = 25\nwatch = yes\n\n"
		"[daemon]\nload_module = no\nlog_level = debug\nstatus_seconds = 1\n"
		"stop_seconds = 2\n\n"
		"[destination far-1]\nendpoint = unix:/f\nprotocol = grpc\nheaders = c=d\nheaders_file = /e\ncertificate = /f\n"
		"client_certificate = /g\nclient_key = /h\ncompression = none\ntimeout_seconds = 6\n"
		"unnamed = address\nkernel_suffix = _[q]\nrepeat_functions = no\nspool = /r\nspool_max_bytes = 65537\n"
		"spool_max_age_hours = 7\n\n"
		"[destination b]\nendpoint = http://b\nprotocol = http/protobuf\nheaders =\nheaders_file =\ncertificate =\n"
		"client_certificate =\nclient_key =\ncompression = gzip\ntimeout_seconds = 10\n"
		"unnamed =\nkernel_suffix =\nrepeat_functions =\nspool = /var/lib/stacktap/spool-b\nspool_max_bytes = 268435456\n"
		"spool_max_age_hours = 24\n";
	struct config config = load(text);
	uint32_t budget_ns = 1;
	char *once = dump(&config);

	/* every line of it, in the dump's order: an option that is not dumped shows here */
	assert_string_equal(once, text);
	assert_int_equal(config.event_count, 2);
	assert_int_equal(config_budget(&config, &budget_ns), 0);
	assert_int_equal(budget_ns, 0);
	free(once);
	config_done(&config);
}

static void test_spellings(void **state _unused_)
{
	struct config config = load("# comment\n; comment\n[capture]\nring_bytes = 1M\n"
				    "[store]\ndirectory =\nmax_bytes = 2G\n"
				    "[privacy]\ncommand_line = on\n"
				    "[destination a]\nendpoint = http://a\nrepeat_functions = true\n"
				    "[destination b]\nendpoint = http://b\nrepeat_functions = 0\n"
				    "[destination c]\nendpoint = http://c\nrepeat_functions = on\n");
	static const enum receiver_repeats repeats[] = { REPEATS_FUNCTIONS, REPEATS_NOT, REPEATS_FUNCTIONS };

	assert_int_equal(config.receiver_count, ARRAY_SIZE(repeats));
	for (size_t i = 0; i < ARRAY_SIZE(repeats); i++)
		assert_int_equal(config.receivers[i].repeats, repeats[i]);
	assert_int_equal(config.ring_bytes, 1 << 20);
	assert_int_equal(config.store_max_bytes, 2ULL << 30);
	assert_null(config.store_directory);
	assert_true(config.with_command_line);
	config_done(&config);
}

static void test_refusals(void **state _unused_)
{
	char text[2048] = "[profile]\n";

	assert_refused("[profile]\nrate = 0\n", 2, "1 to 10000");
	assert_refused("[profile]\nrate = 1000000000\n", 2, "1 to 10000");
	assert_refused("[profile]\nrate = many\n", 2, "many");
	assert_refused("[profile]\nrate = -1\n", 2, "-1");
	assert_refused("[profile]\nrate = 19K\n", 2, "19K");
	assert_refused("[profile]\nrate = 99999999999999999999\n", 2, "rate");
	assert_refused("[profile]\n\nevent = cylces\n", 3, "cycles");
	assert_refused("[profile]\nmode = fast\n", 2, "period or frequency");
	assert_refused("[export]\nwire_version = 2\n", 2, "wire_version is 1, not `2'");
	assert_refused("[profile]\nbogus = 1\n", 2, "bogus");
	assert_refused("[bogus]\nrate = 1\n", 1, "[bogus]");
	assert_refused("[profile]\n[bogus]\n", 2, "[bogus]");
	assert_refused("rate = 1\n", 1, "rate");
	assert_refused("[profile]\nrate\n", 2, "neither");
	assert_refused("[privacy]\ncommand_line = maybe\n", 2, "yes or no");
	assert_refused("[destination a]\nrepeat_functions = maybe\n", 2, "empty, no or yes");
	assert_refused("[daemon]\nlog_level = loud\n", 2, "loud");
	assert_refused("[store]\nmax_bytes = 1T\n", 2, "1T");
	assert_refused("[store]\nmax_bytes = 17179869184G\n", 2, "max_bytes");
	assert_refused("[profile]\nwindow_seconds = 100\n", 0, "window_max_seconds");
	assert_refused("[profile]\nmode = frequency\nperiod = 100\n", 0, "rate");
	assert_refused("[filter]\nuser_only = yes\nkernel_only = yes\n", 0, "exclude each other");
	assert_refused("[unwind]\nslice_bytes = 1028\n", 0, "multiples of 8");
	assert_refused("[unwind]\nslice_max_bytes = 1028\n", 0, "multiples of 8");
	assert_refused("[unwind]\nslice_max_bytes = 1016\n", 0, "0 or at least 1024");
	assert_refused("[unwind]\nslice_max_bytes = 65544\n", 2, "65536");
	assert_refused("[profile]\nbudget_ns = much\n", 0, "`much'");
	assert_refused("[profile]\nkernel_suffix = 01234567890123456789012345678901\n", 0, "31 bytes");
	assert_refused("[profile]\nceiling = 101\n", 0, "`101'");
	assert_refused("[profile]\nbudget_ns = 4294967296\n", 0, "below 2^32");
	assert_refused("[unwind]\nslice_bytes = 1016\n", 2, "1024");
	assert_refused("[filter]\ncpus = 1-\n", 0, "1-");
	assert_refused("[filter]\nusers = no-such-user\n", 0, "no-such-user");
	assert_refused("[filter]\nusers = 4294967295\n", 0, "4294967295");
	assert_refused("[filter]\ncomms = 0123456789abcdef\n", 0, "15 bytes");
	assert_refused("[filter]\ncomms = , ,\n", 0, "names no program");
	assert_refused("[capture]\nring_bytes = 100000\n", 0, "powers of two");
	assert_refused("[export]\nendpoint = host:4318\n", 0, "http://");
	assert_refused("[export]\nheaders = a\n", 0, "headers");
	assert_refused("[resource]\nattributes = a\n", 0, "attributes");
	assert_refused("[relabel]\nrule = drop a b\nrule = drop a (b\n", 3, "a ( has no )");
	assert_refused("[relabel]\nrule = lose a b\n", 2, "begin with keep, drop, remove, rename, set or downsample");
	assert_refused("[relabel]\nrule = drop a \"b c\n", 2, "a double quote without its end");
	assert_refused("[relabel]\nrule = set a b if c d e\n", 2, "more than 6 words");
	assert_refused("[symbols]\ndebuginfod = debuginfod.example\n", 0, "https://debuginfod.example");
	assert_refused("[symbols]\ndebuginfod = https://a https://b\n", 0, "a URL");
	assert_refused("[symbols]\ndebuginfod_seconds = 3601\n", 2, "1 to 3600");
	assert_refused("[symbols]\nwait_seconds = 61\n", 2, "2 to 60");
	assert_refused("[metrics]\nlisten = 0.0.0.0:9470\n", 0, "loopback");
	assert_refused("[serve]\nlisten = 0.0.0.0:9471\n", 0, "loopback");
	assert_refused("[metrics]\nlisten = /run/m\n", 0, "unix:/PATH");
	assert_refused("[metrics]\npush_endpoint = a:4318\n", 0, "push_endpoint must begin with http://");
	assert_refused("[metrics]\npush_headers = a\n", 0, "push_headers are not of the form");
	assert_refused("[metrics]\npush_seconds = 0\n", 2, "push_seconds");
	assert_refused("[destination a b]\nendpoint = http://a\n", 1, "`a b' is not a valid destination name");
	assert_refused("[destination export]\nendpoint = http://a\n", 1, "but not `export'");
	assert_refused("[destination a]\nrate = 1\n", 2, "unknown option `rate' in section [destination a]");
	assert_refused("[destination a]\nunnamed = never\n", 2, "unnamed must be empty, address or range, not `never'");
	assert_refused("[destination a]\n", 0, "[destination a] has no endpoint");
	assert_refused("[destination a]\nendpoint = a:1\n", 0, "endpoint of [destination a] must begin with");
	assert_refused("[destination a]\nendpoint = http://a\nheaders = a\n", 0, "headers of [destination a]");
	assert_refused("[destination a]\nendpoint = http://a\nspool = /var/lib/stacktap/spool/\n", 0,
		       "each destination's spool");
	for (int i = 0; i < STACKTAP_MAX_SOURCES + 1; i++)
		strcat(text, "event = cpu-clock\n");
	assert_refused(text, STACKTAP_MAX_SOURCES + 2, "more than 8");
	text[0] = '\0';
	for (int i = 0; i < CONFIG_MAX_RECEIVERS + 1; i++)
		sprintf(text + strlen(text), "[destination d%d]\nendpoint = http://d\n", i);
	assert_refused(text, 2 * CONFIG_MAX_RECEIVERS + 1, "more than 7 destinations");
	/* the first mistake is the one that is told */
	assert_refused("[profile]\nrate = 0\nmode = fast\n", 2, "rate");
}

/* @length times a letter behind @head */
static char *long_text(const char *head, size_t length, const char *tail)
{
	char *text;

	assert_true(asprintf(&text, "%s%*s%s", head, (int)length, "", tail) > 0);
	memset(text + strlen(head), 'x', length);
	return text;
}

static void test_long_values(void **state _unused_)
{
	enum { TOKEN = 4096, LIMIT = 32768 };
	char *text = long_text("[export]\nheaders = authorization=Bearer%20", TOKEN, "\n");
	struct config config = load(text), again;
	char *once = dump(&config);

	/* all of it, and it goes through the dump */
	assert_int_equal(strlen(config.headers), strlen("authorization=Bearer%20") + TOKEN);
	assert_int_equal(strspn(strchr(config.headers, '0') + 1, "x"), TOKEN);
	again = load(once);
	assert_string_equal(again.headers, config.headers);
	config_done(&again);
	config_done(&config);
	free(once);
	free(text);
	/* the longest line, also without an end, and what is too long for one */
	text = long_text("[store]\ndirectory = ", LIMIT - strlen("directory = "), "");
	config = load(text);
	assert_int_equal(strlen(config.store_directory), LIMIT - strlen("directory = "));
	config_done(&config);
	free(text);
	text = long_text("[store]\n\ndirectory = ", LIMIT + 1 - strlen("directory = "), "\n");
	assert_refused(text, 3, "32768 bytes");
	assert_refused(text, 3, path);
	free(text);
	text = long_text("[store]\n# ", 10 * LIMIT, "\n");
	assert_refused(text, 2, "32768 bytes");
	free(text);
}

static void test_form(void **state _unused_)
{
	static const char nul[] = "[store]\ndirectory = a\0b\n";
	struct config config = load("\xef\xbb\xbf\n  [store]  \r\n\tdirectory=/a = b ; c # d \r\n"
				    "[export]\n  ; headers = a\nheaders\t=a=b");
	char error[512] = "";
	FILE *file;

	/* a comment begins a line, and only the first = is the option's */
	assert_string_equal(config.store_directory, "/a = b ; c # d");
	assert_string_equal(config.headers, "a=b");
	config_done(&config);
	assert_refused("[store\ndirectory = a\n", 1, "neither");
	assert_refused("[store] x\n", 1, "neither");
	assert_refused("[store]\n= a\n", 2, "neither");
	/* no line goes on in the next one */
	assert_refused("[store]\ndirectory = a\n\tb\n", 3, "neither");
	file = fopen(path, "we");
	assert_non_null(file);
	fwrite(nul, 1, sizeof(nul) - 1, file);
	fclose(file);
	assert_int_equal(config_load(path, &config, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, ":2: "));
}

static void test_missing_file(void **state _unused_)
{
	struct config config;
	char error[256] = "";

	assert_int_equal(config_load("/nonexistent/x.conf", &config, error, sizeof(error)), -ENOENT);
	assert_non_null(strstr(error, "/nonexistent/x.conf"));
}

/* Nobody may ever write to a FIFO, and a reload is not to wait for that. */
static void test_no_file(void **state _unused_)
{
	char directory[] = "/tmp/stacktap-config-XXXXXX", fifo[64];
	const char *const names[] = { fifo, directory, "/dev/zero" };
	struct config config;
	char error[256];

	assert_non_null(mkdtemp(directory));
	snprintf(fifo, sizeof(fifo), "%s/fifo", directory);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	alarm(60);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(config_load(names[i], &config, error, sizeof(error)), -EINVAL);
		assert_ptr_equal(strstr(error, names[i]), error);
		assert_non_null(strstr(error, ": not a regular file; "));
	}
	assert_int_equal(config_load("/dev/null", &config, error, sizeof(error)), 0);
	config_done(&config);
	alarm(0);
	unlink(fifo);
	rmdir(directory);
}

static void test_sources_and_filter(void **state _unused_)
{
	struct config config = load("[profile]\nevent = cpu-clock\nevent = page-faults\nrate = 97\n"
				    "[filter]\ncpus = 1,65\nusers = 0, 4294967294,\troot\n"
				    "comms = exactly15bytes_ ,, x\nkernel_only = yes\n");
	struct control_source sources[STACKTAP_MAX_SOURCES];
	struct control_filter filter;
	char error[256] = "";
	size_t count = 0;

	assert_int_equal(config_sources(&config, sources, &count, error, sizeof(error)), 0);
	assert_int_equal(count, 2);
	assert_int_equal(sources[0].id, 0);
	assert_int_equal(sources[1].id, 1);
	assert_int_equal(sources[0].rate_hz, 97);
	assert_int_equal(sources[0].mode, STACKTAP_MODE_PERIOD);
	assert_int_equal(sources[1].mode, STACKTAP_MODE_FREQ);
	assert_int_equal(config_filter(&config, &filter, error, sizeof(error)), 0);
	assert_int_equal(filter.cpu_words, 2);
	assert_true(filter.cpus[0] == 2 && filter.cpus[1] == 2);
	assert_int_equal(filter.flags,
			 STACKTAP_FILTER_KERNEL_ONLY | STACKTAP_FILTER_EXCLUDE_IDLE);
	assert_null(filter.tgids);
	assert_int_equal(filter.uid_count, 3);
	assert_true(filter.uids[1] == 4294967294 && !filter.uids[2]);
	assert_int_equal(filter.comm_count, 2);
	assert_memory_equal(filter.comms[0], "exactly15bytes_", STACKTAP_COMM_LEN);
	assert_memory_equal(filter.comms[1], "x\0\0\0\0\0\0\0\0\0\0\0\0\0\0", STACKTAP_COMM_LEN);
	control_filter_done(&filter);
	config_done(&config);

	/* a period is a period, also of what has no nominal rate */
	config = load("[profile]\nevent = page-faults\nperiod = 10\n");
	assert_int_equal(config_sources(&config, sources, &count, error, sizeof(error)), 0);
	assert_int_equal(sources[0].mode, STACKTAP_MODE_PERIOD);
	assert_int_equal(sources[0].period, 10);
	assert_int_equal(sources[0].rate_hz, 0);
	config_done(&config);
}

static void test_cgroups_are_looked_for_late(void **state _unused_)
{
	struct config config = load("[filter]\ncgroups = no/such.slice\n");
	struct control_filter filter;
	char error[256] = "";

	assert_int_equal(config_filter(&config, &filter, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "cgroup"));
	config_done(&config);
}

static void test_comparison(void **state _unused_)
{
	struct config a = load("[profile]\nevent = cycles\nevent = cpu-clock\n[store]\ndirectory = /a\n");
	struct config b = load("[profile]\nevent = cycles\nevent = cs\n[store]\ndirectory = /b\n");
	struct config c = load("[profile]\nevent = cycles\nrate = 20\n[store]\ndirectory =\n");

	assert_true(config_same(&a, &a, "profile", NULL));
	assert_false(config_same(&a, &b, "profile", "event"));
	assert_false(config_same(&a, &c, "profile", "event"));
	assert_true(config_same(&a, &b, "profile", "rate"));
	assert_false(config_same(&a, &c, "profile", "rate"));
	assert_false(config_same(&a, &b, "store", NULL));
	assert_false(config_same(&a, &c, "store", "directory"));
	assert_true(config_same(&a, &c, "store", "max_bytes"));
	config_done(&a);
	config_done(&b);
	config_done(&c);
}

static void test_exchange(void **state _unused_)
{
	struct config a = load("[profile]\nevent = cs\nrate = 3\n[filter]\ncpus = 1\nuser_only = yes\n");
	struct config b = load("[profile]\nevent = cycles\nevent = cpu-clock\nrate = 4\n");
	struct config old_a = a, old_b = b;

	config_swap(&a, &b, "filter", NULL);
	assert_null(a.cpus);
	assert_ptr_equal(b.cpus, old_a.cpus);
	assert_false(a.user_only);
	assert_true(b.user_only);
	assert_int_equal(a.rate_hz, 3);
	config_swap(&a, &b, "profile", NULL);
	assert_int_equal(a.rate_hz, 4);
	assert_int_equal(a.event_count, 2);
	assert_string_equal(b.events[0], "cs");
	assert_ptr_equal(a.store_directory, old_a.store_directory);
	assert_ptr_equal(b.store_directory, old_b.store_directory);
	config_done(&a);
	config_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_record_takes_what_the_daemon_has),
		cmocka_unit_test(test_every_option_round_trips),
		cmocka_unit_test(test_spellings),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_long_values),
		cmocka_unit_test(test_form),
		cmocka_unit_test(test_missing_file),
		cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_sources_and_filter),
		cmocka_unit_test(test_cgroups_are_looked_for_late),
		cmocka_unit_test(test_comparison),
		cmocka_unit_test(test_exchange),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
