/* SPDX-License-Identifier: Apache-2.0 */
/* What a receiver answers in JSON: a response with its partial success, or a Status with its message. */
#ifndef STACKTAP_EXPORT_JSON_ANSWER_H
#define STACKTAP_EXPORT_JSON_ANSWER_H

#include "base/macro.h"

struct json_answer {
	char text[256];			/* the message, UTF-8 as it came; "": none */
	int64_t rejected;		/* Profiles, or data points of metrics */
};

/* -EBADMSG: it is no JSON object, or a deeper one than any answer. */
int json_answer_read(const uint8_t *data, size_t size, struct json_answer *ret_answer);

#endif /* STACKTAP_EXPORT_JSON_ANSWER_H */
