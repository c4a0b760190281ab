/* SPDX-License-Identifier: Apache-2.0 */
/* Files of kernel modules, with debug information or without, where distributions install them: found by the module's name. */
#ifndef STACKTAP_CLI_MODULE_FILES_H
#define STACKTAP_CLI_MODULE_FILES_H

#include "base/buffer.h"
#include "cli/sysroot.h"

enum { MODULE_FILES_MAX = 64 << 10 };	/* that are looked at in one tree, modules or not */

struct module_file {
	const struct sysroot *sysroot;	/* in which it is; NULL: this host's */
	char *path;
};

struct module_files {
	struct buffer files;		/* struct module_file */
	struct buffer trees;		/* that were looked at, struct module_tree */
	bool has_looked;
	bool is_cut;			/* a tree has more files than are looked at */
};

void module_files_init(struct module_files *modules);
void module_files_free(struct module_files *modules);
/* Once: below each of these debug directories, and @sysroot, which may be NULL and outlives it. */
void module_files_look(struct module_files *modules, const struct sysroot *sysroot, const char *const *debug_directories,
		       size_t count);
/* The next one, after @last or NULL, of what is recorded as @name, "[nf_tables]"; NULL: there is no more. */
const struct module_file *module_files_next(const struct module_files *modules, const char *name,
					    const struct module_file *last);

#endif /* STACKTAP_CLI_MODULE_FILES_H */
