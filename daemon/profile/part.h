/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the open window, for the journal. */
#ifndef STACKTAP_PROFILE_PART_H
#define STACKTAP_PROFILE_PART_H

#include "profile/window.h"

/* See aggregator_part(). */
int window_part(struct window *window, struct window **ret_part);
void window_make_id(struct window *window);

#endif /* STACKTAP_PROFILE_PART_H */
