// SPDX-License-Identifier: Apache-2.0
#include "helper/parser_ask.h"

int parser_call(struct parser *parser, struct helper_call *call)
{
	int r;

	call->start_ms = parser_start_ms(parser);
	call->deadline = parser->deadline;
	r = helper_call(parser->helper, call);
	parser->is_starved = call->ret_is_starved;
	parser->starved += parser->is_starved;
	parser->starved_ns += call->ret_starved_ns;
	return r;
}

int parser_ask(struct parser *parser, const struct object *object, struct helper_call *call)
{
	int r;

	parser->is_starved = false;
	if (suspects_has(&parser->suspects, object))
		return -ENOTRECOVERABLE;
	/* between the questions that one makes, somebody may have come to be in a hurry */
	if (!deadline_left_ns(parser->deadline))
		return -ETIME;
	r = parser_call(parser, call);
	if (call->ret_blame)
		suspects_accuse(&parser->suspects, object, r, call->ret_blame);
	return r;
}
