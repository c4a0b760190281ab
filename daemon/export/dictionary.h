/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A payload's dictionary under construction. An entry is packed and looked up by its bytes, so two
 * entries of equal value cannot exist: what an entry refers to was interned before it. Entry 0 of
 * each table is the zero value.
 *
 * All functions that return an index return -ENOBUFS when POOL_ENCODE is used up. Entries added
 * since a mark can be taken back, once, before the payload is closed.
 */
#ifndef STACKTAP_EXPORT_DICTIONARY_H
#define STACKTAP_EXPORT_DICTIONARY_H

#include <protobuf-c/protobuf-c.h>

#include "base/buffer.h"
#include "base/index.h"
#include "profile/location.h"

/* values are field numbers in ProfilesDictionary */
enum dictionary_table {
	TABLE_MAPPING = 1,
	TABLE_LOCATION,
	TABLE_FUNCTION,
	TABLE_LINK,
	TABLE_STRING,
	TABLE_ATTRIBUTE,
	TABLE_STACK,
	TABLE_END
};

struct dictionary_entry {
	uint64_t hash;
	uint32_t offset, size;		/* in table bytes, without tag and length */
};

struct dictionary_entries {
	struct buffer bytes;		/* as they will be sent */
	struct buffer entries;		/* struct dictionary_entry */
	uint32_t count;
	struct index index;
};

struct dictionary_mark {
	size_t bytes[TABLE_END];
	uint32_t counts[TABLE_END];
};

/* A key of attributes by its address, which need not hold the same text for ever. */
struct dictionary_key {
	const char *text;
	uint64_t generation;
	int index;
};

enum { DICTIONARY_KEYS = 64 };

struct dictionary {
	struct dictionary_entries tables[TABLE_END];
	struct buffer scratch;
	bool names_ranges;		/* as struct encode_form has them */
	bool repeats_functions;
	const char *kernel_suffix;
	struct dictionary_key keys[DICTIONARY_KEYS];
	int frame_types[1 + RUNTIMES];		/* attribute indices, 0: not yet */
	uint64_t generation;		/* no other dictionary's, and another one when indices given out before hold no more */
};

/* A number that was never given before, from 1. */
uint64_t dictionary_number(void);

void dictionary_init(struct dictionary *dictionary);
void dictionary_free(struct dictionary *dictionary);
/* Empty but for the zero entries. */
int dictionary_reset(struct dictionary *dictionary) _must_check_;
/* Bytes of the ProfilesDictionary message so far. */
size_t dictionary_size(const struct dictionary *dictionary);
void dictionary_mark(const struct dictionary *dictionary, struct dictionary_mark *ret_mark);
void dictionary_take_back(struct dictionary *dictionary, const struct dictionary_mark *mark);
/* Write the message's fields to @at, which has room for dictionary_size(). */
void dictionary_write(const struct dictionary *dictionary, uint8_t *at);
/* Longer strings are cut. */
#define DICTIONARY_STRING_MAX 4096u

/* The index of the entry with these bytes, added when it is new; the second one of a Function that stands twice. */
int dictionary_bytes(struct dictionary *dictionary, enum dictionary_table number, const void *data,
		     size_t size);
/* Of what refers to entries that were interned before. */
int dictionary_message(struct dictionary *dictionary, enum dictionary_table number,
		       const ProtobufCMessage *message);
int dictionary_string(struct dictionary *dictionary, const char *text);
int dictionary_attribute_string(struct dictionary *dictionary, const char *key, const char *value);
/* An array of them. */
int dictionary_attribute_strings(struct dictionary *dictionary, const char *key, const char *const *values,
				 size_t count);
int dictionary_attribute_int(struct dictionary *dictionary, const char *key, int64_t value);
/* The same with a unit, "" for none. */
int dictionary_attribute_measure(struct dictionary *dictionary, const char *key, int64_t value, const char *unit);
int dictionary_attribute_bool(struct dictionary *dictionary, const char *key, bool value);

#endif /* STACKTAP_EXPORT_DICTIONARY_H */
