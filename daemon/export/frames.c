// SPDX-License-Identifier: Apache-2.0
#include "export/frames.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "export/encode_options.h"
#include "export/entry.h"
#include "export/otlp.h"

static int frame_type_attribute(struct dictionary *dictionary, const struct location *location)
{
	static const char *const names[] = {
		[RUNTIME_NATIVE] = "native", [RUNTIME_GO] = "go", [RUNTIME_JVM] = "jvm",
		[RUNTIME_V8JS] = "v8js", [RUNTIME_DOTNET] = "dotnet",
		[RUNTIME_CPYTHON] = "cpython", [RUNTIME_BEAM] = "beam", [RUNTIMES] = "kernel",
	};
	size_t type = location->type == FRAME_KERNEL ? RUNTIMES : location->runtime;
	int *index = &dictionary->frame_types[type];

	_Static_assert(ARRAY_SIZE(names) == ARRAY_SIZE(dictionary->frame_types), "an index for each");
	if (*index <= 0)
		*index = dictionary_attribute_string(dictionary, "profile.frame.type", names[type]);
	return *index;
}

/* For backends that lose the frames' types. */
static int kernel_name(struct dictionary *dictionary, const struct function *function)
{
	char name[DICTIONARY_STRING_MAX];

	snprintf(name, sizeof(name), "%.*s%s", (int)(sizeof(name) - ENCODE_MAX_SUFFIX - 1),
		 function->name, dictionary->kernel_suffix);
	return dictionary_string(dictionary, name);
}

static bool is_known(const struct dictionary *dictionary, const struct encoded *encoded)
{
	return encoded->generation == dictionary->generation;
}

/* What has got an index; -ENOBUFS as it is. */
static int know(const struct dictionary *dictionary, struct encoded *encoded, int index, uint32_t variant)
{
	if (index >= 0)
		*encoded = (struct encoded){ .generation = dictionary->generation, .index = index,
					     .variant = variant };
	return index;
}

static int function_intern(struct dictionary *dictionary, struct function *function, bool is_kernel)
{
	/* one that both have is two then */
	const bool has_suffix = is_kernel && dictionary->kernel_suffix && function->name;
	uint8_t packed[ENTRY_FUNCTION_MAX];
	OtlpFunction message;
	int name, system_name, file;

	if (is_known(dictionary, &function->encoded) && function->encoded.variant == has_suffix)
		return function->encoded.index;
	name = has_suffix ? kernel_name(dictionary, function) :
			    dictionary_string(dictionary, function->name);
	/* one that is the name says nothing more, and readers take the name for it */
	system_name = function->system_name == function->name && !has_suffix ? 0 :
		dictionary_string(dictionary, function->system_name);
	file = dictionary_string(dictionary, function->filename);
	if (name < 0 || system_name < 0 || file < 0)
		return -ENOBUFS;
	otlp_init(function, &message);
	message.name_strindex = name;
	message.system_name_strindex = system_name;
	message.filename_strindex = file;
	message.start_line = max_of(function->start_line, (int64_t)0);
	name = dictionary_bytes(dictionary, TABLE_FUNCTION, packed, entry_function(&message, packed));
	return know(dictionary, &function->encoded, name, has_suffix);
}

/* Names in brackets are no files: the kernel, the vDSO, and what could not be looked into. */
static void bracket(char *ret_name, size_t size, const char *name, const char *fallback)
{
	if (!name || !name[0])
		name = fallback;
	if (name[0] == '[')
		snprintf(ret_name, size, "%s", name);
	else
		snprintf(ret_name, size, "[%.*s]", (int)min_of(strlen(name), size - 3), name);
}

static int mapping_intern(struct dictionary *dictionary, struct object *object,
			  const struct mapped_file *file, uint64_t address)
{
	bool in_range = object && address >= object->address_start &&
			address < object->address_limit;
	enum object_kind kind = object ? object->kind : file->kind;
	int32_t attributes[3];
	char name[DICTIONARY_STRING_MAX];
	OtlpMapping message;
	int index;

	if (in_range && is_known(dictionary, &object->encoded))
		return object->encoded.index;
	otlp_init(mapping, &message);
	message.attribute_indices = attributes;
	index = 0;
	/* all or none: receivers that want htlhash refuse a Mapping that has others without it */
	if (object && object->htlhash[0]) {
		index = dictionary_attribute_string(dictionary,
						    "process.executable.build_id.htlhash",
						    object->htlhash);
		attributes[message.n_attribute_indices++] = index;
		if (index >= 0 && object->build_id[0]) {
			index = dictionary_attribute_string(dictionary,
							    "process.executable.build_id.gnu",
							    object->build_id);
			attributes[message.n_attribute_indices++] = index;
		}
		if (index >= 0 && object->go_build_id) {
			index = dictionary_attribute_string(dictionary,
							    "process.executable.build_id.go",
							    object->go_build_id);
			attributes[message.n_attribute_indices++] = index;
		}
	}
	if (index < 0)
		return index;
	if (kind == OBJECT_FILE && message.n_attribute_indices) {
		index = dictionary_string(dictionary, object->path);
	} else {
		bracket(name, sizeof(name), object ? object->path : file->path,
			kind == OBJECT_ANONYMOUS ? "anonymous" : "unknown");
		index = dictionary_string(dictionary, name);
	}
	if (index < 0)
		return index;
	message.filename_strindex = index;
	/* addresses of what has no known range are offsets or as they were at run time */
	message.memory_start = in_range ? object->address_start : 0;
	message.memory_limit = in_range ? object->address_limit : UINT64_MAX;
	message.file_offset = in_range ? object->file_offset : 0;
	index = dictionary_message(dictionary, TABLE_MAPPING, &message.base);
	if (index < 0 || !in_range)
		return index;
	return know(dictionary, &object->encoded, index, 0);
}

/*
 * For backends that drop frames without a Function and give their time to the caller: "libc.so.6+0x28150", or
 * "[libc.so.6]" where no function is known. 0: nothing is known at all.
 */
static int stand_in_intern(struct dictionary *dictionary, const struct location *location)
{
	const char *path = location->object ? location->object->path :
			   location->file ? location->file->path : NULL, *slash;
	char name[NAME_MAX + 24];
	OtlpFunction message;
	int index;

	slash = path ? strrchr(path, '/') : NULL;
	path = slash ? slash + 1 : path;
	if (!path || !path[0])
		return 0;
	if (location->has_function)
		snprintf(name, sizeof(name), "%.*s+%#" PRIx64, NAME_MAX, path, location->function_start);
	else
		bracket(name, NAME_MAX, path, path);
	index = dictionary_string(dictionary, name);
	if (index <= 0)
		return index;
	otlp_init(function, &message);
	message.name_strindex = index;
	return dictionary_message(dictionary, TABLE_FUNCTION, &message.base);
}

/* A return address may belong to the next line or function: point into the call. */
static uint64_t address_of(const struct location *location)
{
	return location->address - (location->is_return && location->address);
}

/*
 * A Location out of the journal that thread B had not named: what is known of it without B, which is where it is
 * in a file. Where the kernel lies is nobody's business.
 */
static struct location unresolved(const struct location *location)
{
	struct location copy = {
		.file = location->file,
		.offset = location->offset,
		.type = location->type,
		.is_return = location->is_return,
		.object = location->file ? mapped_file_object(location->file) : NULL,
		.address = location->type == FRAME_KERNEL ? 0 : location->offset,
	};

	if (copy.object && copy.type == FRAME_NATIVE &&
	    atomic_load_explicit(&copy.object->state, memory_order_acquire) == OBJECT_READY)
		object_address(copy.object, copy.offset, &copy.address);
	return copy;
}

static int location_add(struct dictionary *dictionary, struct location *shared)
{
	const struct location *location = shared;
	OtlpLine lines[ENTRY_LINES], *line_pointers[ENTRY_LINES];
	uint8_t packed[ENTRY_LOCATION_MAX];
	const char *why_unnamed = NULL;
	struct location copy;
	OtlpLocation message;
	enum naming naming;
	uint64_t address;
	int32_t attributes[3];	/* type, unnamed, function.start */
	int index = 0;

	if (!atomic_load_explicit(&shared->is_resolved, memory_order_acquire)) {
		copy = unresolved(shared);
		location = &copy;
		why_unnamed = "recovered";
	} else if (location->is_refused) {
		why_unnamed = "memory";
	} else if (location_lacks_time(location)) {
		why_unnamed = "late";
	}
	address = address_of(location);
	otlp_init(location, &message);
	message.lines = line_pointers;
	for (uint32_t i = 0; i < min_of(location->line_count, (uint32_t)ENTRY_LINES); i++) {
		const struct line *line = &location->lines[i];

		index = function_intern(dictionary, line->function,
					location->type == FRAME_KERNEL);
		if (index < 0)
			return index;
		if (!index)
			continue;
		otlp_init(line, &lines[message.n_lines]);
		lines[message.n_lines].function_index = index;
		lines[message.n_lines].line = max_of(line->line, (int64_t)0);
		lines[message.n_lines].column = max_of(line->column, (int64_t)0);
		line_pointers[message.n_lines] = &lines[message.n_lines];
		message.n_lines++;
	}
	if (location->object || location->file) {
		index = mapping_intern(dictionary, location->object, location->file, address);
		if (index < 0)
			return index;
		message.mapping_index = index;
	}
	message.address = address;
	attributes[0] = frame_type_attribute(dictionary, location);
	if (attributes[0] < 0)
		return attributes[0];
	message.attribute_indices = attributes;
	message.n_attribute_indices = 1;
	if (why_unnamed) {
		index = dictionary_attribute_string(dictionary, "stacktap.unnamed", why_unnamed);
		if (index < 0)
			return index;
		attributes[message.n_attribute_indices++] = index;
	}
	naming = message.n_lines ? NAMING_NAME :
		 location->has_function ? NAMING_RANGE : NAMING_NONE;
	if (!message.n_lines && dictionary->names_ranges) {
		index = stand_in_intern(dictionary, location);
		if (index < 0)
			return index;
		otlp_init(line, &lines[0]);
		lines[0].function_index = index;
		line_pointers[0] = &lines[0];
		message.n_lines = index > 0;
	} else if (naming == NAMING_RANGE) {
		index = dictionary_attribute_int(dictionary, "stacktap.function.start",
						 (int64_t)location->function_start);
		if (index < 0)
			return index;
		attributes[message.n_attribute_indices++] = index;
	}
	index = dictionary_bytes(dictionary, TABLE_LOCATION, packed, entry_location(&message, packed));
	return know(dictionary, &shared->encoded, index, naming);
}

/* Its index, of which location->encoded has the rest. */
static int location_intern(struct dictionary *dictionary, struct location *location)
{
	return is_known(dictionary, &location->encoded) ? location->encoded.index :
							  location_add(dictionary, location);
}

int frames_stack(struct dictionary *dictionary, struct stack *stack, enum naming *ret_naming)
{
	int32_t small[256];
	_cleanup_free_ int32_t *large = NULL;
	OtlpStack message;
	uint8_t *packed;
	int index;

	if (is_known(dictionary, &stack->encoded)) {
		*ret_naming = stack->encoded.variant;
		return stack->encoded.index;
	}
	*ret_naming = NAMING_NAME;
	if (!stack->count)
		return 0;
	otlp_init(stack, &message);
	message.location_indices = small;
	if (stack->count > ARRAY_SIZE(small)) {
		/* bounded by the deepest stack that a record can hold */
		large = calloc(stack->count, sizeof(*large));
		if (!large)
			return -ENOMEM;
		message.location_indices = large;
	}
	for (uint32_t i = 0; i < stack->count; i++) {
		index = location_intern(dictionary, stack->locations[i]);
		if (index < 0)
			return index;
		*ret_naming = min_of(*ret_naming, (enum naming)stack->locations[i]->encoded.variant);
		message.location_indices[message.n_location_indices++] = index;
	}
	dictionary->scratch.size = 0;
	packed = buffer_reserve(&dictionary->scratch, entry_stack_room(stack->count));
	if (!packed)
		return -ENOBUFS;
	index = dictionary_bytes(dictionary, TABLE_STACK, packed, entry_stack(&message, packed));
	return know(dictionary, &stack->encoded, index, *ret_naming);
}

struct ordered {
	struct location *location;
	uint64_t address;
	int32_t mapping;
	uint32_t seen;		/* before it */
};

static int compare_ordered(const void *a, const void *b)
{
	const struct ordered *left = a, *right = b;

	if (left->mapping != right->mapping)
		return left->mapping < right->mapping ? -1 : 1;
	if (left->address != right->address)
		return left->address < right->address ? -1 : 1;
	return left->seen < right->seen ? -1 : 1;
}

/* Add the Locations of a stack that are not known yet. */
static int order_stack(struct dictionary *dictionary, const struct stack *stack, uint64_t list,
		       struct buffer *order)
{
	for (uint32_t i = 0; i < stack->count; i++) {
		struct location *location = stack->locations[i];
		struct ordered one = { .location = location, .seen = (uint32_t)(order->size / sizeof(one)) };

		if (location->listed == list)
			continue;
		location->listed = list;
		if (!atomic_load_explicit(&location->is_resolved, memory_order_acquire) ||
		    is_known(dictionary, &location->encoded))
			continue;
		one.address = address_of(location);
		if (location->object || location->file)
			one.mapping = mapping_intern(dictionary, location->object, location->file, one.address);
		if (one.mapping < 0 || buffer_append(order, &one, sizeof(one)))
			return -ENOBUFS;
	}
	return 0;
}

int frames_order(struct dictionary *dictionary, struct stack *const *stacks, size_t count,
		 size_t *ret_bytes)
{
	const uint64_t list = dictionary_number();
	struct buffer order = { .pool = POOL_ENCODE };
	struct ordered *ordered;
	int err = 0;

	*ret_bytes = 0;
	for (size_t i = 0; !err && i < count; i++) {
		if (stacks[i]->listed == list)
			continue;
		stacks[i]->listed = list;
		err = order_stack(dictionary, stacks[i], list, &order);
		*ret_bytes += entry_stack_room(stacks[i]->count);
	}
	ordered = (struct ordered *)(void *)order.data;
	count = order.size / sizeof(*ordered);
	if (!err && count)
		qsort(ordered, count, sizeof(*ordered), compare_ordered);
	for (size_t i = 0; !err && i < count; i++)
		err = min_of(location_intern(dictionary, ordered[i].location), 0);
	buffer_free(&order);
	return err;
}

/* A Stack by its Locations, from the outermost one on. */
struct path {
	struct stack *stack;
	const int32_t *indices;
};

static int compare_paths(const void *a, const void *b)
{
	const struct path *left = a, *right = b;
	uint32_t i = left->stack->count, k = right->stack->count;

	while (i && k) {
		const int32_t one = left->indices[--i], other = right->indices[--k];

		if (one != other)
			return one < other ? -1 : 1;
	}
	return (i > 0) - (k > 0);
}

static int path_fill(struct dictionary *dictionary, const struct stack *stack, int32_t *indices)
{
	for (uint32_t i = 0; i < stack->count; i++) {
		indices[i] = location_intern(dictionary, stack->locations[i]);
		if (indices[i] < 0)
			return indices[i];
	}
	return 0;
}

/* The Stacks without those that are there twice; how many frames they have. */
static int paths_make(struct stack *const *stacks, size_t count, struct buffer *paths, size_t *ret_frames)
{
	const uint64_t list = dictionary_number();
	int err = 0;

	*ret_frames = 0;
	for (size_t i = 0; !err && i < count; i++) {
		struct path path = { .stack = stacks[i] };

		if (stacks[i]->listed == list)
			continue;
		stacks[i]->listed = list;
		err = buffer_append(paths, &path, sizeof(path));
		*ret_frames += stacks[i]->count;
	}
	return err;
}

int frames_order_stacks(struct dictionary *dictionary, struct stack *const *stacks, size_t count)
{
	struct buffer paths = { .pool = POOL_ENCODE }, frames = { .pool = POOL_ENCODE };
	enum naming naming;
	struct path *path;
	size_t frame_count;
	int32_t *indices;
	int err;

	err = paths_make(stacks, count, &paths, &frame_count);
	path = (struct path *)(void *)paths.data;
	/* none has an order where none has frames */
	count = frame_count ? paths.size / sizeof(*path) : 0;
	indices = err ? NULL : (int32_t *)(void *)buffer_reserve(&frames, frame_count * sizeof(*indices));
	if (!err && !indices && frame_count)
		err = -ENOBUFS;
	for (size_t i = 0; !err && i < count; i++) {
		path[i].indices = indices;
		err = path_fill(dictionary, path[i].stack, indices);
		indices += path[i].stack->count;
	}
	if (!err && count)
		qsort(path, count, sizeof(*path), compare_paths);
	for (size_t i = 0; !err && i < count; i++)
		err = min_of(frames_stack(dictionary, path[i].stack, &naming), 0);
	buffer_free(&frames);
	buffer_free(&paths);
	return err;
}
