// SPDX-License-Identifier: Apache-2.0
/* What every view of a recording is made from: reader, selection, call tree and timeline. */
#include "fixture.h"
#include "recorded.h"

#include <stdlib.h>
#include <time.h>

#include "export/otlp.h"
#include "view/focus.h"
#include "view/model.h"
#include "view/report_load.h"

static const char *path;

static int setup(void **state)
{
	(void)state;
	path = strdup(fixture_path("view.otlp"));
	recorded_file(path, 1 << 24);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free((char *)(uintptr_t)path);
	synthetic_check_pools();
	return 0;
}

static struct model *load(const struct model_options *options)
{
	struct model *model;
	char error[256] = "";

	if (model_load(path, options, &model, error, sizeof(error)))
		fail_msg("%s", error);
	return model;
}

/* Samples of a part; 0 when there are none. */
static uint64_t samples_of(const struct selection *selection)
{
	struct model *model = load(&(struct model_options){ .selection = selection });
	uint64_t sum = 0;

	for (uint32_t i = 0; i < model->events.count; i++)
		sum += model_event(model, i)->samples;
	model_free(model);
	return sum;
}

static void sums_are_those_of_the_report(void **state)
{
	struct model *model = load(&(struct model_options){ .with_times = true });
	struct report *report;

	(void)state;
	assert_int_equal(report_load(path, NULL, REPORT_FUNCTIONS, &report, NULL, 0), 0);
	assert_int_equal(model->events.count, report->event_count);
	assert_int_equal(model->totals.start, report->start);
	assert_int_equal(model->totals.end, report->end);
	for (uint32_t i = 0; i < model->events.count; i++) {
		const struct model_event *event = model_event(model, i);
		const struct report_event *other = &report->events[0];
		uint64_t self = 0;

		while (strcmp(other->source, event->source) || strcmp(other->event, event->event))
			other++;
		assert_int_equal(event->samples, other->samples);
		assert_int_equal(event->weight, other->weight);
		assert_int_equal(event->complete, other->quality.complete);
		assert_int_equal(model_sum(model, i), 0);
		assert_int_equal(tree_sum(&model->tree, TREE_ROOT)->samples, other->samples);
		assert_int_equal(tree_sum(&model->tree, TREE_ROOT)->total, other->weight);
		for (uint32_t n = 1; n < tree_count(&model->tree); n++)
			self += tree_sum(&model->tree, n)->self;
		assert_int_equal(self, other->weight);
	}
	assert_int_equal(model_main_event(model), 0);
	report_free(report);
	model_free(model);
}

/* By a number or a name, in whole or cut: parts that together are all there is. */
static void parts_make_the_whole(void **state)
{
	const uint64_t all = samples_of(NULL);
	struct selection selection = { 0 };
	uint64_t sum = 0;

	(void)state;
	for (int i = 0; i < 4; i++) {
		static const char *const pids[] = { "0", "100", "200", "300" };

		selection.process = pids[i];
		sum += samples_of(&selection);
	}
	assert_int_equal(sum, all);
	selection.process = "program";
	assert_int_equal(samples_of(&selection), 2 * 1600);
	selection = (struct selection){ .container = "012345" };
	assert_int_equal(samples_of(&selection), 2 * 800);
	selection.container = "12345";
	assert_int_equal(samples_of(&selection), 0);
	selection = (struct selection){ .service = "shop" };
	assert_int_equal(samples_of(&selection), all);
	selection = (struct selection){ .thread = "worker" };
	assert_int_equal(samples_of(&selection), 2 * 3 * 400);
	selection = (struct selection){ .thread = "201" };
	assert_int_equal(samples_of(&selection), 2 * 400);
	selection = (struct selection){ .event = "cpu-clock" };
	assert_int_equal(samples_of(&selection), 2 * 2020);
	selection = (struct selection){ .event = "no-such" };
	assert_int_equal(samples_of(&selection), 0);
}

static void times_cut_samples_in_two(void **state)
{
	struct model *model = load(&(struct model_options){ .with_times = true });
	const uint64_t all = samples_of(NULL);
	struct selection selection = { 0 };
	uint64_t first, middle;

	(void)state;
	/* one list of times has some on both sides */
	middle = (model->totals.start + model->totals.end) / 2 - 1000000000;
	selection.to = (struct moment){ MOMENT_UNIX, middle + 700000000 };
	first = samples_of(&selection);
	assert_true(first > all / 4 && first < all);
	selection = (struct selection){ .from = selection.to };
	assert_int_equal(first + samples_of(&selection), all);
	/* weights go with them */
	{
		struct model *part = load(&(struct model_options){ .selection = &selection,
								   .with_times = true });
		const struct model_event *event = model_event(part, model_main_event(part));

		assert_false(event->has_quality);
		assert_int_equal(event->weight, event->samples * event->period);
		assert_true(part->timeline.first >= middle + 700000000);
		model_free(part);
	}
	/* the same by what the recording's own clock says */
	selection.from = (struct moment){ MOMENT_START,
					  middle + 700000000 - model->totals.start };
	assert_int_equal(first + samples_of(&selection), all);
	selection.from = (struct moment){ MOMENT_END, model->totals.end - middle - 700000000 };
	assert_int_equal(first + samples_of(&selection), all);
	selection.from = (struct moment){ MOMENT_END, UINT64_MAX };
	assert_int_equal(samples_of(&selection), all);
	selection.from = (struct moment){ MOMENT_START, UINT64_MAX };
	assert_int_equal(samples_of(&selection), 0);
	model_free(model);
}

static void moments_are_understood(void **state)
{
	static const struct { const char *text; enum moment_base base; uint64_t ns; } good[] = {
		{ "0", MOMENT_START, 0 },
		{ "2.5", MOMENT_START, 2500000000 },
		{ "500ms", MOMENT_START, 500000000 },
		{ "7us", MOMENT_START, 7000 },
		{ "1.5m", MOMENT_START, 90000000000 },
		{ "2h", MOMENT_START, 7200000000000 },
		{ "@1700000000", MOMENT_UNIX, 1700000000000000000 },
		{ "@1700000000.000000001", MOMENT_UNIX, 1700000000000000001 },
		{ "2023-11-14T22:13:20Z", MOMENT_UNIX, 1700000000000000000 },
		{ "2023-11-14 22:13:20.25Z", MOMENT_UNIX, 1700000000250000000 },
		{ "2023-11-14T23:43:20+01:30", MOMENT_UNIX, 1700000000000000000 },
		{ "2023-11-14T20:13:20-0200", MOMENT_UNIX, 1700000000000000000 },
		{ "2023-11-14", MOMENT_UNIX, 1699920000000000000 },
	};
	static const char *const bad[] = {
		"", "-1", "+1", " 1", "1 ", "1x", "0x10", "1e3", "inf", "nan", "1.2.3", "ms", "@",
		"@-1", "@1x", "@99999999999999999999", "2023-13-01", "2023-11-14T25:00:00Z",
		"2023-11-14T22:13:20X", "2023-11-14T22:13:20+25:00", "10000000000", "1969-12-31",
		"12:00:00",
	};
	struct moment moment;

	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		if (!moment_parse(good[i].text, &moment))
			fail_msg("%s is no time", good[i].text);
		assert_int_equal(moment.base, good[i].base);
		assert_int_equal(moment.ns, good[i].ns);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (moment_parse(bad[i], &moment))
			fail_msg("%s is a time", bad[i]);
}

static void times_are_said(void **state)
{
	static const struct { struct moment from, to; const char *text; } said[] = {
		{ { MOMENT_NONE, 0 }, { MOMENT_NONE, 0 }, "" },
		{ { MOMENT_START, 0 }, { MOMENT_START, 10000000000 }, " from 0 s to 10 s" },
		{ { MOMENT_START, 500000001 }, { MOMENT_NONE, 0 }, " from 0.500000001 s on" },
		{ { MOMENT_NONE, 0 }, { MOMENT_UNIX, 1700000000250000000 }, " up to 2023-11-14T22:13:20.25Z" },
		{ { MOMENT_END, 60000000000 }, { MOMENT_NONE, 0 }, " in its last 60 s" },
		{ { MOMENT_END, 1500000000 }, { MOMENT_UNIX, 1700000000000000000 },
		  " in its last 1.5 s, up to 2023-11-14T22:13:20Z" },
	};
	struct selection selection = { 0 };
	char text[SELECTION_TIME_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
		selection.from = said[i].from;
		selection.to = said[i].to;
		selection_say_time(&selection, text, sizeof(text));
		assert_string_equal(text, said[i].text);
	}
	selection.process = "shop";
	selection_say_nothing(&selection, "host.otlp", text, sizeof(text));
	assert_string_equal(text, "host.otlp: there is no process shop in it in its last 1.5 s, up to 2023-11-14T22:13:20Z");
	selection = (struct selection){ .process = "shop", .event = "cycles" };
	/* there may be both, but not together */
	selection_say_nothing(&selection, "host.otlp", text, sizeof(text));
	assert_string_equal(text, "host.otlp: there are no samples of process shop and event cycles in it");
	selection = (struct selection){ .from = { MOMENT_START, 10000000000 } };
	selection_say_nothing(&selection, "host.otlp", text, sizeof(text));
	assert_string_equal(text, "host.otlp: there are no samples in it from 10 s on");
}

static bool is_kernel(const void *ctx, const struct model_frame *frame)
{
	*(uint32_t *)(uintptr_t)ctx += 1;
	return frame->kind == FRAME_KIND_KERNEL;
}

static bool has_kernel(const struct model *model, uint32_t node)
{
	for (; node != TREE_ROOT; node = tree_node(&model->tree, node)->parent)
		if (model_frame(model, tree_node(&model->tree, node)->frame)->kind == FRAME_KIND_KERNEL)
			return true;
	return false;
}

static void a_focus_keeps_the_sum(void **state)
{
	struct model *model = load(&(struct model_options){ .with_times = true });
	uint32_t event = model_main_event(model), tested = 0, inside = 0, outside = 0;
	const size_t entries = timeline_count(&model->timeline);
	struct focus focus;
	uint64_t all, below = 0;

	(void)state;
	assert_int_equal(model_sum(model, event), 0);
	all = tree_sum(&model->tree, TREE_ROOT)->total;
	assert_int_equal(focus_find(model, is_kernel, &tested, &focus), 0);
	assert_int_equal(tested, model->frames.count);
	for (uint32_t i = 0; i < tree_count(&model->tree); i++) {
		assert_int_equal(focus_has(&focus, i), has_kernel(model, i));
		*(focus_has(&focus, i) ? &inside : &outside) += tree_sum(&model->tree, i)->self > 0;
		below += focus_has(&focus, i) ? tree_sum(&model->tree, i)->self : 0;
	}
	assert_true(inside && outside);
	focus_apply(&focus, model);
	focus_done(&focus);
	assert_int_equal(timeline_count(&model->timeline), entries);
	assert_int_equal(model_sum(model, event), 0);
	assert_int_equal(tree_sum(&model->tree, TREE_ROOT)->total, all);
	assert_int_equal(tree_sum(&model->tree, TREE_ROOT)->self, all - below);
	for (uint32_t i = 1; i < tree_count(&model->tree); i++)
		assert_true(!tree_sum(&model->tree, i)->self || has_kernel(model, i));
	model_free(model);
}

static void trees_may_be_deep(void **state)
{
	enum { DEPTH = 1000000 };
	uint32_t node = TREE_ROOT, again;
	struct tree tree;

	(void)state;
	tree_init(&tree);
	for (uint32_t i = 0; i < DEPTH; i++)
		assert_int_equal(tree_child(&tree, node, i % 7, &node), 0);
	assert_int_equal(tree_clear(&tree), 0);
	tree_add(&tree, node, 3, 30);
	assert_int_equal(tree_child(&tree, TREE_ROOT, 0, &again), 0);
	assert_int_equal(again, 1);
	assert_int_equal(tree_count(&tree), DEPTH + 1);
	tree_add(&tree, again, UINT64_MAX, UINT64_MAX - 35);
	for (int pass = 0; pass < 2; pass++) {
		tree_add_up(&tree);
		assert_int_equal(tree_sum(&tree, node)->total, pass ? 0 : 30);
		assert_int_equal(tree_sum(&tree, DEPTH / 2)->samples, pass ? 0 : 3);
		/* sums do not wrap */
		assert_int_equal(tree_sum(&tree, TREE_ROOT)->samples, pass ? 0 : UINT64_MAX);
		assert_int_equal(tree_sum(&tree, TREE_ROOT)->total, pass ? 0 : UINT64_MAX - 5);
		assert_int_equal(tree_sum(&tree, TREE_ROOT)->self, 0);
		assert_int_equal(tree_clear(&tree), 0);
	}
	tree_free(&tree);
}

static void paths_lead_to_the_same_nodes(void **state)
{
	static const uint32_t paths[][4] = {
		{ 1, 2, 3, 4 }, { 1, 2, 3, 5 }, { 1, 2, 2, 4 }, { 2, 1, 3, 4 }, { 4, 3, 2, 1 }, { 1, 1, 1, 1 },
	};
	struct tree tree;

	(void)state;
	tree_init(&tree);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
			for (size_t count = 0; count <= 4; count++) {
				uint32_t node = TREE_ROOT, found;

				/* what is found by the path is what is found step by step, whichever comes first */
				if (pass)
					assert_int_equal(tree_path(&tree, paths[i], count, &found), 0);
				for (size_t k = 0; k < count; k++)
					assert_int_equal(tree_child(&tree, node, paths[i][k], &node), 0);
				if (!pass)
					assert_int_equal(tree_path(&tree, paths[i], count, &found), 0);
				assert_int_equal(found, node);
				assert_int_equal(tree_count(&tree), pass ? 19 : tree_count(&tree));
			}
	tree_free(&tree);
}

static void timelines_are_sorted(void **state)
{
	enum { COUNT = 20000 };
	struct timeline timeline;
	uint64_t samples = 0;

	(void)state;
	srand(4711);
	timeline_init(&timeline, true);
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < COUNT; i++)
			assert_int_equal(timeline_add(&timeline, &(struct timeline_entry){
				.node = (uint32_t)rand() % 50, .group = (uint32_t)rand() % 3,
				.time = (uint64_t)rand() % 1000, .samples = 1 }), 0);
		timeline_sort(&timeline, pass ? 8 : 0);
		for (size_t i = 1; i < timeline_count(&timeline); i++) {
			const struct timeline_entry *entry = timeline_at(&timeline, i);

			assert_true(entry->group > entry[-1].group || (entry->group == entry[-1].group &&
				    (entry->time > entry[-1].time || (entry->time == entry[-1].time &&
				     entry->node > entry[-1].node))));
		}
	}
	assert_true(timeline_count(&timeline) <= 50 * 3 * 125);
	for (size_t i = 0; i < timeline_count(&timeline); i++)
		samples += timeline_at(&timeline, i)->samples;
	assert_int_equal(samples, 2 * COUNT);
	timeline_free(&timeline);
}

/* 500 ns in which each has an entry of its own: as fine as so many may be. */
static uint32_t divide(uint64_t least, size_t most, uint64_t *ret_width, size_t *ret_count)
{
	struct timeline timeline;
	uint32_t share;

	timeline_init(&timeline, true);
	for (uint64_t i = 0; i < 500; i++)
		assert_int_equal(timeline_add(&timeline, &(struct timeline_entry){ .time = i, .samples = 1, .weight = 7 }), 0);
	share = timeline_divide(&timeline, 500, least, most);
	*ret_width = timeline.width;
	*ret_count = timeline_count(&timeline);
	timeline_free(&timeline);
	return share;
}

static void timelines_are_as_fine_as_room_allows(void **state)
{
	static const struct { uint64_t least; size_t most; uint32_t share; } cases[] = {
		{ 1, 500, 500 }, { 1, 499, 100 }, { 1, 100, 100 }, { 1, 99, 20 }, { 5, 500, 100 },
		{ 6, 500, 20 }, { 1, 5, 5 }, { 1, 4, 1 }, { 1000, 500, 1 },
	};
	uint64_t width;
	size_t count;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(divide(cases[i].least, cases[i].most, &width, &count), cases[i].share);
		assert_int_equal(width, 500 / cases[i].share);
		assert_int_equal(count, cases[i].share);
	}
}

/* 500 ns with @nodes in each, or each in one of them, when times have been rounded to @rounded. */
static uint32_t divide_rounded(uint32_t nodes, bool in_each, uint64_t rounded)
{
	struct timeline timeline;
	uint32_t share;

	timeline_init(&timeline, true);
	for (uint32_t node = 0; node < nodes; node++)
		for (uint64_t i = 0; i < (in_each ? 500 : 1); i++)
			assert_int_equal(timeline_add(&timeline, &(struct timeline_entry){
				.node = node, .time = in_each ? i : node % 500, .samples = 1, .weight = 7 }), 0);
	if (rounded)
		timeline_sort(&timeline, rounded);
	share = timeline_divide(&timeline, 500, 1, SIZE_MAX);
	assert_int_equal(timeline.width, 500 / share);
	timeline_free(&timeline);
	return share;
}

static void timelines_grow_no_more_than_some_times(void **state _unused_)
{
	/* 65,536 for nothing, then four times as many as there are anyway */
	assert_int_equal(divide_rounded(131, true, 0), 500);
	assert_int_equal(divide_rounded(132, true, 0), 100);
	assert_int_equal(divide_rounded(70000, false, 0), 500);
}

static void rounded_times_are_not_told_apart(void **state _unused_)
{
	assert_int_equal(divide_rounded(1, true, 2), 20);
	assert_int_equal(divide_rounded(1, true, 4), 5);
	assert_int_equal(divide_rounded(1, true, 13), 1);
}

/* More than the limit comes down to fewer, of coarser times, and no sample is lost. */
static void timelines_are_bounded(void **state)
{
	enum { COUNT = 100000 };
	struct timeline timeline;
	uint64_t samples = 0, weight = 0;

	(void)state;
	timeline_init(&timeline, true);
	timeline.limit = 4096;
	for (uint32_t i = 0; i < COUNT; i++) {
		const struct timeline_entry entry = { .node = i % 5, .group = i % 3, .samples = 1,
			.weight = i, .time = 1700000000000000000 + i * 1000003ull };

		assert_int_equal(timeline_add(&timeline, &entry), 0);
		assert_true(timeline_count(&timeline) <= 4096);
	}
	timeline_sort(&timeline, 0);
	assert_true(timeline.width > 1000003);
	for (size_t i = 0; i < timeline_count(&timeline); i++) {
		const struct timeline_entry *entry = timeline_at(&timeline, i);

		samples += entry->samples;
		weight += entry->weight;
		assert_int_equal(entry->time % timeline.width, 0);
		if (i)
			assert_true(entry->group >= entry[-1].group);
	}
	assert_int_equal(samples, COUNT);
	assert_int_equal(weight, (uint64_t)COUNT * (COUNT - 1) / 2);
	timeline_free(&timeline);

	/* without times one entry for each stack, group by group */
	timeline_init(&timeline, false);
	timeline.limit = 64;
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(timeline_add(&timeline, &(struct timeline_entry){
			.node = i % 100, .group = i % 2, .samples = 1 }), 0);
	timeline_sort(&timeline, 0);
	assert_int_equal(timeline_count(&timeline), 100);
	assert_int_equal(timeline_at(&timeline, 0)->samples, 10);
	timeline_free(&timeline);
}

/* One Sample of one Location with three Lines, one of them without a name, below a kernel's. */
static void lines_become_frames(void **state)
{
	static char texts[][24] = {
		"", "inner", "outer", "/bin/x", "profile.frame.type", "kernel", "jvm", "entry", "x.c",
		"[anonymous]",
	};
	char *strings[ARRAY_SIZE(texts)];
	OtlpFunction functions[4], *function_table[4];
	OtlpLine lines[3], kernel_line, *line_table[] = { &lines[0], &lines[1], &lines[2] };
	OtlpLine *kernel_lines[] = { &kernel_line };
	OtlpLocation locations[5], *location_table[5];
	OtlpMapping mappings[3], *mapping_table[3];
	OtlpAttribute attributes[3], *attribute_table[3];
	OtlpAnyValue values[3];
	OtlpStack stacks[2], *stack_table[2];
	OtlpDictionary dictionary;
	OtlpProfilesData data;
	OtlpResourceProfiles resource, *resources[] = { &resource };
	OtlpScopeProfiles scope, *scopes[] = { &scope };
	OtlpProfile profile, *profiles[] = { &profile };
	OtlpSample sample, *samples[] = { &sample };
	int32_t stack[] = { 1, 2, 3, 4 }, kernel_type = 1, managed_type = 2;
	const struct model_frame *frame;
	struct model *model;
	uint8_t bytes[1024];
	size_t size;
	uint32_t node;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		strings[i] = texts[i];
	for (int i = 0; i < 4; i++) {
		otlp_init(function, &functions[i]);
		function_table[i] = &functions[i];
	}
	functions[1].name_strindex = 1;
	functions[1].filename_strindex = 8;
	functions[2].name_strindex = 2;
	functions[3].name_strindex = 7;
	for (int i = 0; i < 3; i++) {
		otlp_init(line, &lines[i]);
		otlp_init(mapping, &mappings[i]);
		mapping_table[i] = &mappings[i];
		otlp_init(key_value_and_unit, &attributes[i]);
		attribute_table[i] = &attributes[i];
		otlp_common_init(any_value, &values[i]);
	}
	lines[0].function_index = 1;
	lines[0].line = 17;
	lines[2].function_index = 2;
	otlp_init(line, &kernel_line);
	kernel_line.function_index = 3;
	mappings[1].filename_strindex = 3;
	mappings[1].memory_start = 0x1000;
	mappings[2].filename_strindex = 9;
	for (int i = 1; i < 3; i++) {
		attributes[i].key_strindex = 4;
		attributes[i].value = &values[i];
		values[i].value_case = OTLP_VALUE_STRINDEX;
		values[i].string_value_strindex = 4 + i;
	}
	for (int i = 0; i < 5; i++) {
		otlp_init(location, &locations[i]);
		location_table[i] = &locations[i];
	}
	locations[1].lines = kernel_lines;
	locations[1].n_lines = 1;
	locations[1].attribute_indices = &kernel_type;
	locations[1].n_attribute_indices = 1;
	locations[2].mapping_index = 1;
	locations[2].address = 0x1234;
	locations[2].lines = line_table;
	locations[2].n_lines = 3;
	locations[3].mapping_index = 2;
	locations[4].attribute_indices = &managed_type;
	locations[4].n_attribute_indices = 1;
	for (int i = 0; i < 2; i++) {
		otlp_init(stack, &stacks[i]);
		stack_table[i] = &stacks[i];
	}
	stacks[1].location_indices = stack;
	stacks[1].n_location_indices = 4;
	otlp_init(profiles_dictionary, &dictionary);
	dictionary.string_table = strings;
	dictionary.n_string_table = ARRAY_SIZE(strings);
	dictionary.function_table = function_table;
	dictionary.n_function_table = 4;
	dictionary.location_table = location_table;
	dictionary.n_location_table = 5;
	dictionary.mapping_table = mapping_table;
	dictionary.n_mapping_table = 3;
	dictionary.attribute_table = attribute_table;
	dictionary.n_attribute_table = 3;
	dictionary.stack_table = stack_table;
	dictionary.n_stack_table = 2;
	otlp_init(sample, &sample);
	sample.stack_index = 1;
	sample.values = (int64_t[]){ 5 };
	sample.n_values = 1;
	otlp_init(profile, &profile);
	profile.samples = samples;
	profile.n_samples = 1;
	otlp_init(scope_profiles, &scope);
	scope.profiles = profiles;
	scope.n_profiles = 1;
	otlp_init(resource_profiles, &resource);
	resource.scope_profiles = scopes;
	resource.n_scope_profiles = 1;
	otlp_init(profiles_data, &data);
	data.dictionary = &dictionary;
	data.resource_profiles = resources;
	data.n_resource_profiles = 1;
	size = protobuf_c_message_get_packed_size(&data.base);
	assert_true(size <= sizeof(bytes));
	protobuf_c_message_pack(&data.base, bytes);

	assert_int_equal(model_new(&(struct model_options){ .is_exact = true }, &model), 0);
	assert_int_equal(reader_add(model->reader, bytes, size), 0);
	model_finish(model);
	assert_int_equal(model_sum(model, 0), 0);
	/* the root, managed, anonymous, outer, inner, kernel */
	assert_int_equal(tree_count(&model->tree), 6);
	node = 5;
	assert_int_equal(tree_sum(&model->tree, node)->self, 5);
	frame = model_frame(model, tree_node(&model->tree, node)->frame);
	assert_string_equal(frame->name, "entry");
	assert_int_equal(frame->kind, FRAME_KIND_KERNEL);
	node = tree_node(&model->tree, node)->parent;
	frame = model_frame(model, tree_node(&model->tree, node)->frame);
	assert_string_equal(frame->name, "inner");
	assert_string_equal(frame->source, "x.c");
	assert_string_equal(frame->file, "/bin/x");
	assert_int_equal(frame->line, 17);
	assert_int_equal(frame->address, 0x1234);
	assert_int_equal(frame->start, 0x1000);
	assert_true(frame->is_inlined && frame->is_named);
	assert_int_equal(frame->kind, FRAME_KIND_NATIVE);
	node = tree_node(&model->tree, node)->parent;
	frame = model_frame(model, tree_node(&model->tree, node)->frame);
	assert_string_equal(frame->name, "outer");
	assert_false(frame->is_inlined);
	node = tree_node(&model->tree, node)->parent;
	frame = model_frame(model, tree_node(&model->tree, node)->frame);
	assert_string_equal(frame->name, "0");
	assert_false(frame->is_named);
	assert_int_equal(frame->kind, FRAME_KIND_MANAGED);
	node = tree_node(&model->tree, node)->parent;
	assert_int_equal(model_frame(model, tree_node(&model->tree, node)->frame)->kind,
			 FRAME_KIND_MANAGED);
	assert_int_equal(tree_node(&model->tree, node)->parent, TREE_ROOT);
	assert_int_equal(tree_sum(&model->tree, node)->total, 5);
	model_free(model);
}

static void damage_is_told_and_does_no_harm(void **state)
{
	const char *name = fixture_path("damaged.otlp");
	unsigned int refused = 0, taken = 0;
	struct model *model;
	uint8_t *good, *bytes;
	char error[256];
	size_t size;

	(void)state;
	good = fixture_load(path, &size);
	bytes = malloc(size);
	assert_true(good && bytes);
	srand(21);
	for (int round = 0; round < 100; round++) {
		memcpy(bytes, good, size);
		for (int i = 0; i < 1 + round % 4; i++)
			bytes[(size_t)rand() * 31 % size] = (uint8_t)rand();
		recorded_bytes(name, bytes, size);
		if (model_load(name, &(struct model_options){ .with_times = true, .is_exact = round % 2 },
			       &model, error, sizeof(error))) {
			refused++;
			assert_true(strlen(error) > 10);
		} else {
			taken++;
			for (uint32_t i = 0; i < model->events.count; i++)
				assert_int_equal(model_sum(model, i), 0);
			model_free(model);
		}
		synthetic_check_pools();
	}
	assert_true(refused > 10 && taken > 10);
	free(good);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_those_of_the_report),
		cmocka_unit_test(parts_make_the_whole), cmocka_unit_test(times_cut_samples_in_two),
		cmocka_unit_test(moments_are_understood), cmocka_unit_test(times_are_said),
		cmocka_unit_test(a_focus_keeps_the_sum),
		cmocka_unit_test(trees_may_be_deep),
		cmocka_unit_test(paths_lead_to_the_same_nodes),
		cmocka_unit_test(timelines_are_sorted),
		cmocka_unit_test(timelines_are_as_fine_as_room_allows),
		cmocka_unit_test(timelines_grow_no_more_than_some_times),
		cmocka_unit_test(rounded_times_are_not_told_apart),
		cmocka_unit_test(timelines_are_bounded), cmocka_unit_test(lines_become_frames),
		cmocka_unit_test(damage_is_told_and_does_no_harm),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
