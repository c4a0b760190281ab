/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_DEVICE_H
#define STACKTAP_KMOD_DEVICE_H

#include <linux/types.h>

u64 device_features(void);
int device_init(void);
void device_exit(void);

#endif /* STACKTAP_KMOD_DEVICE_H */
