/* SPDX-License-Identifier: GPL-2.0-only */
/* For one file of the module, so that it is said once. */
#include "kernels.h"

#if LINUX_VERSION_CODE >> 8 > COMPAT_KERNEL_TESTED >> 8
#warning "this kernel is newer than those that this version of stacktap was tested with"
#endif
