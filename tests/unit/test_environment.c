// SPDX-License-Identifier: Apache-2.0
#include "synthetic.h"

#include <string.h>

#include "export/compression.h"
#include "export/environment.h"

static struct environment environment;
static char error[256];

static int load(void)
{
	return environment_load(&environment, error, sizeof(error));
}

static int clear(void **state)
{
	extern char **environ;

	(void)state;
	environment_free(&environment);
	for (char **entry = environ; *entry;) {
		char name[128];

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*entry, "="), *entry);
		if (!strncmp(name, "OTEL_", 5))
			unsetenv(name);
		else
			entry++;
	}
	return 0;
}

static void nothing_is_given(void **state)
{
	(void)state;
	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "  ", 1);
	assert_int_equal(load(), 0);
	assert_null(environment.endpoint);
	assert_null(environment.headers);
	assert_null(environment.service_name);
	assert_false(environment.has_compression);
	assert_int_equal(environment.timeout_ms, 0);
	assert_int_equal(environment.resource_count, 0);
}

static void a_base_gets_the_path(void **state)
{
	(void)state;
	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318", 1);
	assert_int_equal(load(), 0);
	assert_string_equal(environment.endpoint, "http://collector:4318/v1development/profiles");
	environment_free(&environment);
	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector/otlp/", 1);
	assert_int_equal(load(), 0);
	assert_string_equal(environment.endpoint, "https://collector/otlp/v1development/profiles");
}

static void the_signals_own_endpoint_is_used_as_it_is(void **state)
{
	(void)state;
	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318", 1);
	setenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://pyroscope:4040/x", 1);
	assert_int_equal(load(), 0);
	assert_string_equal(environment.endpoint, "http://pyroscope:4040/x");
}

static void the_signals_own_values_come_first(void **state)
{
	(void)state;
	setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "5000", 1);
	setenv("OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT", "2500", 1);
	setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none", 1);
	setenv("OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION", "gzip", 1);
	setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=1", 1);
	setenv("OTEL_EXPORTER_OTLP_PROFILES_HEADERS", "b=2", 1);
	setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem", 1);
	setenv("OTEL_EXPORTER_OTLP_PROFILES_CLIENT_KEY", "/key.pem", 1);
	assert_int_equal(load(), 0);
	assert_int_equal(environment.timeout_ms, 2500);
	assert_true(environment.has_compression && environment.compression == COMPRESSION_GZIP);
	assert_string_equal(environment.headers, "b=2");
	assert_string_equal(environment.certificate, "/ca.pem");
	assert_string_equal(environment.client_key, "/key.pem");
}

static void resources_are_decoded(void **state)
{
	(void)state;
	setenv("OTEL_RESOURCE_ATTRIBUTES", " host.name = a%20b ,, k%3D=v=w,empty=", 1);
	setenv("OTEL_SERVICE_NAME", "shop", 1);
	setenv("OTEL_SDK_DISABLED", "TRUE", 1);
	assert_int_equal(load(), 0);
	assert_int_equal(environment.resource_count, 3);
	assert_string_equal(environment.resource[0].key, "host.name");
	assert_string_equal(environment.resource[0].value, "a b");
	assert_string_equal(environment.resource[1].key, "k=");
	assert_string_equal(environment.resource[1].value, "v=w");
	assert_string_equal(environment.resource[2].value, "");
	assert_string_equal(environment.service_name, "shop");
	assert_true(environment.is_disabled);
}

/* Over gRPC every endpoint is a base; a socket has no path of its own. */
static void the_protocol_makes_the_path(void **state)
{
	(void)state;
	setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf", 1);
	setenv("OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL", "grpc", 1);
	setenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "https://collector:4317/", 1);
	assert_int_equal(load(), 0);
	assert_true(environment.has_protocol && environment.protocol == PROTOCOL_GRPC);
	assert_string_equal(environment.endpoint, "https://collector:4317/");
	assert_string_equal(environment.grpc_endpoint, "https://collector:4317/opentelemetry.proto.collector."
			    "profiles.v1development.ProfilesService/Export");
	unsetenv("OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL");
	unsetenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT");
	environment_free(&environment);
	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "unix:///run/otel.sock", 1);
	assert_int_equal(load(), 0);
	assert_true(environment.has_protocol && environment.protocol == PROTOCOL_HTTP_PROTOBUF);
	assert_string_equal(environment.endpoint, "unix:///run/otel.sock");
	assert_string_equal(environment.grpc_endpoint, "unix:///run/otel.sock");
	unsetenv("OTEL_EXPORTER_OTLP_PROTOCOL");
	unsetenv("OTEL_EXPORTER_OTLP_ENDPOINT");
}

static void what_cannot_be_used_is_refused_by_name(void **state)
{
	static const char *const bad[][2] = {
		{ "OTEL_EXPORTER_OTLP_PROTOCOL", "http" },
		{ "OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL", "http/xml" },
		{ "OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318" },
		{ "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "unix:x" },
		{ "OTEL_EXPORTER_OTLP_TIMEOUT", "ten" },
		{ "OTEL_EXPORTER_OTLP_TIMEOUT", "-1" },
		{ "OTEL_EXPORTER_OTLP_TIMEOUT", "0" },
		{ "OTEL_EXPORTER_OTLP_COMPRESSION", "lz4" },
		{ "OTEL_EXPORTER_OTLP_HEADERS", "no-equals" },
		{ "OTEL_EXPORTER_OTLP_HEADERS", "a=b%0d%0aEvil: yes" },
		{ "OTEL_EXPORTER_OTLP_HEADERS", "a=%zz" },
		{ "OTEL_RESOURCE_ATTRIBUTES", "=value" },
		{ "OTEL_RESOURCE_ATTRIBUTES", "a=%4" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		setenv(bad[i][0], bad[i][1], 1);
		assert_int_equal(load(), -EINVAL);
		assert_non_null(strstr(error, bad[i][0]));
		assert_true(error[strlen(error) - 1] != '.');
		unsetenv(bad[i][0]);
	}
	assert_int_equal(load(), 0);
	assert_string_equal(error, "");
}

static void secrets_stay_out_of_messages(void **state)
{
	(void)state;
	setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=s3cret,broken", 1);
	assert_int_equal(load(), -EINVAL);
	assert_null(strstr(error, "s3cret"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, clear, clear)
		T(nothing_is_given), T(a_base_gets_the_path),
		T(the_signals_own_endpoint_is_used_as_it_is), T(the_signals_own_values_come_first),
		T(resources_are_decoded), T(the_protocol_makes_the_path), T(what_cannot_be_used_is_refused_by_name),
		T(secrets_stay_out_of_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
