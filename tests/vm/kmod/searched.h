/* SPDX-License-Identifier: Apache-2.0 */
/* A stack that is nothing but callers, and code in which the rule of each has to be searched for. */
#ifndef KMODTEST_SEARCHED_H
#define KMODTEST_SEARCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "client.h"

enum {
	SEARCHED_CODE = 1 << 22,	/* bytes of code that no walk has been to */
	SEARCHED_WORDS = 1 << 15,	/* of the stack, all of them addresses in that code */
};

struct searched {
	uint64_t words[SEARCHED_WORDS];
	uint64_t code;
};

bool searched_begin(struct searched *searched);
void searched_end(struct searched *searched);
/* Have @client walk this process, and that stack, by tables. */
bool searched_set(struct client *client, const struct searched *searched);
/* Two instructions a turn, on that stack. */
void searched_burn(const struct searched *searched, uint64_t turns);

#endif /* KMODTEST_SEARCHED_H */
