/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot, printed for people or as JSON. */
#ifndef STACKTAP_SERVICE_STATUS_H
#define STACKTAP_SERVICE_STATUS_H

#include "service/snapshot.h"

/* The line of what is walked by frame pointers for want of a table begins so; doctor looks for it. */
#define STATUS_NO_TABLE "  files whose unwind table is too large: "
/* And that of what a receiver, or the way to it, said last; it is there until a payload is taken without a word. */
#define STATUS_EXPORT_ERROR "  last export error: "
/* Where there are several, of one whose name follows, then `: ' and the same. */
#define STATUS_RECEIVER_ERROR "  last error of receiver "

void status_print_daemon_text(FILE *stream, const struct snapshot *snapshot);
void status_print_daemon_json(FILE *stream, const struct snapshot *snapshot);
/* Memory by pool, one line each: what SIGUSR1 logs. */
void status_print_pools(FILE *stream);

#endif /* STACKTAP_SERVICE_STATUS_H */
