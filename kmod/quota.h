/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_QUOTA_H
#define STACKTAP_KMOD_QUOTA_H

#include <linux/compiler.h>

/*
 * What all sessions together may take for rings, stashes and memos. Memory cgroups charge them as well,
 * but may be absent or unlimited.
 */
int __must_check st_quota_take(unsigned long bytes); /* -EDQUOT beyond the limit */
void st_quota_return(unsigned long bytes);

#endif /* STACKTAP_KMOD_QUOTA_H */
