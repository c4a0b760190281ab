/* SPDX-License-Identifier: Apache-2.0 */
/* A single file of messages without seals (export/record.h), as `record -o` writes it. */
#ifndef STACKTAP_EXPORT_STORE_FILE_H
#define STACKTAP_EXPORT_STORE_FILE_H

#include "base/macro.h"

struct store_file;

/*
 * Replaces an old file only when the first message is in; until then it is called PATH.partial.
 * -EBUSY: another recording writes to it.
 */
int store_file_create(const char *path, struct store_file **ret_file);
int store_file_append(struct store_file *file, const uint8_t *data, size_t size);
int store_file_close(struct store_file *file, uint64_t *ret_bytes);

#endif /* STACKTAP_EXPORT_STORE_FILE_H */
