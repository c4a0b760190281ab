// SPDX-License-Identifier: Apache-2.0
#include "export/cut_reader.h"

#include <stdatomic.h>
#include <string.h>

#include "base/buffer.h"
#include "export/cut_format.h"
#include "export/cut_take.h"
#include "export/downsample.h"
#include "export/entry.h"
#include "export/otlp.h"

#define FRAMES_MAX (STACKTAP_MAX_KERNEL_FRAMES + STACKTAP_MAX_USER_FRAMES)
#define PROFILES_MAX 256u
#define PAYLOAD_BYTES ((size_t)3584 << 10)
#define WIRE_LEN 2u
#define TIMES_AHEAD 256u	/* room in an entry for those of the next cuts, at most */

/* An image, its Resource and what rules say of its samples. */
struct described {
	struct image *image;		/* NULL: the kernel's */
	uint32_t one_in;
	size_t size;
	uint8_t resource[];
};

struct cut_reader {
	struct encode_options options;
	char kernel_suffix[ENCODE_MAX_SUFFIX + 1];
	struct cut_table objects, files, functions, locations;
	struct cut_table images;		/* the first is the kernel's; journalled.index is the place in it */

	struct window *window;		/* NULL: no cut was read */
	struct cut_table stacks;		/* in its arena */
	struct cut_table samples;		/* their place in it + 1, as pointers */
	uint64_t time;
	struct window_sample shapes[CUT_SHAPES];	/* without what each sample has of its own, */
	uint64_t has_shapes;				/* as these bits say */
};

_Static_assert(CUT_SHAPES == 64, "bits of shapes");

static int read_options(struct cut_reader *reader, struct cut_bytes *bytes)
{
	const uint32_t flags = cut_take_word(bytes);

	reader->options.max_bytes = (size_t)min_of(cut_take(bytes), (uint64_t)PAYLOAD_BYTES);
	cut_take_text(bytes, reader->kernel_suffix, sizeof(reader->kernel_suffix));
	reader->options.with_cpu = flags & CUT_WITH_CPU;
	reader->options.had_rules = flags & CUT_HAD_RULES;
	reader->options.rounds_times = flags & CUT_ROUNDS_TIMES;
	reader->options.form.names_ranges = flags & CUT_NAMES_RANGES;
	reader->options.form.repeats_functions = flags & CUT_REPEATS;
	reader->options.form.kernel_suffix = flags & CUT_HAS_SUFFIX ? reader->kernel_suffix : NULL;
	return 0;
}

static int read_profile(struct cut_reader *reader, struct cut_bytes *bytes)
{
	struct window *window = reader->window;
	const size_t count = window->profile_count;
	struct profile_config *profiles, *config;
	struct window_counts *counts;
	uint32_t flags;

	if (count == PROFILES_MAX)
		return -EBADMSG;
	if (!pool_charge(POOL_AGGREGATE, sizeof(*profiles) + sizeof(*counts)))
		return -ENOBUFS;
	window->profile_capacity++;
	profiles = reallocarray(window->profiles, count + 1, sizeof(*profiles));
	if (!profiles)
		return -ENOMEM;
	window->profiles = profiles;
	counts = reallocarray(window->counts, count + 1, sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	window->counts = counts;
	config = &window->profiles[count];
	*config = (struct profile_config){ 0 };
	counts[count] = (struct window_counts){ 0 };
	cut_take_text(bytes, config->source, sizeof(config->source));
	cut_take_text(bytes, config->event, sizeof(config->event));
	config->source_id = (uint16_t)cut_take_below(bytes, STACKTAP_MAX_SOURCES);
	config->mode = (uint16_t)cut_take_below(bytes, UINT16_MAX);
	config->rate_hz = cut_take_word(bytes);
	config->fallback_errno = cut_take_word(bytes);
	config->degraded = cut_take_word(bytes);
	config->period = cut_take(bytes);
	flags = cut_take_word(bytes);
	config->is_multiplexed = flags & CUT_MULTIPLEXED;
	config->is_clock = flags & CUT_CLOCK;
	config->is_cpu_time = flags & CUT_CPU_TIME;
	window->profile_count += !bytes->is_bad;
	return 0;
}

static int read_segments(struct object *object, struct cut_bytes *bytes)
{
	const uint32_t count = cut_take_below(bytes, OBJECT_SEGMENTS_MAX + 1);
	struct object_segment *segments;

	if (bytes->is_bad || !count)
		return 0;
	segments = calloc(count, sizeof(*segments));
	if (!segments)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		segments[i].vaddr = cut_take(bytes);
		segments[i].offset = cut_take(bytes);
		segments[i].size = cut_take(bytes);
	}
	return object_set_segments(object, segments, count);
}

static int read_object(struct cut_reader *reader, struct cut_bytes *bytes)
{
	const enum object_kind kind = cut_take_below(bytes, OBJECT_ANONYMOUS + 1);
	const int state = (int)cut_take_below(bytes, OBJECT_GONE + 1);
	_cleanup_(object_unrefp) struct object *object = NULL;
	char text[CUT_TEXT_MAX + 1];
	int err;

	cut_take_text(bytes, text, sizeof(text));
	object = bytes->is_bad ? NULL : object_new(kind, text);
	if (!object)
		return bytes->is_bad ? -EBADMSG : -ENOBUFS;
	cut_take_text(bytes, object->build_id, sizeof(object->build_id));
	cut_take_text(bytes, text, sizeof(text));
	if (text[0])
		object_set_go_build_id(object, text);
	cut_take_text(bytes, object->htlhash, sizeof(object->htlhash));
	object->address_start = cut_take(bytes);
	object->address_limit = cut_take(bytes);
	object->file_offset = cut_take(bytes);
	err = read_segments(object, bytes);
	if (err || bytes->is_bad)
		return err;
	atomic_store_explicit(&object->state, state, memory_order_release);
	err = cut_table_add(&reader->objects, object);
	if (!err)
		object = NULL;
	return err;
}

static int read_file(struct cut_reader *reader, struct cut_bytes *bytes)
{
	const uint32_t index = cut_take_below(bytes, (uint64_t)reader->files.count + 1);
	const enum object_kind kind = cut_take_below(bytes, OBJECT_ANONYMOUS + 1);
	char path[CUT_TEXT_MAX + 1];
	struct mapped_file *file;
	struct object *object;
	int err;

	cut_take_text(bytes, path, sizeof(path));
	object = cut_take_item(bytes, &reader->objects);
	if (bytes->is_bad)
		return -EBADMSG;
	if (index == reader->files.count) {
		file = mapped_file_new(kind, path);
		if (!file)
			return -ENOBUFS;
		err = cut_table_add(&reader->files, file);
		if (err) {
			mapped_file_unref(file);
			return err;
		}
	}
	file = reader->files.items[index];
	if (object && !mapped_file_object(file))
		atomic_store_explicit(&file->object, object_ref(object), memory_order_release);
	return 0;
}

static int read_function(struct cut_reader *reader, struct cut_bytes *bytes)
{
	char name[CUT_TEXT_MAX + 1], system_name[CUT_TEXT_MAX + 1], filename[CUT_TEXT_MAX + 1];
	const uint32_t flags = cut_take_word(bytes);
	struct function *function;
	int64_t start_line;
	int err;

	cut_take_text(bytes, name, sizeof(name));
	cut_take_text(bytes, system_name, sizeof(system_name));
	cut_take_text(bytes, filename, sizeof(filename));
	start_line = cut_take_signed(bytes);
	if (bytes->is_bad)
		return -EBADMSG;
	function = function_new_at(name, flags & CUT_SYSTEM_NAME ? system_name : name,
				   flags & CUT_FILENAME ? filename : NULL, start_line);
	if (!function)
		return -ENOBUFS;
	err = cut_table_add(&reader->functions, function);
	if (err)
		function_unref(function);
	return err;
}

static void described_free(struct described *described)
{
	if (!described)
		return;
	image_unref(described->image);
	pool_uncharge(POOL_PROCESSES, sizeof(*described) + described->size);
	free(described);
}

/* Takes @image over; NULL: there is no memory. */
static struct described *described_new(struct image *image, const uint8_t *resource, size_t size)
{
	struct described *described = NULL;

	if (pool_charge(POOL_PROCESSES, sizeof(*described) + size)) {
		described = malloc(sizeof(*described) + size);
		if (!described)
			pool_uncharge(POOL_PROCESSES, sizeof(*described) + size);
	}
	if (!described) {
		image_unref(image);
		return NULL;
	}
	described->image = image;
	described->size = size;
	memcpy(described->resource, resource, size);
	return described;
}

/* One field, which goes into a message as it is. */
static bool is_resource(const uint8_t *data, size_t size)
{
	struct cut_bytes bytes = { .at = data, .end = data + size };
	const uint64_t tag = cut_take(&bytes), length = cut_take(&bytes);

	return !bytes.is_bad && tag == (OTLP_RESOURCE_PROFILES_RESOURCE << 3 | WIRE_LEN) &&
	       length == (uint64_t)(bytes.end - bytes.at);
}

static int read_image(struct cut_reader *reader, struct cut_bytes *bytes)
{
	/* the kernel's may come after others */
	const uint32_t index = cut_take_below(bytes, (uint64_t)max_of(reader->images.count, 1u) + 1);
	const uint32_t tgid = cut_take_word(bytes);
	const uint32_t one_in = cut_take_below(bytes, DOWNSAMPLE_MAX + 1);
	struct described *described, *before;
	struct image *image = NULL;
	const uint8_t *resource;
	size_t size;
	int err = 0;

	resource = cut_take_bytes(bytes, SIZE_MAX, &size);
	if (bytes->is_bad || !one_in || !is_resource(resource, size))
		return -EBADMSG;
	while (!err && reader->images.count <= index)
		err = cut_table_add(&reader->images, NULL);
	if (err)
		return err;
	before = reader->images.items[index];
	if (before && before->image)
		image = image_ref(before->image);
	else if (index)
		image = image_new(NULL, tgid, 0, NULL);
	if (index && !image)
		return -ENOBUFS;
	if (image)
		image->journalled.index = index;
	described = described_new(image, resource, size);
	if (!described)
		return -ENOBUFS;
	described->one_in = one_in;
	reader->images.items[index] = described;
	described_free(before);
	return 0;
}

static int read_lines(struct cut_reader *reader, struct cut_bytes *bytes, struct location *location)
{
	const uint32_t count = cut_take_below(bytes, ENTRY_LINES + 1);
	struct line lines[ENTRY_LINES];

	for (uint32_t i = 0; i < count; i++) {
		const uint32_t index = cut_take_below(bytes, reader->functions.count);

		lines[i].line = cut_take_signed(bytes);
		lines[i].column = cut_take_signed(bytes);
		if (bytes->is_bad)
			return -EBADMSG;
		lines[i].function = reader->functions.items[index];
	}
	if (bytes->is_bad || !count)
		return 0;
	for (uint32_t i = 0; i < count; i++)
		function_ref(lines[i].function);
	return location_set_lines(location, lines, count);
}

static int read_resolved(struct cut_reader *reader, struct cut_bytes *bytes, struct location *location, uint32_t flags)
{
	const enum frame_runtime runtime = cut_take_below(bytes, RUNTIMES);
	struct object *object = cut_take_item(bytes, &reader->objects);
	int err;

	if (bytes->is_bad || atomic_load_explicit(&location->is_resolved, memory_order_acquire))
		return -EBADMSG;
	location->runtime = runtime;
	location->object = object ? object_ref(object) : NULL;
	location->address = cut_take(bytes);
	location->function_start = cut_take(bytes);
	location->has_function = flags & CUT_RANGE;
	location->is_refused = flags & CUT_REFUSED;
	err = read_lines(reader, bytes, location);
	atomic_store_explicit(&location->is_resolved, true, memory_order_release);
	return err;
}

static int read_location(struct cut_reader *reader, struct cut_bytes *bytes)
{
	const uint32_t index = cut_take_below(bytes, (uint64_t)reader->locations.count + 1);
	const uint32_t flags = cut_take_word(bytes);
	struct mapped_file *file = cut_take_item(bytes, &reader->files);
	const uint64_t offset = cut_take(bytes);
	struct location *location;
	int err;

	if (bytes->is_bad)
		return -EBADMSG;
	if (index == reader->locations.count) {
		location = location_new(file, offset, flags & CUT_KERNEL ? FRAME_KERNEL : FRAME_NATIVE,
					flags & CUT_RETURN);
		if (!location)
			return -ENOBUFS;
		err = cut_table_add(&reader->locations, location);
		if (err) {
			location_unref(location);
			return err;
		}
	}
	return flags & CUT_RESOLVED ? read_resolved(reader, bytes, reader->locations.items[index], flags) : 0;
}

static int read_stack(struct cut_reader *reader, struct cut_bytes *bytes)
{
	const struct cut_table *stacks = &reader->stacks;
	const struct stack *before = stacks->count ? stacks->items[stacks->count - 1] : NULL;
	const uint32_t shared = cut_take_below(bytes, before ? (uint64_t)before->count + 1 : 1);
	const uint32_t others = cut_take_below(bytes, FRAMES_MAX + 1 - min_of(shared, (uint32_t)FRAMES_MAX));
	struct stack *stack;

	if (bytes->is_bad || others > (size_t)(bytes->end - bytes->at) || (shared && !before))
		return -EBADMSG;
	stack = arena_alloc(&reader->window->arena,
			    sizeof(*stack) + ((size_t)others + shared) * sizeof(stack->locations[0]));
	if (!stack)
		return -ENOBUFS;
	stack->count = others + shared;
	for (uint32_t i = 0; i < others; i++) {
		const uint32_t index = cut_take_below(bytes, reader->locations.count);

		if (bytes->is_bad)
			return -EBADMSG;
		stack->locations[i] = reader->locations.items[index];
	}
	for (uint32_t i = 0; i < shared; i++)
		stack->locations[others + i] = before->locations[before->count - shared + i];
	return cut_table_add(&reader->stacks, stack);
}

static bool has_values(const struct cut_reader *reader, const struct window_sample *sample)
{
	return reader->window->profiles[sample->profile].mode == STACKTAP_MODE_FREQ;
}

/* How many times follow. */
static int read_count(const struct cut_reader *reader, struct cut_bytes *bytes, const struct window_sample *sample,
		      uint32_t count)
{
	/* and a byte for each value, at least */
	const size_t least = sizeof(uint32_t) + has_values(reader, sample);

	return bytes->is_bad || !count || count > (size_t)(bytes->end - bytes->at) / least ? -EBADMSG : 0;
}

/* Behind what the entry has, where there is room for them. */
static int read_times(struct cut_reader *reader, struct cut_bytes *bytes, struct window_sample *sample, uint32_t count)
{
	struct window *window = reader->window;

	for (uint32_t i = sample->count; i < sample->count + count; i++) {
		reader->time += (uint64_t)(int64_t)(int32_t)cut_take32(bytes);
		sample->times[i] = reader->time;
		if (reader->time >= INT64_MAX)
			bytes->is_bad = true;
		window->start = min_of(window->start, reader->time);
		window->end = max_of(window->end, reader->time + 1);
	}
	for (uint32_t i = sample->count; sample->values && i < sample->count + count; i++)
		sample->values[i] = cut_take(bytes);
	if (bytes->is_bad)
		return -EBADMSG;
	sample->count += count;
	window_counts_add(&window->counts[sample->profile], sample, count);
	return 0;
}

/* A new entry, with what @sample says but times. */
static int read_entry_times(struct cut_reader *reader, struct cut_bytes *bytes, struct window_sample *sample,
			    uint32_t count)
{
	struct window *window = reader->window;
	int err;

	sample->count = 0;
	sample->times = arena_alloc(&window->arena, sample->capacity * sizeof(*sample->times));
	sample->values = has_values(reader, sample) ?
				 arena_alloc(&window->arena, sample->capacity * sizeof(*sample->values)) : NULL;
	if (!sample->times || (has_values(reader, sample) && !sample->values))
		return -ENOBUFS;
	err = window_reserve(&window->samples, window->sample_count, &window->sample_capacity, sizeof(*sample)) ?:
	      read_times(reader, bytes, sample, count);
	if (err)
		return err;
	if (sample->image)
		image_ref(sample->image);
	window->samples[window->sample_count++] = *sample;
	return 0;
}

static int read_shape(struct cut_reader *reader, struct cut_bytes *bytes)
{
	const uint8_t number = cut_take8(bytes);
	struct window_sample *shape;

	if (number >= CUT_SHAPES)
		return -EBADMSG;
	shape = &reader->shapes[number];
	*shape = (struct window_sample){ 0 };
	shape->profile = (uint16_t)cut_take_below(bytes, reader->window->profile_count);
	shape->user_end = (uint16_t)cut_take_below(bytes, STACKTAP_END_REASONS);
	shape->kernel_end = (uint16_t)cut_take_below(bytes, STACKTAP_END_REASONS);
	shape->marks = (uint16_t)cut_take_below(bytes, (uint64_t)UINT16_MAX + 1);
	cut_take_text(bytes, shape->comm, sizeof(shape->comm));
	reader->has_shapes |= UINT64_C(1) << number;
	return 0;
}

static int read_time(struct cut_reader *reader, struct cut_bytes *bytes)
{
	reader->time += (uint64_t)cut_take_signed(bytes);
	return 0;
}

static int read_sample(struct cut_reader *reader, struct cut_bytes *bytes)
{
	const struct described *described;
	struct window_sample sample;
	uint32_t image, stack, count;
	uint8_t shape;
	int err;

	shape = cut_take8(bytes);
	if (shape >= CUT_SHAPES || !(reader->has_shapes >> shape & 1))
		return -EBADMSG;
	sample = reader->shapes[shape];
	count = cut_take16(bytes);
	sample.tid = cut_take32(bytes);
	sample.cpu = cut_take32(bytes);
	image = cut_take32(bytes);
	stack = cut_take32(bytes);
	if (bytes->is_bad || image >= reader->images.count || stack >= reader->stacks.count)
		return -EBADMSG;
	described = reader->images.items[image];
	if (!described)
		return -EBADMSG;
	sample.image = described->image;
	sample.stack = reader->stacks.items[stack];
	err = read_count(reader, bytes, &sample, count);
	if (err)
		return err;
	sample.capacity = count;
	err = read_entry_times(reader, bytes, &sample, count);
	return err ?: cut_table_add(&reader->samples, (void *)(uintptr_t)reader->window->sample_count);
}

/* An entry that is full is gone on with in another one: the encoder makes one Sample of all. */
static int read_more_times(struct cut_reader *reader, struct cut_bytes *bytes)
{
	const uint32_t count = cut_take16(bytes), index = cut_take32(bytes);
	struct window_sample *sample, another;
	int err;

	if (bytes->is_bad || index >= reader->samples.count)
		return -EBADMSG;
	sample = &reader->window->samples[(uintptr_t)reader->samples.items[index] - 1];
	err = read_count(reader, bytes, sample, count);
	if (err)
		return err;
	if (count <= sample->capacity - sample->count)
		return read_times(reader, bytes, sample, count);
	another = *sample;
	another.capacity = min_of(2 * sample->capacity, TIMES_AHEAD);
	another.capacity = max_of(another.capacity, count);
	err = read_entry_times(reader, bytes, &another, count);
	if (!err)
		reader->samples.items[index] = (void *)(uintptr_t)reader->window->sample_count;
	return err;
}

static int read_entry(struct cut_reader *reader, struct cut_bytes *bytes)
{
	static int (*const readers[])(struct cut_reader *reader, struct cut_bytes *bytes) = {
		[CUT_OPTIONS] = read_options, [CUT_PROFILE] = read_profile, [CUT_OBJECT] = read_object,
		[CUT_FILE] = read_file, [CUT_FUNCTION] = read_function, [CUT_IMAGE] = read_image,
		[CUT_LOCATION] = read_location, [CUT_STACK] = read_stack, [CUT_SAMPLE] = read_sample,
		[CUT_TIMES] = read_more_times, [CUT_SHAPE] = read_shape, [CUT_TIME] = read_time,
	};
	const uint32_t kind = cut_take_below(bytes, ARRAY_SIZE(readers));
	int err = bytes->is_bad || !readers[kind] ? -EBADMSG : readers[kind](reader, bytes);

	return err ?: bytes->is_bad ? -EBADMSG : 0;
}

static int begin_window(struct cut_reader *reader, uint64_t number)
{
	window_free(steal_ptr(reader->window));
	reader->stacks.count = reader->samples.count = 0;
	reader->has_shapes = 0;
	reader->window = window_new(number);
	if (!reader->window)
		return -ENOMEM;
	reader->window->is_recovered = true;
	reader->window->start = UINT64_MAX;
	return 0;
}

int cut_number(const uint8_t *data, size_t size, uint64_t *ret_window)
{
	struct cut_bytes bytes = { .at = data, .end = data + size };

	*ret_window = cut_take(&bytes);
	return bytes.is_bad ? -EBADMSG : 0;
}

int cut_reader_add(struct cut_reader *reader, const uint8_t *data, size_t size)
{
	struct cut_bytes bytes = { .at = data, .end = data + size };
	const uint64_t number = cut_take(&bytes);
	int err = 0;

	if (bytes.is_bad || bytes.end - bytes.at < CUT_ID)
		return -EBADMSG;
	if (!reader->window || reader->window->number != number)
		err = begin_window(reader, number);
	if (err)
		return err;
	memcpy(reader->window->id, bytes.at, CUT_ID);
	bytes.at += CUT_ID;
	reader->window->realtime_offset = cut_take_signed(&bytes);
	reader->time = 0;
	while (!err && !bytes.is_bad && bytes.at < bytes.end)
		err = read_entry(reader, &bytes);
	return err ?: bytes.is_bad ? -EBADMSG : 0;
}

const struct window *cut_reader_window(const struct cut_reader *reader)
{
	return reader->window && reader->window->sample_count ? reader->window : NULL;
}

static int append_resource(const void *ctx, const struct image *image, struct buffer *buffer, uint32_t *ret_one_in)
{
	const struct cut_reader *reader = ctx;
	const struct described *described = reader->images.items[image ? image->journalled.index : 0];

	*ret_one_in = described->one_in;
	return buffer_append(buffer, described->resource, described->size);
}

const struct encode_options *cut_reader_options(const struct cut_reader *reader)
{
	return &reader->options;
}

int cut_reader_new(struct cut_reader **ret_reader)
{
	struct cut_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	reader->options.max_bytes = PAYLOAD_BYTES;
	reader->options.resource_of = append_resource;
	reader->options.resource_ctx = reader;
	*ret_reader = reader;
	return 0;
}

void cut_reader_free(struct cut_reader *reader)
{
	if (!reader)
		return;
	window_free(reader->window);
	for (uint32_t i = 0; i < reader->locations.count; i++)
		location_unref(reader->locations.items[i]);
	for (uint32_t i = 0; i < reader->functions.count; i++)
		function_unref(reader->functions.items[i]);
	for (uint32_t i = 0; i < reader->files.count; i++)
		mapped_file_unref(reader->files.items[i]);
	for (uint32_t i = 0; i < reader->objects.count; i++)
		object_unref(reader->objects.items[i]);
	for (uint32_t i = 0; i < reader->images.count; i++)
		described_free(reader->images.items[i]);
	cut_table_free(&reader->locations);
	cut_table_free(&reader->functions);
	cut_table_free(&reader->files);
	cut_table_free(&reader->objects);
	cut_table_free(&reader->images);
	cut_table_free(&reader->stacks);
	cut_table_free(&reader->samples);
	free(reader);
}
