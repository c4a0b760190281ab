// SPDX-License-Identifier: Apache-2.0
/*
 * What thread C and the journal's parts cost per sample, and what goes over the wire: windows of 12 processes with a
 * skewed mix of stacks about 15 frames deep, encoded and compressed; the journal of 20 windows in turn. Prints one JSON object per line.
 */
#include <string.h>

#include "base/clock.h"
#include "base/pool.h"
#include "export/cut.h"
#include "export/encode.h"
#include "export/gzip.h"

#define PROCESSES 12u
#define FILES 6u
#define PATHS 60u		/* of each process */
#define INSTRUCTIONS 40u	/* of a function that are hit */
#define CODE UINT64_C(0x7f0000000000)
#define CODE_BYTES UINT64_C(0x100000)
#define WINDOW_NS (15 * NSEC_PER_SEC)
#define ROUNDS 20u
#define FILE_BYTES ((uint64_t)4 << 20)
#define PARTS 10u		/* of 1.5 seconds each */

struct sums {
	uint64_t samples, payloads, raw, compressed;
	uint64_t gzip_ns;
	bool compress;
};

static uint64_t random_state = 88172645463325252;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Small numbers are far more likely: as with what is hot. */
static uint64_t random_skewed(uint64_t range)
{
	double x = (double)(random_next() >> 11) / (double)(UINT64_C(1) << 53);

	return (uint64_t)(x * x * x * (double)range);
}

static struct mapped_file *make_file(unsigned int number)
{
	char path[64];
	struct mapped_file *file;
	struct object_segment *segment;
	struct object *object;

	snprintf(path, sizeof(path), "/usr/lib/x86_64-linux-gnu/libpart%u.so.%u", number, number);
	file = mapped_file_new(OBJECT_FILE, path);
	object = object_new(OBJECT_FILE, path);
	if (!file || !object)
		exit(1);
	segment = calloc(1, sizeof(*segment));
	if (!segment)
		exit(1);
	*segment = (struct object_segment){ .vaddr = 0x1000, .offset = 0x1000, .size = CODE_BYTES };
	if (object_set_segments(object, segment, 1) < 0)
		exit(1);
	object->address_start = 0x1000;
	object->address_limit = 0x1000 + CODE_BYTES;
	object->file_offset = 0x1000;
	for (int i = 0; i < 32; i++)
		object->htlhash[i] = "0123456789abcdef"[random_next() % 16];
	for (int i = 0; i < 40; i++)
		object->build_id[i] = "0123456789abcdef"[random_next() % 16];
	atomic_store(&object->state, OBJECT_READY);
	atomic_store(&file->object, object);
	return file;
}

static struct image *make_image(unsigned int number, struct mapped_file **files)
{
	struct image_details *details = calloc(1, sizeof(*details));
	struct image *image = image_new(NULL, 1000 + number * 37, 0, "service");
	bool replaced;

	if (!image || !details)
		exit(1);
	if (asprintf(&details->executable_name, "service-%u", number) < 0 ||
	    asprintf(&details->executable_path, "/usr/sbin/service-%u", number) < 0)
		exit(1);
	image_set_details(image, details);
	for (unsigned int i = 0; i < FILES; i++)
		if (image_map(image, CODE + i * 2 * CODE_BYTES,
			      CODE + i * 2 * CODE_BYTES + CODE_BYTES, 0x1000, 0,
			      files[(number + i) % FILES], &replaced))
			exit(1);
	return image;
}

/*
 * One of the program's paths, walked down from main (what is called depends on the caller, so paths
 * share their beginnings), and one of the instructions at its end.
 */
static uint32_t make_stack(uint64_t process, uint64_t *ips)
{
	uint64_t path = random_skewed(PATHS) * PROCESSES + process, where = process, choice;
	uint32_t depth = 8 + (uint32_t)(path * 2654435761 >> 7) % 15;

	for (uint32_t i = depth; i-- > 0;) {
		choice = path * 11400714819323198485u >> (i * 3 & 63) & 7;
		where = where * 6364136223846793005 + (choice > 5 ? choice - 5 : 0) + 1;
		ips[i] = CODE + (where >> 33) % FILES * 2 * CODE_BYTES +
			 (where >> 20) % (CODE_BYTES / 16) * 16 + 4;
	}
	ips[0] += random_skewed(INSTRUCTIONS) * 4;
	return depth;
}

static void resolve(struct window *window)
{
	static const char *const words[] = { "parse", "request", "buffer", "hash", "lookup",
					     "write", "stream", "vector", "node", "insert" };
	char name[96];

	for (size_t i = 0; i < window->location_count; i++) {
		struct location *location = window->locations[i];
		uint64_t function = location->offset / 256 * 2654435761;
		struct object *object = mapped_file_object(location->file);

		if (location->is_resolved)
			continue;
		location->is_resolved = true;
		location->object = object_ref(object);
		object_address(object, location->offset, &location->address);
		snprintf(name, sizeof(name), "%s_%s_%s_%llx", words[function % 10],
			 words[function / 10 % 10], words[function / 100 % 10],
			 (unsigned long long)(function >> 12 & 0xfff));
		if (location_set_function(location, function_new(name, name)))
			exit(1);
	}
}

/* Who runs, in one window after the other. */
struct world {
	struct mapped_file *files[FILES];
	struct image *images[PROCESSES];
	struct aggregator *aggregator;
	struct cutter *cutter;
	struct buffer cut;
	uint64_t time, windows;
	/* of the journal, in which a tenth of a window's samples come between two parts */
	uint64_t cut_ns, cut_bytes, cut_samples;
};

static void open_world(struct world *world)
{
	static const struct profile_config config = {
		.source = "cycles", .event = "cycles", .mode = STACKTAP_MODE_PERIOD, .rate_hz = 99,
		.period = 30303030, .is_cpu_time = true,
	};
	const struct encode_options options = { .max_bytes = (size_t)16 << 20 };

	*world = (struct world){ .time = NSEC_PER_SEC, .cut.pool = POOL_ENCODE };
	if (aggregator_new(&world->aggregator) || aggregator_set_profile(world->aggregator, &config) ||
	    cutter_new(&options, &world->cutter))
		exit(1);
	for (unsigned int i = 0; i < FILES; i++)
		world->files[i] = make_file(i);
	for (unsigned int i = 0; i < PROCESSES; i++)
		world->images[i] = make_image(i, world->files);
}

static void close_world(struct world *world)
{
	aggregator_free(world->aggregator);
	cutter_free(world->cutter);
	buffer_free(&world->cut);
	for (unsigned int i = 0; i < PROCESSES; i++)
		image_unref(world->images[i]);
	for (unsigned int i = 0; i < FILES; i++)
		mapped_file_unref(world->files[i]);
}

static void make_part(struct world *world)
{
	const uint64_t start = clock_read(CLOCK_THREAD_CPUTIME_ID);
	struct cut cut;

	if (cutter_cut(world->cutter, aggregator_window(world->aggregator), FILE_BYTES, world->windows, &world->cut,
		       &cut))
		exit(1);
	world->cut_ns += clock_read(CLOCK_THREAD_CPUTIME_ID) - start;
	world->cut_bytes += world->cut.size;
	world->cut_samples += cut.samples;
	buffer_clear(&world->cut);
}

static struct window *make_window(struct world *world, uint32_t samples)
{
	struct window *window;
	uint64_t ips[32];

	for (uint32_t i = 0; i < samples; i++) {
		uint64_t process = random_skewed(PROCESSES), thread = random_skewed(8);
		const struct stacktap_sample record = {
			.header.time = world->time + WINDOW_NS / samples * i + random_next() % 1000,
			.user_end = STACKTAP_END_COMPLETE, .cpu = (uint32_t)random_next() % 4,
			.tid = (uint32_t)(2000 + process * 37 + thread), .comm = "worker",
		};
		const struct sample_input input = { .sample = &record, .user_ips = ips,
						    .user_count = make_stack(process, ips),
						    .image = world->images[process] };

		if (aggregator_add(world->aggregator, &input))
			exit(1);
		if ((i + 1) % (samples / PARTS) == 0)
			make_part(world);
	}
	world->time += WINDOW_NS;
	if (aggregator_close(world->aggregator, world->time, &window))
		exit(1);
	resolve(window);
	world->windows++;
	return window;
}

static int take(void *ctx, struct payload *payload)
{
	struct buffer body = { .pool = POOL_QUEUES };
	struct sums *sums = ctx;
	uint64_t start;
	int err = 0;

	if (sums->compress) {
		start = clock_read(CLOCK_THREAD_CPUTIME_ID);
		err = gzip_compress(&body, payload->data, payload->size);
		sums->gzip_ns += clock_read(CLOCK_THREAD_CPUTIME_ID) - start;
	}
	sums->samples += payload->samples;
	sums->payloads++;
	sums->raw += payload->size;
	sums->compressed += body.size;
	buffer_free(&body);
	free(payload->data);
	return err;
}

static void print(uint32_t samples, const char *what, double value, const char *unit)
{
	printf("{\"name\": \"%s, %u samples\", \"value\": %.2f, \"unit\": \"%s\"}\n", what, samples,
	       value, unit);
}

static void measure_journal(struct world *world, uint32_t samples)
{
	for (uint32_t i = 1; i < ROUNDS; i++)
		window_free(make_window(world, samples));
	if (world->cut_samples != (uint64_t)samples * ROUNDS)
		exit(1);
	print(samples, "journal", (double)world->cut_ns / (double)world->cut_samples / 1000, "us per sample");
	print(samples, "journal", (double)world->cut_bytes / (double)world->cut_samples, "bytes per sample");
}

static void measure(uint32_t samples)
{
	const struct encode_options options = { .max_bytes = (size_t)16 << 20 };
	struct sums sums = { .compress = true };
	struct window *window;
	struct world world;
	uint64_t start, spent;
	double all;

	open_world(&world);
	window = make_window(&world, samples);
	start = clock_read(CLOCK_THREAD_CPUTIME_ID);
	for (uint32_t i = 0; i < ROUNDS; i++)
		if (encode_window(&options, window, take, &sums))
			exit(1);
	spent = clock_read(CLOCK_THREAD_CPUTIME_ID) - start;
	all = (double)sums.samples;
	if (sums.samples != (uint64_t)samples * ROUNDS)
		exit(1);
	print(samples, "encode", (double)(spent - sums.gzip_ns) / all / 1000, "us per sample");
	print(samples, "encode and gzip", (double)spent / all / 1000, "us per sample");
	print(samples, "OTLP", (double)sums.raw / all, "bytes per sample");
	print(samples, "OTLP, gzip", (double)sums.compressed / all, "bytes per sample");
	print(samples, "distinct stacks and threads", (double)window->sample_count, "entries");
	print(samples, "distinct Locations", (double)window->location_count, "entries");
	print(samples, "payload", all / (double)sums.payloads, "samples per payload");
	measure_journal(&world, samples);
	window_free(window);
	close_world(&world);
}

int main(void)
{
	pool_get(POOL_AGGREGATE)->limit = (size_t)256 << 20;
	pool_get(POOL_PROCESSES)->limit = (size_t)256 << 20;
	measure(3000);
	measure(20000);
	return 0;
}
