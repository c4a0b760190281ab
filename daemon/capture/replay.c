// SPDX-License-Identifier: Apache-2.0
#include "capture/replay.h"

#include <stacktap/ring.h>

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

static bool take_exact(const struct stacktap_section *section, struct sample_sections *sections)
{
	uint32_t count = section->len / sizeof(uint16_t);

	if (section->len % sizeof(uint16_t) || count > STACKTAP_MAX_EXACT_PCS)
		return false;
	sections->exact = (const uint16_t *)(section + 1);
	sections->exact_count = count;
	return true;
}

static bool take_regs(const struct stacktap_section *section, struct sample_sections *sections)
{
	const struct stacktap_regs *regs = (const void *)(section + 1);

	if (section->len < sizeof(*regs) ||
	    (section->len - sizeof(*regs)) / sizeof(regs->regs[0]) < regs->count)
		return false;
	sections->regs = regs;
	sections->is_hooked = section->flags & STACKTAP_REGS_HOOKED;
	return true;
}

static bool take_slice(const struct stacktap_section *section, struct sample_sections *sections)
{
	const uint64_t *address = (const uint64_t *)(section + 1);

	if (section->len < sizeof(*address))
		return false;
	sections->slice_address = *address;
	sections->slice_end = section->flags;
	sections->slice = address + 1;
	sections->slice_bytes = section->len - (uint32_t)sizeof(*address);
	return true;
}

static bool take_missing(const struct stacktap_section *section, struct sample_sections *sections)
{
	const uint64_t *address = (const uint64_t *)(section + 1);

	if (section->len < sizeof(*address))
		return false;
	sections->missing = *address;
	return true;
}

static bool take_section(const struct stacktap_section *section, struct sample_sections *sections)
{
	switch (section->kind) {
	case STACKTAP_SECTION_KERNEL_IPS:
		return take_ips(section, STACKTAP_MAX_KERNEL_FRAMES, &sections->kernel_ips,
				&sections->kernel_count);
	case STACKTAP_SECTION_USER_IPS:
		return take_ips(section, STACKTAP_MAX_USER_FRAMES, &sections->user_ips,
				&sections->user_count);
	case STACKTAP_SECTION_EXACT_PC:
		return take_exact(section, sections);
	case STACKTAP_SECTION_REGS:
		return take_regs(section, sections);
	case STACKTAP_SECTION_STACK_SLICE:
		return take_slice(section, sections);
	case STACKTAP_SECTION_MISSING:
		return take_missing(section, sections);
	}
	return true;	/* of a newer minor, or not for us */
}

static bool sample_sections(const struct stacktap_sample *sample,
			    struct sample_sections *ret_sections)
{
	uint32_t offset = sizeof(*sample), size = sample->header.size;
	struct sample_sections sections = { 0 };

	/* both are multiples of 8, so what is left has room for a header or is nothing */
	while (offset < size) {
		const struct stacktap_section *section =
			(const void *)((const uint8_t *)sample + offset);
		uint32_t room = size - offset - (uint32_t)sizeof(*section);

		if (section->len > room || !take_section(section, &sections))
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
	case STACKTAP_RECORD_THROTTLE:
	case STACKTAP_RECORD_STALL:
	case STACKTAP_RECORD_MISSED: {
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
	struct sample_sections sections;

	if (sample->header.size < sizeof(*sample) || sample->source >= STACKTAP_MAX_SOURCES ||
	    !sample_sections(sample, &sections))
		return false;
	if (ops->sample)
		ops->sample(ctx, sample, &sections);
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
