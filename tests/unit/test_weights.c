// SPDX-License-Identifier: Apache-2.0
/*
 * Shares of CPU time through the whole of user space: a synthetic ring image, parsed, aggregated,
 * encoded, stored and reported. One CPU is busy all the time, the other a tenth of it.
 */
#include "fixture.h"
#include "synthetic.h"

#include "capture/replay.h"
#include "export/store_file.h"
#include "view/report_load.h"

#define BUSY_HZ UINT64_C(3000000000)	/* cycles in a second of a busy CPU */
#define RATE 100
#define SECONDS 30
#define SECOND UINT64_C(1000000000)

static struct aggregator *aggregator;
static struct image *images[2];
static uint8_t ring[1 << 20] __attribute__((aligned(8)));

static void on_sample(void *ctx, const struct stacktap_sample *sample,
		      const struct sample_sections *sections)
{
	(void)ctx;
	assert_int_equal(aggregator_add(aggregator, &(struct sample_input){
		.sample = sample,
		.kernel_ips = sections->kernel_ips, .kernel_count = sections->kernel_count,
		.user_ips = sections->user_ips, .user_count = sections->user_count,
		.image = images[sample->tgid == 200] }), 0);
}

static void on_record(void *ctx, uint32_t cpu, const struct stacktap_record *record)
{
	const struct stacktap_config *config = (const struct stacktap_config *)record;
	struct profile_config profile = { .source = "cycles", .event = "cycles" };

	(void)ctx;
	assert_int_equal(record->type, STACKTAP_RECORD_CONFIG);
	profile.source_id = config->source;
	profile.mode = config->mode;
	profile.rate_hz = config->rate_hz;
	profile.period = config->period;
	profile.is_cpu_time = true;
	assert_int_equal(aggregator_set_cpu_profile(aggregator, cpu, &profile), 0);
}

static size_t put_config(uint8_t *at, uint16_t mode)
{
	struct stacktap_config config = {
		.header = { .size = sizeof(config), .type = STACKTAP_RECORD_CONFIG, .time = 1 },
		.mode = mode, .rate_hz = RATE,
		.period = mode == STACKTAP_MODE_PERIOD ? BUSY_HZ / RATE : 0, .name = "cycles",
	};

	memcpy(at, &config, sizeof(config));
	return sizeof(config);
}

static size_t put_sample(uint8_t *at, uint32_t cpu, uint64_t time, uint64_t period)
{
	struct {
		struct stacktap_sample sample;
		struct stacktap_section section;
		uint64_t ips[2];
	} record = {
		.sample = {
			.header = { .size = sizeof(record), .type = STACKTAP_RECORD_SAMPLE,
				    .flags = STACKTAP_SAMPLE_USER_MODE, .time = time },
			.context = STACKTAP_CONTEXT_NMI, .user_end = STACKTAP_END_COMPLETE,
			.cpu = cpu, .tgid = cpu ? 200 : 100, .tid = cpu ? 200 : 100,
			.period = period, .comm = "work",
		},
		.section = { .kind = STACKTAP_SECTION_USER_IPS, .len = 16 },
		.ips = { 0x7f0000000010, 0x7f0000000020 },
	};

	memcpy(at, &record, sizeof(record));
	return sizeof(record);
}

/*
 * CPU 1 runs its program for a tenth of each second. A fixed period overflows a tenth as often
 * there. In frequency mode the kernel makes the period smaller until the rate is the same on both,
 * so only the periods tell the two apart.
 */
static void replay(uint16_t mode, uint32_t cpu)
{
	const struct capture_ops ops = { .sample = on_sample, .record = on_record };
	struct capture_stats stats = { 0 };
	unsigned int busy = cpu ? 10 : 100;	/* percent */
	uint64_t period = BUSY_HZ / RATE;
	unsigned int samples = SECONDS * RATE * busy / 100;
	size_t size;

	if (mode == STACKTAP_MODE_FREQ) {
		samples = SECONDS * RATE;
		period = BUSY_HZ / RATE * busy / 100;
	}
	size = put_config(ring, mode);
	for (unsigned int i = 0; i < samples; i++)
		size += put_sample(ring + size, cpu, SECOND + i * (SECONDS * SECOND / samples),
				   period);
	assert_true(size <= sizeof(ring));
	assert_int_equal(ring_parse(ring, size, cpu, &ops, NULL, &stats), 0);
	assert_int_equal(stats.samples, samples);
}

static int append(void *ctx, struct payload *payload)
{
	int err = store_file_append(ctx, payload->data, payload->size);

	free(payload->data);
	return err;
}

static struct report *run(uint16_t mode)
{
	const struct encode_options options = { .max_bytes = (size_t)16 << 20 };
	const char *path = fixture_path("weights.otlp");
	struct mapped_file *file = synthetic_file("/usr/bin/program", true);
	struct store_file *out;
	struct report *report;
	struct window *window;

	assert_int_equal(aggregator_new(&aggregator), 0);
	for (int i = 0; i < 2; i++) {
		images[i] = synthetic_image(i ? 200 : 100, i ? "tenth" : "whole", NULL);
		synthetic_map(images[i], 0x7f0000000000, 0, file);
	}
	replay(mode, 0);
	replay(mode, 1);
	assert_int_equal(aggregator_close(aggregator, (SECONDS + 2) * SECOND, &window), 0);
	synthetic_resolve(window);
	assert_int_equal(store_file_create(path, &out), 0);
	assert_int_equal(encode_window(&options, window, append, out), 0);
	assert_int_equal(store_file_close(out, NULL), 0);
	window_free(window);
	aggregator_free(aggregator);
	for (int i = 0; i < 2; i++)
		image_unref(images[i]);
	mapped_file_unref(file);
	assert_int_equal(report_load(path, NULL, REPORT_FUNCTIONS, &report, NULL, 0), 0);
	return report;
}

static void check_shares(const struct report *report)
{
	const struct report_event *event = &report->events[0];
	double share;

	assert_int_equal(report->event_count, 1);
	assert_int_equal(event->process_count, 2);
	assert_string_equal(event->processes[0].name, "whole");
	assert_string_equal(event->processes[1].name, "tenth");
	share = (double)event->processes[0].weight / (double)event->weight;
	/* 100 : 10 */
	assert_true(share > 0.908 && share < 0.910);
	assert_int_equal(event->weight, event->processes[0].weight + event->processes[1].weight);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(event->processes[i].functions[0].self, event->processes[i].weight);
		assert_int_equal(event->processes[i].functions[0].total,
				 event->processes[i].weight);
	}
}

static void fixed_period(void **state)
{
	struct report *report = run(STACKTAP_MODE_PERIOD);

	(void)state;
	check_shares(report);
	/* and it is time: 30 s and 3 s */
	assert_string_equal(report->events[0].unit, "nanoseconds");
	assert_int_equal(report->events[0].processes[0].weight, SECONDS * SECOND);
	assert_int_equal(report->events[0].processes[1].weight, SECONDS * SECOND / 10);
	assert_int_equal(report->events[0].processes[1].samples, SECONDS * RATE / 10);
	report_free(report);
	synthetic_check_pools();
}

static void frequency(void **state)
{
	struct report *report = run(STACKTAP_MODE_FREQ);

	(void)state;
	/* as many samples on both, and yet */
	assert_int_equal(report->events[0].processes[0].samples,
			 report->events[0].processes[1].samples);
	check_shares(report);
	assert_string_equal(report->events[0].unit, "count");
	assert_int_equal(report->events[0].processes[0].weight, BUSY_HZ * SECONDS);
	report_free(report);
	synthetic_check_pools();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixed_period), cmocka_unit_test(frequency),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
