// SPDX-License-Identifier: Apache-2.0
/* From configuration and environment to what an exporter is made of. */
#include "unit.h"

#include <string.h>

#include "service/delivery.h"

static struct config config;
static struct delivery delivery;
static char error[256];

static int setup(void **state _unused_)
{
	unsetenv("OTEL_EXPORTER_OTLP_ENDPOINT");
	unsetenv("OTEL_SDK_DISABLED");
	return 0;
}

static int teardown(void **state _unused_)
{
	delivery_done(&delivery);
	config_done(&config);
	return setup(state);
}

static void load(const char *text, struct config *ret_config)
{
	char path[] = "/tmp/stacktap-delivery-XXXXXX";
	int fd = mkstemp(path);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(config_load(path, ret_config, error, sizeof(error)), 0);
	unlink(path);
}

static void deliver(const char *text)
{
	load(text, &config);
	assert_int_equal(delivery_init(&delivery, &config, error, sizeof(error)), 0);
}

static void without_a_receiver_the_store_has_it(void **state _unused_)
{
	deliver("");
	assert_int_equal(delivery.exporter.destination_count, 0);
	assert_string_equal(delivery.exporter.store_directory, "/var/lib/stacktap");
	assert_int_equal(delivery.form_count, 1);
}

static void one_receiver_has_no_name(void **state _unused_)
{
	deliver("[export]\nendpoint = http://a\n[spool]\ndirectory = /s\n");
	assert_int_equal(delivery.exporter.destination_count, 1);
	assert_string_equal(delivery.destinations[0].name, "");
	assert_string_equal(delivery.destinations[0].http.endpoint, "http://a/v1development/profiles");
	assert_string_equal(delivery.destinations[0].spool_directory, "/s");
	/* a reload may change its form */
	assert_null(delivery.destinations[0].recovered_form);
	assert_null(delivery.exporter.store_directory);
}

static void each_has_its_own_settings(void **state _unused_)
{
	const struct destination_options *all = delivery.destinations;

	deliver("[destination far]\nendpoint = https://far\nprotocol = grpc\ncompression = none\ntimeout_seconds = 3\n"
		"headers = a=b\nheaders_file = /h\ncertificate = /c\nclient_certificate = /d\nclient_key = /k\nspool =\n"
		"spool_max_bytes = 65537\nspool_max_age_hours = 3\n"
		"[export]\nendpoint = http://near\nheaders_file = /n\nclient_key = /nk\n[spool]\nmax_bytes = 65538\nmax_age_hours = 2\n");
	assert_int_equal(delivery.exporter.destination_count, 2);
	assert_string_equal(all[0].name, "export");
	assert_true(all[0].compression == COMPRESSION_GZIP && all[0].http.protocol == PROTOCOL_HTTP_PROTOBUF && all[0].timeout_ms == 10000);
	assert_null(all[0].http.headers);
	assert_string_equal(all[0].http.headers_file, "/n");
	assert_string_equal(all[0].http.client_key, "/nk");
	assert_true(all[0].spool_max_bytes == 65538 && all[0].spool_max_age_ms == 2 * 3600 * 1000);
	assert_string_equal(all[1].name, "far");
	assert_non_null(strstr(all[1].http.endpoint, "https://far/opentelemetry.proto.collector"));
	assert_true(all[1].compression == COMPRESSION_NONE && all[1].http.protocol == PROTOCOL_GRPC && all[1].timeout_ms == 3000);
	assert_string_equal(all[1].http.headers, "a=b");
	assert_string_equal(all[1].http.headers_file, "/h");
	assert_string_equal(all[1].http.certificate, "/c");
	assert_string_equal(all[1].http.client_certificate, "/d");
	assert_string_equal(all[1].http.client_key, "/k");
	assert_true(all[1].spool_max_bytes == 65537 && all[1].spool_max_age_ms == 3 * 3600 * 1000);
	assert_null(all[1].spool_directory);
	assert_true(delivery_has_journal(&delivery));
}

/* Windows are encoded once for all that want the same bytes. */
static void forms_are_shared(void **state _unused_)
{
	const struct destination_options *all = delivery.destinations;

	deliver("[export]\nendpoint = http://e\n[profile]\nkernel_suffix = _k\n"
		"[destination a]\nendpoint = http://a\nunnamed = range\n"
		"[destination b]\nendpoint = http://b\nunnamed = address\n"
		"[destination c]\nendpoint = http://c\nunnamed = range\nkernel_suffix = _k\n"
		"[destination d]\nendpoint = http://d\nkernel_suffix = _[k]\n"
		"[destination e]\nendpoint = http://f\nrepeat_functions = yes\n");
	assert_int_equal(delivery.form_count, 4);
	assert_int_equal(delivery.exporter.form_count, 4);
	assert_true(all[0].form == 0 && all[1].form == 1 && all[2].form == 0 && all[3].form == 1 && all[4].form == 2 &&
		    all[5].form == 3);
	assert_true(!delivery.forms[0].repeats_functions && delivery.forms[3].repeats_functions);
	for (size_t i = 0; i < delivery.exporter.destination_count; i++)
		assert_ptr_equal(delivery.destinations[i].recovered_form, &delivery.forms[delivery.destinations[i].form]);
	assert_true(!delivery.forms[0].names_ranges && delivery.forms[1].names_ranges);
	assert_string_equal(delivery.forms[1].kernel_suffix, "_k");
	assert_string_equal(delivery.forms[2].kernel_suffix, "_[k]");
}

static void the_environment_is_for_the_first(void **state _unused_)
{
	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://env", 1);
	deliver("[export]\nendpoint = http://e\n[destination a]\nendpoint = http://a\n");
	assert_string_equal(delivery.destinations[0].http.endpoint, "http://env/v1development/profiles");
	assert_string_equal(delivery.destinations[1].http.endpoint, "http://a/v1development/profiles");
}

static void one_that_is_disabled_sends_nothing(void **state _unused_)
{
	setenv("OTEL_SDK_DISABLED", "true", 1);
	deliver("[export]\nendpoint = http://e\n[destination a]\nendpoint = http://a\n");
	assert_int_equal(delivery.exporter.destination_count, 0);
	assert_non_null(delivery.exporter.store_directory);
}

/* As a reload that leaves the exporter as it is. */
static void read_again(const char *text)
{
	struct config new, old = config;

	load(text, &new);
	assert_true(delivery_same(&config, &new));
	config = new;
	delivery_swap(&config, &old);
	delivery_take_form(&delivery, &config);
	config_done(&old);
}

static void a_reload_leaves_what_destinations_borrow(void **state _unused_)
{
	static const char destinations[] = "kernel_suffix = _[k]\n[destination a]\nendpoint = http://a\n"
					   "[destination b]\nendpoint = http://b\nkernel_suffix = _b\n";
	char text[256];

	snprintf(text, sizeof(text), "[profile]\n%s", destinations);
	deliver(text);
	snprintf(text, sizeof(text), "[profile]\nmax_stack = 30\n%s", destinations);
	read_again(text);
	assert_int_equal(config.max_stack, 30);
	assert_string_equal(delivery.forms[0].kernel_suffix, "_[k]");
	assert_string_equal(delivery.forms[1].kernel_suffix, "_b");
	assert_string_equal(delivery.destinations[1].http.endpoint, "http://b/v1development/profiles");
}

static void a_reload_may_change_the_only_form(void **state _unused_)
{
	deliver("[profile]\nkernel_suffix = _[k]\n[export]\nendpoint = http://a\n");
	read_again("[profile]\nkernel_suffix = _kernel\nunnamed = range\nrepeat_functions = yes\n[export]\nendpoint = http://a\n");
	assert_string_equal(delivery.forms[0].kernel_suffix, "_kernel");
	assert_true(delivery.forms[0].names_ranges && delivery.forms[0].repeats_functions);
	read_again("[export]\nendpoint = http://a\n");
	assert_null(delivery.forms[0].kernel_suffix);
	assert_false(delivery.forms[0].names_ranges || delivery.forms[0].repeats_functions);
}

/* What destinations inherit of [profile] is in their forms, which a reload makes anew then. */
static void a_reload_of_what_destinations_inherit_restarts_them(void **state _unused_)
{
	static const char rest[] = "[export]\nendpoint = http://a\n[destination b]\nendpoint = http://b\nrepeat_functions = no\n";
	static const char *const options[] = { "unnamed = range", "kernel_suffix = _[k]", "repeat_functions = yes" };
	struct config new;
	char text[256];

	deliver(rest);
	assert_false(delivery.forms[0].repeats_functions);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		snprintf(text, sizeof(text), "[profile]\n%s\n%s", options[i], rest);
		load(text, &new);
		assert_false(delivery_same(&config, &new));
		config_done(&new);
	}
	teardown(NULL);
	deliver(text);
	assert_true(delivery.forms[0].repeats_functions && delivery.destinations[1].form == 1 &&
		    !delivery.forms[1].repeats_functions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(without_a_receiver_the_store_has_it), T(one_receiver_has_no_name), T(each_has_its_own_settings),
		T(forms_are_shared), T(the_environment_is_for_the_first), T(one_that_is_disabled_sends_nothing),
		T(a_reload_leaves_what_destinations_borrow), T(a_reload_may_change_the_only_form),
		T(a_reload_of_what_destinations_inherit_restarts_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
