/* SPDX-License-Identifier: Apache-2.0 */
/* Files for TLS that only root may read: the broker reads them, and those alone that the configuration names. */
#ifndef STACKTAP_SERVICE_SECRET_H
#define STACKTAP_SERVICE_SECRET_H

#include <stdbool.h>

bool secret_is_named(const char *config_path, const char *path);
/* A copy of its content, sealed; -errno. */
int secret_read(const char *path);

#endif /* STACKTAP_SERVICE_SECRET_H */
