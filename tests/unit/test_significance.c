// SPDX-License-Identifier: Apache-2.0
/* Statistics of `stacktap diff`, against published figures and closed forms; and a diff made of a pair. */
#include "fixture.h"
#include "recorded.h"

#include <math.h>
#include <stdlib.h>

#include "view/diff.h"

/*
 * Weil's litters of rats, as Rao and Scott (1992) print them in their table 1: pups that lived of those born. Their
 * factors are 1.232495 and 3.952861. Large and small shares take turns, so that joined litters say less.
 */
static const double lived[2][16] = {
	{ 13, 7, 12, 7, 9, 5, 9, 4, 8, 11, 8, 8, 12, 9, 11, 9 },
	{ 12, 0, 11, 3, 10, 3, 9, 5, 10, 4, 9, 7, 9, 4, 8, 8 },
};
static const double born[2][16] = {
	{ 13, 10, 12, 10, 9, 7, 9, 5, 8, 13, 8, 9, 13, 10, 12, 10 },
	{ 12, 7, 11, 10, 10, 6, 9, 10, 11, 7, 10, 9, 10, 5, 9, 9 },
};

static struct sliced litters(int which, double *part)
{
	struct sliced sliced = { .has_times = true };

	/* two to a pair of slices, so that no litters are joined but by fours */
	for (int i = 0; i < 16; i++) {
		sliced.slices[2 * i] = born[which][i];
		part[2 * i] = lived[which][i];
		sliced.weight += born[which][i];
		sliced.squares += born[which][i];
		sliced.used++;
	}
	return sliced;
}

static void factors_are_those_of_rao_and_scott(void **state)
{
	static const double published[] = { 1.232495, 3.952861 };

	(void)state;
	for (int which = 0; which < 2; which++) {
		double part[SLICES] = { 0 };
		struct sliced sliced = litters(which, part);

		assert_float_equal(sliced_factor(&sliced, part), published[which], 1e-6);
		/* and by weights that are not 1 */
		for (int i = 0; i < SLICES; i++) {
			part[i] *= 1000;
			sliced.slices[i] *= 1000;
		}
		sliced.weight *= 1000;
		sliced.squares *= 1e6;
		assert_float_equal(sliced_factor(&sliced, part), published[which], 1e-6);
		sliced.has_times = false;
		assert_true(sliced_factor(&sliced, part) == 1);
	}
}

/* A part that comes in runs of @run slices of a hundred samples. */
static double factor_of_runs(int run)
{
	struct sliced sliced = { .has_times = true, .used = SLICES };
	double part[SLICES] = { 0 };

	for (int i = 0; i < SLICES; i++) {
		sliced.slices[i] = 100;
		part[i] = i / run % 2 ? 60 : 40;
	}
	sliced.weight = sliced.squares = 100 * SLICES;
	return sliced_factor(&sliced, part);
}

static void what_depends_for_long_has_a_larger_factor(void **state)
{
	(void)state;
	/* variance of a slice: 10^2 where independent samples have 25 */
	assert_float_equal(factor_of_runs(1), 4.0 * SLICES / (SLICES - 1), 1e-9);
	assert_float_equal(factor_of_runs(2), 2 * 4.0 * 20 / 19, 1e-9);
	assert_float_equal(factor_of_runs(4), 4 * 4.0 * 10 / 9, 1e-9);
}

static void smooth_samples_have_factor_1(void **state)
{
	struct sliced sliced = { .has_times = true, .used = SLICES };
	double part[SLICES] = { 0 };

	(void)state;
	assert_true(sliced_factor(&sliced, part) == 1);
	for (int i = 0; i < SLICES; i++) {
		sliced.slices[i] = 10;
		part[i] = 5;
	}
	sliced.weight = sliced.squares = 10 * SLICES;
	assert_true(sliced_factor(&sliced, part) == 1);
	assert_true(sliced_factor(&sliced, sliced.slices) == 1);
}

static void probabilities_are_students(void **state)
{
	(void)state;
	for (double t = 1.0 / 64; t < 1e6; t *= 2) {
		/* closed forms of one and two degrees of freedom */
		assert_float_equal(student_p(t, 1), 2 * atan2(1, t) / M_PI, 1e-12);
		assert_float_equal(student_p(-t, 2), 2 / (2 + t * t + t * sqrt(2 + t * t)), 1e-12);
	}
	/* of any table */
	assert_float_equal(student_p(2.228139, 10), 0.05, 1e-7);
	assert_float_equal(student_p(2.750000, 30), 0.01, 1e-6);
	assert_float_equal(student_p(1.959964, INFINITY), 0.05, 1e-7);
	assert_float_equal(student_p(3, 1e7), student_p(3, INFINITY), 1e-8);
	assert_true(student_p(0, 5) == 1);
	assert_true(student_p(1e9, 50) < 1e-100);
}

static void discoveries_are_those_of_benjamini_and_hochberg(void **state)
{
	double four[] = { 0.04, 0.005, 0.03, 0.01 }, equal[] = { 0.5, 0.5 }, high[] = { 1, 0.9, 1 };
	/* the example of their paper: the first four of fifteen at a rate of 5 % */
	double paper[] = { 0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
			   0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.000 };

	(void)state;
	assert_int_equal(discovery_rates(NULL, 0), 0);
	assert_int_equal(discovery_rates(four, 4), 0);
	assert_float_equal(four[0], 0.04, 1e-12);
	assert_float_equal(four[1], 0.02, 1e-12);
	assert_float_equal(four[2], 0.04, 1e-12);
	assert_float_equal(four[3], 0.02, 1e-12);
	assert_int_equal(discovery_rates(equal, 2), 0);
	assert_true(equal[0] == 0.5 && equal[1] == 0.5);
	assert_int_equal(discovery_rates(high, 3), 0);
	assert_true(high[0] <= 1 && high[1] <= 1 && high[2] <= 1);
	assert_int_equal(discovery_rates(paper, ARRAY_SIZE(paper)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paper); i++)
		assert_int_equal(paper[i] <= 0.05, i < 4);
}

static void shares_are_compared(void **state)
{
	const struct sliced sides[2] = { { .weight = 1000, .squares = 1000 },
					 { .weight = 4000, .squares = 8000 } };
	const double parts[2] = { 100, 600 }, none[2] = { 0, 0 }, all[2] = { 1000, 4000 };
	const double one[2] = { 1, 1 }, four[2] = { 4, 4 };
	const double pooled = (0.1 * 1000 + 0.15 * 2000) / 3000;
	struct share_test test;

	(void)state;
	assert_float_equal(sliced_size(&sides[1]), 2000, 1e-9);
	share_test(sides, parts, one, &test);
	assert_float_equal(test.change, 0.05, 1e-12);
	assert_float_equal(test.z, 0.05 / sqrt(pooled * (1 - pooled) * (1 / 1000.0 + 1 / 2000.0)), 1e-9);
	assert_float_equal(test.p, erfc(test.z / sqrt(2)), 1e-12);
	assert_float_equal(test.error, 1.959964 * sqrt(0.1 * 0.9 / 1000 + 0.15 * 0.85 / 2000), 1e-9);
	assert_float_equal(test.expected, 1000 * pooled, 1e-9);
	share_test(sides, parts, four, &test);
	assert_float_equal(test.expected, 250 * pooled, 1e-9);
	assert_float_equal(test.z, 0.025 / sqrt(pooled * (1 - pooled) * (1 / 1000.0 + 1 / 2000.0)), 1e-9);
	share_test(sides, none, one, &test);
	assert_true(test.p == 1 && test.expected == 0);
	share_test(sides, all, one, &test);
	assert_true(test.p == 1 && test.change == 0 && test.expected == 0);
	assert_float_equal(share_error(&sides[0], 100, 4), 2 * share_error(&sides[0], 100, 1), 1e-12);
	assert_true(share_error(&sides[0], 1000, 1) < 0 && share_error(&sides[0], 0, 1) < 0);
	assert_true(share_error(&sides[0], 999, 1) > 0 && share_error(&sides[0], 1, 1) > 0);
}

static void any_moment_has_a_slice(void **state _unused_)
{
	assert_int_equal(slice_of(5, 5, 5), 0);
	assert_int_equal(slice_of(0, 79, 1), 0);
	assert_int_equal(slice_of(0, 79, 2), 1);
	assert_int_equal(slice_of(0, 79, 79), SLICES - 1);
	assert_int_equal(slice_of(0, UINT64_MAX, UINT64_MAX), SLICES - 1);
	/* none of its own, but no other memory either */
	assert_int_equal(slice_of(10, 20, 9), SLICES - 1);
	assert_int_equal(slice_of(10, 20, 21), SLICES - 1);
}

static void a_recording_is_no_different_from_itself(void **state)
{
	const char *path = fixture_path("pair.otlp");
	char error[512] = "";
	struct model *model;
	uint32_t events[DIFF_SIDES];

	(void)state;
	recorded_file(path, 1 << 24);
	for (enum view_by by = 0; by < BY_COUNT; by++) {
		struct diff diff;
		double self = 0;

		if (model_load_pair(path, path, &(struct model_options){ .with_times = true,
				    .is_short = by % 2 }, &model, error, sizeof(error)))
			fail_msg("%s", error);
		assert_true(diff_events(model, events, error, sizeof(error)));
		assert_int_equal(model_event(model, events[DIFF_BEFORE])->side, MODEL_BEFORE);
		assert_int_equal(model_event(model, events[DIFF_AFTER])->side, MODEL_AFTER);
		assert_int_equal(model_event(model, events[DIFF_AFTER])->samples, 2 * 2020);
		assert_int_equal(model->totals.start, model->before.totals.start);
		assert_int_equal(diff_make(model, events, by, &diff), 0);
		assert_int_equal(diff.total.grew + diff.total.shrank + diff.self.grew +
				 diff.self.shrank + diff.path.grew + diff.path.shrank, 0);
		assert_true(diff.total.tested + diff.total.few > 0);
		/* all are of one service and no cgroup, which is all there is of them */
		assert_true(diff.total.tested > 0 || by == BY_SERVICE || by == BY_CGROUP);
		assert_true(diff.phi_median >= 1 && diff.phi_max >= diff.phi_median);
		for (size_t i = 0; i < diff.rows.count; i++) {
			const struct diff_row *row = diff_row(&diff, i);

			assert_true(row->self.test.change == 0 && row->total.test.change == 0);
			assert_true(row->total.parts[0] >= row->self.parts[0]);
			self += row->self.parts[0];
		}
		assert_float_equal(self, diff.sides[0].weight, 1e-3);
		diff_free(&diff);
		model_free(model);
	}
	synthetic_check_pools();
}

static void one_recording_has_errors(void **state)
{
	const char *path = fixture_path("one.otlp");
	char error[512] = "";
	struct model *model;
	struct diff diff;

	(void)state;
	recorded_file(path, 1 << 24);
	for (enum view_by by = 0; by < BY_COUNT; by++) {
		const struct sliced *sliced = &diff.sides[DIFF_AFTER];
		double self = 0;

		if (model_load(path, &(struct model_options){ .with_times = true }, &model, error,
			       sizeof(error)))
			fail_msg("%s", error);
		assert_int_equal(diff_make_one(model, model_main_event(model), by, false, &diff), 0);
		assert_int_equal(diff.sides[DIFF_BEFORE].used, 0);
		assert_float_equal(sliced_size(sliced), 2 * 2020, 1e-6);
		for (size_t i = 0; i < diff.rows.count; i++) {
			const struct diff_share *share = &diff_row(&diff, i)->self;

			assert_true(share->test.error >= share_error(sliced, share->parts[1], 1) - 1e-12);
			assert_true(share->parts[0] == 0);
			self += share->test.share[DIFF_AFTER];
		}
		assert_float_equal(self, 1, 1e-9);
		diff_free(&diff);
		model_free(model);
	}
	synthetic_check_pools();
}

/* Of paths, of which there may be millions, there are errors for who needs them alone. */
static void paths_are_left_out(void **state _unused_)
{
	const char *path = fixture_path("small.otlp");
	char error[512] = "";
	struct model *model;
	struct diff all, none;

	recorded_file(path, 1 << 24);
	if (model_load(path, &(struct model_options){ .with_times = true }, &model, error, sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(diff_make_one(model, model_main_event(model), BY_FUNCTION, true, &all), 0);
	assert_int_equal(diff_make_one(model, model_main_event(model), BY_FUNCTION, false, &none), 0);
	assert_true(diff_path_count(&all) > 0);
	assert_int_equal(diff_path_count(&none), 0);
	for (size_t i = 0; i < all.rows.count; i++)
		assert_float_equal(diff_row(&all, i)->total.test.error, diff_row(&none, i)->total.test.error, 0);
	diff_free(&all);
	diff_free(&none);
	model_free(model);
	synthetic_check_pools();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(factors_are_those_of_rao_and_scott),
		cmocka_unit_test(what_depends_for_long_has_a_larger_factor),
		cmocka_unit_test(smooth_samples_have_factor_1),
		cmocka_unit_test(probabilities_are_students),
		cmocka_unit_test(discoveries_are_those_of_benjamini_and_hochberg),
		cmocka_unit_test(shares_are_compared),
		cmocka_unit_test(any_moment_has_a_slice),
		cmocka_unit_test(a_recording_is_no_different_from_itself),
		cmocka_unit_test(one_recording_has_errors),
		cmocka_unit_test(paths_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
