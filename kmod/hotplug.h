/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_HOTPLUG_H
#define STACKTAP_KMOD_HOTPLUG_H

struct stacktap_session;

/* Follow CPUs coming and going; calls back for those that are online before it returns. */
int st_hotplug_add(struct stacktap_session *session);
void st_hotplug_remove(struct stacktap_session *session);

int st_hotplug_init(void);
void st_hotplug_exit(void);

#endif /* STACKTAP_KMOD_HOTPLUG_H */
