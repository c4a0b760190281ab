// SPDX-License-Identifier: Apache-2.0
/* The errors of a report's shares: those that `report --by` has, wherever the recording comes from. */
#include "fixture.h"
#include "recorded.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "view/diff.h"
#include "view/hits.h"
#include "view/recording.h"
#include "view/report_build.h"
#include "view/report_load.h"
#include "view/report_slices.h"

static const char *path;

static int setup(void **state _unused_)
{
	path = strdup(fixture_path("report.otlp"));
	recorded_file(path, 65536);
	return 0;
}

static int teardown(void **state _unused_)
{
	free((char *)(uintptr_t)path);
	synthetic_check_pools();
	return 0;
}

static struct report *load(const char *from)
{
	struct report *report;
	char error[512] = "";

	if (report_load(from, NULL, REPORT_FUNCTIONS, &report, error, sizeof(error)))
		fail_msg("%s", error);
	return report;
}

/* The errors are of single precision. */
static void assert_share(const struct report_error *error, const struct diff_share *share)
{
	const double part = share->test.share[DIFF_AFTER];
	const double phi = part > 0 && part < 1 ? fmax(share->test.phi[DIFF_AFTER], 1) : 0;

	assert_int_equal(error->error95 >= 0, phi > 0);
	assert_true(fabs((double)error->error95 - share->test.error) <= 1e-6);
	assert_true(fabs((double)error->phi - phi) <= 1e-6 * phi);
}

static const struct diff_row *row_of(const struct diff *table, const char *owner,
				     const struct report_function *function)
{
	for (size_t i = 0; i < table->rows.count; i++) {
		const struct diff_row *row = diff_row(table, i);

		if (function ? !strcmp(row->name, function->name) && !strcmp(row->file, function->file) &&
			       row->is_kernel == function->is_kernel :
			       !strcmp(row->owner, owner))
			return row;
	}
	fail_msg("no row of %s", function ? function->name : owner);
	return NULL;
}

/* The table of one event, of all processes or of one. */
static void make_table(const char *event, const char *process, enum view_by by, struct model **ret_model,
		       struct diff *ret_table)
{
	const struct selection selection = { .event = event, .process = process };
	char error[512] = "";

	if (model_load(path, &(struct model_options){ .selection = &selection, .with_times = true },
		       ret_model, error, sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(diff_make_one(*ret_model, model_main_event(*ret_model), by, false, ret_table), 0);
}

/* How many of its functions depend on their neighbours in time. */
static unsigned int assert_process(const char *event, const struct report_process *process)
{
	unsigned int dependent = 0;
	struct model *model;
	struct diff table;
	char pid[16];

	snprintf(pid, sizeof(pid), "%u", process->pid);
	make_table(event, pid, BY_FUNCTION, &model, &table);
	for (size_t i = 0; i < process->function_count; i++) {
		const struct report_function *function = &process->functions[i];
		const struct diff_row *row = row_of(&table, NULL, function);

		assert_share(&function->self_error, &row->self);
		assert_share(&function->total_error, &row->total);
		dependent += function->total_error.phi > 1.01f;
	}
	diff_free(&table);
	model_free(model);
	return dependent;
}

static bool is_only_one(const struct report_event *event, const char *name)
{
	unsigned int count = 0;

	for (size_t i = 0; i < event->process_count; i++)
		count += !strcmp(event->processes[i].name, name);
	return count == 1;
}

static void errors_are_those_of_the_tables(void **state _unused_)
{
	struct report *report = load(path);
	/* the other one has its source's name, which selects both */
	const struct report_event *event = &report->events[0];
	unsigned int dependent = 0, alone = 0;
	struct model *model;
	struct diff table;

	assert_string_equal(event->event, "cpu-clock");
	make_table(event->event, NULL, BY_PROCESS, &model, &table);
	for (size_t i = 0; i < event->process_count; i++) {
		const struct report_process *process = &event->processes[i];

		if (is_only_one(event, process->name)) {
			assert_share(&process->error, &row_of(&table, process->name, NULL)->total);
			alone++;
		}
		if (process->pid)
			dependent += assert_process(event->event, process);
	}
	diff_free(&table);
	model_free(model);
	assert_true(dependent && alone);
	report_free(report);
}

static bool is_same_error(const struct report_error *a, const struct report_error *b)
{
	return !(a->error95 < b->error95) && !(a->error95 > b->error95) && !(a->phi < b->phi) &&
	       !(a->phi > b->phi);
}

static void assert_same(const struct report *a, const struct report *b)
{
	assert_int_equal(a->event_count, b->event_count);
	for (size_t i = 0; i < a->event_count; i++) {
		assert_int_equal(a->events[i].process_count, b->events[i].process_count);
		for (size_t k = 0; k < a->events[i].process_count; k++) {
			const struct report_process *p = &a->events[i].processes[k];
			const struct report_process *q = &b->events[i].processes[k];

			assert_true(is_same_error(&p->error, &q->error));
			assert_int_equal(p->function_count, q->function_count);
			for (size_t m = 0; m < p->function_count; m++) {
				assert_true(is_same_error(&p->functions[m].self_error, &q->functions[m].self_error));
				assert_true(is_same_error(&p->functions[m].total_error, &q->functions[m].total_error));
			}
		}
	}
}

/* Standard input becomes a pipe that somebody writes the file into. */
static pid_t feed(int *ret_stdin)
{
	int ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execlp("cat", "cat", path, (char *)NULL);
		_exit(127);
	}
	assert_true(child > 0);
	*ret_stdin = dup(STDIN_FILENO);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	close(ends[1]);
	return child;
}

static void unfeed(pid_t child, int old)
{
	dup2(old, STDIN_FILENO);
	close(old);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void what_can_be_read_once_is_kept(void **state _unused_)
{
	struct rlimit limit, small;
	struct report *file = load(path), *once;
	pid_t child;
	int old;

	child = feed(&old);
	once = load("-");
	unfeed(child, old);
	assert_same(file, once);
	assert_false(once->without_errors);
	report_free(once);

	/* where it cannot be kept shares have no errors, but are what they are */
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = (struct rlimit){ .rlim_cur = 100, .rlim_max = limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	child = feed(&old);
	once = load("-");
	unfeed(child, old);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(once->without_errors, REPORT_NO_PASS);
	assert_int_equal(once->copy_errno, EFBIG);
	assert_int_equal(once->events[0].weight, file->events[0].weight);
	assert_true(once->events[0].processes[0].error.error95 < 0);
	assert_true(once->events[0].processes[0].functions[0].self_error.error95 < 0);
	assert_true(once->events[0].processes[0].functions[0].total_error.error95 < 0);
	report_free(once);
	report_free(file);
}

static void assert_no_errors(const struct report *report)
{
	const struct report_process *process = &report->events[0].processes[0];

	assert_true(process->error.error95 < 0);
	assert_true(process->functions[0].self_error.error95 < 0);
	assert_true(process->functions[0].total_error.error95 < 0);
}

static int begin_after(void *ctx, struct reader **ret_reader)
{
	/* the daemon removes its store's oldest file */
	fixture_run("rm store/profiles-0000000001000.otlp");
	return report_builder_again(ctx, ret_reader);
}

static void a_store_may_change_meanwhile(void **state _unused_)
{
	const char *store = fixture_path("store");
	struct report_builder *builder;
	struct report *whole, *changed;
	char error[512] = "";
	bool is_cut;

	fixture_run("mkdir store; for i in 1 2; do cp '%s' store/profiles-000000000${i}000.otlp; done", path);
	whole = load(store);
	assert_true(whole->events[0].processes[0].error.error95 > 0);
	assert_int_equal(report_builder_new(NULL, REPORT_FUNCTIONS, &builder), 0);
	if (recording_read_twice(store, NULL, report_builder_reader(builder),
				 &(struct recording_again){ .begin = begin_after, .ctx = builder },
				 &is_cut, error, sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(report_builder_finish(builder, is_cut, &changed), 0);
	report_builder_free(builder);
	/* half of the samples do not tell how all of them depend on each other */
	assert_int_equal(changed->without_errors, REPORT_CHANGED);
	assert_int_equal(changed->events[0].weight, whole->events[0].weight);
	assert_no_errors(changed);
	report_free(changed);
	report_free(whole);
}

static int begin_cut(void *ctx, struct reader **ret_reader)
{
	fixture_run("truncate -s 100 cut.otlp");
	return report_builder_again(ctx, ret_reader);
}

static void a_file_may_be_cut_meanwhile(void **state _unused_)
{
	struct report_builder *builder;
	struct report *report;
	char error[512] = "";
	bool is_cut;

	fixture_run("cp '%s' cut.otlp", path);
	assert_int_equal(report_builder_new(NULL, REPORT_FUNCTIONS, &builder), 0);
	if (recording_read_twice(fixture_path("cut.otlp"), NULL, report_builder_reader(builder),
				 &(struct recording_again){ .begin = begin_cut, .ctx = builder },
				 &is_cut, error, sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(report_builder_finish(builder, is_cut, &report), 0);
	report_builder_free(builder);
	assert_int_equal(report->without_errors, REPORT_CHANGED);
	assert_no_errors(report);
	report_free(report);
}

static size_t room;

static int begin_poor(void *ctx, struct reader **ret_reader)
{
	struct pool *pool = pool_get(POOL_REPORT);

	pool->limit = atomic_load(&pool->used) + room;
	return report_builder_again(ctx, ret_reader);
}

/* The second pass may have no memory: none for its slices, or with these not enough for a message. */
static void without_memory_there_are_no_errors(void **state _unused_)
{
	const size_t limit = pool_get(POOL_REPORT)->limit;
	struct report *report;
	char error[512] = "";
	bool is_cut;

	for (room = 0;; room = 4 * room + 4096) {
		struct recording_again again = { .begin = begin_poor };
		struct report_builder *builder;

		assert_int_equal(report_builder_new(NULL, REPORT_FUNCTIONS, &builder), 0);
		again.ctx = builder;
		if (recording_read_twice(path, NULL, report_builder_reader(builder), &again, &is_cut, error,
					 sizeof(error)))
			fail_msg("%s", error);
		assert_true(!again.err || again.err == -E2BIG);
		if (again.err)
			report_builder_give_up(builder);
		pool_get(POOL_REPORT)->limit = limit;
		assert_int_equal(report_builder_finish(builder, is_cut, &report), 0);
		report_builder_free(builder);
		if (!again.err)
			break;
		assert_int_equal(report->without_errors, REPORT_NO_PASS);
		assert_no_errors(report);
		report_free(report);
	}
	assert_int_equal(report->without_errors, REPORT_ALL_ERRORS);
	assert_true(room);
	report_free(report);
}

/* With no more memory than hits need there are hits, without moments. */
static void moments_take_no_memory_from_hits(void **state _unused_)
{
	struct pool *pool = pool_get(POOL_REPORT);
	struct report *report = load(path);
	const char *function = report->events[0].processes[0].functions[0].name;
	const size_t limit = pool->limit;
	size_t more = 0;
	struct hits hits;
	char error[512];
	bool is_cut;
	int err;

	do {
		more += 4096;
		pool->limit = atomic_load(&pool->used) + more;
		err = hits_new(&hits, function, NULL, NULL) ?:
		      recording_read(path, NULL, hits.reader, &is_cut, error, sizeof(error));
		hits_free(&hits);
	} while (err == -E2BIG);
	assert_int_equal(err, 0);
	assert_int_equal(hits_load(&hits, path, function, NULL, NULL, error, sizeof(error)), 0);
	pool->limit = limit;
	assert_false(hits.with_times);
	assert_true(hits.rows.count > 0 && hits_event(&hits, 0)->function_samples > 0);
	hits_free(&hits);
	report_free(report);
}

/* The error of a process of 4000 samples in so many bursts, and that of its function which has one in @every of them. */
static struct report_function error_in_bursts(unsigned int bursts, unsigned int every)
{
	struct report_tables tables;
	struct report_slices slices;
	struct report_function function;
	uint64_t times[1];
	struct view_sample sample = { .times = times, .time_count = 1, .samples = 1, .weight = 1 };
	const struct view_profile profile = { 0 };
	uint32_t event, process, row;

	report_tables_init(&tables);
	assert_int_equal(report_event_find(&tables, &(struct report_event){ .source = "a", .event = "a" }, &event), 0);
	assert_int_equal(report_process_find(&tables, event, &(struct report_process){ .name = "a" }, &process), 0);
	assert_int_equal(report_function_find(&tables, process, &(struct report_function){ .name = "a" }, &row), 0);
	for (unsigned int pass = 0; pass < 2; pass++) {
		if (pass)
			assert_int_equal(report_slices_init(&slices, &tables), 0);
		for (unsigned int i = 0; i < 4000; i++) {
			times[0] = 1000000 + i % bursts * 1000000 / (bursts - 1);
			if (pass) {
				assert_true(report_slices_sample(&slices, process, &sample));
				if (!(i / bursts % every))
					report_slices_function(&slices, row, REPORT_SELF);
				continue;
			}
			report_process_row(&tables, process)->process.weight++;
			report_event_row(&tables, event)->event.weight++;
			report_function_row(&tables, row)->function.self += !(i / bursts % every);
			report_whole_add(&report_process_row(&tables, process)->whole, &profile, &sample);
			report_whole_add(&report_event_row(&tables, event)->whole, &profile, &sample);
		}
	}
	assert_true(report_slices_measure(&slices));
	function = report_function_row(&tables, row)->function;
	report_slices_done(&slices);
	report_tables_free(&tables);
	return function;
}

static void too_few_bursts_have_no_error(void **state _unused_)
{
	assert_true(error_in_bursts(SLICES_MIN, 2).self_error.error95 > 0);
	assert_true(error_in_bursts(SLICES_MIN - 1, 2).self_error.error95 < 0);
	/* one sample of each burst */
	assert_true(error_in_bursts(SLICES_MIN - 1, 4000).self_error.error95 < 0);
	assert_true(error_in_bursts(SLICES_MIN, 4000).self_error.error95 > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_are_those_of_the_tables),
		cmocka_unit_test(what_can_be_read_once_is_kept),
		cmocka_unit_test(a_store_may_change_meanwhile),
		cmocka_unit_test(a_file_may_be_cut_meanwhile),
		cmocka_unit_test(too_few_bursts_have_no_error),
		cmocka_unit_test(without_memory_there_are_no_errors),
		cmocka_unit_test(moments_take_no_memory_from_hits),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
