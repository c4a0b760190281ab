/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the cache of objects, shared with who looks for their debug files. */
#ifndef STACKTAP_RESOLVE_OBJECT_CACHE_H
#define STACKTAP_RESOLVE_OBJECT_CACHE_H

#include <sys/stat.h>

#include "base/index.h"
#include "resolve/objects.h"

enum {
	RETIRED_MAX = 1024,	/* objects of files that were found after all */
	SEEN_MAX = 256,		/* files whose last identity is remembered */
};

/* What a file that is mapped under these numbers was the last time. */
struct seen_file {
	uint64_t inode;
	uint32_t major, minor;
	struct stat st;
};

/* object->symbols points here */
struct entry {
	uint64_t hash;			/* of its file's identity */
	struct object *object;		/* owned, as long as the entry lives */
	struct mount_namespace *space;	/* owned: where it was found; NULL: anywhere */
	int fd;				/* -1: closed */
	uint64_t fd_used;
	struct symtab *symtab;		/* NULL: not read, or evicted */
	uint64_t used;
	int error;			/* why there is no symtab: not tried again */
	uint64_t read_again_at;		/* CLOCK_MONOTONIC ns, a symtab that is late */
	/*
	 * One that is a debug file, or a part of one, is no program's: a file that is both has two entries. Only a program's
	 * holds others, so none holds itself, and none is called by a path that another program's user has made up.
	 */
	bool is_debug;
	uint64_t seek_debug_at;		/* CLOCK_MONOTONIC ns; UINT64_MAX: never again */
	struct object *debug;		/* owned: its debug file, or NULL */
	bool is_fetched;		/* that, from a server */
	uint32_t user;			/* whose file it is */
	struct parser_sum sum;		/* of a debug file without a build-id, as far as it has been read */
	struct symtab *mini;		/* of its MiniDebugInfo; NULL: not read, or evicted */
	uint64_t mini_again_at;		/* as read_again_at */
	int mini_error;			/* not tried again */
	struct dwarf_known own_dwarf, debug_dwarf;	/* the latter of `debug` */
};

struct objects {
	struct mount_namespace_table *spaces;
	struct names *names;
	struct opener *opener;
	struct parser *parser;
	struct fetched *fetched;	/* NULL: no server is asked */
	struct entry **entries;
	struct index index;		/* of these, by identity */
	uint32_t count, capacity;
	size_t fd_count;
	struct entry *vdso;
	const struct entry *busy;	/* its tables are looked at, and its debug file's */
	/*
	 * Thread A may look at the state of a file's object at any time, so one that was replaced
	 * is kept.
	 */
	struct object *retired[RETIRED_MAX];
	size_t retired_count;
	struct seen_file seen[SEEN_MAX];	/* by a hash of their numbers */
	struct objects_stats stats;
};

struct entry *entry_find(struct objects *objects, const struct stat *st, bool is_debug);
/* The object of a file that has none yet. */
int entry_add_file(struct objects *objects, const char *path, int fd, const struct stat *st,
		   bool is_debug, struct entry **ret_entry);
/* Takes *@fd if it has none: who asks the parser of a file may be using that one. */
void entry_keep_fd(struct objects *objects, struct entry *entry, int *fd);
void dwarf_forget(struct dwarf_known *known);
/*
 * Is the file in the file system that is the root of its container alone? Others may map files of a disk, or what is
 * mounted into several containers, and what one of them has could tell lies about their frames.
 */
bool entry_is_in_container(const struct objects *objects, const struct entry *entry);
/* Was it looked for by its path alone, and is gone from there? A process may lead to it, unless it is a debug file, which none maps. */
bool entry_is_unlinked(const struct entry *entry, int error, uint32_t tgid);
/*
 * Its symtab, and its descriptor if names are read from that. OBJECTS_MORE_LATER: the symtab is there, but the file cannot be
 * opened right now.
 */
int entry_have_symtab(struct objects *objects, struct entry *entry, uint32_t tgid);
/* Of a debug file: in whose hands its directory is. */
enum debug_place {
	DEBUG_BY_ID,		/* root's, and the build-id leads there */
	DEBUG_BY_LINK,		/* root's, and a name */
	DEBUG_BESIDE,		/* anybody's who may write beside the program */
};

/*
 * The debug file of @object at @path below @space's root, if it is that. @crc: of the file that its link is to, which
 * proves one without a build-id. -ENOENT: it is none.
 */
int debug_open(struct objects *objects, struct entry *entry, struct mount_namespace *space, const char *path,
	       enum debug_place place, uint32_t crc, struct entry **ret_entry);
/*
 * As its .gnu_debuglink says. *ret_beside_unknown: what lies beside the program is left alone, see opener_open(); that
 * keeps nobody from looking for it elsewhere.
 */
int debuglink_seek(struct objects *objects, struct entry *entry, uint32_t tgid, struct mount_namespace *host,
		   bool in_container, bool *ret_beside_unknown, struct entry **ret_entry);

/* Its MiniDebugInfo's symtab, if it has one. */
int entry_read_mini(struct objects *objects, struct entry *entry, uint32_t tgid);

#endif /* STACKTAP_RESOLVE_OBJECT_CACHE_H */
