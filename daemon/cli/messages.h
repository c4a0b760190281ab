/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of a recording, or of a store's directory, as bytes, as often as one likes. */
#ifndef STACKTAP_CLI_MESSAGES_H
#define STACKTAP_CLI_MESSAGES_H

#include "base/macro.h"

struct messages {
	const char *path;
	int fd;
	bool is_bare;		/* one message, without its length in front */
	bool is_cut;		/* the last one, which is left out; once they have been read */
	bool is_store;		/* a directory, which @fd is */
	uint64_t *times;	/* of its files, as they were when it was opened */
	size_t count;
};

/* "-" is standard input. Says what is wrong. */
int messages_open(const char *path, struct messages *ret_messages);
void messages_close(struct messages *messages);
/* Bytes of all its files, as far as they can be told now. */
uint64_t messages_size(const struct messages *messages);
/*
 * All of them, from the first. Says what is wrong, also with what @each returned: -EBADMSG, a message that is
 * damaged, -E2BIG, or another -errno.
 */
int messages_each(struct messages *messages,
		  int (*each)(void *ctx, const uint8_t *data, size_t size), void *ctx);

/*
 * Those of one of a store's @count files: *ret_count of them, also none, if its daemon has removed it meanwhile. A
 * message that is cut off at the end of the last one is being written.
 */
int messages_each_of(struct messages *messages, size_t file,
		     int (*each)(void *ctx, const uint8_t *data, size_t size), void *ctx,
		     uint64_t *ret_count);

#endif /* STACKTAP_CLI_MESSAGES_H */
