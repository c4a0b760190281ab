/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mount namespace: the one O_PATH descriptor through which files of its processes are opened,
 * also after they have exited. Images in it share it by reference; image_unref() drops theirs.
 *
 * The descriptor pins the namespace's root mount, so thread B closes it when it has not been used
 * for a while and opens it again through a process that lives there. Only the reference count is
 * touched by other threads.
 */
#ifndef STACKTAP_PROCESS_NAMESPACE_H
#define STACKTAP_PROCESS_NAMESPACE_H

#include <stdatomic.h>
#include <sys/stat.h>

#include "base/macro.h"

struct mount_namespace {
	_Atomic unsigned int refs;
	uint64_t dev, inode;	/* of /proc/PID/ns/mnt and of the process' root: the identity */
	uint64_t root_dev, root_inode;
	int root;		/* O_PATH, or -1: closed for now */
	bool is_guess;		/* the host's root stands in: only a matching inode counts */
	uint64_t used;		/* CLOCK_MONOTONIC ns of the last use */
};

struct mount_namespace *mount_namespace_ref(struct mount_namespace *space);
void mount_namespace_unref(struct mount_namespace *space); /* any thread; NULL is fine */

/*
 * Table of the namespaces in use, thread B's. At most MOUNT_NAMESPACE_ROOTS_MAX roots are kept
 * open, the least recently used is closed first.
 */
enum { MOUNT_NAMESPACE_ROOTS_MAX = 64 };

struct mount_namespace_table;

/* @sysroot: "" for the host's own root. */
int mount_namespace_table_new(const char *sysroot, struct mount_namespace_table **ret_table);
void mount_namespace_table_free(struct mount_namespace_table *table);

/* The namespace of the process behind @proc, a descriptor of its /proc/PID. A new reference. */
int mount_namespace_table_get(struct mount_namespace_table *table, int proc,
			      struct mount_namespace **ret_space);
/* The host's root, as a guess. A new reference. */
struct mount_namespace *mount_namespace_table_guess(struct mount_namespace_table *table);
/* Close roots not used for @idle_ns, forget namespaces that no image holds. */
void mount_namespace_table_trim(struct mount_namespace_table *table, uint64_t idle_ns);
size_t mount_namespace_table_open_count(const struct mount_namespace_table *table);

/*
 * Open the regular file @path as processes in @space see it, read-only, without ever opening a FIFO
 * or a device. -ESTALE: the root is closed (get the namespace again through a live process).
 * -ENXIO: not a regular file. -EREMOTE: served by FUSE, whose server could block us; only a host
 * whose own root is of that kind (virtiofs) is read.
 */
int mount_namespace_open(struct mount_namespace_table *table, struct mount_namespace *space,
			 const char *path, int *ret_fd, struct stat *ret_stat);
/* The same checks for a descriptor opened with O_PATH by other means. */
int mount_namespace_reopen(struct mount_namespace_table *table, int path_fd, int *ret_fd,
			   struct stat *ret_stat);

#endif /* STACKTAP_PROCESS_NAMESPACE_H */
