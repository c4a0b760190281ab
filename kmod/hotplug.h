/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_HOTPLUG_H
#define STACKTAP_KMOD_HOTPLUG_H

struct stacktap_session;

/* Follow CPUs coming and going; calls back for those that are online before it returns. */
int hotplug_add(struct stacktap_session *session);
void hotplug_remove(struct stacktap_session *session);

int hotplug_init(void);
void hotplug_exit(void);

#endif /* STACKTAP_KMOD_HOTPLUG_H */
