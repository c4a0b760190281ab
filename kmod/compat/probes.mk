# SPDX-License-Identifier: GPL-2.0-only
# What stable releases took from later ones, so that no version number tells. The kernel's own header is
# asked, not a compiler, which may fail for any reason.

compat-genetlink := $(srctree)/include/net/genetlink.h
ifeq ($(wildcard $(compat-genetlink)),)
$(error there is no $(compat-genetlink): the headers of this kernel are incomplete)
endif
ifneq ($(shell grep -w cap_sys_admin $(compat-genetlink)),)
ccflags-y += -DCOMPAT_MCAST_CAP_BIT
endif
