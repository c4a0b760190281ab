// SPDX-License-Identifier: GPL-2.0-only
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/nsproxy.h>
#include <linux/pid_namespace.h>
#include <linux/poll.h>
#include <linux/security.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>
#include <stacktap/version.h>

#include "control.h"
#include "device.h"
#include "mappings.h"
#include "session.h"
#include "stack.h"

enum {
	/* mmap offsets: the CPU above, then which of its two mappings */
	DEVICE_CPU_SHIFT = 40,
	DEVICE_PRODUCER_SHIFT = 39,
};

static_assert(sizeof(struct stacktap_info) == 64);
static_assert(sizeof(struct stacktap_ring_create) == 32);
static_assert(sizeof(struct stacktap_flush) == 8);
static_assert(sizeof(struct stacktap_table_load) == 64);
static_assert(sizeof(struct stacktap_table_drop) == 16);
static_assert(sizeof(struct stacktap_image) == 24);
static_assert(sizeof(struct stacktap_mapping) == 32);
static_assert(sizeof(struct stacktap_mappings_set) == 48);

u64 st_device_features(void)
{
	return STACKTAP_FEATURE_KERNEL_STACKS | STACKTAP_FEATURE_USER_FP | STACKTAP_FEATURE_TABLES |
	       STACKTAP_FEATURE_STACK_SLICE | STACKTAP_FEATURE_TASK_FILTERS |
	       (st_stack_pmu_is_nmi() ? STACKTAP_FEATURE_NMI : 0);
}

/*
 * A table may have a walk read any word of the process and tell it as a frame, so lists are for those
 * who may read the memory of all processes. Who opened the session has them as well as who asks.
 */
static int device_permit_lists(struct file *file)
{
	if (!capable(CAP_SYS_PTRACE) ||
	    !file_ns_capable(file, &init_user_ns, CAP_SYS_PTRACE))
		return -EPERM;
	/* as for slices */
	return security_locked_down(LOCKDOWN_PERF) ? -EACCES : 0;
}

static int device_open(struct inode *inode, struct file *file)
{
	struct stacktap_session *session;
	int err;

	if (!capable(CAP_PERFMON) && !capable(CAP_SYS_ADMIN))
		return -EPERM;
	/* ids in records are those of the initial namespace */
	if (task_active_pid_ns(current) != &init_pid_ns ||
	    !net_eq(current->nsproxy->net_ns, &init_net))
		return -EOPNOTSUPP;
	err = st_session_create(&session);
	if (err)
		return err;
	file->private_data = session;
	return stream_open(inode, file);
}

static int device_release(struct inode *inode, struct file *file)
{
	st_session_close(file->private_data);
	return 0;
}

/* Copy a struct whose size user space states in its first member. */
static int device_copy_in(void *arg, size_t size, void __user *user, u32 *ret_user_size)
{
	u32 user_size;

	if (get_user(user_size, (u32 __user *)user))
		return -EFAULT;
	if (user_size < size)
		return -EINVAL;
	if (user_size > PAGE_SIZE)
		return -E2BIG;
	*ret_user_size = user_size;
	return copy_struct_from_user(arg, size, user, user_size);
}

static int device_info(struct file *file, void __user *user)
{
	struct stacktap_session *session = file->private_data;
	struct stacktap_info info;
	u32 user_size;
	int err;

	err = device_copy_in(&info, sizeof(info), user, &user_size);
	if (err)
		return err;
	memset(&info, 0, sizeof(info));
	info.size = sizeof(info);
	info.abi_major = STACKTAP_ABI_MAJOR;
	info.abi_minor = STACKTAP_ABI_MINOR;
	info.session_id = session->id;
	info.features = st_device_features();
	if (device_permit_lists(file))
		info.features &= ~(u64)STACKTAP_FEATURE_TABLES;
	info.page_size = PAGE_SIZE;
	info.nr_cpu_ids = nr_cpu_ids;
	strscpy(info.module_version, STACKTAP_VERSION, sizeof(info.module_version));
	return copy_to_user(user, &info, sizeof(info)) ? -EFAULT : 0;
}

static int device_ring_create(struct stacktap_session *session, void __user *user)
{
	struct stacktap_ring_create create;
	u32 user_size;
	int err;

	err = device_copy_in(&create, sizeof(create), user, &user_size);
	if (err)
		return err;
	if (create.consumer_offset || create.producer_offset ||
	    !is_power_of_2(create.data_bytes) || create.data_bytes < STACKTAP_RING_MIN_BYTES ||
	    create.data_bytes > STACKTAP_RING_MAX_BYTES || create.data_bytes % PAGE_SIZE ||
	    create.watermark > create.data_bytes)
		return -EINVAL;
	if (create.cpu >= nr_cpu_ids)
		return -ENODEV;
	create.cpu = array_index_nospec(create.cpu, nr_cpu_ids);
	if (!create.watermark)
		create.watermark = create.data_bytes / 4;

	mutex_lock(&session->lock);
	err = st_control_add_ring(session, create.cpu, create.data_bytes, create.watermark);
	mutex_unlock(&session->lock);
	if (err)
		return err;

	create.consumer_offset = (u64)create.cpu << DEVICE_CPU_SHIFT;
	create.producer_offset = create.consumer_offset | 1ULL << DEVICE_PRODUCER_SHIFT;
	/* the ring stays even so; the offsets are lost on a caller that unmapped its own struct */
	return copy_to_user(user, &create, sizeof(create)) ? -EFAULT : 0;
}

static int device_flush(struct stacktap_session *session, void __user *user)
{
	struct stacktap_flush flush;
	u32 user_size;
	int err;

	err = device_copy_in(&flush, sizeof(flush), user, &user_size);
	if (err)
		return err;
	if (flush.flags)
		return -EINVAL;
	mutex_lock(&session->lock);
	if (session->state == STACKTAP_STATE_RUNNING)
		err = -EBUSY;
	else
		st_control_flush(session);
	mutex_unlock(&session->lock);
	return err;
}

static int device_table_load(struct stacktap_session *session, void __user *user)
{
	struct stacktap_table_load load;
	u32 user_size;
	int err;

	err = device_copy_in(&load, sizeof(load), user, &user_size);
	if (err)
		return err;
	if (load.flags || load.table_id || memchr_inv(load.hash, 0, sizeof(load.hash)))
		return -EINVAL;
	err = st_table_load(&session->tables, u64_to_user_ptr(load.data), load.data_bytes,
			    &load.table_id, load.hash);
	if (err)
		return err;
	/* held even so; the id is lost on a caller that unmapped its own struct */
	return copy_to_user(user, &load, sizeof(load)) ? -EFAULT : 0;
}

static int device_table_drop(struct stacktap_session *session, void __user *user)
{
	struct stacktap_table_drop drop;
	u32 user_size;
	int err;

	err = device_copy_in(&drop, sizeof(drop), user, &user_size);
	if (err)
		return err;
	if (drop.reserved)
		return -EINVAL;
	return st_table_drop(&session->tables, drop.table_id);
}

static int device_mappings_set(struct file *file, void __user *user)
{
	struct stacktap_session *session = file->private_data;
	struct stacktap_mappings_set set;
	u32 user_size;
	int err;

	err = device_copy_in(&set, sizeof(set), user, &user_size);
	if (err)
		return err;
	if (set.flags)
		return -EINVAL;
	err = set.count ? device_permit_lists(file) : 0;
	if (err)
		return err;
	return st_mappings_set(&session->tables, &set);
}

static int device_image(void __user *user)
{
	struct stacktap_image image;
	u32 user_size;
	int err;

	err = device_copy_in(&image, sizeof(image), user, &user_size);
	if (err)
		return err;
	if (image.start_time || image.exec_id)
		return -EINVAL;
	err = st_mappings_image(&image);
	if (err)
		return err;
	return copy_to_user(user, &image, sizeof(image)) ? -EFAULT : 0;
}

static long device_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct stacktap_session *session = file->private_data;
	void __user *user = (void __user *)arg;

	if (_IOC_TYPE(cmd) != STACKTAP_IOC_MAGIC)
		return -ENOTTY;
	/* the size encoded in @cmd grows with the structs; the one in the struct is what counts */
	switch (_IOC_NR(cmd)) {
	case _IOC_NR(STACKTAP_IOC_INFO):
		return device_info(file, user);
	case _IOC_NR(STACKTAP_IOC_RING_CREATE):
		return device_ring_create(session, user);
	case _IOC_NR(STACKTAP_IOC_FLUSH):
		return device_flush(session, user);
	case _IOC_NR(STACKTAP_IOC_TABLE_LOAD):
		return device_table_load(session, user);
	case _IOC_NR(STACKTAP_IOC_TABLE_DROP):
		return device_table_drop(session, user);
	case _IOC_NR(STACKTAP_IOC_MAPPINGS_SET):
		return device_mappings_set(file, user);
	case _IOC_NR(STACKTAP_IOC_IMAGE):
		return device_image(user);
	default:
		return -ENOTTY;
	}
}

/* Called with mmap_lock held, under which others copy to user space: takes no lock of ours. */
static int device_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct stacktap_session *session = file->private_data;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 cpu = offset >> DEVICE_CPU_SHIFT;
	struct stacktap_cpu *pc;

	if (cpu >= nr_cpu_ids || offset & ((1ULL << DEVICE_PRODUCER_SHIFT) - 1))
		return -EINVAL;
	pc = session_cpu(session, array_index_nospec(cpu, nr_cpu_ids));
	if (!pc)
		return -ENXIO;
	/* the vma holds the file, and the ring goes only after the file's release */
	return st_ring_mmap(pc->ring, vma, offset >> DEVICE_PRODUCER_SHIFT & 1);
}

static __poll_t device_poll(struct file *file, poll_table *wait)
{
	struct stacktap_session *session = file->private_data;
	struct stacktap_filter *filter;
	bool stopped;
	__poll_t mask = 0;
	unsigned int cpu;

	poll_wait(file, &session->wait, wait);
	/* pairs with wq_has_sleeper() in capture.c; poll_wait() itself has it since 6.14 only */
	smp_mb();
	stopped = READ_ONCE(session->state) == STACKTAP_STATE_STOPPED;
	rcu_read_lock();
	filter = rcu_dereference(session->filter);
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		/* a ring that refused a record may be as full as it gets, below its watermark */
		if (pc && st_ring_used(pc->ring) >=
			  (stopped || READ_ONCE(pc->owing) ? 1 : pc->ring->watermark))
			mask |= EPOLLIN | EPOLLRDNORM;
		if (!pc && cpumask_test_cpu(cpu, session->online) &&
		    st_filter_wants_cpu(filter, cpu))
			mask |= EPOLLPRI;
	}
	rcu_read_unlock();
	return mask;
}

static const struct file_operations device_fops = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.unlocked_ioctl = device_ioctl,
	.mmap = device_mmap,
	.poll = device_poll,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "stacktap",
	.fops = &device_fops,
	.mode = 0600,
};

int st_device_init(void)
{
	return misc_register(&device);
}

void st_device_exit(void)
{
	misc_deregister(&device);
}
