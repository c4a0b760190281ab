/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernel Locations, and which part of the kernel they are in.
 *
 * Addresses that leave the machine do not tell where KASLR put the kernel. The image's are
 * link-time ones on x86_64; elsewhere the link address depends on the kernel's version and
 * configuration, and they are relative to _text. Modules' are relative to the start of the module's
 * core section. Where that cannot be known, or the configuration says so, they are zero.
 */
#ifndef STACKTAP_RESOLVE_KERNEL_H
#define STACKTAP_RESOLVE_KERNEL_H

#include "profile/location.h"
#include "resolve/names.h"

struct kernel;

/*
 * Reads @sysroot/proc/kallsyms, /proc/modules and build-ids below /sys. Warns when names are
 * hidden.
 */
int kernel_new(const char *sysroot, struct kernel **ret_kernel);
void kernel_free(struct kernel *kernel);
/* The file of all kernel Locations. Borrowed. */
struct mapped_file *kernel_file(const struct kernel *kernel);

/* Text was added or removed. */
void kernel_changed(struct kernel *kernel);
/*
 * Before a batch of resolving, at @now. Reads symbols again if they changed or modules came or went, and they were not
 * read for 10 s; names that were missed have them read after 20 s, 40 s and so on, up to an hour.
 */
void kernel_refresh(struct kernel *kernel, uint64_t now);
/* Is there time to read them in the next batch? If not they stay as they are for now, and Locations that lack them are late. */
void kernel_let_read(struct kernel *kernel, bool may_read);

/*
 * Fill in object, address and Line of a kernel Location. One outside the image is another one in each window, see
 * mapped_file.fixed_start, as what is there may change. It has no name while that may be of what was there before: until
 * symbols have been read since a change and, where a module was, in the batch in which that is missed and the next.
 */
void kernel_resolve(struct kernel *kernel, struct names *names, struct location *location,
		    bool with_address);

#endif /* STACKTAP_RESOLVE_KERNEL_H */
