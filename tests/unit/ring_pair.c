// SPDX-License-Identifier: Apache-2.0
#include "ring_pair.h"

#include "unit.h"

#include <string.h>
#include <sys/mman.h>

#include <stacktap/ring.h>

enum { UNKNOWN_TYPE = 900 };	/* the reader hands on whole what it does not know */

static void map_at(uint8_t *address, size_t bytes, int fd)
{
	assert_ptr_equal(mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
			 address);
}

void ring_pair_init(struct ring_pair *pair, uint64_t data_bytes, uint64_t position)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	_cleanup_close_ int fd = memfd_create("ring", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)data_bytes), 0);
	*pair = (struct ring_pair){ .area_bytes = 2 * page + 2 * data_bytes };
	pair->area = mmap(NULL, pair->area_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(pair->area, MAP_FAILED);
	pair->data = pair->area + page;
	map_at(pair->data, data_bytes, fd);
	map_at(pair->data + data_bytes, data_bytes, fd);
	pair->head = pair->producer.head = pair->consumer.tail = position;
	pair->ring = (struct ring){
		.data_bytes = data_bytes,
		.consumer = &pair->consumer,
		.producer = &pair->producer,
		.data = pair->data,
		.position = position,
		.limit = position,
	};
}

void ring_pair_done(struct ring_pair *pair)
{
	munmap(pair->area, pair->area_bytes);
}

static uint8_t body_byte(uint64_t number, uint32_t index)
{
	return (uint8_t)((number * 131 + index * 7 + (number >> 8)) ^ index >> 8);
}

static uint32_t record_size(uint32_t body_bytes)
{
	return stacktap_ring_align((uint32_t)sizeof(struct stacktap_record) + body_bytes);
}

static void count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

bool ring_pair_write(struct ring_pair *pair, uint64_t number, uint32_t body_bytes)
{
	uint64_t data_bytes = pair->ring.data_bytes;
	int64_t room = stacktap_ring_room(&pair->consumer, pair->head, data_bytes);
	uint32_t size = record_size(body_bytes);
	struct stacktap_record *record;
	uint8_t *body;

	if (room < 0) {
		count(&pair->bad_tails);
		return false;
	}
	if (room < size) {
		count(&pair->refused);
		return false;
	}
	record = (void *)(pair->data + stacktap_ring_offset(pair->head, data_bytes));
	record->size = size;
	record->type = UNKNOWN_TYPE;
	record->flags = 0;
	record->time = number;
	body = (uint8_t *)(record + 1);
	for (uint32_t i = 0; i < body_bytes; i++)
		body[i] = body_byte(number, i);
	memset(body + body_bytes, 0, size - sizeof(*record) - body_bytes);
	pair->head += size;
	stacktap_ring_publish(&pair->producer, pair->head);
	count(&pair->written);
	return true;
}

bool ring_pair_is(const struct stacktap_record *record, uint64_t number, uint32_t body_bytes)
{
	const uint8_t *body = (const uint8_t *)(record + 1);
	uint32_t padded;

	if (record->type != UNKNOWN_TYPE || record->time != number ||
	    record->size != record_size(body_bytes))
		return false;
	padded = record->size - (uint32_t)sizeof(*record);
	for (uint32_t i = 0; i < padded; i++)
		if (body[i] != (i < body_bytes ? body_byte(number, i) : 0))
			return false;
	return true;
}
