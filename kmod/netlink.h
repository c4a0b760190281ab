/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_NETLINK_H
#define STACKTAP_KMOD_NETLINK_H

struct genl_family;

extern struct genl_family st_netlink_family;

int st_netlink_init(void);
void st_netlink_exit(void);

#endif /* STACKTAP_KMOD_NETLINK_H */
