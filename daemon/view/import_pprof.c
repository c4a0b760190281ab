// SPDX-License-Identifier: Apache-2.0
/* pprof, gzipped or not. Every index is checked; work is bounded by the message's size. */
#include <string.h>
#include <zlib.h>

#include "base/utf8.h"
#include "export/otlp.h"
#include "export/unpack.h"
#include "pprof.pb-c.h"
#include "view/import.h"
#include "view/pprof_names.h"

#define PLAIN_MAX ((size_t)256 << 20)
#define UNPACK_MAX ((size_t)512 << 20)

enum {
	INFLATE_STEP = 1 << 20,
	WINDOW_GZIP = 15 + 16,
	LABELS_MAX = 64,
};

/* The place of what has an id, which need not be in order. */
struct place {
	uint64_t id;
	uint32_t position;
};

struct pprof {
	struct import *import;
	const Pprof__Profile *message;
	struct place *mappings, *locations, *functions;
	int32_t *mapping_index, *location_index;	/* -1: not interned yet */
	struct buffer stack;				/* int32_t */
	int32_t samples_type, fixed_type;		/* of sample_type, -1: none */
};

static int inflate_into(struct buffer *plain, const uint8_t *data, size_t size)
{
	z_stream stream = { .next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)size };
	int ret;

	if (size > UINT32_MAX || inflateInit2(&stream, WINDOW_GZIP) != Z_OK)
		return -E2BIG;
	do {
		if (plain->size > PLAIN_MAX || !buffer_reserve(plain, INFLATE_STEP)) {
			inflateEnd(&stream);
			return -E2BIG;
		}
		stream.next_out = plain->data + plain->size;
		stream.avail_out = INFLATE_STEP;
		ret = inflate(&stream, Z_NO_FLUSH);
		plain->size += INFLATE_STEP - stream.avail_out;
	} while (ret == Z_OK);
	inflateEnd(&stream);
	return ret == Z_STREAM_END ? 0 : -EBADMSG;
}

static const char *text_at(const struct pprof *pprof, int64_t index)
{
	if (index < 0 || (uint64_t)index >= pprof->message->n_string_table)
		return NULL;
	return pprof->message->string_table[index];
}

static int by_id(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	return (left->id > right->id) - (left->id < right->id);
}

static int64_t find(const struct place *places, size_t count, uint64_t id)
{
	const struct place key = { .id = id };
	const struct place *found = count ? bsearch(&key, places, count, sizeof(key), by_id) : NULL;

	return found ? (int64_t)found->position : -1;
}

#define MAKE_PLACES(pprof, what)                                                             \
	({                                                                                         \
		size_t count_ = (pprof)->message->n_##what;                                        \
		struct place *places_ = calloc(count_ + 1, sizeof(*places_));                      \
		for (size_t i_ = 0; places_ && i_ < count_; i_++)                                  \
			places_[i_] = (struct place){ (pprof)->message->what[i_]->id, (uint32_t)i_ }; \
		if (places_ && count_)                                                             \
			qsort(places_, count_, sizeof(*places_), by_id);                           \
		places_;                                                                           \
	})

static int mapping_of(struct pprof *pprof, uint64_t id)
{
	int64_t position = find(pprof->mappings, pprof->message->n_mapping, id);
	struct dictionary *dictionary = &pprof->import->dictionary;
	const Pprof__Mapping *from;
	int32_t attributes[1 + PPROF_MAPPING_FLAGS];
	bool flags[PPROF_MAPPING_FLAGS];
	const char *file, *build_id;
	OtlpMapping message;

	if (!id)
		return 0;
	if (position < 0)
		return -EBADMSG;
	if (pprof->mapping_index[position] >= 0)
		return pprof->mapping_index[position];
	from = pprof->message->mapping[position];
	file = text_at(pprof, from->filename);
	build_id = text_at(pprof, from->build_id);
	if (!file || !build_id)
		return -EBADMSG;
	flags[PPROF_HAS_FUNCTIONS] = from->has_functions;
	flags[PPROF_HAS_FILENAMES] = from->has_filenames;
	flags[PPROF_HAS_LINE_NUMBERS] = from->has_line_numbers;
	flags[PPROF_HAS_INLINE_FRAMES] = from->has_inline_frames;
	otlp_init(mapping, &message);
	message.memory_start = from->memory_start;
	message.memory_limit = from->memory_limit;
	message.file_offset = from->file_offset;
	message.filename_strindex = dictionary_string(dictionary, file);
	if (message.filename_strindex < 0)
		return -E2BIG;
	if (build_id[0]) {
		attributes[message.n_attribute_indices] =
			dictionary_attribute_string(dictionary, "process.executable.build_id.gnu", build_id);
		if (attributes[message.n_attribute_indices++] < 0)
			return -E2BIG;
	}
	message.attribute_indices = attributes;
	for (size_t i = 0; i < PPROF_MAPPING_FLAGS; i++) {
		attributes[message.n_attribute_indices] =
			dictionary_attribute_bool(dictionary, pprof_mapping_flags[i], flags[i]);
		if (attributes[message.n_attribute_indices++] < 0)
			return -E2BIG;
	}
	pprof->mapping_index[position] = dictionary_message(dictionary, TABLE_MAPPING, &message.base);
	return pprof->mapping_index[position] < 0 ? -E2BIG : pprof->mapping_index[position];
}

static int line_of(struct pprof *pprof, const Pprof__Line *from, OtlpLine *line)
{
	int64_t position = find(pprof->functions, pprof->message->n_function, from->function_id);
	const char *name, *system_name, *file;
	const Pprof__Function *function;

	if (position < 0)
		return -EBADMSG;
	function = pprof->message->function[position];
	name = text_at(pprof, function->name);
	system_name = text_at(pprof, function->system_name);
	file = text_at(pprof, function->filename);
	if (!name || !system_name || !file)
		return -EBADMSG;
	otlp_init(line, line);
	line->function_index = import_function(pprof->import, name, system_name, file,
					       function->start_line);
	line->line = from->line;
	line->column = from->column;
	return line->function_index < 0 ? -E2BIG : 0;
}

/* pprof does not say so; its mapping and its half of the address space do. */
static bool is_kernel(const struct pprof *pprof, const Pprof__Location *location)
{
	int64_t position = find(pprof->mappings, pprof->message->n_mapping, location->mapping_id);
	const char *file = position < 0 ? NULL :
		text_at(pprof, pprof->message->mapping[position]->filename);

	return location->address >> 63 || (file && !strncmp(file, "[kernel", strlen("[kernel")));
}

static int location_of(struct pprof *pprof, uint64_t id)
{
	int64_t position = find(pprof->locations, pprof->message->n_location, id);
	_cleanup_free_ OtlpLine *lines = NULL;
	_cleanup_free_ OtlpLine **pointers = NULL;
	const Pprof__Location *from;
	int32_t attributes[2];
	OtlpLocation message;
	int err;

	if (position < 0)
		return -EBADMSG;
	if (pprof->location_index[position] >= 0)
		return pprof->location_index[position];
	from = pprof->message->location[position];
	otlp_init(location, &message);
	lines = calloc(from->n_line + 1, sizeof(*lines));
	pointers = calloc(from->n_line + 1, sizeof(*pointers));
	if (!lines || !pointers)
		return -E2BIG;
	message.mapping_index = mapping_of(pprof, from->mapping_id);
	if (message.mapping_index < 0)
		return message.mapping_index;
	message.address = from->address;
	message.lines = pointers;
	for (; message.n_lines < from->n_line; message.n_lines++) {
		err = line_of(pprof, from->line[message.n_lines], &lines[message.n_lines]);
		if (err)
			return err;
		pointers[message.n_lines] = &lines[message.n_lines];
	}
	message.attribute_indices = attributes;
	if (is_kernel(pprof, from)) {
		attributes[message.n_attribute_indices] =
			dictionary_attribute_string(&pprof->import->dictionary, "profile.frame.type", "kernel");
		if (attributes[message.n_attribute_indices++] < 0)
			return -E2BIG;
	}
	if (from->is_folded) {
		attributes[message.n_attribute_indices] =
			dictionary_attribute_bool(&pprof->import->dictionary, PPROF_IS_FOLDED, true);
		if (attributes[message.n_attribute_indices++] < 0)
			return -E2BIG;
	}
	pprof->location_index[position] =
		dictionary_message(&pprof->import->dictionary, TABLE_LOCATION, &message.base);
	return pprof->location_index[position] < 0 ? -E2BIG : pprof->location_index[position];
}

static int stack_of(struct pprof *pprof, const Pprof__Sample *sample)
{
	OtlpStack message;
	int index;

	pprof->stack.size = 0;
	for (size_t i = 0; i < sample->n_location_id; i++) {
		int32_t location = location_of(pprof, sample->location_id[i]);

		if (location < 0)
			return location;
		if (buffer_append(&pprof->stack, &location, sizeof(location)))
			return -E2BIG;
	}
	otlp_init(stack, &message);
	message.location_indices = (int32_t *)(void *)pprof->stack.data;
	message.n_location_indices = sample->n_location_id;
	index = dictionary_message(&pprof->import->dictionary, TABLE_STACK, &message.base);
	return index < 0 ? -E2BIG : index;
}

/* The labels of a Sample. */
struct labels {
	struct import_process process;
	bool has_tid, has_thread;
	int32_t attributes[LABELS_MAX];
	size_t count;
};

static bool is_id(const Pprof__Label *label, int64_t max)
{
	return !label->str && !label->num_unit && label->num > 0 && label->num <= max;
}

static int add_label(struct pprof *pprof, const Pprof__Label *label, const char *key,
		     const char *text, struct labels *labels)
{
	struct dictionary *dictionary = &pprof->import->dictionary;
	const char *unit = text_at(pprof, label->num_unit);
	int index;

	if (!unit)
		return -EBADMSG;
	/* as stacktap writes threads into pprof */
	if (!strcmp(key, "tid") && is_id(label, UINT32_MAX) && !labels->has_tid) {
		key = "thread.id";
		labels->has_tid = true;
	} else if (!strcmp(key, "thread") && text[0] && !labels->has_thread) {
		key = "thread.name";
		labels->has_thread = true;
	}
	index = text[0] ? dictionary_attribute_string(dictionary, key, text) :
			  dictionary_attribute_measure(dictionary, key, label->num, unit);
	if (index < 0)
		return -E2BIG;
	if (labels->count == LABELS_MAX) {
		pprof->import->passed++;
		return 0;
	}
	labels->attributes[labels->count++] = index;
	return 0;
}

static const char **process_text(struct import_process *process, const char *key)
{
	if (!strcmp(key, "process"))
		return &process->name;
	if (!strcmp(key, "container"))
		return &process->container;
	if (!strcmp(key, "service"))
		return &process->service;
	return strcmp(key, "cgroup") ? NULL : &process->cgroup;
}

/* Without a label that says it the program is the first mapping, as pprof has it. */
static const char *main_program(const struct pprof *pprof)
{
	const char *path = pprof->message->n_mapping ?
		text_at(pprof, pprof->message->mapping[0]->filename) : NULL;
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

static int read_labels(struct pprof *pprof, const Pprof__Sample *sample,
		       struct import_sample *entry)
{
	struct labels labels = { 0 };
	const char **of_process;
	int err = 0, index;

	for (size_t i = 0; i < sample->n_label && !err; i++) {
		const Pprof__Label *label = sample->label[i];
		const char *key = text_at(pprof, label->key), *text = text_at(pprof, label->str);

		if (!key || !text)
			return -EBADMSG;
		/* what is not as stacktap writes it is a label as any other */
		of_process = process_text(&labels.process, key);
		if (of_process && text[0] && !*of_process)
			*of_process = text;
		else if (!strcmp(key, "pid") && is_id(label, INT32_MAX) && !labels.process.pid)
			labels.process.pid = (uint32_t)label->num;
		else
			err = add_label(pprof, label, key, text, &labels);
	}
	if (err)
		return err;
	if (!labels.process.name)
		labels.process.name = main_program(pprof);
	index = import_process(pprof->import, &labels.process);
	if (index < 0)
		return index;
	entry->resource = (uint32_t)index;
	index = import_set(pprof->import, labels.attributes, labels.count);
	entry->set = (uint32_t)index;
	return index < 0 ? index : 0;
}

static const char *type_text(const struct pprof *pprof, const Pprof__ValueType *type, bool is_unit)
{
	return type ? text_at(pprof, is_unit ? type->unit : type->type) : "";
}

/* Is each value of another type its number of samples times the period? Then one Profile says both. */
static void find_fixed(struct pprof *pprof)
{
	const Pprof__Profile *message = pprof->message;
	int64_t weight;

	pprof->samples_type = pprof->fixed_type = -1;
	if (message->n_sample_type != 2 || message->period <= 0)
		return;
	for (int32_t i = 1; i >= 0; i--) {
		const char *type = type_text(pprof, message->sample_type[i], false);

		if (type && !strcmp(type, "samples"))
			pprof->samples_type = i;
	}
	if (pprof->samples_type < 0)
		return;
	for (size_t i = 0; i < message->n_sample; i++) {
		const int64_t *values = message->sample[i]->value;

		if (__builtin_mul_overflow(values[pprof->samples_type], message->period, &weight) ||
		    weight != values[1 - pprof->samples_type])
			return;
	}
	pprof->fixed_type = 1 - pprof->samples_type;
}

/*
 * Does the profile's period tell how values of @type were sampled? Numbers of samples are multiplied by it, so only
 * where nothing else says what they weigh, and by a period of something.
 */
static bool has_period(const struct pprof *pprof, const char *type)
{
	const char *of = type_text(pprof, pprof->message->period_type, false);

	return type && (strcmp(type, "samples") || (pprof->message->n_sample_type == 1 && of && of[0]));
}

static int event_of(struct pprof *pprof, size_t i)
{
	const Pprof__ValueType *type = pprof->message->sample_type[i], *other;
	struct import_event event = {
		.type = type_text(pprof, type, false), .unit = type_text(pprof, type, true),
	};

	if (pprof->fixed_type >= 0) {
		other = pprof->message->sample_type[pprof->fixed_type];
		event.period_type = type_text(pprof, other, false);
		event.period_unit = type_text(pprof, other, true);
		event.period = pprof->message->period;
	} else if (has_period(pprof, event.type)) {
		event.period_type = type_text(pprof, pprof->message->period_type, false);
		event.period_unit = type_text(pprof, pprof->message->period_type, true);
		event.period = max_of(pprof->message->period, (int64_t)0);
	}
	if (!event.type || !event.unit || (event.period && (!event.period_type || !event.period_unit)))
		return -EBADMSG;
	return import_event(pprof->import, &event);
}

static int read_sample(struct pprof *pprof, const Pprof__Sample *sample, const int32_t *events)
{
	struct import_sample entry = { 0 };
	int err, index = stack_of(pprof, sample);

	if (index < 0)
		return index;
	entry.stack = (uint32_t)index;
	err = read_labels(pprof, sample, &entry);
	for (size_t i = 0; i < sample->n_value && !err; i++) {
		if (!sample->value[i] || (int32_t)i == pprof->fixed_type)
			continue;
		entry.event = (uint32_t)events[i];
		entry.value = sample->value[i];
		err = import_add(pprof->import, &entry);
	}
	return err;
}

static int add_attribute(struct import *import, int index)
{
	if (index < 0)
		return -E2BIG;
	import->attributes[import->attribute_count++] = index;
	return 0;
}

static int add_text(struct pprof *pprof, const char *key, int64_t string)
{
	const char *text = text_at(pprof, string);

	if (!text)
		return -EBADMSG;
	return *text ? add_attribute(pprof->import, dictionary_attribute_string(&pprof->import->dictionary, key, text)) : 0;
}

/* What is said of the profile as a whole, by OpenTelemetry's names for it. */
static int read_remarks(struct pprof *pprof)
{
	const size_t count = min_of(pprof->message->n_comment, (size_t)PPROF_COMMENTS_MAX);
	const Pprof__Profile *message = pprof->message;
	const char *default_type = text_at(pprof, message->default_sample_type);
	const char *comments[PPROF_COMMENTS_MAX];
	int err;

	/* where it says none, pprof looks at the last one */
	if (default_type && !*default_type)
		default_type = type_text(pprof, message->sample_type[message->n_sample_type - 1], false);
	if (!default_type)
		return -EBADMSG;
	utf8_copy(pprof->import->default_type, sizeof(pprof->import->default_type), default_type);

	for (size_t i = 0; i < count; i++) {
		comments[i] = text_at(pprof, pprof->message->comment[i]);
		if (!comments[i])
			return -EBADMSG;
	}
	if (count < pprof->message->n_comment)
		pprof->import->loss = "comments beyond the first 256";
	err = count ? add_attribute(pprof->import,
				    dictionary_attribute_strings(&pprof->import->dictionary, PPROF_COMMENT,
								 comments, count)) : 0;
	return err ?: add_text(pprof, PPROF_DROP_FRAMES, pprof->message->drop_frames) ?:
	       add_text(pprof, PPROF_KEEP_FRAMES, pprof->message->keep_frames) ?:
	       add_text(pprof, PPROF_DOC_URL, pprof->message->doc_url);
}

static uint64_t count_changed(const Pprof__Profile *message)
{
	char clean[DICTIONARY_STRING_MAX];
	uint64_t changed = 0;

	for (size_t i = 0; i < message->n_string_table; i++) {
		utf8_copy(clean, sizeof(clean), message->string_table[i]);
		changed += strcmp(clean, message->string_table[i]) != 0;
	}
	return changed;
}

/* As a report counts them: the values of the type of that name, which a converted recording has; without one, messages. */
static uint64_t count_samples(const struct pprof *pprof)
{
	const Pprof__Profile *message = pprof->message;
	uint64_t sum = 0;
	size_t type = 0;

	while (type < message->n_sample_type &&
	       strcmp(type_text(pprof, message->sample_type[type], false) ?: "", "samples"))
		type++;
	if (type == message->n_sample_type)
		return message->n_sample;
	for (size_t i = 0; i < message->n_sample; i++)
		if (__builtin_add_overflow(sum, (uint64_t)max_of(message->sample[i]->value[type], (int64_t)0), &sum))
			return UINT64_MAX;
	return sum;
}

static int read_message(struct pprof *pprof)
{
	const Pprof__Profile *message = pprof->message;
	_cleanup_free_ int32_t *events = calloc(message->n_sample_type + 1, sizeof(*events));
	int err = 0;

	if (!message->n_string_table || message->string_table[0][0] || !message->n_sample_type)
		return -EBADMSG;
	for (size_t i = 0; i < message->n_sample; i++)
		if (message->sample[i]->n_value != message->n_sample_type)
			return -EBADMSG;
	pprof->mappings = MAKE_PLACES(pprof, mapping);
	pprof->locations = MAKE_PLACES(pprof, location);
	pprof->functions = MAKE_PLACES(pprof, function);
	pprof->mapping_index = malloc((message->n_mapping + 1) * sizeof(int32_t));
	pprof->location_index = malloc((message->n_location + 1) * sizeof(int32_t));
	if (!events || !pprof->mappings || !pprof->locations || !pprof->functions ||
	    !pprof->mapping_index || !pprof->location_index)
		return -E2BIG;
	memset(pprof->mapping_index, 0xff, (message->n_mapping + 1) * sizeof(int32_t));
	memset(pprof->location_index, 0xff, (message->n_location + 1) * sizeof(int32_t));
	err = read_remarks(pprof);
	if (err)
		return err;
	pprof->import->changed = count_changed(message);
	find_fixed(pprof);
	for (size_t i = 0; i < message->n_sample_type; i++) {
		events[i] = event_of(pprof, i);
		if (events[i] < 0)
			return events[i];
	}
	for (size_t i = 0; i < message->n_sample && !err; i++)
		err = read_sample(pprof, message->sample[i], events);
	pprof->import->samples = count_samples(pprof);
	pprof->import->start = (uint64_t)max_of(message->time_nanos, (int64_t)0);
	pprof->import->duration = (uint64_t)max_of(message->duration_nanos, (int64_t)0);
	return err;
}

int import_pprof(struct import *import, const uint8_t *data, size_t size)
{
	struct pprof pprof = { .import = import, .stack = { .pool = POOL_REPORT } };
	struct buffer plain = { .pool = POOL_REPORT };
	struct unpacked unpacked = { 0 };
	int err = 0;

	if (size > 2 && data[0] == 0x1f && data[1] == 0x8b) {
		err = inflate_into(&plain, data, size);
		data = plain.data;
		size = plain.size;
	}
	if (!err && !unpack(&unpacked, &pprof__profile__descriptor, data, size, UNPACK_MAX))
		err = unpacked.is_exhausted ? -E2BIG : -EBADMSG;
	if (!err) {
		pprof.message = (const Pprof__Profile *)unpacked.message;
		import->format = "pprof";
		err = read_message(&pprof);
	}
	unpack_free(&unpacked);
	buffer_free(&plain);
	buffer_free(&pprof.stack);
	free(pprof.mappings);
	free(pprof.locations);
	free(pprof.functions);
	free(pprof.mapping_index);
	free(pprof.location_index);
	return err;
}
