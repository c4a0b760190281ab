// SPDX-License-Identifier: Apache-2.0
/* OpenTelemetry process contexts: in a process that publishes one, through both helpers, into its image. */
#include "fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../vm/workload/publish.h"
#include "base/clock.h"
#include "base/pool.h"
#include "export/otlp.h"
#include "helper/protocol.h"
#include "process/context.h"
#include "process/details.h"
#include "profile/window.h"
#include "resolve/contexts.h"
#include "symbol/context.h"

/* What the child is told to do, by a byte each. */
enum command {
	DO_NOTHING = '.',
	DO_PUBLISH = 'p',
	DO_CHANGE = 'c',
	DO_BEGIN_CHANGE = '0',
	DO_OTHER_VERSION = 'v',
	DO_EMPTY = 'e',
	DO_POINT_NOWHERE = 'n',
	DO_MALFORM = 'm',
	DO_WITHDRAW = 'w',
};

static pid_t child;
static int to_child, from_child;
static struct opener *opener;
static struct parser *parser;
static struct contexts *contexts;

static void obey(struct published *context, struct payload *payload, enum command command)
{
	switch (command) {
	case DO_NOTHING:
		break;
	case DO_CHANGE:
		payload_add(payload, "service.instance.id", "a=b,c%");
		publish_payload(context, payload);
		break;
	case DO_BEGIN_CHANGE:
		atomic_store(&context->time, 0);
		break;
	case DO_OTHER_VERSION:
		context->version = 3;
		break;
	case DO_EMPTY:
		context->size = 0;
		break;
	case DO_POINT_NOWHERE:
		context->payload = 8;
		atomic_store(&context->time, boot_time());
		break;
	case DO_MALFORM:
		payload->bytes[1] = 0xff;
		publish_payload(context, payload);
		break;
	case DO_WITHDRAW:
		munmap(context, sizeof(*context));
		break;
	default:
		publish_payload(context, payload);
	}
}

static void run_child(int in, int out)
{
	static struct payload payload;
	struct published *context = publish_place();
	uint8_t command;

	/* where only parents may look at a process: the opener is its sibling */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	payload_add(&payload, "service.name", "cart");
	payload_add(&payload, "service.version", "1.2, beta");
	payload_add(&payload, "host.name", "a lie");
	while (read(in, &command, 1) == 1) {
		obey(context, &payload, command);
		if (write(out, &command, 1) != 1)
			break;
	}
	_exit(0);
}

static void tell(enum command command)
{
	uint8_t byte = (uint8_t)command;

	assert_int_equal(write(to_child, &byte, 1), 1);
	assert_int_equal(read(from_child, &byte, 1), 1);
}

static int start_child(void **state _unused_)
{
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		close(in[1]);
		close(out[0]);
		run_child(in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	to_child = in[1];
	from_child = out[0];
	if (child < 0)
		return -1;
	tell(DO_NOTHING);
	return 0;
}

static void end_child(void)
{
	close(to_child);
	close(from_child);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static int stop_child(void **state _unused_)
{
	end_child();
	return pool_get(POOL_PROCESSES)->used != 0;
}

/* As the opener would. */
static int read_child(const struct context *known, struct context *ret_context)
{
	_cleanup_close_ int memory = -1;
	_cleanup_fclose_ FILE *maps = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", child);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/maps", child);
	maps = fopen(path, "re");
	assert_true(memory >= 0);
	assert_non_null(maps);
	return context_read(memory, maps, known, ret_context);
}

static void what_is_published_is_found(void **state _unused_)
{
	const struct context none = { 0 };
	struct context context, again;
	struct context_facts facts;

	assert_int_equal(read_child(&none, &context), -EBADMSG); /* nothing is in it yet */
	tell(DO_PUBLISH);
	assert_int_equal(read_child(&none, &context), 0);
	assert_non_null(context.payload);
	assert_true(context.address && context.published);
	assert_int_equal(context_parse(context.payload, context.size, &facts), 0);
	assert_string_equal(facts.service_name, "cart");
	assert_string_equal(facts.attributes, "service.version=1.2%2C%20beta");
	free(context.payload);

	/* it is known */
	assert_int_equal(read_child(&context, &again), 0);
	assert_null(again.payload);
	assert_true(again.address == context.address && again.published == context.published);

	tell(DO_CHANGE);
	assert_int_equal(read_child(&context, &again), 0);
	assert_true(again.published != context.published);
	assert_int_equal(context_parse(again.payload, again.size, &facts), 0);
	assert_string_equal(facts.attributes, "service.version=1.2%2C%20beta,service.instance.id=a%3Db%2Cc%25");
	free(again.payload);

	/* where it was there is something else now: it is looked for */
	context.address = (uintptr_t)&again;
	context.published = 0;
	assert_int_equal(read_child(&context, &again), 0);
	assert_non_null(again.payload);
	free(again.payload);
	tell(DO_WITHDRAW);
	assert_int_equal(read_child(&again, &context), -ENODATA);
}

static void what_cannot_be_read_is_none(void **state _unused_)
{
	static const enum command bad[] = { DO_OTHER_VERSION, DO_EMPTY, DO_POINT_NOWHERE };
	const struct context none = { 0 };
	struct context context;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		tell(DO_PUBLISH);
		assert_int_equal(read_child(&none, &context), 0);
		free(context.payload);
		tell(bad[i]);
		assert_int_equal(read_child(&none, &context), -EBADMSG);
	}
	tell(DO_PUBLISH);
	tell(DO_BEGIN_CHANGE);
	assert_int_equal(read_child(&none, &context), -EAGAIN);
}

/* Written by another encoder, and cut at each byte. */
static void what_it_may_say_is_taken(void **state _unused_)
{
	static char keys[][32] = {
		"service.name", "service.name", "telemetry.sdk.name", "deployment.environment.name",
		"service.replicas", "k8s.is_spot", "service.weight", "process.pid",
	};
	OtlpKeyValue pairs[ARRAY_SIZE(keys)], *pointers[ARRAY_SIZE(keys)];
	OtlpAnyValue values[ARRAY_SIZE(keys)];
	OtlpResource resource;
	struct context_facts facts;
	char first[] = "value\xff", second[] = "second";
	uint8_t bytes[1024];
	size_t size;

	opentelemetry__proto__resource__v1__resource__init(&resource);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		otlp_common_init(key_value, &pairs[i]);
		otlp_common_init(any_value, &values[i]);
		pairs[i].key = keys[i];
		pairs[i].value = &values[i];
		pointers[i] = &pairs[i];
		values[i].value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
		values[i].string_value = i == 1 ? second : first;
	}
	values[4].value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE;
	values[4].int_value = -3;
	values[5].value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BOOL_VALUE;
	values[5].bool_value = true;
	values[6].value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_DOUBLE_VALUE;
	values[6].double_value = 0.5;
	resource.attributes = pointers;
	resource.n_attributes = ARRAY_SIZE(keys);
	size = protobuf_c_message_get_packed_size(&resource.base);
	assert_in_range(size, 128, sizeof(bytes) - 3);
	bytes[0] = 0x0a;
	bytes[1] = (uint8_t)(size | 0x80);
	bytes[2] = (uint8_t)(size >> 7);
	protobuf_c_message_pack(&resource.base, bytes + 3);
	size += 3;
	assert_int_equal(context_parse(bytes, size, &facts), 0);
	assert_string_equal(facts.service_name, "value?");
	assert_string_equal(facts.attributes,
			    "deployment.environment.name=value%3F,service.replicas=-3,k8s.is_spot=true");
	for (size_t i = 1; i < size; i++) {
		_cleanup_free_ uint8_t *cut = malloc(i);

		memcpy(cut, bytes, i);
		assert_int_equal(context_parse(cut, i, &facts), -EBADMSG);
	}
	assert_int_equal(context_parse(bytes, 0, &facts), 0);
}

static void as_many_as_fit_are_taken(void **state _unused_)
{
	_cleanup_free_ struct payload *payload = calloc(1, sizeof(*payload));
	struct context_facts facts;
	char many[40 * 64], key[16], value[91];
	size_t size = 0, count = 0;

	memset(value, '+', sizeof(value) - 1); /* three bytes each when encoded: three fit */
	value[sizeof(value) - 1] = '\0';
	for (int i = 0; i < 20; i++) {
		snprintf(key, sizeof(key), "k8s.%c", 'a' + i);
		payload->size = 0;
		payload_add(payload, key, i < 4 ? value : "v");
		memcpy(many + size, payload->bytes, payload->size);
		size += payload->size;
	}
	assert_int_equal(context_parse((uint8_t *)many, size, &facts), 0);
	for (const char *at = facts.attributes; (at = strchr(at, '=')); at++)
		count++;
	assert_int_equal(count, DETAILS_MAX_ATTRIBUTES);
	assert_non_null(strstr(facts.attributes, "k8s.c=%2B"));
	assert_null(strstr(facts.attributes, "k8s.d="));
	assert_non_null(strstr(facts.attributes, ",k8s.q=v"));
}

static int start_helpers(void **state)
{
	assert_int_equal(opener_new(&opener), 0);
	assert_int_equal(parser_new(&parser), 0);
	assert_int_equal(contexts_new(opener, parser, &contexts), 0);
	return start_child(state);
}

static int stop_helpers(void **state)
{
	contexts_free(contexts);
	parser_free(parser);
	opener_free(opener);
	return stop_child(state);
}

static struct image *image_of_child(const char *executable)
{
	struct image *image = image_new(NULL, (uint32_t)child, 0, "child");
	struct image_details *details = calloc(1, sizeof(*details));

	assert_non_null(image);
	assert_non_null(details);
	assert_int_equal(details_set_executable(details, executable), 0);
	image_set_details(image, details);
	return image;
}

static time_t skipped;	/* seconds */

int clock_gettime(clockid_t id, struct timespec *time)
{
	int ret = (int)syscall(SYS_clock_gettime, id, time);

	time->tv_sec += id == CLOCK_MONOTONIC ? skipped : 0;
	return ret;
}

/* One that is due comes so late that the credit is whole again: on a busy host the questions before took all of it. */
static void look(struct image *image, bool is_due)
{
	struct window_sample samples[] = { { .image = NULL }, { .image = image }, { .image = image } };
	const struct window window = { .samples = samples, .sample_count = ARRAY_SIZE(samples) };

	if (is_due) {
		image->context_next = 0;
		skipped += 3600;
	}
	contexts_look(contexts, &window, NULL);
}

/* Most of a window's processes are gone when it ends: no question is wasted on them. */
static void who_has_gone_is_not_asked(void **state)
{
	const uint64_t before = contexts_stats(contexts)->put_off;
	struct opener_stats stats;
	struct image *image = image_of_child("/bin/child");
	uint64_t questions;

	opener_stats(opener, &stats);
	questions = stats.helper.calls;
	look(image, true);
	opener_stats(opener, &stats);
	assert_int_equal(stats.helper.calls, questions + 1);
	end_child();
	look(image, true);
	opener_stats(opener, &stats);
	assert_int_equal(stats.helper.calls, questions + 1);
	assert_int_equal(contexts_stats(contexts)->put_off, before);
	image_unref(image);
	assert_int_equal(start_child(state), 0);
}

static void the_image_gets_what_its_process_publishes(void **state _unused_)
{
	char executable[PATH_MAX] = "";
	struct image *image, *other;
	struct opener_stats stats;
	uint64_t questions;

	assert_true(readlink("/proc/self/exe", executable, sizeof(executable) - 1) > 0);
	image = image_of_child(executable);
	other = image_of_child("/bin/another");
	look(image, false);
	assert_null(image_context(image));
	assert_int_equal(contexts_stats(contexts)->bad, 1);

	/* not again so soon, and later with ever longer pauses */
	tell(DO_PUBLISH);
	opener_stats(opener, &stats);
	questions = stats.helper.calls;
	look(image, false);
	opener_stats(opener, &stats);
	assert_int_equal(stats.helper.calls, questions);
	look(image, true);
	assert_int_equal(contexts_stats(contexts)->read, 1);
	assert_string_equal(image_context(image)->service_name, "cart");
	look(image, true);
	assert_int_equal(contexts_stats(contexts)->read, 1);
	/* the one that is known is an answer, too */
	opener_stats(opener, &stats);
	assert_int_equal(stats.helper.deaths, 0);
	assert_int_equal(stats.helper.starts, 1);
	assert_int_equal(image->context_wait, 10 * NSEC_PER_SEC);

	tell(DO_CHANGE);
	look(image, true);
	assert_int_equal(contexts_stats(contexts)->read, 2);
	assert_non_null(strstr(image_context(image)->attributes, "service.instance.id"));

	/* what is no message leaves what was there before */
	tell(DO_MALFORM);
	look(image, true);
	assert_int_equal(contexts_stats(contexts)->bad, 2);
	assert_string_equal(image_context(image)->service_name, "cart");

	/* the process runs another program than this image */
	look(other, true);
	assert_null(image_context(other));
	tell(DO_WITHDRAW);
	look(image, true);
	look(image, true);
	assert_int_equal(image->context_wait, 80 * NSEC_PER_SEC);
	assert_int_equal(contexts_stats(contexts)->read, 2);
	assert_int_equal(contexts_stats(contexts)->put_off + contexts_stats(contexts)->refused, 0);
	image_unref(image);
	image_unref(other);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_published_is_found, start_child, stop_child),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_is_none, start_child, stop_child),
		cmocka_unit_test(what_it_may_say_is_taken),
		cmocka_unit_test(as_many_as_fit_are_taken),
		cmocka_unit_test_setup_teardown(who_has_gone_is_not_asked, start_helpers, stop_helpers),
		cmocka_unit_test_setup_teardown(the_image_gets_what_its_process_publishes, start_helpers, stop_helpers),
	};

	(void)argc;
	(void)argv;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
