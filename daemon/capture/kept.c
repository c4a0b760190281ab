// SPDX-License-Identifier: Apache-2.0
#include "capture/kept.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "capture/ledger.h"
#include "capture/ring.h"
#include "stacktap/version.h"

enum { KEPT_FLUSH_ROUNDS = 64 };

struct kept {
	int session, own;
	struct ledger *ledger;		/* whoever wrote it may write to it still */
	uint32_t limit;			/* of CPUs in it */
	struct ring **rings;		/* [limit] */
	struct ledger_counts *before;	/* [limit]: what was told of each by who is gone */
	const struct capture_ops *ops;	/* while it is drained */
	void *ctx;
	struct capture_stats *stats;
};

#define refuse(...) fail_with(-ESTALE, __VA_ARGS__)

static int check(struct kept *kept, uint64_t purpose, char *why, size_t size)
{
	struct stacktap_info info = { .size = sizeof(info) };
	const struct ledger *ledger = kept->ledger;

	if (ioctl(kept->session, STACKTAP_IOC_INFO, &info) < 0)
		return refuse(why, size, "its module does not answer: %s", strerror(errno));
	if (info.abi_major != STACKTAP_ABI_MAJOR || strncmp(info.module_version, STACKTAP_VERSION,
							    sizeof(info.module_version)) != 0)
		return refuse(why, size, "its module is version %.31s, the daemon " STACKTAP_VERSION,
			      info.module_version);
	if (info.session_id != ledger->session_id || info.nr_cpu_ids != kept->limit ||
	    info.page_size != ledger->page_bytes)
		return refuse(why, size, "its ledger is of another session");
	if (!purpose || ledger->purpose != purpose)
		return refuse(why, size, "the configuration has changed since");
	return 0;
}

static int map_rings(struct kept *kept, char *why, size_t size)
{
	const struct ledger *ledger = kept->ledger;
	int r = 0;

	kept->rings = calloc(kept->limit, sizeof(struct ring *));
	kept->before = calloc(kept->limit, sizeof(*kept->before));
	if (!kept->rings || !kept->before)
		return refuse(why, size, "out of memory");
	for (uint32_t cpu = 0; cpu < kept->limit && !r; cpu++) {
		const struct ledger_cpu *known = &ledger->cpus[cpu];
		const struct ring_place place = {
			.cpu = cpu, .data_bytes = ledger->ring_bytes, .page_bytes = ledger->page_bytes,
			.consumer_offset = known->consumer_offset, .producer_offset = known->producer_offset,
		};

		if (known->has_ring)
			r = ring_map(kept->session, &place, &kept->rings[cpu]);
		if (r < 0)
			return refuse(why, size, "the ring of CPU %u cannot be mapped: %s", cpu, strerror(-r));
		if (kept->rings[cpu])
			kept->rings[cpu]->position = kept->rings[cpu]->consumer->tail;
	}
	return 0;
}

int kept_open(struct kept_fds *fds, struct kept **ret_kept, char *why, size_t size)
{
	struct kept *kept = calloc(1, sizeof(*kept));
	_cleanup_close_ int memory = fds->ledger;
	int r;

	fds->ledger = -1;
	if (!kept) {
		close(fds->session);
		fds->session = -1;
		return refuse(why, size, "out of memory");
	}
	kept->session = fds->session;
	fds->session = -1;
	r = ledger_open(memory, &kept->ledger, &kept->limit);
	if (r < 0)
		r = refuse(why, size, "its ledger cannot be read: %s",
			   r == -EBADMSG ? "it is damaged or of another version" : strerror(-r));
	if (!r)
		r = check(kept, fds->purpose, why, size);
	if (!r)
		r = map_rings(kept, why, size);
	if (r < 0)
		kept_close(kept);
	else
		*ret_kept = kept;
	return r;
}

void kept_close(struct kept *kept)
{
	if (!kept)
		return;
	for (uint32_t cpu = 0; kept->rings && cpu < kept->limit; cpu++)
		ring_free(kept->rings[cpu]);
	free(kept->rings);
	free(kept->before);
	ledger_free(kept->ledger, kept->limit);
	close(kept->session);
	free(kept);
}

uint64_t kept_session_of(int fd)
{
	struct stacktap_info info = { .size = sizeof(info) };

	return ioctl(fd, STACKTAP_IOC_INFO, &info) < 0 ? 0 : info.session_id;
}

/* A number changes with every exec: who has the sample's now has had it since. */
static bool runs_still(const struct kept *kept, const struct stacktap_sample *sample)
{
	struct stacktap_image image = { .size = sizeof(image), .tgid = sample->tgid };

	return ioctl(kept->own, STACKTAP_IOC_IMAGE, &image) == 0 && image.start_time == sample->start_time &&
	       image.exec_id == sample->exec_id;
}

static void on_sample(void *ctx, const struct stacktap_sample *sample, const struct sample_sections *sections)
{
	struct kept *kept = ctx;
	const bool is_proven = !sample_has_process(sample) || runs_still(kept, sample);

	kept->stats->kept_samples++;
	kept->stats->kept_unproven += !is_proven;
	kept->ops->kept_sample(kept->ctx, sample, sections, is_proven);
}

/* Hotplug is our own session's to tell. What is cumulative was told in part. */
static void on_record(void *ctx, uint32_t cpu, const struct stacktap_record *record)
{
	struct kept *kept = ctx;
	const struct stacktap_throttle *before = ledger_count(&kept->before[cpu], record);
	struct stacktap_throttle rest;

	/* for the case that we are killed as well */
	ledger_note(kept->ledger, kept->limit, cpu, record);
	if (before) {
		rest = *(const struct stacktap_throttle *)(const void *)record;
		rest.count = rest.count > before->count ? rest.count - before->count : 0;
		kept->ops->record(kept->ctx, cpu, &rest.header);
	} else if (record->type == STACKTAP_RECORD_CONFIG || record->type == STACKTAP_RECORD_LOST) {
		kept->ops->record(kept->ctx, cpu, record);
	}
}

static void note_record(void *ctx, uint32_t cpu, const struct stacktap_record *record)
{
	struct kept *kept = ctx;

	ledger_note(kept->ledger, kept->limit, cpu, record);
}

/*
 * Whatever was being delivered as the owner was killed may stand in the journal already, so none of it is delivered
 * again. What the samples behind it count it may not have come as far as to note.
 */
static void pass_taken(struct kept *kept)
{
	static const struct capture_ops ops = { .record = note_record };
	struct capture_stats none = { 0 };

	for (uint32_t cpu = 0; cpu < kept->limit; cpu++) {
		struct ring *ring = kept->rings[cpu];

		if (!ring || ring->position >= kept->ledger->cpus[cpu].taken)
			continue;
		ring->limit = kept->ledger->cpus[cpu].taken;
		ring_consume(ring, &ops, kept, &none);
	}
}

/* From there on cumulative counts are new. */
static void note_before(struct kept *kept)
{
	for (uint32_t cpu = 0; cpu < kept->limit; cpu++)
		kept->before[cpu] = kept->ledger->cpus[cpu].counts;
}

/* What the samples to come count: their CONFIG was read by who is gone. */
static void tell_configs(const struct kept *kept)
{
	for (uint32_t cpu = 0; cpu < kept->limit; cpu++)
		for (uint32_t i = 0; kept->rings[cpu] && i < STACKTAP_MAX_SOURCES; i++) {
			const struct stacktap_config *config = &kept->ledger->cpus[cpu].configs[i];

			if (config->header.size == sizeof(*config) && config->source == i)
				kept->ops->record(kept->ctx, cpu, &config->header);
		}
}

static bool drain_round(struct kept *kept)
{
	static const struct capture_ops inner = { .sample = on_sample, .record = on_record };
	bool had_any = false;

	for (uint32_t cpu = 0; cpu < kept->limit; cpu++) {
		struct ring *ring = kept->rings[cpu];

		if (!ring)
			continue;
		ring_snapshot(ring);
		had_any |= ring->limit != ring->position;
		kept->ledger->cpus[cpu].taken = ring->limit;
		ring_consume(ring, &inner, kept, kept->stats);
	}
	return had_any;
}

int kept_drain(struct kept *kept, int fd, const struct capture_ops *ops, void *ctx, struct capture_stats *stats)
{
	struct stacktap_flush flush = { .size = sizeof(flush) };
	int r = 0;

	kept->own = fd;
	kept->ops = ops;
	kept->ctx = ctx;
	kept->stats = stats;
	stats->kept_sessions++;
	stats->kept_unread_ns += clock_monotonic() - min_of(kept->ledger->drained, clock_monotonic());
	pass_taken(kept);
	note_before(kept);
	tell_configs(kept);
	/* what is still owed may not fit at once: each round makes room for more */
	for (int i = 0; i < KEPT_FLUSH_ROUNDS; i++) {
		bool had_any = drain_round(kept);

		if (ioctl(kept->session, STACKTAP_IOC_FLUSH, &flush) < 0)
			r = -errno;
		if (r < 0 || (!had_any && i))
			break;
	}
	ops->kept_end(ctx);
	log_info("took over session %" PRIu64 " of a daemon that was killed: %" PRIu64 " samples, unread for "
		 "%" PRIu64 " ms, %" PRIu64 " of processes that exited or executed another program",
		 kept->ledger->session_id, stats->kept_samples,
		 (uint64_t)(stats->kept_unread_ns / NSEC_PER_MSEC), stats->kept_unproven);
	return r;
}
