// SPDX-License-Identifier: Apache-2.0
#include "profile/location.h"

#include <string.h>

#include "base/pool.h"

/* One allocation: the strings follow the struct; system_name equal to name shares its bytes. */
size_t function_bytes(const char *name, const char *system_name, const char *filename)
{
	size_t bytes = sizeof(struct function) + strlen(name) + 1;

	if (strcmp(name, system_name))
		bytes += strlen(system_name) + 1;
	return bytes + (filename ? strlen(filename) + 1 : 0);
}

struct function *function_new(const char *name, const char *system_name)
{
	return function_new_at(name, system_name, NULL, 0);
}

struct function *function_new_at(const char *name, const char *system_name, const char *filename,
				 int64_t start_line)
{
	size_t bytes = function_bytes(name, system_name, filename);
	size_t name_bytes = strlen(name) + 1;
	struct function *function;
	char *strings;

	if (!pool_charge(POOL_SYMBOLS, bytes))
		return NULL;
	function = calloc(1, bytes);
	if (!function) {
		pool_uncharge(POOL_SYMBOLS, bytes);
		return NULL;
	}
	atomic_init(&function->refs, 1);
	strings = (char *)(function + 1);
	function->name = memcpy(strings, name, name_bytes);
	function->system_name = function->name;
	if (strcmp(name, system_name))
		function->system_name = memcpy(strings + name_bytes, system_name,
					       strlen(system_name) + 1);
	if (filename)
		function->filename = memcpy((char *)function + bytes - strlen(filename) - 1, filename,
					    strlen(filename) + 1);
	function->start_line = start_line;
	return function;
}

struct function *function_ref(struct function *function)
{
	atomic_fetch_add_explicit(&function->refs, 1, memory_order_relaxed);
	return function;
}

void function_unref(struct function *function)
{
	/* acq_rel: whoever frees sees all use by those that dropped their reference before */
	if (!function ||
	    atomic_fetch_sub_explicit(&function->refs, 1, memory_order_acq_rel) != 1)
		return;
	pool_uncharge(POOL_SYMBOLS, function_bytes(function->name, function->system_name,
						   function->filename));
	free(function);
}

struct location *location_new(struct mapped_file *file, uint64_t offset, enum frame_type type,
			      bool is_return)
{
	struct location *location;

	if (!pool_charge(POOL_SYMBOLS, sizeof(*location)))
		return NULL;
	location = calloc(1, sizeof(*location));
	if (!location) {
		pool_uncharge(POOL_SYMBOLS, sizeof(*location));
		return NULL;
	}
	atomic_init(&location->refs, 1);
	atomic_init(&location->is_put_off, type == FRAME_KERNEL && file && file->fixed_limit &&
		    (offset < file->fixed_start || offset >= file->fixed_limit));
	atomic_init(&location->is_resolved, false);
	location->file = file ? mapped_file_ref(file) : NULL;
	location->offset = offset;
	location->type = type;
	location->is_return = is_return;
	return location;
}

struct location *location_ref(struct location *location)
{
	atomic_fetch_add_explicit(&location->refs, 1, memory_order_relaxed);
	return location;
}

static void drop_lines(struct location *location)
{
	for (uint32_t i = 0; i < location->line_count; i++)
		function_unref(location->lines[i].function);
	pool_uncharge(POOL_SYMBOLS, location->line_count * sizeof(*location->lines));
	free(location->lines);
	location->lines = NULL;
	location->line_count = 0;
}

void location_unref(struct location *location)
{
	if (!location ||
	    atomic_fetch_sub_explicit(&location->refs, 1, memory_order_acq_rel) != 1)
		return;
	drop_lines(location);
	pool_uncharge(POOL_SYMBOLS, sizeof(*location));
	object_unref(location->object);
	if (location->file)
		mapped_file_unref(location->file);
	free(location);
}

static int set_lines(struct location *location, const struct line *lines, uint32_t count)
{
	const size_t bytes = count * sizeof(*lines);
	struct line *copy;

	if (!pool_charge(POOL_SYMBOLS, bytes))
		return -ENOBUFS;
	copy = malloc(bytes);
	if (!copy) {
		pool_uncharge(POOL_SYMBOLS, bytes);
		return -ENOMEM;
	}
	memcpy(copy, lines, bytes);
	drop_lines(location);
	location->lines = copy;
	location->line_count = count;
	return 0;
}

int location_set_lines(struct location *location, const struct line *lines, uint32_t count)
{
	int r = set_lines(location, lines, count);

	for (uint32_t i = 0; r < 0 && i < count; i++)
		function_unref(lines[i].function);
	return r;
}

int location_set_function(struct location *location, struct function *function)
{
	return location_set_lines(location, &(struct line){ .function = function }, 1);
}
