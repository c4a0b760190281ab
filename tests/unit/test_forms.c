// SPDX-License-Identifier: Apache-2.0
/* Thread C by itself: one window, encoded in each of the forms that receivers want. */
#include "synthetic.h"

#include <string.h>

#include "export/relabel.h"
#include "pipeline/threads.h"

enum { FORMS = 3 };

static struct {
	unsigned int payloads;
	uint64_t samples;
	bool has_suffix, is_last;
} got[FORMS];
static unsigned int done, fails_from;	/* payloads of the last form, 0: never */

static int take(void *ctx _unused_, struct payload *payload)
{
	assert_true(payload->form < FORMS && !done);
	got[payload->form].payloads++;
	got[payload->form].samples += payload->samples;
	got[payload->form].has_suffix |= !!memmem(payload->data, payload->size, "_[k]", 4);
	got[payload->form].is_last |= payload->is_last;
	/* forms come one after the other */
	for (unsigned int i = payload->form + 1; i < FORMS; i++)
		assert_int_equal(got[i].payloads, 0);
	free(payload->data);
	return fails_from && got[FORMS - 1].payloads > fails_from ? -ENOSPC : 0;
}

static void finish(void *ctx _unused_, uint64_t window _unused_)
{
	done++;
}

/* One window through thread C. */
static void run(struct pipeline *pipeline, struct relabel *relabel)
{
	static const struct encode_form others[] = {
		{ .kernel_suffix = "_[k]" }, { .names_ranges = true, .max_bytes = 4096 },
	};
	struct message *message = message_new(MESSAGE_WINDOW);
	struct aggregator *aggregator;

	memset(got, 0, sizeof(got));
	done = 0;
	*pipeline = (struct pipeline){
		.options = {
			.encode = { .max_bytes = 1 << 20, .relabel = relabel },
			.other_forms = others, .other_form_count = ARRAY_SIZE(others),
			.sink = { .payload = take, .done = finish },
		},
		.lock = PTHREAD_MUTEX_INITIALIZER, .window_gone = PTHREAD_COND_INITIALIZER,
		.windows_under_way = 1,
	};
	assert_int_equal(aggregator_new(&aggregator), 0);
	message->window = synthetic_window(aggregator);
	assert_int_equal(queue_new(POOL_QUEUES, 1 << 20, &pipeline->windows), 0);
	assert_int_equal(message_send(pipeline->windows, message, 0, QUEUE_NORMAL, 0), 0);
	queue_close(pipeline->windows);
	assert_null(export_thread(pipeline));
	queue_free(pipeline->windows, message_drop);
	aggregator_free(aggregator);
	synthetic_check_pools();
}

static void each_form_has_the_whole_window(void **state _unused_)
{
	struct pipeline pipeline;
	struct relabel *relabel;
	char error[64];

	fails_from = 0;
	assert_int_equal(relabel_new(&relabel), 0);
	assert_int_equal(relabel_add(relabel, "set a b", error, sizeof(error)), 0);
	run(&pipeline, relabel);
	assert_int_equal(done, 1);
	assert_true(got[0].samples > 1000);
	for (unsigned int i = 0; i < FORMS; i++) {
		assert_true(got[i].is_last);
		assert_int_equal(got[i].samples, got[0].samples);
		assert_int_equal(got[i].has_suffix, i == 1);
	}
	assert_int_equal(got[0].payloads, 1);
	assert_true(got[2].payloads > 1);
	assert_int_equal(pipeline.stats.samples_dropped, 0);
	/* rules count each of the four Resources once, in however many forms it is sent */
	assert_int_equal(relabel_count(relabel, 0).matched, 4);
	relabel_free(relabel);
}

/* What one form did not get is counted, though all others did. */
static void what_a_form_lacks_is_counted(void **state _unused_)
{
	struct pipeline pipeline;

	fails_from = 1;
	run(&pipeline, NULL);
	assert_int_equal(got[1].samples, got[0].samples);
	assert_true(got[2].samples < got[0].samples && !got[2].is_last);
	assert_int_equal(pipeline.stats.samples_dropped, got[0].samples - got[2].samples);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_form_has_the_whole_window), cmocka_unit_test(what_a_form_lacks_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
