/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an object's names are, among the files of whoever asks: found by build-id alone, GNU's, or the
 * hash of the file itself where it has none. A file of another build is none, whatever its path.
 */
#ifndef STACKTAP_CLI_DEBUGFILE_H
#define STACKTAP_CLI_DEBUGFILE_H

#include "cli/sysroot.h"
#include "helper/debuginfod.h"
#include "helper/parser.h"
#include "view/census.h"

struct debugfile_places {
	const char **directories;	/* with .build-id/, of debuginfod-find, or of any files */
	size_t directory_count;
	const char *sysroot;		/* in which the recorded paths are */
	const struct sysroot_process *process;	/* in whose root they are, instead; or NULL */
	const char **binaries;
	size_t binary_count;
	struct debuginfod_options debuginfod;	/* without a url: none is asked */
};

struct debugfile_finder;

/* What none is, and is to be closed all the same. */
#define DEBUGFILE_NONE ((struct debugfile){ .fd = -1, .alt.fd = -1, .split.fd = -1 })

struct debugfile {
	struct object *object;		/* NULL: none was found */
	int fd;
	struct lines_facts facts;
	struct parser_part alt;		/* what dwz moved away */
	struct parser_part split;	/* a package (.dwp) of its split DWARF */
	const struct sysroot *root;	/* that it is in; NULL: this host's */
	bool with_dwarf;
	bool is_kernel;			/* vmlinux, or a module's */
	bool is_module;			/* whose functions are to be those that are recorded, see naming.c */
	char note[2048];		/* what is missing, or why there is none; may be empty */
};

/* @debuginfod is asked for what is nowhere here; NULL: nobody is. */
int debugfile_finder_new(struct parser *parser, const struct debugfile_places *places,
			 struct debuginfod *debuginfod, struct debugfile_finder **ret_finder);
void debugfile_finder_free(struct debugfile_finder *finder);	/* NULL is fine */
/* Where recorded paths are looked up, by others as well; NULL: it cannot be opened. */
const struct sysroot *debugfile_finder_sysroot(const struct debugfile_finder *finder);
const struct debugfile_places *debugfile_finder_places(const struct debugfile_finder *finder);

/* The best there is: DWARF before symbols before what a program exports. -ENOENT, and a note. */
int debugfile_find(struct debugfile_finder *finder, const struct recorded_object *wanted,
		   struct debugfile *ret_file);
/* The file that ran, with its code. -ENOENT, and a note. */
int debugfile_find_code(struct debugfile_finder *finder, const struct recorded_object *wanted,
			struct debugfile *ret_file);
void debugfile_close(struct debugfile *file);
void debugfile_drop_split(struct debugfile *file);

/* Is it the kernel's image, or one of its modules, whose files are called otherwise? */
bool debugfile_is_kernel(const char *path);
bool debugfile_is_module(const char *path);
/* The address of @location in this file; false when the two do not belong together. */
bool debugfile_address(const struct debugfile *file, const struct recorded_location *location,
		       uint64_t *ret_address);

#endif /* STACKTAP_CLI_DEBUGFILE_H */
