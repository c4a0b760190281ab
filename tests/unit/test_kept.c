// SPDX-License-Identifier: Apache-2.0
/* The session of a killed daemon, whose heir may be killed as well: what its rings tell is counted once. */
#include "unit.h"

#include <string.h>

#include "base/pool.h"
#include "records.h"

/* with its inside: a session that can be opened is the module's to make */
#include "capture/kept.c"

enum { BYTES = 4096 };

static struct stacktap_consumer_page consumer;
static struct stacktap_producer_page producer;
static _Alignas(8) uint8_t data[2 * BYTES];
static struct ledger *ledger;
static int ledger_fd;
static struct {
	uint64_t throttled, stalled, missed, lost;	/* last told, but for lost */
	uint32_t records;
} told;

static void on_told(void *ctx _unused_, uint32_t cpu, const struct stacktap_record *record)
{
	const struct stacktap_throttle *count = (const void *)record;

	assert_int_equal(cpu, 0);
	told.records++;
	if (record->type == STACKTAP_RECORD_THROTTLE)
		told.throttled = count->count;
	else if (record->type == STACKTAP_RECORD_STALL)
		told.stalled = count->count;
	else if (record->type == STACKTAP_RECORD_MISSED)
		told.missed = count->count;
	else if (record->type == STACKTAP_RECORD_LOST)
		told.lost++;
}

static void on_end(void *ctx _unused_)
{
}

/* The module writes. */
static void write_records(struct records *records)
{
	memcpy(data + producer.head, records->data, records->bytes);
	producer.head += records->bytes;
	records_free(records);
}

/* What the next daemon is told, from where the rings were read to. */
static void take_over(void)
{
	static const struct capture_ops ops = { .record = on_told, .kept_end = on_end };
	struct kept *kept = calloc(1, sizeof(*kept));
	struct ring *ring = calloc(1, sizeof(*ring));
	struct capture_stats stats = { 0 };

	assert_non_null(kept);
	assert_non_null(ring);
	*ring = (struct ring){ .data_bytes = BYTES, .consumer = &consumer, .producer = &producer, .data = data,
			       .position = consumer.tail };
	pool_charge_always(POOL_RINGS, BYTES);
	kept->session = -1;
	assert_int_equal(ledger_open(ledger_fd, &kept->ledger, &kept->limit), 0);
	kept->rings = calloc(1, sizeof(struct ring *));
	kept->before = calloc(1, sizeof(*kept->before));
	assert_non_null(kept->rings);
	assert_non_null(kept->before);
	kept->rings[0] = ring;
	memset(&told, 0, sizeof(told));
	/* there is no session that could be flushed */
	assert_int_equal(kept_drain(kept, -1, &ops, NULL, &stats), -EBADF);
	assert_int_equal(stats.kept_sessions, 1);
	kept_close(kept);
}

static void counts_are_told_once_by_several_heirs(void **state _unused_)
{
	struct records records = { 0 };

	assert_int_equal(ledger_new(1, &ledger_fd, &ledger), 0);
	/* the first daemon read this, and noted it */
	records_throttle(&records, 0, 3);
	ledger_note(ledger, 1, 0, (const void *)records.data);
	write_records(&records);
	consumer.tail = producer.head;

	records_throttle(&records, 0, 5);
	records_stall(&records, 0, 2);
	records_lost(&records, 0, STACKTAP_LOST_RING_FULL, 10);
	records_throttle(&records, 0, 7);
	records_missed(&records, 1, 4);
	write_records(&records);
	take_over();
	assert_int_equal(told.records, 5);
	assert_int_equal(told.throttled, 4);
	assert_int_equal(told.stalled, 2);
	assert_int_equal(told.missed, 4);
	assert_int_equal(told.lost, 1);

	/* that one is killed, too */
	records_throttle(&records, 0, 9);
	records_missed(&records, 1, 5);
	write_records(&records);
	take_over();
	assert_int_equal(told.records, 2);
	assert_int_equal(told.throttled, 2);
	assert_int_equal(told.missed, 1);

	/* and the next one in the middle of what it was delivering, which is not delivered again */
	records_throttle(&records, 0, 20);
	write_records(&records);
	ledger->cpus[0].taken = producer.head;
	records_throttle(&records, 0, 21);
	write_records(&records);
	take_over();
	assert_int_equal(told.records, 1);
	assert_int_equal(told.throttled, 1);
	ledger_free(ledger, 1);
	close(ledger_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_are_told_once_by_several_heirs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
