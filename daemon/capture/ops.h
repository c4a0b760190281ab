/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of the rings and the side band: events, records and gaps, and who is called with them. */
#ifndef STACKTAP_CAPTURE_OPS_H
#define STACKTAP_CAPTURE_OPS_H

#include <linux/stacktap.h>

#include "base/macro.h"

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
/* Is it of a process, which has user frames and their mappings? */
static inline bool sample_has_process(const struct stacktap_sample *sample)
{
	return sample->tgid && !(sample->header.flags & (STACKTAP_SAMPLE_KERNEL_THREAD | STACKTAP_SAMPLE_IDLE));
}

struct capture_ops {
	void (*mmap)(void *ctx, const struct sideband_mmap *event);
	void (*comm)(void *ctx, const struct sideband_task *event);
	void (*fork)(void *ctx, const struct sideband_task *event);
	void (*exit)(void *ctx, const struct sideband_task *event);
	/* kernel text changed (module or BPF loaded or gone) */
	void (*ksymbol)(void *ctx, uint64_t time, uint64_t address, uint32_t length,
			bool is_unregister, const char *name);
	void (*gap)(void *ctx, enum capture_gap reason, uint64_t time, uint32_t cpu);
	void (*sideband_end)(void *ctx);	/* of a round: records follow */
	/* ring records, in commit order per CPU; the record is valid during the call */
	void (*sample)(void *ctx, const struct stacktap_sample *sample,
		       const struct sample_sections *sections);
	void (*record)(void *ctx, uint32_t cpu, const struct stacktap_record *record);
	/*
	 * Of a session that was taken over: from a time whose side band nobody has seen. @is_proven: the process
	 * still runs the image that the sample is of, or the sample has none. All of them come before kept_end(),
	 * and our own session's after it.
	 */
	void (*kept_sample)(void *ctx, const struct stacktap_sample *sample,
			    const struct sample_sections *sections, bool is_proven);
	void (*kept_end)(void *ctx);
};

#endif /* STACKTAP_CAPTURE_OPS_H */
