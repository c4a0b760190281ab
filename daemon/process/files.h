/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread A's table of the files that running images have mapped, so that all of them share one
 * mapped_file (and with it the Locations) for one file.
 *
 * A file is in the table while a running image maps it, which pins its inode: the same device and
 * inode number then is the same file. After that its number may be given to another file, so the
 * next mapping makes a new mapped_file and has it opened anew.
 */
#ifndef STACKTAP_PROCESS_FILES_H
#define STACKTAP_PROCESS_FILES_H

#include "process/object.h"

struct file_key {
	uint32_t major, minor;
	uint64_t inode, inode_generation;
	const char *path;	/* as a side-band event or /proc/PID/maps has it */
};

/* A new reference to the file of a key; NULL when out of memory. */
struct mapped_file *files_get(struct hash_table *files, const struct file_key *key);
/* What a path names, without looking at it. */
enum object_kind files_kind(const struct file_key *key);

/* A mapping of a running image came or went. */
void files_use(struct hash_table *files, struct mapped_file *file);
void files_unuse(struct hash_table *files, struct mapped_file *file);

#endif /* STACKTAP_PROCESS_FILES_H */
