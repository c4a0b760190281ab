// SPDX-License-Identifier: Apache-2.0
#include "export/body.h"

#include <stdatomic.h>

#include "export/gzip.h"
#include "export/otlp.h"
#include "export/otlp_json.h"
#include "export/zstd.h"

struct body *body_ref(struct body *body)
{
	atomic_fetch_add_explicit(&body->users, 1, memory_order_relaxed);
	return body;
}

void body_unref(struct body *body)
{
	if (!body || atomic_fetch_sub_explicit(&body->users, 1, memory_order_acq_rel) > 1)
		return;
	if (body->budget) {
		atomic_fetch_sub(&body->budget->used, body->size);
		pool_uncharge(POOL_QUEUES, body->size);
	}
	free(body->data);
	free(body);
}

bool body_charge(struct body *body, struct body_budget *budget, size_t max)
{
	if (body->budget)
		return true;
	/* who else changes it only makes it less */
	if (atomic_load(&budget->used) + body->size > max || !pool_charge(POOL_QUEUES, body->size))
		return false;
	atomic_fetch_add(&budget->used, body->size);
	body->budget = budget;
	return true;
}

int cargo_init(struct cargo *cargo, struct payload *payload, uint64_t number)
{
	struct body *body = calloc(1, sizeof(*body));

	if (!body)
		return -ENOMEM;
	*body = (struct body){
		.data = steal_ptr(payload->data), .size = payload->size,
		.plain_size = payload->size, .payload_size = payload->size,
		.samples = payload->samples, .number = number, .users = 1,
	};
	*cargo = (struct cargo){ .bodies[COMPRESSION_NONE] = body, .number = number };
	return 0;
}

void cargo_done(struct cargo *cargo)
{
	for (unsigned int i = 0; i < COMPRESSION_COUNT; i++)
		body_unref(cargo->bodies[i]);
	for (unsigned int i = 0; i < COMPRESSION_COUNT; i++)
		body_unref(cargo->json_bodies[i]);
}

static int compress(struct buffer *buffer, struct buffer *plain, enum compression compression)
{
	switch (compression) {
	case COMPRESSION_GZIP:
		return gzip_compress(buffer, plain->data, plain->size);
	case COMPRESSION_ZSTD:
		return zstd_compress(buffer, plain->data, plain->size);
	default:
		*buffer = *plain;
		*plain = (struct buffer){ .pool = POOL_ENCODE };
		return 0;
	}
}

/* Of what is in @plain; the rest is as @like has it. */
static struct body *body_new(const struct body *like, struct buffer *plain, enum compression compression)
{
	struct body *body = calloc(1, sizeof(*body));
	const size_t plain_size = plain->size;
	struct buffer buffer;
	uint8_t *data;

	buffer_init(&buffer, POOL_ENCODE);
	if (!body || compress(&buffer, plain, compression)) {
		buffer_free(&buffer);
		free(body);
		return NULL;
	}
	/* the pool of what waits takes over; no bytes are kept that are not sent */
	pool_uncharge(POOL_ENCODE, buffer.capacity);
	data = realloc(buffer.data, buffer.size);
	*body = (struct body){
		.data = data ? data : buffer.data, .size = buffer.size, .plain_size = plain_size,
		.payload_size = like->payload_size, .samples = like->samples, .compression = compression,
		.number = like->number, .users = 1,
	};
	return body;
}

static struct body *json_body(struct cargo *cargo, enum compression compression)
{
	const struct body *raw = cargo->bodies[COMPRESSION_NONE];
	struct body **body = &cargo->json_bodies[compression];
	struct buffer json = { .pool = POOL_ENCODE };

	if (!*body && !otlp_json_append(&json, OTLP_DATA_DESCRIPTOR, raw->data, raw->size))
		*body = body_new(raw, &json, compression) ?: body_new(raw, &json, COMPRESSION_NONE);
	buffer_free(&json);
	return *body;
}

struct body *cargo_body(struct cargo *cargo, bool is_json, enum compression compression)
{
	struct body *raw = cargo->bodies[COMPRESSION_NONE];
	/* lent, not the buffer's own */
	struct buffer plain = { .data = raw->data, .size = raw->size, .pool = POOL_ENCODE };

	if (is_json)
		return json_body(cargo, compression);
	if (!cargo->bodies[compression])
		cargo->bodies[compression] = body_new(raw, &plain, compression);
	return cargo->bodies[compression] ?: raw;
}

struct body *body_again(const struct body *body, enum compression compression)
{
	struct buffer plain = { .pool = POOL_ENCODE };
	struct body *again = NULL;

	if (!zstd_decompress(&plain, body->data, body->size, body->plain_size) &&
	    plain.size == body->plain_size)
		again = body_new(body, &plain, compression);
	buffer_free(&plain);
	return again;
}
