/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's announcements of CPUs coming and going (uevents). CPU records of the rings tell the
 * same, but only of CPUs that the session samples, while a process may map code on any CPU.
 */
#ifndef STACKTAP_CAPTURE_HOTPLUG_H
#define STACKTAP_CAPTURE_HOTPLUG_H

#include "base/macro.h"

/* A non-blocking socket, or -errno. */
int hotplug_open(void);
/* 1 and an announcement, 0: none left, -ENOBUFS: some were lost. */
int hotplug_read(int fd, uint32_t *ret_cpu, bool *ret_online);
/* One message's text. True when it is about a CPU. */
bool hotplug_parse(const char *message, uint32_t *ret_cpu, bool *ret_online);

#endif /* STACKTAP_CAPTURE_HOTPLUG_H */
