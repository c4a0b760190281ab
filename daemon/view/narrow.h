/* SPDX-License-Identifier: Apache-2.0 */
/* A message of OTLP profiles as another one, with what a selection leaves of it. Times are not looked at. */
#ifndef STACKTAP_VIEW_NARROW_H
#define STACKTAP_VIEW_NARROW_H

#include "view/reader.h"

/*
 * @reader has the selection; its sink is not asked. *ret_message, a buffer of the caller's, is empty where nothing is
 * left. -EBADMSG, -E2BIG.
 */
int narrow_message(struct reader *reader, const uint8_t *data, size_t size, struct buffer *ret_message);

#endif /* STACKTAP_VIEW_NARROW_H */
