/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of a recording, as bytes, as often as one likes. */
#ifndef STACKTAP_CLI_MESSAGES_H
#define STACKTAP_CLI_MESSAGES_H

#include "base/macro.h"

struct messages {
	const char *path;
	int fd;
	bool is_bare;		/* one message, without its length in front */
	bool is_cut;		/* the last one, which is left out; once they have been read */
};

/* "-" is standard input. Says what is wrong. */
int messages_open(const char *path, struct messages *ret_messages);
void messages_close(struct messages *messages);
/*
 * All of them, from the first. Says what is wrong, also with what @each returned: -EBADMSG, a message that is
 * damaged, -E2BIG, or another -errno.
 */
int messages_each(struct messages *messages,
		  int (*each)(void *ctx, const uint8_t *data, size_t size), void *ctx);

#endif /* STACKTAP_CLI_MESSAGES_H */
