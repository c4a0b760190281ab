/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread B's cache of objects: one for one file content, its functions, and the descriptor they are
 * read from.
 *
 * Bounded three ways: symbol tables by POOL_SYMBOLS (the least recently used goes first),
 * descriptors by number and idle time (an open file pins its mount), objects by number as soon as
 * nothing but the cache holds them.
 */
#ifndef STACKTAP_RESOLVE_OBJECTS_H
#define STACKTAP_RESOLVE_OBJECTS_H

#include "helper/opener.h"
#include "helper/parser.h"
#include "process/image.h"
#include "resolve/names.h"
#include "symbol/symtab.h"

enum {
	OBJECTS_MAX = 8192,
	OBJECTS_FDS_MAX = 256,
};

struct objects;

struct objects_stats {
	uint64_t objects, gone, not_elf, debug_files, evicted;
	uint64_t short_tables;	/* read, but for what the parser had no CPU for */
};

/* All are borrowed; names are swept to make room. */
int objects_new(struct mount_namespace_table *spaces, struct names *names, struct opener *opener,
		struct parser *parser, struct objects **ret_objects);
void objects_free(struct objects *objects);

/* Ask a server for debug files that are nowhere here; borrowed. */
struct fetched;
void objects_fetch(struct objects *objects, struct fetched *fetched);

/* Open a mapped file, or find that it is known, and tie it to its object. */
void objects_see(struct objects *objects, const struct image *image, struct mapped_file *file);

/* Functions of a file, and where names that are not kept are read from; -1: nowhere. */
struct object_symbols {
	const struct symtab *symtab;	/* NULL: none */
	int fd;
	struct object *object;		/* borrowed; NULL: it has no file of its own */
	bool is_fetched;		/* a server had it */
};

/*
 * The functions of an object that objects_see() made, and in *ret_debug those of its separate debug file if it is
 * stripped and has one: /usr/lib/debug/.build-id/, on the host and, for files that are on no disk of it, in their
 * container; else those of its MiniDebugInfo. Valid until the next call. @tgid, a process that maps it, helps to find a file
 * whose descriptor had to be closed; 0: none is known, and -ENOENT or -ESTALE says that something has to be read and the file
 * is gone from its path. OBJECTS_MORE_LATER: the object's own are there, and it cannot be told right now whether there are
 * others, or what those are called whose names are in a file.
 */
enum { OBJECTS_MORE_LATER = 1 };

int objects_symbols(struct objects *objects, struct object *object, uint32_t tgid,
		    struct object_symbols *ret_own, struct object_symbols *ret_debug);

/*
 * What is known of DWARF as it is read for one program: the program's own, or that of its debug file, which others may have as
 * well. What belongs to it was found by the program's word and in its root, so others neither have it nor are blamed for it.
 */
struct dwarf_known {
	struct object *moved, *package;	/* owned, see parts.h, or NULL */
	uint64_t seek_moved_at, seek_package_at;	/* CLOCK_MONOTONIC ns */
	uint64_t seek_lines_at;		/* UINT64_MAX: never again */
	bool has_no_split;		/* the parser died of split DWARF, or was too late too often */
	uint8_t split_late;		/* how often */
	bool has_large_index;		/* that is not kept on disk */
};

/* Of @object, which objects_symbols() said that @program's functions are in. Stays as long as both are held. */
struct dwarf_known *objects_dwarf(const struct object *program, const struct object *object);

/* Its file alone, whatever is in it. *ret_fd is borrowed until the next call. */
int objects_fd(struct objects *objects, struct object *object, uint32_t tgid, int *ret_fd);

/*
 * Free at least @bytes of POOL_SYMBOLS if that can be; false when nothing could be. What objects_symbols() said last
 * stays.
 */
bool objects_make_room(struct objects *objects, size_t bytes);
/*
 * Was it for want of time, memory or descriptors, or of a helper or a file server that answers? Memory may be there the
 * next time, and another parser, unless the file is what it died of.
 */
static inline bool objects_may_pass(int error)
{
	return error == -ENOBUFS || error == -EAGAIN || error == -EPIPE || error == -ETIMEDOUT ||
	       error == -EDQUOT || error == -ETIME || error == -ENOMEM || error == -EIO ||
	       error == -EHOSTDOWN || error == -EMFILE || error == -ENFILE;
}
/* Nobody looks at what objects_symbols() said any more. */
void objects_release(struct objects *objects);
/* Close what was not used for @idle_ns, forget objects that nobody holds, free names out of use. */
void objects_trim(struct objects *objects, uint64_t idle_ns);

const struct objects_stats *objects_stats(const struct objects *objects);
size_t objects_fd_count(const struct objects *objects);

#endif /* STACKTAP_RESOLVE_OBJECTS_H */
