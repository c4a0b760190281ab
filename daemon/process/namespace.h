/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mount namespace: the one O_PATH descriptor through which files of its processes are opened,
 * also after they have exited. Images in it share it by reference; image_unref() drops theirs.
 *
 * The descriptor pins the namespace's root mount, so thread B closes it when it has not been used
 * for a while and has it opened again through a process that lives there. Here it is only held: whatever
 * looks at what is behind it may never return, and is the opener's. Only the reference count is touched by
 * other threads.
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

struct mount_namespace_id {
	uint64_t dev, inode, root_dev, root_inode;
};

/* All but the root, which only the opener may look at; -errno: the process is gone. */
int mount_namespace_identify(uint32_t tgid, struct mount_namespace_id *ret_id);
/* The root that was used last of the open ones in namespace @id, whatever root that names; 0, 0: there is none. */
void mount_namespace_table_root(const struct mount_namespace_table *table,
				const struct mount_namespace_id *id, uint64_t *ret_dev, uint64_t *ret_inode);
/*
 * The namespace that @id names; @root is taken over, also on failure; -1: -ESTALE unless it is open. A new
 * reference.
 */
int mount_namespace_table_take(struct mount_namespace_table *table,
			       const struct mount_namespace_id *id, int root,
			       struct mount_namespace **ret_space);
/* The host's root, as a guess. A new reference. */
struct mount_namespace *mount_namespace_table_guess(struct mount_namespace_table *table);
/* Close roots not used for @idle_ns, forget namespaces that no image holds. */
void mount_namespace_table_trim(struct mount_namespace_table *table, uint64_t idle_ns);
size_t mount_namespace_table_open_count(const struct mount_namespace_table *table);

/* st_dev of the host's root. */
uint64_t mount_namespace_table_host(const struct mount_namespace_table *table);

#endif /* STACKTAP_PROCESS_NAMESPACE_H */
