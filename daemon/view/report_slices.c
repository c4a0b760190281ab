// SPDX-License-Identifier: Apache-2.0
#include "view/report_slices.h"

#include <string.h>

#include "view/diff.h"
#include "view/largest.h"

#define NONE UINT32_MAX
#define FOUND_MIN 0.9	/* of a weight, by the second pass */

static void add_moment(struct report_whole *whole, uint64_t time, double weight, uint64_t samples)
{
	whole->first = min_of(whole->first, time);
	whole->last = max_of(whole->last, time);
	whole->squares += weight * weight / (double)samples;
}

void report_whole_add(struct report_whole *whole, const struct view_profile *profile,
		      const struct view_sample *sample)
{
	whole->is_timeless |= !sample->time_count;
	if (!sample->time_count)
		add_moment(whole, profile->start, (double)sample->weight, sample->samples);
	for (size_t i = 0; i < sample->time_count; i++)
		add_moment(whole, sample->times[i], (double)view_sample_weight(sample, i), 1);
}

struct report_error report_error_of(const struct sliced *sliced, double part, double phi)
{
	const double error = share_error(sliced, part, phi);

	return (struct report_error){ .error95 = (float)error, .phi = error < 0 ? 0 : (float)phi };
}

/* Without slices. */
static struct sliced sliced_of(const struct report_whole *whole, uint64_t weight)
{
	return (struct sliced){ .weight = (double)weight, .squares = whole->squares,
				.has_times = !whole->is_timeless };
}

/* How many samples a part has. */
static double expected_of(const struct report_whole *whole, uint64_t weight, uint64_t part)
{
	const struct sliced sliced = sliced_of(whole, weight);

	return weight ? sliced_size(&sliced) * ((double)part / (double)weight) : 0;
}

/* The same, of what slices say something about. */
static double testable(const struct report_whole *whole, uint64_t weight, uint64_t part)
{
	return whole->is_timeless ? 0 : expected_of(whole, weight, part);
}

static double testable_process(const struct report_slices *slices, uint32_t i)
{
	const struct process_row *row = report_process_row(slices->tables, i);

	return testable(&row->whole, row->process.weight, row->process.weight);
}

static double testable_part(const struct report_slices *slices, uint32_t i)
{
	const struct process_row *row = report_process_row(slices->tables, i);
	const struct event_row *event = report_event_row(slices->tables, row->event);

	return testable(&event->whole, event->event.weight, row->process.weight);
}

static double testable_function(const struct report_slices *slices, uint32_t i, enum report_share share)
{
	const struct function_row *row = report_function_row(slices->tables, i);
	const struct process_row *process = report_process_row(slices->tables, row->process);

	return testable(&process->whole, process->process.weight,
			share == REPORT_SELF ? row->function.self : row->function.total);
}

/* What is the leaf wherever it is: its two shares are one. */
static bool is_leaf_only(const struct report_slices *slices, uint32_t i)
{
	const struct report_function *function = &report_function_row(slices->tables, i)->function;

	return function->self == function->total;
}

static void count_all(const struct report_slices *slices, struct largest *largest)
{
	const struct report_tables *tables = slices->tables;

	for (uint32_t i = 0; i < tables->processes.count; i++) {
		largest_count(largest, testable_process(slices, i));
		largest_count(largest, testable_part(slices, i));
	}
	for (uint32_t i = 0; i < tables->functions.count; i++) {
		largest_count(largest, testable_function(slices, i, REPORT_SELF));
		if (!is_leaf_only(slices, i))
			largest_count(largest, testable_function(slices, i, REPORT_TOTAL));
	}
}

static uint32_t take(struct report_slices *slices, struct largest *largest, double value)
{
	return largest_take(largest, value) ? slices->count++ : NONE;
}

/* Processes before their functions, none of which has more samples: what is chosen has its process, too. */
static void choose(struct report_slices *slices)
{
	const struct report_tables *tables = slices->tables;
	struct largest largest;

	largest_init(&largest, DIFF_EXPECTED_MIN);
	count_all(slices, &largest);
	largest_choose(&largest, REPORT_TESTED_MAX);
	for (uint32_t i = 0; i < tables->processes.count; i++) {
		slices->processes[i].own = take(slices, &largest, testable_process(slices, i));
		slices->processes[i].part = take(slices, &largest, testable_part(slices, i));
	}
	for (uint32_t i = 0; i < tables->functions.count; i++) {
		uint32_t *of = slices->functions[i];

		of[REPORT_SELF] = take(slices, &largest, testable_function(slices, i, REPORT_SELF));
		of[REPORT_TOTAL] = is_leaf_only(slices, i) ? of[REPORT_SELF] :
				   take(slices, &largest, testable_function(slices, i, REPORT_TOTAL));
	}
}

static bool charge(struct report_slices *slices, size_t bytes)
{
	if (!pool_charge(POOL_REPORT, bytes))
		return false;
	slices->bytes += bytes;
	return true;
}

int report_slices_init(struct report_slices *slices, const struct report_tables *tables)
{
	const size_t events = tables->events.count, processes = tables->processes.count,
		     functions = tables->functions.count;

	*slices = (struct report_slices){ .tables = tables };
	if (!charge(slices, events * sizeof(*slices->events) + processes * sizeof(*slices->processes) +
		    functions * sizeof(*slices->functions)))
		return -E2BIG;
	slices->events = calloc(events + 1, sizeof(*slices->events));
	slices->processes = calloc(processes + 1, sizeof(*slices->processes));
	slices->functions = calloc(functions + 1, sizeof(*slices->functions));
	if (!slices->events || !slices->processes || !slices->functions)
		return -E2BIG;
	choose(slices);
	if (!charge(slices, slices->count * sizeof(*slices->tested)))
		return -E2BIG;
	slices->tested = calloc((size_t)slices->count + 1, sizeof(*slices->tested));
	return slices->tested ? 0 : -E2BIG;
}

void report_slices_done(struct report_slices *slices)
{
	free(slices->events);
	free(slices->processes);
	free(slices->functions);
	free(slices->tested);
	pool_uncharge(POOL_REPORT, slices->bytes);
	*slices = (struct report_slices){ 0 };
}

bool report_slices_needed(const struct report_slices *slices)
{
	const struct report_tables *tables = slices->tables;
	bool is_needed = slices->count;

	/* how many slices have samples counts for what has too few of its own, too */
	for (uint32_t i = 0; i < tables->processes.count && !is_needed; i++)
		is_needed = !report_process_row(tables, i)->whole.is_timeless;
	return is_needed;
}

/* Messages may be others than those of the first pass: the daemon goes on writing its store. */
static bool is_within(const struct report_whole *whole, uint64_t time)
{
	return time >= whole->first && time <= whole->last;
}

static void add_own(struct report_slices *slices, uint32_t process, uint64_t time, double weight)
{
	const struct report_whole *whole = &report_process_row(slices->tables, process)->whole;
	struct process_slices *of = &slices->processes[process];
	unsigned int slice;

	if (!is_within(whole, time))
		return;
	slice = slice_of(whole->first, whole->last, time);
	of->weight += weight;
	of->used |= UINT64_C(1) << slice;
	if (of->own == NONE)
		return;
	slices->tested[of->own][slice] += weight;
	if (!(slices->at >> slice & 1))
		slices->weights[slice] = 0;
	slices->at |= UINT64_C(1) << slice;
	slices->weights[slice] += weight;
}

static void add_part(struct report_slices *slices, uint32_t process, uint64_t time, double weight)
{
	const uint32_t event = report_process_row(slices->tables, process)->event;
	const struct report_whole *whole = &report_event_row(slices->tables, event)->whole;
	const uint32_t part = slices->processes[process].part;
	unsigned int slice;

	if (!is_within(whole, time))
		return;
	slice = slice_of(whole->first, whole->last, time);
	slices->events[event][slice] += weight;
	if (part != NONE)
		slices->tested[part][slice] += weight;
}

bool report_slices_sample(struct report_slices *slices, uint32_t process,
			  const struct view_sample *sample)
{
	slices->at = 0;
	for (size_t i = 0; i < sample->time_count; i++) {
		const double weight = (double)view_sample_weight(sample, i);

		add_own(slices, process, sample->times[i], weight);
		add_part(slices, process, sample->times[i], weight);
	}
	return slices->at;
}

void report_slices_function(struct report_slices *slices, uint32_t function, enum report_share share)
{
	const uint32_t *of = slices->functions[function];

	if (of[share] == NONE || (share == REPORT_TOTAL && of[REPORT_TOTAL] == of[REPORT_SELF]))
		return;
	for (uint64_t left = slices->at; left; left &= left - 1) {
		const int slice = __builtin_ctzll(left);

		slices->tested[of[share]][slice] += slices->weights[slice];
	}
}

/* With those slices; the second pass may have seen a little more or less. */
static double factor_of(const struct report_slices *slices, const struct sliced *sliced,
			const double *all, uint32_t part)
{
	struct sliced again = *sliced;

	memcpy(again.slices, all, sizeof(again.slices));
	again.weight = 0;
	for (unsigned int i = 0; i < SLICES; i++)
		again.weight += all[i];
	again.squares *= again.weight / sliced->weight;
	return sliced_factor(&again, slices->tested[part]);
}

/* @all: slices of the whole, NULL: not known. */
static struct report_error error_of(const struct report_slices *slices, const struct sliced *sliced,
				    const double *all, uint64_t part, double testable, uint32_t number)
{
	static const struct report_error not_known = { .error95 = -1 };
	double phi = 1;

	if (!sliced_is_telling(sliced))
		return not_known;
	if (testable >= DIFF_EXPECTED_MIN) {
		if (!all || number == NONE)
			return not_known;
		phi = factor_of(slices, sliced, all, number);
	}
	return report_error_of(sliced, (double)part, phi);
}

/* Has the second pass found what the first one had? Of what has no slices nobody asks. */
static bool has_process(const struct report_slices *slices, uint32_t i)
{
	const struct process_row *row = report_process_row(slices->tables, i);

	return slices->tested && (row->whole.is_timeless ||
				  slices->processes[i].weight >= FOUND_MIN * (double)row->process.weight);
}

static bool has_event(const struct report_slices *slices, uint32_t i)
{
	const struct event_row *row = report_event_row(slices->tables, i);
	double weight = 0;

	for (unsigned int k = 0; k < SLICES && slices->tested; k++)
		weight += slices->events[i][k];
	return slices->tested && weight >= FOUND_MIN * (double)row->event.weight;
}

static void measure_process(const struct report_slices *slices, uint32_t i, bool is_found)
{
	struct process_row *row = report_process_row(slices->tables, i);
	const struct event_row *event = report_event_row(slices->tables, row->event);
	struct sliced sliced = sliced_of(&event->whole, event->event.weight);

	is_found &= has_event(slices, row->event);
	for (unsigned int k = 0; is_found && k < SLICES; k++)
		sliced.used += slices->events[row->event][k] > 0;
	row->process.error = error_of(slices, &sliced, is_found ? slices->events[row->event] : NULL, row->process.weight,
				      testable_part(slices, i), is_found ? slices->processes[i].part : NONE);
}

static struct report_error function_error(const struct report_slices *slices, uint32_t i, enum report_share share)
{
	const struct function_row *row = report_function_row(slices->tables, i);
	const struct process_row *process = report_process_row(slices->tables, row->process);
	struct sliced sliced = sliced_of(&process->whole, process->process.weight);
	const double *all = NULL;
	uint32_t number = NONE;

	if (has_process(slices, row->process)) {
		const struct process_slices *of = &slices->processes[row->process];

		sliced.used = (unsigned int)__builtin_popcountll(of->used);
		all = of->own == NONE ? NULL : slices->tested[of->own];
		number = slices->functions[i][share];
	}
	return error_of(slices, &sliced, all,
			share == REPORT_SELF ? row->function.self : row->function.total,
			testable_function(slices, i, share), number);
}

bool report_slices_measure(const struct report_slices *slices)
{
	const struct report_tables *tables = slices->tables;
	bool are_found = true;

	for (uint32_t i = 0; i < tables->processes.count; i++) {
		const bool is_found = has_process(slices, i);

		are_found &= is_found || testable_process(slices, i) < DIFF_EXPECTED_MIN;
		measure_process(slices, i, is_found);
	}
	for (uint32_t i = 0; i < tables->functions.count; i++) {
		struct report_function *function = &report_function_row(tables, i)->function;

		function->self_error = function_error(slices, i, REPORT_SELF);
		function->total_error = function_error(slices, i, REPORT_TOTAL);
	}
	return are_found;
}
