/* SPDX-License-Identifier: Apache-2.0 */
/* The opener's answers of what /proc says of a process. */
#ifndef STACKTAP_HELPER_OPEN_PROCESS_H
#define STACKTAP_HELPER_OPEN_PROCESS_H

#include "helper/request.h"

/* /proc/@tgid: all that is read through this descriptor is of one process. -errno. */
int open_proc(uint32_t tgid);

int open_answer_image(const struct serve_request *request, struct serve_answer *answer);
int open_answer_scan(const struct serve_request *request, struct serve_answer *answer);

#endif /* STACKTAP_HELPER_OPEN_PROCESS_H */
