// SPDX-License-Identifier: Apache-2.0
#include "service/tap.h"

#include <string.h>

static void put(struct tap *tap, const uint8_t *data, size_t size)
{
	uint8_t *room = buffer_reserve(&tap->bytes, sizeof(size) + size);

	if (!room) {
		tap->is_full = true;
		return;
	}
	memcpy(room, &size, sizeof(size));
	memcpy(room + sizeof(size), data, size);
	tap->bytes.size += sizeof(size) + size;
}

void taps_put(struct taps *taps, const uint8_t *data, size_t size)
{
	pthread_mutex_lock(&taps->lock);
	for (size_t i = 0; i < TAPS_MAX; i++)
		if (taps->taps[i].is_open)
			put(&taps->taps[i], data, size);
	pthread_mutex_unlock(&taps->lock);
}

struct tap *tap_open(struct taps *taps)
{
	struct tap *tap = NULL;

	pthread_mutex_lock(&taps->lock);
	for (size_t i = 0; i < TAPS_MAX && !tap; i++)
		if (!taps->taps[i].is_taken)
			tap = &taps->taps[i];
	if (tap) {
		*tap = (struct tap){ .is_taken = true, .is_open = true };
		buffer_init(&tap->bytes, POOL_REPORT);
	}
	pthread_mutex_unlock(&taps->lock);
	return tap;
}

void tap_stop(struct taps *taps, struct tap *tap)
{
	pthread_mutex_lock(&taps->lock);
	tap->is_open = false;
	pthread_mutex_unlock(&taps->lock);
}

bool tap_next(const struct tap *tap, size_t *offset, const uint8_t **ret_data, size_t *ret_size)
{
	if (*offset >= tap->bytes.size)
		return false;
	memcpy(ret_size, tap->bytes.data + *offset, sizeof(*ret_size));
	*ret_data = tap->bytes.data + *offset + sizeof(*ret_size);
	*offset += sizeof(*ret_size) + *ret_size;
	return true;
}

void tap_close(struct taps *taps, struct tap *tap)
{
	pthread_mutex_lock(&taps->lock);
	buffer_free(&tap->bytes);
	*tap = (struct tap){ 0 };
	pthread_mutex_unlock(&taps->lock);
}
