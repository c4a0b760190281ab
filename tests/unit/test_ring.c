// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <string.h>

#include "capture/replay.h"
#include "capture/ring.h"
#include "records.h"

struct seen {
	uint64_t samples, records, config_name_ok;
	uint64_t kernel_sum, user_sum;
	uint32_t kernel_count, user_count, exact_count, cpu;
	uint64_t exact_sum, regs_sum, slice_sum, slice_address;
	uint32_t slice_bytes;
	uint64_t times[64];
};

static void on_sample(void *ctx, const struct stacktap_sample *sample,
		      const struct sample_sections *sections)
{
	struct seen *seen = ctx;

	seen->times[seen->samples++ % ARRAY_SIZE(seen->times)] = sample->header.time;
	seen->kernel_count = sections->kernel_count;
	seen->user_count = sections->user_count;
	seen->exact_count = sections->exact_count;
	seen->slice_bytes = sections->slice_bytes;
	seen->slice_address = sections->slice_address;
	/* touch every byte that was promised: the sanitizer tells when it is not there */
	for (uint32_t i = 0; i < sections->kernel_count; i++)
		seen->kernel_sum += sections->kernel_ips[i];
	for (uint32_t i = 0; i < sections->user_count; i++)
		seen->user_sum += sections->user_ips[i];
	for (uint32_t i = 0; i < sections->exact_count; i++)
		seen->exact_sum += sections->exact[i];
	for (uint32_t i = 0; sections->regs && i < sections->regs->count; i++)
		seen->regs_sum += sections->regs->regs[i];
	for (uint32_t i = 0; i < sections->slice_bytes; i++)
		seen->slice_sum += ((const uint8_t *)sections->slice)[i];
}

static void on_record(void *ctx, uint32_t cpu, const struct stacktap_record *record)
{
	struct seen *seen = ctx;
	const void *p = record;

	seen->records++;
	seen->cpu = cpu;
	if (record->type == STACKTAP_RECORD_CONFIG)
		seen->config_name_ok += strlen(((const struct stacktap_config *)p)->name) <
					STACKTAP_NAME_LEN;
	if (record->type == STACKTAP_RECORD_LOST) {
		const struct stacktap_lost_record *lost = p;
		size_t count = (record->size - sizeof(*lost)) / sizeof(lost->entries[0]);

		for (size_t i = 0; i < count; i++)
			seen->kernel_sum += lost->entries[i].count;
	}
	if (record->type == STACKTAP_RECORD_CPU) {
		const struct stacktap_cpu_record *state = p;

		for (size_t i = 0; i < state->sources; i++)
			seen->kernel_sum += state->counts[i].lost[STACKTAP_LOST_TOO_BIG];
	}
}

static const struct capture_ops ops = { .sample = on_sample, .record = on_record };

static const uint64_t kernel_ips[] = { 1, 2, 3 };
static const uint64_t user_ips[] = { 10, 20 };

static const uint16_t exact[] = { 1 };
static const uint8_t slice[24] = { 1, [23] = 2 };

/* With all that a sample can carry for its user stack to be walked later. */
static size_t add_late(struct records *records, uint64_t time)
{
	union {
		struct stacktap_regs head;
		uint64_t words[sizeof(struct stacktap_regs) / 8 + 17];
	} regs = { .words = { 0 } };

	regs.head.count = 17;
	regs.head.regs[16] = 5;
	return records_sample(records, &(struct sample_spec){
					       .time = time,
					       .user_ips = user_ips,
					       .user_count = 2,
					       .exact = exact,
					       .exact_count = 1,
					       .regs = &regs.head,
					       .slice = slice,
					       .slice_bytes = sizeof(slice),
					       .slice_address = 0x7fff0000,
				       });
}

static size_t add_sample(struct records *records, uint64_t time)
{
	return records_sample(records, &(struct sample_spec){
					       .time = time,
					       .tgid = 100,
					       .kernel_ips = kernel_ips,
					       .kernel_count = 3,
					       .user_ips = user_ips,
					       .user_count = 2,
				       });
}

/* An exact copy on the heap, so that one byte too far is seen. */
static int parse(const void *data, size_t bytes, struct seen *seen, struct capture_stats *stats)
{
	uint8_t *copy = malloc(bytes ? bytes : 1);
	int r;

	if (bytes)
		memcpy(copy, data, bytes);
	*seen = (struct seen){ 0 };
	*stats = (struct capture_stats){ 0 };
	r = ring_parse(copy, bytes, 3, &ops, seen, stats);
	free(copy);
	return r;
}

static void test_whole_records(void **state)
{
	struct records records = { 0 };
	struct capture_stats stats;
	struct seen seen;

	(void)state;
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 99, 1000, 0, 0, "cycles");
	add_sample(&records, 5);
	records_lost(&records, 0, STACKTAP_LOST_RING_FULL, 7);
	add_sample(&records, 4);
	assert_int_equal(parse(records.data, records.bytes, &seen, &stats), 0);
	assert_int_equal(seen.samples, 2);
	assert_int_equal(seen.records, 2);
	assert_int_equal(seen.cpu, 3);
	assert_int_equal(seen.times[0], 5);
	assert_int_equal(seen.times[1], 4);
	assert_int_equal(seen.kernel_sum, 2 * 6 + 7);
	assert_int_equal(seen.user_sum, 2 * 30);
	assert_int_equal(stats.records, 4);
	assert_int_equal(stats.samples, 2);
	assert_int_equal(stats.bytes, records.bytes);
	assert_int_equal(stats.bad_records, 0);
	records_free(&records);
}

static void test_unknown_types_and_sections_are_skipped(void **state)
{
	struct records records = { 0 };
	struct stacktap_record *unknown = records_add(&records, 40);
	struct stacktap_sample *sample;
	struct stacktap_section *section;
	struct capture_stats stats;
	struct seen seen;

	(void)state;
	unknown->size = 40;
	unknown->type = 900;
	/* an unknown section of an odd length between nothing and the user half */
	sample = records_add(&records, sizeof(*sample) + 8 + 8 + 8 + 16);
	sample->header.size = sizeof(*sample) + 8 + 8 + 8 + 16;
	sample->header.type = STACKTAP_RECORD_SAMPLE;
	section = (void *)(sample + 1);
	section->kind = 77;
	section->len = 5;
	section = (void *)((uint8_t *)section + 16);
	section->kind = STACKTAP_SECTION_USER_IPS;
	section->len = 16;
	((uint64_t *)(section + 1))[0] = 42;
	assert_int_equal(parse(records.data, records.bytes, &seen, &stats), 0);
	assert_int_equal(seen.samples, 1);
	assert_int_equal(seen.user_count, 2);
	assert_int_equal(seen.user_sum, 42);
	assert_int_equal(seen.records, 1);
	records_free(&records);
}

static void test_registers_and_slices(void **state)
{
	static const struct {
		uint16_t kind;
		uint32_t len;
	} bad[] = {
		{ STACKTAP_SECTION_EXACT_PC, 1 },
		{ STACKTAP_SECTION_REGS, 0 },
		{ STACKTAP_SECTION_REGS, sizeof(struct stacktap_regs) - 1 },
		{ STACKTAP_SECTION_REGS, sizeof(struct stacktap_regs) + 17 * 8 - 1 },
		{ STACKTAP_SECTION_STACK_SLICE, 0 },
		{ STACKTAP_SECTION_STACK_SLICE, 7 },
		{ STACKTAP_SECTION_STACK_SLICE, 33 },
	};
	struct capture_stats stats;
	struct seen seen;

	(void)state;
	for (size_t i = 0; i <= ARRAY_SIZE(bad); i++) {
		struct records records = { 0 };
		size_t offset = add_late(&records, 1) + sizeof(struct stacktap_sample);

		while (i < ARRAY_SIZE(bad)) {
			struct stacktap_section *section = (void *)(records.data + offset);

			if (section->kind == bad[i].kind) {
				/* what is then taken for sections are empty ones */
				if (section->kind == STACKTAP_SECTION_STACK_SLICE)
					memset(section + 1, 0, section->len);
				section->len = bad[i].len;
				break;
			}
			offset += sizeof(*section) + (section->len + 7) / 8 * 8;
		}
		assert_int_equal(parse(records.data, records.bytes, &seen, &stats),
				 i < ARRAY_SIZE(bad) ? -EBADMSG : 0);
		records_free(&records);
	}
	assert_int_equal(seen.exact_count, 1);
	assert_int_equal(seen.exact_sum, 1);
	assert_int_equal(seen.regs_sum, 5);
	assert_int_equal(seen.slice_bytes, sizeof(slice));
	assert_int_equal(seen.slice_address, 0x7fff0000);
	assert_int_equal(seen.slice_sum, 3);
}

static void test_malformed_records_stop_the_batch(void **state)
{
	struct {
		uint32_t size;
		uint16_t source;
		uint32_t section_len;
	} const cases[] = {
		{ .size = 0 },
		{ .size = 8 },
		{ .size = 15 },
		{ .size = 16 },				/* a header, but no sample */
		{ .size = sizeof(struct stacktap_sample) + 4 },
		{ .size = 100000 },
		{ .size = UINT32_MAX },
		{ .size = UINT32_MAX & ~7U },
		{ .source = STACKTAP_MAX_SOURCES },
		{ .source = UINT16_MAX },
		{ .section_len = 1000 },
		{ .section_len = UINT32_MAX },
		{ .section_len = UINT32_MAX - 7 },
		{ .section_len = 7 },			/* addresses are 8 bytes each */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct records records = { 0 };
		struct stacktap_sample *sample;
		struct capture_stats stats;
		struct seen seen;
		size_t offset;

		add_sample(&records, 1);
		offset = add_sample(&records, 2);
		add_sample(&records, 3);
		sample = (void *)(records.data + offset);
		if (cases[i].source)
			sample->source = cases[i].source;
		else if (cases[i].section_len)
			((struct stacktap_section *)(sample + 1))->len = cases[i].section_len;
		else
			sample->header.size = cases[i].size;
		assert_int_equal(parse(records.data, records.bytes, &seen, &stats), -EBADMSG);
		assert_int_equal(seen.samples, 1);
		assert_int_equal(stats.bad_records, 1);
		records_free(&records);
	}
}

static void test_other_records_are_checked(void **state)
{
	struct capture_stats stats;
	struct records records = { 0 };
	struct seen seen;

	(void)state;
	/* a name without an end */
	records_config(&records, 0, STACKTAP_MODE_PERIOD, 1, 1, 0, 0, "x");
	memset(((struct stacktap_config *)(void *)records.data)->name, 'a', STACKTAP_NAME_LEN);
	assert_int_equal(parse(records.data, records.bytes, &seen, &stats), -EBADMSG);
	records_free(&records);

	records_throttle(&records, STACKTAP_MAX_SOURCES, 1);
	assert_int_equal(parse(records.data, records.bytes, &seen, &stats), -EBADMSG);
	records_free(&records);
	records_stall(&records, STACKTAP_MAX_SOURCES, 1);
	assert_int_equal(parse(records.data, records.bytes, &seen, &stats), -EBADMSG);
	records_free(&records);

	/* counts of more sources than there is room for */
	{
		struct stacktap_cpu_record *cpu = records_add(&records, sizeof(*cpu) + 96);

		cpu->header.size = sizeof(*cpu) + 96;
		cpu->header.type = STACKTAP_RECORD_CPU;
		cpu->sources = 8;
	}
	assert_int_equal(parse(records.data, records.bytes, &seen, &stats), -EBADMSG);
	records_free(&records);

	/* half an entry */
	records_lost(&records, 0, 0, 1);
	((struct stacktap_record *)(void *)records.data)->size -= 8;
	assert_int_equal(parse(records.data, records.bytes - 8, &seen, &stats), -EBADMSG);
	records_free(&records);
}

/* Cut anywhere, and with any single byte changed, nothing is read beyond the data. */
static void test_every_cut_and_every_byte(void **state)
{
	struct records records = { 0 };
	struct capture_stats stats;
	struct seen seen;

	(void)state;
	records_config(&records, 1, STACKTAP_MODE_FREQ, 99, 0, 1, 0, "cpu-clock");
	add_sample(&records, 1);
	records_lost(&records, 0, 0, 1);
	records_throttle(&records, 0, 1);
	add_sample(&records, 2);
	add_late(&records, 3);
	for (size_t bytes = 0; bytes <= records.bytes; bytes++)
		parse(records.data, bytes, &seen, &stats);
	for (size_t i = 0; i < records.bytes; i++) {
		uint8_t saved = records.data[i];

		for (unsigned int value = 0; value < 256; value += 3) {
			records.data[i] = (uint8_t)value;
			parse(records.data, records.bytes, &seen, &stats);
			assert_true(stats.bytes <= records.bytes);
		}
		records.data[i] = saved;
	}
	records_free(&records);
}

/* A ring as the kernel maps it: the data twice in a row. */
enum { RING_BYTES = 4096 };

struct fake_ring {
	struct ring ring;
	struct stacktap_consumer_page consumer;
	struct stacktap_producer_page producer;
	uint64_t data[2 * RING_BYTES / 8];
};

static void fake_ring_init(struct fake_ring *fake, uint64_t position)
{
	*fake = (struct fake_ring){ 0 };
	fake->ring.data_bytes = RING_BYTES;
	fake->ring.consumer = &fake->consumer;
	fake->ring.producer = &fake->producer;
	fake->ring.data = (const uint8_t *)fake->data;
	fake->ring.position = position;
	fake->producer.head = position;
	fake->consumer.tail = position;
}

static void fake_ring_write(struct fake_ring *fake, const struct records *records)
{
	uint8_t *data = (uint8_t *)fake->data;

	for (size_t i = 0; i < records->bytes; i++) {
		uint64_t offset = fake->producer.head++ % RING_BYTES;

		data[offset] = data[offset + RING_BYTES] = records->data[i];
	}
}

static void test_ring_wraps(void **state)
{
	struct capture_stats stats = { 0 };
	struct records records = { 0 };
	struct seen seen = { 0 };
	struct fake_ring fake;
	uint64_t sent = 0;

	(void)state;
	fake_ring_init(&fake, UINT64_MAX - 8 * 1000 + 1);
	for (int round = 0; round < 200; round++) {
		records.bytes = 0;
		for (int i = 0; i < 1 + round % 9; i++)
			add_sample(&records, ++sent);
		fake_ring_write(&fake, &records);
		ring_snapshot(&fake.ring);
		ring_consume(&fake.ring, &ops, &seen, &stats);
		assert_int_equal(seen.samples, sent);
		assert_int_equal(seen.times[(sent - 1) % ARRAY_SIZE(seen.times)], sent);
		assert_int_equal(fake.consumer.tail, fake.producer.head);
		assert_true(ring_is_empty(&fake.ring));
	}
	assert_int_equal(stats.bad_records, 0);
	records_free(&records);
}

static void test_ring_reads_up_to_the_snapshot_only(void **state)
{
	struct capture_stats stats = { 0 };
	struct records records = { 0 };
	struct seen seen = { 0 };
	struct fake_ring fake;

	(void)state;
	fake_ring_init(&fake, 0);
	add_sample(&records, 1);
	fake_ring_write(&fake, &records);
	ring_snapshot(&fake.ring);
	fake_ring_write(&fake, &records);
	ring_consume(&fake.ring, &ops, &seen, &stats);
	assert_int_equal(seen.samples, 1);
	assert_int_equal(fake.consumer.tail, records.bytes);
	assert_false(ring_is_empty(&fake.ring));
	/* without a new snapshot there is nothing more */
	ring_consume(&fake.ring, &ops, &seen, &stats);
	assert_int_equal(seen.samples, 1);
	records_free(&records);
}

static void test_ring_ignores_a_scribbled_consumer_page(void **state)
{
	struct capture_stats stats = { 0 };
	struct records records = { 0 };
	struct seen seen = { 0 };
	struct fake_ring fake;

	(void)state;
	fake_ring_init(&fake, 0);
	add_sample(&records, 1);
	for (int i = 0; i < 50; i++) {
		fake.consumer.tail = (uint64_t)i * 0x123456789abcdef;
		fake_ring_write(&fake, &records);
		ring_snapshot(&fake.ring);
		ring_consume(&fake.ring, &ops, &seen, &stats);
		assert_int_equal(fake.consumer.tail, fake.producer.head);
	}
	assert_int_equal(seen.samples, 50);
	assert_int_equal(stats.bad_records, 0);
	records_free(&records);
}

static void test_ring_survives_an_impossible_head(void **state)
{
	const uint64_t heads[] = { RING_BYTES + 8, UINT64_MAX, 12, 1ULL << 63 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		struct capture_stats stats = { 0 };
		struct records records = { 0 };
		struct seen seen = { 0 };
		struct fake_ring fake;

		fake_ring_init(&fake, 0);
		fake.producer.head = heads[i];
		ring_snapshot(&fake.ring);
		ring_consume(&fake.ring, &ops, &seen, &stats);
		assert_int_equal(seen.samples, 0);
		assert_int_equal(stats.bad_records, 1);
		/* and goes on from there */
		fake.producer.head = heads[i] & ~7ULL;
		add_sample(&records, 1);
		fake_ring_write(&fake, &records);
		ring_snapshot(&fake.ring);
		ring_consume(&fake.ring, &ops, &seen, &stats);
		assert_int_equal(seen.samples, 1);
		records_free(&records);
	}
}

static void test_ring_skips_only_the_bad_batch(void **state)
{
	struct capture_stats stats = { 0 };
	struct records records = { 0 };
	struct seen seen = { 0 };
	struct fake_ring fake;

	(void)state;
	fake_ring_init(&fake, 0);
	add_sample(&records, 1);
	add_sample(&records, 2);
	((struct stacktap_record *)(void *)records.data)->size = 4;
	fake_ring_write(&fake, &records);
	ring_snapshot(&fake.ring);
	ring_consume(&fake.ring, &ops, &seen, &stats);
	assert_int_equal(seen.samples, 0);
	assert_int_equal(stats.bad_records, 1);
	assert_int_equal(fake.consumer.tail, fake.producer.head);
	records.bytes = 0;
	add_sample(&records, 3);
	fake_ring_write(&fake, &records);
	ring_snapshot(&fake.ring);
	ring_consume(&fake.ring, &ops, &seen, &stats);
	assert_int_equal(seen.samples, 1);
	records_free(&records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_records),
		cmocka_unit_test(test_unknown_types_and_sections_are_skipped),
		cmocka_unit_test(test_registers_and_slices),
		cmocka_unit_test(test_malformed_records_stop_the_batch),
		cmocka_unit_test(test_other_records_are_checked),
		cmocka_unit_test(test_every_cut_and_every_byte),
		cmocka_unit_test(test_ring_wraps),
		cmocka_unit_test(test_ring_reads_up_to_the_snapshot_only),
		cmocka_unit_test(test_ring_ignores_a_scribbled_consumer_page),
		cmocka_unit_test(test_ring_survives_an_impossible_head),
		cmocka_unit_test(test_ring_skips_only_the_bad_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
