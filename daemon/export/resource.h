/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an image is to OTLP: the attributes of its Resource, written inline (no references into the
 * string table, which receivers do not resolve there).
 */
#ifndef STACKTAP_EXPORT_RESOURCE_H
#define STACKTAP_EXPORT_RESOURCE_H

#include "base/buffer.h"
#include "export/encode_options.h"
#include "export/relabel.h"
#include "process/image.h"

/*
 * Append the Resource message as field 1 of a ResourceProfiles. @image NULL: the kernel's own. *ret_sent: which
 * of its samples rules let pass; where none, nothing was appended. -ENOBUFS, -ENOMEM, -E2BIG (more than
 * ENCODE_MAX_RESOURCE): nothing that counts was appended.
 *
 * An image keeps it, for the next time that it is asked for by options of that number, until more is known of the image;
 * not where rules count what they match.
 */
int resource_write(struct buffer *buffer, const struct encode_options *options, struct image *image,
		   struct relabel_result *ret_sent);

#endif /* STACKTAP_EXPORT_RESOURCE_H */
