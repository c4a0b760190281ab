// SPDX-License-Identifier: Apache-2.0
#include "export/http_response.h"

#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "export/gzip.h"
#include "export/json_answer.h"
#include "export/otlp.h"
#include "export/unpack.h"
#include "export/zstd.h"

#define UNPACK_MAX ((size_t)1 << 20)
#define GRPC_ANSWER_MAX ((size_t)64 << 10) /* uncompressed; it is a few bytes */

/* Does the body's type begin so? */
static bool is_type(const struct http_response *response, const char *name)
{
	return response->type && !strncasecmp(response->type, name, strlen(name));
}

static bool is_protobuf(const struct http_response *response)
{
	return is_type(response, "application/x-protobuf");
}

static bool is_json(const struct http_response *response)
{
	return is_type(response, "application/json");
}

/*
 * What a web server says to anybody, and a proxy instead of a receiver: nobody has taken the payload. It may be sent
 * again, for a gateway's page may be over soon.
 */
static bool is_page(const struct http_response *response)
{
	return response->body.size && (is_type(response, "text/") || is_type(response, "application/xhtml"));
}

static void read_response(const uint8_t *data, size_t size, struct http_answer *answer)
{
	_cleanup_(unpack_free) struct unpacked unpacked = { 0 };
	const OtlpResponse *response;

	if (!unpack(&unpacked, OTLP_RESPONSE_DESCRIPTOR, data, size, UNPACK_MAX)) {
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

/* A partial success, or the message of a Status. */
static void read_json(const struct http_response *response, struct http_answer *answer)
{
	struct json_answer said;

	if (json_answer_read(response->body.data, response->body.size, &said)) {
		answer->is_bad = true;
		return;
	}
	answer->rejected = max_of(said.rejected, (int64_t)0);
	answer->has_warning = !answer->rejected && said.text[0];
	utf8_copy(answer->text, sizeof(answer->text), said.text);
}

static void read_success(const struct http_response *response, struct http_answer *answer)
{
	/* an empty message is an empty body, and some receivers send no type with it */
	if (!response->body.size)
		return;
	if (is_protobuf(response))
		read_response(response->body.data, response->body.size, answer);
	else if (is_json(response))
		read_json(response, answer);
	else
		answer->is_bad = true;
}

static void read_failure(const struct http_response *response, struct http_answer *answer)
{
	_cleanup_(unpack_free) struct unpacked unpacked = { 0 };
	char message[160] = "";

	_Static_assert(sizeof(answer->text) > sizeof(message) + 4, "what is cut off at its end does not get into the message");
	if (response->body.size && is_type(response, "text/plain")) {
		size_t length = min_of(response->body.size, sizeof(answer->text) - 1);

		/* up to the end of its first line */
		snprintf(answer->text, sizeof(answer->text), "%.*s", (int)length,
			 (const char *)response->body.data);
		answer->text[strcspn(answer->text, "\r\n")] = '\0';
		utf8_shorten(message, sizeof(message), answer->text);
	} else if (response->body.size && is_json(response)) {
		read_json(response, answer);
		utf8_shorten(message, sizeof(message), answer->text);
	} else if (response->body.size && is_protobuf(response)) {
		if (unpack(&unpacked, &google__rpc__status__descriptor, response->body.data,
			   response->body.size, UNPACK_MAX))
			utf8_shorten(message, sizeof(message),
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

/* Of HTTP: the status says how it went. */
static void judge_http(const struct http_response *response, const struct otlp_signal *of, struct http_answer *answer)
{
	answer->result = result_of(answer->status);
	answer->is_throttled = answer->status == 429;
	answer->retry_after_ms = response->retry_after_ms;
	if (answer->result == HTTP_ACCEPTED && is_page(response)) {
		answer->result = HTTP_RETRY;
		answer->is_bad = true;
		snprintf(answer->text, sizeof(answer->text), "HTTP %ld with a page, not an OTLP response: "
			 "is the endpoint's path right? It ends in /%s with most receivers", answer->status,
			 of->http_path);
	} else if (answer->result == HTTP_ACCEPTED) {
		if (!response->is_too_large)
			read_success(response, answer);
		if (answer->is_bad) {
			answer->result = HTTP_UNCONFIRMED;
			snprintf(answer->text, sizeof(answer->text), "HTTP %ld with a body that is not an OTLP response",
				 answer->status);
		}
	} else if (answer->result != HTTP_ACCEPTED) {
		read_failure(response, answer);
	}
}

/* By what it was compressed says how it begins: servers compress as the request was. */
static int decompress(struct buffer *plain, const uint8_t *data, size_t size)
{
	static const uint8_t zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };

	if (size >= sizeof(zstd) && !memcmp(data, zstd, sizeof(zstd)))
		return zstd_decompress(plain, data, size, GRPC_ANSWER_MAX);
	return gzip_decompress(plain, data, size, GRPC_ANSWER_MAX);
}

static void read_grpc_success(const struct http_response *response, struct http_answer *answer)
{
	struct buffer plain = { .pool = POOL_ENCODE };
	const uint8_t *message;
	bool is_compressed;
	size_t size;

	if (response->is_too_large ||
	    grpc_message(response->body.data, response->body.size, &message, &size, &is_compressed)) {
		answer->is_bad = true;
	} else if (!is_compressed) {
		read_response(message, size, answer);
	} else if (!decompress(&plain, message, size)) {
		read_response(plain.data, plain.size, answer);
	} else {
		answer->is_bad = true;
	}
	buffer_free(&plain);
}

/*
 * Of gRPC: the trailers say it. An answer without them comes from something else on the way, a proxy for one, whose status
 * is HTTP's; nobody has taken the payload then.
 */
static void judge_grpc(const struct http_response *response, const struct otlp_signal *of, struct http_answer *answer)
{
	const struct grpc_status *status = &response->grpc;

	answer->grpc_code = status->code;
	answer->retry_after_ms = status->retry_ms >= 0 ? status->retry_ms : response->retry_after_ms;
	if (!response->is_http2 || (status->code < 0 && answer->status == 200)) {
		answer->is_bad = true;
		snprintf(answer->text, sizeof(answer->text), "%s: is the endpoint OTLP's gRPC port, 4317 with "
			 "most receivers? 4318 is that of HTTP", response->is_http2 ?
			 "an answer without grpc-status" : "the endpoint does not speak HTTP/2");
		return;
	}
	if (status->code < 0) {
		answer->result = result_of(answer->status);
		answer->is_throttled = answer->status == 429;
		read_failure(response, answer);
		return;
	}
	if (status->code == GRPC_OK) {
		answer->result = HTTP_ACCEPTED;
		read_grpc_success(response, answer);
		if (answer->is_bad) {
			answer->result = HTTP_UNCONFIRMED;
			snprintf(answer->text, sizeof(answer->text), "gRPC 0 OK with a message that is not an OTLP response");
		}
		return;
	}
	answer->result = grpc_status_is_retryable(status) ? HTTP_RETRY : HTTP_REFUSED;
	answer->is_throttled = status->code == GRPC_RESOURCE_EXHAUSTED && status->retry_ms >= 0;
	snprintf(answer->text, sizeof(answer->text), "gRPC %d %s%s%s%s%s", status->code,
		 grpc_code_name(status->code), status->message[0] ? ": " : "", status->message,
		 status->code == GRPC_UNIMPLEMENTED ? "; the receiver does not support OTLP " : "",
		 status->code == GRPC_UNIMPLEMENTED ? of->name : "");
}

void http_response_judge(const struct http_response *response, const struct otlp_signal *of, bool is_grpc,
			 struct http_answer *answer)
{
	if (is_grpc)
		judge_grpc(response, of, answer);
	else
		judge_http(response, of, answer);
}
