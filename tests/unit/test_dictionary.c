// SPDX-License-Identifier: Apache-2.0
/* Dictionary and encoder on raw bytes, decoded by a few lines of their own. */
#include "synthetic.h"

#include <string.h>

#include "base/pool.h"
#include "export/frames.h"
#include "heard.h"

static struct dictionary dictionary;

static int setup(void **state)
{
	(void)state;
	dictionary_init(&dictionary);
	return dictionary_reset(&dictionary);
}

static int teardown(void **state)
{
	(void)state;
	dictionary_free(&dictionary);
	synthetic_check_pools();
	return 0;
}

static void check_bytes(const void *want, size_t size)
{
	uint8_t *bytes = malloc(dictionary_size(&dictionary) + 1);

	assert_non_null(bytes);
	assert_int_equal(dictionary_size(&dictionary), size);
	dictionary_write(&dictionary, bytes);
	assert_memory_equal(bytes, want, size);
	free(bytes);
}

/* One empty entry in each table. */
static const uint8_t zeroes[] = { 0x0a, 0, 0x12, 0, 0x1a, 0, 0x22, 0, 0x2a, 0, 0x32, 0, 0x3a, 0 };

static void tables_start_with_zero_values(void **state)
{
	(void)state;
	check_bytes(zeroes, sizeof(zeroes));
	assert_int_equal(dictionary_string(&dictionary, ""), 0);
	assert_int_equal(dictionary_string(&dictionary, NULL), 0);
	check_bytes(zeroes, sizeof(zeroes));
}

static void attributes_have_the_published_bytes(void **state)
{
	static const uint8_t want[] = {
		0x0a, 0, 0x12, 0, 0x1a, 0, 0x22, 0,
		0x2a, 0, 0x2a, 1, 'k', 0x2a, 1, 'n', 0x2a, 1, 't',
		0x32, 0,
		/* key_strindex 1, value { string_value "v" } */
		0x32, 7, 0x08, 1, 0x12, 3, 0x0a, 1, 'v',
		/* key_strindex 2, value { int_value 0 }: zero is there, because it is set */
		0x32, 6, 0x08, 2, 0x12, 2, 0x18, 0,
		0x32, 6, 0x08, 3, 0x12, 2, 0x10, 1,
		0x3a, 0,
	};

	(void)state;
	assert_int_equal(dictionary_attribute_string(&dictionary, "k", "v"), 1);
	assert_int_equal(dictionary_attribute_int(&dictionary, "n", 0), 2);
	assert_int_equal(dictionary_attribute_bool(&dictionary, "t", true), 3);
	check_bytes(want, sizeof(want));
}

static void equal_values_are_one_entry(void **state)
{
	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 5000; i++) {
			char text[32];

			snprintf(text, sizeof(text), "string %d", i);
			assert_int_equal(dictionary_string(&dictionary, text), 1 + i);
		}
	}
	assert_int_equal(dictionary_attribute_int(&dictionary, "string 7", 3), 1);
	assert_int_equal(dictionary_attribute_int(&dictionary, "string 8", 3), 2);
	assert_int_equal(dictionary_attribute_int(&dictionary, "string 7", 4), 3);
	assert_int_equal(dictionary_attribute_int(&dictionary, "string 7", 3), 1);
	assert_int_equal(dictionary.tables[TABLE_STRING].count, 5001);
}

static void strings_are_made_valid(void **state)
{
	static char endless[10000];

	(void)state;
	memset(endless, 'x', sizeof(endless) - 1);
	assert_int_equal(dictionary_string(&dictionary, "a\xff\x1b[0m"), 1);
	assert_int_equal(dictionary_string(&dictionary, "a??[0m"), 1);
	assert_true(dictionary_string(&dictionary, endless) == 2);
	assert_true(dictionary_size(&dictionary) < 5000);
}

static void what_was_begun_can_be_taken_back(void **state)
{
	struct dictionary_mark mark;
	size_t size;

	(void)state;
	dictionary_attribute_string(&dictionary, "key", "kept");
	dictionary_mark(&dictionary, &mark);
	size = dictionary_size(&dictionary);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(dictionary_attribute_int(&dictionary, "other", i), 2 + i);
	dictionary_take_back(&dictionary, &mark);
	assert_int_equal(dictionary_size(&dictionary), size);
	/* indices start again where they were, and old entries are still found */
	assert_int_equal(dictionary_attribute_int(&dictionary, "third", 500), 2);
	assert_int_equal(dictionary_attribute_int(&dictionary, "other", 500), 3);
	assert_int_equal(dictionary_attribute_int(&dictionary, "third", 500), 2);
	assert_int_equal(dictionary_attribute_string(&dictionary, "key", "kept"), 1);
}

static void a_full_pool_is_told(void **state)
{
	struct pool *pool = pool_get(POOL_ENCODE);
	size_t limit = pool->limit;
	uint64_t refused = pool->refused;
	int index = 0;

	(void)state;
	pool->limit = 200000;
	for (int i = 0; i < 100000 && index >= 0; i++) {
		char text[32];

		snprintf(text, sizeof(text), "string %d", i);
		index = dictionary_string(&dictionary, text);
		assert_true(atomic_load(&pool->used) <= pool->limit);
	}
	assert_int_equal(index, -ENOBUFS);
	assert_true(pool->refused > refused);
	/* what is there is whole: a field for each entry */
	assert_int_equal(dictionary_reset(&dictionary), 0);
	check_bytes(zeroes, sizeof(zeroes));
	pool->limit = limit;
}

/* The second one is referred to, so that the one before it is the same. */
static void functions_can_stand_twice(void **state)
{
	static const uint8_t want[] = {
		0x0a, 0, 0x12, 0,
		0x1a, 0, 0x1a, 2, 0x08, 1, 0x1a, 2, 0x08, 1, 0x1a, 2, 0x08, 2, 0x1a, 2, 0x08, 2,
		0x22, 0, 0x2a, 0, 0x2a, 1, 'f', 0x2a, 1, 'g', 0x32, 0, 0x3a, 0,
	};
	struct dictionary_mark mark;

	(void)state;
	dictionary.repeats_functions = true;
	assert_int_equal(dictionary_reset(&dictionary), 0);
	check_bytes(zeroes, sizeof(zeroes));
	assert_int_equal(dictionary_string(&dictionary, "f"), 1);
	assert_int_equal(dictionary_string(&dictionary, "g"), 2);
	assert_int_equal(dictionary_bytes(&dictionary, TABLE_FUNCTION, "\x08\x01", 2), 2);
	dictionary_mark(&dictionary, &mark);
	assert_int_equal(dictionary_bytes(&dictionary, TABLE_FUNCTION, "\x08\x03", 2), 4);
	dictionary_take_back(&dictionary, &mark);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(dictionary_bytes(&dictionary, TABLE_FUNCTION, "\x08\x02", 2), 4);
		assert_int_equal(dictionary_bytes(&dictionary, TABLE_FUNCTION, "\x08\x01", 2), 2);
	}
	check_bytes(want, sizeof(want));
}

/* Where there is room for one of them alone, there is none. */
static void a_full_pool_has_both_or_none(void **state)
{
	const struct dictionary_entries *table = &dictionary.tables[TABLE_FUNCTION];
	struct pool *pool = pool_get(POOL_ENCODE);
	size_t limit = pool->limit;
	uint64_t entry = 0;
	int index;

	(void)state;
	dictionary.repeats_functions = true;
	assert_int_equal(dictionary_reset(&dictionary), 0);
	for (pool->limit = 100000; pool->limit < 104000; pool->limit += 16) {
		do
			index = dictionary_bytes(&dictionary, TABLE_FUNCTION, &(uint64_t){ 0x0100000000000000 | entry++ }, 8);
		while (index > 0);
		assert_int_equal(index, -ENOBUFS);
		assert_int_equal(table->count % 2, 1);
		assert_int_equal(table->entries.size, table->count * sizeof(struct dictionary_entry));
		/* tag, length and eight bytes each; the zero one has none */
		assert_int_equal(table->bytes.size, (table->count - 1) * 10 + 2);
	}
	pool->limit = limit;
}

/* A protobuf message, field by field, by no library. */
struct cursor {
	const uint8_t *at, *end;
	uint32_t number, type;
	uint64_t value;			/* of a varint, or the size of bytes */
	const uint8_t *bytes;
};

static uint64_t varint(struct cursor *cursor)
{
	uint64_t value = 0;
	unsigned int shift = 0;

	do {
		assert_true(cursor->at < cursor->end && shift < 64);
		value |= (uint64_t)(*cursor->at & 0x7f) << shift;
		shift += 7;
	} while (*cursor->at++ & 0x80);
	return value;
}

static bool next(struct cursor *cursor)
{
	uint64_t tag;

	if (cursor->at == cursor->end)
		return false;
	tag = varint(cursor);
	cursor->number = (uint32_t)(tag >> 3);
	cursor->type = tag & 7;
	cursor->bytes = cursor->at;
	if (cursor->type == 0) {
		cursor->value = varint(cursor);
	} else {
		assert_true(cursor->type == 1 || cursor->type == 2);
		cursor->value = cursor->type == 1 ? 8 : varint(cursor);
		cursor->bytes = cursor->at;
		assert_true(cursor->value <= (uint64_t)(cursor->end - cursor->at));
		cursor->at += cursor->value;
	}
	return true;
}

static struct cursor inside(const struct cursor *outer)
{
	assert_int_equal(outer->type, 2);
	return (struct cursor){ .at = outer->bytes, .end = outer->bytes + outer->value };
}

/* The first field of this number. */
static struct cursor enter(struct cursor message, uint32_t number)
{
	while (next(&message))
		if (message.number == number)
			return inside(&message);
	fail_msg("no field %u", number);
	return message;
}

static uint64_t scalar(struct cursor message, uint32_t number)
{
	uint64_t value = 0;

	while (next(&message)) {
		if (message.number != number)
			continue;
		if (message.type == 0)
			return message.value;
		memcpy(&value, message.bytes, sizeof(value));
		return value;
	}
	return 0;
}

static int keep(void *ctx, struct payload *payload)
{
	*(struct payload *)ctx = *payload;
	return 0;
}

/* One sample of each shape, against the published field numbers. */
static void a_sample_has_the_published_fields(void **state)
{
	static const uint64_t ips[] = { 0x7f0000000010, 0x7f0000000020 };
	const struct encode_options options = { .max_bytes = 1 << 20 };
	struct mapped_file *file = synthetic_file("/usr/bin/program", true);
	struct image *image = synthetic_image(7, "program", NULL);
	struct aggregator *aggregator;
	struct cursor message, profile, sample, packed;
	struct payload payload;
	struct window *window;
	uint64_t time;

	(void)state;
	assert_int_equal(aggregator_new(&aggregator), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_cycles), 0);
	synthetic_map(image, 0x7f0000000000, 0, file);
	for (int i = 2; i > 0; i--)
		assert_int_equal(synthetic_add(aggregator, &(struct synthetic_sample){
			.time = (uint64_t)i * 100, .period = (uint64_t)i * 1000, .source = 1,
			.tid = 8, .comm = "thread", .image = image, .user = ips, .user_count = 2,
			.user_end = STACKTAP_END_COMPLETE }), 0);
	assert_int_equal(aggregator_close(aggregator, 300, &window), 0);
	synthetic_resolve(window);
	window->realtime_offset = 1000000;
	assert_int_equal(encode_window(&options, window, keep, &payload), 0);
	assert_int_equal(payload.samples, 2);
	assert_int_equal(payload.profiles, 1);

	message = (struct cursor){ .at = payload.data, .end = payload.data + payload.size };
	profile = enter(enter(enter(message, 1), 2), 2);
	assert_int_equal(scalar(profile, 3), 1000100);	/* time_unix_nano */
	assert_int_equal(scalar(profile, 4), 200);	/* duration_nano */
	assert_int_equal(scalar(profile, 6), 1);	/* period */
	packed = enter(profile, 1);
	sample = enter(profile, 5);			/* period_type: that of the values */
	assert_int_equal(packed.end - packed.at, sample.end - sample.at);
	assert_memory_equal(packed.at, sample.at, packed.end - packed.at);
	packed = enter(profile, 7);
	assert_int_equal(packed.end - packed.at, 16);
	/* a Sample for each value, in the order of times */
	for (uint64_t count = 1; next(&profile);) {
		if (profile.number != 2)
			continue;
		sample = inside(&profile);
		assert_int_equal(scalar(sample, 1), 1);	/* stack_index */
		packed = enter(sample, 2);		/* attribute_indices: thread id and name */
		assert_int_equal(packed.end - packed.at, 2);
		assert_int_equal(scalar(sample, 3), 0);	/* link_index */
		packed = enter(sample, 4);
		assert_int_equal(varint(&packed), 1000 * count);
		assert_ptr_equal(packed.at, packed.end);
		packed = enter(sample, 5);
		assert_int_equal(packed.end - packed.at, 8);
		memcpy(&time, packed.at, sizeof(time));
		assert_int_equal(time, 1000000 + 100 * count);
		assert_in_range(count++, 1, 2);
	}

	/* location_table[1]: mapping 1, the leaf's ELF address; [2]: the caller's, less one */
	message = enter(message, 2);
	for (int location = 0; next(&message);) {
		if (message.number != 2)
			continue;
		if (location)
			assert_int_equal(scalar(inside(&message), 1), 1);
		assert_int_equal(scalar(inside(&message), 2),
				 location == 0 ? 0 : location == 1 ? 0x401010 : 0x40101f);
		location++;
	}
	free(payload.data);
	window_free(window);
	aggregator_free(aggregator);
	image_unref(image);
	mapped_file_unref(file);
}

/* The kernel is no file, but known by its build-id; Go's programs have one more; what could not be looked into has none. */
static void the_kernel_has_build_ids(void **state)
{
	const struct encode_options options = { .max_bytes = 1 << 24 };
	struct aggregator *aggregator;
	struct payload payload;
	struct cursor message, strings[4096] = { 0 };
	struct window *window;
	size_t count = 0, kernels = 0, files = 0, go_files = 0;

	(void)state;
	assert_int_equal(aggregator_new(&aggregator), 0);
	window = synthetic_window(aggregator);
	assert_int_equal(encode_window(&options, window, keep, &payload), 0);
	message = (struct cursor){ .at = payload.data, .end = payload.data + payload.size };
	message = enter(message, 2);
	for (struct cursor dictionary_at = message; next(&dictionary_at);)
		if (dictionary_at.number == 5 && count < ARRAY_SIZE(strings))
			strings[count++] = inside(&dictionary_at);
	for (bool is_zero = true; next(&message); is_zero = false) {
		struct cursor mapping, name, attributes = { 0 };

		if (message.number != 1 || is_zero)
			continue;
		mapping = inside(&message);
		name = strings[scalar(mapping, 4)];
		while (next(&mapping))
			if (mapping.number == 5)
				attributes = inside(&mapping);
		if (name.end - name.at == 8 && !memcmp(name.at, "[kernel]", 8)) {
			assert_int_equal(attributes.end - attributes.at, 2);
			kernels++;
		} else if (*name.at == '[') {
			assert_int_equal(attributes.end - attributes.at, 0);
		} else {
			assert_in_range(attributes.end - attributes.at, 2, 3);
			go_files += attributes.end - attributes.at == 3;
			files++;
		}
	}
	assert_int_equal(kernels, 1);
	assert_int_equal(go_files, 1);
	assert_true(files > go_files);
	free(payload.data);
	window_free(window);
	aggregator_free(aggregator);
}

/* A function that kernel and programs have is two then. */
static void the_kernels_names_can_be_marked(void **state)
{
	static const struct {
		const char *suffix;
		int functions;
	} cases[] = { { NULL, 1 }, { "_[k]", 2 } };
	struct function *function = function_new("copy", "copy");
	struct location *kernel = location_new(NULL, 16, FRAME_KERNEL, false);
	struct location *native = location_new(NULL, 16, FRAME_NATIVE, false);
	struct stack *stack = calloc(1, sizeof(*stack) + 2 * sizeof(stack->locations[0]));
	enum naming naming;

	(void)state;
	assert_non_null(stack);
	assert_int_equal(location_set_function(kernel, function_ref(function)), 0);
	assert_int_equal(location_set_function(native, function), 0);
	atomic_store(&kernel->is_resolved, true);
	atomic_store(&native->is_resolved, true);
	stack->count = 2;
	stack->locations[0] = kernel;
	stack->locations[1] = native;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cursor message;
		uint8_t *bytes;
		int functions = -1;	/* but for the zero one */

		assert_int_equal(dictionary_reset(&dictionary), 0);
		dictionary.kernel_suffix = cases[i].suffix;
		assert_int_equal(frames_stack(&dictionary, stack, &naming), 1);
		bytes = malloc(dictionary_size(&dictionary));
		dictionary_write(&dictionary, bytes);
		message = (struct cursor){ .at = bytes, .end = bytes + dictionary_size(&dictionary) };
		while (next(&message))
			functions += message.number == 3;
		assert_int_equal(functions, cases[i].functions);
		assert_int_equal(!!memmem(bytes, dictionary_size(&dictionary), "\x2a\x08" "copy_[k]", 10),
				 i == 1);
		assert_non_null(memmem(bytes, dictionary_size(&dictionary), "\x2a\x04" "copy", 6));
		free(bytes);
	}
	location_unref(kernel);
	location_unref(native);
	free(stack);
}

/* Fill the table until the next entry needs memory. */
static void fill(enum dictionary_table number)
{
	struct dictionary_entries *table = &dictionary.tables[number];
	uint32_t entry = 0;

	do
		assert_true(dictionary_bytes(&dictionary, number, &(uint64_t){ 0x0100000000000000 | entry++ }, 8) > 0);
	while (table->entries.capacity - table->entries.size >= sizeof(struct dictionary_entry));
}

/* A Stack has the Locations that it is of, or none at all, whichever table has no room for what they need. */
static void a_frame_without_memory_is_told(void **state)
{
	struct location *locations[] = { location_new(NULL, 16, FRAME_KERNEL, false), location_new(NULL, 32, FRAME_NATIVE, true),
					 location_new(mapped_file_new(OBJECT_FILE, "/bin/unknown"), 48, FRAME_NATIVE, true) };
	const struct pool *pool = pool_get(POOL_ENCODE);
	const size_t limit = pool->limit;
	struct stack *stack = calloc(1, sizeof(*stack) + sizeof(stack->locations[0]));
	enum naming naming;
	int refused = 0;

	(void)state;
	assert_non_null(stack);
	stack->count = 1;
	assert_int_equal(location_set_function(locations[0], function_new("kernel_work", "kernel_work")), 0);
	locations[1]->has_function = true;
	locations[1]->function_start = 24;
	for (size_t i = 0; i < ARRAY_SIZE(locations); i++)
		atomic_store(&locations[i]->is_resolved, true);
	/* what is kept from one payload to the next is there */
	stack->locations[0] = locations[0];
	assert_int_equal(frames_stack(&dictionary, stack, &naming), 1);
	for (size_t i = 0; i < ARRAY_SIZE(locations); i++) {
		for (enum dictionary_table table = 1; table < TABLE_END; table++) {
			int index;

			assert_int_equal(dictionary_reset(&dictionary), 0);
			fill(table);
			pool_get(POOL_ENCODE)->limit = atomic_load(&pool->used);
			stack->encoded = (struct encoded){ 0 };
			stack->locations[0] = locations[i];
			index = frames_stack(&dictionary, stack, &naming);
			pool_get(POOL_ENCODE)->limit = limit;
			if (index < 0) {
				assert_int_equal(index, -ENOBUFS);
				refused++;
				continue;
			}
			assert_true(locations[i]->encoded.generation == dictionary.generation);
			assert_true(locations[i]->encoded.index < (int)dictionary.tables[TABLE_LOCATION].count);
		}
	}
	/* of each: texts, its type, the Location and the Stack; of one the Function, of one the Mapping */
	assert_int_equal(refused, 3 * 4 + 2);
	mapped_file_unref(locations[2]->file);
	for (size_t i = 0; i < ARRAY_SIZE(locations); i++)
		location_unref(locations[i]);
	free(stack);
}

static int refuse(void *ctx, struct payload *payload)
{
	(*(int *)ctx)++;
	free(payload->data);
	return -EPIPE;
}

static void the_sink_can_stop_it(void **state)
{
	const struct encode_options options = { .max_bytes = 65536 };
	struct aggregator *aggregator;
	struct window *window;
	int calls = 0;

	(void)state;
	assert_int_equal(aggregator_new(&aggregator), 0);
	window = synthetic_window(aggregator);
	assert_int_equal(encode_window(&options, window, refuse, &calls), -EPIPE);
	assert_int_equal(calls, 1);
	window_free(window);
	aggregator_free(aggregator);
}

static int count(void *ctx, struct payload *payload)
{
	uint64_t *sums = ctx;

	sums[0] += payload->samples;
	sums[1]++;
	assert_true(payload->size <= (size_t)2 << 20);
	free(payload->data);
	return 0;
}

/* A thread that never leaves its stack fills payloads on its own. */
static void one_stack_can_be_split(void **state)
{
	const struct encode_options options = { .max_bytes = (size_t)2 << 20 };
	const size_t others = pool_get(POOL_ENCODE)->limit / 32 * 7;
	uint64_t ips[] = { 0x1000 }, sums[2] = { 0 };
	struct aggregator *aggregator;
	struct window *window;

	(void)state;
	assert_int_equal(aggregator_new(&aggregator), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	for (uint64_t i = 0; i < 300000; i++)
		assert_int_equal(synthetic_add(aggregator, &(struct synthetic_sample){
			.time = 1 + i, .tid = 1, .user = ips, .user_count = 1,
			.user_end = STACKTAP_END_COMPLETE }), 0);
	assert_int_equal(aggregator_close(aggregator, 400000, &window), 0);
	assert_int_equal(window->sample_count, (300000 + 8191) / 8192);
	assert_int_equal(encode_window(&options, window, count, sums), 0);
	assert_int_equal(sums[0], 300000);
	assert_int_equal(sums[1], 2);
	assert_true(atomic_load(&pool_get(POOL_ENCODE)->peak) <= pool_get(POOL_ENCODE)->limit);
	/* metrics and the endpoint have a part of the pool, too */
	assert_true(pool_charge(POOL_ENCODE, others));
	sums[0] = 0;
	assert_int_equal(encode_window(&options, window, count, sums), 0);
	pool_uncharge(POOL_ENCODE, others);
	assert_int_equal(sums[0], 300000);
	window_free(window);
	aggregator_free(aggregator);
}

/* With little memory payloads get smaller, and nothing is lost. */
static void a_short_pool_loses_nothing(void **state)
{
	const struct encode_options options = { .max_bytes = (size_t)16 << 20 };
	struct pool *pool = pool_get(POOL_ENCODE);
	size_t limit = pool->limit;
	uint64_t sums[2] = { 0 };
	struct aggregator *aggregator;
	struct window *window;

	(void)state;
	assert_int_equal(aggregator_new(&aggregator), 0);
	window = synthetic_window(aggregator);
	pool->limit = 400000;
	assert_int_equal(encode_window(&options, window, count, sums), 0);
	pool->limit = limit;
	assert_int_equal(sums[0], 2500);
	assert_true(sums[1] > 1);
	window_free(window);
	aggregator_free(aggregator);
	synthetic_check_pools();
}

static int count_any(void *ctx, struct payload *payload)
{
	uint64_t *sums = ctx;

	sums[0] += payload->samples;
	sums[1]++;
	sums[2] = max_of(sums[2], (uint64_t)payload->size);
	free(payload->data);
	return 0;
}

enum { DEEP_FRAMES = 1024, LONGEST_NAME = 4095 };

/* All Locations get @lines Functions with names as long as can be. */
static void name_at_length(struct window *window, uint32_t lines)
{
	static char name[LONGEST_NAME + 1];
	struct line named[2];

	memset(name, 'x', LONGEST_NAME);
	for (size_t i = 0; i < window->location_count; i++) {
		for (uint32_t j = 0; j < lines; j++) {
			name[snprintf(name, sizeof(name), "f%zu_%u", i, j)] = '_';
			named[j] = (struct line){ .function = function_new(name, name) };
			assert_non_null(named[j].function);
		}
		assert_int_equal(location_set_lines(window->locations[i], named, lines), 0);
	}
}

/* Of programs with deep stacks and long names, and one that has neither: samples that were encoded. */
static uint64_t encode_hostile(uint32_t programs, uint32_t lines)
{
	const struct encode_options options = { .max_bytes = (size_t)2 << 20 };
	struct mapped_file *file = synthetic_file("/bin/hostile", true);
	uint64_t ips[DEEP_FRAMES], sums[3] = { 0 };
	struct pool *pool = pool_get(POOL_ENCODE);
	struct aggregator *aggregator;
	struct image *image;
	struct window *window;

	assert_int_equal(aggregator_new(&aggregator), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	for (uint32_t i = 0; i <= programs; i++) {
		image = synthetic_image(1000 + i, "program", NULL);
		synthetic_map(image, 0x10000, 0, file);
		for (uint32_t frame = 0; frame < DEEP_FRAMES; frame++)
			ips[frame] = 0x10000 + 8 * (frame + DEEP_FRAMES * i);
		assert_int_equal(synthetic_add(aggregator, &(struct synthetic_sample){
			.time = 1 + i, .tid = 1000 + i, .image = image, .user = ips,
			.user_count = i < programs ? DEEP_FRAMES : 1, .user_end = STACKTAP_END_COMPLETE }), 0);
		image_unref(image);
	}
	assert_int_equal(aggregator_close(aggregator, 1000, &window), 0);
	synthetic_resolve(window);
	name_at_length(window, lines);
	atomic_store(&pool->peak, 0);
	assert_int_equal(encode_window(&options, window, count_any, sums), 0);
	/* the copy of a payload comes on top, and it has nothing that was not granted before */
	assert_in_range(atomic_load(&pool->peak), 1, pool->limit + sums[2]);
	assert_in_range(sums[2], 1, pool->limit);
	window_free(window);
	mapped_file_unref(file);
	aggregator_free(aggregator);
	synthetic_check_pools();
	return sums[0];
}

/* 4 MiB a stack have room in a payload each; 8 MiB have not, and cost their own program its sample, nobody else. */
static void the_longest_names_cost_others_nothing(void **state)
{
	uint64_t refused, encoded;
	const char *log;

	(void)state;
	assert_int_equal(encode_hostile(3, 1), 3 + 1);
	refused = atomic_load(&pool_get(POOL_ENCODE)->refused);
	listen_to_log();
	encoded = encode_hostile(2, 2);
	log = heard();
	assert_int_equal(encoded, 1);
	assert_true(atomic_load(&pool_get(POOL_ENCODE)->refused) > refused);
	/* said once for all of a window */
	assert_non_null(strstr(log, "2 samples are left out of a window"));
	assert_ptr_equal(strchr(log, '\n'), log + strlen(log) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(tables_start_with_zero_values), T(attributes_have_the_published_bytes),
		T(equal_values_are_one_entry), T(strings_are_made_valid),
		T(what_was_begun_can_be_taken_back), T(a_full_pool_is_told), T(functions_can_stand_twice),
		T(a_full_pool_has_both_or_none), T(the_kernel_has_build_ids),
		T(the_kernels_names_can_be_marked), T(a_frame_without_memory_is_told),
		cmocka_unit_test(a_sample_has_the_published_fields),
		cmocka_unit_test(the_sink_can_stop_it), cmocka_unit_test(one_stack_can_be_split),
		cmocka_unit_test(a_short_pool_loses_nothing),
		cmocka_unit_test(the_longest_names_cost_others_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
