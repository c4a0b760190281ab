// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a message of the module's generic netlink family, which a later or a broken module may send, and any
 * attributes in each other. No crash, strings end, all memory back.
 */
#include <stdlib.h>
#include <string.h>

#include <netlink/genl/genl.h>
#include <netlink/msg.h>

#include "client/attribute.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Two bytes an attribute: its type, and how much of what follows is in it, as bytes or, nested, as attributes. */
static void put_attributes(struct nl_msg *message, const uint8_t **data, size_t size, unsigned int depth)
{
	const uint8_t *end = *data + size;

	while (end - *data >= 2) {
		int type = (*data)[0] & 0x7f;
		bool is_nested = (*data)[0] & 0x80 && depth;
		size_t bytes = min_of((size_t)(*data)[1], (size_t)(end - *data) - 2);
		struct nlattr *nest;

		*data += 2;
		if (!is_nested) {
			nla_put(message, type, (int)bytes, *data);
			*data += bytes;
			continue;
		}
		nest = nla_nest_start(message, type);
		if (!nest)
			break;
		put_attributes(message, data, bytes, depth - 1);
		nla_nest_end(message, nest);
	}
	*data = end;
}

static void parse(struct nlmsghdr *message, uint8_t kind)
{
	struct control_session session = { 0 };
	struct control_module module;
	struct control_table table;
	struct control_event event;
	struct control_cpu cpu;

	switch (kind % 5) {
	case 0:
		if (!attribute_parse_module(message, &module) &&
		    strnlen(module.version, sizeof(module.version)) == sizeof(module.version))
			abort();
		break;
	case 1:
		if (!attribute_parse_session(message, &session))
			control_filter_done(&session.filter);
		break;
	case 2:
		attribute_parse_cpu(message, &cpu);
		break;
	case 3:
		attribute_parse_table(message, &table);
		break;
	default:
		attribute_parse_event(message, &event);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nlmsghdr *message;
	struct nl_msg *made;
	size_t bytes;

	if (!size)
		return 0;
	if (data[0] >= 32) {
		const uint8_t *rest = data + 1;

		made = nlmsg_alloc_size(2 * size + 64 * 1024);
		if (!made || !genlmsg_put(made, 1, 1, 0x20, 0, 0, 0, 1))
			abort();
		put_attributes(made, &rest, size - 1, 4);
		parse(nlmsg_hdr(made), data[0]);
		nlmsg_free(made);
		return 0;
	}
	bytes = NLMSG_HDRLEN + GENL_HDRLEN + size - 1;
	message = calloc(1, bytes);
	if (!message)
		abort();
	message->nlmsg_len = (uint32_t)bytes;
	memcpy((uint8_t *)message + NLMSG_HDRLEN + GENL_HDRLEN, data + 1, size - 1);
	parse(message, data[0]);
	free(message);
	return 0;
}
