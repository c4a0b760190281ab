// SPDX-License-Identifier: Apache-2.0
#include "export/http.h"

#include <curl/curl.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/buffer.h"
#include "base/utf8.h"
#include "export/environment.h"
#include "export/otlp.h"
#include "export/unpack.h"
#include "stacktap/version.h"

#define RESPONSE_MAX ((size_t)4 << 20)
#define UNPACK_MAX ((size_t)1 << 20)
#define RETRY_AFTER_MAX_MS (300 * 1000)	/* a receiver cannot silence us for longer */
#define USER_AGENT "OTel-OTLP-Exporter-stacktap/" STACKTAP_VERSION

struct http {
	CURL *curl;
	struct curl_slist *headers;	/* for bodies as they are */
	struct curl_slist *gzip_headers;
	struct buffer response;
	bool is_too_large;
	int64_t retry_after_ms;
	char error[CURL_ERROR_SIZE];
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void curl_setup(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

static size_t on_body(char *data, size_t size, size_t count, void *ctx)
{
	struct http *http = ctx;

	size *= count;
	if (size > RESPONSE_MAX - http->response.size ||
	    buffer_append(&http->response, data, size)) {
		http->is_too_large = true;
		return 0;
	}
	return size;
}

/* Seconds, or an HTTP-date. */
static int64_t parse_retry_after(const char *text)
{
	int64_t ms;
	time_t date;
	char *end;

	if (*text >= '0' && *text <= '9') {
		errno = 0;
		ms = strtoll(text, &end, 10);
		end += strspn(end, " \t");
		if (*end)
			return -1;
		ms = errno || ms > RETRY_AFTER_MAX_MS / 1000 ? RETRY_AFTER_MAX_MS : ms * 1000;
		return ms;
	}
	date = curl_getdate(text, NULL);
	if (date == (time_t)-1)
		return -1;
	date -= time(NULL);
	if (date <= 0)
		return 0;
	return min_of((int64_t)date, (int64_t)RETRY_AFTER_MAX_MS / 1000) * 1000;
}

static size_t on_header(char *data, size_t size, size_t count, void *ctx)
{
	static const char name[] = "retry-after:";
	struct http *http = ctx;
	char line[128];

	size *= count;
	if (size >= 5 && !strncmp(data, "HTTP/", 5)) {
		/* the headers of an interim answer are not the answer's */
		http->retry_after_ms = -1;
		http->response.size = 0;
	} else if (size < sizeof(line) && size > sizeof(name) &&
		   !strncasecmp(data, name, sizeof(name) - 1)) {
		memcpy(line, data, size);
		line[size] = '\0';
		line[strcspn(line, "\r\n")] = '\0';
		data = line + sizeof(name) - 1;
		http->retry_after_ms = parse_retry_after(data + strspn(data, " \t"));
	}
	return size;
}

static int add_header(struct http *http, const char *line)
{
	struct curl_slist *list = curl_slist_append(http->headers, line);

	if (!list)
		return -ENOMEM;
	http->headers = list;
	list = curl_slist_append(http->gzip_headers, line);
	if (!list)
		return -ENOMEM;
	http->gzip_headers = list;
	return 0;
}

static int add_user_header(void *ctx, const char *key, const char *value)
{
	static const char *const ours[] = {
		"content-type", "content-encoding", "content-length", "transfer-encoding", "expect",
		"otlp-profiles-development-version",
	};
	_cleanup_free_ char *line = NULL;

	/* a second value of these would be refused, or would break the request */
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (!strcasecmp(key, ours[i]))
			return 0;
	if (strpbrk(key, ": \t") || asprintf(&line, "%s%s%s", key, value[0] ? ": " : ";", value) < 0)
		return -EINVAL;
	return add_header(ctx, line);
}

static int make_headers(struct http *http, const struct exporter_options *options)
{
	struct curl_slist *list;
	int err;

	err = add_header(http, "Content-Type: application/x-protobuf") ?:
	      add_header(http, "OTLP-Profiles-Development-Version: 1") ?:
	      add_header(http, "Expect:");
	if (!err && options->headers)
		err = environment_each_pair(options->headers, add_user_header, http);
	if (err)
		return err;
	list = curl_slist_append(http->gzip_headers, "Content-Encoding: gzip");
	if (!list)
		return -ENOMEM;
	http->gzip_headers = list;
	return 0;
}

static int make_handle(struct http *http, const struct exporter_options *options)
{
	CURL *curl = http->curl;
	CURLcode err = CURLE_OK;

	err |= curl_easy_setopt(curl, CURLOPT_URL, options->endpoint);
	err |= curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	err |= curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	err |= curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	err |= curl_easy_setopt(curl, CURLOPT_POST, 1L);
	err |= curl_easy_setopt(curl, CURLOPT_USERAGENT, USER_AGENT);
	err |= curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	err |= curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, http->error);
	err |= curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	err |= curl_easy_setopt(curl, CURLOPT_WRITEDATA, http);
	err |= curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	err |= curl_easy_setopt(curl, CURLOPT_HEADERDATA, http);
	if (options->certificate)
		err |= curl_easy_setopt(curl, CURLOPT_CAINFO, options->certificate);
	if (options->client_certificate)
		err |= curl_easy_setopt(curl, CURLOPT_SSLCERT, options->client_certificate);
	if (options->client_key)
		err |= curl_easy_setopt(curl, CURLOPT_SSLKEY, options->client_key);
	return err ? -EINVAL : 0;
}

int http_new(const struct exporter_options *options, struct http **ret_http)
{
	struct http *http = calloc(1, sizeof(*http));
	int err;

	if (!http)
		return -ENOMEM;
	pthread_once(&curl_once, curl_setup);
	buffer_init(&http->response, POOL_ENCODE);
	http->curl = curl_easy_init();
	err = http->curl ? make_headers(http, options) : -ENOMEM;
	if (!err)
		err = make_handle(http, options);
	if (err) {
		http_free(http);
		return err;
	}
	*ret_http = http;
	return 0;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	curl_easy_cleanup(http->curl);
	curl_slist_free_all(http->headers);
	curl_slist_free_all(http->gzip_headers);
	buffer_free(&http->response);
	free(http);
}

/* Does the body's type begin so? */
static bool is_type(const struct http *http, const char *name)
{
	const char *type = NULL;

	curl_easy_getinfo(http->curl, CURLINFO_CONTENT_TYPE, &type);
	return type && !strncasecmp(type, name, strlen(name));
}

static bool is_protobuf(const struct http *http)
{
	return is_type(http, "application/x-protobuf");
}

/*
 * What a web server says to anybody, and a proxy instead of a receiver: nobody has taken the payload. It may be sent
 * again, for a gateway's page may be over soon.
 */
static bool is_page(const struct http *http)
{
	return http->response.size && (is_type(http, "text/") || is_type(http, "application/xhtml"));
}

static void read_success(const struct http *http, struct http_answer *answer)
{
	_cleanup_(unpack_free) struct unpacked unpacked = { 0 };
	const OtlpResponse *response;

	/* an empty message is an empty body, and some receivers send no type with it */
	if (!http->response.size)
		return;
	if (!is_protobuf(http) || !unpack(&unpacked, OTLP_RESPONSE_DESCRIPTOR, http->response.data,
					  http->response.size, UNPACK_MAX)) {
		answer->is_bad = true;
		return;
	}
	response = (const OtlpResponse *)unpacked.message;
	if (!response->partial_success)
		return;
	answer->rejected = max_of(response->partial_success->rejected_profiles, (int64_t)0);
	answer->has_warning = !answer->rejected && response->partial_success->error_message[0];
	utf8_copy(answer->text, sizeof(answer->text), response->partial_success->error_message);
}

static void read_failure(const struct http *http, struct http_answer *answer)
{
	_cleanup_(unpack_free) struct unpacked unpacked = { 0 };
	char message[160] = "";

	if (http->response.size && is_type(http, "text/plain")) {
		size_t length = min_of(http->response.size, sizeof(message) - 1);

		/* up to the end of its first line */
		snprintf(answer->text, sizeof(answer->text), "%.*s", (int)length,
			 (const char *)http->response.data);
		answer->text[strcspn(answer->text, "\r\n")] = '\0';
		utf8_copy(message, sizeof(message), answer->text);
	} else if (http->response.size && is_protobuf(http)) {
		if (unpack(&unpacked, &google__rpc__status__descriptor, http->response.data,
			   http->response.size, UNPACK_MAX))
			utf8_copy(message, sizeof(message),
				  ((const Google__Rpc__Status *)unpacked.message)->message);
		else
			answer->is_bad = true;
	}
	snprintf(answer->text, sizeof(answer->text), "HTTP %ld%s%s", answer->status,
		 message[0] ? ": " : "", message);
}

static enum http_result result_of(long status)
{
	if (status >= 200 && status < 300)
		return HTTP_ACCEPTED;
	return status == 429 || status == 502 || status == 503 || status == 504 ? HTTP_RETRY :
										  HTTP_REFUSED;
}

void http_post(struct http *http, const uint8_t *data, size_t size, bool is_gzip,
	       unsigned int timeout_ms, struct http_answer *ret_answer)
{
	struct http_answer answer = { .result = HTTP_RETRY, .retry_after_ms = -1 };
	CURLcode err;

	http->response.size = 0;
	http->is_too_large = false;
	http->retry_after_ms = -1;
	http->error[0] = '\0';
	curl_easy_setopt(http->curl, CURLOPT_HTTPHEADER,
			 is_gzip ? http->gzip_headers : http->headers);
	curl_easy_setopt(http->curl, CURLOPT_POSTFIELDS, data);
	curl_easy_setopt(http->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	curl_easy_setopt(http->curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	curl_easy_setopt(http->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)timeout_ms);
	err = curl_easy_perform(http->curl);
	answer.error = (int)err;
	curl_easy_getinfo(http->curl, CURLINFO_NUM_CONNECTS, &answer.connections);
	curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &answer.status);

	if (err == CURLE_OK || (http->is_too_large && answer.status)) {
		answer.result = result_of(answer.status);
		answer.is_throttled = answer.status == 429;
		answer.retry_after_ms = http->retry_after_ms;
		if (http->is_too_large)
			answer.is_bad = true;
		if (answer.result == HTTP_ACCEPTED && is_page(http)) {
			answer.result = HTTP_RETRY;
			answer.is_bad = true;
			snprintf(answer.text, sizeof(answer.text), "HTTP %ld with a page, not OTLP's answer: "
				 "is the endpoint's path right? It ends in /" ENVIRONMENT_SIGNAL_PATH
				 " with most receivers", answer.status);
		} else if (answer.result == HTTP_ACCEPTED && !http->is_too_large) {
			read_success(http, &answer);
		} else if (answer.result != HTTP_ACCEPTED) {
			read_failure(http, &answer);
		}
	} else if (err == CURLE_WEIRD_SERVER_REPLY || strstr(http->error, "HTTP/0.9")) {
		/* what curl takes the frames for that an HTTP/2 server begins with */
		answer.status = 0;
		answer.is_bad = true;
		snprintf(answer.text, sizeof(answer.text), "the endpoint does not speak HTTP/1.1: is it a gRPC "
			 "port, 4317? OTLP over HTTP has a port of its own, 4318 with most receivers");
	} else {
		answer.status = 0;
		if (err == CURLE_URL_MALFORMAT || err == CURLE_UNSUPPORTED_PROTOCOL)
			answer.result = HTTP_REFUSED;
		utf8_copy(answer.text, sizeof(answer.text),
			  http->error[0] ? http->error : curl_easy_strerror(err));
	}
	/* what a hostile receiver made us take is not kept */
	if (http->response.capacity > 65536)
		buffer_free(&http->response);
	*ret_answer = answer;
}
