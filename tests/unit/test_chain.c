// SPDX-License-Identifier: Apache-2.0
/* Parts that continue each other in a journal, and the messages that a store makes of any beginning of them. */
#include "fixture.h"
#include "synthetic.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pool.h"
#include "export/journal.h"
#include "export/otlp.h"
#include "export/record.h"
#include "export/store.h"
#include "view/store_reader.h"

#define PARTS 12
#define PART_SAMPLES 300

static struct mapped_file *file;
static struct image *image;
static char directory[PATH_MAX];

/* What the encoder gave: where the record of each payload ends in the journal's file, and samples up to there. */
static struct made {
	struct journal *journal;
	size_t count, beginnings;
	uint64_t ends[64], samples[64];
	bool continues[64];
} made;

static int setup(void **state _unused_)
{
	fixture_run("rm -rf j && mkdir j");
	snprintf(directory, sizeof(directory), "%s", fixture_path("j"));
	file = synthetic_file("/usr/bin/program", true);
	image = synthetic_image(100, "program", NULL);
	synthetic_map(image, 0x400000, 1, file);
	made = (struct made){ 0 };
	return 0;
}

static int teardown(void **state _unused_)
{
	image_unref(image);
	mapped_file_unref(file);
	synthetic_check_pools();
	return 0;
}

static int keep(void *ctx _unused_, struct payload *payload)
{
	const uint64_t end = made.count ? made.ends[made.count - 1] : 0;
	const uint64_t samples = made.count ? made.samples[made.count - 1] : 0;

	assert_true(made.count < ARRAY_SIZE(made.ends));
	made.continues[made.count] = payload->continues;
	made.beginnings += !payload->continues;
	made.samples[made.count] = samples + payload->samples;
	made.ends[made.count++] = end + RECORD_LENGTH + payload->size + RECORD_SEAL;
	assert_int_equal(journal_add(made.journal, payload->window, payload->data, payload->size,
				     payload->samples, payload->continues), 0);
	free(payload->data);
	return 0;
}

/* Stacks of a part come again in later ones; every @fresh'th sample may have one that was not there yet. */
static uint32_t stack_of(uint32_t sample, uint32_t fresh)
{
	return sample % fresh ? sample % 50 : sample;
}

/* A journal of one window, left by a run that was killed. */
static void make(size_t max_bytes, uint32_t depth, uint32_t fresh)
{
	const struct encode_options options = { .max_bytes = max_bytes, .is_draft = true };
	struct window *part, *whole;
	struct aggregator *aggregator;
	struct encoder *encoder;

	assert_int_equal(journal_new(64 << 20, &made.journal), 0);
	assert_int_equal(journal_open(made.journal, directory), 0);
	assert_true(journal_is_open(made.journal));
	assert_int_equal(aggregator_new(&aggregator), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	assert_int_equal(encoder_new(&options, &encoder), 0);
	for (uint32_t i = 0; i < PARTS * PART_SAMPLES; i++) {
		const uint32_t which = stack_of(i, fresh);
		uint64_t ips[32];
		const struct synthetic_sample sample = {
			.time = 1000 + i, .source = synthetic_clock.source_id, .tid = 101 + i % 60,
			.comm = "program", .image = image, .user = ips, .user_count = depth,
		};

		for (uint32_t k = 0; k < depth; k++)
			ips[k] = 0x401000 + (which * 16 + k * 1040) % 0x7000;
		assert_int_equal(synthetic_add(aggregator, &sample), 0);
		if ((i + 1) % PART_SAMPLES)
			continue;
		assert_int_equal(aggregator_part(aggregator, &part), 0);
		assert_int_equal(encoder_add(encoder, part, keep, NULL), 0);
		window_free(part);
	}
	encoder_free(encoder);
	assert_int_equal(aggregator_close(aggregator, 1000000, &whole), 0);
	window_free(whole);
	aggregator_free(aggregator);
	journal_free(made.journal);
	assert_int_equal(made.samples[made.count - 1], PARTS * PART_SAMPLES);
	fixture_run("cp j/journal-* left && rm j/journal-*");
}

static void check_dictionary(const OtlpDictionary *of)
{
	for (size_t i = 0; i < of->n_stack_table; i++)
		for (size_t k = 0; k < of->stack_table[i]->n_location_indices; k++)
			assert_in_range(of->stack_table[i]->location_indices[k], 1,
					of->n_location_table - 1);
	for (size_t i = 1; i < of->n_location_table; i++) {
		const OtlpLocation *location = of->location_table[i];

		assert_in_range(location->mapping_index, 1, of->n_mapping_table - 1);
		assert_int_equal(location->n_attribute_indices, 2);
		for (size_t k = 0; k < 2; k++)
			assert_in_range(location->attribute_indices[k], 1, of->n_attribute_table - 1);
	}
	for (size_t i = 1; i < of->n_attribute_table; i++)
		assert_in_range(of->attribute_table[i]->key_strindex, 1, of->n_string_table - 1);
	for (size_t i = 1; i < of->n_string_table; i++)
		assert_true(of->string_table[i][0]);
}

/* Whole, and each entry of its dictionary once. Adds the bytes of its addresses to *hash. */
static uint64_t check_message(const struct store_message *message, uint64_t *sum)
{
	OtlpProfilesData *data = (OtlpProfilesData *)protobuf_c_message_unpack(
		OTLP_DATA_DESCRIPTOR, NULL, message->size, message->data);
	const OtlpDictionary *of;
	uint64_t samples = 0;

	assert_non_null(data);
	assert_true(record_is_bare(message->data, message->size));
	of = data->dictionary;
	check_dictionary(of);
	for (size_t i = 0; i < data->n_resource_profiles; i++) {
		const OtlpScopeProfiles *scope = data->resource_profiles[i]->scope_profiles[0];

		for (size_t k = 0; k < scope->n_profiles; k++) {
			const OtlpProfile *profile = scope->profiles[k];

			for (size_t n = 0; n < profile->n_samples; n++) {
				const OtlpSample *sample = profile->samples[n];
				const OtlpStack *stack;

				assert_in_range(sample->stack_index, 1, of->n_stack_table - 1);
				stack = of->stack_table[sample->stack_index];
				samples += sample->n_timestamps_unix_nano;
				*sum += sample->n_timestamps_unix_nano *
					of->location_table[stack->location_indices[0]]->address;
			}
		}
	}
	protobuf_c_message_free_unpacked(&data->base, NULL);
	return samples;
}

struct found {
	uint64_t samples, messages, damaged, sum, largest;
};

/* What the next run's spool has of a journal. */
static struct found recover(const char *journal)
{
	const struct store_options options = { .directory = directory, .max_bytes = 64 << 20,
					       .is_spool = true };
	struct store_message message;
	struct found found = { 0 };
	struct store *store;

	fixture_run("cp %s j/journal-0000000001000.otlp", journal);
	assert_int_equal(store_open(&options, &store), 0);
	while (store_oldest(store, 64 << 20, &message) == 1) {
		assert_int_equal(check_message(&message, &found.sum), message.samples);
		found.samples += message.samples;
		found.messages++;
		found.largest = max_of(found.largest, (uint64_t)message.size);
		free(message.data);
		store_take(store);
	}
	found.damaged = store_stats(store).damaged_messages;
	store_close(store);
	fixture_run("test -z \"$(ls j)\"");
	return found;
}

static void cut_at(uint64_t size)
{
	fixture_run("cp left cut");
	assert_int_equal(truncate(fixture_path("cut"), (off_t)size), 0);
}

static uint64_t samples_in(uint64_t size)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < made.count && made.ends[i] <= size; i++)
		samples = made.samples[i];
	return samples;
}

/* Of the addresses of all leaves, in the file: the code begins at 0x401000 there, and 0x400000 in the process. */
static uint64_t sum_of_all(uint32_t fresh)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < PARTS * PART_SAMPLES; i++)
		sum += 0x402000 + stack_of(i, fresh) * 16 % 0x7000;
	return sum;
}

static void all_parts_are_one_message(void **state _unused_)
{
	struct found found;

	make(4 << 20, 4, 2);
	assert_int_equal(made.beginnings, 1);
	assert_int_equal(made.count, PARTS);
	found = recover("left");
	assert_int_equal(found.samples, PARTS * PART_SAMPLES);
	assert_int_equal(found.messages, 1);
	assert_int_equal(found.damaged, 0);
	assert_int_equal(found.sum, sum_of_all(2));
}

/* Each message stays below the limit: parts begin anew. */
static void what_is_too_much_begins_anew(void **state _unused_)
{
	struct found found;

	make(64 << 10, 4, 1000);
	assert_true(made.beginnings > 1);
	assert_true(made.count > made.beginnings);
	found = recover("left");
	assert_int_equal(found.samples, PARTS * PART_SAMPLES);
	assert_int_equal(found.messages, made.beginnings);
	assert_in_range(found.largest, 32 << 10, 64 << 10);
	assert_int_equal(found.sum, sum_of_all(1000));
}

static void each_beginning_is_recovered(void **state _unused_)
{
	struct found found;

	make(64 << 10, 20, 2);
	for (size_t i = 0; i < made.count; i++) {
		const uint64_t sizes[] = { made.ends[i], made.ends[i] - 1, made.ends[i] + 3, made.ends[i] - 300 };

		for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
			const uint64_t size = min_of(sizes[k], made.ends[made.count - 1]);

			cut_at(size);
			found = recover("cut");
			assert_int_equal(found.samples, samples_in(size));
			assert_int_equal(found.damaged, k && size != made.ends[made.count - 1]);
		}
	}
}

static void flip(uint64_t offset)
{
	FILE *out;
	int byte;

	fixture_run("cp left cut");
	out = fopen(fixture_path("cut"), "r+");
	assert_non_null(out);
	assert_int_equal(fseek(out, (long)offset, SEEK_SET), 0);
	byte = fgetc(out);
	assert_int_equal(fseek(out, (long)offset, SEEK_SET), 0);
	fputc(byte ^ 0x10, out);
	assert_int_equal(fclose(out), 0);
}

/* What continues a damaged one is lost with it, and nothing else. */
static void damage_ends_at_the_next_beginning(void **state _unused_)
{
	struct found found;

	make(64 << 10, 20, 2);
	for (size_t i = 0; i < made.count; i++) {
		uint64_t want = PARTS * PART_SAMPLES, before = i ? made.samples[i - 1] : 0;
		size_t next = i + 1;

		while (next < made.count && made.continues[next])
			next++;
		want -= made.samples[next - 1] - before;
		flip(made.ends[i] - 40);
		found = recover("cut");
		assert_int_equal(found.samples, want);
		/* one that continues is left out, the other is passed over in the spool */
		assert_int_equal(found.damaged, !made.continues[i]);
	}
}

/* A store has no reader that would pass a rest of a chain over. */
static void a_rest_is_left_out(void **state _unused_)
{
	struct found found;

	make(4 << 20, 4, 2);
	fixture_run("tail -c +%llu left >rest", (unsigned long long)made.ends[0] + 1);
	found = recover("rest");
	fixture_run("test -z \"$(ls j)\"");
	assert_int_equal(found.samples, 0);
	assert_int_equal(found.messages, 0);
	assert_int_equal(found.damaged, 0);
}

/* By itself it would have indices of another dictionary, and names that are not its own. */
static void none_that_continues_is_shown(void **state _unused_)
{
	struct store_reader *reader;
	const uint8_t *data;
	size_t size, count = 0;
	int fd, ret;

	make(64 << 10, 4, 1000);
	assert_true(made.count > made.beginnings);
	fd = open(fixture_path("left"), O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(store_reader_open(fd, &reader), 0);
	while ((ret = store_reader_next(reader, &data, &size)) == 1)
		count++;
	assert_int_equal(count, made.beginnings);
	assert_int_equal(ret, -ENODATA);
	store_reader_close(reader);
	close(fd);
}

/* None that the encoder makes; a file that cannot be joined would stay for good. */
static void a_dictionary_may_be_empty(void **state _unused_)
{
	static const uint8_t message[] = { 0x0a, 0x00, 0x12, 0x00 };
	const struct store_options options = { .directory = directory, .max_bytes = 64 << 20, .is_spool = true };
	struct journal *journal;
	struct store *store;

	assert_int_equal(journal_new(1 << 20, &journal), 0);
	assert_int_equal(journal_open(journal, directory), 0);
	assert_int_equal(journal_add(journal, 1, message, sizeof(message), 1, false), 0);
	assert_int_equal(journal_add(journal, 1, message, sizeof(message), 1, true), 0);
	journal_free(journal);
	assert_int_equal(store_open(&options, &store), 0);
	assert_int_equal(store_stats(store).messages, 1);
	assert_int_equal(store_stats(store).samples, 2);
	store_close(store);
}

static void without_memory_it_stays(void **state _unused_)
{
	struct pool *pool = pool_get(POOL_ENCODE);
	const struct store_options options = { .directory = directory, .max_bytes = 64 << 20 };
	const size_t limit = pool->limit;
	struct store *store;

	make(4 << 20, 4, 2);
	fixture_run("cp left j/journal-0000000001000.otlp");
	pool->limit = 5000;
	assert_int_equal(store_open(&options, &store), 0);
	assert_int_equal(store_stats(store).files, 0);
	store_close(store);
	pool->limit = limit;
	fixture_run("cmp left j/journal-0000000001000.otlp && test $(ls j | wc -l) = 1");
}

static void what_continues_nothing_is_refused(void **state _unused_)
{
	static const uint8_t message[] = { 0x12, 0x02, 0x22, 0x00 };
	struct journal *journal;

	assert_int_equal(journal_new(1 << 20, &journal), 0);
	assert_false(journal_is_open(journal));
	assert_int_equal(journal_open(journal, directory), 0);
	assert_int_equal(journal_add(journal, 1, message, sizeof(message), 1, true), -ESTALE);
	assert_int_equal(journal_add(journal, 1, message, sizeof(message), 1, false), 0);
	assert_int_equal(journal_add(journal, 1, message, sizeof(message), 1, true), 0);
	assert_int_equal(journal_add(journal, 2, message, sizeof(message), 1, true), -ESTALE);
	/* another directory, as when a spool is opened again: what was there is not here */
	assert_int_equal(journal_open(journal, directory), 0);
	assert_int_equal(journal_add(journal, 1, message, sizeof(message), 1, true), -ESTALE);
	journal_free(journal);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(all_parts_are_one_message),
		T(what_is_too_much_begins_anew),
		T(each_beginning_is_recovered),
		T(damage_ends_at_the_next_beginning),
		T(a_rest_is_left_out),
		T(none_that_continues_is_shown),
		T(a_dictionary_may_be_empty),
		T(without_memory_it_stays),
		T(what_continues_nothing_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
