# SPDX-License-Identifier: GPL-2.0-only
# What stable releases took from later ones, so that no version number tells. The kernel's own header is
# asked, not a compiler, which may fail for any reason.

# $(call compat-has,HEADER,WORD,MACRO): define MACRO where WORD is in HEADER
compat-has = $(if $(wildcard $(srctree)/$(1)),$(if $(shell grep -w $(2) $(srctree)/$(1)),-D$(3)),\
	$(error there is no $(srctree)/$(1): the headers of this kernel are incomplete))

ccflags-y += $(call compat-has,include/net/genetlink.h,cap_sys_admin,COMPAT_MCAST_CAP_BIT)
ccflags-y += $(call compat-has,include/linux/mm.h,vm_flags_mod,COMPAT_VM_FLAGS_MOD)
ccflags-y += $(call compat-has,include/linux/workqueue.h,system_dfl_wq,COMPAT_DFL_WQ)
ccflags-y += $(call compat-has,include/linux/sched/isolation.h,HK_TYPE_DOMAIN_BOOT,COMPAT_HK_DOMAIN_BOOT)
# by release in the one or in the other; where in neither, it does without
ccflags-y += $(call compat-has,include/linux/hrtimer.h,nr_events,COMPAT_HRTIMER_EVENTS)
ccflags-y += $(call compat-has,include/linux/hrtimer_defs.h,nr_events,COMPAT_HRTIMER_EVENTS)
ifneq ($(CONFIG_X86_64),)
ccflags-y += $(call compat-has,arch/x86/include/asm/processor.h,sig_on_uaccess_err,COMPAT_SIG_ON_UACCESS)
endif
