/* SPDX-License-Identifier: Apache-2.0 */
/* Long text on a terminal goes through a pager, as git's does. */
#ifndef STACKTAP_CLI_PAGER_H
#define STACKTAP_CLI_PAGER_H

/*
 * From now on what is written to standard output goes to the pager, if that is a terminal:
 * STACKTAP_PAGER, else PAGER, else less, where it is installed and TERM names more than a dumb
 * terminal; empty or `cat': none. The process waits for it at its end.
 */
void pager_start(void);

#endif /* STACKTAP_CLI_PAGER_H */
