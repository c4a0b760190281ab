/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread A's source of events: the rings of one session and the side band, merged in order.
 *
 * capture_drain() does one round: it snapshots the heads of all rings (acquire), drains the side
 * band of all CPUs and delivers it merged by time, then delivers the ring records up to the
 * snapshot.
 * So every mapping event that happened before a sample is delivered before it. A mapping event
 * newer than a sample may be delivered first; struct mapping::since tells (ties within 10 us go to
 * the newer mapping).
 */
#ifndef STACKTAP_CAPTURE_CAPTURE_H
#define STACKTAP_CAPTURE_CAPTURE_H

#include <linux/stacktap.h>

#include "base/macro.h"

struct capture;

/* side-band events; strings are valid during the call */
struct sideband_mmap {
	uint64_t time;
	uint32_t pid, tid;
	uint64_t address, length, file_offset;
	uint32_t major, minor;
	uint64_t inode, inode_generation;
	const uint8_t *build_id;	/* NULL: the kernel sent the inode instead */
	uint32_t build_id_length;
	const char *path;
};

struct sideband_task {
	uint64_t time;
	uint32_t pid, tid;		/* tgid, tid */
	uint32_t parent_pid, parent_tid; /* FORK */
	const char *comm;		/* COMM */
	bool is_exec;			/* COMM by exec */
};

enum capture_gap {
	CAPTURE_GAP_SIDEBAND_LOST,	/* the kernel dropped side-band records */
	CAPTURE_GAP_CPU_ONLINE,		/* a CPU ran before its side band was opened */
};

/* What a sample's sections hold; NULL and 0 where there is none. Valid during the call. */
struct sample_sections {
	const uint64_t *kernel_ips, *user_ips;	/* leaf first */
	uint32_t kernel_count, user_count;
	const uint16_t *exact;			/* indices of user_ips, as the kernel gives them */
	uint32_t exact_count;
	const struct stacktap_regs *regs;	/* all that its count promises is there */
	bool is_hooked;				/* the slice has a uretprobe's trampoline for a caller */
	const void *slice;			/* of the user stack, aligned to 8 */
	uint32_t slice_bytes;
	uint64_t slice_address;
	uint16_t slice_end;			/* enum stacktap_end: why there is no more of it */
	uint64_t missing;			/* the address that the walk could not read */
};

/* All callbacks run in the thread that calls capture_drain(). Any may be NULL. */
struct capture_ops {
	void (*mmap)(void *ctx, const struct sideband_mmap *event);
	void (*comm)(void *ctx, const struct sideband_task *event);
	void (*fork)(void *ctx, const struct sideband_task *event);
	void (*exit)(void *ctx, const struct sideband_task *event);
	/* kernel text changed (module or BPF loaded or gone) */
	void (*ksymbol)(void *ctx, uint64_t time, uint64_t address, uint32_t length,
			bool is_unregister, const char *name);
	void (*gap)(void *ctx, enum capture_gap reason, uint64_t time, uint32_t cpu);
	/* ring records, in commit order per CPU; the record is valid during the call */
	void (*sample)(void *ctx, const struct stacktap_sample *sample,
		       const struct sample_sections *sections);
	void (*record)(void *ctx, uint32_t cpu, const struct stacktap_record *record);
};

struct capture_options {
	uint32_t ring_bytes;		/* data of one ring, 0: 256 KiB; a page at least */
	uint32_t sideband_bytes;	/* data of one CPU's side band, 0: 32 KiB; the same */
	bool without_sideband;		/* side band refused by perf_event_paranoid: /proc only */
};

/* -errno values of capture_open() that deserve a message of their own, see capture_strerror() */
enum {
	CAPTURE_ENODEV = ENODEV,	/* no /dev/stacktap: the module is not loaded */
	CAPTURE_EPERM = EPERM,
	CAPTURE_EPROTO = EPROTO,	/* the module speaks another ABI major */
};

/* Open a session with one ring and one side-band event per online CPU. */
int capture_open(const struct capture_options *options, const struct capture_ops *ops, void *ctx,
		 struct capture **ret_capture);
void capture_close(struct capture *capture);
/* One sentence: what is wrong and the remedy. Static or thread-local storage. */
const char *capture_strerror(int error);

uint64_t capture_session_id(const struct capture *capture);
const struct stacktap_info *capture_info(const struct capture *capture);

/* Wait until a ring passes its watermark, a CPU appears, capture_wake() or @timeout_ms. */
int capture_wait(struct capture *capture, int timeout_ms);
void capture_wake(struct capture *capture);	/* from any thread or signal handler */

/* One round, see above. *ret_time: everything before this time has been delivered. */
int capture_drain(struct capture *capture, uint64_t *ret_time);

/* An ioctl on the session, from any thread; -errno on failure. */
int capture_request(const struct capture *capture, unsigned long request, void *argument);

/* After STOP: drain, STACKTAP_IOC_FLUSH and drain until the rings are empty. */
int capture_finish(struct capture *capture);

struct capture_stats {
	uint64_t records, samples, bytes;
	uint64_t bad_records;		/* malformed; the rest of that ring's batch was skipped */
	uint64_t sideband_records, sideband_lost;
	uint32_t cpus;
};
void capture_stats(const struct capture *capture, struct capture_stats *ret_stats);

#endif /* STACKTAP_CAPTURE_CAPTURE_H */
