// SPDX-License-Identifier: Apache-2.0
/* Headers from a file, which is exchanged while requests go on. */
#include "loopback.h"

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "export/header_file.h"
#include "export/http.h"

static char directory[] = "/tmp/stacktap-test-XXXXXX", path[64], other[64];

static struct {
	pthread_t thread;
	int fd;
	char request[8192];
	_Atomic unsigned int requests;
} receiver;

/* One request a connection; its body is of one byte. */
static void *receive(void *ctx)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	int fd;

	while ((fd = accept(receiver.fd, NULL, NULL)) >= 0) {
		size_t have = 0;
		const char *body = NULL;
		ssize_t n = 1;

		while (n > 0 && !(body && body[4])) {
			n = read(fd, receiver.request + have, sizeof(receiver.request) - 1 - have);
			have += (size_t)(n > 0 ? n : 0);
			receiver.request[have] = '\0';
			body = strstr(receiver.request, "\r\n\r\n");
		}
		receiver.requests++;
		if (write(fd, answer, sizeof(answer) - 1) < 0)
			n = 0;
		close(fd);
	}
	return ctx;
}

static void put(const char *text)
{
	FILE *file = fopen(other, "we");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(rename(other, path), 0);
}

static void post(struct http *http, struct http_answer *answer)
{
	http_post(http, (const uint8_t *)"x", 1, COMPRESSION_NONE, 10000, answer);
}

static void sends(struct http *http, const char *is, const char *is_not)
{
	const unsigned int before = receiver.requests;
	struct http_answer answer;

	post(http, &answer);
	assert_int_equal(answer.result, HTTP_ACCEPTED);
	assert_int_equal(receiver.requests, before + 1);
	assert_non_null(strcasestr(receiver.request, is));
	if (is_not)
		assert_null(strcasestr(receiver.request, is_not));
	/* what the options say of themselves stays, and once */
	assert_non_null(strstr(receiver.request, "\r\nx-of: options\r\n"));
	assert_non_null(strstr(receiver.request, "\r\nOTLP-Profiles-Development-Version: 1\r\n"));
	assert_null(strstr(strstr(receiver.request, "\r\nContent-Type:") + 2, "\r\nContent-Type:"));
}

static void keeps(struct http *http, const char *why)
{
	const unsigned int before = receiver.requests;
	struct http_answer answer;

	post(http, &answer);
	assert_int_equal(answer.result, HTTP_RETRY);
	assert_int_equal(receiver.requests, before);
	assert_non_null(strstr(answer.text, path));
	if (!strstr(answer.text, why))
		fail_msg("%s: not %s", answer.text, why);
	assert_null(strstr(answer.text, "s3cret"));
}

static void each_request_has_what_the_file_says(void **state _unused_)
{
	struct http *http;
	char url[64];

	receiver.fd = loopback_listen(url, sizeof(url));
	assert_int_equal(pthread_create(&receiver.thread, NULL, receive, NULL), 0);
	assert_int_equal(http_new(&(struct http_options){ .endpoint = url, .headers = "x-of=options", .headers_file = path },
				  &http), 0);
	keeps(http, "No such file");
	put("# renewed each hour\n\n  Authorization:  Bearer s3cret-1 \r\nx-empty:\nContent-Type: text/html\n");
	sends(http, "\r\nAuthorization: Bearer s3cret-1\r\n", "text/html");
	assert_non_null(strstr(receiver.request, "\r\nx-empty:\r\n"));
	sends(http, "\r\nAuthorization: Bearer s3cret-1\r\n", NULL);
	/* of the same size, in the same second */
	put("# renewed each hour\n\n  Authorization:  Bearer s3cret-2 \r\nx-empty:\nContent-Type: text/html\n");
	sends(http, "\r\nAuthorization: Bearer s3cret-2\r\n", "s3cret-1");
	put("s3cret\n");
	keeps(http, "a line that is not `name: value'");
	put("Authorization: s3cret\001\n");
	keeps(http, "a line that is not `name: value'");
	put(": s3cret\n");
	keeps(http, "a line that is not `name: value'");
	put("a b: s3cret\n");
	keeps(http, "a line that is not `name: value'");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	keeps(http, "a line that is not `name: value'");
	put("");
	sends(http, "\r\nx-of", "s3cret");
	put("Authorization: Bearer s3cret-3");
	sends(http, "\r\nAuthorization: Bearer s3cret-3\r\n", NULL);
	shutdown(receiver.fd, SHUT_RDWR);
	pthread_join(receiver.thread, NULL);
	close(receiver.fd);
	http_free(http);
}

static void its_size_is_bounded(void **state _unused_)
{
	_cleanup_free_ char *large = malloc(65536 + 2);
	char *text = NULL;

	assert_non_null(large);
	memset(large, 'x', 65537);
	large[65537] = '\0';
	put(large);
	assert_int_equal(header_file_read(path, &text), -EFBIG);
	large[65536] = '\0';
	put(large);
	assert_int_equal(header_file_read(path, &text), 0);
	free(text);
	assert_int_equal(truncate(path, 65535), 0);
	assert_int_equal(truncate(path, 65536), 0);
	assert_int_equal(header_file_read(path, &text), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_request_has_what_the_file_says),
		cmocka_unit_test(its_size_is_bounded),
	};
	int failed;

	if (!mkdtemp(directory))
		return 1;
	snprintf(path, sizeof(path), "%s/headers", directory);
	snprintf(other, sizeof(other), "%s/new", directory);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(directory);
	return failed;
}
