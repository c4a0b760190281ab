// SPDX-License-Identifier: GPL-2.0-only
#include <linux/string.h>
#include <linux/ktime.h>

#include "record.h"
#include "session.h"

static_assert(RECORD_RESERVE < STACKTAP_RING_MIN_BYTES / 4);
static_assert(sizeof(struct stacktap_lost_record) % STACKTAP_RECORD_ALIGN == 0);
static_assert(sizeof(struct stacktap_cpu_record) % STACKTAP_RECORD_ALIGN == 0);
static_assert(sizeof(struct stacktap_config) % STACKTAP_RECORD_ALIGN == 0);

void record_init(struct stacktap_record *header, u16 type, u16 flags, u32 size, u64 time)
{
	header->size = size;
	header->type = type;
	header->flags = flags;
	header->time = time;
}

static s64 record_throttles(struct stacktap_cpu *cpu, s64 space)
{
	struct stacktap_throttle *record;
	struct stacktap_counter *counter;
	u64 count;

	for (counter = cpu->counters; counter < cpu->counters + STACKTAP_MAX_SOURCES; counter++) {
		count = local64_read(&counter->throttled);
		if (count == counter->throttled_reported)
			continue;
		if (space < (s64)sizeof(*record)) {
			WRITE_ONCE(cpu->owing, true);
			break;
		}
		record = ring_head(cpu->ring);
		memset(record, 0, sizeof(*record));
		record_init(&record->header, STACKTAP_RECORD_THROTTLE, 0, sizeof(*record),
			    ktime_get_mono_fast_ns());
		record->source = counter->index;
		record->count = count;
		counter->throttled_reported = count;
		ring_commit(cpu->ring, sizeof(*record));
		space -= sizeof(*record);
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

s64 record_debts(struct stacktap_cpu *cpu, s64 space)
{
	if (likely(!READ_ONCE(cpu->owing)) || space < 0)
		return space;
	WRITE_ONCE(cpu->owing, false);
	barrier();
	return record_losses(cpu, record_throttles(cpu, space));
}

void record_anchor(struct stacktap_cpu *cpu)
{
	struct stacktap_clock_anchor *record = ring_head(cpu->ring);

	if (record_space(cpu->ring) < (s64)sizeof(*record))
		return;
	record_init(&record->header, STACKTAP_RECORD_CLOCK_ANCHOR, 0, sizeof(*record),
		    ktime_get_mono_fast_ns());
	record->boottime = ktime_get_boot_fast_ns();
	record->realtime = ktime_get_real_fast_ns();
	ring_commit(cpu->ring, sizeof(*record));
}

void record_config(struct stacktap_cpu *cpu, const struct stacktap_counter *counter)
{
	const struct stacktap_session *session = cpu->session;
	const struct stacktap_source *source = &session->sources[counter->index];
	struct stacktap_config *record = ring_head(cpu->ring);
	bool fallback = counter->fallback_errno;

	if (record_space(cpu->ring) < (s64)sizeof(*record))
		return;
	memset(record, 0, sizeof(*record));
	record_init(&record->header, STACKTAP_RECORD_CONFIG,
		    fallback ? STACKTAP_CONFIG_FALLBACK : 0, sizeof(*record),
		    ktime_get_mono_fast_ns());
	record->source = counter->index;
	record->mode = counter->period ? STACKTAP_MODE_PERIOD : STACKTAP_MODE_FREQ;
	record->rate_hz = source->rate_hz;
	record->period = counter->period;
	record->perf_type = counter->type;
	record->fallback_errno = counter->fallback_errno;
	record->perf_config = counter->config;
	record->generation = session->generation;
	strscpy(record->name, fallback ? "cpu-clock" : source->name, sizeof(record->name));
	ring_commit(cpu->ring, sizeof(*record));
}

static void record_cpu(struct stacktap_cpu *cpu, enum stacktap_cpu_state state, u32 size)
{
	struct stacktap_cpu_record *record = ring_head(cpu->ring);
	unsigned int nr = READ_ONCE(cpu->session->nr_sources), i, reason;

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
		for (reason = 0; reason < STACKTAP_LOST_REASONS; reason++)
			counts->lost[reason] = local64_read(&counter->lost[reason]);
	}
	ring_commit(cpu->ring, size);
}

static u32 record_cpu_size(const struct stacktap_cpu *cpu)
{
	return sizeof(struct stacktap_cpu_record) +
	       READ_ONCE(cpu->session->nr_sources) * sizeof(struct stacktap_cpu_counts);
}

void record_state(struct stacktap_cpu *cpu, enum stacktap_cpu_state state)
{
	u32 size = record_cpu_size(cpu);
	s64 space = record_debts(cpu, record_space(cpu->ring));

	if (space >= size)
		record_cpu(cpu, state, size);
}

void record_final(struct stacktap_cpu *cpu)
{
	u32 size = record_cpu_size(cpu);
	s64 space;

	/* whatever was refused for want of room counts here, even if nothing was noted since */
	WRITE_ONCE(cpu->owing, true);
	space = record_debts(cpu, ring_space(cpu->ring));
	if (cpu->final_owed && !READ_ONCE(cpu->owing) && space >= size) {
		record_cpu(cpu, STACKTAP_CPU_STOPPED, size);
		cpu->final_owed = false;
	}
}
