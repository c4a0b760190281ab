// SPDX-License-Identifier: Apache-2.0
#include "pipeline/drain.h"

#include <stacktap/degrade.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "client/event.h"

enum {
	DRAIN_MAX_CPUS = 65536,
	FINISH_ROUND_MS = 20,
};

/* What a CPU's ring told last. */
struct cpu_told {
	uint64_t throttles[STACKTAP_MAX_SOURCES];	/* these records are cumulative */
	uint64_t stalls[STACKTAP_MAX_SOURCES];
	uint64_t misses[STACKTAP_MAX_SOURCES];
	uint8_t multiplexed;				/* bits of sources, as the next */
	uint8_t fallen_back;
};

_Static_assert(STACKTAP_MAX_SOURCES <= 8, "bits of sources");

struct drain {
	struct drain_options options;
	struct control_source sources[STACKTAP_MAX_SOURCES];
	struct drain_output output;
	struct process_table *processes;
	struct aggregator *aggregator;
	struct deferred *deferred;
	bool uses_tables;
	uint64_t window_start;
	uint64_t early_ns;		/* of the first window */
	uint64_t closing;		/* the window is due since then; 0: it is not */
	bool wants_close;
	struct cpu_told *told;		/* by CPU */
	uint32_t told_cpus;
	uint64_t generation;		/* of the newest CONFIG */
	uint32_t fallen_back[STACKTAP_MAX_SOURCES];	/* CPUs; that one does stands in the log */
	struct drain_stats stats;
};

int drain_new(const struct drain_options *options, const struct drain_output *output,
	      struct drain **ret_drain)
{
	struct drain *drain = calloc(1, sizeof(*drain));
	struct mapped_file *kernel = NULL;
	int r;

	if (!drain)
		return -ENOMEM;
	drain->options = *options;
	drain->options.sources = NULL;
	drain->options.kernel = NULL;
	drain->options.follow_tgids = NULL;
	for (size_t i = 0; i < options->source_count; i++)
		if (options->sources[i].id < STACKTAP_MAX_SOURCES)
			drain->sources[options->sources[i].id] = options->sources[i];
	if (!drain->options.window_ms)
		drain->options.window_ms = DRAIN_WINDOW_MS;
	if (!drain->options.window_max_ms)
		drain->options.window_max_ms = DRAIN_WINDOW_MAX_MS;
	drain->output = *output;
	drain->window_start = clock_monotonic();
	drain->early_ns = options->early_ms * NSEC_PER_MSEC;

	r = process_table_new(&output->observer, &drain->processes);
	if (!r)
		r = aggregator_new(&drain->aggregator);
	if (!r)
		r = deferred_new(&drain->deferred);
	for (size_t i = 0; i < options->follow_count && !r; i++)
		r = process_table_follow(drain->processes, options->follow_tgids[i]);
	if (r < 0)
		goto fail;
	kernel = options->kernel ? mapped_file_ref(options->kernel) :
				   mapped_file_new(OBJECT_KERNEL, "[kernel]");
	if (!kernel) {
		r = -ENOMEM;
		goto fail;
	}
	aggregator_set_kernel(drain->aggregator, kernel);
	mapped_file_unref(kernel);
	*ret_drain = drain;
	return 0;
fail:
	drain_free(drain);
	return r;
}

void drain_free(struct drain *drain)
{
	if (!drain)
		return;
	deferred_free(drain->deferred);
	aggregator_free(drain->aggregator);
	process_table_free(drain->processes);
	free(drain->told);
	free(drain);
}

struct process_table *drain_processes(struct drain *drain)
{
	return drain->processes;
}

struct deferred *drain_deferred(struct drain *drain)
{
	return drain->deferred;
}

void drain_use_tables(struct drain *drain)
{
	drain->uses_tables = true;
}

void drain_stats(const struct drain *drain, struct drain_stats *ret_stats)
{
	*ret_stats = drain->stats;
	deferred_stats(drain->deferred, &ret_stats->deferred);
	ret_stats->losses = aggregator_losses(drain->aggregator);
}

uint64_t drain_window_ns(const struct drain_options *options, uint64_t samples, bool is_behind)
{
	const bool is_short = samples >= DRAIN_WINDOW_SAMPLES && !is_behind;

	return (is_short ? options->window_ms : options->window_max_ms) * NSEC_PER_MSEC;
}

static void give_part(struct drain *drain, uint64_t time)
{
	if (drain->output.part && aggregator_sample_count(drain->aggregator) &&
	    drain->output.wants_part(drain->output.ctx, time))
		drain->output.part(drain->output.ctx, aggregator_window(drain->aggregator));
}

bool drain_flush(struct drain *drain, uint64_t time)
{
	struct window *window = NULL;
	int r;

	/* what came since the last one; the window may wait for names and for a receiver */
	give_part(drain, UINT64_MAX);
	r = aggregator_close(drain->aggregator, time, &window);
	drain->window_start = time;
	drain->early_ns = 0;
	drain->closing = 0;
	if (r < 0)
		log_debug("window not closed: %s", strerror(-r));
	if (!window)
		return false;
	drain->stats.windows++;
	drain->output.window(drain->output.ctx, window);
	return true;
}

void drain_want_close(struct drain *drain)
{
	drain->wants_close = true;
}

bool drain_wants_close(const struct drain *drain)
{
	return drain->wants_close;
}

static void place(struct drain *drain, const struct sample_input *input)
{
	const struct stacktap_sample *sample = input->sample;
	int r = aggregator_add(drain->aggregator, input);

	if (r == -ENOBUFS) {
		/* full: this window closes early, and if that is not enough older ones must go */
		drain->stats.windows_early += drain_flush(drain, sample->header.time);
		r = aggregator_add(drain->aggregator, input);
		while (r == -ENOBUFS && drain->output.wait(drain->output.ctx))
			r = aggregator_add(drain->aggregator, input);
	}
	if (r < 0) {
		drain->stats.unplaced++;
		aggregator_add_losses(drain->aggregator, sample->source, &(struct window_losses){ .lost = 1 });
	}
}

/* What thread B is done with, or has had for too long. */
static void place_late(struct drain *drain)
{
	struct deferred_sample *sample;
	struct sample_input input;

	while ((sample = deferred_take(drain->deferred, clock_monotonic(), &input))) {
		place(drain, &input);
		deferred_release(drain->deferred, sample);
	}
}

/*
 * The first window is shorter by a part of the length that it turns out to have: by more than that all hosts whose windows
 * are short would close theirs as soon as they have samples enough, in step.
 */
static bool is_as_old(const struct drain *drain, uint64_t time, bool is_behind)
{
	const uint64_t age = time > drain->window_start ? time - drain->window_start : 0;
	const uint64_t length = drain_window_ns(&drain->options, aggregator_sample_count(drain->aggregator), is_behind);

	return age + drain->early_ns % length >= length;
}

static bool is_due(const struct drain *drain, uint64_t time)
{
	const struct drain_output *output = &drain->output;

	return is_as_old(drain, time, false) &&
	       is_as_old(drain, time, output->is_behind && output->is_behind(output->ctx));
}

void drain_round(struct drain *drain, uint64_t time)
{
	place_late(drain);
	if (!drain->closing && (drain->wants_close || is_due(drain, time)))
		drain->closing = time;
	/* bounded: what is deferred expires, and what is taken from now on does not hold it up */
	if (drain->closing && !deferred_waits(drain->deferred, drain->closing)) {
		drain_flush(drain, time);
		drain->wants_close = false;
	}
	give_part(drain, time);
	process_table_expire(drain->processes, time);
}

void drain_finish(struct drain *drain)
{
	place_late(drain);
	while (deferred_waits(drain->deferred, UINT64_MAX)) {
		deferred_wait(drain->deferred, FINISH_ROUND_MS);
		place_late(drain);
	}
	drain_flush(drain, clock_monotonic());
}

static void on_mmap(void *ctx, const struct sideband_mmap *event)
{
	struct drain *drain = ctx;

	process_table_mmap(drain->processes, event);
}

static void on_comm(void *ctx, const struct sideband_task *event)
{
	struct drain *drain = ctx;

	process_table_comm(drain->processes, event);
}

static void on_fork(void *ctx, const struct sideband_task *event)
{
	struct drain *drain = ctx;

	process_table_fork(drain->processes, event);
}

static void on_exit_event(void *ctx, const struct sideband_task *event)
{
	struct drain *drain = ctx;

	process_table_exit(drain->processes, event);
}

static void on_gap(void *ctx, enum capture_gap reason, uint64_t time, uint32_t cpu)
{
	struct drain *drain = ctx;

	log_debug("CPU %u: %s", cpu, reason == CAPTURE_GAP_CPU_ONLINE ?
					     "came online without a side band" :
					     "the kernel dropped side-band events");
	drain->stats.doubts++;
	process_table_doubt(drain->processes, time);
}

static void on_ksymbol(void *ctx, uint64_t time _unused_, uint64_t address _unused_,
		       uint32_t length _unused_, bool is_unregister,
		       const char *name _unused_)
{
	struct drain *drain = ctx;

	if (!is_unregister && drain->output.kernel_changed)
		drain->output.kernel_changed(drain->output.ctx);
}

/*
 * Did the module send what it takes to unwind the stack, as it could not do that itself? A slice
 * without bytes is one of a program that has just begun.
 */
static bool is_deferred(const struct drain *drain, const struct sample_input *input,
		    const struct sample_sections *sections)
{
	return drain->output.deferred && input->image && sections->regs && sections->slice &&
	       input->sample->user_end == STACKTAP_END_NO_MAPPINGS;
}

/* False: there is no room. */
static bool set_aside(struct drain *drain, const struct sample_input *input,
		      const struct sample_sections *sections)
{
	const struct stacktap_sample *sample = input->sample;
	const struct profile_config *profile =
		aggregator_profile(drain->aggregator, sample->source, sample->cpu);

	if (!profile ||
	    deferred_put(drain->deferred, input, sections, profile, clock_monotonic()) < 0)
		return false;
	/* thread B has it already, or else it can be had back */
	return drain->output.deferred(drain->output.ctx) || !deferred_take_back(drain->deferred);
}

/* @input->image and its marks are known. */
static void take_sample(struct drain *drain, struct sample_input *input, const struct sample_sections *sections)
{
	const struct stacktap_sample *sample = input->sample;
	struct stacktap_sample unproven;

	if (is_deferred(drain, input, sections)) {
		if (set_aside(drain, input, sections))
			return;
		input->marks |= SAMPLE_DEFERRED_REFUSED;
	}
	/* of a module that does not tell so itself */
	if (drain->uses_tables && !sample->generation &&
	    sample->user_end == STACKTAP_END_COMPLETE) {
		unproven = *sample;
		unproven.user_end = STACKTAP_END_NO_MAPPINGS;
		input->sample = &unproven;
	}
	place(drain, input);
}

static struct sample_input input_of(const struct stacktap_sample *sample, const struct sample_sections *sections)
{
	return (struct sample_input){
		.sample = sample,
		.kernel_ips = sections->kernel_ips,
		.kernel_count = sections->kernel_count,
		.user_ips = sections->user_ips,
		.user_count = sections->user_count,
		.exact = sections->exact,
		.exact_count = sections->exact_count,
	};
}

static void on_sample(void *ctx, const struct stacktap_sample *sample,
		      const struct sample_sections *sections)
{
	struct drain *drain = ctx;
	struct sample_input input = input_of(sample, sections);

	if (!process_table_follows(drain->processes, sample->tgid))
		return;
	input.image = process_table_image(drain->processes, sample, &input.marks);
	if (input.image && input.user_count)
		input.marks |= process_table_check_list(drain->processes, input.image, sample);
	if (input.image && input.user_count &&
	    !image_find_mapping(input.image, input.user_ips[0]))
		process_table_suspect(drain->processes, input.image, sample->header.time);

	if (sections->missing && drain->output.missing)
		drain->output.missing(drain->output.ctx, sample->tgid, sections->missing);
	take_sample(drain, &input, sections);
}

/* What was mapped between then and the scan nobody has seen. Lists and their generations are the other session's. */
static void on_kept_sample(void *ctx, const struct stacktap_sample *sample,
			   const struct sample_sections *sections, bool is_proven)
{
	struct drain *drain = ctx;
	struct sample_input input = input_of(sample, sections);

	input.image = is_proven ? process_table_image(drain->processes, sample, &input.marks) :
				  process_table_image_unseen(drain->processes, sample, &input.marks);
	if (input.image)
		input.marks |= SAMPLE_DOUBTFUL;
	/* what has no mappings any more must not take the room of what later tables help */
	if (is_proven)
		take_sample(drain, &input, sections);
	else
		place(drain, &input);
}

/*
 * Our own session counts from 0, its generations begin anew, and it tells its states itself. What came is in no ring
 * any more, so it is the journal's at once.
 */
static void on_kept_end(void *ctx)
{
	struct drain *drain = ctx;

	drain->generation = 0;
	for (uint32_t cpu = 0; cpu < drain->told_cpus; cpu++) {
		memset(drain->told[cpu].throttles, 0, sizeof(drain->told[cpu].throttles));
		memset(drain->told[cpu].stalls, 0, sizeof(drain->told[cpu].stalls));
		memset(drain->told[cpu].misses, 0, sizeof(drain->told[cpu].misses));
		drain->told[cpu].multiplexed = drain->told[cpu].fallen_back = 0;
	}
	memset(drain->fallen_back, 0, sizeof(drain->fallen_back));
	drain->stats.multiplexed = drain->stats.degraded = 0;
	give_part(drain, UINT64_MAX);
}

/* NULL: out of memory. */
static struct cpu_told *told_by(struct drain *drain, uint32_t cpu)
{
	struct cpu_told *told;

	if (cpu >= DRAIN_MAX_CPUS)
		return NULL;
	if (cpu >= drain->told_cpus) {
		told = reallocarray(drain->told, cpu + 1, sizeof(*told));
		if (!told)
			return NULL;
		memset(told + drain->told_cpus, 0, (cpu + 1 - drain->told_cpus) * sizeof(*told));
		drain->told = told;
		drain->told_cpus = cpu + 1;
	}
	return &drain->told[cpu];
}

/* One line for all that begins before all of it is over. */
static void on_multiplexed(struct drain *drain, uint32_t cpu, uint16_t source, bool is_multiplexed)
{
	struct cpu_told *told = told_by(drain, cpu);
	uint32_t *now = &drain->stats.multiplexed;

	if (!told || (told->multiplexed >> source & 1) == is_multiplexed)
		return;
	told->multiplexed ^= (uint8_t)(1u << source);
	if (!is_multiplexed) {
		if (!--*now)
			log_info("no counter is multiplexed any more");
		return;
	}
	drain->stats.multiplexings++;
	if (!(*now)++)
		log_warning("multiplexed: counters share the PMU with others; the first, %s on CPU "
			    "%u, counts less than %u %% of the time",
			    drain->sources[source].name, cpu, STACKTAP_MULTIPLEX_PERCENT);
}

/* Every CPU tells of a step, in its own time: the first that does is listened to. */
static void on_step(struct drain *drain, uint64_t generation, uint32_t step)
{
	struct drain_stats *stats = &drain->stats;

	if (generation < drain->generation)
		return;
	drain->generation = generation;
	if (step > stats->degraded) {
		stats->degradations += step - stats->degraded;
		log_warning("degraded: overflow handlers exceed their budget or the ceiling: kernel stacks "
			    "up to %u frames, rates divided by %u", degrade_kernel_frames(step),
			    1U << degrade_rate_shift(step));
	} else if (step < stats->degraded && step) {
		log_info("less degraded: kernel stacks up to %u frames, rates divided by %u",
			 degrade_kernel_frames(step), 1U << degrade_rate_shift(step));
	} else if (step < stats->degraded) {
		log_info("not degraded any more");
	}
	stats->degraded = step;
}

/*
 * What was asked for is in the log already; this is what counts. One line for all CPUs, and one when the
 * last of them is back.
 */
static void on_fallback(struct drain *drain, uint32_t cpu, const struct stacktap_config *config,
			const struct profile_config *profile)
{
	struct cpu_told *told = told_by(drain, cpu);
	uint32_t *now = &drain->fallen_back[config->source];
	bool has_fallen_back = config->fallback_errno;

	if (!told || (told->fallen_back >> config->source & 1) == has_fallen_back)
		return;
	told->fallen_back ^= (uint8_t)(1u << config->source);
	if (!has_fallen_back) {
		if (!--*now)
			log_info("%s: using %s again on all CPUs (CPU %u was the last); the fallback to cpu-clock is over",
				 profile->source, profile->event, cpu);
		return;
	}
	if (!(*now)++)
		log_info("%s: using %s on CPU %u and maybe others (fallback): %s", profile->source,
			 profile->event, cpu, strerror(config->fallback_errno));
}

static void on_config(struct drain *drain, uint32_t cpu, const struct stacktap_config *config)
{
	const char *name = event_name(config->perf_type, config->perf_config);
	struct profile_config profile = {
		.source_id = config->source,
		.mode = config->mode,
		.rate_hz = config->rate_hz,
		.fallback_errno = config->fallback_errno,
		.period = config->mode == STACKTAP_MODE_FREQ ? 0 : config->period,
		.degraded = (config->header.flags & STACKTAP_CONFIG_STEP_MASK) >>
			    STACKTAP_CONFIG_STEP_SHIFT,
		.is_multiplexed = config->header.flags & STACKTAP_CONFIG_MULTIPLEXED,
		.is_clock = event_is_clock(config->perf_type, config->perf_config),
	};
	int r;

	/* without a rate a number of cycles tells nothing of time */
	profile.is_cpu_time = event_is_cpu_time(config->perf_type, config->perf_config) &&
			      (profile.rate_hz || profile.is_clock);
	snprintf(profile.event, sizeof(profile.event), "%s", name ? name : config->name);
	snprintf(profile.source, sizeof(profile.source), "%s",
		 drain->sources[config->source].name[0] ? drain->sources[config->source].name :
							  profile.event);
	on_fallback(drain, cpu, config, &profile);
	r = aggregator_set_cpu_profile(drain->aggregator, cpu, &profile);
	if (r < 0)
		log_debug("CPU %u: configuration not taken: %s", cpu, strerror(-r));
	on_step(drain, config->generation, profile.degraded);
	on_multiplexed(drain, cpu, config->source, profile.is_multiplexed);
}

static void on_lost(struct drain *drain, const struct stacktap_lost_record *lost)
{
	size_t count = (lost->header.size - sizeof(*lost)) / sizeof(lost->entries[0]);

	for (size_t i = 0; i < count; i++)
		aggregator_add_losses(drain->aggregator, lost->entries[i].source,
				      &(struct window_losses){ .lost = lost->entries[i].count });
}

/* By how much a count that only grows has grown since @seen, which is brought up to it. */
static uint64_t grown(uint64_t *seen, uint64_t count)
{
	uint64_t more = count > *seen ? count - *seen : 0;

	*seen = count;
	return more;
}

static void on_throttle(struct drain *drain, uint32_t cpu,
			const struct stacktap_throttle *throttle)
{
	struct cpu_told *told = told_by(drain, cpu);
	struct window_losses more = { 0 };

	if (!told)
		return;
	more.throttled = grown(&told->throttles[throttle->source], throttle->count);
	aggregator_add_losses(drain->aggregator, throttle->source, &more);
}

static void on_stall(struct drain *drain, uint32_t cpu, const struct stacktap_throttle *stall)
{
	struct cpu_told *told = told_by(drain, cpu);
	struct window_losses more = { 0 };

	if (told)
		more.stalled = grown(&told->stalls[stall->source], stall->count);
	if (!more.stalled)
		return;
	aggregator_add_losses(drain->aggregator, stall->source, &more);
	log_info("CPU %u: the counter of %s stopped overflowing; re-armed", cpu,
		 drain->sources[stall->source].name);
}

static void on_missed(struct drain *drain, uint32_t cpu, const struct stacktap_throttle *missed)
{
	struct cpu_told *told = told_by(drain, cpu);
	struct window_losses more = { 0 };

	if (!told)
		return;
	more.missed = grown(&told->misses[missed->source], missed->count);
	aggregator_add_losses(drain->aggregator, missed->source, &more);
}

/* Where sampling ends the counters are gone. */
static void on_cpu(struct drain *drain, uint32_t cpu, const struct stacktap_cpu_record *record)
{
	if (record->state == STACKTAP_CPU_ONLINE)
		return;
	if (record->state == STACKTAP_CPU_NO_COUNTER)
		log_warning("CPU %u is not sampled: it has no counter, see stacktap status", cpu);
	for (uint16_t source = 0; source < STACKTAP_MAX_SOURCES; source++)
		on_multiplexed(drain, cpu, source, false);
}

static void on_record(void *ctx, uint32_t cpu, const struct stacktap_record *record)
{
	struct drain *drain = ctx;
	const void *p = record;

	switch (record->type) {
	case STACKTAP_RECORD_CONFIG:
		on_config(drain, cpu, p);
		break;
	case STACKTAP_RECORD_LOST:
		on_lost(drain, p);
		break;
	case STACKTAP_RECORD_THROTTLE:
		on_throttle(drain, cpu, p);
		break;
	case STACKTAP_RECORD_STALL:
		on_stall(drain, cpu, p);
		break;
	case STACKTAP_RECORD_MISSED:
		on_missed(drain, cpu, p);
		break;
	case STACKTAP_RECORD_CPU:
		on_cpu(drain, cpu, p);
		break;
	}
}

static void on_sideband_end(void *ctx)
{
	const struct drain *drain = ctx;

	if (drain->output.announced)
		drain->output.announced(drain->output.ctx);
}

const struct capture_ops drain_ops = {
	.mmap = on_mmap,
	.comm = on_comm,
	.fork = on_fork,
	.exit = on_exit_event,
	.ksymbol = on_ksymbol,
	.gap = on_gap,
	.sideband_end = on_sideband_end,
	.sample = on_sample,
	.record = on_record,
	.kept_sample = on_kept_sample,
	.kept_end = on_kept_end,
};
