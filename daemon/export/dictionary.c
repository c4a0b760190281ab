// SPDX-License-Identifier: Apache-2.0
#include "export/dictionary.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "export/encode_options.h"
#include "export/entry.h"
#include "export/otlp.h"

#define STRING_MAX 4096u	/* longer strings are cut */

/* An object of the profile model that was met in this payload. */
struct known_item {
	const void *pointer;
	int32_t index;
	enum naming naming;
	bool is_draft;		/* a Location that was not published yet */
};

static const struct known_item *known_items(const struct dictionary_known *known)
{
	return (const struct known_item *)(const void *)known->items.data;
}

static uint64_t pointer_hash(const void *pointer)
{
	return fingerprint_fold((uintptr_t)pointer ^ fingerprint_key[0], fingerprint_key[1]);
}

static uint64_t known_hash_of(const void *ctx, uint32_t position)
{
	return pointer_hash(((const struct known_item *)ctx)[position].pointer);
}

static const struct known_item *known_find(const struct dictionary_known *known,
					   const void *pointer)
{
	struct index_probe probe = index_first(&known->index, pointer_hash(pointer));
	uint32_t i;

	while ((i = index_next(&known->index, &probe)) != INDEX_NONE)
		if (known_items(known)[i].pointer == pointer)
			return &known_items(known)[i];
	return NULL;
}

static int known_add_item(struct dictionary_known *known, struct known_item item)
{
	uint32_t position = (uint32_t)(known->items.size / sizeof(item));
	int err = index_reserve(&known->index, known_hash_of, known->items.data);

	if (!err)
		err = buffer_append(&known->items, &item, sizeof(item));
	if (err)
		return -ENOBUFS;
	index_insert(&known->index, pointer_hash(item.pointer), position);
	return item.index;
}

static int known_add(struct dictionary_known *known, const void *pointer, int index,
		     enum naming naming)
{
	return known_add_item(known, (struct known_item){ .pointer = pointer, .index = index,
							  .naming = naming });
}

static void known_init(struct dictionary_known *known)
{
	buffer_init(&known->items, POOL_ENCODE);
	index_init(&known->index, POOL_ENCODE);
}

static void known_clear(struct dictionary_known *known)
{
	known->items.size = 0;
	index_clear(&known->index);
}

static void known_free(struct dictionary_known *known)
{
	buffer_free(&known->items);
	index_free(&known->index);
}

static const struct dictionary_entry *table_entries(const struct dictionary_entries *table)
{
	return (const struct dictionary_entry *)(const void *)table->entries.data;
}

static uint64_t entry_hash_of(const void *ctx, uint32_t position)
{
	return table_entries(ctx)[position].hash;
}

/* The index of the entry with these bytes, added when it is new. */
static int table_intern(struct dictionary *dictionary, enum dictionary_table number,
			const void *data, size_t size)
{
	struct dictionary_entries *table = &dictionary->tables[number];
	uint64_t hash = hash_bytes(data, size);
	struct index_probe probe = index_first(&table->index, hash);
	struct dictionary_entry entry = { .hash = hash, .size = (uint32_t)size };
	size_t before = table->bytes.size;
	uint32_t i;

	while ((i = index_next(&table->index, &probe)) != INDEX_NONE) {
		/* positions that were taken back may linger in the index */
		if (i < table->count && table_entries(table)[i].size == size &&
		    !memcmp(table->bytes.data + table_entries(table)[i].offset, data, size))
			return (int)i;
	}
	if (table->count >= INT32_MAX || before + size + BUFFER_FIELD_MAX > UINT32_MAX ||
	    index_reserve(&table->index, entry_hash_of, table) ||
	    !buffer_reserve(&table->entries, sizeof(entry)) ||
	    buffer_field(&table->bytes, number, size))
		goto full;
	entry.offset = (uint32_t)table->bytes.size;
	if (buffer_append(&table->bytes, data, size) ||
	    buffer_append(&table->entries, &entry, sizeof(entry)))
		goto full;
	index_insert(&table->index, hash, table->count);
	return (int)table->count++;
full:
	table->bytes.size = before;
	return -ENOBUFS;
}

int dictionary_message(struct dictionary *dictionary, enum dictionary_table number,
		       const ProtobufCMessage *message)
{
	uint8_t small[256], *data = small;
	size_t size = protobuf_c_message_get_packed_size(message);

	if (size > sizeof(small)) {
		dictionary->scratch.size = 0;
		data = buffer_reserve(&dictionary->scratch, size);
		if (!data)
			return -ENOBUFS;
	}
	protobuf_c_message_pack(message, data);
	return table_intern(dictionary, number, data, size);
}

void dictionary_init(struct dictionary *dictionary)
{
	memset(dictionary, 0, sizeof(*dictionary));
	for (int i = 1; i < TABLE_END; i++) {
		buffer_init(&dictionary->tables[i].bytes, POOL_ENCODE);
		buffer_init(&dictionary->tables[i].entries, POOL_ENCODE);
		index_init(&dictionary->tables[i].index, POOL_ENCODE);
	}
	known_init(&dictionary->locations);
	known_init(&dictionary->functions);
	known_init(&dictionary->objects);
	known_init(&dictionary->stacks);
	buffer_init(&dictionary->scratch, POOL_ENCODE);
}

void dictionary_free(struct dictionary *dictionary)
{
	for (int i = 1; i < TABLE_END; i++) {
		buffer_free(&dictionary->tables[i].bytes);
		buffer_free(&dictionary->tables[i].entries);
		index_free(&dictionary->tables[i].index);
	}
	known_free(&dictionary->locations);
	known_free(&dictionary->functions);
	known_free(&dictionary->objects);
	known_free(&dictionary->stacks);
	buffer_free(&dictionary->scratch);
}

int dictionary_reset(struct dictionary *dictionary)
{
	known_clear(&dictionary->locations);
	known_clear(&dictionary->functions);
	known_clear(&dictionary->objects);
	known_clear(&dictionary->stacks);
	memset(dictionary->frame_types, 0, sizeof(dictionary->frame_types));
	dictionary->generation++;
	for (enum dictionary_table i = 1; i < TABLE_END; i++) {
		struct dictionary_entries *table = &dictionary->tables[i];

		table->bytes.size = 0;
		table->entries.size = 0;
		table->count = 0;
		index_clear(&table->index);
		/* the zero value of every message, and the empty string */
		if (table_intern(dictionary, i, "", 0) < 0)
			return -ENOBUFS;
	}
	return 0;
}

size_t dictionary_size_since(const struct dictionary *dictionary,
			     const struct dictionary_mark *mark)
{
	size_t size = 0;

	for (int i = 1; i < TABLE_END; i++)
		size += dictionary->tables[i].bytes.size - mark->bytes[i];
	return size;
}

size_t dictionary_size(const struct dictionary *dictionary)
{
	return dictionary_size_since(dictionary, &(struct dictionary_mark){ 0 });
}

void dictionary_mark(const struct dictionary *dictionary, struct dictionary_mark *ret_mark)
{
	for (int i = 1; i < TABLE_END; i++) {
		ret_mark->bytes[i] = dictionary->tables[i].bytes.size;
		ret_mark->counts[i] = dictionary->tables[i].count;
	}
}

void dictionary_take_back(struct dictionary *dictionary, const struct dictionary_mark *mark)
{
	for (int i = 1; i < TABLE_END; i++) {
		struct dictionary_entries *table = &dictionary->tables[i];

		table->bytes.size = mark->bytes[i];
		table->count = mark->counts[i];
		table->entries.size = mark->counts[i] * sizeof(struct dictionary_entry);
	}
	/* these may name what is gone */
	known_clear(&dictionary->locations);
	known_clear(&dictionary->functions);
	known_clear(&dictionary->objects);
	known_clear(&dictionary->stacks);
	memset(dictionary->frame_types, 0, sizeof(dictionary->frame_types));
	dictionary->generation++;
}

void dictionary_write_since(const struct dictionary *dictionary,
			    const struct dictionary_mark *mark, uint8_t *at)
{
	for (int i = 1; i < TABLE_END; i++) {
		const struct buffer *bytes = &dictionary->tables[i].bytes;
		const size_t size = bytes->size - mark->bytes[i];

		memcpy(at, bytes->data + mark->bytes[i], size);
		at += size;
	}
}

void dictionary_write(const struct dictionary *dictionary, uint8_t *at)
{
	dictionary_write_since(dictionary, &(struct dictionary_mark){ 0 }, at);
}

void dictionary_see_names(struct dictionary *dictionary)
{
	const struct known_item *items = known_items(&dictionary->locations);
	const size_t count = dictionary->locations.items.size / sizeof(*items);

	for (size_t i = 0; i < count; i++) {
		const struct location *location = items[i].pointer;

		if (!items[i].is_draft ||
		    !atomic_load_explicit(&location->is_resolved, memory_order_acquire))
			continue;
		/* what has not changed is found by its bytes */
		known_clear(&dictionary->locations);
		known_clear(&dictionary->stacks);
		return;
	}
}

/* Length of printable ASCII, which needs no cleaning; 0: anything else. */
static size_t plain_length(const char *text)
{
	size_t length = 0;

	while (text[length] >= 0x20 && text[length] < 0x7f)
		length++;
	return text[length] || length >= STRING_MAX ? 0 : length;
}

int dictionary_string(struct dictionary *dictionary, const char *text)
{
	char clean[STRING_MAX];
	size_t length;

	if (!text || !text[0])
		return 0;
	length = plain_length(text);
	if (length)
		return table_intern(dictionary, TABLE_STRING, text, length);
	return table_intern(dictionary, TABLE_STRING, clean,
			    utf8_copy(clean, sizeof(clean), text));
}

static int attribute_intern(struct dictionary *dictionary, const char *key, OtlpAnyValue *value)
{
	OtlpAttribute attribute;
	int key_index = dictionary_string(dictionary, key);

	if (key_index < 0)
		return key_index;
	otlp_init(key_value_and_unit, &attribute);
	attribute.key_strindex = key_index;
	attribute.value = value;
	return dictionary_message(dictionary, TABLE_ATTRIBUTE, &attribute.base);
}

int dictionary_attribute_string(struct dictionary *dictionary, const char *key, const char *value)
{
	OtlpAnyValue any;
	char clean[STRING_MAX];

	utf8_copy(clean, sizeof(clean), value);
	otlp_common_init(any_value, &any);
	any.value_case = OTLP_VALUE_STRING;
	any.string_value = clean;
	return attribute_intern(dictionary, key, &any);
}

int dictionary_attribute_int(struct dictionary *dictionary, const char *key, int64_t value)
{
	OtlpAnyValue any;

	otlp_common_init(any_value, &any);
	any.value_case = OTLP_VALUE_INT;
	any.int_value = value;
	return attribute_intern(dictionary, key, &any);
}

int dictionary_attribute_true(struct dictionary *dictionary, const char *key)
{
	OtlpAnyValue any;

	otlp_common_init(any_value, &any);
	any.value_case = OTLP_VALUE_BOOL;
	any.bool_value = true;
	return attribute_intern(dictionary, key, &any);
}

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
	char name[STRING_MAX];

	snprintf(name, sizeof(name), "%.*s%s", (int)(sizeof(name) - ENCODE_MAX_SUFFIX - 1),
		 function->name, dictionary->kernel_suffix);
	return dictionary_string(dictionary, name);
}

static int function_intern(struct dictionary *dictionary, const struct function *function,
			   bool is_kernel)
{
	const bool has_suffix = is_kernel && dictionary->kernel_suffix && function->name;
	/* one that both have is two then; no object is at an odd address */
	const void *key = (const char *)function + has_suffix;
	const struct known_item *known = known_find(&dictionary->functions, key);
	uint8_t packed[ENTRY_FUNCTION_MAX];
	OtlpFunction message;
	int name, system_name, file;

	if (known)
		return known->index;
	name = has_suffix ? kernel_name(dictionary, function) :
			    dictionary_string(dictionary, function->name);
	system_name = function->system_name == function->name && !has_suffix ? name :
		dictionary_string(dictionary, function->system_name);
	file = dictionary_string(dictionary, function->filename);
	if (name < 0 || system_name < 0 || file < 0)
		return -ENOBUFS;
	otlp_init(function, &message);
	message.name_strindex = name;
	message.system_name_strindex = system_name;
	message.filename_strindex = file;
	message.start_line = max_of(function->start_line, (int64_t)0);
	name = table_intern(dictionary, TABLE_FUNCTION, packed, entry_function(&message, packed));
	return name < 0 ? name : known_add(&dictionary->functions, key, name, NAMING_NAME);
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

static int mapping_intern(struct dictionary *dictionary, const struct object *object,
			  const struct mapped_file *file, uint64_t address)
{
	bool in_range = object && address >= object->address_start &&
			address < object->address_limit;
	enum object_kind kind = object ? object->kind : file->kind;
	const struct known_item *known;
	int32_t attributes[3];
	char name[STRING_MAX];
	OtlpMapping message;
	int index;

	known = in_range ? known_find(&dictionary->objects, object) : NULL;
	if (known)
		return known->index;

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
	return known_add(&dictionary->objects, object, index, NAMING_NONE);
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
	message.system_name_strindex = index;
	return dictionary_message(dictionary, TABLE_FUNCTION, &message.base);
}

/*
 * A Location of the journal that thread B may be naming at this moment: what is known of it without B,
 * which is where it is in a file. Where the kernel lies is nobody's business.
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

static const struct known_item *location_intern(struct dictionary *dictionary,
						const struct location *shared)
{
	const struct known_item *known = known_find(&dictionary->locations, shared);
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

	if (known)
		return known;
	if (!atomic_load_explicit(&shared->is_resolved, memory_order_acquire)) {
		copy = unresolved(shared);
		location = &copy;
		why_unnamed = "recovered";
	} else if (location->is_refused) {
		why_unnamed = "memory";
	}
	address = location->address;
	/* a return address may belong to the next line or function: point into the call */
	if (location->is_return && address)
		address--;
	otlp_init(location, &message);
	message.lines = line_pointers;
	for (uint32_t i = 0; i < min_of(location->line_count, (uint32_t)ENTRY_LINES); i++) {
		const struct line *line = &location->lines[i];

		index = function_intern(dictionary, line->function,
					location->type == FRAME_KERNEL);
		if (index < 0)
			return NULL;
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
			return NULL;
		message.mapping_index = index;
	}
	message.address = address;
	attributes[0] = frame_type_attribute(dictionary, location);
	if (attributes[0] < 0)
		return NULL;
	message.attribute_indices = attributes;
	message.n_attribute_indices = 1;
	if (why_unnamed) {
		index = dictionary_attribute_string(dictionary, "stacktap.unnamed", why_unnamed);
		if (index < 0)
			return NULL;
		attributes[message.n_attribute_indices++] = index;
	}
	naming = message.n_lines ? NAMING_NAME :
		 location->has_function ? NAMING_RANGE : NAMING_NONE;
	if (!message.n_lines && dictionary->names_ranges) {
		index = stand_in_intern(dictionary, location);
		if (index < 0)
			return NULL;
		otlp_init(line, &lines[0]);
		lines[0].function_index = index;
		line_pointers[0] = &lines[0];
		message.n_lines = index > 0;
	} else if (naming == NAMING_RANGE) {
		index = dictionary_attribute_int(dictionary, "stacktap.function.start",
						 (int64_t)location->function_start);
		if (index < 0)
			return NULL;
		attributes[message.n_attribute_indices++] = index;
	}
	index = table_intern(dictionary, TABLE_LOCATION, packed, entry_location(&message, packed));
	if (index < 0 ||
	    known_add_item(&dictionary->locations,
			   (struct known_item){ .pointer = shared, .index = index, .naming = naming,
						.is_draft = location == &copy }) < 0)
		return NULL;
	return known_find(&dictionary->locations, shared);
}

int dictionary_stack(struct dictionary *dictionary, const struct stack *stack,
		     enum naming *ret_naming)
{
	const struct known_item *known = known_find(&dictionary->stacks, stack);
	int32_t small[256];
	_cleanup_free_ int32_t *large = NULL;
	OtlpStack message;
	uint8_t *packed;
	int index;

	if (known) {
		*ret_naming = known->naming;
		return known->index;
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
		known = location_intern(dictionary, stack->locations[i]);
		if (!known)
			return -ENOBUFS;
		*ret_naming = min_of(*ret_naming, known->naming);
		message.location_indices[message.n_location_indices++] = known->index;
	}
	dictionary->scratch.size = 0;
	packed = buffer_reserve(&dictionary->scratch, entry_stack_room(stack->count));
	if (!packed)
		return -ENOBUFS;
	index = table_intern(dictionary, TABLE_STACK, packed, entry_stack(&message, packed));
	return index < 0 ? index : known_add(&dictionary->stacks, stack, index, *ret_naming);
}
