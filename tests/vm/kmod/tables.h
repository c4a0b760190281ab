/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and mapping lists of a session, and what the module says of them. */
#ifndef KMODTEST_TABLES_H
#define KMODTEST_TABLES_H

#include <sys/types.h>

#include "client.h"

/* what GET_MODULE or a SESSION says */
struct table_sums {
	uint32_t tables, lists;
	uint64_t table_bytes, table_limit, list_bytes, lists_refused;
};

/* 0 or -errno; the ids are as they came. */
int tables_load(struct client *client, const void *data, size_t size, uint64_t *ret_id);
int tables_drop(struct client *client, uint64_t id);
int tables_image(struct client *client, pid_t pid, struct stacktap_image *ret_image);
int tables_set(struct client *client, const struct stacktap_image *image, uint64_t generation,
	       const struct stacktap_mapping *mappings, uint32_t count);

/* Load the hand-written table and set the list of @pid, a fork of this program. */
int tables_set_frameless(struct client *client, pid_t pid, uint64_t generation);

struct table_sums tables_of_module(struct client *client);
struct table_sums tables_of_session(struct client *client);
/* How many tables GET_TABLE tells, of the session or of all; the hit of the last one if asked for. */
unsigned int tables_listed(struct client *client, bool all, uint64_t *ret_hit);
/* Sum of an attribute of the CPU nests. */
uint64_t tables_count(struct client *client, uint16_t type);

/* Wait until the module has at most @lists, for what is freed late. */
bool tables_wait(struct client *client, uint32_t lists);

#endif /* KMODTEST_TABLES_H */
