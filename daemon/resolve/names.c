// SPDX-License-Identifier: Apache-2.0
#include "resolve/names.h"

#include <string.h>

#include "base/hash.h"
#include "base/index.h"
#include "base/pool.h"
#include "base/utf8.h"

enum { NAMES_MIN = 1024, NAME_BYTES = 4096 };

struct names {
	struct parser *parser;		/* NULL: names are not demangled */
	struct function **functions;
	uint32_t count, capacity;
	size_t bytes;			/* of functions */
	bool is_swept;			/* since names_begin() */
	struct index index;		/* of functions, by system_name and filename */
};

/* What Functions are told apart by. */
struct key {
	const char *system_name, *filename;	/* filename: NULL if unknown */
	int64_t start_line;
};

static uint64_t hash_key(const struct key *key)
{
	const uint64_t words[] = { hash_string(key->system_name),
				   key->filename ? hash_string(key->filename) : 0 };

	return key->filename ? hash_words(words, ARRAY_SIZE(words)) : words[0];
}

static uint64_t hash_of(const void *ctx, uint32_t position)
{
	const struct function *function = ((struct function *const *)ctx)[position];

	return hash_key(&(struct key){ function->system_name, function->filename, 0 });
}

static size_t bytes_of(const struct function *function)
{
	return function_bytes(function->name, function->system_name, function->filename);
}

static bool is_key(const struct function *function, const struct key *key)
{
	return !strcmp(function->system_name, key->system_name) &&
	       function->start_line == key->start_line &&
	       (function->filename && key->filename ? !strcmp(function->filename, key->filename) :
						      function->filename == key->filename);
}

static struct function *find(const struct names *names, const struct key *key, uint64_t hash)
{
	struct index_probe probe = index_first(&names->index, hash);
	uint32_t i;

	while ((i = index_next(&names->index, &probe)) != INDEX_NONE)
		if (is_key(names->functions[i], key))
			return names->functions[i];
	return NULL;
}

int names_new(struct parser *parser, struct names **ret_names)
{
	struct names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	names->parser = parser;
	index_init(&names->index, POOL_SYMBOLS);
	*ret_names = names;
	return 0;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	for (uint32_t i = 0; i < names->count; i++)
		function_unref(names->functions[i]);
	pool_uncharge(POOL_SYMBOLS, names->capacity * sizeof(*names->functions));
	free(names->functions);
	index_free(&names->index);
	free(names);
}

/* Fewer places if these are enough; a place more than @count at least. */
static int resize(struct names *names, uint32_t capacity)
{
	const size_t bytes = capacity * sizeof(*names->functions);
	struct function **functions;

	if (!pool_charge(POOL_SYMBOLS, bytes))
		return -ENOBUFS;
	functions = reallocarray(names->functions, capacity, sizeof(*functions));
	if (!functions) {
		pool_uncharge(POOL_SYMBOLS, bytes);
		return -ENOMEM;
	}
	pool_uncharge(POOL_SYMBOLS, names->capacity * sizeof(*functions));
	names->functions = functions;
	names->capacity = capacity;
	return 0;
}

size_t names_sweep(struct names *names)
{
	uint32_t before = names->count, count = 0;

	for (uint32_t i = 0; i < before; i++) {
		struct function *function = names->functions[i];

		/* only this thread makes new references of a Function that is held here alone */
		if (atomic_load_explicit(&function->refs, memory_order_acquire) == 1) {
			names->bytes -= bytes_of(function);
			function_unref(function);
		} else {
			names->functions[count++] = function;
		}
	}
	names->count = count;
	if (count == before)
		return 0;
	index_rebuild(&names->index, count, hash_of, names->functions);
	if (names->capacity > NAMES_MIN && count < names->capacity / 8)
		/* on failure it stays as large as it is */
		(void)!resize(names, max_of(count * 2, (uint32_t)NAMES_MIN));
	return before - count;
}

static int make_room(struct names *names)
{
	int r = 0;

	if (names->count == names->capacity) {
		names_sweep(names);
		if (names->count >= names->capacity / 2)
			r = resize(names, max_of(names->capacity * 2, (uint32_t)NAMES_MIN));
	}
	return r ?: index_reserve(&names->index, hash_of, names->functions);
}

void names_begin(struct names *names)
{
	names->is_swept = false;
}

/* Each sweep looks at all: once in a window is enough when nothing fits any more. */
static bool sweep_once(struct names *names)
{
	if (names->is_swept)
		return false;
	names->is_swept = true;
	return names_sweep(names) > 0;
}

static int add(struct names *names, const char *name, const struct key *key, uint64_t hash,
	       size_t *budget, struct function **ret_function)
{
	const size_t limit = budget ? NAMES_FOREIGN_MAX_BYTES : NAMES_MAX_BYTES;
	const size_t bytes = function_bytes(name, key->system_name, key->filename);
	struct function *function;
	int r;

	if (budget && bytes > *budget)
		return -EDQUOT;
	if (names->bytes + bytes > limit && (!sweep_once(names) || names->bytes + bytes > limit))
		return -EDQUOT;
	r = make_room(names);
	if (r < 0)
		return r;
	function = function_new_at(name, key->system_name, key->filename, key->start_line);
	if (!function && sweep_once(names))
		function = function_new_at(name, key->system_name, key->filename, key->start_line);
	if (!function)
		return -ENOBUFS;
	index_insert(&names->index, hash, names->count);
	names->functions[names->count++] = function;
	names->bytes += bytes;
	if (budget)
		*budget -= bytes;
	*ret_function = function;
	return 0;
}

int names_get(struct names *names, const char *symbol, size_t *budget,
	      struct function **ret_function)
{
	return names_get_at(names, symbol, NULL, 0, budget, ret_function);
}

/* -EAGAIN: it cannot be told now. */
static int demangle_into(struct names *names, const char *symbol, char name[static NAME_BYTES])
{
	char plain[DEMANGLE_MAX];
	int r = names->parser ? parser_demangle_now(names->parser, symbol, plain) : -ENODATA;

	if (r < 0 && r != -ENODATA)
		return -EAGAIN;
	utf8_copy(name, NAME_BYTES, r < 0 ? symbol : plain);
	return 0;
}

int names_get_at(struct names *names, const char *symbol, const char *filename, int64_t start_line,
		 size_t *budget, struct function **ret_function)
{
	char path[NAME_BYTES], system_name[NAME_BYTES], name[NAME_BYTES];
	struct key key = { .system_name = system_name, .start_line = start_line };
	struct function *function;
	uint64_t hash;
	int r;

	if (filename) {
		utf8_copy(path, sizeof(path), filename);
		key.filename = path;
	}
	utf8_copy(system_name, sizeof(system_name), symbol);
	hash = hash_key(&key);
	function = find(names, &key, hash);
	if (!function) {
		r = demangle_into(names, symbol, name);
		if (!r)
			r = add(names, name, &key, hash, budget, &function);
		if (r < 0)
			return r;
	}
	*ret_function = function_ref(function);
	return 0;
}
