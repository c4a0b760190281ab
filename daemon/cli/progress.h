/* SPDX-License-Identifier: Apache-2.0 */
/* How far reading a recording has come, on a terminal, where it takes long. */
#ifndef STACKTAP_CLI_PROGRESS_H
#define STACKTAP_CLI_PROGRESS_H

#include "base/macro.h"

/* Of all that is read from now on: on standard error, from two seconds on. recording_read() tells it by itself. */
void progress_watch(void);
/* So many bytes will be read in all: it is told in percent of them. */
void progress_expect(uint64_t bytes);
/* A message of so many bytes was read. */
void progress_read(size_t bytes);
/* The line goes: others write to the terminal. */
void progress_done(void);

#endif /* STACKTAP_CLI_PROGRESS_H */
