/* SPDX-License-Identifier: Apache-2.0 */
/* A file of headers, a line `name: value' each: a token that something else renews. Empty lines and those with # are none. */
#ifndef STACKTAP_EXPORT_HEADER_FILE_H
#define STACKTAP_EXPORT_HEADER_FILE_H

#include "base/macro.h"

/* Its text, of 64 KiB at most, also where only root may read it. The caller overwrites it before it is freed. -errno */
int header_file_read(const char *path, char **ret_text);
/* -EINVAL: not of that form, or what @each says. @text is cut into pieces. */
int header_file_each(char *text, int (*each)(void *ctx, const char *name, const char *value), void *ctx);

#endif /* STACKTAP_EXPORT_HEADER_FILE_H */
