/* SPDX-License-Identifier: Apache-2.0 */
/* A recording with the names that `symbolize' finds, for who only reads it. */
#ifndef STACKTAP_CLI_NAMED_COPY_H
#define STACKTAP_CLI_NAMED_COPY_H

#include "cli/debugfile.h"

/*
 * In a file without a name, whose descriptor is the caller's. Says what is wrong, and what could not be had of a server.
 * *ret_is_cut: the recording is cut off or damaged, and the copy has what is whole.
 */
int named_copy_make(const char *path, const struct debugfile_places *places, int *ret_fd, bool *ret_is_cut);

#endif /* STACKTAP_CLI_NAMED_COPY_H */
