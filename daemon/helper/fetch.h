/* SPDX-License-Identifier: Apache-2.0 */
/* The fetcher's answers: what a debuginfod server has. */
#ifndef STACKTAP_HELPER_FETCH_H
#define STACKTAP_HELPER_FETCH_H

#include "helper/request.h"

/* What has to be done while files can still be opened for more than reading. */
void fetch_prepare(void);
void fetch_answer(struct serve_request *request, struct serve_answer *answer);

#endif /* STACKTAP_HELPER_FETCH_H */
