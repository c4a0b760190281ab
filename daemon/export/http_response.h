/* SPDX-License-Identifier: Apache-2.0 */
/* What a receiver sent back, over HTTP or gRPC, and what it means. */
#ifndef STACKTAP_EXPORT_HTTP_RESPONSE_H
#define STACKTAP_EXPORT_HTTP_RESPONSE_H

#include "base/buffer.h"
#include "export/grpc.h"
#include "export/otlp_signal.h"

enum { HTTP_TEXT_MAX = 256 };

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

struct http_response {
	struct buffer body;
	const char *type;	/* of the body; NULL: not told */
	bool is_too_large;	/* the body, whose rest was left unread */
	bool is_http2;
	struct grpc_status grpc;
	int64_t retry_after_ms;	/* -1: not told */
};

/* @answer has the status, and is_bad for a body that is too large: what else there is to say of the request. */
void http_response_judge(const struct http_response *response, const struct otlp_signal *of, bool is_grpc,
			 struct http_answer *answer);

#endif /* STACKTAP_EXPORT_HTTP_RESPONSE_H */
