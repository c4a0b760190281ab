// SPDX-License-Identifier: Apache-2.0
#include "capture/replay.h"

#include <stacktap/ring.h>

struct sections {
	const uint64_t *kernel_ips, *user_ips;
	uint32_t kernel_count, user_count;
};

static bool take_ips(const struct stacktap_section *section, uint32_t max, const uint64_t **ret_ips,
		     uint32_t *ret_count)
{
	uint32_t count = section->len / sizeof(uint64_t);

	if (section->len % sizeof(uint64_t) || count > max)
		return false;
	*ret_ips = (const uint64_t *)(section + 1);
	*ret_count = count;
	return true;
}

static bool sample_sections(const struct stacktap_sample *sample, struct sections *ret_sections)
{
	uint32_t offset = sizeof(*sample), size = sample->header.size;
	struct sections sections = { 0 };

	/* both are multiples of 8, so what is left has room for a header or is nothing */
	while (offset < size) {
		const struct stacktap_section *section =
			(const void *)((const uint8_t *)sample + offset);
		uint32_t room = size - offset - (uint32_t)sizeof(*section);

		if (section->len > room)
			return false;
		if (section->kind == STACKTAP_SECTION_KERNEL_IPS &&
		    !take_ips(section, STACKTAP_MAX_KERNEL_FRAMES, &sections.kernel_ips,
			      &sections.kernel_count))
			return false;
		if (section->kind == STACKTAP_SECTION_USER_IPS &&
		    !take_ips(section, STACKTAP_MAX_USER_FRAMES, &sections.user_ips,
			      &sections.user_count))
			return false;
		/* does not wrap: len is at most room, and size a multiple of the alignment */
		offset += (uint32_t)sizeof(*section) + stacktap_ring_align(section->len);
	}
	*ret_sections = sections;
	return true;
}

static bool record_valid(const struct stacktap_record *record)
{
	const void *p = record;
	uint32_t size = record->size;

	switch (record->type) {
	case STACKTAP_RECORD_CONFIG: {
		const struct stacktap_config *config = p;

		return size >= sizeof(*config) && config->source < STACKTAP_MAX_SOURCES &&
		       !config->name[sizeof(config->name) - 1];
	}
	case STACKTAP_RECORD_CLOCK_ANCHOR:
		return size >= sizeof(struct stacktap_clock_anchor);
	case STACKTAP_RECORD_LOST:
		return size >= sizeof(struct stacktap_lost_record) &&
		       !((size - sizeof(struct stacktap_lost_record)) %
			 sizeof(struct stacktap_lost_entry));
	case STACKTAP_RECORD_THROTTLE: {
		const struct stacktap_throttle *throttle = p;

		return size >= sizeof(*throttle) && throttle->source < STACKTAP_MAX_SOURCES;
	}
	case STACKTAP_RECORD_CPU: {
		const struct stacktap_cpu_record *cpu = p;

		return size >= sizeof(*cpu) && cpu->sources <= STACKTAP_MAX_SOURCES &&
		       size - sizeof(*cpu) >= cpu->sources * sizeof(cpu->counts[0]);
	}
	default:
		return true;	/* of a newer minor: the reader skips it by its size */
	}
}

static bool deliver_sample(const struct stacktap_sample *sample, const struct capture_ops *ops,
			   void *ctx)
{
	struct sections sections;

	if (sample->header.size < sizeof(*sample) || sample->source >= STACKTAP_MAX_SOURCES ||
	    !sample_sections(sample, &sections))
		return false;
	if (ops->sample)
		ops->sample(ctx, sample, sections.kernel_ips, sections.kernel_count,
			    sections.user_ips, sections.user_count);
	return true;
}

int ring_parse(const void *data, size_t bytes, uint32_t cpu, const struct capture_ops *ops,
	       void *ctx, struct capture_stats *stats)
{
	const uint8_t *position = data, *end = position + bytes;

	while (position < end) {
		const struct stacktap_record *record = (const void *)position;
		size_t left = (size_t)(end - position);

		if (left < sizeof(*record) || record->size < sizeof(*record) ||
		    record->size > left || record->size % STACKTAP_RECORD_ALIGN)
			goto bad;
		if (record->type == STACKTAP_RECORD_SAMPLE) {
			if (!deliver_sample((const void *)record, ops, ctx))
				goto bad;
			stats->samples++;
		} else {
			if (!record_valid(record))
				goto bad;
			if (ops->record)
				ops->record(ctx, cpu, record);
		}
		stats->records++;
		stats->bytes += record->size;
		position += record->size;
	}
	return 0;
bad:
	stats->bad_records++;
	return -EBADMSG;
}
