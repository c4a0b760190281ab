// SPDX-License-Identifier: Apache-2.0
#include "synthetic.h"

#include <string.h>

#include "base/pool.h"

const struct profile_config synthetic_clock = {
	.source = "cycles", .event = "cpu-clock", .source_id = 0, .mode = STACKTAP_MODE_PERIOD,
	.rate_hz = 100, .fallback_errno = ENOENT, .period = 10000000, .is_clock = true,
	.is_cpu_time = true,
};

const struct profile_config synthetic_cycles = {
	.source = "cycles", .event = "cycles", .source_id = 1, .mode = STACKTAP_MODE_FREQ,
	.rate_hz = 100, .is_cpu_time = true,
};

struct mapped_file *synthetic_file(const char *path, bool has_object)
{
	struct mapped_file *file = mapped_file_new(OBJECT_FILE, path);
	struct object_segment *segment;
	struct object *object;
	size_t i, length = strlen(path);

	assert_non_null(file);
	if (!has_object)
		return file;
	object = object_new(OBJECT_FILE, path);
	assert_non_null(object);
	segment = calloc(1, sizeof(*segment));
	assert_non_null(segment);
	*segment = (struct object_segment){ .vaddr = 0x401000, .offset = 0x1000, .size = 0x8000 };
	assert_int_equal(object_set_segments(object, segment, 1), 0);
	object->address_start = 0x401000;
	object->address_limit = 0x409000;
	object->file_offset = 0x1000;
	for (i = 0; i < 32; i++)
		object->htlhash[i] = "0123456789abcdef"[path[i % length] * (i + 1) % 16];
	snprintf(object->build_id, sizeof(object->build_id), "00%02zx", length);
	atomic_store(&object->state, OBJECT_READY);
	atomic_store(&file->object, object);
	return file;
}

struct mapped_file *synthetic_kernel(void)
{
	struct mapped_file *file = mapped_file_new(OBJECT_KERNEL, "[kernel]");
	struct object *object = object_new(OBJECT_KERNEL, "[kernel]");

	assert_non_null(file);
	assert_non_null(object);
	object->address_start = 0xffffffff81000000;
	object->address_limit = 0xffffffff82000000;
	strcpy(object->build_id, "00112233");
	strcpy(object->htlhash, "fedcba9876543210fedcba9876543210");
	atomic_store(&object->state, OBJECT_READY);
	atomic_store(&file->object, object);
	return file;
}

struct image *synthetic_image(uint32_t tgid, const char *name, const char *container)
{
	struct image *image = image_new(NULL, tgid, 0, name ? name : "gone");
	struct image_details *details;

	assert_non_null(image);
	if (!name)
		return image;
	details = calloc(1, sizeof(*details));
	assert_non_null(details);
	details->executable_name = strdup(name);
	assert_true(asprintf(&details->executable_path, "/usr/bin/%s", name) > 0);
	if (container)
		details->container_id = strdup(container);
	image_set_details(image, details);
	return image;
}

void synthetic_map(struct image *image, uint64_t start, uint64_t since, struct mapped_file *file)
{
	bool replaced;

	assert_int_equal(image_map(image, start, start + 0x8000, 0x1000, since, file, &replaced),
			 0);
}

int synthetic_add(struct aggregator *aggregator, const struct synthetic_sample *sample)
{
	struct stacktap_sample record = {
		.header = { .size = sizeof(record), .type = STACKTAP_RECORD_SAMPLE,
			    .flags = sample->flags, .time = sample->time },
		.source = sample->source,
		.kernel_end = sample->kernel_end,
		.user_end = sample->user_end,
		.cpu = sample->cpu,
		.tid = sample->tid,
		.tgid = sample->image ? sample->image->tgid : 0,
		.period = sample->period,
	};
	struct sample_input input = {
		.sample = &record,
		.kernel_ips = sample->kernel,
		.kernel_count = sample->kernel_count,
		.user_ips = sample->user,
		.user_count = sample->user_count,
		.image = sample->image,
		.marks = sample->marks,
	};

	snprintf(record.comm, sizeof(record.comm), "%s", sample->comm ? sample->comm : "");
	return aggregator_add(aggregator, &input);
}

void synthetic_resolve(struct window *window)
{
	for (size_t i = 0; i < window->location_count; i++) {
		struct location *location = window->locations[i];
		struct object *object = location->file ? mapped_file_object(location->file) : NULL;
		char name[32];

		if (location->is_resolved)
			continue;
		location->is_resolved = true;
		location->address = location->offset;
		if (!object)
			continue;
		location->object = object_ref(object);
		if (object->kind == OBJECT_FILE)
			object_address(object, location->offset, &location->address);
		if ((location->address & 0xff) == 0xff)
			continue;
		snprintf(name, sizeof(name), "f_%llx", (unsigned long long)location->address);
		assert_int_equal(location_set_function(location, function_new(name, name)), 0);
	}
}

static void add_process(struct aggregator *aggregator, struct image *image, uint64_t base,
			uint32_t number, uint64_t start)
{
	uint64_t kernel[] = { 0xffffffff81000100, 0xffffffff81002203, 0xffffffff81200310 };
	uint64_t user[40];

	for (uint32_t i = 0; i < 400; i++) {
		uint32_t depth = 1 + i % 39;
		struct synthetic_sample sample = {
			.time = start + i * 1000003 + number * 17,
			.period = 1000000 + i,
			.cpu = i % 3,
			.tid = image->tgid + i % 2,
			.source = i % 5 == 4,
			.kernel_end = i % 4 ? STACKTAP_END_NONE : STACKTAP_END_COMPLETE,
			.user_end = i % 7 ? STACKTAP_END_COMPLETE : STACKTAP_END_DEPTH,
			.comm = i % 2 ? "worker" : image->comm,
			.image = image,
			.kernel = kernel,
			.kernel_count = i % 4 ? 0 : ARRAY_SIZE(kernel),
			.user = user,
			.user_count = depth,
		};

		for (uint32_t k = 0; k < depth; k++)
			user[k] = base + 0x10 + (i % 23) * 0x100 + k * 0x25;
		if (i % 50 == 0)
			user[depth - 1] = 0xdead0000;
		if (i % 60 == 1)
			sample.flags = STACKTAP_SAMPLE_MOVED;
		if (i % 60 == 2)
			sample.marks = SAMPLE_DOUBTFUL;
		if (i % 60 == 3) {
			sample.flags = STACKTAP_SAMPLE_STALE;
			sample.user_end = STACKTAP_END_STALE;
			sample.user_count = 0;
		}
		assert_int_equal(synthetic_add(aggregator, &sample), 0);
		/* later, but on a list of times that is already there */
		sample.time += 500000000;
		assert_int_equal(synthetic_add(aggregator, &sample), 0);
	}
}

struct window *synthetic_window(struct aggregator *aggregator)
{
	static const uint64_t idle[] = { 0xffffffff81300000, 0xffffffff81300055 };
	const uint64_t start = 5000000000;
	struct mapped_file *program = synthetic_file("/usr/bin/program", true);
	struct mapped_file *library = synthetic_file("/usr/lib/libthing.so.1", true);
	struct mapped_file *gone = synthetic_file("/tmp/gone", false);
	struct mapped_file *kernel = synthetic_kernel();
	struct image *images[] = {
		synthetic_image(100, "program", NULL),
		synthetic_image(200, "program", "0123456789abcdef"),
		synthetic_image(300, NULL, NULL),
	};
	struct window *window;

	object_set_go_build_id(atomic_load(&program->object), "a_/b-/9");
	aggregator_set_kernel(aggregator, kernel);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_cycles), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(images); i++) {
		/* another place in each process */
		uint64_t base = 0x7f0000000000 + i * 0x100000;

		synthetic_map(images[i], base, 1000, i == 2 ? gone : program);
		synthetic_map(images[i], base + 0x8000, 1000, library);
		/* the second one's code reaches from the program into the library */
		add_process(aggregator, images[i], base + (i == 1 ? 0x7c00 : 0), i, start);
	}
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(synthetic_add(aggregator, &(struct synthetic_sample){
			.time = start + i * 9000000,
			.period = 10000000,
			.cpu = i % 4,
			.flags = STACKTAP_SAMPLE_KERNEL_THREAD | STACKTAP_SAMPLE_IDLE,
			.kernel_end = STACKTAP_END_COMPLETE,
			.comm = "swapper",
			.kernel = idle,
			.kernel_count = ARRAY_SIZE(idle),
		}), 0);
	aggregator_add_losses(aggregator, 0, &(struct window_losses){ .lost = 7 });
	aggregator_add_losses(aggregator, 1, &(struct window_losses){ .throttled = 2 });
	assert_int_equal(aggregator_close(aggregator, start + 2000000000, &window), 0);
	assert_non_null(window);
	synthetic_resolve(window);
	for (size_t i = 0; i < ARRAY_SIZE(images); i++)
		image_unref(images[i]);
	mapped_file_unref(program);
	mapped_file_unref(library);
	mapped_file_unref(gone);
	mapped_file_unref(kernel);
	return window;
}

void synthetic_check_pools(void)
{
	for (int id = 0; id < POOL_ALL; id++)
		assert_int_equal(atomic_load(&pool_get(id)->used), 0);
}
