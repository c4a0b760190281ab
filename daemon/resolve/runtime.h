/* SPDX-License-Identifier: Apache-2.0 */
/* Which runtime makes code, by the names of what is around it. */
#ifndef STACKTAP_RESOLVE_RUNTIME_H
#define STACKTAP_RESOLVE_RUNTIME_H

#include "profile/location.h"

/* RUNTIME_NATIVE: none that is known. */
enum frame_runtime runtime_of_program(const char *name);
enum frame_runtime runtime_of_library(const char *path);
enum frame_runtime runtime_of_function(const char *name);

#endif /* STACKTAP_RESOLVE_RUNTIME_H */
