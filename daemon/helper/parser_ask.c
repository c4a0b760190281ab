// SPDX-License-Identifier: Apache-2.0
#include "helper/parser_ask.h"

enum { LEAST_MS = 50 };	/* less is not begun with */

int parser_cut_short(const struct parser *parser, struct helper_call *call, bool *ret_is_cut)
{
	const uint32_t left = parser_left_ms(parser, call->timeout_ms);

	if (left < LEAST_MS)
		return -ETIME;
	*ret_is_cut = left + GRACE_MS < call->timeout_ms;
	if (*ret_is_cut)
		call->timeout_ms = left + GRACE_MS;
	call->start_ms = parser->deadline ? left : 0;
	return 0;
}

int parser_ask(struct parser *parser, const struct object *object, struct helper_call *call)
{
	bool is_cut;
	int r;

	if (suspects_has(&parser->suspects, object))
		return -ENOTRECOVERABLE;
	r = parser_cut_short(parser, call, &is_cut);
	if (r < 0)
		return r;
	r = helper_call(parser->helper, call);
	/* who is hurried is no suspect: with more time it may have come to an end */
	if ((r == -ETIMEDOUT && !is_cut) || r == -EPIPE)
		suspects_accuse(&parser->suspects, object, r);
	return r;
}
