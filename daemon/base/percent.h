/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STACKTAP_BASE_PERCENT_H
#define STACKTAP_BASE_PERCENT_H

#include <stdbool.h>
#include <stdint.h>

/* "1", "0.5", "1.5%": 0 to 100 with at most one digit behind the point, as permille. */
bool percent_parse(const char *text, uint32_t *ret_permille);

#endif /* STACKTAP_BASE_PERCENT_H */
