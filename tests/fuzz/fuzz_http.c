// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a receiver's answer, over HTTP and gRPC: header lines up to an empty one, trailers up to another, then
 * the body. This program has a handle of its own in libcurl's place, which calls what it was given as libcurl would.
 * No crash, a verdict that the exporter can go by, a text that may be printed, all memory back.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* they are functions here */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#undef curl_easy_setopt
#undef curl_easy_getinfo

#include "base/pool.h"
#include "export/http.h"

enum { SILENCE_MAX_MS = 300 * 1000, KEPT_MAX = 65536 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	curl_write_callback body, header;
	void *body_ctx, *header_ctx;
	const char *bytes;	/* of the answer */
	size_t size;
	CURLcode result;	/* how the connection fares */
	char type[256];
	long status;
} handle;

CURL *curl_easy_init(void)
{
	return &handle;
}

void curl_easy_cleanup(CURL *curl)
{
	(void)curl;
}

CURLcode curl_easy_setopt(CURL *curl, CURLoption option, ...)
{
	va_list args;

	(void)curl;
	va_start(args, option);
	if (option == CURLOPT_WRITEFUNCTION)
		handle.body = va_arg(args, curl_write_callback);
	else if (option == CURLOPT_HEADERFUNCTION)
		handle.header = va_arg(args, curl_write_callback);
	else if (option == CURLOPT_WRITEDATA)
		handle.body_ctx = va_arg(args, void *);
	else if (option == CURLOPT_HEADERDATA)
		handle.header_ctx = va_arg(args, void *);
	va_end(args);
	return CURLE_OK;
}

CURLcode curl_easy_getinfo(CURL *curl, CURLINFO info, ...)
{
	va_list args;

	(void)curl;
	va_start(args, info);
	if (info == CURLINFO_CONTENT_TYPE)
		*va_arg(args, const char **) = handle.type[0] ? handle.type : NULL;
	else if (info == CURLINFO_RESPONSE_CODE)
		*va_arg(args, long *) = handle.status;
	else
		*va_arg(args, long *) = 1;
	va_end(args);
	return CURLE_OK;
}

/* Lines up to an empty one, each in memory of its own size, so that nobody reads beyond it. */
static bool feed_lines(void)
{
	while (handle.size) {
		const char *end = memchr(handle.bytes, '\n', handle.size);
		size_t length = end ? (size_t)(end - handle.bytes) + 1 : handle.size, taken;
		char *line = malloc(length);

		if (!line)
			abort();
		memcpy(line, handle.bytes, length);
		handle.bytes += length;
		handle.size -= length;
		if (length > 13 && !strncasecmp(line, "content-type:", 13))
			snprintf(handle.type, sizeof(handle.type), "%.*s", (int)(length - 13), line + 13);
		if (length > 5 && !strncmp(line, "HTTP/", 5)) {
			char text[32] = "";

			memcpy(text, line, min_of(length, sizeof(text) - 1));
			handle.status = strtol(text + strcspn(text, " "), NULL, 10);
		}
		taken = handle.header(line, 1, length, handle.header_ctx);
		free(line);
		if (taken != length)
			return false;
		if (length <= 2)
			break;
	}
	return true;
}

CURLcode curl_easy_perform(CURL *curl)
{
	const char *trailers;
	size_t trailers_size;

	(void)curl;
	handle.type[0] = '\0';
	handle.status = 0;
	if (!feed_lines())
		return CURLE_WRITE_ERROR;
	/* trailers come behind the body, which is what is left behind them here */
	trailers = handle.bytes;
	trailers_size = handle.size;
	while (handle.size && *handle.bytes != '\n') {
		const char *end = memchr(handle.bytes, '\n', handle.size);
		const size_t length = end ? (size_t)(end - handle.bytes) + 1 : handle.size;

		handle.bytes += length;
		handle.size -= length;
	}
	for (size_t at = handle.size != 0; at < handle.size; at += 4096) {
		const size_t part = min_of(handle.size - at, (size_t)4096);
		char *copy = malloc(part);

		if (!copy)
			abort();
		memcpy(copy, handle.bytes + at, part);
		if (handle.body(copy, 1, part, handle.body_ctx) != part)
			handle.result = CURLE_WRITE_ERROR;
		free(copy);
	}
	trailers_size -= handle.size;
	handle.bytes = trailers;
	handle.size = trailers_size;
	return feed_lines() ? handle.result : CURLE_WRITE_ERROR;
}

static void check(const struct http_answer *answer)
{
	const size_t length = strnlen(answer->text, sizeof(answer->text));

	if (answer->result > HTTP_UNCONFIRMED || answer->retry_after_ms < -1 ||
	    answer->retry_after_ms > SILENCE_MAX_MS || answer->rejected < 0 || length == sizeof(answer->text))
		abort();
	/* a long one may end within a character, but has no byte that a terminal obeys */
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)answer->text[i] < ' ')
			abort();
	if (pool_get(POOL_ENCODE)->used > KEPT_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const CURLcode results[] = { CURLE_OK, CURLE_OK, CURLE_RECV_ERROR, CURLE_PARTIAL_FILE, CURLE_HTTP2,
					    CURLE_WEIRD_SERVER_REPLY, CURLE_OPERATION_TIMEDOUT, CURLE_OK };
	struct http_options options = { .endpoint = "http://localhost/" };
	struct http_answer answer;
	struct http *http;

	if (!size)
		return 0;
	options.protocol = data[0] & 1 ? PROTOCOL_GRPC : data[0] & 32 ? PROTOCOL_HTTP_JSON : PROTOCOL_HTTP_PROTOBUF;
	if (http_new(&options, &http))
		abort();
	/* one after the other: what is kept of the first must not be the second's */
	for (int i = 0; i < 2; i++) {
		handle.result = results[data[0] / 2 % 8];
		handle.bytes = (const char *)data + 1;
		handle.size = size - 1;
		http_post(http, (const uint8_t *)"request", 7, data[0] & 16 ? COMPRESSION_GZIP : COMPRESSION_NONE, 1000, &answer);
		check(&answer);
	}
	http_free(http);
	if (pool_get(POOL_ENCODE)->used)
		abort();
	return 0;
}
