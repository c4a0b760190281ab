/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread B's cache of what runtimes say of the code that they compile: the perf maps and jitdumps of processes that
 * had samples in memory that no file is behind.
 *
 * Both grow: what is new is read when a window has samples there, once a second at most, and less often the longer it
 * takes; all in a window within JIT_WINDOW_NS, those first that take the least, and their names within JIT_NAMES_NS.
 * One is read whatever is left of the window's time, the one that was not for longest.
 * What a process' code takes is bounded by CODE_MAX, what all take by JIT_MAX_BYTES, and by POOL_SYMBOLS; the least
 * recently used goes first.
 */
#ifndef STACKTAP_RESOLVE_JIT_H
#define STACKTAP_RESOLVE_JIT_H

#include "helper/opener.h"
#include "helper/parser.h"
#include "process/image.h"
#include "profile/location.h"
#include "resolve/objects.h"

enum {
	JIT_PROCESSES_MAX = 256,
	JIT_MAX_BYTES = 6 << 20,
};

#define JIT_WINDOW_NS (2 * NSEC_PER_SEC)
#define JIT_NAMES_NS (NSEC_PER_SEC / 2)

struct jits;
struct jit;	/* of one image */

struct jit_stats {
	uint64_t processes;	/* that have a perf map or a jitdump, right now */
	uint64_t functions, bytes;	/* of all of these */
	uint64_t refused_files;	/* of another user, no regular file, or none of its format */
	uint64_t bad_entries;	/* lines and records that are none */
	uint64_t dropped;	/* functions, for want of memory */
};

/* All are borrowed. */
int jits_new(struct opener *opener, struct parser *parser, struct mount_namespace_table *spaces,
	     struct objects *objects, struct jits **ret_jits);
void jits_free(struct jits *jits);	/* NULL is fine */

/* jit-PID.dump, by which the format's specification has it be known. */
bool jit_is_dump(const struct mapped_file *file);
/* @image has mapped @file: it may be a jitdump. */
void jits_see_file(struct jits *jits, struct image *image, struct mapped_file *file);

/* A window begins, of which all is done by @deadline, but for the reading of one. The parser and the opener have the same. */
void jits_begin(struct jits *jits, const struct deadline *deadline);
/* It has samples of @image in such memory. NULL: there are too many of those. Valid until jits_begin(). */
struct jit *jits_want(struct jits *jits, struct image *image);
/* By how often each was wanted in this window: those that take the least come first. */
int jit_compare(const struct jit *a, const struct jit *b);
/* One of its stacks has a frame in this file, which may tell what its code is made by. */
void jit_sees_library(struct jit *jit, const char *path);
uint32_t jit_payer(const struct jit *jit);
enum frame_runtime jit_runtime(const struct jit *jit);
/* Bytes that new names of its code may take in this window; see names_get(). */
size_t *jit_budget(struct jit *jit);
/* Read what is new of all that is wanted. */
void jits_refresh(struct jits *jits);
/* -ENODATA: nobody says what is there; -ENOBUFS: there was no memory for it. Errors that may pass: see objects_may_pass(). */
int jit_name(struct jits *jits, struct jit *jit, uint64_t address, char ret_name[static CODE_NAME_MAX],
	     bool *ret_is_dump);

/* Close and forget what was not used for @idle_ns. */
void jits_trim(struct jits *jits, uint64_t idle_ns);

const struct jit_stats *jits_stats(struct jits *jits);

#endif /* STACKTAP_RESOLVE_JIT_H */
