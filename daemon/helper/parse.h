/* SPDX-License-Identifier: Apache-2.0 */
/* The parser's answers: all that is read of files that somebody else wrote. */
#ifndef STACKTAP_HELPER_PARSE_H
#define STACKTAP_HELPER_PARSE_H

#include "helper/request.h"

void parse_answer(struct serve_request *request, struct serve_answer *answer);

#endif /* STACKTAP_HELPER_PARSE_H */
