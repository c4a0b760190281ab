/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that wait in memory for another try, oldest first. */
#ifndef STACKTAP_EXPORT_WAITING_H
#define STACKTAP_EXPORT_WAITING_H

#include "export/body.h"

struct waiting {
	struct waiting *next;
	struct body *body;
};

struct waiting_list {
	struct waiting *first, **last;
};

void waiting_list_init(struct waiting_list *list);
/* Takes the caller's reference. NULL, and it is left: it is not charged, or there is no memory. */
struct waiting *waiting_new(struct body *body);
void waiting_free(struct waiting *waiting);
/* Behind all others. */
void waiting_append(struct waiting_list *list, struct waiting *waiting);
/* Back to where it came from. */
void waiting_prepend(struct waiting_list *list, struct waiting *waiting);
/* The oldest: there is one. */
struct waiting *waiting_pop(struct waiting_list *list);

#endif /* STACKTAP_EXPORT_WAITING_H */
