/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The oldest kernel that the module builds on and the newest that it was tested with. They stand
 * here alone: dkms.conf, the README and the test matrix have them from packaging/kernels.
 */
#ifndef STACKTAP_COMPAT_KERNELS_H
#define STACKTAP_COMPAT_KERNELS_H

#include <linux/version.h>

#define COMPAT_KERNEL_MIN KERNEL_VERSION(5, 10, 0)
#define COMPAT_KERNEL_TESTED KERNEL_VERSION(7, 2, 0)

#endif /* STACKTAP_COMPAT_KERNELS_H */
