/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What requests carry: a payload as it is, and compressed, each made once for all destinations that want it so
 * and kept until the last of them is done with it. Those that wait are charged to POOL_QUEUES, once.
 */
#ifndef STACKTAP_EXPORT_BODY_H
#define STACKTAP_EXPORT_BODY_H

#include "export/compression.h"
#include "export/encode.h"

/* Bytes of bodies that wait, of all destinations of one exporter. */
struct body_budget {
	_Atomic size_t used;
};

struct body {
	uint8_t *data;
	size_t size;
	size_t plain_size;		/* before compression */
	size_t payload_size;		/* of the payload that it was made of */
	uint64_t samples;
	enum compression compression;
	uint64_t number;		/* of its payload: later ones have larger ones */
	_Atomic unsigned int users;
	struct body_budget *budget;	/* NULL: it is not charged */
};

struct body *body_ref(struct body *body);
void body_unref(struct body *body);	/* NULL is fine */
/* Charge it to the pool and to @budget, of which @max bytes are to be had at most. True if it already is. */
bool body_charge(struct body *body, struct body_budget *budget, size_t max) _must_check_;

/* What is compressed with zstd compressed otherwise. NULL: no memory. */
struct body *body_again(const struct body *body, enum compression compression);

/* One payload on its way, in all the shapes that were asked for. Of one thread. */
struct cargo {
	struct body *bodies[COMPRESSION_COUNT];
	struct body *json_bodies[COMPRESSION_COUNT];
	uint64_t number;
};

/* Takes payload->data: it is there as long as the cargo. -ENOMEM: it is left. */
int cargo_init(struct cargo *cargo, struct payload *payload, uint64_t number);
void cargo_done(struct cargo *cargo);
/*
 * The payload compressed so, or as it is where there is no memory for that. It lives as long as the cargo. NULL: there
 * is none for the payload as JSON.
 */
struct body *cargo_body(struct cargo *cargo, bool is_json, enum compression compression);

#endif /* STACKTAP_EXPORT_BODY_H */
