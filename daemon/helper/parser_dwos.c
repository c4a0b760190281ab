// SPDX-License-Identifier: Apache-2.0
/* Which .dwo files the parser wants for lines, and giving them to it. */
#include <string.h>

#include "helper/parser.h"
#include "helper/parser_ask.h"

int parser_dwos(struct parser *parser, const struct object *object, const uint64_t *addresses, uint32_t count,
		uint32_t limit_ms, uint32_t *ret_count, uint32_t *ret_addresses)
{
	struct parse_lines question = { .count = count, .limit_ms = limit_ms };
	struct parse_dwos_answer said;
	struct helper_call call = {
		.op = PARSE_DWOS, .fd = -1, .timeout_ms = limit_ms + GRACE_MS,
		.request = &question, .request_bytes = sizeof(question),
		.answer = &said, .answer_bytes = sizeof(said),
	};
	int r;

	memcpy(question.addresses, addresses, count * sizeof(*addresses));
	r = parser_ask(parser, object, &call);
	if (r < 0)
		return r;
	/* without progress it would be asked for ever */
	if (said.count > DWARF_DWOS_MAX || said.addresses > count || (count && !said.addresses))
		return -EBADMSG;
	*ret_count = said.count;
	*ret_addresses = said.addresses;
	return 0;
}

int parser_dwo_names(struct parser *parser, const struct object *object, uint32_t number, uint32_t limit_ms,
		     struct dwarf_dwo_names *ret_names)
{
	const struct parse_dwo dwo = { .number = number, .limit_ms = limit_ms };
	struct helper_call call = {
		.op = PARSE_DWO_NAMES, .fd = -1, .timeout_ms = limit_ms + GRACE_MS,
		.request = &dwo, .request_bytes = sizeof(dwo),
		.answer = ret_names, .answer_bytes = sizeof(*ret_names),
	};
	int r = parser_ask(parser, object, &call);

	if (r < 0)
		return r;
	return memchr(ret_names->name, '\0', sizeof(ret_names->name)) &&
	       memchr(ret_names->directory, '\0', sizeof(ret_names->directory)) ? 0 : -EBADMSG;
}

int parser_give_dwo(struct parser *parser, const struct object *object, uint32_t number, uint32_t limit_ms,
		    const struct parser_part *dwo)
{
	const struct parse_dwarf dwarf = {
		.file = { .size = dwo->size, .limit_ms = limit_ms }, .part = DWARF_PART_DWO, .number = number,
	};
	struct helper_call call = {
		.op = PARSE_DWARF, .fd = dwo->fd, .timeout_ms = limit_ms + GRACE_MS,
		.request = &dwarf, .request_bytes = sizeof(dwarf),
	};

	return parser_ask(parser, object, &call);
}
