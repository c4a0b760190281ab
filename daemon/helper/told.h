/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding what a program says is a file of its debug information: a .dwo file or a package of them, what dwz has moved out. The
 * name is the program's word, and that of a parser which a hostile file may have taken over: it must lead neither to what is
 * no such file nor to a file system whose server somebody else runs.
 */
#ifndef STACKTAP_HELPER_TOLD_H
#define STACKTAP_HELPER_TOLD_H

#include <sys/stat.h>

#include "base/macro.h"

/*
 * To @path, from @directory of this host on: a descriptor from O_PATH. -EREMOTE: the way leads to another file system that is
 * not of local storage, which is not entered, nor mounted.
 */
int told_walk(const char *directory, const char *path);
/* To @path below a process' root; unless that is our own, in the file system of that root alone: -EXDEV. */
int told_walk_in(int root, const char *path);
/* Is @fd a relocatable ELF file, as compilers, dwz and packagers write them? -ENOEXEC: no. -EACCES: it is the kernel's (/proc). */
int told_check(int fd, const struct stat *st);

#endif /* STACKTAP_HELPER_TOLD_H */
