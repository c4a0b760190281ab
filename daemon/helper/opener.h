/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking the opener, the helper that opens the files that processes have mapped, and reads what /proc says
 * of them. Any of that may never come back: a FUSE or NFS server that does not answer holds whoever so much
 * as walks a path there. What did that is left alone for a while, and its frames stay without names.
 *
 * A file is found by its path in the image's mount namespace, by what the process still has open or mapped
 * (files deleted since), by its path on the host. What is found must have the inode number that was mapped.
 * Device numbers are compared only where both are real devices: btrfs subvolumes and overlayfs show one
 * number in mappings, another in stat(). On overlayfs the inode numbers differ as well, once a file is
 * copied up; there a file is also taken when the kernel shows, for a mapping of it that the opener makes,
 * device and inode of the one wanted.
 *
 * Any thread may ask; one at a time is served.
 */
#ifndef STACKTAP_HELPER_OPENER_H
#define STACKTAP_HELPER_OPENER_H

#include "base/deadline.h"
#include "helper/helper.h"
#include "process/namespace.h"
#include "process/scan.h"

struct image_details;
struct opener;

struct opener_wanted {
	uint32_t major, minor;	/* 0, 0: unknown */
	uint64_t inode;		/* 0: unknown */
	const char *path;
	const struct stat *known;	/* what was found there the last time; NULL: nothing */
};

struct opener_stats {
	struct helper_stats helper;
	uint64_t quarantined;	/* devices and mount namespaces, right now */
	uint64_t left_alone;	/* questions that were not asked for that */
	char last_quarantined[256]; /* what was asked for; empty: nothing ever */
};

int opener_new(struct opener **ret_opener);
void opener_free(struct opener *opener);	/* NULL is fine */

/* From before the first question on: -ECANCELED as soon as @fd can be read. */
void opener_set_cancel(struct opener *opener, int fd);
/*
 * From now on questions are over by then, @deadline is borrowed: each gets no more time than is left, and -ETIME where
 * that is too little. NULL: there is no end.
 */
void opener_until(struct opener *opener, const struct deadline *deadline);

/* Was it for want of an opener, or of time, memory or descriptors for it? Then nothing is known of what was asked. */
static inline bool opener_is_unanswered(int error)
{
	return error == -EAGAIN || error == -EPIPE || error == -ETIME || error == -ETIMEDOUT || error == -ENOMEM ||
	       error == -EMFILE || error == -ENFILE;
}

/*
 * @space: where the path was seen, NULL: unknown; @tgid: a process that maps it, 0: none is known.
 * -ESTALE: another file has taken its path, or the root is closed. -ENXIO: not a regular file. -EREMOTE:
 * served by FUSE. -EHOSTDOWN: it did not come back, now or not long ago. -ENOENT and others: as open() says.
 * A file that is still `known` may come without a descriptor: *ret_fd -1.
 */
int opener_open(struct opener *opener, struct mount_namespace_table *spaces,
		struct mount_namespace *space, uint32_t tgid, const struct opener_wanted *wanted,
		int *ret_fd, struct stat *ret_stat);
struct opener_program {
	uint64_t dev;
	uint32_t user;
};
/*
 * A file below @space's root that nothing is known of but its path: what it is, its content must prove. @beside: the
 * program in whose directory, or below, it is, so that what hangs there costs other users' programs nothing; NULL: root's.
 */
int opener_open_path(struct opener *opener, struct mount_namespace_table *spaces,
		     struct mount_namespace *space, const char *path, const struct opener_program *beside,
		     int *ret_fd, struct stat *ret_stat);
/*
 * The same of what @program says is a file of its debug information: a relocatable ELF file that is reached as told_walk_in()
 * says, -EREMOTE, -EXDEV; -ENOEXEC: another file. Whose it is, and who may write to it, is the caller's to judge.
 */
int opener_open_told(struct opener *opener, struct mount_namespace_table *spaces,
		     struct mount_namespace *space, const char *path, const struct opener_program *program,
		     int *ret_fd, struct stat *ret_stat);
/*
 * The perf map of a process, which may have exited: /tmp/perf-PID.map, both in its namespaces. It must be a regular
 * file of the process' user, written since the process started. -EPERM, -ESTALE: it is not. Others as above.
 */
struct opener_process {
	uint64_t start_time;	/* CLOCK_BOOTTIME ns, 0: unknown */
	uint32_t tgid, pid_in_namespace, user;
};
int opener_perf_map(struct opener *opener, struct mount_namespace_table *spaces,
		    struct mount_namespace *space, const struct opener_process *process, int *ret_fd,
		    struct stat *ret_stat);
/*
 * What is read of a process once: its mount namespace, a new reference, and its details, as details_read(). NULL: it
 * could not be told. Both are one question, unless such a one was not answered within ten minutes: then it is not
 * known which of them it was, and each is asked for itself. An error is one of opener_is_unanswered(), with neither.
 */
int opener_image(struct opener *opener, struct mount_namespace_table *spaces, uint32_t tgid,
		 bool with_command_line, struct mount_namespace **ret_space,
		 struct image_details **ret_details);
/* The mount namespace alone, a new reference. -ESRCH: the process is gone; -EHOSTDOWN: its root is left alone. */
int opener_space(struct opener *opener, struct mount_namespace_table *spaces, uint32_t tgid,
		 struct mount_namespace **ret_space);
/* Has @fd, on device @dev, no name any more? False when that cannot be told. */
bool opener_is_deleted(struct opener *opener, uint64_t dev, int fd);

/* As process_scan(), but -EBUSY: not now, the next one may be. -EAGAIN: there is no opener, or it has had its time. */
int opener_scan(struct opener *opener, uint32_t tgid, struct process_snapshot **ret_snapshot);

/*
 * The payload of the process context of the process that runs @question's executable, in a sealed memfd, to be
 * read by the parser alone. *ret_fd -1: it is the one that was published at that time. Others: as
 * context_read(); -ESRCH: the process is gone, or runs another program.
 */
struct open_context;
struct open_context_answer;
int opener_context(struct opener *opener, const struct open_context *question,
		   struct open_context_answer *ret_answer, int *ret_fd, uint64_t *ret_size);

/* Have these pages of a process read. How many could be, or -errno. */
int opener_touch(struct opener *opener, uint32_t tgid, uint64_t address, uint32_t pages);
/* As process_each(), also where /proc shows this process not all of them (its option hidepid). */
int opener_processes(struct opener *opener, int (*each)(void *ctx, uint32_t tgid), void *ctx);

void opener_stats(struct opener *opener, struct opener_stats *ret_stats);

#endif /* STACKTAP_HELPER_OPENER_H */
