/* SPDX-License-Identifier: Apache-2.0 */
/* Names, each kept once: equal ones have one address. */
#ifndef STACKTAP_VIEW_TEXTS_H
#define STACKTAP_VIEW_TEXTS_H

#include "base/arena.h"
#include "view/rows.h"

#define TEXTS_BYTES 4096u	/* of one at most, with its end */

struct texts {
	struct arena arena;
	struct rows rows;	/* const char * */
};

void texts_init(struct texts *texts);
void texts_free(struct texts *texts);
/* Clean text, cut at TEXTS_BYTES; NULL when POOL_REPORT is used up. */
const char *texts_intern(struct texts *texts, const char *text);
/* The place of an interned text among all, in the order of their first use. */
uint32_t texts_position(const struct texts *texts, const char *text);

static inline const char *texts_at(const struct texts *texts, uint32_t i)
{
	return ((const char *const *)(const void *)texts->rows.data.data)[i];
}

#endif /* STACKTAP_VIEW_TEXTS_H */
