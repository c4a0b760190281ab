/* SPDX-License-Identifier: Apache-2.0 */
/* Generic netlink by hand, so that the module's answers are seen as they are on the wire. */
#ifndef KMODTEST_WIRE_H
#define KMODTEST_WIRE_H

#include <linux/netlink.h>
#include <linux/stacktap.h>
#include <stddef.h>
#include <stdint.h>

struct message {
	union {
		struct nlmsghdr header;
		char bytes[65536];
	};
};

struct wire {
	int fd;
	uint16_t family;
	uint32_t group;			/* of the events */
	uint32_t sequence;
	char sentence[256];		/* of the last refusal */
};

int wire_open(struct wire *wire);
void wire_close(struct wire *wire);

void message_begin(struct wire *wire, struct message *message, uint8_t command, uint16_t flags);
void message_put(struct message *message, uint16_t type, const void *data, size_t size);
void message_put_u8(struct message *message, uint16_t type, uint8_t value);
void message_put_u32(struct message *message, uint16_t type, uint32_t value);
void message_put_u64(struct message *message, uint16_t type, uint64_t value);
size_t message_nest_begin(struct message *message, uint16_t type);
void message_nest_end(struct message *message, size_t nest);

/* Send and take the answers; @visit is called with each payload of attributes. -errno. */
typedef void wire_visit(const void *attrs, size_t size, void *arg);
int wire_call(struct wire *wire, struct message *message, wire_visit *visit, void *arg);

/* The first attribute @type in @attrs, its payload's size in @ret_size; NULL if there is none. */
const void *attr_find(const void *attrs, size_t size, uint16_t type, size_t *ret_size);
/* After @after (a payload that this or attr_find() returned), NULL to begin. */
const void *attr_next(const void *attrs, size_t size, uint16_t type, const void *after,
		      size_t *ret_size);
uint64_t attr_u64(const void *attrs, size_t size, uint16_t type);
uint32_t attr_u32(const void *attrs, size_t size, uint16_t type);
unsigned int attr_u8(const void *attrs, size_t size, uint16_t type);

#endif /* KMODTEST_WIRE_H */
