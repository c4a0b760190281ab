// SPDX-License-Identifier: Apache-2.0
/* pprof: Samples per stack and thread, entry by entry into one buffer that is compressed in the end. */
#include <string.h>

#include "base/hash.h"
#include "export/gzip.h"
#include "pprof.pb-c.h"
#include "view/convert.h"
#include "view/pprof_names.h"

enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
};

/* Frames of one address: what is inlined, and what into. */
struct run {
	uint32_t first, count;	/* in run_frames */
	uint64_t hash;		/* of these */
};

struct mapping {
	struct model_frame frame;	/* one in it */
	uint8_t lacks;			/* of what it is said to lack what its frames do not have either */
};

struct function {
	const char *name, *system_name, *source;
	uint64_t start_line;
};

struct pprof {
	struct model *model;
	const struct convert_options *options;
	struct buffer out;
	struct buffer strings;	/* uint32_t by a text's position: its number + 1, 0: not used */
	uint32_t string_count;
	struct buffer run_frames;	/* uint32_t */
	struct rows runs, mappings, functions;
	struct buffer labels, label_pointers;	/* of the Sample at hand */
	const char *program;		/* name of the first Sample's process */
	size_t values;			/* of each Sample: samples, and their weight unless that is the same */
	int err;			/* the first one */
};

static void put_message(struct pprof *pprof, unsigned int field, const ProtobufCMessage *message)
{
	size_t size = protobuf_c_message_get_packed_size(message);

	if (pprof->err)
		return;
	if (buffer_field(&pprof->out, field, size) || !buffer_reserve(&pprof->out, size)) {
		pprof->err = -E2BIG;
		return;
	}
	pprof->out.size += protobuf_c_message_pack(message, pprof->out.data + pprof->out.size);
}

static void put_string(struct pprof *pprof, const char *text)
{
	size_t size = strlen(text);

	if (!pprof->err && (buffer_field(&pprof->out, PROFILE_STRING, size) ||
			    buffer_append(&pprof->out, text, size)))
		pprof->err = -E2BIG;
	pprof->string_count++;
}

/* The place of an interned text in the string table, which grows as texts are used. */
static int64_t string_of(struct pprof *pprof, const char *text)
{
	size_t wanted, old = pprof->strings.size;
	uint32_t position, *numbers;

	if (!text[0] || pprof->err)
		return 0;
	position = texts_position(&pprof->model->texts, text);
	wanted = ((size_t)position + 1) * sizeof(*numbers);
	if (old < wanted) {
		if (!buffer_reserve(&pprof->strings, wanted - old)) {
			pprof->err = -E2BIG;
			return 0;
		}
		memset(pprof->strings.data + old, 0, wanted - old);
		pprof->strings.size = wanted;
	}
	numbers = (uint32_t *)(void *)pprof->strings.data;
	if (!numbers[position]) {
		numbers[position] = pprof->string_count + 1;
		put_string(pprof, text);
	}
	return numbers[position] - 1;
}

static int64_t own_string(struct pprof *pprof, const char *text)
{
	const char *interned = texts_intern(&pprof->model->texts, text);

	if (!interned)
		pprof->err = -E2BIG;
	return interned ? string_of(pprof, interned) : 0;
}

static uint64_t mapping_hash(const struct model_frame *frame)
{
	return hash_words((const uint64_t[]){ (uintptr_t)frame->file, (uintptr_t)frame->build_id,
					      frame->start, frame->limit, frame->offset, frame->lacks }, 6);
}

static uint64_t mapping_hash_of(const void *ctx, uint32_t position)
{
	return mapping_hash(&((const struct mapping *)ctx + position)->frame);
}

static struct mapping *mapping_at(const struct pprof *pprof, uint32_t i)
{
	return (struct mapping *)(void *)pprof->mappings.data.data + i;
}

/* The mapping of a frame at whose address there is @shown. Ids begin at 1; 0 is none. */
static uint64_t mapping_of(struct pprof *pprof, const struct model_frame *frame, uint8_t shown)
{
	const struct mapping row = { .frame = *frame, .lacks = frame->lacks & (uint8_t)~shown };
	uint64_t hash = mapping_hash(frame);
	struct index_probe probe = index_first(&pprof->mappings.index, hash);
	const struct model_frame *old;
	uint32_t i;

	if (!frame->file[0] && !frame->build_id[0] && !frame->start && !frame->limit && !frame->offset && !frame->lacks)
		return 0;
	while ((i = index_next(&pprof->mappings.index, &probe)) != INDEX_NONE) {
		old = &mapping_at(pprof, i)->frame;
		if (old->file == frame->file && old->build_id == frame->build_id &&
		    old->start == frame->start && old->limit == frame->limit &&
		    old->offset == frame->offset && old->lacks == frame->lacks) {
			mapping_at(pprof, i)->lacks &= row.lacks;
			return i + 1;
		}
	}
	if (rows_add(&pprof->mappings, hash, mapping_hash_of, &row, sizeof(row), &i)) {
		pprof->err = -E2BIG;
		return 0;
	}
	return i + 1;
}

static uint32_t find_program(const struct pprof *pprof)
{
	for (uint32_t i = 0; i < pprof->mappings.count; i++) {
		const char *file = mapping_at(pprof, i)->frame.file, *slash = strrchr(file, '/');

		if (!strcmp(slash ? slash + 1 : file, pprof->program))
			return i;
	}
	return 0;
}

/*
 * What is known of their code is known when all frames were seen: names may have been found after it was said.
 * Readers take the first for the program.
 */
static void put_mappings(struct pprof *pprof)
{
	const uint32_t program = find_program(pprof);

	for (uint32_t i = 0; i < pprof->mappings.count && !pprof->err; i++) {
		const uint32_t at = !i ? program : i <= program ? i - 1 : i;
		const struct mapping *mapping = mapping_at(pprof, at);
		Pprof__Mapping message = PPROF__MAPPING__INIT;

		message.id = at + 1;
		message.memory_start = mapping->frame.start;
		message.memory_limit = mapping->frame.limit;
		message.file_offset = mapping->frame.offset;
		message.filename = string_of(pprof, mapping->frame.file);
		message.build_id = string_of(pprof, mapping->frame.build_id);
		/* what has no name was looked for already, unless somebody says that it was not */
		message.has_functions = !(mapping->lacks & 1 << PPROF_HAS_FUNCTIONS);
		message.has_filenames = !(mapping->lacks & 1 << PPROF_HAS_FILENAMES);
		message.has_line_numbers = !(mapping->lacks & 1 << PPROF_HAS_LINE_NUMBERS);
		message.has_inline_frames = !(mapping->lacks & 1 << PPROF_HAS_INLINE_FRAMES);
		put_message(pprof, PROFILE_MAPPING, &message.base);
	}
}

static uint64_t function_hash(const struct function *function)
{
	return hash_words((const uint64_t[]){ (uintptr_t)function->name, (uintptr_t)function->system_name,
					      (uintptr_t)function->source, function->start_line }, 4);
}

static uint64_t function_hash_of(const void *ctx, uint32_t position)
{
	return function_hash((const struct function *)ctx + position);
}

static uint64_t function_of(struct pprof *pprof, const struct model_frame *frame)
{
	const struct function key = { .name = frame->name, .source = frame->source, .start_line = frame->start_line,
				      .system_name = *frame->system_name ? frame->system_name : frame->name };
	uint64_t hash = function_hash(&key);
	struct index_probe probe = index_first(&pprof->functions.index, hash);
	Pprof__Function message = PPROF__FUNCTION__INIT;
	const struct function *old;
	uint32_t i;

	while ((i = index_next(&pprof->functions.index, &probe)) != INDEX_NONE) {
		old = (const struct function *)(const void *)pprof->functions.data.data + i;
		if (old->name == key.name && old->system_name == key.system_name && old->source == key.source &&
		    old->start_line == key.start_line)
			return i + 1;
	}
	if (rows_add(&pprof->functions, hash, function_hash_of, &key, sizeof(key), &i)) {
		pprof->err = -E2BIG;
		return 0;
	}
	message.id = i + 1;
	message.name = string_of(pprof, frame->name);
	message.system_name = string_of(pprof, key.system_name);
	message.filename = string_of(pprof, frame->source);
	message.start_line = (int64_t)min_of(frame->start_line, (uint64_t)INT64_MAX);
	put_message(pprof, PROFILE_FUNCTION, &message.base);
	return i + 1;
}

static uint8_t shown_by(const struct model_frame *frame, bool is_inlined)
{
	if (!frame->is_named)
		return 0;
	return (uint8_t)(1 << PPROF_HAS_FUNCTIONS | !!frame->source[0] << PPROF_HAS_FILENAMES |
			 !!frame->line << PPROF_HAS_LINE_NUMBERS | is_inlined << PPROF_HAS_INLINE_FRAMES);
}

static void put_location(struct pprof *pprof, uint64_t id, const uint32_t *frames, uint32_t count)
{
	const struct model_frame *last = model_frame(pprof->model, frames[count - 1]);
	Pprof__Location message = PPROF__LOCATION__INIT;
	_cleanup_free_ Pprof__Line **pointers = calloc(count, sizeof(Pprof__Line *));
	_cleanup_free_ Pprof__Line *lines = calloc(count, sizeof(*lines));
	uint8_t shown = 0;

	if (!lines || !pointers) {
		pprof->err = -E2BIG;
		return;
	}
	message.id = id;
	message.address = last->address;
	message.is_folded = last->is_folded;
	message.line = pointers;
	for (uint32_t i = 0; i < count; i++) {
		const struct model_frame *frame = model_frame(pprof->model, frames[i]);

		shown |= shown_by(frame, count > 1);
		if (!frame->is_named && !frame->is_range)
			continue;
		pprof__line__init(&lines[i]);
		lines[i].function_id = function_of(pprof, frame);
		lines[i].line = (int64_t)min_of(frame->line, (uint64_t)INT64_MAX);
		lines[i].column = (int64_t)min_of(frame->column, (uint64_t)INT64_MAX);
		pointers[message.n_line++] = &lines[i];
	}
	message.mapping_id = mapping_of(pprof, last, shown);
	put_message(pprof, PROFILE_LOCATION, &message.base);
}

static uint64_t run_hash_of(const void *ctx, uint32_t position)
{
	return ((const struct run *)ctx + position)->hash;
}

static uint64_t location_of(struct pprof *pprof, const uint32_t *frames, uint32_t count)
{
	struct run row = { .count = count,
			   .hash = hash_bytes(frames, count * sizeof(*frames)) };
	struct index_probe probe = index_first(&pprof->runs.index, row.hash);
	const struct run *old;
	uint32_t i;

	while ((i = index_next(&pprof->runs.index, &probe)) != INDEX_NONE) {
		old = (const struct run *)(const void *)pprof->runs.data.data + i;
		if (old->count == count &&
		    !memcmp(pprof->run_frames.data + old->first * sizeof(*frames), frames,
			    count * sizeof(*frames)))
			return i + 1;
	}
	row.first = (uint32_t)(pprof->run_frames.size / sizeof(*frames));
	if (pprof->run_frames.size / sizeof(*frames) > UINT32_MAX - count ||
	    buffer_append(&pprof->run_frames, frames, count * sizeof(*frames)) ||
	    rows_add(&pprof->runs, row.hash, run_hash_of, &row, sizeof(row), &i)) {
		pprof->err = -E2BIG;
		return 0;
	}
	put_location(pprof, i + 1, frames, count);
	return i + 1;
}

static void add_own(struct pprof *pprof, const char *key, const char *text, uint32_t number)
{
	Pprof__Label label = PPROF__LABEL__INIT;

	if ((text && !text[0]) || (!text && !number))
		return;
	label.key = own_string(pprof, key);
	label.str = text ? string_of(pprof, text) : 0;
	label.num = number;
	if (buffer_append(&pprof->labels, &label, sizeof(label)))
		pprof->err = -E2BIG;
}

static void add_label(struct pprof *pprof, const struct view_label *from)
{
	Pprof__Label label = PPROF__LABEL__INIT;

	label.key = string_of(pprof, from->key);
	label.str = from->text ? string_of(pprof, from->text) : 0;
	label.num = from->number;
	label.num_unit = string_of(pprof, from->unit);
	if (buffer_append(&pprof->labels, &label, sizeof(label)))
		pprof->err = -E2BIG;
}

static void make_labels(struct pprof *pprof, const struct model_group *group)
{
	size_t count;
	const struct view_label *labels = labels_of(&pprof->model->labels, group->labels, &count);

	pprof->labels.size = pprof->label_pointers.size = 0;
	add_own(pprof, "process", group->process.name, 0);
	add_own(pprof, "pid", NULL, group->process.pid);
	add_own(pprof, "thread", group->thread, 0);
	add_own(pprof, "tid", NULL, group->tid);
	add_own(pprof, "container", group->process.container_id, 0);
	add_own(pprof, "service", group->process.service_name, 0);
	add_own(pprof, "cgroup", group->process.cgroup, 0);
	for (size_t i = 0; i < count; i++)
		add_label(pprof, &labels[i]);
}

static void put_sample(struct pprof *pprof, const struct timeline_entry *entry,
		       const struct model_group *group, uint64_t *locations, size_t count)
{
	Pprof__Sample message = PPROF__SAMPLE__INIT;
	/* of samples alone the number is their weight */
	const uint64_t samples = pprof->values == 1 ? entry->weight : entry->samples;
	int64_t values[] = {
		(int64_t)min_of(samples, (uint64_t)INT64_MAX),
		(int64_t)min_of(entry->weight, (uint64_t)INT64_MAX),
	};

	message.location_id = locations;
	message.n_location_id = count;
	message.value = values;
	message.n_value = pprof->values;
	make_labels(pprof, group);
	message.n_label = pprof->labels.size / sizeof(Pprof__Label);
	for (size_t i = 0; i < message.n_label && !pprof->err; i++) {
		const Pprof__Label *label = (const Pprof__Label *)(const void *)pprof->labels.data + i;

		if (buffer_append(&pprof->label_pointers, &label, sizeof(label)))
			pprof->err = -E2BIG;
	}
	if (pprof->err)
		return;
	message.label = (Pprof__Label **)(void *)pprof->label_pointers.data;
	put_message(pprof, PROFILE_SAMPLE, &message.base);
}

static int put_samples(struct pprof *pprof)
{
	struct buffer frames = { .pool = POOL_REPORT }, locations = { .pool = POOL_REPORT };
	const struct model *model = pprof->model;
	uint64_t location;
	size_t count;

	for (size_t i = 0; i < timeline_count(&model->timeline) && !pprof->err; i++) {
		const struct timeline_entry *entry = timeline_at(&model->timeline, i);
		const struct model_group *group = model_group(model, entry->group);
		const uint32_t *numbers;
		uint32_t begin = 0;

		if (group->event != pprof->options->event)
			continue;
		if (!pprof->program[0])
			pprof->program = group->process.name;
		pprof->err = model_stack(model, entry->node, &frames, &count);
		numbers = (const uint32_t *)(const void *)frames.data;
		locations.size = 0;
		for (uint32_t k = 0; k < count && !pprof->err; k++) {
			if (model_frame(model, numbers[k])->is_inlined && k + 1 < count)
				continue;
			location = location_of(pprof, numbers + begin, k + 1 - begin);
			begin = k + 1;
			if (!pprof->err && buffer_append(&locations, &location, sizeof(location)))
				pprof->err = -E2BIG;
		}
		if (!pprof->err)
			put_sample(pprof, entry, group, (uint64_t *)(void *)locations.data,
				   locations.size / sizeof(location));
	}
	buffer_free(&frames);
	buffer_free(&locations);
	return pprof->err;
}

static void put_type(struct pprof *pprof, const char *type, const char *unit)
{
	Pprof__ValueType message = PPROF__VALUE_TYPE__INIT;

	message.type = own_string(pprof, type);
	message.unit = own_string(pprof, unit);
	put_message(pprof, PROFILE_SAMPLE_TYPE, &message.base);
}

/* What a Profile has once. Its fields come last, as a message may have them in any order. */
static void put_profile(struct pprof *pprof)
{
	const struct model_event *event = model_event(pprof->model, pprof->options->event);
	const struct reader_totals *totals = &pprof->model->totals;
	const struct model_remarks *remarks = &pprof->model->remarks;
	int64_t comments[PPROF_COMMENTS_MAX];
	Pprof__ValueType period_type = PPROF__VALUE_TYPE__INIT;
	Pprof__Profile message = PPROF__PROFILE__INIT;
	size_t size;

	message.time_nanos = (int64_t)min_of(totals->start, (uint64_t)INT64_MAX);
	message.duration_nanos = (int64_t)min_of(totals->end - totals->start, (uint64_t)INT64_MAX);
	message.period = (int64_t)min_of(event->own_period ?: event->period, (uint64_t)INT64_MAX);
	if (message.period) {
		period_type.type = string_of(pprof, event->own_period ? event->period_type : event->source);
		period_type.unit = string_of(pprof, event->own_period ? event->period_unit : event->unit);
		message.period_type = &period_type;
	}
	/* of the two types that there are, that which it said */
	message.default_sample_type = string_of(pprof, remarks->default_type && !strcmp(remarks->default_type, "samples") ?
						       remarks->default_type : event->source);
	message.drop_frames = string_of(pprof, remarks->drop_frames ?: "");
	message.keep_frames = string_of(pprof, remarks->keep_frames ?: "");
	message.doc_url = string_of(pprof, remarks->doc_url ?: "");
	for (; message.n_comment < remarks->comments.size / sizeof(char *); message.n_comment++)
		comments[message.n_comment] = string_of(pprof, ((const char *const *)(const void *)
							       remarks->comments.data)[message.n_comment]);
	message.comment = comments;
	size = protobuf_c_message_get_packed_size(&message.base);
	if (pprof->err)
		return;
	if (!buffer_reserve(&pprof->out, size))
		pprof->err = -E2BIG;
	else
		pprof->out.size += protobuf_c_message_pack(&message.base,
							   pprof->out.data + pprof->out.size);
}

int pprof_write(struct model *model, const struct convert_options *options, FILE *file)
{
	const struct model_event *event = model_event(model, options->event);
	struct pprof pprof = { .model = model, .options = options, .program = "",
			       .values = strcmp(event->source, "samples") ? 2 : 1 };
	struct buffer packed = { .pool = POOL_REPORT };

	buffer_init(&pprof.out, POOL_REPORT);
	buffer_init(&pprof.strings, POOL_REPORT);
	buffer_init(&pprof.run_frames, POOL_REPORT);
	buffer_init(&pprof.labels, POOL_REPORT);
	buffer_init(&pprof.label_pointers, POOL_REPORT);
	rows_init(&pprof.runs);
	rows_init(&pprof.mappings);
	rows_init(&pprof.functions);
	put_string(&pprof, "");
	put_type(&pprof, "samples", pprof.values > 1 || event->period ? "count" : event->unit);
	if (pprof.values > 1)
		put_type(&pprof, event->source, event->unit);
	put_samples(&pprof);
	put_mappings(&pprof);
	put_profile(&pprof);
	if (!pprof.err && gzip_compress(&packed, pprof.out.data, pprof.out.size))
		pprof.err = -E2BIG;
	if (!pprof.err)
		fwrite(packed.data, 1, packed.size, file);
	buffer_free(&packed);
	buffer_free(&pprof.out);
	buffer_free(&pprof.strings);
	buffer_free(&pprof.run_frames);
	buffer_free(&pprof.labels);
	buffer_free(&pprof.label_pointers);
	rows_free(&pprof.runs);
	rows_free(&pprof.mappings);
	rows_free(&pprof.functions);
	return pprof.err;
}
