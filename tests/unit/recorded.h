/* SPDX-License-Identifier: Apache-2.0 */
/* A recording of synthetic windows, for tests of what reads one. */
#ifndef STACKTAP_TESTS_RECORDED_H
#define STACKTAP_TESTS_RECORDED_H

#include "synthetic.h"

/* Two windows of service "shop" in messages of at most @max_bytes. */
void recorded_file(const char *path, size_t max_bytes);
/* Any bytes as a file. */
void recorded_bytes(const char *path, const void *data, size_t size);
/* Into a struct store_file, what encode_window() gives. */
int recorded_append(void *file, struct payload *payload);

#endif /* STACKTAP_TESTS_RECORDED_H */
