// SPDX-License-Identifier: Apache-2.0
#include "capture/sideband.h"

#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/pool.h"
#include "broker/broker.h"
#include "capture/sideband_event.h"

enum {
	/* a path of PATH_MAX with everything around it: what fits no more may have been dropped */
	SIDEBAND_LARGEST = 4096 + 256,
};

/* What perf_event_paranoid asks for of who opens it is the broker's. */
static int event_open(uint32_t cpu, uint64_t read_format)
{
	return broker_is_there() ? broker_open_sideband(cpu, read_format) : sideband_event_open(cpu, read_format);
}

int sideband_open(uint32_t cpu, size_t data_bytes, struct sideband **ret_sideband)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct sideband *sideband = calloc(1, sizeof(*sideband));
	void *map;
	int r;

	if (!sideband)
		return -ENOMEM;
	sideband->cpu = cpu;
	sideband->reports_lost = true;
	sideband->fd = event_open(cpu, SIDEBAND_FORMAT_LOST);
	if (sideband->fd == -EINVAL) {
		sideband->reports_lost = false;
		sideband->fd = event_open(cpu, 0);
	}
	if (sideband->fd < 0) {
		r = sideband->fd;
		goto free_sideband;
	}
	sideband->map_bytes = page + data_bytes;
	map = mmap(NULL, sideband->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, sideband->fd, 0);
	if (map == MAP_FAILED) {
		/* here EPERM is about locked memory, not about privilege */
		r = errno == EPERM ? -ENOMEM : -errno;
		goto close_fd;
	}
	sideband->page = map;
	sideband->data = (const uint8_t *)map + page;
	sideband->data_bytes = data_bytes;
	/* one ring of a fixed size for each CPU is a bound of its own */
	pool_charge_always(POOL_SIDEBAND, sideband->map_bytes);
	*ret_sideband = sideband;
	return 0;

close_fd:
	close(sideband->fd);
free_sideband:
	free(sideband);
	return r;
}

void sideband_close(struct sideband *sideband)
{
	if (!sideband)
		return;
	pool_uncharge(POOL_SIDEBAND, sideband->map_bytes);
	munmap(sideband->page, sideband->map_bytes);
	close(sideband->fd);
	free(sideband);
}

void sideband_snapshot(struct sideband *sideband)
{
	uint64_t used, lost[2] = { 0 };
	uint64_t margin = SIDEBAND_LARGEST;

	/* pairs with the kernel's barrier between writing a record and moving the head */
	sideband->limit = __atomic_load_n(&sideband->page->data_head, __ATOMIC_ACQUIRE);
	used = sideband->limit - sideband->position;
	/* where the kernel does not tell, a tiny ring would be suspect all the time */
	if (!sideband->reports_lost)
		margin = min_of(margin, sideband->data_bytes / 2);
	if (used + margin <= sideband->data_bytes)
		return;
	/*
	 * A LOST record is only written with the next event that fits: samples of this round would
	 * be taken for sound. So ask, or where the kernel cannot tell suspect the worst.
	 */
	if (!sideband->reports_lost) {
		sideband->is_suspect = true;
	} else if (read(sideband->fd, lost, sizeof(lost)) == sizeof(lost) &&
		   lost[1] > sideband->lost_seen) {
		sideband->lost_new += lost[1] - sideband->lost_seen;
		sideband->lost_seen = lost[1];
		sideband->is_suspect = true;
	}
}

static uint64_t load_u64(const struct sideband *sideband, uint64_t position)
{
	uint64_t value;

	/* multiples of 8 do not wrap inside a value */
	memcpy(&value, sideband->data + position % sideband->data_bytes, sizeof(value));
	return value;
}

/* The next record's size and time; 0: none up to the limit, -EBADMSG. */
static int sideband_peek(const struct sideband *sideband, uint64_t *ret_time)
{
	uint64_t left = sideband->limit - sideband->position, word;
	struct perf_event_header header;

	if (!left)
		return 0;
	if (left > sideband->data_bytes || left % 8)
		return -EBADMSG;
	word = load_u64(sideband, sideband->position);
	memcpy(&header, &word, sizeof(header));
	if (header.size < sizeof(header) + SIDEBAND_TRAILER || header.size % 8 ||
	    header.size > left)
		return -EBADMSG;
	*ret_time = load_u64(sideband, sideband->position + header.size - SIDEBAND_TIME_FROM_END);
	return header.size;
}

static const struct perf_event_header *sideband_record(const struct sideband *sideband,
						       size_t size, uint64_t *buffer)
{
	uint64_t offset = sideband->position % sideband->data_bytes;
	size_t first = min_of((uint64_t)size, sideband->data_bytes - offset);

	if (first == size)
		return (const void *)(sideband->data + offset);
	memcpy(buffer, sideband->data + offset, first);
	memcpy((uint8_t *)buffer + first, sideband->data, size - first);
	return (const void *)buffer;
}

static void sideband_skip(struct sideband *sideband, struct capture_stats *stats)
{
	log_debug("cpu %u: malformed side-band record, batch skipped", sideband->cpu);
	stats->bad_records++;
	sideband->position = sideband->limit;
	sideband->is_suspect = true;
}

static void sideband_deliver(struct sideband *sideband, size_t size, uint64_t *buffer,
			     const struct capture_ops *ops, void *ctx,
			     struct capture_stats *stats)
{
	const struct perf_event_header *record = sideband_record(sideband, size, buffer);
	uint64_t lost = 0;

	stats->sideband_records++;
	if (sideband_parse(record, ops, ctx, &lost) < 0) {
		sideband_skip(sideband, stats);
		return;
	}
	sideband->position += size;
	sideband->lost_recorded += lost;
	/* what read() has told of already needs no second gap */
	if (sideband->lost_recorded > sideband->lost_seen) {
		sideband->lost_new += sideband->lost_recorded - sideband->lost_seen;
		sideband->lost_seen = sideband->lost_recorded;
		sideband->is_suspect = true;
	}
}

void sideband_merge(struct sideband *const *sidebands, size_t count, uint64_t until,
		    uint64_t *buffer, const struct capture_ops *ops, void *ctx,
		    struct capture_stats *stats)
{
	for (;;) {
		struct sideband *next = NULL;
		uint64_t next_time = until, time;
		size_t next_size = 0;

		for (size_t i = 0; i < count; i++) {
			int size = sidebands[i] ? sideband_peek(sidebands[i], &time) : 0;

			if (size < 0) {
				sideband_skip(sidebands[i], stats);
				continue;
			}
			if (!size || time > next_time || (next && time == next_time))
				continue;
			next = sidebands[i];
			next_time = time;
			next_size = (size_t)size;
		}
		if (!next)
			break;
		sideband_deliver(next, next_size, buffer, ops, ctx, stats);
	}
	for (size_t i = 0; i < count; i++) {
		struct sideband *sideband = sidebands[i];

		if (!sideband)
			continue;
		/* the kernel writes over what lies before the tail */
		__atomic_store_n(&sideband->page->data_tail, sideband->position, __ATOMIC_RELEASE);
		if (sideband->is_suspect && ops->gap)
			ops->gap(ctx, CAPTURE_GAP_SIDEBAND_LOST, until, sideband->cpu);
		sideband->is_suspect = false;
		stats->sideband_lost += sideband->lost_new;
		sideband->lost_new = 0;
	}
}
