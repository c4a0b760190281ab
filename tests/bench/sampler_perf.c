// SPDX-License-Identifier: Apache-2.0
/* The peer's kernel half: the very events of `perf record -a [-g] -c PERIOD`, on CPU 0. */
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler.h"

enum {
	DATA_BYTES = 16 << 20,
	DWARF_DATA_BYTES = 64 << 20,
	DWARF_STACK_BYTES = 8192,	/* perf record's default */
};

/* what perf record asks for: all that it can */
#ifdef __aarch64__
#define DWARF_REGISTERS ((1ULL << 33) - 1)
#else
#define DWARF_REGISTERS 0xff0fffULL
#endif

/* as sample_type below lays it out */
struct perf_sample {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time;
	uint64_t id;
	uint32_t cpu, reserved;
	uint64_t nr;
	uint64_t ips[];
};

static struct perf {
	int fd;
	bool has_stacks;
	struct perf_event_mmap_page *page;
} perf;

void sampler_perf_start(const struct sampler_request *request)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = request->cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.config = request->cycles ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = request->period,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_ID | PERF_SAMPLE_CPU,
		.read_format = PERF_FORMAT_ID,
		.disabled = 1,
		.inherit = 1,
		.sample_id_all = 1,
		.exclude_guest = 1,
	};

	perf.has_stacks = !request->without_stacks;
	if (perf.has_stacks)
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (request->dwarf) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr.exclude_callchain_user = 1;
		attr.sample_regs_user = DWARF_REGISTERS;
		attr.sample_stack_user = DWARF_STACK_BYTES;
	}
	perf.fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (perf.fd < 0)
		sampler_die("perf_event_open");
	perf.page = mmap(NULL, (size_t)getpagesize() +
			 (request->dwarf ? DWARF_DATA_BYTES : DATA_BYTES), PROT_READ | PROT_WRITE,
			 MAP_SHARED, perf.fd, 0);
	if (perf.page == MAP_FAILED)
		sampler_die("mmap of the perf buffer");
	if (ioctl(perf.fd, PERF_EVENT_IOC_ENABLE, 0))
		sampler_die("PERF_EVENT_IOC_ENABLE");
}

static uint64_t perf_user_frames(const struct perf_sample *sample)
{
	uint64_t n = 0;
	bool is_user = false;

	for (uint64_t i = 0; i < sample->nr; i++) {
		if (sample->ips[i] >= PERF_CONTEXT_MAX)
			is_user = sample->ips[i] == PERF_CONTEXT_USER;
		else
			n += is_user;
	}
	return n;
}

void sampler_perf_stop(pid_t pid, struct sampler_count *ret_count)
{
	const uint8_t *data = (const uint8_t *)perf.page + getpagesize();
	uint64_t head;

	if (ioctl(perf.fd, PERF_EVENT_IOC_DISABLE, 0))
		sampler_die("PERF_EVENT_IOC_DISABLE");
	head = __atomic_load_n(&perf.page->data_head, __ATOMIC_ACQUIRE);
	/* tail stays 0, so the kernel cannot have gone beyond the end */
	for (uint64_t at = 0; at < head;) {
		const struct perf_sample *sample = (const void *)(data + at);

		if (sample->header.type == PERF_RECORD_SAMPLE && sample->pid == (uint32_t)pid) {
			ret_count->samples++;
			ret_count->record_bytes += sample->header.size;
			if (perf.has_stacks)
				ret_count->user_frames += perf_user_frames(sample);
		}
		at += sample->header.size;
	}
}
