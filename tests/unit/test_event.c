// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/stat.h>

#include "client/event.h"
#include "client/pmu.h"

static struct control_source parse(const char *text)
{
	struct control_source source;
	char error[256] = "";

	if (event_parse(text, &source, error, sizeof(error)) < 0)
		fail_msg("%s: %s", text, error);
	return source;
}

static void assert_refused(const char *text, const char *word)
{
	struct control_source source = { .id = 77 };
	char error[256] = "";

	assert_int_equal(event_parse(text, &source, error, sizeof(error)), -EINVAL);
	if (!strstr(error, word))
		fail_msg("%s: `%s' does not say `%s'", text, error, word);
	/* nothing is written on failure */
	assert_int_equal(source.id, 77);
}

static void test_names(void **state _unused_)
{
	static const struct {
		const char *text;
		uint32_t type;
		uint64_t config;
		uint32_t flags;
	} known[] = {
		{ "cycles", 0, 0, 0 },
		{ "cpu-cycles", 0, 0, 0 },
		{ "instructions:u", 0, 1, STACKTAP_SRC_EXCLUDE_KERNEL },
		{ "branch-misses:k", 0, 5, STACKTAP_SRC_EXCLUDE_USER },
		{ "cycles:uk", 0, 0, 0 },
		{ "CYCLES:u", 0, 0, STACKTAP_SRC_EXCLUDE_KERNEL },
		{ "cpu-clock", 1, 0, 0 },
		{ "task-clock", 1, 1, 0 },
		{ "page-faults", 1, 2, 0 },
		{ "faults", 1, 2, 0 },
		{ "cs", 1, 3, 0 },
		{ "minor-faults", 1, 5, 0 },
		{ "L1-dcache-loads", 3, 0, 0 },
		{ "L1-dcache-load-misses", 3, 0x10000, 0 },
		{ "LLC-store-misses", 3, 0x10102, 0 },
		{ "dTLB-prefetches", 3, 0x203, 0 },
		{ "r1a8", 4, 0x1a8, 0 },
		{ "alignment-faults", 1, 7, 0 },
		{ "cpu-migrations", 1, 4, 0 },
		{ "rffffffffffffffff:u", 4, UINT64_MAX, STACKTAP_SRC_EXCLUDE_KERNEL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct control_source source = parse(known[i].text);

		assert_int_equal(source.type, known[i].type);
		assert_true(source.config == known[i].config);
		assert_int_equal(source.flags, known[i].flags);
		assert_string_equal(source.name, known[i].text);
	}
}

static void test_nominal_rates(void **state _unused_)
{
	assert_int_equal(parse("cpu-clock").nominal_hz, 1000000000);
	assert_int_equal(parse("cpu-clock").mode, STACKTAP_MODE_PERIOD);
	/* never 0, whatever this machine can count: the fallback needs a period */
	assert_true(parse("cycles").nominal_hz >= 1000000);
	assert_int_equal(parse("cycles").mode, STACKTAP_MODE_PERIOD);
	assert_int_equal(parse("page-faults").nominal_hz, 0);
	assert_int_equal(parse("page-faults").mode, STACKTAP_MODE_FREQ);
}

static void test_paces(void **state _unused_)
{
	static const struct {
		const char *text, *name;
		uint32_t rate_hz;
		uint64_t period;
		int mode;
	} known[] = {
		{ "cycles/freq=997/", "cycles", 997, 0, STACKTAP_MODE_PERIOD },
		{ "cycles/freq=997/u", "cycles:u", 997, 0, STACKTAP_MODE_PERIOD },
		{ "cycles/period=100003/:k", "cycles:k", 0, 100003, STACKTAP_MODE_PERIOD },
		{ "page-faults/freq=10000/", "page-faults", 10000, 0, STACKTAP_MODE_FREQ },
		{ "page-faults/period=9223372036854775807/", "page-faults", 0, INT64_MAX,
		  STACKTAP_MODE_PERIOD },
		{ "r1a8/period=7/", "r1a8", 0, 7, STACKTAP_MODE_PERIOD },
		{ "software/freq=9,config=2/u", "software/config=2/u", 9, 0, STACKTAP_MODE_FREQ },
		{ "software/config=2,period=3/", "software/config=2/", 0, 3, STACKTAP_MODE_PERIOD },
		{ "cycles", "cycles", 0, 0, STACKTAP_MODE_PERIOD },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct control_source source = parse(known[i].text);

		assert_string_equal(source.name, known[i].name);
		assert_int_equal(source.rate_hz, known[i].rate_hz);
		assert_true(source.period == known[i].period);
		assert_int_equal(source.mode, known[i].mode);
	}
	assert_int_equal(parse("cycles/freq=9/u").flags, STACKTAP_SRC_EXCLUDE_KERNEL);
	assert_refused("cycles/freq=0/", "rate `0'");
	assert_refused("cycles/freq=10001/", "1 to 10000 Hz");
	assert_refused("cycles/freq=-1/", "rate `-1'");
	assert_refused("cycles/freq=9x/", "rate `9x'");
	assert_refused("cycles/period=/", "period `'");
	assert_refused("cycles/period=9223372036854775808/", "period `9223372036854775808'");
	assert_refused("cycles/freq=9,period=9/", "not both");
	assert_refused("cylces/freq=9/", "did you mean `cycles'");
	assert_refused("cycles/freq=9/x", "`cycles:x'");
	assert_refused("cycles/config=1,freq=9/", "no PMU `cycles'");
}

static void test_refusals(void **state _unused_)
{
	char name[600];

	assert_refused("nopmu/config=2/x", "modifier `x'");
	assert_refused("", "name");
	assert_refused("cylces", "did you mean `cycles'");
	assert_refused("cycle", "did you mean `cycles'");
	assert_refused("L1-dcache-load-mises", "L1-dcache-load-misses");
	assert_refused("xyzzy-foo-bar", "known are");
	assert_refused("sched:sched_switch", "tracepoints");
	assert_refused("cycles:", "colon");
	assert_refused("cycles:uh", "modifier");
	assert_refused("cycles:p", "remove the modifier: cycles");
	assert_refused("cycles:upp", "remove the modifier: cycles:u");
	assert_refused("cycles:kP", "remove the modifier: cycles:k");
	assert_refused("cycles:pppp", "precise events are not supported");
	assert_refused("cycles:Sp", "modifier `Sp'");
	assert_refused("cycles/freq=9/ppu", "remove the modifier: cycles:u");
	assert_refused("no-such-pmu/config=1/pk", "remove the modifier: no-such-pmu/config=1/k");
	assert_refused("no-such-pmu/config=1/:p", "remove the modifier: no-such-pmu/config=1/");
	assert_refused("rxyz", "unknown event");
	assert_refused("r10000000000000000", "unknown event");
	assert_refused("no-such-pmu/config=1/", "no PMU `no-such-pmu'");
	assert_refused("../config=1/", "no PMU");
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_refused(name, "long");
	name[255] = '\0';
	assert_refused(name, "known are");
}

static void test_names_of_events(void **state _unused_)
{
	assert_string_equal(event_name(PERF_TYPE_HARDWARE, 0), "cycles");
	assert_string_equal(event_name(PERF_TYPE_SOFTWARE, 3), "context-switches");
	assert_string_equal(event_name(PERF_TYPE_HW_CACHE, 0x10000), "L1-dcache-load-misses");
	assert_string_equal(event_name(PERF_TYPE_RAW, 0x1a8), "r1a8");
	assert_null(event_name(PERF_TYPE_HW_CACHE, 0x20000));
	assert_null(event_name(PERF_TYPE_HW_CACHE, 0x7));
	assert_null(event_name(99, 0));
	assert_true(event_is_clock(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK));
	assert_false(event_is_clock(PERF_TYPE_HARDWARE, 0));
	assert_true(event_is_cpu_time(PERF_TYPE_HARDWARE, 0));
	assert_false(event_is_cpu_time(PERF_TYPE_HARDWARE, 1));
}

/* A PMU of our own: /sys differs from machine to machine. */
static char pmus[] = "/tmp/stacktap-pmu-XXXXXX";

static void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", pmus, name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	fclose(file);
}

static void make_directory(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", pmus, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static int make_pmus(void **state _unused_)
{
	assert_non_null(mkdtemp(pmus));
	make_directory("cpu");
	make_directory("cpu/format");
	make_directory("cpu/events");
	write_file("cpu/type", "42\n");
	write_file("cpu/format/event", "config:0-7,32-35\n");
	write_file("cpu/format/umask", "config:8-15\n");
	write_file("cpu/format/edge", "config:18\n");
	write_file("cpu/format/ldlat", "config1:0-15\n");
	write_file("cpu/format/all", "config2:0-63\n");
	write_file("cpu/format/strange", "config9:0-3\n");
	write_file("cpu/format/backwards", "config:7-0\n");
	write_file("cpu/format/wide", "config:0-64\n");
	write_file("cpu/events/stall", "event=0xa2,umask=0x1\n");
	write_file("cpu/events/loop", "loop\n");
	return 0;
}

static int remove_pmus(void **state _unused_)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", pmus);
	return system(command);
}

static void assert_pmu(const char *text, uint64_t config, uint64_t config1, uint64_t config2)
{
	struct pmu_event event;
	char error[256] = "";

	if (pmu_parse(pmus, text, &event, error, sizeof(error)) < 0)
		fail_msg("%s: %s", text, error);
	assert_int_equal(event.type, 42);
	assert_true(event.config[0] == config);
	assert_true(event.config[1] == config1);
	assert_true(event.config[2] == config2);
}

static void assert_pmu_refused(const char *text, const char *word)
{
	struct pmu_event event;
	char error[256] = "";

	assert_int_equal(pmu_parse(pmus, text, &event, error, sizeof(error)), -EINVAL);
	if (!strstr(error, word))
		fail_msg("%s: `%s' does not say `%s'", text, error, word);
}

static void test_pmu(void **state _unused_)
{
	assert_pmu("cpu/config=0x8/", 8, 0, 0);
	assert_pmu("cpu/config=8,config1=9,config2=10/", 8, 9, 10);
	assert_pmu("cpu/event=0xfa2,umask=0x1/", 0xf000001a2, 0, 0);
	assert_pmu("cpu/event=0xff,event=0x1/", 1, 0, 0);
	assert_pmu("cpu/edge/", 1 << 18, 0, 0);
	assert_pmu("cpu/ldlat=30/", 0, 30, 0);
	assert_pmu("cpu/all=0xffffffffffffffff/", 0, 0, UINT64_MAX);
	assert_pmu("cpu/stall,edge/", 0x1a2 | 1 << 18, 0, 0);
	assert_pmu("cpu//", 0, 0, 0);
	assert_pmu_refused("cpu/event=0x1000/", "too large");
	assert_pmu_refused("cpu/event=/", "number");
	assert_pmu_refused("cpu/event=-1/", "number");
	assert_pmu_refused("cpu/event=1x/", "number");
	assert_pmu_refused("cpu/nosuch=1/", "no term `nosuch'");
	assert_pmu_refused("cpu/nosuch/", "no event `nosuch'");
	assert_pmu_refused("cpu/strange=1/", "not supported");
	assert_pmu_refused("cpu/backwards=1/", "unknown format");
	assert_pmu_refused("cpu/wide=1/", "unknown format");
	assert_pmu_refused("cpu/loop/", "no event `loop'");
	assert_pmu_refused("cpu/.=1/", "no term `.'");
	assert_pmu_refused("cpu/..=1/", "no term `..'");
	assert_pmu_refused("gpu/config=1/", "there are: cpu");
	assert_pmu_refused("cpu", "of the form");
	assert_pmu_refused("cpu/config=1", "of the form");
	assert_pmu_refused("cpu/config=1/x", "of the form");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_nominal_rates),
		cmocka_unit_test(test_paces),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_names_of_events),
		cmocka_unit_test_setup_teardown(test_pmu, make_pmus, remove_pmus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
