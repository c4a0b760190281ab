/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every difference between kernel versions, and nothing else. The rest of the module is written for
 * the newest interface; each shim names the release that changed it.
 */
#ifndef STACKTAP_COMPAT_H
#define STACKTAP_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/isolation.h>
#include <linux/sched/task_stack.h>
#include <linux/tracepoint.h>
#include <linux/version.h>
#include <linux/workqueue.h>
#include <net/genetlink.h>

#include "kernels.h"

#if LINUX_VERSION_CODE < COMPAT_KERNEL_MIN
#error "this kernel is older than COMPAT_KERNEL_MIN in kmod/compat/kernels.h"
#endif

#ifndef CONFIG_PERF_EVENTS
#error "stacktap needs CONFIG_PERF_EVENTS"
#endif

/* 5.11 made the hard flag part of the initializer */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0)
static inline void compat_irq_work_init_hard(struct irq_work *work, void (*fn)(struct irq_work *))
{
	init_irq_work(work, fn);
	atomic_or(IRQ_WORK_HARD_IRQ, &work->flags);
}
#else
static inline void compat_irq_work_init_hard(struct irq_work *work, void (*fn)(struct irq_work *))
{
	*work = IRQ_WORK_INIT_HARD(fn);
}
#endif

/* The interrupt of this CPU's timers that @timer expires in, by number; 0 where none are counted */
static inline u32 compat_hrtimer_interrupt(const struct hrtimer *timer)
{
#if defined(COMPAT_HRTIMER_EVENTS) && defined(CONFIG_HIGH_RES_TIMERS)
	return READ_ONCE(timer->base->cpu_base->nr_events);
#else
	return 0;
#endif
}

/* 5.11 lets pages that are charged to a memory cgroup be mapped; before, the charge is a page type */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0)
#define COMPAT_GFP_MAPPED GFP_KERNEL
#else
#define COMPAT_GFP_MAPPED GFP_KERNEL_ACCOUNT
#endif

/* 5.11 renamed nla_strlcpy() and made it return an error; nobody here looks, a policy has the length */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0)
#define nla_strscpy nla_strlcpy
#endif

/* 6.3, and Red Hat's 5.14 at some time, made vm_flags read-only but through helpers */
#ifndef COMPAT_VM_FLAGS_MOD
static inline void compat_vm_flags_mod(struct vm_area_struct *vma, unsigned long set,
				       unsigned long clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#else
static inline void compat_vm_flags_mod(struct vm_area_struct *vma, unsigned long set,
				       unsigned long clear)
{
	vm_flags_mod(vma, set, clear);
}
#endif

/* 5.11 renamed vm_operations_struct's split */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0)
#define may_split split
#endif

/* 5.11 and 5.12 tell this callback with what flags mremap() was called */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(5, 13, 0)
#define COMPAT_MREMAP_ARGS struct vm_area_struct *vma, unsigned long flags
#else
#define COMPAT_MREMAP_ARGS struct vm_area_struct *vma
#endif

/* 6.17 renamed the workqueue that is bound to no CPU; later releases warn of the old name's use */
#ifdef COMPAT_DFL_WQ
#define COMPAT_UNBOUND_WQ system_dfl_wq
#else
#define COMPAT_UNBOUND_WQ system_unbound_wq
#endif

/*
 * Until 6.9, and the stable releases of its time, a read that faults signals the task, page faults off or
 * not, if it is in x86's emulation of a vsyscall.
 */
static inline bool compat_faults_signal(const struct task_struct *task)
{
#ifdef COMPAT_SIG_ON_UACCESS
	return task->thread.sig_on_uaccess_err;
#else
	return false;
#endif
}

/* 5.18 added prev_state to sched_switch */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 18, 0)
#define COMPAT_SCHED_SWITCH_ARGS \
	void *data, bool preempt, struct task_struct *prev, struct task_struct *next
#else
#define COMPAT_SCHED_SWITCH_ARGS \
	void *data, bool preempt, struct task_struct *prev, struct task_struct *next, \
	unsigned int prev_state
#endif

/* 6.4 gave vhost workers a flag of their own, PF_USER_WORKER, beside io_uring's */
#ifdef PF_USER_WORKER
#define COMPAT_PF_NO_USER (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER)
#else
#define COMPAT_PF_NO_USER (PF_KTHREAD | PF_IO_WORKER)
#endif

/* 5.18 renamed the housekeeping flags to types */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 18, 0)
#define HK_TYPE_TICK HK_FLAG_TICK
#define HK_TYPE_DOMAIN HK_FLAG_DOMAIN
#endif

/* 7.0 lets cpusets change HK_TYPE_DOMAIN, under RCU; what isolcpus= said got a name of its own */
#ifndef COMPAT_HK_DOMAIN_BOOT
#define HK_TYPE_DOMAIN_BOOT HK_TYPE_DOMAIN
#endif

/*
 * 6.7 and the stable releases since December 2023 can keep a multicast group to CAP_SYS_ADMIN, 5.10 and 5.15
 * by a bit. Where neither is there nobody may listen, rather than everybody.
 */
#if defined(GENL_MCAST_CAP_SYS_ADMIN)
#define COMPAT_MCAST_ADMIN .flags = GENL_MCAST_CAP_SYS_ADMIN
#define COMPAT_MCAST_GROUPS 1
#elif defined(COMPAT_MCAST_CAP_BIT)
#define COMPAT_MCAST_ADMIN .cap_sys_admin = 1
#define COMPAT_MCAST_GROUPS 1
#else
#define COMPAT_MCAST_ADMIN
#define COMPAT_MCAST_GROUPS 0
#endif

/* 6.6 put a genl_info into the dump state */
static inline struct nlattr **compat_genl_dump_attrs(struct netlink_callback *cb)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
	return genl_dumpit_info(cb)->attrs;
#else
	return genl_dumpit_info(cb)->info.attrs;
#endif
}

#ifdef CONFIG_ARM64
#include <linux/nospec.h>
#include <linux/uaccess.h>
#include <asm/pointer_auth.h>
/* 6.11 made the last argument of the raw reads, an error variable, a label */
static __always_inline void compat_raw_get_pair(const unsigned long __user *p, unsigned long *first,
						unsigned long *second, int *err)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
	__raw_get_user(*first, p, *err);
	__raw_get_user(*second, p + 1, *err);
#else
	__raw_get_user(*first, p, failed);
	__raw_get_user(*second, p + 1, failed);
	return;
failed:
	*first = *second = 0;
	*err = -EFAULT;
#endif
}

static __always_inline int compat_raw_get(const unsigned long __user *p, u64 *value)
{
	unsigned long word;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
	int err = 0;

	__raw_get_user(word, p, err);
	*value = word;
	return err;
#else

	__raw_get_user(word, p, failed);
	*value = word;
	return 0;
failed:
	return -EFAULT;
#endif
}

static __always_inline int compat_raw_get_two(const unsigned long __user *first,
					      const unsigned long __user *second, u64 *ret_first,
					      u64 *ret_second)
{
	unsigned long one, two;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
	int err = 0;

	__raw_get_user(one, first, err);
	__raw_get_user(two, second, err);
	*ret_first = one;
	*ret_second = two;
	return err;
#else

	__raw_get_user(one, first, failed);
	__raw_get_user(two, second, failed);
	*ret_first = one;
	*ret_second = two;
	return 0;
failed:
	return -EFAULT;
#endif
}

/* 6.4 split the helper by address space and moved it */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define compat_strip_kernel_pac(ptr) ptrauth_strip_insn_pac(ptr)
#else
#define compat_strip_kernel_pac(ptr) ptrauth_strip_kernel_insn_pac(ptr)
#endif

/*
 * 5.14 ends the stack of every task in a frame in pt_regs, and 6.13 gave that frame a type. Before
 * 5.14 a stack ends where a null frame pointer or a null frame says so.
 */
static inline unsigned long compat_final_frame(struct task_struct *task)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 14, 0)
	return 0;
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
	return (unsigned long)task_pt_regs(task)->stackframe;
#else
	return (unsigned long)&task_pt_regs(task)->stackframe;
#endif
}

static inline bool compat_frame_is_final(unsigned long fp)
{
	return LINUX_VERSION_CODE < KERNEL_VERSION(5, 14, 0) && !fp;
}

/* 5.11 brought the reads without a call; both forms take any address */
static __always_inline int compat_read_kernel_pair(const unsigned long *p, unsigned long *first,
						   unsigned long *second)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0)
	return get_kernel_nofault(*first, p) ?: get_kernel_nofault(*second, p + 1);
#else
	__get_kernel_nofault(first, p, unsigned long, failed);
	__get_kernel_nofault(second, p + 1, unsigned long, failed);
	return 0;
failed:
	return -EFAULT;
#endif
}

/*
 * 6.13 made the frame of an exception taken in the kernel null, too, with a type behind it that
 * says that the registers lie around it; before, it holds frame pointer and pc like any other.
 */
static inline int compat_frame_of_exception(unsigned long at, unsigned long high,
					    unsigned long *fp, unsigned long *ret)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
	return -EINVAL;
#else
	struct pt_regs *regs = container_of((void *)at, struct pt_regs, stackframe);
	unsigned long type;

	if (*fp || (unsigned long)(regs + 1) > high)
		return -EINVAL;
	__get_kernel_nofault(&type, &regs->stackframe.type, unsigned long, failed);
	if (type != FRAME_META_TYPE_PT_REGS)
		return -EINVAL;
	__get_kernel_nofault(fp, &regs->regs[29], unsigned long, failed);
	__get_kernel_nofault(ret, &regs->pc, unsigned long, failed);
	return *ret ? 0 : -EINVAL;
failed:
	return -EFAULT;
#endif
}

/* 5.11 took set_fs() away; before, uaccess_mask_ptr() lets through whatever that allowed last */
static __always_inline const unsigned long __user *compat_mask_user(unsigned long at)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0)
	return (const unsigned long __user *)array_index_nospec(at, TASK_SIZE);
#else
	return (const unsigned long __user *)uaccess_mask_ptr((void __user *)at);
#endif
}
#endif /* CONFIG_ARM64 */

/*
 * What return hooks put in place of a return address: kretprobe's was renamed by 5.16, fprobe brought its own
 * in 5.18, which kretprobes have since where the architecture has rethook. x86's unwinder knows the callers
 * behind kretprobes' since 5.16, and behind function-graph's, until 5.16 but for the moment between its being
 * put there and the caller's being noted.
 */
#define COMPAT_GRAPH_TRAMPOLINE "return_to_handler"
#define COMPAT_TRAMPOLINES \
	"kretprobe_trampoline", "__kretprobe_trampoline", "arch_rethook_trampoline"

/* kernel/events/core.c sets hw.interrupts to this when it throttles; there is no header for it */
#define COMPAT_MAX_INTERRUPTS (~0ULL)

#endif /* STACKTAP_COMPAT_H */
