/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver's socket on the loopback interface. */
#ifndef STACKTAP_TESTS_LOOPBACK_H
#define STACKTAP_TESTS_LOOPBACK_H

#include "unit.h"

/* Listens on a free port, whose address goes to @ret_url; the caller closes it. */
int loopback_listen(char *ret_url, size_t size);

#endif /* STACKTAP_TESTS_LOOPBACK_H */
