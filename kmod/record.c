// SPDX-License-Identifier: GPL-2.0-only
#include <linux/string.h>
#include <linux/ktime.h>

#include "record.h"
#include "session.h"

static_assert(RECORD_RESERVE < STACKTAP_RING_MIN_BYTES / 4);
static_assert(sizeof(struct stacktap_lost_record) % STACKTAP_RECORD_ALIGN == 0);
static_assert(sizeof(struct stacktap_cpu_record) % STACKTAP_RECORD_ALIGN == 0);
static_assert(sizeof(struct stacktap_config) % STACKTAP_RECORD_ALIGN == 0);
static_assert(STACKTAP_MAX_SOURCES <=
	      BITS_PER_BYTE * sizeof_field(struct stacktap_cpu, configs_due));
static_assert(STACKTAP_CPU_STATES <=
	      BITS_PER_BYTE * sizeof_field(struct stacktap_cpu, states_due));

/* THROTTLE, STALL or MISSED, unless @count is what was reported before. False: there is no room. */
static bool record_count(struct stacktap_counter *counter, enum stacktap_record_type type,
			 u64 count, u64 *reported, s64 *space)
{
	struct stacktap_ring *ring = counter->cpu->ring;
	struct stacktap_throttle *record = ring_head(ring);

	if (count == *reported)
		return true;
	if (*space < (s64)sizeof(*record))
		return false;
	memset(record, 0, sizeof(*record));
	record_init(&record->header, type, 0, sizeof(*record), ktime_get_mono_fast_ns());
	record->source = counter->index;
	record->count = count;
	*reported = count;
	ring_commit(ring, sizeof(*record));
	*space -= sizeof(*record);
	return true;
}

static s64 record_counts(struct stacktap_cpu *cpu, s64 space)
{
	struct stacktap_counter *counter;

	for (counter = cpu->counters; counter < cpu->counters + STACKTAP_MAX_SOURCES; counter++) {
		if (record_count(counter, STACKTAP_RECORD_THROTTLE,
				 local64_read(&counter->throttled), &counter->throttled_reported,
				 &space) &&
		    record_count(counter, STACKTAP_RECORD_STALL, READ_ONCE(counter->stalled),
				 &counter->stalled_reported, &space) &&
		    record_count(counter, STACKTAP_RECORD_MISSED, local64_read(&counter->missed),
				 &counter->missed_reported, &space))
			continue;
		WRITE_ONCE(cpu->owing, true);
		break;
	}
	return space;
}

static s64 record_losses(struct stacktap_cpu *cpu, s64 space)
{
	struct stacktap_lost_record *record = ring_head(cpu->ring);
	struct stacktap_counter *counter;
	unsigned int reason, nr = 0;
	u64 first, count;
	u32 size;

	if (space < RECORD_LOST_MAX) {
		WRITE_ONCE(cpu->owing, true);
		return space;
	}
	/* before the counts: a loss that comes in between is told with its own time next round */
	first = READ_ONCE(cpu->lost_first);
	WRITE_ONCE(cpu->lost_first, 0);
	barrier();
	for (counter = cpu->counters; counter < cpu->counters + STACKTAP_MAX_SOURCES; counter++) {
		for (reason = 0; reason < STACKTAP_LOST_REASONS; reason++) {
			count = local64_read(&counter->lost[reason]);
			if (count == counter->lost_reported[reason])
				continue;
			record->entries[nr++] = (struct stacktap_lost_entry) {
				.source = counter->index,
				.reason = reason,
				.count = count - counter->lost_reported[reason],
			};
			counter->lost_reported[reason] = count;
		}
	}
	if (!nr)
		return space;
	size = struct_size(record, entries, nr);
	record_init(&record->header, STACKTAP_RECORD_LOST, 0, size, ktime_get_mono_fast_ns());
	record->first = first;
	ring_commit(cpu->ring, size);
	return space - size;
}

static void record_cpu(struct stacktap_cpu *cpu, enum stacktap_cpu_state state, u32 size)
{
	struct stacktap_cpu_record *record = ring_head(cpu->ring);
	unsigned int nr = READ_ONCE(cpu->session->nr_sources), i, reason;
	struct stacktap_cpu_more *more = (void *)&record->counts[nr];

	memset(record, 0, size);
	record_init(&record->header, STACKTAP_RECORD_CPU, 0, size, ktime_get_mono_fast_ns());
	record->state = state;
	record->sources = nr;
	for (i = 0; i < nr; i++) {
		const struct stacktap_counter *counter = &cpu->counters[i];
		struct stacktap_cpu_counts *counts = &record->counts[i];

		counts->calls = local64_read(&counter->calls);
		counts->recorded = local64_read(&counter->recorded);
		counts->filtered = local64_read(&counter->filtered);
		counts->throttled = local64_read(&counter->throttled);
		for (reason = 0; reason < ARRAY_SIZE(counts->lost); reason++)
			counts->lost[reason] = local64_read(&counter->lost[reason]);
		more[i].lost_budget = local64_read(&counter->lost[STACKTAP_LOST_BUDGET]);
	}
	ring_commit(cpu->ring, size);
}

static u32 record_cpu_size(const struct stacktap_cpu *cpu)
{
	return sizeof(struct stacktap_cpu_record) +
	       READ_ONCE(cpu->session->nr_sources) * (sizeof(struct stacktap_cpu_counts) +
						      sizeof(struct stacktap_cpu_more));
}

static void record_anchor(struct stacktap_cpu *cpu)
{
	struct stacktap_clock_anchor *record = ring_head(cpu->ring);

	record_init(&record->header, STACKTAP_RECORD_CLOCK_ANCHOR, 0, sizeof(*record),
		    ktime_get_mono_fast_ns());
	record->boottime = ktime_get_boot_fast_ns();
	record->realtime = ktime_get_real_fast_ns();
	ring_commit(cpu->ring, sizeof(*record));
}

static void record_config(struct stacktap_cpu *cpu, struct stacktap_counter *counter)
{
	counter->announcement.header.time = ktime_get_mono_fast_ns();
	memcpy(ring_head(cpu->ring), &counter->announcement, sizeof(counter->announcement));
	ring_commit(cpu->ring, sizeof(counter->announcement));
}

/* What samples to come are to be read by. Without room for all of it there is none for them. */
static s64 record_announcements(struct stacktap_cpu *cpu, s64 space)
{
	/* an end comes before a new beginning */
	static const u8 order[] = {
		STACKTAP_CPU_OFFLINE, STACKTAP_CPU_DESELECTED, STACKTAP_CPU_NO_COUNTER,
		STACKTAP_CPU_ONLINE,
	};
	u32 size = record_cpu_size(cpu);
	unsigned int i;

	if (cpu->anchor_due) {
		if (space < (s64)sizeof(struct stacktap_clock_anchor))
			goto full;
		record_anchor(cpu);
		cpu->anchor_due = false;
		space -= sizeof(struct stacktap_clock_anchor);
	}
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		if (!(cpu->states_due & BIT(order[i])))
			continue;
		if (space < size)
			goto full;
		record_cpu(cpu, order[i], size);
		cpu->states_due &= ~BIT(order[i]);
		space -= size;
	}
	for (i = 0; i < STACKTAP_MAX_SOURCES; i++) {
		if (!(cpu->configs_due & BIT(i)))
			continue;
		if (space < (s64)sizeof(struct stacktap_config))
			goto full;
		record_config(cpu, &cpu->counters[i]);
		cpu->configs_due &= ~BIT(i);
		space -= sizeof(struct stacktap_config);
	}
	return space;

full:
	WRITE_ONCE(cpu->owing, true);
	return 0;
}

s64 st_record_settle(struct stacktap_cpu *cpu, s64 space)
{
	if (space < 0)
		return space;
	/* every call comes by here while the ring is full, so that looking at each debt would add up */
	if (space < RECORD_LOST_MAX)
		return 0;
	WRITE_ONCE(cpu->owing, false);
	barrier();
	space = record_losses(cpu, record_counts(cpu, space));
	return record_announcements(cpu, space);
}

void st_record_owe_anchor(struct stacktap_cpu *cpu)
{
	cpu->anchor_due = true;
	WRITE_ONCE(cpu->owing, true);
}

void st_record_owe_config(struct stacktap_counter *counter)
{
	struct stacktap_cpu *cpu = counter->cpu;
	const struct stacktap_session *session = cpu->session;
	const struct stacktap_source *source = &session->sources[counter->index];
	struct stacktap_config *config = &counter->announcement;
	u32 step = session->degrade.step;
	bool fallback = counter->fallback_errno;
	u16 flags = 0;

	memset(config, 0, sizeof(*config));
	if (fallback)
		flags |= STACKTAP_CONFIG_FALLBACK;
	if (step)
		flags |= STACKTAP_CONFIG_DEGRADED | step << STACKTAP_CONFIG_STEP_SHIFT;
	if (counter_is_divided(counter))
		flags |= STACKTAP_CONFIG_MULTIPLEXED;
	record_init(&config->header, STACKTAP_RECORD_CONFIG, flags, sizeof(*config), 0);
	config->source = counter->index;
	config->mode = counter->period ? STACKTAP_MODE_PERIOD : STACKTAP_MODE_FREQ;
	config->rate_hz = counter->rate_hz;
	config->period = counter->period;
	config->perf_type = counter->type;
	config->fallback_errno = counter->fallback_errno;
	config->perf_config = counter->config;
	config->generation = session->generation;
	strscpy(config->name, fallback ? "cpu-clock" : source->name, sizeof(config->name));
	cpu->configs_due |= BIT(counter->index);
	WRITE_ONCE(cpu->owing, true);
}

void st_record_owe_counts(struct stacktap_cpu *cpu)
{
	WRITE_ONCE(cpu->owing, true);
}

void st_record_owe_state(struct stacktap_cpu *cpu, enum stacktap_cpu_state state)
{
	bool begins = state == STACKTAP_CPU_ONLINE || state == STACKTAP_CPU_NO_COUNTER;
	bool was_online = cpu->state == STACKTAP_CPU_ONLINE;

	/* only what was online can end, and only what was not can begin or fail to */
	if (begins == was_online)
		return;
	cpu->state = state;
	/* of a beginning that was never told the end is not told either */
	if (cpu->states_due & BIT(STACKTAP_CPU_ONLINE))
		cpu->states_due &= ~BIT(STACKTAP_CPU_ONLINE);
	else
		cpu->states_due |= BIT(state);
	WRITE_ONCE(cpu->owing, true);
}

void st_record_final(struct stacktap_cpu *cpu)
{
	u32 size = record_cpu_size(cpu);
	s64 space;

	/* no samples follow that would need them */
	cpu->anchor_due = false;
	cpu->configs_due = 0;
	cpu->states_due = 0;
	cpu->state = STACKTAP_CPU_STOPPED;
	/* whatever was refused for want of room counts here, even if nothing was noted since */
	WRITE_ONCE(cpu->owing, true);
	space = record_debts(cpu, ring_space(cpu->ring));
	if (cpu->final_owed && !READ_ONCE(cpu->owing) && space >= size) {
		record_cpu(cpu, STACKTAP_CPU_STOPPED, size);
		cpu->final_owed = false;
	}
}
