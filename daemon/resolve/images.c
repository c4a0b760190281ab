// SPDX-License-Identifier: Apache-2.0
#include "resolve/images.h"

#include <string.h>

#include "process/details.h"
#include "process/scan.h"
#include "resolve/payer.h"

enum { DRAFTS_MAX = 512 };

struct draft {
	struct image *image;		/* owned */
	struct image_details *details;	/* owned until published */
	char *parent_executable;	/* NULL: the parent is another program for all we know */
};

struct images {
	struct opener *opener;
	struct mount_namespace_table *spaces;
	bool with_command_line;
	struct draft drafts[DRAFTS_MAX];
	size_t draft_count;
};

int images_new(struct opener *opener, struct mount_namespace_table *spaces, bool with_command_line,
	       struct images **ret_images)
{
	struct images *images = calloc(1, sizeof(*images));

	if (!images)
		return -ENOMEM;
	images->opener = opener;
	images->spaces = spaces;
	images->with_command_line = with_command_line;
	*ret_images = images;
	return 0;
}

void images_free(struct images *images)
{
	if (!images)
		return;
	images_publish(images);
	free(images);
}

static void publish_draft(struct images *images, size_t i, const char *executable)
{
	struct draft draft = images->drafts[i];

	if (executable)
		details_set_executable(draft.details, executable);
	image_set_details(draft.image, draft.details);
	free(draft.parent_executable);
	image_unref(draft.image);
	images->drafts[i] = images->drafts[--images->draft_count];
}

void images_publish(struct images *images)
{
	while (images->draft_count) {
		size_t last = images->draft_count - 1;

		publish_draft(images, last, images->drafts[last].parent_executable);
	}
}

/*
 * It may still be its parent's program: a child that has not called exec, or one of the same name.
 */
static bool has_parents_name(const struct image *image, const struct image *parent)
{
	return image->comm[0] && !strncmp(image->comm, parent->comm, sizeof(image->comm));
}

/* The process goes on with another program: all else that /proc says of it is as it was. */
static int details_before(const struct image_details *now, struct image_details **ret_details)
{
	int r = details_inherit(now, ret_details);

	if (r < 0)
		return r;
	free(steal_ptr((*ret_details)->service_name));
	free(steal_ptr((*ret_details)->attributes));
	(*ret_details)->pid_in_namespace = now->pid_in_namespace;
	return 0;
}

/* @now: of the process with the next program, NULL: it has gone. */
static void see_gone(struct images *images, struct image *image, const struct image *parent,
		     const struct image_details *now)
{
	static const struct image_details nothing = { .user = DETAILS_NO_USER };
	const struct image_details *known = parent ? image_details(parent) : NULL;
	struct image_details *details;
	struct draft *draft;

	if ((now ? details_before(now, &details) : details_inherit(known ? known : &nothing, &details)) < 0)
		return;
	if (images->draft_count == DRAFTS_MAX)
		images_publish(images);
	draft = &images->drafts[images->draft_count++];
	draft->image = image_ref(image);
	draft->details = details;
	draft->parent_executable = NULL;
	if (known && known->executable_path && has_parents_name(image, parent))
		draft->parent_executable = strdup(known->executable_path);
}

/*
 * A fork of its parent's program that runs another one by now: what /proc says is the next image's.
 */
static bool has_moved_on(const struct image *image, const struct image *parent,
			 const struct image_details *details)
{
	const struct image_details *known = parent ? image_details(parent) : NULL;

	return image->is_fork && known && known->executable_path &&
	       has_parents_name(image, parent) &&
	       strcmp(known->executable_path, details->executable_path) != 0;
}

static struct mount_namespace *space_of_parent(struct images *images, const struct image *parent)
{
	if (parent && parent->mount_namespace)
		return mount_namespace_ref(parent->mount_namespace);
	return mount_namespace_table_guess(images->spaces);
}

void images_see(struct images *images, struct image *image, const struct image *parent)
{
	struct image_details *details;
	bool is_late;
	int r;

	if (image->mount_namespace)
		return;
	r = opener_image(images->opener, images->spaces, image->tgid, images->with_command_line,
			 &image->mount_namespace, &details);
	/* who is there still can be asked when a window has a sample of it; who is gone tells no more by then */
	if (r < 0 && !process_has_gone(image->tgid)) {
		atomic_store_explicit(&image->is_untold, true, memory_order_relaxed);
		return;
	}
	if (!image->mount_namespace)
		image->mount_namespace = space_of_parent(images, parent);
	if (details)
		image->payer = payer_of(details);
	else if (parent)
		image->payer = parent->payer;
	/* looked at after the question: what was executed before it is known, but for what thread A has yet to read */
	is_late = atomic_load_explicit(&image->is_succeeded, memory_order_acquire);
	/* a zombie still has a cgroup, but no program */
	if (details && details->executable_path && !is_late && !has_moved_on(image, parent, details)) {
		image_set_details(image, details);
		return;
	}
	see_gone(images, image, parent, is_late ? details : NULL);
	image_details_free(details);
}

void images_see_file(struct images *images, const struct image *image,
		     const struct mapped_file *file)
{
	const char *name = strrchr(file->path, '/');

	if (!name || file->kind != OBJECT_FILE)
		return;
	for (size_t i = images->draft_count; i-- > 0;) {
		if (images->drafts[i].image != image)
			continue;
		/* comm is the name cut to 15 characters */
		if (!strncmp(name + 1, image->comm, sizeof(image->comm) - 1))
			publish_draft(images, i, file->path);
		return;
	}
}
