/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What code is made of: ELF files, the kernel and its modules.
 *
 * A *mapped file* is what a side-band event or /proc names: device, inode and path as one image saw
 * them when it mapped them. Thread A makes one per mapping event without touching the disk. Thread
 * B opens it through the image's mount namespace and ties it to an *object*, the file's content
 * identified by (device, inode, ctime, size); all images that map the same content share it.
 *
 * Lifetime: both are reference-counted; any thread may take and drop references.
 * Publication: what B fills in is written once, before the store-release of `object` or `state`,
 * and never changes afterwards. Readers load with acquire and need no lock.
 */
#ifndef STACKTAP_PROCESS_OBJECT_H
#define STACKTAP_PROCESS_OBJECT_H

#include <stdatomic.h>

#include "base/hash_table.h"
#include "base/macro.h"
#include "process/encoded.h"
#include "process/journalled.h"

enum object_kind {
	OBJECT_FILE,	/* an ELF file, or any other mapped file */
	OBJECT_KERNEL,	/* the kernel image */
	OBJECT_MODULE,	/* a kernel module; offsets are from its core section's start */
	OBJECT_VDSO,
	OBJECT_ANONYMOUS, /* JIT code, stacks: no file; offsets are run-time addresses */
};

enum object_state {
	OBJECT_NEW,	/* not looked at yet */
	OBJECT_READY,	/* an ELF file; everything below is valid */
	OBJECT_NOT_ELF,
	OBJECT_GONE,	/* could not be opened, or another file has taken its path; see error */
};

/* An executable PT_LOAD: file bytes [offset, offset + size) appear at ELF address vaddr. */
struct object_segment {
	uint64_t vaddr;
	uint64_t offset;
	uint64_t size;
};

struct object {
	_Atomic unsigned int refs;
	_Atomic int state;		/* enum object_state */
	enum object_kind kind;
	int error;			/* -errno for OBJECT_GONE */

	/* identity of a file's content */
	uint64_t dev;			/* makedev() of the file system */
	uint64_t inode;
	int64_t ctime_ns;
	uint64_t size;

	char *path;			/* as first seen; "[kernel]", "[vdso]", module name */
	char *name;			/* last component of path */
	char build_id[41];		/* GNU build-id in hex, empty when there is none */
	char *go_build_id;		/* NULL: not Go's */
	char htlhash[33];		/* the build_id.htlhash attribute, empty when unknown */
	uint64_t address_start;		/* ELF addresses of executable segments: [start, limit) */
	uint64_t address_limit;
	uint64_t file_offset;		/* of address_start */
	struct object_segment *segments;
	size_t segment_count;

	void *symbols;			/* private to the symbol stage, which also caches the fd */
	uint64_t late_since;		/* the same: the number of the window since which there was no time for it, 0: there was */
	uint32_t payer;			/* the same: who pays for a process whose samples it was in */
	uint64_t payer_paid;		/* what it had taken, ns */
	uint64_t payer_window;		/* and the number of the window that these were in */
	uint64_t names_window;		/* the same: the number of the last window that it was asked for names in, */
	size_t names_budget;		/* and the bytes that more of them may take in it */

	struct journalled journalled;
	struct encoded encoded;
};

enum { OBJECT_SEGMENTS_MAX = 64 };	/* a linker makes one, a packer some */

struct object *object_new(enum object_kind kind, const char *path) _must_check_;
struct object *object_ref(struct object *object);
void object_unref(struct object *object);	/* NULL is fine */
void object_unrefp(struct object **object);

/* The identity of a file's content: the object gets it, or has it. */
struct stat;
void object_set_file(struct object *object, const struct stat *st);
bool object_is_file(const struct object *object, const struct stat *st);

/*
 * Takes @segments over, @count of them, sorted, also on failure. Once, before anybody else sees the
 * object. Charged to POOL_PROCESSES: -ENOBUFS. -E2BIG: more than OBJECT_SEGMENTS_MAX.
 */
int object_set_segments(struct object *object, struct object_segment *segments, size_t count);

/* Go's build id, in the same way; without room in the pool there is none. */
void object_set_go_build_id(struct object *object, const char *id);

/* ELF virtual address of a file offset; false when no executable segment holds it. */
bool object_address(const struct object *object, uint64_t file_offset, uint64_t *ret_address);

struct mapped_file {
	_Atomic unsigned int refs;
	enum object_kind kind;
	uint32_t major, minor;
	uint64_t inode;
	uint64_t inode_generation;
	char *path;
	_Atomic(struct object *) object;	/* NULL until thread B has looked */
	uint64_t seen_in;	/* thread B's: the last window in which it tried to */
	/* the kernel's: what is outside may be other code by the next window; both 0: not known. Set before it is shared */
	uint64_t fixed_start, fixed_limit;

	struct journalled journalled;

	/* thread A alone, see process/files.h */
	struct hash_link link;
	unsigned int live;		/* mappings of running images */
	bool is_interned;
	bool is_announced;		/* thread B was told to look */
};

struct mapped_file *mapped_file_new(enum object_kind kind, const char *path) _must_check_;
struct mapped_file *mapped_file_ref(struct mapped_file *file);
void mapped_file_unref(struct mapped_file *file);

static inline struct object *mapped_file_object(const struct mapped_file *file)
{
	return atomic_load_explicit(&file->object, memory_order_acquire);
}

#endif /* STACKTAP_PROCESS_OBJECT_H */
