/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of OTLP profiles: each message is a u32 big-endian length and that many bytes of
 * ProfilesData, the framing of the Collector's file exporter. A file may be cut anywhere (crash, full
 * disk): readers take the whole messages before the cut.
 */
#ifndef STACKTAP_EXPORT_STORE_H
#define STACKTAP_EXPORT_STORE_H

#include "base/macro.h"

enum { STORE_MESSAGE_MAX = 64 << 20 };	/* bytes of a message: OTLP's limit for a request */

struct store_file;

/*
 * A single file, as `record -o` writes it. Replaces an old one only when the first message is in;
 * until then it is called PATH.partial. -EBUSY: another recording writes to it.
 */
int store_file_create(const char *path, struct store_file **ret_file);
int store_file_append(struct store_file *file, const uint8_t *data, size_t size);
int store_file_close(struct store_file *file, uint64_t *ret_bytes);

/*
 * A directory of files profiles-<Unix ms>.otlp, oldest removed so that all stay below max_bytes. A
 * new file is begun at a 16th of that and every hour; finished files are synced to disk, the open one
 * is not. -EBUSY: another process has the store open.
 */
struct store;
int store_open(const char *directory, uint64_t max_bytes, struct store **ret_store);
int store_append(struct store *store, const uint8_t *data, size_t size);
void store_close(struct store *store);

#endif /* STACKTAP_EXPORT_STORE_H */
