// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "helper/parser.h"
#include "helper/parser_ask.h"
#include "symbol/context.h"

enum { TIMEOUT_MS = 2000 };

int parser_context(struct parser *parser, const struct object *payload, int fd,
		   struct context_facts *ret_facts)
{
	const struct parse_file file = { .size = payload->size, .limit_ms = TIMEOUT_MS };
	struct helper_call call = {
		.op = PARSE_CONTEXT, .fd = fd, .timeout_ms = TIMEOUT_MS,
		.request = &file, .request_bytes = sizeof(file),
		.answer = ret_facts, .answer_bytes = sizeof(*ret_facts),
	};
	int r = parser_ask_for_names(parser, payload, &call);

	if (r < 0)
		return r;
	return memchr(ret_facts->service_name, '\0', sizeof(ret_facts->service_name)) &&
	       memchr(ret_facts->attributes, '\0', sizeof(ret_facts->attributes)) ? 0 : -EBADMSG;
}
