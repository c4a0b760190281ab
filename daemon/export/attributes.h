/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of a Resource while they are put together. */
#ifndef STACKTAP_EXPORT_ATTRIBUTES_H
#define STACKTAP_EXPORT_ATTRIBUTES_H

#include "export/encode_options.h"
#include "export/otlp.h"
#include "process/details.h"

/* What is found out about an image, what is configured, and what rules set. */
enum {
	/* its process context's, its environment's */
	ATTRIBUTES_OF_IMAGE = 13 + 2 * DETAILS_MAX_ATTRIBUTES,
	ATTRIBUTES_OF_RULES = 64,
	ATTRIBUTES_MAX = ENCODE_MAX_RESOURCE + ATTRIBUTES_OF_IMAGE + ATTRIBUTES_OF_RULES,
};

struct attributes {
	size_t count;
	OtlpKeyValue *pointers[ATTRIBUTES_MAX];
	OtlpKeyValue pairs[ATTRIBUTES_MAX];	/* each owns its key */
	OtlpAnyValue values[ATTRIBUTES_MAX];	/* and its value, if that is a string */
	int error;				/* the first; -ENOMEM, -E2BIG */
};

struct attributes *attributes_new(void);		/* NULL: no memory */
void attributes_free(struct attributes *attributes);	/* NULL is fine */
/* The first attribute of a key stays; an empty key or value is none. */
void attributes_string(struct attributes *attributes, const char *key, const char *value);
void attributes_int(struct attributes *attributes, const char *key, int64_t value);
/* -ENOENT */
ssize_t attributes_find(const struct attributes *attributes, const char *key);
void attributes_remove(struct attributes *attributes, size_t i);
/* Another key; what had it before is removed. Where the attribute is now. */
size_t attributes_rename(struct attributes *attributes, size_t i, const char *key);
/* The value as text; a number's is written to @number. */
const char *attributes_text(const struct attributes *attributes, size_t i, char number[static 24]);

#endif /* STACKTAP_EXPORT_ATTRIBUTES_H */
