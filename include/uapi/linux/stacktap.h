/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * stacktap: the contract between stacktap.ko and user space.
 *
 * This header is the manual of the ABI. It has four parts: the device and its ioctls, the ring
 * that mmap() of the device gives, the records in the ring, and the generic netlink family.
 * All integers are in host byte order. All times are CLOCK_MONOTONIC nanoseconds.
 *
 * Version
 * -------
 * STACKTAP_ABI_MAJOR changes when something existing changes its layout or meaning; user space
 * must refuse a module of another major. STACKTAP_ABI_MINOR changes when something is added;
 * both sides work with any minor of the same major. Unknown record types and unknown sections are
 * skipped by their size. Unknown netlink attributes and unknown flag bits are refused.
 *
 * Objects
 * -------
 * A *session* is one profiling request. open() of /dev/stacktap creates it, STACKTAP_IOC_INFO
 * tells its id (u64, never reused while the module is loaded), and it ends when the last file
 * descriptor and the last mapping of it are gone, so a killed owner is a clean stop. open() needs
 * CAP_PERFMON or CAP_SYS_ADMIN in the initial user namespace (EPERM), in the initial pid and network
 * namespaces (EOPNOTSUPP); EMFILE when STACKTAP_MAX_SESSIONS are open.
 *
 * A *source* is what triggers a sample. A session has up to STACKTAP_MAX_SOURCES, numbered from 0;
 * each is a counter on every selected CPU. Sources are configured over netlink while the session
 * is stopped; rate and filters may change while it runs.
 *
 * A *ring* carries the records of one CPU of one session. The owner creates one for each CPU that
 * it wants sampled, normally all online ones, and another when a CPU comes online later
 * (poll() then reports POLLPRI). A ring survives its CPU going offline. A CPU without a ring is not
 * sampled.
 *
 * A *table* is the compact unwind table of one object (include/stacktap/unwind_table.h), kept once
 * for all sessions that load it. A *mapping list* tells which tables apply where in one address
 * space; it belongs to one session and serves that session's samples alone. Both are loaded by
 * ioctl. Without a list user stacks are walked by frame pointers. A module that lacks
 * STACKTAP_FEATURE_TABLES refuses these ioctls with EOPNOTSUPP.
 */
#ifndef _UAPI_LINUX_STACKTAP_H
#define _UAPI_LINUX_STACKTAP_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define STACKTAP_ABI_MAJOR	1
#define STACKTAP_ABI_MINOR	14

#define STACKTAP_DEVICE		"/dev/stacktap"

enum {
	STACKTAP_MAX_SESSIONS		= 64,
	STACKTAP_MAX_SOURCES		= 8,	/* per session */
	STACKTAP_MAX_TGIDS		= 12288, /* in one filter, with its tids and uids */
	STACKTAP_MAX_COMMS		= 64,	/* in one filter */
	STACKTAP_MAX_CGROUPS		= 64,	/* in one filter */
	STACKTAP_MAX_RATE_HZ		= 10000, /* per source and CPU */
	STACKTAP_MIN_PERIOD_NS		= 100000, /* of a clock source: 1 / STACKTAP_MAX_RATE_HZ */
	STACKTAP_MAX_KERNEL_FRAMES	= 127,
	STACKTAP_DEFAULT_USER_FRAMES	= 1024,
	STACKTAP_MAX_USER_FRAMES	= 4096,
	STACKTAP_COMM_LEN		= 16,	/* TASK_COMM_LEN, with the terminating NUL */
	STACKTAP_NAME_LEN		= 32,	/* of a source, with the terminating NUL */
	STACKTAP_MAX_TABLE_BYTES	= 67108864,
	STACKTAP_MAX_MAPPINGS		= 16384, /* in one list */
	STACKTAP_MAX_EXACT_PCS		= 32,	/* entries of EXACT_PC */
	STACKTAP_MIN_SLICE_BYTES	= 1024,
	STACKTAP_MAX_SLICE_BYTES	= 65536,
	STACKTAP_SLICES_PER_SPACE	= 16,	/* per address space, CPU and 100 ms */
	STACKTAP_SLICE_BELOW	= 128,	/* bytes of a slice below the stack pointer, at most */
	STACKTAP_MULTIPLEX_PERCENT	= 95,	/* CNT_SHARE below it: multiplexed */
	STACKTAP_TIME_BUCKETS		= 27,	/* of HANDLER_TIMES and DRAIN_TIMES */
	STACKTAP_TIME_SHIFT		= 6,	/* the first of them is below 2^6 ns */
	STACKTAP_RING_MIN_BYTES		= 16384,
	STACKTAP_RING_MAX_BYTES		= 67108864,
	STACKTAP_RECORD_ALIGN		= 8,
};

/*
 * Why a handler call did not become a sample record. Index into every array of losses, and the
 * values of struct stacktap_lost_entry::reason. Per source and CPU the module keeps
 *
 *	handler calls = recorded + filtered + sum of lost[]
 *
 * exactly, once the session is stopped; while it runs, samples in the stash are in none of them.
 */
enum stacktap_lost {
	STACKTAP_LOST_RING_FULL,	/* the reader was too slow */
	STACKTAP_LOST_STASH_FULL,	/* phase 2 was held off too long (IRQs disabled) */
	STACKTAP_LOST_REENTRY,		/* the overflow hit while a capture ran on this CPU */
	STACKTAP_LOST_BAD_TAIL,		/* the consumer page holds an impossible position */
	STACKTAP_LOST_OFFLINE,		/* the CPU was going down */
	STACKTAP_LOST_STOPPED,		/* the session stopped between overflow and record */
	STACKTAP_LOST_TOO_BIG,		/* the record does not fit this ring at all */
	STACKTAP_LOST_BUDGET,		/* the CPU's ceiling is reached; 1.11 */
	STACKTAP_LOST_REASONS
};

/* ------------------------------------------------------------------------------------------------
 * 1. The device
 * ------------------------------------------------------------------------------------------------
 * Every ioctl struct starts with its size as user space knows it. A larger one is accepted when the
 * surplus is zero (E2BIG otherwise), a smaller one when it reaches the end of version 1.0's struct
 * (EINVAL otherwise). Reserved fields and padding must be zero (EINVAL).
 */

/* features of the module, for STACKTAP_IOC_INFO and STACKTAP_A_FEATURES */
#define STACKTAP_FEATURE_KERNEL_STACKS	(1ULL << 0)
#define STACKTAP_FEATURE_USER_FP	(1ULL << 1)	/* user stacks by frame pointers */
#define STACKTAP_FEATURE_TABLES		(1ULL << 2)	/* user stacks by tables */
#define STACKTAP_FEATURE_STACK_SLICE	(1ULL << 3)	/* registers and stack slices */
#define STACKTAP_FEATURE_TRACE_CTX	(1ULL << 4)	/* trace and span ids */
#define STACKTAP_FEATURE_NMI		(1ULL << 5)	/* PMU interrupts are NMIs here */
#define STACKTAP_FEATURE_TASK_FILTERS	(1ULL << 6)	/* by tid, uid, comm and cgroup; 1.7 */

/*
 * STACKTAP_IOC_INFO: what this module and this session are. Read it first: the layout of this
 * struct's first 16 bytes never changes.
 */
struct stacktap_info {
	__u32 size;
	__u16 abi_major;
	__u16 abi_minor;
	__u64 session_id;
	__u64 features;
	__u32 page_size;		/* bytes; unit of the ring's layout */
	__u32 nr_cpu_ids;		/* CPU numbers are below this */
	char module_version[32];
};

/*
 * STACKTAP_IOC_RING_CREATE: allocate the ring of @cpu. The memory is charged to the caller's memory
 * cgroup and never triggers the OOM killer (ENOMEM). @data_bytes must be a power of two from
 * STACKTAP_RING_MIN_BYTES to STACKTAP_RING_MAX_BYTES and a multiple of the page size. @watermark is
 * the number of unread bytes at which poll() reports POLLIN, 0 for a quarter of the ring; a stopped
 * session, and a ring that owes a record, report POLLIN for any unread byte. EEXIST: the CPU has a
 * ring already. ENODEV: no such CPU, or it was not online since the session began. EDQUOT: all rings
 * and stashes together would take more than the module's limit (parameter ring_limit_mib). A running
 * session begins to sample the CPU at once if it is selected; when its counters cannot be made the
 * ring stays and GET_CPU tells.
 */
struct stacktap_ring_create {
	__u32 size;
	__u32 cpu;
	__u32 data_bytes;
	__u32 watermark;
	__u64 consumer_offset;		/* out: for mmap(), one page, PROT_READ | PROT_WRITE */
	__u64 producer_offset;		/* out: for mmap(), one page + 2 * data_bytes, PROT_READ */
};

/*
 * STACKTAP_IOC_FLUSH: write what the rings still owe (LOST and CPU records with the newest counts)
 * as far as there is room, and wake readers. For a reader that has drained a ring after STOP.
 * Takes struct stacktap_flush; EBUSY while the session runs.
 */
struct stacktap_flush {
	__u32 size;
	__u32 flags;			/* none yet */
};

/*
 * STACKTAP_IOC_TABLE_LOAD: copy the unwind table at @data into the module-wide registry, or find it
 * there: the same bytes are kept once, whoever loads them. Every byte is checked first (EINVAL;
 * also for a table of another machine). @table_id names the table from then on, in all sessions,
 * and is never used again for another. @hash is the same for the same bytes as long as the module
 * is loaded, and says nothing else. The session holds one reference, however often it loads the
 * same table, until TABLE_DROP or its end. No flags yet.
 *
 * Memory: the module's parameter table_limit_mib bounds all tables and mapping lists together (0,
 * the default: a 16th of the memory, at most 256 MiB): ENOSPC. A session may take at most half of
 * that, and every table that it holds counts in full: EDQUOT. Both mean that something has to be
 * dropped first; GET_TABLE tells what was hit last. ENOMEM: the kernel had none, the OOM killer is
 * not asked. The first loader's memory cgroup is charged. E2BIG: more than
 * STACKTAP_MAX_TABLE_BYTES.
 */
struct stacktap_table_load {
	__u32 size;
	__u32 flags;
	__u64 data;			/* pointer to the table */
	__u64 data_bytes;
	__u64 table_id;			/* out */
	__u8 hash[32];			/* out */
};

/*
 * STACKTAP_IOC_TABLE_DROP: the session will not name @table_id again. Its mapping lists that name
 * it keep it until they are replaced, and it counts for the session until then. ENOENT: the session
 * does not hold it.
 */
struct stacktap_table_drop {
	__u32 size;
	__u32 reserved;
	__u64 table_id;
};

/*
 * STACKTAP_IOC_IMAGE: the image that process @tgid (in the initial pid namespace) runs now, as
 * samples name it. For MAPPINGS_SET of a process without samples yet: ask this first, read
 * /proc/TGID/maps then, and a list of what another image had mapped is refused. ESRCH when there is
 * no such process or it has no address space (any more), ESTALE when it just executes another image.
 */
struct stacktap_image {
	__u32 size;
	__u32 tgid;
	__u64 start_time;		/* out */
	__u64 exec_id;			/* out */
};

/* one executable range of an address space */
struct stacktap_mapping {
	__u64 start;
	__u64 end;			/* exclusive */
	__u64 bias;			/* run-time address minus ELF virtual address, modulo 2^64 */
	__u64 table_id;			/* 0: no table, walk by frame pointers */
};

/*
 * STACKTAP_IOC_MAPPINGS_SET: replace this session's mapping list of the address space of @tgid. The
 * image is named by @tgid (in the initial pid namespace), @start_time and @exec_id as samples carry
 * them: ESRCH when there is no such process or it has no address space (any more), ESTALE when it
 * is another image by now or just executes another one.
 *
 * @mappings has @count ranges, ascending, none empty, without overlap and within user addresses
 * (EINVAL). It should list every executable range, those without table as well: a step by the frame
 * pointer counts only if it leads into a listed range. Each @table_id is one that the session holds
 * (ENOENT). @count 0 removes the list. E2BIG: more than STACKTAP_MAX_MAPPINGS. ENFILE: all sessions
 * together have lists for as many address spaces as the module keeps (32,768). ENOMEM, EDQUOT and
 * ENOSPC as for TABLE_LOAD; the list before stays then. No flags yet.
 *
 * Tables say which words of a process a walk reads, and it tells what it finds there as frames. So a
 * list, but for an empty one, is refused with EPERM unless both the caller and who opened the
 * session have CAP_SYS_PTRACE in the initial user namespace, and with EACCES when the kernel is
 * locked down for confidentiality. INFO has no FEATURE_TABLES for who would be refused. A START after
 * the kernel was locked down drops the session's lists.
 *
 * Samples walked with the list carry @generation, which is not 0 and otherwise the caller's own.
 * The list before serves until the new one is in place. An address space that a fork copies gets
 * the same list with the same generation at once, before the child runs (unless the limits forbid
 * it: see A_LISTS_REFUSED). A list ends with its address space, thus at exec and at exit, and with
 * the session. munmap, mremap and a new mapping do not change a list; who sets it has to.
 */
struct stacktap_mappings_set {
	__u32 size;
	__u32 tgid;
	__u64 start_time;
	__u64 exec_id;
	__u64 generation;
	__u64 mappings;			/* pointer to struct stacktap_mapping[count] */
	__u32 count;
	__u32 flags;
};

#define STACKTAP_IOC_MAGIC		0xb7
#define STACKTAP_IOC_INFO		_IOWR(STACKTAP_IOC_MAGIC, 0, struct stacktap_info)
#define STACKTAP_IOC_RING_CREATE	_IOWR(STACKTAP_IOC_MAGIC, 1, struct stacktap_ring_create)
#define STACKTAP_IOC_FLUSH		_IOW(STACKTAP_IOC_MAGIC, 2, struct stacktap_flush)
#define STACKTAP_IOC_TABLE_LOAD		_IOWR(STACKTAP_IOC_MAGIC, 16, struct stacktap_table_load)
#define STACKTAP_IOC_TABLE_DROP		_IOW(STACKTAP_IOC_MAGIC, 17, struct stacktap_table_drop)
#define STACKTAP_IOC_MAPPINGS_SET	_IOW(STACKTAP_IOC_MAGIC, 18, struct stacktap_mappings_set)
#define STACKTAP_IOC_IMAGE		_IOWR(STACKTAP_IOC_MAGIC, 19, struct stacktap_image)

/* ------------------------------------------------------------------------------------------------
 * 2. The ring
 * ------------------------------------------------------------------------------------------------
 *
 *	consumer page   the only page user space may write
 *	producer page   read-only
 *	data            data_bytes, read-only, mapped twice in a row: a record never wraps
 *
 * mmap() must be MAP_SHARED, of exactly the offset and length that RING_CREATE told; mprotect()
 * cannot make the read-only part writable, and mremap() and splitting are refused. A child does not
 * inherit the mapping unless the parent asks for it with madvise(MADV_DOFORK); it is one more holder
 * then, which keeps the module loaded as long as it lives.
 *
 * Positions are byte counts from the start of the ring's life, never masked and never reset. The
 * module writes records at head and publishes it with a store-release; the reader loads head with
 * acquire, reads [tail, head), and frees the bytes with a store-release to tail. Record bytes are
 * stable until then. The module copies tail once per record and validates it: a tail beyond head or
 * more than data_bytes behind it counts as STACKTAP_LOST_BAD_TAIL and nothing is written until it
 * makes sense again.
 */
struct stacktap_consumer_page {
	__u64 tail;
};

struct stacktap_producer_page {
	__u64 head;
	__u64 data_bytes;
	__u32 cpu;
	__u32 watermark;
};

/* ------------------------------------------------------------------------------------------------
 * 3. Records
 * ------------------------------------------------------------------------------------------------
 * Records are in the order of commit, not of time: a sample's time is the time of its overflow, and
 * it is committed at the end of phase 2. Sizes are multiples of STACKTAP_RECORD_ALIGN.
 */
struct stacktap_record {
	__u32 size;			/* whole record, header included */
	__u16 type;			/* enum stacktap_record_type */
	__u16 flags;			/* by type */
	__u64 time;
};

enum stacktap_record_type {
	STACKTAP_RECORD_SAMPLE = 1,
	STACKTAP_RECORD_CONFIG,		/* a source was armed, changed or fell back, on this CPU */
	STACKTAP_RECORD_CLOCK_ANCHOR,
	STACKTAP_RECORD_LOST,
	STACKTAP_RECORD_THROTTLE,
	STACKTAP_RECORD_CPU,
	STACKTAP_RECORD_STALL,		/* 1.9 */
	STACKTAP_RECORD_MISSED,		/* 1.11 */
};

/* flags of a SAMPLE */
#define STACKTAP_SAMPLE_USER_MODE	(1 << 0)	/* the overflow hit user mode */
#define STACKTAP_SAMPLE_MOVED		(1 << 1)	/* the task ran on before its stack was walked */
#define STACKTAP_SAMPLE_STALE		(1 << 2)	/* another task ran by then: no user stack */
#define STACKTAP_SAMPLE_TWO_PHASE	(1 << 3)	/* of a PMU's: until 1.12 all of them */
#define STACKTAP_SAMPLE_KERNEL_THREAD	(1 << 4)	/* no user half ever (also io and user workers) */
#define STACKTAP_SAMPLE_IDLE		(1 << 5)	/* the CPU's idle task */

/* what the overflow handler ran in */
enum stacktap_context {
	STACKTAP_CONTEXT_NMI = 1,
	STACKTAP_CONTEXT_IRQ,		/* a PMU interrupt that is not an NMI */
	STACKTAP_CONTEXT_HRTIMER,	/* cpu-clock */
	STACKTAP_CONTEXT_TASK,		/* software events */
};

/* how a stack ended; a cut stack is never passed off as a whole one */
enum stacktap_end {
	STACKTAP_END_NONE,		/* no such half: not wanted, or the task has none */
	STACKTAP_END_COMPLETE,		/* the outermost frame was reached */
	STACKTAP_END_DEPTH,		/* the depth limit */
	STACKTAP_END_TIME,		/* the time limit */
	STACKTAP_END_UNREADABLE,	/* a stack page was not present */
	STACKTAP_END_NO_RULE,		/* no unwind information for an address */
	STACKTAP_END_BAD_FRAME,		/* misaligned, not growing or out of range */
	STACKTAP_END_STALE,		/* another task ran, or the address space was changing */
	STACKTAP_END_NO_MAPPINGS,	/* by frame pointers for want of a list: see below */
	STACKTAP_END_COMPAT,		/* a 32-bit task: leaf only */
	STACKTAP_END_BUDGET,		/* cut to stay below the CPU's ceiling; 1.11 */
	STACKTAP_END_GUESSED,		/* 1.11: well, but a frame may be missing: see below */
	STACKTAP_END_HOOK,		/* 1.11: a return hook has the caller: see below */
	STACKTAP_END_REASONS
};

/*
 * GUESSED: a walk with a list came to an outermost frame, by frame pointers through code that no table
 * covers, and could not prove that such code keeps one: code that uses the register for something else
 * (JIT compilers do) leaves that of a caller in it, or its caller's, and frames are missing. A step is
 * proven when it leads to behind a call and no word of the stack that it passes is an address
 * behind a call in code of the list. A frame pointer of 0 proves nothing in code without a table.
 *
 * Of a kernel stack: an x86 kernel with CONFIG_UNWINDER_GUESS found the callers by searching the stack for
 * addresses of its code, and some may have returned long ago. None of its stacks is COMPLETE.
 */

/*
 * HOOK: kretprobe, fprobe, function-graph or a uretprobe is to be called when the last function of the
 * stack returns, and a trampoline's address stands in place of the caller's, which nobody but the hook knows.
 * The trampoline is not recorded as a caller. Or function-graph's trampoline runs, which only on some kernels
 * has a frame that leads on, or any of the kernel's where x86 unwinds by frame pointers. In a task with a uretprobe under way any return address at the start of
 * a page is taken for the trampoline's, unless it is in code of the list that has a table. Kernels without
 * CONFIG_KPROBES do not tell where those of the kernel are.
 */

/*
 * NO_MAPPINGS: the session uses tables, that is, it has lists or SLICE_BYTES is set, but this address
 * space has no list (yet). Its stack was walked by frame pointers, which nobody vouches for: however
 * well the walk ended, it is not called complete. The same is said of a stack that was walked with a
 * list (and carries its generation) and that ended well, but after frame pointers had led it through
 * code that is not in the list: it was mapped since, and a frame may be missing. With SLICE_BYTES also
 * of one that ended without rule in such code.
 */

/*
 * A sample. The image that ran is (@tgid, @start_time, @exec_id): the thread group leader's start
 * time in CLOCK_BOOTTIME nanoseconds (as /proc/PID/stat field 22, in finer units) and a number that
 * changes with every exec. @period is what the sample stands for, in the source's unit: events, or
 * nanoseconds for clock sources. Sections follow up to the record's size.
 *
 * Unless SRC_FLAGS has NO_JITTER a sample falls somewhere in each period, see there. @jitter then tells
 * how much of a period it is from the overflow before, 2048 (a 16th) to 65535 (two); @period stays the
 * mean and is what to add up: sums of it are exact to one period, and one sample stands for as much as
 * another, whatever was drawn.
 *
 * The first of USER_IPS is where the task was interrupted, the others are return addresses, but for
 * those whose indices EXACT_PC lists, ascending: a signal interrupted that code, so the address is
 * that of the instruction to be run next, as the first one is.
 */
struct stacktap_sample {
	struct stacktap_record header;
	__u16 source;			/* index in the session */
	__u8 context;			/* enum stacktap_context */
	__u8 kernel_end;		/* enum stacktap_end */
	__u8 user_end;			/* enum stacktap_end */
	__u8 reserved;
	__u16 jitter;			/* the period drawn for it, in 2^-15 of @period; 0: none; 1.11 */
	__u32 cpu;
	__u32 delay_ns;			/* from overflow to the walk of the user stack, saturating */
	__u32 tgid;			/* in the initial pid namespace, as are all ids */
	__u32 tid;
	__u64 start_time;
	__u64 exec_id;
	__u64 cgroup_id;		/* cgroup v2; inode number of its directory */
	__u64 period;
	__u64 generation;		/* of the mapping list used, 0: none, by frame pointers */
	char comm[STACKTAP_COMM_LEN];
};

/*
 * Sections start at multiples of 8; @len is the payload's in bytes, without this header and the
 * padding behind. It has 32 bits because a 64 KiB stack slice with its address does not fit 16.
 */
struct stacktap_section {
	__u16 kind;			/* enum stacktap_section_kind */
	__u16 flags;			/* by kind; readers ignore what they do not know */
	__u32 len;
};

enum stacktap_section_kind {
	STACKTAP_SECTION_KERNEL_IPS = 1, /* __u64[], leaf first, run-time addresses */
	STACKTAP_SECTION_USER_IPS,	/* __u64[], leaf first; return addresses are not adjusted */
	STACKTAP_SECTION_EXACT_PC,	/* __u16[]: indices of USER_IPS that a signal interrupted */
	STACKTAP_SECTION_REGS,		/* struct stacktap_regs */
	STACKTAP_SECTION_STACK_SLICE,	/* __u64 address, then bytes; flags: enum stacktap_end */
	STACKTAP_SECTION_VALUES,	/* struct stacktap_value[] */
	STACKTAP_SECTION_TRACE_CTX,	/* struct stacktap_trace_ctx */
	STACKTAP_SECTION_INTERP_FRAMES,	/* reserved: frames of interpreters */
	STACKTAP_SECTION_USER_COOKIE,	/* reserved: user stack to come in a later record */
	STACKTAP_SECTION_BRANCH_STACK,	/* reserved: struct perf_branch_entry[] */
	STACKTAP_SECTION_MISSING,	/* __u64: address that was not present, see below */
};

/*
 * MISSING comes with a walk by tables that ended in UNREADABLE: the word that could not be read without
 * a page fault. Who reads it from outside brings the page in for the samples to come.
 */

/*
 * REGS and STACK_SLICE are what a user stack can be unwound from later: the user registers and the
 * upper end of the stack, of the very instant at which USER_IPS was walked. MOVED holds for them as
 * for that. They always come together, REGS first, in samples
 *
 *  * that ended in NO_MAPPINGS, while SLICE_BYTES is not 0;
 *  * of which SLICE_EVERY says so, for comparison.
 *
 * The slice begins STACKTAP_SLICE_BELOW bytes below the stack pointer, rounded down to 8 (and without
 * arm64's address tag), or where the stack pointer's page begins if that is higher: what an epilogue
 * has popped lies there, and unwind rules name it to the last. It has as many bytes, a multiple of 8,
 * as were readable, up to SLICE_BYTES and to where the main thread's stack began (what lies above is
 * arguments and environment). Its section's flags say with an enum stacktap_end why it ends there:
 * COMPLETE for the stack's beginning, DEPTH for the size limit or what the ring's share (see below)
 * had left, UNREADABLE, or TIME. It may have no bytes at all but the address.
 *
 * From 1.5 on SLICE_MAX_BYTES, if larger, is the limit of a slice that is known to need no more: the
 * main thread's stack began no further away, or no further above the stack pointer is the thread
 * pointer, where C libraries keep what a thread has next to its stack (the slice ends there, then, but
 * says DEPTH; what is nearer than SLICE_BYTES does not end it). If the ring's share has no room for all
 * of it the limit is SLICE_BYTES as before.
 *
 * Slices take at most a quarter of a ring's unread bytes, and at most STACKTAP_SLICES_PER_SPACE are
 * written per address space, CPU and 100 ms (those of SLICE_EVERY are not counted there). A sample
 * that finds no room for its slice is recorded without, and A_SLICES_REFUSED counts it.
 *
 * The registers are numbered as DWARF does for the architecture, all that it numbers up to the stack
 * pointer and the pc. @pac_mask has a bit set for each bit of a return address that is a pointer
 * authentication code. The section's flags have REGS_HOOKED when the task had a uretprobe under way (1.12):
 * the slice has the trampoline's address for a caller's, see HOOK.
 */
#define STACKTAP_REGS_HOOKED	(1U << 0)

struct stacktap_regs {
	__u64 pc;
	__u64 pac_mask;
	__u32 arch;			/* EM_X86_64 or EM_AARCH64 */
	__u32 count;
	__u64 regs[];
};

enum stacktap_value_kind {
	STACKTAP_VALUE_OFF_CPU_NS = 1,
	STACKTAP_VALUE_BYTES,
};

struct stacktap_value {
	__u32 kind;
	__u32 reserved;
	__u64 value;
};

struct stacktap_trace_ctx {
	__u8 trace_id[16];
	__u8 span_id[8];
	__u8 trace_flags;
	__u8 reserved[7];
};

enum stacktap_mode {
	STACKTAP_MODE_PERIOD = 1,	/* one sample every period events */
	STACKTAP_MODE_FREQ,		/* the kernel adapts the period to a rate */
};

/*
 * CONFIG: what holds for @source on this CPU from here on. Written when a source is armed, when
 * its rate or the session's filters change, when it fell back, when the session degrades or
 * recovers, and when it begins to be multiplexed or is no longer. A reader starts a new Profile
 * when the period, the step or MULTIPLEXED changes. When the ring is full, CONFIG, CLOCK_ANCHOR and
 * CPU wait for room, and samples are lost until they are written.
 */
#define STACKTAP_CONFIG_FALLBACK	(1 << 0)	/* cpu-clock stands in, @fallback_errno says why */
#define STACKTAP_CONFIG_DEGRADED	(1 << 1)	/* the session is, by STEP */
#define STACKTAP_CONFIG_MULTIPLEXED	(1 << 2)	/* counts a part of the time; 1.9 */
#define STACKTAP_CONFIG_STEP_SHIFT	8		/* four bits: A_DEGRADED */
#define STACKTAP_CONFIG_STEP_MASK	(15 << STACKTAP_CONFIG_STEP_SHIFT)

struct stacktap_config {
	struct stacktap_record header;
	__u16 source;
	__u16 mode;			/* enum stacktap_mode */
	__u32 rate_hz;			/* as it is now; 0 when only a period was asked for */
	__u64 period;			/* as it is now, of what is really counted; 0 in FREQ mode */
	__u32 perf_type;		/* what is really counted, as in perf_event_attr */
	__u32 fallback_errno;		/* positive, 0: none */
	__u64 perf_config;
	__u64 generation;		/* counts changes of the session's configuration */
	char name[STACKTAP_NAME_LEN];	/* of what is really counted */
};

/* CLOCK_ANCHOR: the same instant on three clocks; first record of a ring and once per START. */
struct stacktap_clock_anchor {
	struct stacktap_record header;	/* time: CLOCK_MONOTONIC */
	__u64 boottime;
	__u64 realtime;
};

/* LOST: handler calls that became no record since the last LOST of this ring. */
struct stacktap_lost_entry {
	__u16 source;
	__u16 reason;			/* enum stacktap_lost */
	__u32 reserved;
	__u64 count;
};

struct stacktap_lost_record {
	struct stacktap_record header;
	__u64 first;			/* time of the first loss not yet reported */
	struct stacktap_lost_entry entries[];
};

/*
 * THROTTLE: perf stopped the counter until the next tick. STALL: its overflows had ceased, and it
 * was set anew. MISSED: a clock's timer was so late that whole periods passed without a sample. All
 * look the same, @count is cumulative: CNT_THROTTLED, CNT_STALLED or CNT_MISSED.
 */
struct stacktap_throttle {
	struct stacktap_record header;
	__u16 source;
	__u16 reserved[3];
	__u64 count;
};

enum stacktap_cpu_state {
	STACKTAP_CPU_ONLINE = 1,	/* sampling starts here */
	STACKTAP_CPU_OFFLINE,		/* and ends here */
	STACKTAP_CPU_STOPPED,		/* the session was stopped; the counts are final */
	STACKTAP_CPU_DESELECTED,	/* sampling ends here because of a filter */
	STACKTAP_CPU_NO_COUNTER,	/* selected, but not sampled (yet) */
	STACKTAP_CPU_STATES
};

/*
 * CPU: state of this CPU and the counts of each source on it so far (whole life of the session). From
 * 1.11 on a struct stacktap_cpu_more of each source follows @counts, if the record is that long.
 * From 1.9 on NO_COUNTER also comes in the stream, when the session runs and a counter of a CPU
 * that comes online, gets its ring or is selected could not be made; GET_CPU and EVENT_NO_COUNTER
 * have the reason. ONLINE ends it; when the CPU goes or is deselected instead, nothing does.
 */
struct stacktap_cpu_counts {
	__u64 calls;
	__u64 recorded;
	__u64 filtered;
	__u64 throttled;		/* times perf stopped the counter */
	__u64 lost[STACKTAP_LOST_BUDGET]; /* by reason, up to TOO_BIG */
};

struct stacktap_cpu_more {
	__u64 lost_budget;
};

struct stacktap_cpu_record {
	struct stacktap_record header;
	__u16 state;			/* enum stacktap_cpu_state */
	__u16 sources;
	__u32 reserved;
	struct stacktap_cpu_counts counts[];	/* [sources] */
};

/* ------------------------------------------------------------------------------------------------
 * 4. Generic netlink
 * ------------------------------------------------------------------------------------------------
 * Family "stacktap", version 1, in the initial network namespace. Every command needs CAP_PERFMON
 * or CAP_SYS_ADMIN of the sender; the multicast group "events" is for CAP_SYS_ADMIN (kernels that
 * cannot keep a group to that have none). Attributes are validated strictly (nests carry
 * NLA_F_NESTED); a refusal carries a sentence in the extended ACK, which kernels up to 6.1 drop
 * when it is a dump that is refused.
 *
 * GET_MODULE (do)
 *	-> ABI_MAJOR, ABI_MINOR, MODULE_VERSION, FEATURES, SESSIONS (number open),
 *	   TABLES, TABLE_ROWS, TABLE_BYTES (each table once), LISTS (address spaces, once per session
 *	   that has a list for it), LIST_BYTES, TABLE_LIMIT (for TABLE_BYTES + LIST_BYTES), CEILING
 *
 * GET_SESSION (do with SESSION_ID; dump for all)
 *	-> SESSION: nest
 *		SESSION_ID, OWNER_TGID, OWNER_COMM, STATE, GENERATION, CREATED, USER_FRAMES, WALK_LIMIT,
 *		SLICE_BYTES, SLICE_EVERY, SLICE_MAX_BYTES (each if not 0),
 *		BUDGET_NS, DEGRADED, DEGRADATIONS, RATES_REFUSED, KERNEL_FRAMES, RATE_DIVISOR, CEILING,
 *		RING_BYTES (sum over rings), STASH_BYTES, TABLES, TABLE_BYTES (of tables it holds or its
 *		lists name), TABLE_LIMIT, LISTS, LIST_BYTES, LISTS_REFUSED
 *		SOURCES: nest of SOURCE: nest (SRC_* below, with FALLBACK_ERRNO and FALLBACK_CPUS)
 *		FILTER: nest (FILTER_*)
 * A dump has no more than two pages for a session unless its reader takes larger pieces. When the
 * sets of ids do not fit, or there is no memory in one piece for them, FILTER_PARTIAL stands in
 * their place; asked for by its id the session has them, unless that is short of memory, too.
 *
 * GET_CPU (dump; SESSION_ID restricts it to one session)
 *	-> CPU: nest, one per session and ring
 *		SESSION_ID, CPU_ID, CPU_STATE, ERRNO (why it has no counter, if that is so; EDQUOT:
 *		ring_limit_mib), OFFLINES,
 *		RING_BYTES, RING_USED,
 *		TABLE_HITS, TABLE_MISSES, TABLE_FRAMES, TABLE_FP_FRAMES, TABLE_SEARCHES, SLICES,
 *		SLICES_REFUSED, HANDLER_NS, DRAIN_NS, and HANDLER_TIMES, DRAIN_TIMES: nests of u64 by
 *		bucket + 1 (all four absent where the rate of the CPU's own counter is unknown)
 *		COUNTS: nest per source
 *			CNT_SRC_ID, CNT_TYPE, CNT_CONFIG, CNT_PERIOD, CNT_FALLBACK_ERRNO (what counts here)
 *			CNT_CALLS, CNT_RECORDED, CNT_FILTERED, CNT_THROTTLED, CNT_LOST: nest of u64 by
 *			reason + 1, CNT_ENABLED_NS, CNT_RUNNING_NS, CNT_TIMES_AT (see below),
 *			CNT_MOVED, CNT_STALE, CNT_STALLED, CNT_SHARE, CNT_MULTIPLEXED, CNT_RAISES,
 *			CNT_MISSED, CNT_IN_PLACE, CNT_PUT_OFF, CNT_FALLBACK_RECORDED, CNT_KERNEL_END,
 *			CNT_USER_END: nests of u64 by reason + 1
 *
 * A hardware counter shares the PMU with others, which may take turns with it or, pinned, take its
 * place. Every two seconds the module looks at each whose CPU was busy since, for how much of the
 * time that it was enabled it ran: CNT_SHARE. When that is below STACKTAP_MULTIPLEX_PERCENT the
 * counter is multiplexed, which CNT_MULTIPLEXED counts, EVENT_MULTIPLEX announces and CONFIG tells;
 * what it samples stands for that part of the time alone. When a look finds it at that or above,
 * EVENT_MULTIPLEX_END and CONFIG say so; without a word it ends with the counter. Counters are
 * never pinned, so perf never disables one for want of a place.
 *
 * Nobody is interrupted for an answer: CNT_ENABLED_NS and CNT_RUNNING_NS, sums since the session
 * was made, are those of CNT_TIMES_AT. That is now for software's counters. Of hardware's it is the
 * last of those looks, or when it was stopped; 0: there was none yet, and both are 0.
 *
 * A PMU's interrupt, which may be an NMI, takes a sample in two phases: it notes what it hit, and the user
 * stack is walked and the record written when it is over. From 1.13 on one that hit user mode does both
 * itself, which CNT_IN_PLACE counts: if nothing of the session waits for phase 2 on its CPU, and while a walk
 * cannot lead the mean of these handlers on that CPU, over the last 128, above the module's parameter in_place_ns (1000;
 * 0: never). perf lowers the sampling rate of the whole system when its own mean of them is above what
 * perf_cpu_time_max_percent allows, 2500 ns by default. What is not done within 13 times in_place_ns or WALK_LIMIT_NS, has no
 * list in a session that uses tables, or is to have a stack slice, is left to phase 2 as if it had not been
 * begun, which CNT_PUT_OFF counts, and the next 16 hits of its address space on that CPU are left to it at once. SAMPLE_TWO_PHASE tells which way a sample went.
 *
 * A clock's timer that is late by whole periods, as IRQs were off or a virtual CPU did not run, gives
 * one sample for all of them: CNT_MISSED counts the others. No handler was called for those, so they
 * are in no other count, and the weight of samples does not have them.
 *
 * HANDLER_* are of the overflow handler, once for each of its calls: both phases where they are one,
 * else the first. DRAIN_* are of phase 2, once for each time that it emptied the stash, of one sample
 * or several; without two-phase samples it counts none. What perf and the interrupt itself cost
 * is in neither; an NMI's handler that hits one of them is counted in both. _NS is their sum; bucket i
 * of _TIMES counts those that took less than 2^(STACKTAP_TIME_SHIFT + i) ns and not less than half of
 * that, the first all below 2^STACKTAP_TIME_SHIFT.
 * They take 448 bytes per session and CPU, and as much again to judge the budget by.
 *
 * GET_TABLE (dump; SESSION_ID restricts it to the tables of one session)
 *	-> TABLE: nest
 *		TABLE_ID, TABLE_BYTES, TABLE_ROWS, TABLE_USERS (sessions charged with it), TABLE_HIT
 *
 * SET_SESSION (do): SESSION_ID and any of the following, all of it or, when refused, none; a CPU that
 * changed already has a second CONFIG then, which takes it back
 *	SOURCES: replaces the list while the session is stopped; while it runs each SOURCE must name an
 *		existing SRC_ID and may carry SRC_RATE_HZ or SRC_PERIOD alone
 *	FILTER: replaces the filter, at any time; an empty nest removes it. Without FILTER_CPUS the
 *		CPUs that isolcpus= and nohz_full= set aside are not sampled. E2BIG: TGIDS, TIDS and
 *		UIDS together hold more than MAX_TGIDS, or FDS and CGROUPS more than MAX_CGROUPS. For
 *		FILTER_CGROUP_FDS: EBADF not open or not of cgroup v2, EOPNOTSUPP of cgroup v1, ENOTDIR
 *		a file of a cgroup, ENOENT the cgroup was removed. FILTER_CGROUPS keeps cgroups of the
 *		filter in force, ENOENT for an id that is not among them
 *	USER_FRAMES, WALK_LIMIT_NS, TWO_PHASE, SLICE_BYTES, SLICE_EVERY, SLICE_MAX_BYTES: while stopped.
 *		The last two without SLICE_BYTES: EINVAL. EPERM for SLICE_BYTES when the kernel is
 *		locked down for confidentiality (and for START, if it has been since); a session
 *		without them works all the same
 *
 *	BUDGET_NS: at any time; 0 takes all steps back at once
 *	CEILING: at any time
 *
 * A session has a budget for its overflow handlers, BUDGET_NS, at first the module's parameter
 * handler_budget_ns (2000). The time is what HANDLER_NS measures, but for sources that do both phases at
 * once (clocks and software events) only what comes before the user stack, which WALK_LIMIT_NS is for.
 * Every two seconds the module looks at each CPU that had 50 calls or more since it was judged last.
 * Where on any their mean was above the budget, and most of them took at least half of it (a virtual CPU
 * that is taken away makes a few very long), the session gives up something, one step a look: kernel
 * stacks are cut at 64, 32, 16 frames (DEPTH), then all rates are halved, up to four times, none below 1
 * Hz; periods are doubled. When three looks in a row, later more if a step had to be taken again, find
 * nothing but means below half of the budget, the last step is taken back. Each change is in the stream
 * (CONFIG), an EVENT and GET_SESSION. STOP takes all of them back. SRC_RATE_HZ and SRC_PERIOD say
 * what was asked for, CNT_PERIOD what counts. Where perf refuses to let a counter follow it goes on as it
 * did, which CONFIG tells; RATES_REFUSED counts that and every look tries again. Where HANDLER_NS is
 * absent no budget is kept.
 *
 * The ceiling, from 1.11 on: all sessions together take at most CEILING permille of a CPU, on each CPU, the
 * module's parameter ceiling_permille (10, may be written while sessions run; 0: no ceiling), and a
 * session at most its own CEILING. What counts is the time of overflow handlers, of phase 2 and of the
 * probes, and a microsecond a call for the interrupt around it; 2 ms of it may be spent at once. When
 * half of them are spent, user stacks are cut at 32 frames and have no slice; when three quarters are,
 * both stacks have their leaf alone (END_BUDGET); when all are, the sample is lost (LOST_BUDGET); and
 * when even losing them takes more, the handler doubles the period at once, which CNT_RAISES counts. The
 * look every two seconds makes steps of degrading of that, and of more than a sixteenth of the calls that was
 * lost so, as it does of an exceeded budget. A counter whose handler is called more than 1500 times in 100 ms
 * has its period doubled in the same way, whatever its event.
 *
 * START, STOP (do): SESSION_ID. START of a session without source or ring: EINVAL. START of a
 *	running one and STOP of a stopped one: EALREADY. ENOMEM: also when the stash that phase 2 needs
 *	would exceed ring_limit_mib.
 *
 * EVENT (multicast): EVENT_KIND, EVENT_TIME, SESSION_ID, and by kind CPU_ID, SRC_ID, EVENT_COUNT,
 *	EVENT_LOST, ERRNO. At most one message per kind, session and 100 ms: counts add up, CPU_ID and
 *	SRC_ID are those of the first. All EVENT_LOSS of a session, the last just before
 *	EVENT_SESSION_STOPPED, make its CNT_LOST.
 *
 * A source counts SRC_TYPE/SRC_CONFIG* (perf_event_attr's numbers). It is a hardware, cache, raw or
 * software event, or one of a CPU's own PMU; anything else is refused with EOPNOTSUPP, and so are precise
 * events (SRC_PRECISE_MASK, perf_event_attr.precise_ip): their registers are of two instants.
 * SRC_PERIOD wins over SRC_RATE_HZ. With a rate in PERIOD mode the period is SRC_NOMINAL_HZ / SRC_RATE_HZ, where the
 * nominal rate is what a fully busy CPU counts in a second (for cycles its nominal frequency);
 * clock sources count nanoseconds.
 *
 * A period is the mean of what is drawn for each sample (1.11; see include/stacktap/jitter.h): sample n of a
 * counter falls uniformly inside its n-th period, so that no program that repeats itself in step with
 * the period is seen at one place alone. From one overflow to the next it is a 16th of the period to
 * twice. Periods below 64 and above 2^61 are not drawn, nor any with STACKTAP_SRC_NO_JITTER, nor in FREQ
 * mode (but for clocks, whose period is fixed there, too): the kernel sets them there, they settle where
 * the load is even, and can run in step with a program.
 *
 * Any failure to create the counter but EACCES and ENOMEM makes
 * cpu-clock stand in at SRC_RATE_HZ (99 Hz when there is none), CPU by CPU, unless
 * STACKTAP_SRC_NO_FALLBACK is set, which makes START fail. From 1.11 on the real event is asked for
 * again, 2 seconds later, 4 after that, and so on up to 64, after ENOENT and EOPNOTSUPP every 64. When it
 * can be had it takes the place of cpu-clock: CONFIG without CONFIG_FALLBACK says from where on in the
 * stream, CNT_FALLBACK_ERRNO is 0 and EVENT_FALLBACK_END announces it.
 */
#define STACKTAP_GENL_NAME		"stacktap"
#define STACKTAP_GENL_VERSION		1
#define STACKTAP_GENL_GROUP_EVENTS	"events"

enum stacktap_cmd {
	STACKTAP_CMD_UNSPEC,
	STACKTAP_CMD_GET_MODULE,
	STACKTAP_CMD_GET_SESSION,
	STACKTAP_CMD_GET_CPU,
	STACKTAP_CMD_SET_SESSION,
	STACKTAP_CMD_START,
	STACKTAP_CMD_STOP,
	STACKTAP_CMD_EVENT,
	STACKTAP_CMD_GET_TABLE,
	__STACKTAP_CMD_MAX,
	STACKTAP_CMD_MAX = __STACKTAP_CMD_MAX - 1
};

enum stacktap_attr {
	STACKTAP_A_UNSPEC,
	STACKTAP_A_PAD,
	STACKTAP_A_ABI_MAJOR,		/* u16 */
	STACKTAP_A_ABI_MINOR,		/* u16 */
	STACKTAP_A_MODULE_VERSION,	/* string */
	STACKTAP_A_FEATURES,		/* u64 */
	STACKTAP_A_SESSIONS,		/* u32 */
	STACKTAP_A_SESSION,		/* nest */
	STACKTAP_A_SESSION_ID,		/* u64 */
	STACKTAP_A_OWNER_TGID,		/* u32 */
	STACKTAP_A_OWNER_COMM,		/* string */
	STACKTAP_A_STATE,		/* u8, enum stacktap_state */
	STACKTAP_A_GENERATION,		/* u64, counts changes of the configuration */
	STACKTAP_A_CREATED,		/* u64, time */
	STACKTAP_A_USER_FRAMES,		/* u32, depth limit of user stacks, 1..MAX_USER_FRAMES */
	STACKTAP_A_WALK_LIMIT_NS,	/* u32, of one user walk, 1000..100000 (25000 on RT) */
	STACKTAP_A_RING_BYTES,		/* u64 */
	STACKTAP_A_RING_USED,		/* u64 */
	STACKTAP_A_STASH_BYTES,		/* u64 */
	STACKTAP_A_SOURCES,		/* nest of SOURCE */
	STACKTAP_A_SOURCE,		/* nest of enum stacktap_src_attr */
	STACKTAP_A_FILTER,		/* nest of enum stacktap_filter_attr */
	STACKTAP_A_CPU,			/* nest */
	STACKTAP_A_CPU_ID,		/* u32 */
	STACKTAP_A_CPU_STATE,		/* u8, enum stacktap_cpu_state */
	STACKTAP_A_COUNTS,		/* nest of enum stacktap_cnt_attr; repeated, one per source */
	STACKTAP_A_TWO_PHASE,		/* flag: two phases for every sample (tests and benchmarks) */
	STACKTAP_A_EVENT_KIND,		/* u8, enum stacktap_event */
	STACKTAP_A_EVENT_TIME,		/* u64, time */
	STACKTAP_A_EVENT_COUNT,		/* u64 */
	STACKTAP_A_SRC_ID,		/* u32, in EVENT */
	STACKTAP_A_ERRNO,		/* u32, positive, in EVENT and, from 1.9 on, CPU */
	STACKTAP_A_TABLES,		/* u32 */
	STACKTAP_A_TABLE_ROWS,		/* u64 */
	STACKTAP_A_TABLE_BYTES,		/* u64 */
	STACKTAP_A_TABLE_LIMIT,		/* u64 */
	STACKTAP_A_LISTS,		/* u32 */
	STACKTAP_A_LIST_BYTES,		/* u64 */
	STACKTAP_A_LISTS_REFUSED,	/* u64, lists not copied at fork, for the limits or want of memory */
	STACKTAP_A_TABLE_HITS,		/* u64, stacks walked with a mapping list */
	STACKTAP_A_TABLE_MISSES,	/* u64, stacks walked without, while the session used tables */
	STACKTAP_A_TABLE_FRAMES,	/* u64, frames found by walks with a list */
	STACKTAP_A_TABLE_FP_FRAMES,	/* u64, those of them that a frame pointer found */
	STACKTAP_A_TABLE,		/* nest */
	STACKTAP_A_TABLE_ID,		/* u64 */
	STACKTAP_A_TABLE_USERS,		/* u32 */
	STACKTAP_A_TABLE_HIT,		/* u64, time when a walk last used it, to a second; 0: never */
	STACKTAP_A_SLICE_BYTES,		/* u32, 0: no slices; else a multiple of 8, MIN..MAX_SLICE_BYTES */
	STACKTAP_A_SLICE_EVERY,		/* u32, one of so many samples walked with a list has a slice, too */
	STACKTAP_A_SLICES,		/* u64, slices written */
	STACKTAP_A_SLICES_REFUSED,	/* u64, slices for which there was no room */
	STACKTAP_A_TABLE_SEARCHES,	/* u64, frames whose rule was searched for, not remembered; 1.4 */
	STACKTAP_A_SLICE_MAX_BYTES,	/* u32, as SLICE_BYTES, of stacks known to be that deep; 1.5 */
	STACKTAP_A_HANDLER_NS,		/* u64; 1.6, as the next three */
	STACKTAP_A_HANDLER_TIMES,	/* nest: attribute type is the bucket + 1 */
	STACKTAP_A_DRAIN_NS,		/* u64 */
	STACKTAP_A_DRAIN_TIMES,		/* nest: attribute type is the bucket + 1 */
	STACKTAP_A_BUDGET_NS,		/* u32, mean of an overflow handler, 0: none; 1.8, as the next five */
	STACKTAP_A_DEGRADED,		/* u32, steps taken to keep it, 1..7; 0: none */
	STACKTAP_A_DEGRADATIONS,	/* u64, times that a step was taken */
	STACKTAP_A_RATES_REFUSED,	/* u64, times that perf refused a counter another rate for it */
	STACKTAP_A_KERNEL_FRAMES,	/* u32, depth limit of kernel stacks as it is now */
	STACKTAP_A_RATE_DIVISOR,	/* u32, of all rates as they are now */
	STACKTAP_A_OFFLINES,		/* u64, times that the CPU left since it has its ring; 1.10, as the next */
	STACKTAP_A_EVENT_LOST,		/* nest: attribute type is enum stacktap_lost + 1 */
	STACKTAP_A_CEILING,		/* u32, permille of each CPU, 0: none; 1.11 */
	__STACKTAP_A_MAX,
	STACKTAP_A_MAX = __STACKTAP_A_MAX - 1
};

enum stacktap_state {
	STACKTAP_STATE_STOPPED = 1,
	STACKTAP_STATE_RUNNING,
};

enum stacktap_src_attr {
	STACKTAP_SRC_UNSPEC,
	STACKTAP_SRC_PAD,
	STACKTAP_SRC_ID,		/* u32, below MAX_SOURCES */
	STACKTAP_SRC_NAME,		/* string: as the user named the event ("cycles", "cpu-clock") */
	STACKTAP_SRC_TYPE,		/* u32, perf_event_attr.type */
	STACKTAP_SRC_CONFIG,		/* u64 */
	STACKTAP_SRC_CONFIG1,		/* u64 */
	STACKTAP_SRC_CONFIG2,		/* u64 */
	STACKTAP_SRC_MODE,		/* u8, enum stacktap_mode; default PERIOD */
	STACKTAP_SRC_PERIOD,		/* u64, events (nanoseconds for clocks) per sample */
	STACKTAP_SRC_RATE_HZ,		/* u32, samples per second of a busy CPU, 1..MAX_RATE_HZ */
	STACKTAP_SRC_NOMINAL_HZ,	/* u64, events per second of a busy CPU */
	STACKTAP_SRC_FLAGS,		/* u32, STACKTAP_SRC_* below */
	STACKTAP_SRC_FALLBACK_ERRNO,	/* u32, positive; out only */
	STACKTAP_SRC_FALLBACK_CPUS,	/* u32, CPUs on which cpu-clock stands in; out only */
	__STACKTAP_SRC_ATTR_MAX,
	STACKTAP_SRC_ATTR_MAX = __STACKTAP_SRC_ATTR_MAX - 1
};

#define STACKTAP_SRC_EXCLUDE_USER	(1U << 0)	/* do not count in user mode */
#define STACKTAP_SRC_EXCLUDE_KERNEL	(1U << 1)	/* do not count in the kernel */
#define STACKTAP_SRC_NO_FALLBACK	(1U << 2)	/* fail rather than stand in cpu-clock */
#define STACKTAP_SRC_NO_JITTER		(1U << 3)	/* each period the same; 1.11 */
#define STACKTAP_SRC_PRECISE_SHIFT	4		/* two bits: reserved; EOPNOTSUPP unless 0 */
#define STACKTAP_SRC_PRECISE_MASK	(3U << STACKTAP_SRC_PRECISE_SHIFT)
#define STACKTAP_SRC_FLAGS_ALL		(STACKTAP_SRC_EXCLUDE_USER | STACKTAP_SRC_EXCLUDE_KERNEL | \
					 STACKTAP_SRC_NO_FALLBACK | STACKTAP_SRC_NO_JITTER | \
					 STACKTAP_SRC_PRECISE_MASK)

/*
 * Conditions are ANDed, the values of one are ORed; one that is absent does not restrict. They are
 * asked of the task that the overflow interrupted, before any stack is walked. Uids are effective ones
 * in the initial user namespace, as ps has them. A cgroup stands for its subtree, and the filter holds
 * it: one that is removed meanwhile lets nothing pass, and its id names no other.
 */
enum stacktap_filter_attr {
	STACKTAP_FILTER_UNSPEC,
	STACKTAP_FILTER_CPUS,		/* binary: bitmap of CPUs, __u64 words, bit 0 of word 0 is CPU 0 */
	STACKTAP_FILTER_TGIDS,		/* binary: __u32[], at most MAX_TGIDS, no zero */
	STACKTAP_FILTER_FLAGS,		/* u32, STACKTAP_FILTER_* below */
	STACKTAP_FILTER_TIDS,		/* binary: __u32[], no zero; 1.7, as all that follow */
	STACKTAP_FILTER_UIDS,		/* binary: __u32[], not 0xffffffff */
	STACKTAP_FILTER_COMMS,		/* binary: char[][COMM_LEN], zero behind the name, none empty */
	STACKTAP_FILTER_CGROUP_FDS,	/* binary: __s32[], directories of cgroups, of the sender; in only */
	STACKTAP_FILTER_CGROUPS,	/* binary: __u64[], ids (inode numbers on 64-bit kernels) */
	STACKTAP_FILTER_BYTES,		/* u32, memory that the filter takes; out only */
	STACKTAP_FILTER_PARTIAL,	/* flag: TGIDS, TIDS and UIDS are left out; out only; 1.11 */
	__STACKTAP_FILTER_ATTR_MAX,
	STACKTAP_FILTER_ATTR_MAX = __STACKTAP_FILTER_ATTR_MAX - 1
};

#define STACKTAP_FILTER_USER_ONLY	(1U << 0)	/* only overflows in user mode */
#define STACKTAP_FILTER_KERNEL_ONLY	(1U << 1)	/* only overflows in the kernel */
#define STACKTAP_FILTER_EXCLUDE_IDLE	(1U << 2)	/* not the idle task */
#define STACKTAP_FILTER_FLAGS_ALL	(STACKTAP_FILTER_USER_ONLY | STACKTAP_FILTER_KERNEL_ONLY | \
					 STACKTAP_FILTER_EXCLUDE_IDLE)

enum stacktap_cnt_attr {
	STACKTAP_CNT_UNSPEC,
	STACKTAP_CNT_PAD,
	STACKTAP_CNT_SRC_ID,		/* u32 */
	STACKTAP_CNT_TYPE,		/* u32, what counts on this CPU: perf_event_attr.type */
	STACKTAP_CNT_CONFIG,		/* u64 */
	STACKTAP_CNT_PERIOD,		/* u64 */
	STACKTAP_CNT_FALLBACK_ERRNO,	/* u32, positive, 0: none */
	STACKTAP_CNT_CALLS,		/* u64, and so on */
	STACKTAP_CNT_RECORDED,
	STACKTAP_CNT_FILTERED,
	STACKTAP_CNT_THROTTLED,
	STACKTAP_CNT_LOST,		/* nest: attribute type is enum stacktap_lost + 1 */
	STACKTAP_CNT_ENABLED_NS,
	STACKTAP_CNT_RUNNING_NS,
	STACKTAP_CNT_MOVED,
	STACKTAP_CNT_STALE,
	STACKTAP_CNT_KERNEL_END,	/* nest: attribute type is enum stacktap_end + 1 */
	STACKTAP_CNT_USER_END,		/* nest: attribute type is enum stacktap_end + 1 */
	STACKTAP_CNT_STALLED,		/* u64, times that overflows had ceased and it was set anew */
	STACKTAP_CNT_SHARE,		/* u32, percent of the time that it ran; 1.9 */
	STACKTAP_CNT_MULTIPLEXED,	/* u64, times that this fell below MULTIPLEX_PERCENT; 1.9 */
	STACKTAP_CNT_RAISES,		/* u64, times that the handler doubled the period at once; 1.11 */
	STACKTAP_CNT_TIMES_AT,		/* u64, ns of CLOCK_MONOTONIC: _ENABLED_NS, _RUNNING_NS; 1.11 */
	STACKTAP_CNT_MISSED,		/* u64, periods that late timers swallowed; 1.11 */
	STACKTAP_CNT_IN_PLACE,		/* u64, samples that an interrupt of two phases finished itself; 1.13 */
	STACKTAP_CNT_PUT_OFF,		/* u64, walks that one began and left to phase 2; 1.13 */
	STACKTAP_CNT_FALLBACK_RECORDED,	/* u64, of _RECORDED, those of cpu-clock in a fallback; 1.14 */
	__STACKTAP_CNT_ATTR_MAX,
	STACKTAP_CNT_ATTR_MAX = __STACKTAP_CNT_ATTR_MAX - 1
};

enum stacktap_event {
	STACKTAP_EVENT_SESSION_CREATED = 1,
	STACKTAP_EVENT_SESSION_STARTED,
	STACKTAP_EVENT_SESSION_STOPPED,
	STACKTAP_EVENT_SESSION_CHANGED,	/* sources or filters */
	STACKTAP_EVENT_SESSION_DESTROYED,
	STACKTAP_EVENT_CPU_ONLINE,	/* CPU_ID; from 1.10 on EVENT_COUNT, as the next two */
	STACKTAP_EVENT_CPU_OFFLINE,	/* CPU_ID */
	STACKTAP_EVENT_FALLBACK,	/* CPU_ID, SRC_ID, ERRNO */
	STACKTAP_EVENT_THROTTLE,	/* CPU_ID, SRC_ID, EVENT_COUNT */
	STACKTAP_EVENT_LOSS,		/* CPU_ID, SRC_ID, EVENT_COUNT; from 1.10 on EVENT_LOST */
	STACKTAP_EVENT_STALL,		/* CPU_ID; from 1.9 on SRC_ID and EVENT_COUNT */
	STACKTAP_EVENT_DEGRADED,	/* EVENT_COUNT: A_DEGRADED by now; 1.8, as the next */
	STACKTAP_EVENT_RECOVERED,	/* EVENT_COUNT: the same, absent when it is 0 */
	STACKTAP_EVENT_MULTIPLEX,	/* CPU_ID, SRC_ID, EVENT_COUNT; 1.9, as the next */
	STACKTAP_EVENT_MULTIPLEX_END,	/* the same */
	STACKTAP_EVENT_NO_COUNTER,	/* CPU_ID, ERRNO, EVENT_COUNT: CPUs; 1.9 */
	STACKTAP_EVENT_FALLBACK_END,	/* CPU_ID, SRC_ID, EVENT_COUNT, ERRNO: of the fallback; 1.11 */
	STACKTAP_EVENT_KINDS
};

#endif /* _UAPI_LINUX_STACKTAP_H */
