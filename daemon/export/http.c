// SPDX-License-Identifier: Apache-2.0
#include "export/http.h"

#include <curl/curl.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "base/work.h"
#include "broker/broker.h"
#include "export/environment.h"
#include "export/grpc.h"
#include "export/header_file.h"
#include "export/otlp.h"
#include "stacktap/version.h"

#define RESPONSE_MAX ((size_t)4 << 20)
#define RETRY_AFTER_MAX_MS (300 * 1000)	/* a receiver cannot silence us for longer */
#define HEADER_MAX 8192u		/* longer ones are passed over */
#define USER_AGENT "OTel-OTLP-Exporter-stacktap/" STACKTAP_VERSION

struct http {
	CURL *curl;
	const struct otlp_signal *of;
	bool is_grpc;
	bool has_spoken;		/* HTTP/2, at any time */
	struct buffer request;		/* of gRPC: its prefix and the body */
	enum protocol protocol;
	char *own_headers, *headers_file; /* of the options */
	char *file_text;		/* that the headers were made with; NULL: none */
	struct curl_slist *headers[COMPRESSION_COUNT];
	struct http_response response;
	char error[CURL_ERROR_SIZE];
	int secrets[3];			/* copies of files that only root may read; -1: none */
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
	if (size > RESPONSE_MAX - http->response.body.size ||
	    buffer_append(&http->response.body, data, size)) {
		http->response.is_too_large = true;
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

/* Headers, and the trailers of gRPC. */
static size_t on_header(char *data, size_t size, size_t count, void *ctx)
{
	static const char name[] = "retry-after:";
	struct http *http = ctx;
	char line[HEADER_MAX];

	size *= count;
	if (size > 5 && !strncmp(data, "HTTP/", 5)) {
		/* the headers of an interim answer are not the answer's */
		http->response.retry_after_ms = -1;
		http->response.body.size = 0;
		grpc_status_init(&http->response.grpc);
		http->response.is_http2 = data[5] == '2';
		http->has_spoken |= http->response.is_http2;
		return size;
	}
	if (size >= sizeof(line))
		return size;
	memcpy(line, data, size);
	line[size] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	if (!strncasecmp(line, name, sizeof(name) - 1)) {
		data = line + sizeof(name) - 1;
		http->response.retry_after_ms = parse_retry_after(data + strspn(data, " \t"));
	} else if (http->is_grpc) {
		grpc_status_header(&http->response.grpc, line);
	}
	return size;
}

static int append_header(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (!longer)
		return -ENOMEM;
	*list = longer;
	return 0;
}

static int add_header(struct http *http, const char *line)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < COMPRESSION_COUNT; i++)
		err = append_header(&http->headers[i], line);
	return err;
}

static int add_user_header(void *ctx, const char *key, const char *value)
{
	static const char *const ours[] = {
		"content-type", "content-encoding", "content-length", "transfer-encoding", "expect",
		"otlp-profiles-development-version", "te", "grpc-encoding", "grpc-accept-encoding",
		"grpc-timeout",
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

static void free_headers(struct http *http)
{
	for (unsigned int i = 0; i < COMPRESSION_COUNT; i++) {
		curl_slist_free_all(http->headers[i]);
		http->headers[i] = NULL;
	}
}

static void free_secret(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

/* @file_text: what the file of headers has, or NULL */
static int make_headers(struct http *http, const char *file_text)
{
	static const char *const types[] = {
		[PROTOCOL_HTTP_PROTOBUF] = "Content-Type: application/x-protobuf",
		[PROTOCOL_GRPC] = "Content-Type: application/grpc",
		[PROTOCOL_HTTP_JSON] = "Content-Type: application/json",
	};
	int err;

	err = add_header(http, types[http->protocol]) ?:
	      (http->of->header ? add_header(http, http->of->header) : 0) ?:
	      add_header(http, "Expect:");
	/* some servers answer by the request's compression, whatever is said here */
	if (!err && http->is_grpc)
		err = add_header(http, "TE: trailers") ?:
		      add_header(http, "grpc-accept-encoding: identity,gzip,zstd");
	if (!err && http->own_headers)
		err = environment_each_pair(http->own_headers, add_user_header, http);
	if (!err && file_text) {
		char *pieces = strdup(file_text);

		err = pieces ? header_file_each(pieces, add_user_header, http) : -ENOMEM;
		free_secret(&pieces);
	}
	return err ?: append_header(&http->headers[COMPRESSION_GZIP],
				    http->is_grpc ? "grpc-encoding: gzip" : "Content-Encoding: gzip") ?:
		      append_header(&http->headers[COMPRESSION_ZSTD],
				    http->is_grpc ? "grpc-encoding: zstd" : "Content-Encoding: zstd");
}

/*
 * The headers of the file as it is now. Whoever renews a token exchanges the file; by its size and time alone not every
 * change can be told, and it is small. -errno: there are none that could be sent.
 */
static int renew_headers(struct http *http)
{
	char *text = NULL;
	int err = header_file_read(http->headers_file, &text);

	if (!err && http->file_text && !strcmp(text, http->file_text)) {
		free_secret(&text);
		return 0;
	}
	free_headers(http);
	free_secret(&http->file_text);
	err = err ?: make_headers(http, text);
	if (err)
		free_secret(&text);
	http->file_text = text;
	return err;
}

/* Where to: unix:/PATH is a socket, behind which there is a server without a name. */
static CURLcode set_endpoint(const struct http *http, const struct http_options *options)
{
	static const char scheme[] = "unix:";
	CURL *curl = http->curl;
	_cleanup_free_ char *url = NULL;
	const char *path;
	CURLcode err;

	if (strncmp(options->endpoint, scheme, sizeof(scheme) - 1))
		return curl_easy_setopt(curl, CURLOPT_URL, options->endpoint);
	path = options->endpoint + sizeof(scheme) - 1;
	path += !strncmp(path, "//", 2) ? 2 : 0;
	if (asprintf(&url, "http://localhost/%s", http->is_grpc ? http->of->grpc_path : http->of->http_path) < 0) {
		url = NULL;
		return CURLE_OUT_OF_MEMORY;
	}
	err = curl_easy_setopt(curl, CURLOPT_URL, url);
	return err ? err : curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, path);
}

/* libcurl opens it at each connection: by the copy's name, where that is needed. */
static CURLcode set_file(CURL *curl, CURLoption option, const char *path, int *secret)
{
	char own[32];

	if (!path)
		return CURLE_OK;
	if (broker_is_there() && access(path, R_OK) < 0 && errno == EACCES)
		*secret = broker_read_secret(path);
	if (*secret < 0)
		return curl_easy_setopt(curl, option, path);
	snprintf(own, sizeof(own), "/proc/self/fd/%d", *secret);
	return curl_easy_setopt(curl, option, own);
}

static int make_handle(struct http *http, const struct http_options *options)
{
	CURL *curl = http->curl;
	CURLcode err = set_endpoint(http, options);

	if (http->is_grpc && !strncasecmp(options->endpoint, "https:", 6)) {
		err |= curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	} else if (http->is_grpc) {
		/*
		 * Without TLS both sides have to know that it is HTTP/2. libcurl 7.88, Debian 12's, fails with "Error in
		 * the HTTP2 framing layer" when it uses such a connection again: each request has its own.
		 */
		err |= curl_easy_setopt(curl, CURLOPT_HTTP_VERSION,
					(long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
		err |= curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L);
	}
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
	err |= set_file(curl, CURLOPT_CAINFO, options->certificate, &http->secrets[0]);
	err |= set_file(curl, CURLOPT_SSLCERT, options->client_certificate, &http->secrets[1]);
	err |= set_file(curl, CURLOPT_SSLKEY, options->client_key, &http->secrets[2]);
	return err ? -EINVAL : 0;
}

int http_new(const struct http_options *options, struct http **ret_http)
{
	struct http *http = calloc(1, sizeof(*http));
	int err;

	if (!http)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(http->secrets); i++)
		http->secrets[i] = -1;
	pthread_once(&curl_once, curl_setup);
	http->of = options->of ?: &otlp_profiles;
	http->protocol = options->protocol;
	http->is_grpc = http->protocol == PROTOCOL_GRPC;
	buffer_init(&http->response.body, POOL_ENCODE);
	buffer_init(&http->request, POOL_ENCODE);
	http->curl = curl_easy_init();
	if (options->headers)
		http->own_headers = strdup(options->headers);
	if (options->headers_file)
		http->headers_file = strdup(options->headers_file);
	err = http->curl && !options->headers == !http->own_headers && !options->headers_file == !http->headers_file ?
		      make_headers(http, NULL) : -ENOMEM;
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
	for (size_t i = 0; i < ARRAY_SIZE(http->secrets); i++)
		if (http->secrets[i] >= 0)
			close(http->secrets[i]);
	free_headers(http);
	free_secret(&http->own_headers);
	free_secret(&http->file_text);
	free(http->headers_file);
	buffer_free(&http->response.body);
	buffer_free(&http->request);
	free(http);
}

static bool speaks_other_protocol(const struct http *http, CURLcode err)
{
	/* what a server of HTTP/1.1 says to HTTP/2's preface, and how it hangs up then */
	if (http->is_grpc)
		return !http->has_spoken &&
		       (err == CURLE_HTTP2 || err == CURLE_HTTP2_STREAM || err == CURLE_WEIRD_SERVER_REPLY ||
			err == CURLE_SEND_ERROR || err == CURLE_RECV_ERROR || err == CURLE_GOT_NOTHING);
	/* what curl takes the frames for that an HTTP/2 server begins with */
	return err == CURLE_WEIRD_SERVER_REPLY || strstr(http->error, "HTTP/0.9");
}

/* No answer, or not all of it. */
static void judge_failure(const struct http *http, CURLcode err, struct http_answer *answer)
{
	answer->status = 0;
	if (speaks_other_protocol(http, err)) {
		answer->is_bad = true;
		snprintf(answer->text, sizeof(answer->text), "%s", http->is_grpc ?
			 "the endpoint does not speak HTTP/2: is it the port of OTLP over HTTP, 4318? gRPC has a "
			 "port of its own, 4317 with most receivers" :
			 "the endpoint does not speak HTTP/1.1: is it a gRPC port, 4317? OTLP over HTTP has a port of "
			 "its own, 4318 with most receivers");
		return;
	}
	if (err == CURLE_URL_MALFORMAT || err == CURLE_UNSUPPORTED_PROTOCOL)
		answer->result = HTTP_REFUSED;
	utf8_copy(answer->text, sizeof(answer->text),
		  http->error[0] ? http->error : curl_easy_strerror(err));
}

static int make_request(struct http *http, const uint8_t *data, size_t size, bool is_compressed)
{
	uint8_t prefix[GRPC_PREFIX];

	grpc_prefix(size, is_compressed, prefix);
	http->request.size = 0;
	return buffer_append(&http->request, prefix, sizeof(prefix)) ?:
	       buffer_append(&http->request, data, size);
}

void http_post(struct http *http, const uint8_t *data, size_t size, enum compression compression,
	       unsigned int timeout_ms, struct http_answer *ret_answer)
{
	struct http_answer answer = { .result = HTTP_RETRY, .retry_after_ms = -1, .grpc_code = -1 };
	int file_err = http->headers_file ? renew_headers(http) : 0;
	CURLcode err;

	if (file_err) {
		snprintf(answer.text, sizeof(answer.text), "headers_file %s: %s", http->headers_file,
			 file_err == -EINVAL ? "it has a line that is not `name: value'" : strerror(-file_err));
		*ret_answer = answer;
		return;
	}
	http->response.body.size = 0;
	http->response.type = NULL;
	http->response.is_too_large = false;
	http->response.retry_after_ms = -1;
	http->error[0] = '\0';
	grpc_status_init(&http->response.grpc);
	if (http->is_grpc && make_request(http, data, size, compression != COMPRESSION_NONE)) {
		snprintf(answer.text, sizeof(answer.text), "no memory for the request");
		*ret_answer = answer;
		return;
	}
	if (http->is_grpc) {
		data = http->request.data;
		size = http->request.size;
	}
	curl_easy_setopt(http->curl, CURLOPT_HTTPHEADER, http->headers[compression]);
	curl_easy_setopt(http->curl, CURLOPT_POSTFIELDS, data);
	curl_easy_setopt(http->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	curl_easy_setopt(http->curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	curl_easy_setopt(http->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)timeout_ms);
	work_wait(timeout_ms * NSEC_PER_MSEC);
	err = curl_easy_perform(http->curl);
	answer.error = (int)err;
	curl_easy_getinfo(http->curl, CURLINFO_NUM_CONNECTS, &answer.connections);
	curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &answer.status);
	/* the handle's, until it is used again */
	curl_easy_getinfo(http->curl, CURLINFO_CONTENT_TYPE, &http->response.type);
	answer.is_bad = http->response.is_too_large;
	/* gRPC's status ends a call, also where the stream is reset for what was left unread of a payload too large */
	if (err != CURLE_OK && !(http->response.is_too_large && answer.status) && http->response.grpc.code < 0)
		judge_failure(http, err, &answer);
	else
		http_response_judge(&http->response, http->of, http->is_grpc, &answer);
	buffer_clear(&http->request);
	/* what a hostile receiver made us take is not kept */
	if (http->response.body.capacity > 65536)
		buffer_free(&http->response.body);
	*ret_answer = answer;
}
