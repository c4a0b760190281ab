/* SPDX-License-Identifier: Apache-2.0 */
/* Ring images and side-band rings made by hand, byte for byte as the kernel writes them. */
#ifndef STACKTAP_TESTS_RECORDS_H
#define STACKTAP_TESTS_RECORDS_H

#include <linux/stacktap.h>

#include "capture/sideband.h"

struct records {
	uint8_t *data;		/* aligned to 8 */
	size_t bytes, capacity;
};

void records_free(struct records *records);
/* Room for @bytes more, zeroed. Earlier pointers become invalid. */
void *records_add(struct records *records, size_t bytes);

struct sample_spec {
	uint64_t time;
	uint32_t tgid, tid, cpu;
	uint64_t start_time, exec_id, period;
	uint16_t source, flags;
	const uint64_t *kernel_ips, *user_ips;
	uint32_t kernel_count, user_count;
	const char *comm;
	uint8_t user_end;		/* 0: complete when there is a user part */
	const uint16_t *exact;
	uint32_t exact_count;
	const struct stacktap_regs *regs; /* NULL: neither registers nor a slice */
	const void *slice;
	uint32_t slice_bytes;
	uint64_t slice_address;
	uint16_t slice_end;		/* why the slice has no more */
};

/* The sample's offset in the image. */
size_t records_sample(struct records *records, const struct sample_spec *spec);
void records_config(struct records *records, uint16_t source, uint16_t mode, uint32_t rate_hz,
		    uint64_t period, uint32_t perf_type, uint64_t perf_config, const char *name);
void records_lost(struct records *records, uint16_t source, uint16_t reason, uint64_t count);
void records_throttle(struct records *records, uint16_t source, uint64_t count);
void records_stall(struct records *records, uint16_t source, uint64_t count);
void records_missed(struct records *records, uint16_t source, uint64_t count);
/* Without counts. */
void records_cpu(struct records *records, uint16_t state);

/* A side-band ring in memory, without a kernel behind it. */
struct sideband *fake_sideband_new(uint32_t cpu, size_t data_bytes);
void fake_sideband_free(struct sideband *sideband);
void fake_mmap(struct sideband *sideband, uint64_t time, uint32_t pid, uint64_t address,
	       uint64_t length, uint64_t file_offset, uint64_t inode, const char *path);
void fake_comm(struct sideband *sideband, uint64_t time, uint32_t pid, const char *comm,
	       bool is_exec);
void fake_task(struct sideband *sideband, uint32_t type, uint64_t time, uint32_t pid, uint32_t tid,
	       uint32_t parent_pid);
void fake_lost(struct sideband *sideband, uint64_t time, uint64_t count);
/* Raw bytes as a record; the header's size is @claimed. */
void fake_raw(struct sideband *sideband, uint16_t type, uint16_t claimed, const void *body,
	      size_t bytes);

#endif /* STACKTAP_TESTS_RECORDS_H */
