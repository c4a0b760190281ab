/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gRPC adds to an HTTP/2 request and its answer: five bytes before each message, and trailers that say how
 * it went. By gRPC's PROTOCOL-HTTP2 document and OTLP's rules for retries.
 */
#ifndef STACKTAP_EXPORT_GRPC_H
#define STACKTAP_EXPORT_GRPC_H

#include "base/macro.h"

enum {
	GRPC_PREFIX = 5,		/* bytes before a message: is it compressed, u32 big-endian length */
	GRPC_OK = 0,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
};

struct grpc_status {
	int code;		/* -1: the answer has none */
	char message[160];	/* percent-decoded, UTF-8 without control characters */
	int64_t retry_ms;	/* RetryInfo's, -1: there is none */
};

void grpc_prefix(size_t size, bool is_compressed, uint8_t ret_prefix[GRPC_PREFIX]);
void grpc_status_init(struct grpc_status *status);
/* A line of headers or trailers, "name: value", without its line end; others than gRPC's own are passed over. */
void grpc_status_header(struct grpc_status *status, const char *line);
/* May the request be sent again, by OTLP's specification? */
bool grpc_status_is_retryable(const struct grpc_status *status);
const char *grpc_code_name(int code);
/* The only message of an answer of @size bytes. -EBADMSG: cut, or more than one. */
int grpc_message(const uint8_t *data, size_t size, const uint8_t **ret_data, size_t *ret_size,
		 bool *ret_is_compressed);

#endif /* STACKTAP_EXPORT_GRPC_H */
