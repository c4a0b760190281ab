/* SPDX-License-Identifier: Apache-2.0 */
/* How far reading a recording has come, on a terminal, where it takes long. */
#ifndef STACKTAP_CLI_PROGRESS_H
#define STACKTAP_CLI_PROGRESS_H

/* Of all that recording_read() reads from now on: on standard error, from two seconds on. */
void progress_watch(void);

#endif /* STACKTAP_CLI_PROGRESS_H */
