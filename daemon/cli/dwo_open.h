/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening what a program says is its .dwo file, for a parser that reads whatever it is handed; see helper/told.h. It must not lead
 * to what others may not read either.
 */
#ifndef STACKTAP_CLI_DWO_OPEN_H
#define STACKTAP_CLI_DWO_OPEN_H

#include "cli/sysroot.h"

/*
 * Below a directory that whoever asks has named, as sysroot_open_file(); or in a process' root, where the opener looks.
 * -ENOEXEC: no object file. -EACCES: one of the kernel's (/proc).
 */
int dwo_open_named(const struct sysroot *sysroot, const char *path, struct stat *ret_stat);
/*
 * By a name on this host, from @directory on, that nobody has named. -EREMOTE: the way leads to another file system that is not
 * of local storage, which is not entered, nor mounted. -EACCES: neither the caller's file nor one that everybody may read.
 */
int dwo_open_told(const char *directory, const char *path, struct stat *ret_stat);

#endif /* STACKTAP_CLI_DWO_OPEN_H */
