/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <linux/stacktap.h>

#include "helper/parser.h"
#include "process/object.h"
#include "resolve/cache.h"

/* How the session and the files are reached; tests put others in their place. */
struct tables_ops {
	/* As ioctl(2) on the session, but -errno on failure. */
	int (*request)(void *ctx, unsigned long request, void *argument);
	/* A borrowed descriptor of the object's file, good until the next call; @tgid maps it. */
	int (*open)(void *ctx, struct object *object, uint32_t tgid, int *ret_fd);
	/* Every table that the session holds, with the time of the last walk that used it. */
	int (*each_table)(void *ctx,
			  int (*each)(void *each_ctx, uint64_t id, uint64_t bytes, uint64_t hit),
			  void *each_ctx);
	uint64_t (*now)(void);	/* CLOCK_MONOTONIC ns */
	struct parser *parser;	/* compiles them */
	struct cache *cache;	/* of compiled tables on disk; NULL: none */
	size_t keep_bytes;	/* of tables kept here */
	void *ctx;
};
