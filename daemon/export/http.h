/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One OTLP request after the other, over HTTP/1.1 or gRPC, by one kept-alive connection where libcurl can.
 * No redirects are followed: profiles go where they were sent to and nowhere else.
 */
#ifndef STACKTAP_EXPORT_HTTP_H
#define STACKTAP_EXPORT_HTTP_H

#include "base/macro.h"
#include "export/compression.h"
#include "export/http_response.h"
#include "export/otlp_signal.h"
#include "export/protocol.h"

struct http;

struct http_options {
	const char *endpoint;		/* full URL, or unix:/PATH; NULL: none */
	enum protocol protocol;
	const struct otlp_signal *of;	/* NULL: profiles */
	const char *headers;		/* OTEL_EXPORTER_OTLP_HEADERS syntax, or NULL */
	const char *headers_file;	/* more of them, read before each request, or NULL */
	const char *certificate, *client_certificate, *client_key; /* files, or NULL */
};

int http_new(const struct http_options *options, struct http **ret_http);
void http_free(struct http *http);
/* Send @size bytes, compressed so. Takes at most @timeout_ms. */
void http_post(struct http *http, const uint8_t *data, size_t size, enum compression compression,
	       unsigned int timeout_ms, struct http_answer *ret_answer);

#endif /* STACKTAP_EXPORT_HTTP_H */
