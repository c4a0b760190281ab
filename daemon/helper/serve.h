/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper's end: what a process does that was started under a helper's name. Its constructor never
 * returns then, so main() is not run; each program that has helpers can be one.
 */
#ifndef STACKTAP_HELPER_SERVE_H
#define STACKTAP_HELPER_SERVE_H

#include "helper/protocol.h"

/* "stacktap-parser": the process' argv[0] and name. */
const char *serve_name(enum helper_kind kind);

#endif /* STACKTAP_HELPER_SERVE_H */
