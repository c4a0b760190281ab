/* SPDX-License-Identifier: Apache-2.0 */
/* The opener's answers: all files of others, and what /proc says of processes. */
#ifndef STACKTAP_HELPER_OPEN_H
#define STACKTAP_HELPER_OPEN_H

#include "helper/request.h"

void open_answer(struct serve_request *request, struct serve_answer *answer);

#endif /* STACKTAP_HELPER_OPEN_H */
