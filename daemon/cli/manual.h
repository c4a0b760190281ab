/* SPDX-License-Identifier: Apache-2.0 */
/* The manual page of a command. */
#ifndef STACKTAP_CLI_MANUAL_H
#define STACKTAP_CLI_MANUAL_H

/* Becomes man(1), which shows it. Returns if there is no man(1), or none of its pages is this command's. */
void manual_show(const char *command);

#endif /* STACKTAP_CLI_MANUAL_H */
