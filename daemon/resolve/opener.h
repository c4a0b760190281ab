/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the file that an image has mapped: by its path in the image's mount namespace, by what
 * the process still has open or mapped (files deleted since), by its path on the host.
 *
 * What is found must have the inode number that was mapped. Device numbers are compared only where
 * both are real devices: btrfs subvolumes and overlayfs show one number in mappings, another in
 * stat(). On overlayfs the inode numbers differ as well, once a file is copied up; there a file is also
 * taken when the kernel shows, for a mapping of it that we make, device and inode of the one wanted.
 */
#ifndef STACKTAP_RESOLVE_OPENER_H
#define STACKTAP_RESOLVE_OPENER_H

#include "process/namespace.h"

struct opener_wanted {
	uint32_t major, minor;	/* 0, 0: unknown */
	uint64_t inode;		/* 0: unknown */
	const char *path;
};

/*
 * @space: where the path was seen, NULL: unknown; @tgid: a process that maps it, 0: none is known.
 * -ESTALE: another file has taken its path. -ENOENT and others: as open() says.
 */
int opener_open(struct mount_namespace_table *spaces, struct mount_namespace *space, uint32_t tgid,
		const struct opener_wanted *wanted, int *ret_fd, struct stat *ret_stat);

#endif /* STACKTAP_RESOLVE_OPENER_H */
