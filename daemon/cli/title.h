/* SPDX-License-Identifier: Apache-2.0 */
/* What a part of a screen is called. */
#ifndef STACKTAP_CLI_TITLE_H
#define STACKTAP_CLI_TITLE_H

#include <stdint.h>

enum { TITLE_BYTES = 128 };

/* A function of a process: the number is whole, of a long name there is the beginning. */
void title_of(const char *function, uint32_t id, char ret_title[static TITLE_BYTES]);

#endif /* STACKTAP_CLI_TITLE_H */
