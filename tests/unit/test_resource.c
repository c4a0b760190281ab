// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "service/host.h"
#include "export/otlp.h"
#include "export/resource.h"

enum {
	LIMIT = 128,		/* as stacktap.conf(5) says */
	ROUNDS = 40000,
	MOMENTS = 3000,
};

static struct encode_attribute attributes[LIMIT + 1];
static char names[LIMIT + 1][32];

static int make_attributes(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++) {
		snprintf(names[i], sizeof(names[i]), "key.%zu", i);
		attributes[i] = (struct encode_attribute){ .key = names[i], .value = names[i] };
	}
	return 0;
}

static struct image *image_with_details(void)
{
	struct image_details *details = calloc(1, sizeof(*details));
	struct image *image = image_new(NULL, 7, 0, "comm");

	assert_non_null(details);
	assert_non_null(image);
	details->executable_path = strdup("/bin/program");
	details->executable_name = strdup("program");
	details->command_line = strdup("program -x");
	details->container_id = strdup("c0ffee");
	details->container_name = strdup("machine");
	details->pod_uid = strdup("uid");
	details->pod_qos = strdup("Burstable");
	details->unit = strdup("web.service");
	details->cgroup = strdup("0::/system.slice/web.service");
	details->service_name = strdup("shop");
	details->attributes = strdup("deployment.environment.name=test%20lab,key.0=not-this");
	details->pid_in_namespace = 3;
	image_set_details(image, details);
	return image;
}

static OtlpResource *resource_by(struct image *image, const struct encode_options *options,
				 struct buffer *buffer)
{
	OtlpResourceProfiles *profiles;
	OtlpResource *resource;
	struct relabel_result sent = { 0 };

	buffer_init(buffer, POOL_ENCODE);
	assert_int_equal(resource_write(buffer, options, image, &sent), 0);
	assert_int_equal(sent.one_in, 1);
	profiles = (void *)protobuf_c_message_unpack(
		&opentelemetry__proto__profiles__v1development__resource_profiles__descriptor, NULL,
		buffer->size, buffer->data);
	assert_non_null(profiles);
	resource = profiles->resource;
	profiles->resource = NULL;
	protobuf_c_message_free_unpacked(&profiles->base, NULL);
	return resource;
}

/* The Resource of an image beside the first @count attributes. */
static OtlpResource *resource_of(struct image *image, size_t count, struct buffer *buffer)
{
	const struct encode_options options = { .service_name = "default", .resource = attributes,
						.resource_count = count };

	return resource_by(image, &options, buffer);
}

static const char *value_of(const OtlpResource *resource, const char *key)
{
	for (size_t i = 0; i < resource->n_attributes; i++)
		if (!strcmp(resource->attributes[i]->key, key))
			return resource->attributes[i]->value->string_value;
	return NULL;
}

static void assert_all_are_there(struct image *image, size_t own)
{
	struct buffer buffer;
	OtlpResource *resource = resource_of(image, LIMIT, &buffer);

	assert_int_equal(resource->n_attributes, LIMIT + own);
	for (size_t i = 0; i < LIMIT; i++)
		assert_string_equal(value_of(resource, names[i]), names[i]);
	assert_string_equal(value_of(resource, "service.name"), "default");
	protobuf_c_message_free_unpacked(&resource->base, NULL);
	buffer_free(&buffer);
}

static void as_many_as_are_accepted_fit(void **state _unused_)
{
	struct image *image = image_with_details();

	assert_all_are_there(NULL, 2);
	assert_all_are_there(image, 13);
	image_unref(image);
}

static int64_t number_of(const OtlpResource *resource, const char *key)
{
	for (size_t i = 0; i < resource->n_attributes; i++)
		if (!strcmp(resource->attributes[i]->key, key))
			return resource->attributes[i]->value->int_value;
	return -1;
}

static void each_fact_has_its_key(void **state _unused_)
{
	static const char *const facts[][2] = {
		{ "process.executable.path", "/bin/program" }, { "process.executable.name", "program" },
		{ "process.command_line", "program -x" }, { "container.id", "c0ffee" }, { "container.name", "machine" },
		{ "k8s.pod.uid", "uid" }, { "k8s.pod.qos_class", "Burstable" }, { "systemd.unit", "web.service" },
		{ "process.linux.cgroup", "0::/system.slice/web.service" }, { "deployment.environment.name", "test lab" },
	};
	struct image *image = image_with_details();
	struct buffer buffer;
	OtlpResource *resource = resource_of(image, 0, &buffer);

	for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
		assert_string_equal(value_of(resource, facts[i][0]), facts[i][1]);
	assert_int_equal(number_of(resource, "process.pid"), image->tgid);
	assert_int_equal(number_of(resource, "process.vpid"), 3);
	protobuf_c_message_free_unpacked(&resource->base, NULL);
	buffer_free(&buffer);
	/* where they are the same there is but one */
	atomic_load(&image->details)->pid_in_namespace = 0;
	resource = resource_of(image, 0, &buffer);
	assert_int_equal(number_of(resource, "process.vpid"), -1);
	protobuf_c_message_free_unpacked(&resource->base, NULL);
	buffer_free(&buffer);
	image_unref(image);
}

/* Each gives a value before it is known that the key is taken. */
static void a_key_that_is_taken_needs_no_place(void **state _unused_)
{
	struct buffer buffer;
	OtlpResource *resource;

	for (size_t i = 1; i < LIMIT; i++)
		attributes[i].key = names[0];
	resource = resource_of(NULL, LIMIT, &buffer);
	assert_int_equal(resource->n_attributes, 3);
	assert_string_equal(value_of(resource, names[0]), names[0]);
	protobuf_c_message_free_unpacked(&resource->base, NULL);
	buffer_free(&buffer);
	make_attributes(NULL);
}

static void more_are_refused(void **state _unused_)
{
	const struct encode_options options = { .resource = attributes,
						.resource_count = LIMIT + 1 };
	struct buffer buffer;
	struct relabel_result sent;

	buffer_init(&buffer, POOL_ENCODE);
	assert_int_equal(resource_write(&buffer, &options, NULL, &sent), -E2BIG);
	assert_int_equal(buffer.size, 0);
	buffer_free(&buffer);
}

/* @count pairs from number @first on, separated by commas */
static char *pairs(size_t first, size_t count)
{
	char *text = calloc(count + 1, 32), *end = text;

	assert_non_null(text);
	for (size_t i = first; i < first + count; i++)
		end += sprintf(end, "key.%zu=v,", i);
	return text;
}

static void what_does_not_fit_is_refused_where_it_is_given(void **state _unused_)
{
	struct environment environment;
	struct host_resource resource;
	char error[256] = "";
	char *text = pairs(0, LIMIT + 1);

	setenv("OTEL_RESOURCE_ATTRIBUTES", text, 1);
	free(text);
	assert_int_equal(environment_load(&environment, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "128"));

	/* what both give, together with what is known of the host */
	text = pairs(0, 100);
	setenv("OTEL_RESOURCE_ATTRIBUTES", text, 1);
	free(text);
	assert_int_equal(environment_load(&environment, error, sizeof(error)), 0);
	text = pairs(90, 30);
	assert_int_equal(host_resource_load(&environment, text, &resource, error, sizeof(error)),
			 0);
	assert_true(resource.count >= 100 + 20 + 4 && resource.count <= LIMIT);
	host_resource_done(&resource);
	free(text);
	text = pairs(100, 29);
	assert_int_equal(host_resource_load(&environment, text, &resource, error, sizeof(error)),
			 -E2BIG);
	assert_non_null(strstr(error, "128"));
	free(text);
	environment_free(&environment);
	unsetenv("OTEL_RESOURCE_ATTRIBUTES");
}

static void assert_service(struct image *image, const struct encode_options *options,
			   const char *expected)
{
	struct buffer buffer;
	OtlpResource *resource = resource_by(image, options, &buffer);

	assert_string_equal(value_of(resource, "service.name"), expected);
	protobuf_c_message_free_unpacked(&resource->base, NULL);
	buffer_free(&buffer);
}

static struct image_context *context(const char *service)
{
	struct image_context *context = calloc(1, sizeof(*context));

	assert_non_null(context);
	context->service_name = strdup(service);
	context->attributes = strdup("deployment.environment.name=live,service.instance.id=17,k8s.pod.uid=no");
	return context;
}

/* Each in turn, as what comes before it goes away. */
static void services_have_a_precedence(void **state _unused_)
{
	static const struct encode_attribute configured = { "service.name", "attribute" };
	struct encode_options options = { .service_name = "configured", .resource = &configured,
					  .resource_count = 1 };
	struct image *image = image_with_details();
	struct image_details *details = atomic_load(&image->details);

	assert_service(image, &options, "configured");
	options.service_name = NULL;
	assert_service(image, &options, "attribute");
	options.resource_count = 0;
	assert_int_equal(image_set_context(image, context("older")), 0);
	assert_int_equal(image_set_context(image, context("published")), 0);
	assert_service(image, &options, "published");
	atomic_load(&image->context)->service_name[0] = '\0';
	assert_service(image, &options, "shop");
	details->service_name[0] = '\0';
	assert_service(image, &options, "web");
	strcpy(details->unit, "a.scope");
	assert_service(image, &options, "machine");
	details->container_name[0] = '\0';
	assert_service(image, &options, "program");
	details->executable_name[0] = '\0';
	assert_service(image, &options, "comm");
	assert_service(NULL, &options, "[kernel]");
	image_unref(image);
}

static void what_the_process_says_of_itself_comes_last(void **state _unused_)
{
	struct image *image = image_with_details();
	struct buffer buffer;
	OtlpResource *resource = resource_of(image, 1, &buffer);

	assert_string_equal(value_of(resource, "deployment.environment.name"), "test lab");
	assert_string_equal(value_of(resource, names[0]), names[0]);
	assert_string_equal(value_of(resource, "k8s.pod.uid"), "uid");
	assert_string_equal(value_of(resource, "k8s.pod.qos_class"), "Burstable");
	assert_string_equal(value_of(resource, "systemd.unit"), "web.service");
	assert_string_equal(value_of(resource, "process.linux.cgroup"),
			    "0::/system.slice/web.service");
	assert_string_equal(value_of(resource, "container.name"), "machine");
	protobuf_c_message_free_unpacked(&resource->base, NULL);
	buffer_free(&buffer);

	/* what it publishes comes before its environment */
	assert_int_equal(image_set_context(image, context("published")), 0);
	resource = resource_of(image, 1, &buffer);
	assert_string_equal(value_of(resource, "deployment.environment.name"), "live");
	assert_string_equal(value_of(resource, "service.instance.id"), "17");
	assert_string_equal(value_of(resource, "k8s.pod.uid"), "uid");
	protobuf_c_message_free_unpacked(&resource->base, NULL);
	buffer_free(&buffer);
	image_unref(image);
}

static void contexts_are_bounded(void **state _unused_)
{
	const size_t before = pool_get(POOL_PROCESSES)->used;
	struct image *image = image_with_details();

	for (int i = 0; i < IMAGE_CONTEXTS_MAX; i++)
		assert_int_equal(image_set_context(image, context("published")), 0);
	assert_int_equal(image_set_context(image, context("another")), -ENOBUFS);
	assert_string_equal(image_context(image)->service_name, "published");
	image_unref(image);
	assert_int_equal(pool_get(POOL_PROCESSES)->used, before);
}

static struct {
	_Atomic(struct image *) image;	/* NULL: done */
	_Atomic bool is_over;
} publishing;

/* As thread B: of each image that there is to be had, a context that says less. */
static void *publish(void *ctx _unused_)
{
	struct image_context *another;
	unsigned int moment = 0;
	struct image *image;

	while (!atomic_load(&publishing.is_over)) {
		image = atomic_load(&publishing.image);
		if (!image) {
			sched_yield();
			continue;
		}
		another = context("newer");
		free(another->attributes);
		another->attributes = NULL;
		/* some time later, each time another one */
		for (volatile unsigned int k = moment++ % MOMENTS; k; k--)
			;
		image_set_context(image, another);
		atomic_store(&publishing.image, NULL);
	}
	return NULL;
}

/* As thread C meanwhile. */
static void a_resource_is_of_one_context(void **state _unused_)
{
	const struct encode_options options = { 0 };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, publish, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct image *image = image_new(NULL, 7, 0, "comm");
		OtlpResource *resource;
		struct buffer buffer;

		assert_int_equal(image_set_context(image, context("older")), 0);
		atomic_store(&publishing.image, image);
		resource = resource_by(image, &options, &buffer);
		assert_int_equal(!strcmp(value_of(resource, "service.name"), "older"),
				 value_of(resource, "service.instance.id") != NULL);
		protobuf_c_message_free_unpacked(&resource->base, NULL);
		buffer_free(&buffer);
		while (atomic_load(&publishing.image))
			sched_yield();
		image_unref(image);
	}
	atomic_store(&publishing.is_over, true);
	pthread_join(thread, NULL);
}

static size_t kept_of(const struct image *image)
{
	size_t count = 0;

	for (const struct image_resource *kept = atomic_load(&image->resource); kept; kept = kept->older)
		count++;
	return count;
}

/* It has the bytes that options which keep none make of it, whether it was kept or not. */
static void assert_as_made(struct image *image, const struct encode_options *options)
{
	struct encode_options fresh = *options;
	struct buffer made = { .pool = POOL_ENCODE }, got = { .pool = POOL_ENCODE };
	struct relabel_result sent;
	const size_t kept = kept_of(image);

	fresh.number = 0;
	assert_int_equal(resource_write(&made, &fresh, image, &sent), 0);
	assert_int_equal(kept_of(image), kept);
	assert_int_equal(resource_write(&got, options, image, &sent), 0);
	assert_int_equal(sent.one_in, 1);
	assert_int_equal(got.size, made.size);
	assert_memory_equal(got.data, made.data, made.size);
	buffer_free(&made);
	buffer_free(&got);
}

static void what_is_kept_is_what_is_known(void **state _unused_)
{
	const struct encode_options options = { .service_name = NULL, .number = 1 };
	const struct encode_options others = { .service_name = "other", .number = 2 };
	const size_t before = pool_get(POOL_PROCESSES)->used;
	struct image *unknown = image_new(NULL, 8, 0, "unknown"), *image = image_with_details();

	assert_non_null(unknown);
	for (int i = 0; i < 3; i++)
		assert_as_made(image, &options);
	assert_int_equal(kept_of(image), 1);
	assert_as_made(image, &others);
	assert_as_made(image, &options);
	assert_int_equal(kept_of(image), 2);
	/* more becomes known, and there is an end to what is kept of it */
	for (int i = 0; i < IMAGE_CONTEXTS_MAX; i++) {
		char name[32];

		snprintf(name, sizeof(name), "service %d", i);
		assert_int_equal(image_set_context(image, context(name)), 0);
		assert_as_made(image, &options);
		assert_as_made(image, &options);
		assert_as_made(image, &others);
	}
	assert_int_equal(kept_of(image), IMAGE_RESOURCES_MAX);
	/* of what nothing is known yet none is */
	assert_as_made(unknown, &options);
	assert_int_equal(kept_of(unknown), 0);
	image_unref(unknown);
	image_unref(image);
	assert_int_equal(pool_get(POOL_PROCESSES)->used, before);
}

/* What rules matched is counted for each window; drafts count nothing, and may be kept. */
static void rules_count_each_time(void **state _unused_)
{
	struct encode_options options = { .number = 1 };
	struct image *image = image_with_details();
	struct buffer buffer = { .pool = POOL_ENCODE };
	struct relabel_result sent;
	char error[256];

	assert_int_equal(relabel_new(&options.relabel), 0);
	assert_int_equal(relabel_add(options.relabel, "drop container.id c0.*", error, sizeof(error)), 0);
	options.is_draft = true;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(resource_write(&buffer, &options, image, &sent), 0);
		assert_int_equal(sent.one_in, 0);
		assert_int_equal(buffer.size, 0);
	}
	assert_int_equal(kept_of(image), 1);
	assert_int_equal(relabel_count(options.relabel, 0).matched, 0);
	options.is_draft = false;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(resource_write(&buffer, &options, image, &sent), 0);
		assert_int_equal(sent.one_in, 0);
		assert_int_equal(sent.rule, 0);
	}
	assert_int_equal(kept_of(image), 1);
	assert_int_equal(relabel_count(options.relabel, 0).matched, 3);
	relabel_free(options.relabel);
	image_unref(image);
}

static void *write_all(void *ctx)
{
	const struct encode_options options = { .number = 1 };
	struct image **images = ctx;

	for (int i = 0; i < ROUNDS / 10; i++) {
		struct buffer buffer = { .pool = POOL_ENCODE };
		struct relabel_result sent;

		assert_int_equal(resource_write(&buffer, &options, images[i], &sent), 0);
		assert_true(buffer.size > 100);
		buffer_free(&buffer);
	}
	return NULL;
}

/* Threads A and C come to need it at the same time. */
static void two_threads_may_keep_it(void **state _unused_)
{
	static struct image *images[ROUNDS / 10];
	const size_t before = pool_get(POOL_PROCESSES)->used;
	pthread_t thread;

	for (int i = 0; i < ROUNDS / 10; i++)
		images[i] = image_with_details();
	assert_int_equal(pthread_create(&thread, NULL, write_all, images), 0);
	write_all(images);
	pthread_join(thread, NULL);
	for (int i = 0; i < ROUNDS / 10; i++) {
		assert_in_range(kept_of(images[i]), 1, 2);
		image_unref(images[i]);
	}
	assert_int_equal(pool_get(POOL_PROCESSES)->used, before);
}

static void releases_are_read_as_a_shell_does(void **state _unused_)
{
	static const char text[] = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME='it is $5'\n"
				   "VERSION_ID=12\nX_NAME=no\nQUOTED=\"a \\\"b\\\" \\$c\"\nEMPTY=\n"
				   "OPEN=\"to the end\nLAST=x";
	static const char *const cases[][2] = {
		{ "PRETTY_NAME", "Debian GNU/Linux 12 (bookworm)" }, { "NAME", "it is $5" },
		{ "VERSION_ID", "12" }, { "QUOTED", "a \"b\" $c" }, { "EMPTY", "" },
		{ "OPEN", "to the end" }, { "LAST", "x" }, { "VERSION", "" }, { "AME", "" },
	};
	char value[32], cut[4];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		host_release_value(text, cases[i][0], value, sizeof(value));
		assert_string_equal(value, cases[i][1]);
	}
	host_release_value(text, "PRETTY_NAME", cut, sizeof(cut));
	assert_string_equal(cut, "Deb");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_as_are_accepted_fit),
		cmocka_unit_test(each_fact_has_its_key),
		cmocka_unit_test(a_key_that_is_taken_needs_no_place),
		cmocka_unit_test(more_are_refused),
		cmocka_unit_test(services_have_a_precedence),
		cmocka_unit_test(what_the_process_says_of_itself_comes_last),
		cmocka_unit_test(contexts_are_bounded),
		cmocka_unit_test(a_resource_is_of_one_context),
		cmocka_unit_test(what_is_kept_is_what_is_known),
		cmocka_unit_test(rules_count_each_time),
		cmocka_unit_test(two_threads_may_keep_it),
		cmocka_unit_test(releases_are_read_as_a_shell_does),
		cmocka_unit_test(what_does_not_fit_is_refused_where_it_is_given),
	};

	return cmocka_run_group_tests(tests, make_attributes, NULL);
}
