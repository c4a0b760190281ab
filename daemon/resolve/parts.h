/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What else has a part of a file's DWARF: what dwz has moved out of it, the package of its split DWARF, .dwo files.
 *
 * The first is taken from where packages install it, by its build-id or, on the host, by its name. All of them are taken from
 * where the program says as well, on the host, or of a program in its container's own file system there. Whoever could put
 * another file there must be able to change the program: it is its owner's or root's, and nobody else may write to it. They are
 * that program's alone, as others that share its debug file have another root, or another owner.
 */
#ifndef STACKTAP_RESOLVE_PARTS_H
#define STACKTAP_RESOLVE_PARTS_H

#include "helper/dwo_files.h"
#include "resolve/objects.h"

struct parts;

struct parts_stats {
	uint64_t moved, packages, dwos;	/* files that were found */
	uint64_t refused;		/* that others than their program's owner may have written */
};

/* @objects are borrowed. */
int parts_new(struct objects *objects, struct parts **ret_parts);
void parts_free(struct parts *parts);	/* NULL is fine */

/* Whose DWARF it is: @object's, which is the program itself, or its debug file. */
struct parts_of {
	struct parts *parts;
	struct object *program, *object;
	struct dwarf_known *known;
};

/* -ENOENT: there is none; what objects_may_pass(). A descriptor is borrowed until the next question. */
int parts_moved(const struct parts_of *of, const struct lines_facts *facts, struct parser_part *ret_part);
/* @seek false: only one that has been found before. */
int parts_package(const struct parts_of *of, bool seek, struct parser_part *ret_part);
/* Has @files look for what @of says, which stays as long. */
void parts_look_for_dwos(const struct parts_of *of, struct dwo_files *files);

const struct parts_stats *parts_stats(const struct parts *parts);

#endif /* STACKTAP_RESOLVE_PARTS_H */
