// SPDX-License-Identifier: Apache-2.0
#include "wire.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void message_begin(struct wire *wire, struct message *message, uint8_t command, uint16_t flags)
{
	struct genlmsghdr *generic = NLMSG_DATA(&message->header);

	memset(message, 0, NLMSG_HDRLEN + GENL_HDRLEN);
	message->header.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	message->header.nlmsg_type = wire->family;
	message->header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	message->header.nlmsg_seq = ++wire->sequence;
	generic->cmd = command;
	generic->version = STACKTAP_GENL_VERSION;
}

void message_put(struct message *message, uint16_t type, const void *data, size_t size)
{
	struct nlattr *attr = (void *)(message->bytes + message->header.nlmsg_len);

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + size;
	if (size)
		memcpy(attr + 1, data, size);
	memset((char *)(attr + 1) + size, 0, NLA_ALIGN(size) - size);
	message->header.nlmsg_len += NLA_HDRLEN + NLA_ALIGN(size);
}

void message_put_u8(struct message *message, uint16_t type, uint8_t value)
{
	message_put(message, type, &value, sizeof(value));
}

void message_put_u32(struct message *message, uint16_t type, uint32_t value)
{
	message_put(message, type, &value, sizeof(value));
}

void message_put_u64(struct message *message, uint16_t type, uint64_t value)
{
	message_put(message, type, &value, sizeof(value));
}

size_t message_nest_begin(struct message *message, uint16_t type)
{
	size_t nest = message->header.nlmsg_len;

	message_put(message, type | NLA_F_NESTED, NULL, 0);
	return nest;
}

void message_nest_end(struct message *message, size_t nest)
{
	struct nlattr *attr = (void *)(message->bytes + nest);

	attr->nla_len = message->header.nlmsg_len - nest;
}

const void *attr_next(const void *attrs, size_t size, uint16_t type, const void *after,
		      size_t *ret_size)
{
	const char *at = attrs, *end = at + size;

	while (at + NLA_HDRLEN <= end) {
		const struct nlattr *attr = (const void *)at;

		if (attr->nla_len < NLA_HDRLEN || at + attr->nla_len > end)
			break;
		if ((const char *)after < (const char *)(attr + 1) &&
		    (attr->nla_type & NLA_TYPE_MASK) == type) {
			*ret_size = attr->nla_len - NLA_HDRLEN;
			return attr + 1;
		}
		at += NLA_ALIGN(attr->nla_len);
	}
	*ret_size = 0;
	return NULL;
}

const void *attr_find(const void *attrs, size_t size, uint16_t type, size_t *ret_size)
{
	return attr_next(attrs, size, type, NULL, ret_size);
}

static uint64_t attr_number(const void *attrs, size_t size, uint16_t type, size_t bytes)
{
	uint64_t value = 0;
	size_t length;
	const void *data = attr_find(attrs, size, type, &length);

	if (data && length == bytes)
		memcpy(&value, data, bytes);
	return value;
}

uint64_t attr_u64(const void *attrs, size_t size, uint16_t type)
{
	return attr_number(attrs, size, type, 8);
}

uint32_t attr_u32(const void *attrs, size_t size, uint16_t type)
{
	return attr_number(attrs, size, type, 4);
}

unsigned int attr_u8(const void *attrs, size_t size, uint16_t type)
{
	return attr_number(attrs, size, type, 1);
}

static void wire_keep_sentence(struct wire *wire, const struct nlmsghdr *header)
{
	const struct nlmsgerr *error = NLMSG_DATA(header);
	size_t skip = sizeof(*error), size;
	const char *text;

	wire->sentence[0] = 0;
	if (!(header->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	if (!(header->nlmsg_flags & NLM_F_CAPPED))
		skip += NLMSG_ALIGN(error->msg.nlmsg_len) - sizeof(struct nlmsghdr);
	text = attr_find((const char *)error + skip,
			 header->nlmsg_len - NLMSG_HDRLEN - skip, NLMSGERR_ATTR_MSG, &size);
	if (text && size <= sizeof(wire->sentence))
		memcpy(wire->sentence, text, size);
}

int wire_call(struct wire *wire, struct message *message, wire_visit *visit, void *arg)
{
	static char buffer[1 << 18];

	if (send(wire->fd, message, message->header.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		ssize_t size = recv(wire->fd, buffer, sizeof(buffer), 0);
		struct nlmsghdr *header = (void *)buffer;

		if (size < 0)
			return -errno;
		for (; NLMSG_OK(header, size); header = NLMSG_NEXT(header, size)) {
			if (header->nlmsg_seq != wire->sequence)
				continue;
			if (header->nlmsg_type == NLMSG_DONE)
				return *(int *)NLMSG_DATA(header);
			if (header->nlmsg_type == NLMSG_ERROR) {
				wire_keep_sentence(wire, header);
				return ((struct nlmsgerr *)NLMSG_DATA(header))->error;
			}
			if (visit)
				visit((char *)NLMSG_DATA(header) + GENL_HDRLEN,
				      header->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN), arg);
		}
	}
}

static void wire_visit_family(const void *attrs, size_t size, void *arg)
{
	struct wire *wire = arg;
	size_t groups_size, group_size;
	const void *groups, *group;
	uint16_t id;
	const void *data = attr_find(attrs, size, CTRL_ATTR_FAMILY_ID, &group_size);

	if (data && group_size == sizeof(id)) {
		memcpy(&id, data, sizeof(id));
		wire->family = id;
	}
	groups = attr_find(attrs, size, CTRL_ATTR_MCAST_GROUPS, &groups_size);
	group = groups ? attr_find(groups, groups_size, 1, &group_size) : NULL;
	if (group)
		wire->group = attr_u32(group, group_size, CTRL_ATTR_MCAST_GRP_ID);
}

int wire_open(struct wire *wire)
{
	const struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	struct message message;
	int one = 1, err;

	memset(wire, 0, sizeof(*wire));
	wire->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (wire->fd < 0)
		return -errno;
	setsockopt(wire->fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(wire->fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &one, sizeof(one));
	if (bind(wire->fd, (const void *)&address, sizeof(address)) < 0)
		return -errno;
	wire->family = GENL_ID_CTRL;
	message_begin(wire, &message, CTRL_CMD_GETFAMILY, 0);
	message_put(&message, CTRL_ATTR_FAMILY_NAME, STACKTAP_GENL_NAME,
		    sizeof(STACKTAP_GENL_NAME));
	err = wire_call(wire, &message, wire_visit_family, wire);
	if (err || wire->family == GENL_ID_CTRL)
		return err ? err : -ENOENT;
	return 0;
}

void wire_close(struct wire *wire)
{
	close(wire->fd);
}
