// SPDX-License-Identifier: Apache-2.0
/* What gRPC's trailers and frames mean; with a real server see tests/oracle/exporter_cases.py. */
#include "unit.h"

#include <string.h>

#include "export/grpc.h"

static struct grpc_status read_lines(const char *const *lines, size_t count)
{
	struct grpc_status status;

	grpc_status_init(&status);
	for (size_t i = 0; i < count; i++)
		grpc_status_header(&status, lines[i]);
	return status;
}

#define READ(...) read_lines((const char *const[]){ __VA_ARGS__ }, \
			     sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void trailers_are_read(void **state)
{
	struct grpc_status status = READ("Content-Type: application/grpc", "grpc-statuses: 3", "grpc-status 3");

	(void)state;
	assert_int_equal(status.code, -1);
	assert_int_equal(status.retry_ms, -1);
	assert_int_equal(READ("grpc-status: 0").code, 0);
	assert_int_equal(READ("GRPC-Status:16").code, 16);
	/* one that nobody knows is UNKNOWN, which is final */
	assert_int_equal(READ("grpc-status: 17").code, 2);
	assert_int_equal(READ("grpc-status: x").code, 2);
	assert_int_equal(READ("grpc-status: -1").code, 2);
	assert_int_equal(READ("grpc-status: 99999999999999999999").code, 2);
	assert_string_equal(grpc_code_name(14), "UNAVAILABLE");
	assert_string_equal(grpc_code_name(-1), "no status");
	assert_string_equal(grpc_code_name(17), "no status");
}

static void messages_are_decoded(void **state)
{
	char line[4096] = "grpc-message: ";

	(void)state;
	assert_string_equal(READ("grpc-message: no%20%C3%BC here").message, "no \xc3\xbc here");
	/* not well encoded, and what would not do in a log */
	assert_string_equal(READ("grpc-message: 100%").message, "100%");
	assert_string_equal(READ("grpc-message: %zz%4").message, "%zz%4");
	assert_null(strchr(READ("grpc-message: a%1b[31m%0ab").message, 0x1b));
	assert_null(strchr(READ("grpc-message: a%1b[31m%0ab").message, '\n'));
	assert_string_equal(READ("grpc-message: a%00b").message, "a b");
	memset(line + strlen(line), 'x', 4000);
	assert_true(strlen(READ(line).message) < sizeof(((struct grpc_status *)NULL)->message));
}

/* google.rpc.Status with details: RetryInfo of 2.5 s, as a server sends it. */
#define DETAILS "grpc-status-details-bin: CAgaNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIAhCAyrXuAQ"

static void retries_are_those_of_the_specification(void **state)
{
	static const bool wanted[] = { false, true, false, false, true, false, false, false, false,
				       false, true, true, false, false, true, true, false };
	struct grpc_status status;
	char line[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		snprintf(line, sizeof(line), "grpc-status: %zu", i);
		status = READ(line);
		assert_int_equal(grpc_status_is_retryable(&status), wanted[i]);
	}
	status = READ("grpc-status: 8", DETAILS);
	assert_int_equal(status.retry_ms, 2500);
	assert_true(grpc_status_is_retryable(&status));
	/* with padding, which some send */
	assert_int_equal(READ("grpc-status: 8", DETAILS "==").retry_ms, 2500);
	/* rubbish and other details say nothing */
	assert_int_equal(READ("grpc-status-details-bin: !!!").retry_ms, -1);
	assert_int_equal(READ("grpc-status-details-bin: CAg").retry_ms, -1);
	assert_int_equal(READ("grpc-status-details-bin: ////").retry_ms, -1);
	assert_int_equal(READ("grpc-status-details-bin:").retry_ms, -1);
}

static void frames_are_checked(void **state)
{
	static const uint8_t answer[] = { 0, 0, 0, 0, 2, 0x0a, 0 }, compressed[] = { 1, 0, 0, 0, 0 },
			     strange[] = { 2, 0, 0, 0, 0 };
	uint8_t prefix[GRPC_PREFIX];
	const uint8_t *data;
	bool is_compressed;
	size_t size;

	(void)state;
	grpc_prefix(0x01020304, true, prefix);
	assert_memory_equal(prefix, "\1\1\2\3\4", sizeof(prefix));
	assert_int_equal(grpc_message(answer, sizeof(answer), &data, &size, &is_compressed), 0);
	assert_int_equal(size, 2);
	assert_false(is_compressed);
	assert_ptr_equal(data, answer + GRPC_PREFIX);
	for (size_t cut = 0; cut < sizeof(answer); cut++)
		assert_int_equal(grpc_message(answer, cut, &data, &size, &is_compressed), -EBADMSG);
	assert_int_equal(grpc_message(compressed, sizeof(compressed), &data, &size, &is_compressed), 0);
	assert_true(is_compressed);
	assert_int_equal(grpc_message(strange, sizeof(strange), &data, &size, &is_compressed), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trailers_are_read),
		cmocka_unit_test(messages_are_decoded),
		cmocka_unit_test(retries_are_those_of_the_specification),
		cmocka_unit_test(frames_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
