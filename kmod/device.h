/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_DEVICE_H
#define STACKTAP_KMOD_DEVICE_H

#include <linux/types.h>

u64 st_device_features(void);
int st_device_init(void);
void st_device_exit(void);

#endif /* STACKTAP_KMOD_DEVICE_H */
