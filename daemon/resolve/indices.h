/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indices of files with much DWARF on disk, so that a daemon that starts again does not read the beginning of each unit once more.
 *
 * An index's name is a hash of what the file is: device, inode, size and time of change, build-id. A build-id alone may be
 * forged, by who has a file of his own with it: what he has made is found for his file alone. The next boot numbers devices
 * anew, so the number counts with the boot's id; but for the devices of the system's own directories, which are known again
 * by where they are mounted. On these, which is where debug files are, an inode of then is that of now, and nobody sets a time of
 * change: who serves a file system of his own can, but that is on no such device. What is read back is checked in the parser.
 *
 * A thread of its own opens and writes the files, as thread B must not wait for a disk: it waits for INDICES_WAIT_MS, and goes on
 * without. What is to be written has INDICES_QUEUE_BYTES at most, but for one that has more by itself, DWARF_INDEX_BYTES_MAX.
 * Nor does who ends wait longer for it: the thread goes once its disk has answered.
 */
#ifndef STACKTAP_RESOLVE_INDICES_H
#define STACKTAP_RESOLVE_INDICES_H

#include "process/object.h"

enum {
	INDICES_WAIT_MS = 250,
	INDICES_QUEUE_MAX = 8,
	INDICES_QUEUE_BYTES = 16 << 20,
	INDICES_CREDIT_BYTES = 64 << 20,	/* that are written in one go, as when a daemon begins, */
	INDICES_CREDIT_PART = 4096,	/* and after that 14 MiB a minute: one each so many ns */
};

struct indices;

struct indices_options {
	const char *directory;	/* NULL: nowhere */
	uint64_t limit_bytes;	/* 0: none are kept */
};

struct indices_stats {
	uint64_t loaded;	/* from the directory, and taken by the parser */
	uint64_t made;		/* by the parser, as there was none */
	uint64_t written;
	uint64_t refused;	/* another user's or one that others may write to, or that the parser found damaged: made anew */
	uint64_t late;		/* not opened in time */
	uint64_t dropped;	/* not written: too many at once, more than index_max_bytes, or the disk failed */
};

/* -EPERM: the directory is another user's, or others may write to it. */
int indices_new(const struct indices_options *options, struct indices **ret_indices);
void indices_free(struct indices *indices);	/* NULL is fine; what waits to be written is dropped */

/* That of @object's file. -ENOENT: there is none for now. */
int indices_get(struct indices *indices, const struct object *object, int *ret_fd, uint64_t *ret_size);
/* Whether the parser has taken it: what it could not read, or died of, is removed. */
void indices_judge(struct indices *indices, const struct object *object, int error);
/* Is one of a program of @payer's to be made for it? A file that is touched again and again has always a new one. */
bool indices_may_put(struct indices *indices, uint32_t payer);
/* Takes *@fd, what the parser has made; @size bytes that do not change. */
void indices_put(struct indices *indices, const struct object *object, uint32_t payer, int *fd, uint64_t size);

void indices_stats(struct indices *indices, struct indices_stats *ret_stats);	/* NULL is fine */

#endif /* STACKTAP_RESOLVE_INDICES_H */
