// SPDX-License-Identifier: Apache-2.0
/* One session with a ring on CPU 0 that takes all samples of a run. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/stacktap.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/netlink.h"
#include "sampler.h"

enum { RING_BYTES = 16 << 20 };

static struct {
	struct control *control;
	uint64_t id;
	bool counts_calls;
	const struct stacktap_producer_page *producer;
} session;

static void session_check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "bench_session: %s: %s\n", what, control_error(session.control));
	errno = -err;
	sampler_die(what);
}

/* Processes in a row, as those of a busy host are, but not of this one. */
static void session_crowd(struct control_filter *filter, uint32_t count)
{
	filter->tgids = calloc(count, sizeof(*filter->tgids));
	if (!filter->tgids)
		sampler_die("processes");
	for (uint32_t i = 0; i < count; i++)
		filter->tgids[i] = 1000000 + i;
	filter->tgid_count = count;
}

void sampler_stacktap_start(const struct sampler_request *request)
{
	struct stacktap_ring_create ring = {
		.size = sizeof(ring),
		.data_bytes = RING_BYTES,
		/* nobody waits, so nobody is to be woken */
		.watermark = RING_BYTES,
	};
	struct stacktap_info info = { .size = sizeof(info) };
	struct control_source source = {
		.type = request->cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.config = request->cycles ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_SW_CPU_CLOCK,
		.mode = STACKTAP_MODE_PERIOD,
		.period = request->period,
		/* without its handler's work nothing draws periods anew: the first one would stay */
		.flags = STACKTAP_SRC_NO_FALLBACK | (request->noop || request->fixed ? STACKTAP_SRC_NO_JITTER : 0),
	};
	struct control_filter filter = { 0 };
	struct control_change change = {
		.sources = &source,
		.source_count = 1,
		.two_phase = request->two_phase,
	};
	int fd;

	snprintf(source.name, sizeof(source.name), "%s", request->cycles ? "cycles" : "cpu-clock");
	fd = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		sampler_die(STACKTAP_DEVICE);
	if (ioctl(fd, STACKTAP_IOC_INFO, &info))
		sampler_die("STACKTAP_IOC_INFO");
	session.id = info.session_id;
	session.counts_calls = request->noop || request->filter;
	if (ioctl(fd, STACKTAP_IOC_RING_CREATE, &ring))
		sampler_die("STACKTAP_IOC_RING_CREATE");
	session.producer = mmap(NULL, (size_t)getpagesize() + 2 * RING_BYTES, PROT_READ, MAP_SHARED,
				fd, (off_t)ring.producer_offset);
	if (session.producer == MAP_FAILED)
		sampler_die("mmap of the ring");
	session_check(control_open(&session.control), "netlink");
	if (request->filter) {
		session_crowd(&filter, request->filter);
		change.filter = &filter;
	}
	session_check(control_set_session(session.control, session.id, &change), "SET_SESSION");
	control_filter_done(&filter);
	if (request->by_tables)
		sampler_tables_load(fd, request->pid);
	session_check(control_start(session.control, session.id), "START");
}

static uint64_t session_user_frames(const struct stacktap_sample *sample)
{
	const uint8_t *at = (const uint8_t *)(sample + 1);
	const uint8_t *end = (const uint8_t *)sample + sample->header.size;
	uint64_t n = 0;

	while (at < end) {
		const struct stacktap_section *section = (const void *)at;

		if (section->kind == STACKTAP_SECTION_USER_IPS)
			n += section->len / sizeof(uint64_t);
		at += sizeof(*section) + ((section->len + 7) & ~7u);
	}
	return n;
}

static int session_add_calls(void *ctx, const struct control_cpu *cpu)
{
	struct sampler_count *count = ctx;

	for (size_t i = 0; i < cpu->count_count; i++)
		count->samples += cpu->counts[i].calls;
	return 0;
}

void sampler_stacktap_stop(pid_t pid, struct sampler_count *ret_count)
{
	const uint8_t *data = (const uint8_t *)session.producer + getpagesize();
	uint64_t head;

	session_check(control_stop(session.control, session.id), "STOP");
	if (session.counts_calls)
		session_check(control_each_cpu(session.control, session.id, session_add_calls,
					       ret_count), "GET_CPU");
	head = __atomic_load_n(&session.producer->head, __ATOMIC_ACQUIRE);
	/* tail stays 0, so the module cannot have gone beyond the end */
	for (uint64_t at = 0; at < head;) {
		const struct stacktap_sample *sample = (const void *)(data + at);

		if (sample->header.type == STACKTAP_RECORD_SAMPLE &&
		    sample->tgid == (uint32_t)pid) {
			ret_count->samples++;
			ret_count->record_bytes += sample->header.size;
			ret_count->user_frames += session_user_frames(sample);
		}
		at += sample->header.size;
	}
	control_close(session.control);
}
