/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For whom the opener opens files. Its owner may have the rights that it has itself, or have given them up and started it
 * by its broker: then what it is handed is what everybody may read, and code.
 */
#ifndef STACKTAP_HELPER_OWNER_H
#define STACKTAP_HELPER_OWNER_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* Before the opener gives up rights of its own. */
void owner_note(void);
/* Of /proc and the like: what it says is not of the file that has been looked at, but of who reads it, and when. */
bool owner_is_kernels(const struct statfs *fs);
/* May it be handed @fd? */
bool owner_may_read(int fd, const struct stat *st);

#endif /* STACKTAP_HELPER_OWNER_H */
