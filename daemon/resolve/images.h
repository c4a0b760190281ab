/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread B's first look at an image: its mount namespace and its details, which are published once.
 *
 * A process may be gone before anybody looks. Then its parent tells the namespace, the container
 * and the service; the executable is the file it mapped that has its name, so publication waits
 * until files were seen or a window is resolved.
 */
#ifndef STACKTAP_RESOLVE_IMAGES_H
#define STACKTAP_RESOLVE_IMAGES_H

#include "helper/opener.h"
#include "process/image.h"

struct images;

int images_new(struct opener *opener, struct mount_namespace_table *spaces, bool with_command_line,
	       struct images **ret_images);
void images_free(struct images *images);

/* @parent may be NULL. */
void images_see(struct images *images, struct image *image, const struct image *parent);
void images_see_file(struct images *images, const struct image *image,
		     const struct mapped_file *file);
/* Publish what still waits, as far as it is known. */
void images_publish(struct images *images);

#endif /* STACKTAP_RESOLVE_IMAGES_H */
