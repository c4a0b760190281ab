// SPDX-License-Identifier: Apache-2.0
#include "export/downsample.h"

#include <string.h>

#include "base/fingerprint.h"
#include "profile/window.h"

void downsample_init(struct downsample *downsample)
{
	*downsample = (struct downsample){ 0 };
	buffer_init(&downsample->parts, POOL_ENCODE);
	buffer_init(&downsample->samples, POOL_ENCODE);
	buffer_init(&downsample->times, POOL_ENCODE);
	buffer_init(&downsample->values, POOL_ENCODE);
}

void downsample_free(struct downsample *downsample)
{
	buffer_free(&downsample->parts);
	buffer_free(&downsample->samples);
	buffer_free(&downsample->times);
	buffer_free(&downsample->values);
}

void downsample_clear(struct downsample *downsample)
{
	buffer_clear(&downsample->parts);
	buffer_clear(&downsample->samples);
	buffer_clear(&downsample->times);
	buffer_clear(&downsample->values);
	downsample->count = 0;
}

/*
 * Without a key, as the daemon that recovers a window has to draw what the killed one drew: nobody chooses the nanosecond that
 * it is sampled in. The constants are odd, with as many ones as zeros in no order; the second fold takes from times
 * of a regular distance what is regular in their products.
 */
bool downsample_keeps(uint32_t one_in, uint64_t time, uint32_t tid)
{
	const uint64_t product = fingerprint_fold(time ^ UINT64_C(0x6a3d1c9be5872f4d),
						  tid ^ UINT64_C(0xb1c64f2e39d85a97));
	const uint64_t drawn = fingerprint_fold(product ^ UINT64_C(0x9c27e4b15d3a68f3), UINT64_C(0xd4b8316e9f52c70b));

	return drawn <= UINT64_MAX / one_in;
}

static uint32_t count_kept(uint32_t one_in, const struct profile_part *part)
{
	uint32_t kept = 0;

	for (uint32_t i = part->first; i < part->first + part->count; i++)
		kept += downsample_keeps(one_in, part->sample->times[i], part->sample->tid);
	return kept;
}

/* Room for all of them at once, as they point to each other. */
static int reserve(struct downsample *downsample, uint32_t one_in, const struct profile_part *parts, size_t count)
{
	size_t times = 0, values = 0, used = 0;
	uint64_t all = 0;

	for (size_t i = 0; i < count; i++) {
		const uint32_t kept = count_kept(one_in, &parts[i]);

		used += kept > 0;
		times += kept;
		values += parts[i].sample->values ? kept : 0;
		all += parts[i].count;
	}
	downsample->count = 0;
	downsample->kept = times;
	downsample->left_out = all - times;
	downsample->parts.size = downsample->samples.size = 0;
	downsample->times.size = downsample->values.size = 0;
	if (!times)
		return 0;
	return buffer_reserve(&downsample->parts, used * sizeof(struct profile_part)) &&
	       buffer_reserve(&downsample->samples, used * sizeof(struct window_sample)) &&
	       buffer_reserve(&downsample->times, times * sizeof(uint64_t)) &&
	       (!values || buffer_reserve(&downsample->values, values * sizeof(uint64_t))) ? 0 : -ENOBUFS;
}

static uint64_t scale(uint64_t value, uint32_t one_in)
{
	uint64_t scaled;

	return __builtin_mul_overflow(value, one_in, &scaled) ? INT64_MAX : min_of(scaled, (uint64_t)INT64_MAX);
}

int downsample_choose(struct downsample *downsample, uint32_t one_in, const struct profile_part *parts, size_t count)
{
	struct profile_part *part;
	struct window_sample *sample;
	uint64_t *times, *values;
	int err = reserve(downsample, one_in, parts, count);

	if (err)
		return err;
	part = (struct profile_part *)(void *)downsample->parts.data;
	sample = (struct window_sample *)(void *)downsample->samples.data;
	times = (uint64_t *)(void *)downsample->times.data;
	values = (uint64_t *)(void *)downsample->values.data;
	for (size_t i = 0; i < count && downsample->kept; i++) {
		const struct window_sample *from = parts[i].sample;
		uint32_t kept = 0;

		for (uint32_t k = parts[i].first; k < parts[i].first + parts[i].count; k++) {
			if (!downsample_keeps(one_in, from->times[k], from->tid))
				continue;
			times[kept] = from->times[k];
			if (from->values)
				values[kept] = scale(from->values[k] & INT64_MAX, one_in);
			kept++;
		}
		if (!kept)
			continue;
		*sample = *from;
		sample->count = kept;
		sample->times = times;
		sample->values = from->values ? values : NULL;
		*part++ = (struct profile_part){ .sample = sample++, .count = kept };
		downsample->count++;
		times += kept;
		if (from->values)
			values += kept;
	}
	return 0;
}

const struct profile_part *downsample_parts(const struct downsample *downsample)
{
	return (const struct profile_part *)(const void *)downsample->parts.data;
}
