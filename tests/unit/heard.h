/* SPDX-License-Identifier: Apache-2.0 */
/* What goes to the log, which is standard error. */
#ifndef STACKTAP_TESTS_HEARD_H
#define STACKTAP_TESTS_HEARD_H

void listen_to_log(void);
/* What it got since then; static storage. Nothing listens any more. */
const char *heard(void);

#endif /* STACKTAP_TESTS_HEARD_H */
