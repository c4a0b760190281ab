// SPDX-License-Identifier: Apache-2.0
#include "export/cut_dictionary.h"

#include <stdatomic.h>
#include <string.h>

#include "export/cut_format.h"
#include "export/entry.h"
#include "export/relabel.h"
#include "export/resource.h"

/* What a file has at most, so that who reads it has room for all of it in the pools. */
#define LOCATIONS_MAX (64u << 10)
#define FUNCTIONS_MAX (64u << 10)
#define IMAGES_MAX (8u << 10)
#define OBJECTS_MAX (8u << 10)

/* Of all files of this process: an epoch that something knows of is never used again. */
static _Atomic uint32_t epochs;

void cut_dictionary_init(struct cut_dictionary *dictionary, const struct encode_options *options)
{
	*dictionary = (struct cut_dictionary){ .options = *options };
	dictionary->options.is_draft = true;
	buffer_init(&dictionary->resource, POOL_ENCODE);
	buffer_init(&dictionary->drafts, POOL_ENCODE);
}

void cut_dictionary_free(struct cut_dictionary *dictionary)
{
	buffer_free(&dictionary->resource);
	buffer_free(&dictionary->drafts);
}

void cut_dictionary_begin(struct cut_dictionary *dictionary)
{
	do {
		dictionary->epoch = atomic_fetch_add_explicit(&epochs, 1, memory_order_relaxed) + 1;
	} while (!dictionary->epoch);
	dictionary->objects = dictionary->files = dictionary->functions = 0;
	dictionary->images = dictionary->locations = 0;
	dictionary->stack = NULL;
	dictionary->first_stack = dictionary->stacks;
}

void cut_dictionary_window(struct cut_dictionary *dictionary)
{
	dictionary->ordinal++;
	dictionary->drafts.size = 0;
	dictionary->stack = NULL;
	/* what the window before had is not met again */
	dictionary->first_stack = dictionary->stacks = 1;
}

bool cut_dictionary_is_full(const struct cut_dictionary *dictionary)
{
	return dictionary->locations > LOCATIONS_MAX || dictionary->functions > FUNCTIONS_MAX ||
	       dictionary->images > IMAGES_MAX || dictionary->objects + dictionary->files > OBJECTS_MAX;
}

static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t size)
{
	at = cut_put(at, size);
	memcpy(at, bytes, size);
	return at + size;
}

/* Of a text in an entry: what it takes at most, which is reserved, and what it is. */
static size_t text_size(const char *text)
{
	return text ? strnlen(text, CUT_TEXT_MAX) : 0;
}

static uint8_t *put_text(uint8_t *at, const char *text)
{
	return put_bytes(at, text ? text : "", text_size(text));
}

int cut_options(struct cut_dictionary *dictionary)
{
	const struct encode_form *form = &dictionary->options.form;
	size_t max_bytes = dictionary->options.max_bytes;
	uint8_t *at = cut_begin(dictionary, 64 + text_size(form->kernel_suffix));

	if (!at)
		return -ENOBUFS;
	if (form->max_bytes)
		max_bytes = min_of(max_bytes, form->max_bytes);
	*at++ = CUT_OPTIONS;
	*at++ = (uint8_t)((dictionary->options.with_cpu ? CUT_WITH_CPU : 0) |
			  (form->names_ranges ? CUT_NAMES_RANGES : 0) |
			  (form->repeats_functions ? CUT_REPEATS : 0) |
			  (form->kernel_suffix ? CUT_HAS_SUFFIX : 0) |
			  (relabel_rules(dictionary->options.relabel) ? CUT_HAD_RULES : 0) |
			  (dictionary->options.rounds_times ? CUT_ROUNDS_TIMES : 0));
	at = cut_put(at, max_bytes);
	cut_end(dictionary, put_text(at, form->kernel_suffix));
	return 0;
}

int cut_profile(struct cut_dictionary *dictionary, const struct profile_config *config)
{
	uint8_t *at = cut_begin(dictionary, 2 * STACKTAP_NAME_LEN + 10 * CUT_VARINT_MAX);

	if (!at)
		return -ENOBUFS;
	*at++ = CUT_PROFILE;
	at = put_text(at, config->source);
	at = put_text(at, config->event);
	at = cut_put(at, config->source_id);
	at = cut_put(at, config->mode);
	at = cut_put(at, config->rate_hz);
	at = cut_put(at, config->fallback_errno);
	at = cut_put(at, config->degraded);
	at = cut_put(at, config->period);
	*at++ = (uint8_t)((config->is_multiplexed ? CUT_MULTIPLEXED : 0) |
			  (config->is_clock ? CUT_CLOCK : 0) | (config->is_cpu_time ? CUT_CPU_TIME : 0));
	cut_end(dictionary, at);
	return 0;
}

/* What thread B is still at has no index. */
static bool is_published(const struct object *object)
{
	return object && atomic_load_explicit(&object->state, memory_order_acquire) != OBJECT_NEW;
}

/* Its index + 1. */
static int object_index(struct cut_dictionary *dictionary, struct object *object, uint32_t *ret_index)
{
	struct journalled *known = &object->journalled;
	uint8_t *at;

	if (known->epoch != dictionary->epoch) {
		at = cut_begin(dictionary, text_size(object->path) + text_size(object->go_build_id) +
				 sizeof(object->build_id) + sizeof(object->htlhash) +
				 (10 + 3 * object->segment_count) * CUT_VARINT_MAX);
		if (!at)
			return -ENOBUFS;
		*at++ = CUT_OBJECT;
		*at++ = (uint8_t)object->kind;
		*at++ = (uint8_t)atomic_load_explicit(&object->state, memory_order_acquire);
		at = put_text(at, object->path);
		at = put_text(at, object->build_id);
		at = put_text(at, object->go_build_id);
		at = put_text(at, object->htlhash);
		at = cut_put(at, object->address_start);
		at = cut_put(at, object->address_limit);
		at = cut_put(at, object->file_offset);
		at = cut_put(at, object->segment_count);
		for (size_t i = 0; i < object->segment_count; i++) {
			at = cut_put(at, object->segments[i].vaddr);
			at = cut_put(at, object->segments[i].offset);
			at = cut_put(at, object->segments[i].size);
		}
		cut_end(dictionary, at);
		*known = (struct journalled){ .epoch = dictionary->epoch, .index = dictionary->objects++ };
	}
	*ret_index = known->index + 1;
	return 0;
}

/* Its index + 1. */
static int file_index(struct cut_dictionary *dictionary, struct mapped_file *file, uint32_t *ret_index)
{
	struct journalled *known = &file->journalled;
	struct object *object = known->epoch == dictionary->epoch && known->is_final ? NULL : mapped_file_object(file);
	const bool has_object = is_published(object);
	uint32_t index = 0;
	uint8_t *at;
	int err;

	if (known->epoch != dictionary->epoch || (!known->is_final && has_object)) {
		err = has_object ? object_index(dictionary, object, &index) : 0;
		at = err ? NULL : cut_begin(dictionary, text_size(file->path) + 5 * CUT_VARINT_MAX);
		if (!at)
			return -ENOBUFS;
		if (known->epoch != dictionary->epoch)
			*known = (struct journalled){ .epoch = dictionary->epoch, .index = dictionary->files++ };
		known->is_final = has_object;
		*at++ = CUT_FILE;
		at = cut_put(at, known->index);
		*at++ = (uint8_t)file->kind;
		at = put_text(at, file->path);
		cut_end(dictionary, cut_put(at, index));
	}
	*ret_index = known->index + 1;
	return 0;
}

static int function_index(struct cut_dictionary *dictionary, struct function *function, uint32_t *ret_index)
{
	const char *system_name = function->system_name == function->name ? NULL : function->system_name;
	struct journalled *known = &function->journalled;
	uint8_t *at;

	if (known->epoch != dictionary->epoch) {
		at = cut_begin(dictionary, text_size(function->name) + text_size(system_name) +
				 text_size(function->filename) + 6 * CUT_VARINT_MAX);
		if (!at)
			return -ENOBUFS;
		*at++ = CUT_FUNCTION;
		*at++ = (uint8_t)((system_name ? CUT_SYSTEM_NAME : 0) | (function->filename ? CUT_FILENAME : 0));
		at = put_text(at, function->name);
		at = put_text(at, system_name);
		at = put_text(at, function->filename);
		cut_end(dictionary, cut_put_signed(at, function->start_line));
		*known = (struct journalled){ .epoch = dictionary->epoch, .index = dictionary->functions++ };
	}
	*ret_index = known->index;
	return 0;
}

static int image_define(struct cut_dictionary *dictionary, struct journalled *known, struct image *image)
{
	struct relabel_result sent;
	uint8_t *at;
	int err;

	dictionary->resource.size = 0;
	err = resource_write(&dictionary->resource, &dictionary->options, image, &sent);
	if (err)
		return err;
	if (!sent.one_in) {
		*known = (struct journalled){ .epoch = dictionary->epoch, .index = CUT_LEFT_OUT };
		return 0;
	}
	at = cut_begin(dictionary, dictionary->resource.size + 5 * CUT_VARINT_MAX);
	if (!at)
		return -ENOBUFS;
	if (known->epoch != dictionary->epoch || known->index == CUT_LEFT_OUT)
		*known = (struct journalled){ .epoch = dictionary->epoch, .index = image ? ++dictionary->images : 0 };
	*at++ = CUT_IMAGE;
	at = cut_put(at, known->index);
	at = cut_put(at, image ? image->tgid : 0);
	/* all are in the journal: what is known of the image last holds for the window */
	at = cut_put(at, sent.one_in);
	cut_end(dictionary, put_bytes(at, dictionary->resource.data, dictionary->resource.size));
	return 0;
}

/* -EAGAIN: rules look at what is not known yet, and would let it pass. */
int cut_image(struct cut_dictionary *dictionary, struct image *image, uint32_t *ret_index)
{
	struct journalled *known = image ? &image->journalled : &dictionary->kernel;
	const void *details = image ? image_details(image) : NULL;
	const void *context = image ? image_context(image) : NULL;
	int err = 0;

	if (image && !details && relabel_rules(dictionary->options.relabel))
		return -EAGAIN;
	if (known->epoch != dictionary->epoch ||
	    (image && (image->journalled_details != details || image->journalled_context != context))) {
		if (image) {
			image->journalled_details = details;
			image->journalled_context = context;
		}
		err = image_define(dictionary, known, image);
	}
	*ret_index = known->index;
	return err;
}

static uint8_t *put_resolved(uint8_t *at, const struct location *location, uint32_t object,
			     const uint32_t *functions, uint32_t lines)
{
	*at++ = (uint8_t)location->runtime;
	at = cut_put(at, object);
	at = cut_put(at, location->address);
	at = cut_put(at, location->function_start);
	at = cut_put(at, lines);
	for (uint32_t i = 0; i < lines; i++) {
		at = cut_put(at, functions[i]);
		at = cut_put_signed(at, location->lines[i].line);
		at = cut_put_signed(at, location->lines[i].column);
	}
	return at;
}

static int location_define(struct cut_dictionary *dictionary, struct location *location, bool is_resolved)
{
	const uint32_t lines = is_resolved ? min_of(location->line_count, (uint32_t)ENTRY_LINES) : 0;
	struct journalled *known = &location->journalled;
	uint32_t functions[ENTRY_LINES], file = 0, object = 0;
	uint8_t *at;
	int err = 0;

	if (location->file)
		err = file_index(dictionary, location->file, &file);
	if (!err && is_resolved && location->object)
		err = object_index(dictionary, location->object, &object);
	for (uint32_t i = 0; !err && i < lines; i++)
		err = function_index(dictionary, location->lines[i].function, &functions[i]);
	at = err ? NULL : cut_begin(dictionary, (12 + 3 * lines) * CUT_VARINT_MAX);
	if (!at)
		return -ENOBUFS;
	if (known->epoch != dictionary->epoch)
		*known = (struct journalled){ .epoch = dictionary->epoch, .index = dictionary->locations++,
					      .listed = known->listed };
	known->is_final = is_resolved;
	*at++ = CUT_LOCATION;
	at = cut_put(at, known->index);
	*at++ = (uint8_t)((location->type == FRAME_KERNEL ? CUT_KERNEL : 0) |
			  (location->is_return ? CUT_RETURN : 0) | (is_resolved ? CUT_RESOLVED : 0) |
			  (is_resolved && location->is_refused ? CUT_REFUSED : 0) |
			  (is_resolved && location->has_function ? CUT_RANGE : 0));
	at = cut_put(at, file);
	/* where the kernel lies is nobody's business */
	at = cut_put(at, location->type == FRAME_KERNEL ? 0 : location->offset);
	if (is_resolved)
		at = put_resolved(at, location, object, functions, lines);
	cut_end(dictionary, at);
	return 0;
}

static bool is_resolved(const struct location *location)
{
	return atomic_load_explicit(&location->is_resolved, memory_order_acquire);
}

/* It is without names, which may come while the window is open. */
static int list_draft(struct cut_dictionary *dictionary, struct location *location)
{
	if (location->journalled.listed == dictionary->ordinal)
		return 0;
	location->journalled.listed = dictionary->ordinal;
	return buffer_append(&dictionary->drafts, &location, sizeof(location));
}

static int location_index(struct cut_dictionary *dictionary, struct location *location, uint32_t *ret_index)
{
	const struct journalled *known = &location->journalled;
	int err = 0;

	if (known->epoch != dictionary->epoch || !known->is_final) {
		const bool has_names = is_resolved(location);

		if (known->epoch != dictionary->epoch || has_names)
			err = location_define(dictionary, location, has_names);
		if (!err && !has_names)
			err = list_draft(dictionary, location);
	}
	*ret_index = known->index;
	return err;
}

/* The last Locations that two stacks have in common: what threads begin with. */
static uint32_t shared_end(const struct stack *stack, const struct stack *before)
{
	const uint32_t most = before ? min_of(stack->count, before->count) : 0;
	uint32_t count = 0;

	while (count < most && stack->locations[stack->count - 1 - count] ==
			       before->locations[before->count - 1 - count])
		count++;
	return count;
}

int cut_stack(struct cut_dictionary *dictionary, struct stack *stack, uint32_t *ret_index)
{
	uint32_t shared, others;
	uint8_t *at;
	int err = 0;

	if (stack->journalled < dictionary->first_stack || !stack->journalled) {
		shared = shared_end(stack, dictionary->stack);
		others = stack->count - shared;
		for (uint32_t i = 0; !err && i < others; i++)
			err = location_index(dictionary, stack->locations[i], &dictionary->indices[i]);
		at = err ? NULL : cut_begin(dictionary, (others + 3) * CUT_VARINT_MAX);
		if (!at)
			return -ENOBUFS;
		*at++ = CUT_STACK;
		at = cut_put(at, shared);
		at = cut_put(at, others);
		for (uint32_t i = 0; i < others; i++)
			at = cut_put(at, dictionary->indices[i]);
		cut_end(dictionary, at);
		stack->journalled = dictionary->stacks++;
		dictionary->stack = stack;
	}
	*ret_index = stack->journalled - dictionary->first_stack;
	return 0;
}

/* Thread B named Locations that the file has without names. */
int cut_names(struct cut_dictionary *dictionary)
{
	struct location **drafts = (struct location **)(void *)dictionary->drafts.data;
	const size_t count = dictionary->drafts.size / sizeof(*drafts);
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < count; i++) {
		struct location *location = drafts[i];

		/* of a file that was begun anew: this one lists it once it has it */
		if (location->journalled.epoch != dictionary->epoch)
			location->journalled.listed = dictionary->ordinal - 1;
		if (location->journalled.epoch != dictionary->epoch || location->journalled.is_final)
			continue;
		if (!is_resolved(location))
			drafts[kept++] = location;
		else if (!err)
			err = location_define(dictionary, location, true);
	}
	dictionary->drafts.size = kept * sizeof(*drafts);
	return err;
}
