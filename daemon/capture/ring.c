// SPDX-License-Identifier: Apache-2.0
#include "capture/ring.h"

#include <stacktap/ring.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/pool.h"
#include "capture/replay.h"

static void ring_unmap(struct ring *ring)
{
	if (ring->consumer)
		munmap(ring->consumer, ring->consumer_bytes);
	if (ring->producer)
		munmap((void *)(uintptr_t)ring->producer, ring->producer_bytes);
}

int ring_create(int fd, struct ring_place *place)
{
	struct stacktap_ring_create request = {
		.size = sizeof(request),
		.cpu = place->cpu,
		.data_bytes = place->data_bytes,
		/* half of what stack slices may take */
		.watermark = place->data_bytes / 8,
	};

	if (ioctl(fd, STACKTAP_IOC_RING_CREATE, &request) < 0)
		return -errno;
	place->consumer_offset = request.consumer_offset;
	place->producer_offset = request.producer_offset;
	return 0;
}

int ring_map(int fd, const struct ring_place *place, struct ring **ret_ring)
{
	struct ring *ring = calloc(1, sizeof(*ring));
	void *map;
	int r;

	if (!ring)
		return -ENOMEM;
	ring->cpu = place->cpu;
	ring->data_bytes = place->data_bytes;
	ring->consumer_bytes = place->page_bytes;
	ring->producer_bytes = place->page_bytes + 2 * (size_t)place->data_bytes;
	map = mmap(NULL, ring->consumer_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   (off_t)place->consumer_offset);
	if (map == MAP_FAILED) {
		r = -errno;
		goto free_ring;
	}
	ring->consumer = map;
	map = mmap(NULL, ring->producer_bytes, PROT_READ, MAP_SHARED, fd,
		   (off_t)place->producer_offset);
	if (map == MAP_FAILED) {
		r = -errno;
		goto unmap;
	}
	ring->producer = map;
	ring->data = (const uint8_t *)map + place->page_bytes;
	/* one ring of a fixed size for each CPU is a bound of its own */
	pool_charge_always(POOL_RINGS, place->data_bytes + 2 * (size_t)place->page_bytes);
	*ret_ring = ring;
	return 0;

unmap:
	ring_unmap(ring);
free_ring:
	free(ring);
	return r;
}

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	pool_uncharge(POOL_RINGS, ring->data_bytes + 2 * ring->consumer_bytes);
	ring_unmap(ring);
	free(ring);
}

void ring_snapshot(struct ring *ring)
{
	ring->limit = stacktap_ring_published(ring->producer);
}

bool ring_is_empty(const struct ring *ring)
{
	return __atomic_load_n(&ring->producer->head, __ATOMIC_RELAXED) == ring->position;
}

static void ring_release(struct ring *ring, uint64_t position)
{
	ring->position = position;
	stacktap_ring_release(ring->consumer, position);
}

void ring_consume(struct ring *ring, const struct capture_ops *ops, void *ctx,
		  struct capture_stats *stats)
{
	uint64_t limit = ring->limit;

	if (limit == ring->position)
		return;
	if (!stacktap_ring_tail_valid(limit, ring->position, ring->data_bytes) || limit % 8) {
		stats->bad_records++;
		log_debug("cpu %u: impossible head %llu, tail %llu", ring->cpu,
			  (unsigned long long)limit, (unsigned long long)ring->position);
		/* go on where it claims to be, rounded to where a record can start */
		ring_release(ring, limit & ~(uint64_t)7);
		return;
	}
	if (ring_parse(ring->data + stacktap_ring_offset(ring->position, ring->data_bytes),
		       limit - ring->position, ring->cpu, ops, ctx, stats) < 0)
		log_debug("cpu %u: malformed record, batch skipped", ring->cpu);
	ring_release(ring, limit);
}
