/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image: one program in one process, from exec (or fork) to the next exec or exit.
 *
 * Identity is (tgid, start time, exec id) as samples carry it. Thread A owns the table of images
 * and their mapping lists; windows and thread B hold references to single images. Thread B fills in
 * `details` once and publishes it with a store-release; thread C reads it with acquire.
 */
#ifndef STACKTAP_PROCESS_IMAGE_H
#define STACKTAP_PROCESS_IMAGE_H

#include "base/macro.h"
#include "process/object.h"

/* What thread B finds out about an image when it is first seen. Strings are NULL when unknown. */
struct image_details {
	char *executable_path;
	char *executable_name;
	char *command_line;	/* only with the privacy switch on */
	char *container_id;
	char *container_name;	/* of an LXC or systemd-nspawn machine */
	char *pod_uid;		/* Kubernetes' */
	char *pod_qos;
	char *unit;		/* systemd's */
	char *cgroup;		/* a line of /proc/PID/cgroup */
	char *service_name;	/* OTEL_SERVICE_NAME or service.name of its environment */
	char *attributes;	/* others of its OTEL_RESOURCE_ATTRIBUTES that it may say of itself, as text */
	uint32_t pid_in_namespace; /* 0: same or unknown */
	uint32_t user;		/* its effective one; DETAILS_NO_USER: unknown */
};

#define DETAILS_NO_USER UINT32_MAX

/*
 * What its process context says of it, see process/context.h. A newer one takes its place; it stays as long as
 * the image.
 */
struct image_context {
	char *service_name;	/* NULL: none */
	char *attributes;	/* as those of image_details */
	struct image_context *older; /* that others may still read */
};

enum {
	IMAGE_CONTEXTS_MAX = 16,
	IMAGE_RESOURCES_MAX = IMAGE_CONTEXTS_MAX + 2,
};

/*
 * Its Resource as it goes into messages, of what was known of it, see export/resource.h. It does not change, and stays as long
 * as the image.
 */
struct image_resource {
	const struct image_details *details;
	const struct image_context *context;
	struct image_resource *older;	/* that others may still read */
	uint32_t by;			/* number of the options that it was made by */
	uint32_t one_in;		/* of its samples are sent; 0: a rule leaves it out */
	size_t size;
	uint8_t data[];
};

struct mount_namespace;		/* an O_PATH root, shared by all images in it; thread B's */

/* One mapping of executable code. */
struct mapping {
	uint64_t start;
	uint64_t end;		/* exclusive */
	uint64_t file_offset;	/* of start */
	uint64_t since;		/* time of the event that made it, CLOCK_MONOTONIC ns */
	struct mapped_file *file; /* owned reference */
};

/*
 * What an image had mapped at a moment. Thread A makes it, and it never changes: any thread may read
 * it and drop its reference.
 */
struct mapping_snapshot {
	_Atomic unsigned int refs;
	uint64_t generation;	/* the image's */
	size_t count;
	struct mapping mappings[];
};

struct image {
	_Atomic unsigned int refs;
	uint32_t tgid;
	_Atomic uint64_t start_time;	/* CLOCK_BOOTTIME ns, 0 until a sample or /proc told thread A */
	uint64_t exec_id;
	char comm[16];
	bool is_fork;		/* of its parent's program; set before anybody else sees it */
	_Atomic bool is_succeeded; /* thread A: its process runs another program by now, which /proc tells of */
	_Atomic bool is_untold;	/* thread B has yet to look: there was no room to tell it, or it had no answer */

	/* thread A alone */
	struct mapping *mappings; /* sorted by start, without overlap */
	size_t mapping_count, mapping_capacity;
	uint64_t generation;	/* counts changes of mappings */
	struct mapping_snapshot *snapshot; /* owned; the last one made, NULL: nobody needs one */
	uint64_t since;		/* time of the exec or fork, 0: before we looked */
	uint64_t ended;		/* time of exit or of the next exec, 0: alive */
	bool exec_id_known;	/* a sample has bound exec_id */
	bool is_doubtful;	/* side-band loss since the last rescan: samples are marked */
	bool is_announced;	/* thread B was told to look */
	struct hash_table *files; /* where its mappings count as uses, see process/files.h */
	uint64_t doubted;	/* time since when is_doubtful holds */
	uint64_t scanned;	/* time of the last merged scan, 0: never */
	uint64_t unread;	/* time of the last scan that found it and could not read it, 0: never */
	uint64_t replaced;	/* time of the last event that took the place of older mappings */
	uint64_t changed;	/* time of the last event that changed its mappings */
	bool is_listed;		/* the module has got the mappings, or soon will, */
	uint64_t listed;	/* as of this generation; see process/lists.h */
	struct journalled journalled;
	const void *journalled_details, *journalled_context; /* what was known of it then */

	_Atomic(struct image_resource *) resource; /* threads A and C; the last one, NULL: none is kept */

	/* set by thread B */
	_Atomic(struct image_details *) details;
	_Atomic(struct image_context *) context;
	struct mount_namespace *mount_namespace;
	uint32_t payer;			/* see resolve/payer.h, 0: not known yet */
	uint64_t asked_in;		/* the last window in which an untold one was asked for */
	/* its process context: where, and when it was published, 0: not found yet; when to look again, the last pause */
	uint64_t context_address, context_published, context_next, context_wait;
};

struct image *image_ref(struct image *image);
void image_unref(struct image *image);		/* NULL is fine */

/*
 * Any thread: takes @resource, of malloc(), but for its older ones. It saves work, and takes no room from what is known of
 * processes: beyond half of the pool, which is theirs, it is not kept, nor beyond IMAGE_RESOURCES_MAX.
 */
void image_keep_resource(struct image *image, struct image_resource *resource);

/* What follows is thread A's. */
struct image *image_new(struct hash_table *files, uint32_t tgid, uint64_t since,
			const char *comm) _must_check_;
/*
 * Put a mapping over [@start, @end): what was there is cut back or split. A new reference to @file
 * is taken. *ret_replaced: something was there. -ENOBUFS (of the pool) and -E2BIG (more than an image
 * may have) leave the list as it was.
 */
int image_map(struct image *image, uint64_t start, uint64_t end, uint64_t file_offset,
	      uint64_t since, struct mapped_file *file, bool *ret_replaced);
void image_drop_mappings(struct image *image);
/*
 * A new reference to a snapshot of its mappings, the same one as before if nothing has changed. NULL
 * when POOL_PROCESSES is used up.
 */
struct mapping_snapshot *image_snapshot(struct image *image) _must_check_;
/* Drop the image's own reference if nobody else has one any more. */
void image_trim_snapshot(struct image *image);
void mapping_snapshot_unref(struct mapping_snapshot *snapshot);	/* any thread; NULL is fine */
/* The image runs no more: its mappings no longer keep their files alive for new ones. */
void image_end(struct image *image, uint64_t time);

/* The one of @count mappings that holds @address, or NULL. */
const struct mapping *mapping_find(const struct mapping *mappings, size_t count, uint64_t address);
/* Run-time address minus ELF address in a mapping of @object; false: it holds none of its code. */
bool mapping_bias(const struct mapping *mapping, const struct object *object, uint64_t *ret_bias);

/* The mapping that holds @address, or NULL. Thread A. Valid until the list changes. */
const struct mapping *image_find_mapping(const struct image *image, uint64_t address);

/*
 * Thread B, once: hand the details over to all threads. Charged to POOL_PROCESSES; when that is
 * used up they are freed, and the image has none.
 */
void image_set_details(struct image *image, struct image_details *details);
/*
 * Thread B: the same of its newest process context, which is taken over. -ENOBUFS, also for more than
 * IMAGE_CONTEXTS_MAX: the one before stays.
 */
int image_set_context(struct image *image, struct image_context *context);
/* Free details that were never published, or whose image is gone. */
void image_details_free(struct image_details *details);

static inline const struct image_details *image_details(const struct image *image)
{
	return atomic_load_explicit(&image->details, memory_order_acquire);
}

static inline const struct image_context *image_context(const struct image *image)
{
	return atomic_load_explicit(&image->context, memory_order_acquire);
}

#endif /* STACKTAP_PROCESS_IMAGE_H */
