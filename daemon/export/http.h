/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One OTLP request after the other, over HTTP/1.1 or gRPC, by one kept-alive connection where libcurl can, and what
 * the answers mean.
 * No redirects are followed: profiles go where they were sent to and nowhere else.
 */
#ifndef STACKTAP_EXPORT_HTTP_H
#define STACKTAP_EXPORT_HTTP_H

#include "base/macro.h"
#include "export/compression.h"
#include "export/otlp_signal.h"
#include "export/protocol.h"

struct http;

enum { HTTP_TEXT_MAX = 256 };

struct http_options {
	const char *endpoint;		/* full URL, or unix:/PATH; NULL: none */
	enum protocol protocol;
	const struct otlp_signal *of;	/* NULL: profiles */
	const char *headers;		/* OTEL_EXPORTER_OTLP_HEADERS syntax, or NULL */
	const char *headers_file;	/* more of them, read before each request, or NULL */
	const char *certificate, *client_certificate, *client_key; /* files, or NULL */
};

enum http_result {
	/* 2xx with OTLP's answer, or grpc-status 0; partial success included, which must not be retried */
	HTTP_ACCEPTED,
	/* 429, 502, 503, 504, no whole answer, or one that no OTLP receiver gives: a page, another protocol */
	HTTP_RETRY,
	HTTP_REFUSED,		/* any other answer */
	/* 2xx or grpc-status 0 with what is no answer of OTLP: it may have been taken, and nobody says so */
	HTTP_UNCONFIRMED,
};

struct http_answer {
	enum http_result result;
	long status;		/* 0: no answer, for the reason: */
	int error;		/* curl's code, whose texts have times in them */
	int grpc_code;		/* -1: none */
	bool is_throttled;	/* 429 */
	int64_t retry_after_ms;	/* -1: not told */
	int64_t rejected;	/* Profiles or data points, by partial success */
	bool has_warning;	/* partial success with nothing rejected */
	bool is_bad;		/* the body was not what it should be */
	long connections;	/* made for this request */
	char text[HTTP_TEXT_MAX];		/* what the receiver or the connection said */
};

int http_new(const struct http_options *options, struct http **ret_http);
void http_free(struct http *http);
/* Send @size bytes, compressed so. Takes at most @timeout_ms. */
void http_post(struct http *http, const uint8_t *data, size_t size, enum compression compression,
	       unsigned int timeout_ms, struct http_answer *ret_answer);

#endif /* STACKTAP_EXPORT_HTTP_H */
