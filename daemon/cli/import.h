/* SPDX-License-Identifier: Apache-2.0 */
/* `stacktap convert -o x.otlp': profiles of others as a recording. */
#ifndef STACKTAP_CLI_IMPORT_H
#define STACKTAP_CLI_IMPORT_H

#include "base/macro.h"

/* The exit code. */
int import_run(const char *path, const char *output, bool use_json);

#endif /* STACKTAP_CLI_IMPORT_H */
