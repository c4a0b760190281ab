// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as what a ring has (ours, or another's who got hold of it) and as perf's side band of a second CPU,
 * through everything that thread A does with them: no crash, each sample in a window or counted, all memory back.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/pool.h"
#include "capture/replay.h"
#include "capture/sideband.h"
#include "pipeline/drain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIDEBAND_BYTES = 4096, ROUNDS = 4 };

static uint64_t in_windows;

static void take_window(void *ctx, struct window *window)
{
	(void)ctx;
	for (size_t i = 0; i < window->profile_count; i++)
		in_windows += window->counts[i].samples;
	window_free(window);
}

static bool no_room(void *ctx)
{
	(void)ctx;
	return false;
}

/*
 * Make records of what may be none: three bytes are a type, flags and a length in words, the bytes that follow are
 * the rest of the record. Returns how many bytes it has written, of @room at most.
 */
static size_t shape(const uint8_t *data, size_t size, bool is_sideband, uint8_t *ret_bytes, size_t room)
{
	size_t used = 0, length, bytes;

	while (size > 3) {
		length = 24 + 8 * (size_t)(data[2] % 32);
		bytes = min_of(size - 3, length - 8);
		if (used + length > room)
			break;
		memset(ret_bytes + used, 0, length);
		if (is_sideband) {
			struct perf_event_header head = { .type = data[0] % 24, .misc = (uint16_t)(data[1] << 8),
							  .size = (uint16_t)length };

			memcpy(ret_bytes + used, &head, sizeof(head));
		} else {
			struct stacktap_record head = { .type = data[0] % 10, .flags = data[1],
							.size = (uint32_t)length };

			memcpy(ret_bytes + used, &head, sizeof(head));
		}
		memcpy(ret_bytes + used + 8, data + 3, bytes);
		used += length;
		data += 3 + bytes;
		size -= 3 + bytes;
	}
	return used;
}

/* Half of the bytes is a batch of records, the other half is in the side band's ring. */
static void feed(struct drain *drain, struct sideband *sideband, const uint8_t *data, size_t size,
		 struct capture_stats *stats)
{
	static uint64_t scratch[SIDEBAND_MAX_RECORD / 8];
	static uint8_t made[SIDEBAND_BYTES];
	size_t half = size / 2, bytes, room = 16 * size + 512;
	bool is_raw = size && data[0] & 1;
	uint8_t *batch = aligned_alloc(8, (room + 15) & ~(size_t)7);

	if (!batch)
		abort();
	bytes = is_raw ? min_of(half, sizeof(made)) & ~(size_t)7 : shape(data, half, true, made, sizeof(made));
	if (is_raw)
		memcpy(made, data, bytes);
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)(uintptr_t)sideband->data)[(sideband->page->data_head + i) % SIDEBAND_BYTES] = made[i];
	sideband->page->data_head += bytes;
	sideband_snapshot(sideband);
	sideband_merge(&sideband, 1, UINT64_MAX, scratch, &drain_ops, drain, stats);
	bytes = is_raw ? size - half : shape(data + half, size - half, false, batch, room);
	if (is_raw)
		memcpy(batch, data + half, bytes);
	ring_parse(batch, bytes, 0, &drain_ops, drain, stats);
	free(batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct control_source sources[] = { { .id = 0, .name = "cycles" },
							 { .id = 1, .name = "page-faults" } };
	const struct drain_options options = { .sources = sources, .source_count = 2 };
	const struct drain_output output = { .window = take_window, .wait = no_room };
	static uint8_t ring[SIDEBAND_BYTES];
	struct perf_event_mmap_page page = { 0 };
	struct sideband sideband = { .cpu = 1, .fd = -1, .page = &page, .data = ring,
				     .data_bytes = SIDEBAND_BYTES };
	struct capture_stats stats = { 0 };
	struct drain_stats drained;
	struct drain *drain;

	log_setup("fuzz", LOG_LEVEL_ERROR);
	in_windows = 0;
	if (drain_new(&options, &output, &drain) < 0)
		abort();
	for (size_t i = 0; i < ROUNDS; i++) {
		feed(drain, &sideband, data + size * i / ROUNDS, size / ROUNDS, &stats);
		drain_round(drain, i * UINT64_C(1000000000));
	}
	drain_flush(drain, UINT64_MAX);
	drain_stats(drain, &drained);
	if (in_windows + drained.unplaced + drained.deferred.waiting > stats.samples)
		abort();
	drain_free(drain);
	if (pool_get(POOL_AGGREGATE)->used || pool_get(POOL_PROCESSES)->used || pool_get(POOL_DEFERRED)->used)
		abort();
	return 0;
}
