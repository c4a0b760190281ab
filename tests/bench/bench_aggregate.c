// SPDX-License-Identifier: Apache-2.0
/*
 * What thread A costs per sample: ring records of 100,000 distinct stacks, 40 frames deep, of 16
 * processes, in random order, from parsing to the open window. Prints one JSON object per line.
 */
#include <string.h>

#include "base/clock.h"
#include "base/pool.h"
#include "capture/replay.h"
#include "pipeline/drain.h"

#define STACKS 100000u
#define KERNEL_FRAMES 8u
#define USER_FRAMES 32u
#define PROCESSES 16u
#define ROUNDS 20u
#define CODE UINT64_C(0x7f0000000000)
#define CODE_BYTES UINT64_C(0x400000)
#define SAMPLE_BYTES (sizeof(struct stacktap_sample) + 2 * sizeof(struct stacktap_section) + \
		      (KERNEL_FRAMES + USER_FRAMES) * sizeof(uint64_t))

static uint64_t windows;
static uint64_t random_state = 88172645463325252;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void on_window(void *ctx, struct window *window)
{
	(void)ctx;
	windows++;
	window_free(window);
}

static bool on_wait(void *ctx)
{
	(void)ctx;
	return false;
}

static void on_image(void *ctx, struct image *image, struct image *parent)
{
	(void)ctx;
	(void)image;
	(void)parent;
}

static bool on_file(void *ctx, struct image *image, struct mapped_file *file)
{
	(void)ctx;
	(void)image;
	(void)file;
	return true;
}

static uint64_t *put_section(uint64_t *at, uint16_t kind, uint32_t count, uint64_t base,
			     uint64_t range)
{
	const struct stacktap_section section = { .kind = kind, .len = count * 8 };

	memcpy(at, &section, sizeof(section));
	at++;
	/* few callers, many leaves: as real stacks share their outer frames */
	for (uint32_t i = 0; i < count; i++)
		*at++ = base + random_next() % (range >> i / 2) / 16 * 16;
	return at;
}

static void make_records(uint8_t *data, const uint32_t *order)
{
	for (uint32_t i = 0; i < STACKS; i++) {
		uint32_t process = i % PROCESSES;
		uint8_t *record = data + (size_t)order[i] * SAMPLE_BYTES;
		struct stacktap_sample sample = {
			.header = { .size = SAMPLE_BYTES, .type = STACKTAP_RECORD_SAMPLE,
				    .time = UINT64_C(10000000000) + order[i] * 1000 },
			.context = STACKTAP_CONTEXT_IRQ, .kernel_end = STACKTAP_END_COMPLETE,
			.user_end = STACKTAP_END_COMPLETE, .tgid = 1000 + process,
			.tid = 1000 + process, .start_time = 1000, .exec_id = 1,
			.period = 10000000, .comm = "bench",
		};
		uint64_t *at;

		memcpy(record, &sample, sizeof(sample));
		at = (uint64_t *)(void *)(record + sizeof(sample));
		at = put_section(at, STACKTAP_SECTION_KERNEL_IPS, KERNEL_FRAMES,
				 UINT64_C(0xffffffff81000000), 0x100000);
		put_section(at, STACKTAP_SECTION_USER_IPS, USER_FRAMES, CODE, CODE_BYTES);
	}
}

static uint64_t cpu_time(void)
{
	return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

static int make_processes(struct drain *drain)
{
	for (uint32_t i = 0; i < PROCESSES; i++) {
		const struct sideband_mmap event = {
			.time = 1, .pid = 1000 + i, .tid = 1000 + i, .address = CODE,
			.length = CODE_BYTES, .major = 8, .minor = 1, .inode = 42,
			.path = "/usr/bin/bench",
		};

		drain_ops.mmap(drain, &event);
	}
	return 0;
}

int main(void)
{
	const struct drain_options options = { 0 };
	const struct drain_output output = { .observer = { .image = on_image, .file = on_file },
					     .window = on_window, .wait = on_wait };
	uint32_t *order = calloc(STACKS, sizeof(*order));
	uint8_t *data = calloc(STACKS, SAMPLE_BYTES);
	struct capture_stats stats = { 0 };
	struct drain *drain;
	uint64_t start, cold, warm;
	size_t bytes;
	int err = 0;

	/* the budget makes windows of this size impossible; here the cost of one is the question */
	pool_get(POOL_AGGREGATE)->limit = (size_t)2 << 30;
	pool_get(POOL_SYMBOLS)->limit = (size_t)1 << 30;
	if (!order || !data || drain_new(&options, &output, &drain))
		return 1;
	for (uint32_t i = 0; i < STACKS; i++) {
		uint32_t other = (uint32_t)(random_next() % (i + 1));

		order[i] = order[other];
		order[other] = i;
	}
	make_records(data, order);
	make_processes(drain);

	start = cpu_time();
	err = ring_parse(data, STACKS * SAMPLE_BYTES, 0, &drain_ops, drain, &stats);
	cold = cpu_time() - start;
	bytes = atomic_load(&pool_get(POOL_AGGREGATE)->used);
	start = cpu_time();
	for (uint32_t i = 0; i < ROUNDS && !err; i++)
		err = ring_parse(data, STACKS * SAMPLE_BYTES, 0, &drain_ops, drain, &stats);
	warm = cpu_time() - start;
	if (err || windows || stats.samples != (uint64_t)STACKS * (ROUNDS + 1)) {
		fprintf(stderr, "bench_aggregate: %llu samples, %llu windows: %s\n",
			(unsigned long long)stats.samples, (unsigned long long)windows,
			strerror(-err));
		return 1;
	}
	printf("{\"name\": \"drain to aggregate, warm, depth 40, 100,000 stacks\", "
	       "\"value\": %.0f, \"unit\": \"samples per core-second\"}\n",
	       (double)STACKS * ROUNDS * 1e9 / (double)warm);
	printf("{\"name\": \"drain to aggregate, every stack new\", \"value\": %.0f, "
	       "\"unit\": \"samples per core-second\"}\n", (double)STACKS * 1e9 / (double)cold);
	printf("{\"name\": \"memory of a stack of 40 frames in a window\", \"value\": %.1f, "
	       "\"unit\": \"bytes\"}\n", (double)bytes / STACKS);
	drain_free(drain);
	free(data);
	free(order);
	return 0;
}
