/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streaming JSON writer. Members of an object have a name, elements of an array pass NULL. Strings
 * may hold any bytes: what is not UTF-8 comes out as U+FFFD.
 */
#ifndef STACKTAP_BASE_JSON_H
#define STACKTAP_BASE_JSON_H

#include "base/macro.h"

enum { JSON_MAX_DEPTH = 16 };

struct json {
	FILE *file;
	unsigned int depth;
	struct {
		char close;
		bool has_items;
	} levels[JSON_MAX_DEPTH];
};

void json_init(struct json *json, FILE *file);
void json_object(struct json *json, const char *name);
void json_array(struct json *json, const char *name);
/* Close the innermost object or array; the outermost ends with a newline. */
void json_end(struct json *json);

void json_string(struct json *json, const char *name, const char *value); /* NULL: null */
void json_u64(struct json *json, const char *name, uint64_t value);
void json_i64(struct json *json, const char *name, int64_t value);
void json_double(struct json *json, const char *name, double value);
void json_bool(struct json *json, const char *name, bool value);
/* @text is JSON already */
void json_raw(struct json *json, const char *name, const char *text, size_t size);

#endif /* STACKTAP_BASE_JSON_H */
